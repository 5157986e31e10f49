/* System calls and the entry point without a C library.
 *
 * A static glibc costs three times the exec of this program in start-up work and page faults,
 * and every plugin start pays it. With SUPERVISE_LIBC (other machines) the C library does the
 * same. All calls return -errno on failure. */
#ifndef SUPERVISE_SYS_H
#define SUPERVISE_SYS_H

#include <sys/syscall.h>

int supervise(int argc, char **argv, char **envp);

#ifdef SUPERVISE_LIBC

#include <errno.h>
#include <unistd.h>

#define sys(nr, ...) sys_result(syscall(nr, ##__VA_ARGS__))
static inline long sys_result(long r) { return r < 0 ? -errno : r; }
#define sys_vfork() sys_result(vfork())

int main(int argc, char **argv, char **envp) { return supervise(argc, argv, envp); }

#else

#define SYS_PAD(nr, a, b, c, d, e, ...) sys_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))
#define sys(...) SYS_PAD(__VA_ARGS__, 0, 0, 0, 0, 0, 0)

/* Returns twice, the child first and on the same stack, as vfork() does. */
__attribute__((returns_twice)) long sys_vfork(void);
void start_c(long *stack) __attribute__((noreturn, used));

#if defined(__x86_64__)

static inline long sys_call(long nr, long a, long b, long c, long d, long e) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return r;
}

/* The return address waits in a register, since the child overwrites its place on the stack. */
__asm__(".text\n"
        ".globl sys_vfork\n"
        "sys_vfork:\n"
        "    pop %rdx\n"
        "    mov $58, %eax\n"
        "    syscall\n"
        "    push %rdx\n"
        "    ret\n"
        ".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    mov %rsp, %rdi\n"
        "    and $-16, %rsp\n"
        "    call start_c\n");

#elif defined(__aarch64__)

static inline long sys_call(long nr, long a, long b, long c, long d, long e) {
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}

/* clone(CLONE_VM | CLONE_VFORK | SIGCHLD), for there is no vfork here. */
__asm__(".text\n"
        ".globl sys_vfork\n"
        "sys_vfork:\n"
        "    mov x0, #0x4111\n"
        "    mov x1, #0\n"
        "    mov x2, #0\n"
        "    mov x3, #0\n"
        "    mov x4, #0\n"
        "    mov x8, #220\n"
        "    svc #0\n"
        "    ret\n"
        ".globl _start\n"
        "_start:\n"
        "    mov x29, #0\n"
        "    mov x30, #0\n"
        "    mov x0, sp\n"
        "    b start_c\n");

#else
#error "build with -DSUPERVISE_LIBC"
#endif

/* The kernel leaves argc, argv, NULL, envp, NULL on the stack. */
void start_c(long *stack) {
    int argc = (int)stack[0];
    char **argv = (char **)(stack + 1);
    int status = supervise(argc, argv, argv + argc + 1);
    for (;;) sys(SYS_exit_group, status);
}

#endif
#endif
