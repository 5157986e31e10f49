"""The contract suite again and again, each case given up at a random moment: nothing may pile up.

ABX_SOAK_RUNS is how often (3 in the usual run, 200 with `make soak`), ABX_SOAK_SEED where the dice begin.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import os
import random
import tracemalloc
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from agent_sandbox.models.errors import SandboxError
from agent_sandbox.providers._suite import Suite
from agent_sandbox.providers.testing import ProviderContractTests
from limits import TIMEOUT

RUNS = int(os.environ.get("ABX_SOAK_RUNS", "3"))
SEED = int(os.environ.get("ABX_SOAK_SEED", "1"))
MEMORY = 2_000_000  # bytes; the interpreter's table of names may double once, and has a megabyte
OBJECTS = 500  # what caches of the interpreter may come to hold, however many runs there are
LONGEST = 0.06  # seconds until a case is given up, at most; most of them last about as long


class Cancelling(Suite):
    """A suite whose cases are cancelled."""

    def __init__(self, pid: str, dice: random.Random) -> None:
        super().__init__(pid, {})
        self.dice = dice
        self.cancelled = 0

    def run(self, case: Coroutine[Any, Any, Any]) -> Any:
        loop = self.loop()
        task = loop.create_task(case)
        loop.run_until_complete(asyncio.wait([task], timeout=self.dice.random() * LONGEST))
        task.cancel()
        done, _ = loop.run_until_complete(asyncio.wait([task], timeout=TIMEOUT))
        assert done, f"{case!r} goes on after it was cancelled"
        if task.cancelled():
            self.cancelled += 1
        elif task.exception() is not None and not isinstance(task.exception(), (AssertionError, SandboxError)):
            raise task.exception() or AssertionError  # a half-done case may fail; it may not break


def cases() -> list[Any]:
    tests = ProviderContractTests()
    return [getattr(tests, name) for name in dir(tests) if name.startswith("test_")]


def one_run(pid: str, dice: random.Random) -> int:
    """The cases in random order; how many were cancelled."""
    suite = Cancelling(pid, dice)
    order = cases()
    dice.shuffle(order)
    given: dict[str, Any] = {"suite": suite, "pid": pid, "popts": {}}
    try:
        for case in order:
            with contextlib.suppress(pytest.skip.Exception):
                case(**{name: given[name] for name in inspect.signature(case).parameters})
        loop = suite.loop()
        assert asyncio.all_tasks(loop) == set()
    finally:
        suite.close()
    return suite.cancelled


def children() -> set[str]:
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def pending() -> list[Any]:
    return [one for one in gc.get_objects() if isinstance(one, asyncio.Future) and not one.done()]


def test_nothing_piles_up(local: str) -> None:
    dice = random.Random(SEED)
    one_run(local, dice)
    gc.collect()
    before, fds = children(), len(os.listdir("/proc/self/fd"))
    objects, cancelled, low = len(gc.get_objects()), 0, 0
    tracemalloc.start()
    try:
        for turn in range(RUNS):
            cancelled += one_run(local, dice)
            gc.collect()
            assert children() == before, f"run {turn}"
            assert len(os.listdir("/proc/self/fd")) <= fds, f"run {turn}"
            assert pending() == [], f"run {turn}"
            now = tracemalloc.get_traced_memory()[0]
            low = low or now
            assert now - low < MEMORY, (turn, low, now)
            assert len(gc.get_objects()) - objects < OBJECTS, f"run {turn}"
    finally:
        tracemalloc.stop()
    assert cancelled > 5 * RUNS
