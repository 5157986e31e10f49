#!/usr/bin/env python3
"""The measurements of abx-bench through the Python API, of this package or of the reference alike.

usage: api.py PROVIDER MANY, in a Python that has either as `agent_sandbox`; the reference's store is in HOME.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from agent_sandbox.api.sandbox import Sandbox

TICK = 0.001  # seconds between two looks at the clock


def say(name: str, value: float, unit: str) -> None:
    print(f"{name} {value:.6g} {unit}", flush=True)


async def timed(n: int, call: Callable[[], Awaitable[object]]) -> float:
    times = []
    for _ in range(n):
        start = time.perf_counter()
        await call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


@contextlib.asynccontextmanager
async def stalls(name: str) -> AsyncIterator[None]:
    """Says how long the event loop once did nothing else, while the block ran."""
    worst = 0.0

    async def watch() -> None:
        nonlocal worst
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK)
            worst = max(worst, time.perf_counter() - before - TICK)

    watcher = asyncio.create_task(watch())
    await asyncio.sleep(0)
    yield
    await asyncio.sleep(2 * TICK)
    watcher.cancel()
    say(f"stall_{name}", worst * 1e3, "ms")


def rss_kib() -> float:
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * 4


def import_cost() -> None:
    statement = "import time; a = time.perf_counter(); from agent_sandbox.api.sandbox import Sandbox; print(time.perf_counter() - a)"
    runs = [subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, check=True) for _ in range(7)]
    say("import", statistics.median(float(run.stdout) for run in runs) * 1e3, "ms")


async def start_up(provider: str) -> None:
    creates, closes = [], []
    for _ in range(30):
        start = time.perf_counter()
        sandbox = await Sandbox.create(provider=provider)
        creates.append(time.perf_counter() - start)
        start = time.perf_counter()
        await sandbox.close()
        closes.append(time.perf_counter() - start)
    say("create", statistics.median(creates) * 1e3, "ms")
    say("close", statistics.median(closes) * 1e3, "ms")


async def stream(sandbox: Sandbox, name: str, count: int, size: int, unit: str) -> None:
    times = []
    async with stalls(name):
        for _ in range(3):
            start = time.perf_counter()
            async for _chunk in sandbox.commands.stream(f"spew {count} {size}", timeout=300):
                pass
            times.append(time.perf_counter() - start)
    t = statistics.median(times)
    say(name, count * size / t / 1e6 if unit == "MB/s" else count / t, unit)


async def stopped_consumer(sandbox: Sandbox) -> None:
    before = rss_kib()
    chunks = sandbox.commands.stream("spew 4000 65000")
    async for _chunk in chunks:
        await asyncio.sleep(1)
        say("stopped_consumer", (rss_kib() - before) / 1024, "MiB")
        break
    with contextlib.suppress(Exception):
        await chunks.aclose()  # type: ignore[attr-defined]


async def files(sandbox: Sandbox, label: str, size: int, n: int) -> None:
    data = bytes(size)
    async with stalls(f"write_{label}"):
        say(f"write_{label}", await timed(n, lambda: sandbox.files.write("/f", data)) * 1e3, "ms")
    async with stalls(f"read_{label}"):
        say(f"read_{label}", await timed(n, lambda: sandbox.files.read_bytes(f"/{size}")) * 1e3, "ms")


async def commands(sandbox: Sandbox) -> None:
    say("bare_call", await timed(2000, lambda: sandbox.files.get_info("/f")) * 1e6, "us")
    say("command", await timed(1000, lambda: sandbox.commands.run("true")) * 1e6, "us")
    async with stalls("concurrent_commands"):
        start = time.perf_counter()
        for _ in range(20):
            await asyncio.gather(*(sandbox.commands.run("true") for _ in range(100)))
        took = time.perf_counter() - start
    say("concurrent_commands", 2000 / took, "calls/s")


async def main(provider: str, many: int) -> None:
    import_cost()
    await start_up(provider)
    sandbox = await Sandbox.create(provider=provider)
    await commands(sandbox)
    await stream(sandbox, "small_messages", 100000, 100, "msg/s")
    await stream(sandbox, "stream_256m", 4096, 65536, "MB/s")
    for label, size, n in (("1k", 1024, 500), ("1m", 1 << 20, 30), ("5m", 5 << 20, 10)):
        await files(sandbox, label, size, n)
    with contextlib.suppress(Exception):
        await stopped_consumer(sandbox)
    other = [sandbox]
    before = rss_kib()
    start = time.perf_counter()
    for _ in range(many):
        other.append(await Sandbox.create(provider=provider))
    say("many_create", (time.perf_counter() - start) * 1e3 / many, "ms")
    say("many_memory", (rss_kib() - before) / many, "KiB")
    start = time.perf_counter()
    await asyncio.gather(*(s.close() for s in other), return_exceptions=True)
    say("many_end", (time.perf_counter() - start) * 1e3 / many, "ms")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
