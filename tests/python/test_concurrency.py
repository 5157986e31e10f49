"""Tasks, loops, threads, forks and exits: nothing hangs, nothing is left."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import agent_sandbox
import pytest
from agent_sandbox import _loop
from agent_sandbox.api.sandbox import Sandbox

PROVIDER = "local-process"
pytestmark = pytest.mark.usefixtures("local")


def children() -> set[int]:
    """The processes below this one."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            found.add(int(child))
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_many_calls_at_a_time_get_their_own_answers() -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            results = await asyncio.gather(*(sandbox.commands.run(f"echo {n}") for n in range(32)))
            assert [int(result.stdout) for result in results] == list(range(32))

    asyncio.run(scenario())


def test_the_last_close_ends_the_process() -> None:
    async def scenario() -> None:
        before = children()
        first = await Sandbox.create(provider=PROVIDER)
        second = await Sandbox.create(provider=PROVIDER)
        assert len(children() - before) == 1
        await first.kill()
        assert len(children() - before) == 1
        await second.kill()
        assert children() == before

    asyncio.run(scenario())


def test_random_cancellation_leaves_nothing() -> None:
    """Calls of every kind are given up at any moment; the sandbox goes on and all is gone at the end."""
    dice = random.Random(20)

    async def work(sandbox: Sandbox, kind: int, made: list[Sandbox]) -> None:
        if kind == 0:
            await sandbox.commands.run("sleep 0.01; echo x")
        elif kind == 1:
            async for _ in sandbox.commands.stream("echo a; sleep 0.01; echo b"):
                pass
        elif kind == 2:
            await sandbox.files.write("/f", b"x" * 100_000)
            await sandbox.files.read_bytes("/f")
        else:
            made.append(await Sandbox.create(provider=PROVIDER))

    async def scenario() -> None:
        tasks = asyncio.all_tasks()
        made: list[Sandbox] = []
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            for _ in range(150):
                task = asyncio.create_task(work(sandbox, dice.randrange(4), made))
                await asyncio.sleep(dice.random() * 0.02)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled() or task.exception() is None
            assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"
            # A create given up in mid-air is killed by the core, soon.
            for other in made:
                await other.kill()
            while len(await Sandbox.list(provider=PROVIDER)) > 1:
                await asyncio.sleep(0.01)
            while await sandbox.commands.list():
                await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == tasks

    before, fds = children(), descriptors()
    asyncio.run(asyncio.wait_for(scenario(), 120))
    gc.collect()
    assert children() == before
    assert descriptors() <= fds


def test_memory_is_flat() -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:

            async def some(n: int) -> None:
                for _ in range(n):
                    await sandbox.files.exists("/x")
                    await sandbox.files.write("/f", b"x" * 1000)
                    await sandbox.files.read_bytes("/f")

            await some(100)
            gc.collect()
            tracemalloc.start()
            await some(10)
            gc.collect()
            low, _ = tracemalloc.get_traced_memory()
            await some(500)
            gc.collect()
            high, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert high - low < 16_000, (low, high)

    asyncio.run(scenario())


def test_each_loop_and_thread_may_have_its_own() -> None:
    failures: list[BaseException] = []

    def thread(n: int) -> None:
        async def scenario() -> None:
            async with await Sandbox.create(provider=PROVIDER) as sandbox:
                for turn in range(5):
                    assert (await sandbox.commands.run(f"echo {n}.{turn}")).stdout == f"{n}.{turn}\n"

        try:
            asyncio.run(scenario())
            with Sandbox.create_sync(provider=PROVIDER) as sandbox:
                assert sandbox.commands.run_sync("echo sync").stdout == "sync\n"
        except BaseException as error:
            failures.append(error)

    before = children()
    threads = [threading.Thread(target=thread, args=(n,)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert failures == []
    gc.collect()
    assert children() == before


def test_one_sandbox_is_used_by_many_threads() -> None:
    failures: list[BaseException] = []

    def use(sandbox: Sandbox, n: int) -> None:
        try:
            for turn in range(5):
                assert sandbox.commands.run_sync(f"echo {n}.{turn}").stdout == f"{n}.{turn}\n"
        except BaseException as error:
            failures.append(error)

    def crowd(sandbox: Sandbox) -> None:
        threads = [threading.Thread(target=use, args=(sandbox, n)) for n in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(60)

    with Sandbox.create_sync(provider=PROVIDER) as sandbox:
        slow = threading.Thread(target=lambda: sandbox.commands.run_sync("sleep 0.5"))
        slow.start()
        crowd(sandbox)
        slow.join(60)
    assert failures == []

    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as inside:
            await asyncio.get_running_loop().run_in_executor(None, crowd, inside)

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert failures == []


def test_a_stream_is_read_from_another_thread_than_its_loop() -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:

            def read() -> str:
                return "".join(chunk.data for chunk in sandbox.commands.stream_sync("echo a; sleep 0.1; echo b"))

            def read_in_a_loop_of_its_own() -> str:
                async def inner() -> str:
                    return "".join([chunk.data async for chunk in sandbox.commands.stream("echo c; sleep 0.1; echo d")])

                return asyncio.run(inner())

            loop = asyncio.get_running_loop()
            assert await loop.run_in_executor(None, read) == "a\nb\n"
            assert await loop.run_in_executor(None, read_in_a_loop_of_its_own) == "c\nd\n"

    asyncio.run(asyncio.wait_for(scenario(), 60))


def run_script(text: str) -> subprocess.CompletedProcess[str]:
    """A program of its own that finds the package where this one does."""
    package = str(Path(agent_sandbox.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": package}
    return subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_forked_child_is_told_and_may_make_its_own() -> None:
    done = run_script("""
import os, sys
from agent_sandbox.api.sandbox import Sandbox
sandbox = Sandbox.create_sync(provider="local-process")
pid = os.fork()
if pid == 0:
    try:
        sandbox.commands.run_sync("echo x")
    except RuntimeError as error:
        print(error, flush=True)
    with Sandbox.create_sync(provider="local-process") as own:
        print(own.commands.run_sync("echo own").stdout, end="", flush=True)
    del sandbox, own
    sys.exit(0)
_, status = os.waitpid(pid, 0)
print("child", status)
print(sandbox.commands.run_sync("echo parent").stdout, end="")
sandbox.kill_sync()
""")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "fork" in lines[0]
    assert lines[1:] == ["own", "child 0", "parent"]
    assert done.stderr == ""


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)", "import gc; del sandbox; gc.collect()"])
def test_the_end_of_the_interpreter_takes_the_plugins(end: str) -> None:
    done = run_script(f"""
import asyncio
from pathlib import Path
from agent_sandbox.api.sandbox import Sandbox
async def main():
    global sandbox
    sandbox = await Sandbox.create(provider="local-process")
    for task in Path("/proc/self/task").iterdir():
        print((task / "children").read_text())
asyncio.run(main())
other = Sandbox.create_sync(provider="local-process")
{end}
""")
    assert (done.returncode, done.stderr) == (0, "")
    for pid in done.stdout.split():
        assert not Path(f"/proc/{pid}").exists()


def test_ctrl_c_ends_a_synchronous_wait() -> None:
    done = run_script("""
import os, signal, threading
from agent_sandbox.api.sandbox import Sandbox
with Sandbox.create_sync(provider="local-process") as sandbox:
    reader = iter(sandbox.commands.start_sync("echo up; sleep 300"))
    next(reader)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        next(reader)
    except KeyboardInterrupt:
        print("interrupted")
    print(sandbox.commands.run_sync("echo alive").stdout, end="")
""")
    assert (done.returncode, done.stdout) == (0, "interrupted\nalive\n"), done.stderr


def test_other_loops_drive_it() -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed here")

    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            assert (await sandbox.commands.run("echo uv")).stdout == "uv\n"
            chunks = [chunk async for chunk in sandbox.commands.stream("echo a; echo b")]
            assert "".join(chunk.data for chunk in chunks) == "a\nb\n"

    loop = uvloop.new_event_loop()
    loop.run_until_complete(scenario())
    loop.close()


def test_a_stalled_reader_lets_the_others_run() -> None:
    """While one stream is read without pause, the loop's other tasks are not starved."""

    async def scenario() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            task = asyncio.create_task(tick())
            async for _ in sandbox.commands.stream("yes | head -c 20000000"):
                pass
            task.cancel()
        assert ticks > 20

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_hosts_do_not_pile_up() -> None:
    for _ in range(3):
        asyncio.run(asyncio.wait_for(_touch(), 30))
    gc.collect()
    assert len(_loop._by_loop) <= 1


async def _touch() -> None:
    async with await Sandbox.create(provider=PROVIDER):
        pass
