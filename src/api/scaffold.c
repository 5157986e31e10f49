/* The skeleton of a plugin: templates from src/api/scaffold/, written into a new or empty directory. */
#include "api/scaffold.h"

#include <abx/provider.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"
#include "provider/manifest.h"

#define MAX_FILES 5

/* One file of a skeleton. A template that ends in ".in" gets its @WORDS@ replaced. */
struct part {
    const char *name, *from;
    mode_t mode;
};

struct skeleton {
    const char *kind, *lang; /* lang NULL: whatever it is */
    const char *title, *command, *program;
    const char *needs, *build; /* of the README */
    struct part parts[MAX_FILES];
};

static const struct skeleton skeletons[] = {
    {"exec", "python", "Python", "[\"python3\", \"./provider.py\"]", "provider.py",
     "\nIt needs Python 3.9 or newer and nothing else.\n", "",
     {{MANIFEST_NAME, "abx-provider.toml.in", 0644}, {"README.md", "README.md.in", 0644}, {"provider.py", "provider.py", 0755}}},
    {"exec", "node", "JavaScript for Node.js", "[\"node\", \"./provider.mjs\"]", "provider.mjs",
     "\nIt needs Node.js 18 or newer and no packages.\n", "",
     {{MANIFEST_NAME, "abx-provider.toml.in", 0644}, {"README.md", "README.md.in", 0644}, {"provider.mjs", "provider.mjs", 0755}}},
    {"exec", "c", "C", "[\"./provider\"]", "provider.c",
     "\nThe manifest runs `./provider`, which `make` builds: it is not there before. It needs Linux 5.6 or newer, glibc, and a C\n"
     "compiler. An installed copy holds the program as it was built, for the machine it was built on.\n",
     "    make\n",
     {{MANIFEST_NAME, "abx-provider.toml.in", 0644},
      {"README.md", "README.md.in", 0644},
      {"Makefile", "Makefile.in", 0644},
      {"json.h", "json.h", 0644},
      {"provider.c", "provider.c", 0644}}},
    {"exec", "shell", "bash", "[\"bash\", \"./provider.sh\"]", "provider.sh",
     "\nIt needs bash 4.4, jq 1.6, flock (util-linux), and the GNU coreutils and find. It starts jq several times a request and\n"
     "bash reads its input a byte at a time: good for glue, slow for files of megabytes.\n",
     "",
     {{MANIFEST_NAME, "abx-provider.toml.in", 0644}, {"README.md", "README.md.in", 0644}, {"provider.sh", "provider.sh", 0755}}},
    {"rest", NULL, "", "", "", "", "", {{MANIFEST_NAME, "rest.toml.in", 0644}, {"README.md", "rest.md.in", 0644}}},
};

static int choose(const char *kind, const char *lang, const struct skeleton **ret, abx_error **reterr) {
    bool known_kind = false;
    for (size_t i = 0; i < ARRAY_SIZE(skeletons); i++) known_kind |= streq(kind, skeletons[i].kind);
    if (!known_kind) return err_set(reterr, ABX_E_CONFIG, "Allowed: exec, rest.", "There is no provider kind '%s'.", kind);
    const struct skeleton *found = NULL;
    bool known_lang = false;
    for (size_t i = 0; i < ARRAY_SIZE(skeletons); i++) {
        const struct skeleton *s = &skeletons[i];
        known_lang |= streq0(s->lang, lang);
        if (streq(s->kind, kind) && (!s->lang || streq(s->lang, lang))) found = s;
    }
    if (!known_lang)
        return err_set(reterr, ABX_E_CONFIG, "Allowed: python, node, c, shell.", "There is no skeleton in the language '%s'.", lang);
    *ret = found;
    return 0;
}

static const struct embedded *template_of(const char *name) {
    const struct embedded *t = scaffold_files;
    while (t->name && !streq(t->name, name)) t++;
    return t->name ? t : NULL;
}

/* Appends a template with each @WORD@ of words, pairs that end with NULL, replaced. */
static int render(const struct embedded *t, const char *const *words, struct buf *out) {
    for (const char *p = t->data, *end = t->data + t->size; p < end;) {
        const char *const *w = words;
        while (*p == '@' && *w && strncmp(p, *w, strlen(*w)) != 0) w += 2;
        if (*p == '@' && *w) {
            buf_str(out, w[1]);
            p += strlen(*w);
        } else
            buf_char(out, *p++);
    }
    return out->err;
}

/* ---- writing, and taking back what was written ------------------------------------------ */

/* How many bytes of dir name the first of its parts that is missing; 0 when none is. */
static int first_missing(const char *dir, size_t *ret) {
    struct stat st;
    for (size_t n = 0; dir[n];) {
        n += strspn(dir + n, "/");
        n += strcspn(dir + n, "/");
        _cleanup_free_ char *part = strndup(dir, n);
        if (!part) return -ENOMEM;
        if (lstat(part, &st) == 0) continue;
        if (errno != ENOENT) return -errno;
        *ret = n;
        return 0;
    }
    *ret = 0;
    return 0;
}

/* Removes the directory dir and its parents down to the one whose name has first bytes, while they are empty. */
static void remove_made(const char *dir, size_t first) {
    _cleanup_free_ char *part = strdup(dir);
    size_t n = part ? strlen(part) : 0;
    while (n > 0 && n >= first) {
        part[n] = '\0';
        if (rmdir(part) < 0 && errno != ENOENT) return;
        while (n > 0 && part[n - 1] == '/') n--;
        while (n > 0 && part[n - 1] != '/') n--;
        while (n > 0 && part[n - 1] == '/') n--;
    }
}

static int check_empty(const char *dir, abx_error **reterr) {
    _cleanup_closedir_ DIR *d = opendir(dir);
    if (!d && errno == ENOENT) {
        struct stat st;
        if (lstat(dir, &st) < 0) return 0;
        return err_set(reterr, ABX_E_CONFIG, "Choose another directory.", "'%s' is a link to nothing.", dir);
    }
    if (!d && errno == ENOTDIR) return err_set(reterr, ABX_E_CONFIG, "Choose another directory.", "'%s' is not a directory.", dir);
    if (!d) return err_errno(reterr, ABX_E_CONFIG, -errno, "Cannot read '%s'", dir);
    for (struct dirent *e; (e = readdir(d));)
        if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
            return err_set(reterr, ABX_E_CONFIG, "Choose a directory that does not exist or is empty.", "The directory '%s' is not empty.",
                           dir);
    return 0;
}

/* A new file; a half written one is removed. */
static int write_file(int dirfd, const char *name, mode_t mode, const struct buf *b) {
    _cleanup_close_ int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) return -errno;
    for (size_t at = 0; at < b->len;) {
        ssize_t n = write(fd, b->data + at, b->len - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            int r = -errno;
            unlinkat(dirfd, name, 0);
            return r;
        }
        at += (size_t)n;
    }
    return 0;
}

static int write_parts(const struct skeleton *s, const char *dir, const char *const *words, abx_error **reterr) {
    _cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return err_errno(reterr, ABX_E_CONFIG, -errno, "Cannot open '%s'", dir);
    int r = 0;
    size_t i = 0;
    for (; r == 0 && i < MAX_FILES && s->parts[i].name; i++) {
        const struct part *p = &s->parts[i];
        const struct embedded *t = template_of(p->from);
        const char *none = NULL;
        _cleanup_buf_ struct buf b = BUF_INIT(1 * MIB);
        r = t ? render(t, str_ends(p->from, ".in") ? words : &none, &b) : -ENOENT;
        if (r == 0) r = write_file(fd, p->name, p->mode, &b);
        if (r < 0) err_errno(reterr, ABX_E_CONFIG, r, "Cannot write '%s/%s'", dir, p->name);
    }
    if (r == 0) return 0;
    while (--i > 0) unlinkat(fd, s->parts[i - 1].name, 0); /* the last one never came to be */
    return r == -ENOMEM ? r : ABX_E_CONFIG;
}

int abx_provider_scaffold(const char *id, const char *dir, const char *kind, const char *lang, abx_error **reterr) {
    const struct skeleton *s = NULL;
    char scratch[128];
    size_t first = 0;
    const char *problem = provider_id_problem(id ?: "", scratch);
    if (problem) return err_set(reterr, ABX_E_CONFIG, NULL, "%s.", problem);
    if (!dir || !*dir) return err_set(reterr, ABX_E_CONFIG, NULL, "The directory of the skeleton has no name.");
    int r = choose(kind ?: "exec", lang ?: "python", &s, reterr);
    if (r == 0) r = check_empty(dir, reterr);
    if (r < 0) return r;

    _cleanup_free_ char *env = str_upper_env(id);
    if (!env) return err_nomem(reterr);
    const char *const words[] = {"@ID@", id, "@ENV@", env, "@LANG@", s->title, "@COMMAND@", s->command, "@PROGRAM@", s->program,
                                 "@NEEDS@", s->needs, "@BUILD@", s->build, NULL};
    r = first_missing(dir, &first);
    if (r == 0) r = fs_mkdir_p(dir, 0755);
    if (r < 0)
        err_errno(reterr, ABX_E_CONFIG, r, "Cannot make the directory '%s'", dir);
    else
        r = write_parts(s, dir, words, reterr);
    if (r < 0 && first > 0) remove_made(dir, first);
    return r < 0 && r != -ENOMEM ? ABX_E_CONFIG : r;
}
