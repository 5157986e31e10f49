"""Where event loops meet the core: a Host is one client and whoever drives it.

A client belongs to one thread at a time. A running event loop drives it through its descriptor
(`loop.add_reader`), without a helper thread; where no loop runs, the thread that waits drives it.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque

from agent_sandbox import _abx
from agent_sandbox._turn import Slot, Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Coroutine, Generator, Iterator
    from typing import Any, TypeVar

    from agent_sandbox._abx import Client, Op, Pending

    T = TypeVar("T")

HOST_NAME = "python-sdk"
"""How plugins and receipts know this host; the reference's word."""

EXIT_GRACE_MS = 1000
"""How long plugins may take to end in order when the interpreter exits, in milliseconds."""


class _Local(threading.local):
    sync: bool = False
    """A synchronous call of ours is running in this thread: nothing may wait for its event loop."""
    host: Host | None = None


_local = _Local()
_by_loop: weakref.WeakKeyDictionary[Any, Host] = weakref.WeakKeyDictionary()
hosts: weakref.WeakValueDictionary[int, Host] = weakref.WeakValueDictionary()
_leaked: list[object] = []


class Host:
    """One client with the loop or the thread that drives it."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.environ = environ
        self.generation = _generation
        self.client: Client = _abx.Client(environ=environ, host_name=HOST_NAME, log=_log)
        self._turn = Turn(self.client)
        self._loop: weakref.ref[AbstractEventLoop] | None = None
        self._thread = threading.get_ident()
        self._posted: deque[Callable[[], None]] = deque()
        hosts[id(self.client)] = self
        if "agent_sandbox.providers.inprocess" in sys.modules:
            from agent_sandbox.providers import inprocess

            inprocess.install(self.client)

    # ---- asynchronous use

    def bind(self, loop: AbstractEventLoop) -> None:
        """From now on loop drives the client."""
        old = self._loop() if self._loop is not None else None
        if old is not None and not old.is_closed():
            old.remove_reader(self.client.fileno())
        self._loop = weakref.ref(loop)
        self._thread = threading.get_ident()
        loop.add_reader(self.client.fileno(), self.client.run)
        self._drain()

    def driver(self) -> AbstractEventLoop | None:
        """The loop that drives the client right now, in whatever thread."""
        loop = self._loop() if self._loop is not None else None
        return loop if loop is not None and loop.is_running() else None

    async def call(self, start: Callable[[Pending], Op]) -> Any:
        """Starts an op and waits for its value; cancelling the task cancels the op."""
        if _local.sync:
            return self.blocking(start)
        loop = _running()
        if self._loop is None or self._loop() is not loop:
            away = self._elsewhere(loop)
            if away is not None:
                return await away(start)
        future = loop.create_future()
        op = start(future)
        try:
            return await future
        except BaseException:
            op.cancel()
            raise

    async def more(self, op: Op) -> None:
        """Waits until op has events or has ended."""
        if _local.sync:
            self.blocking(lambda waiter: _notify(op, waiter))
            return
        loop = _running()
        if self._loop is None or self._loop() is not loop:
            away = self._elsewhere(loop)
            if away is not None:
                await away(lambda waiter: _notify(op, waiter))
                return
        future = loop.create_future()
        op.notify(future)
        await future

    def _elsewhere(
        self, loop: AbstractEventLoop
    ) -> Callable[[Callable[[Pending], Op]], Coroutine[Any, Any, Any]] | None:
        """None when loop drives the client from now on, else how to reach who does."""
        import asyncio

        driver = self.driver()
        if driver is not None:

            async def ask(start: Callable[[Pending], Op]) -> Any:
                there = asyncio.run_coroutine_threadsafe(self.call(start), driver)
                return await asyncio.wrap_future(there)

            return ask
        if not self._turn.free():

            async def wait(start: Callable[[Pending], Op]) -> Any:
                return await loop.run_in_executor(None, self.blocking, start)

            return wait
        self.bind(loop)
        return None

    # ---- synchronous use

    def blocking(self, start: Callable[[Pending], Op]) -> Any:
        """Starts an op and waits for its value, driving the client from this thread.

        Inside a running loop that loop stands still meanwhile, as with any blocking call."""
        driver = self.driver()
        if driver is not None and self._thread != threading.get_ident():
            return self._there(driver, self.call(start))
        slot = Slot()
        with self._turn:
            op = start(slot)
            try:
                while not slot.done():
                    self.client.wait(-1)
                    self._drain()
                    self._turn.give_way()
            except BaseException:
                op.cancel()
                raise
        return slot.result()

    def touch(self, fn: Callable[[], T]) -> T:
        """Runs fn, which waits for nothing, while no other thread is at the client."""
        driver = self.driver()
        if driver is not None and self._thread != threading.get_ident():
            return self._there(driver, _at_once(fn))
        with self._turn:
            return fn()

    def _there(self, driver: AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
        """Has the loop of another thread do it, as long as it runs."""
        import asyncio
        import concurrent.futures

        there = asyncio.run_coroutine_threadsafe(coroutine, driver)
        try:
            while True:
                try:
                    return there.result(timeout=1.0)
                except concurrent.futures.TimeoutError:
                    if there.done():
                        raise
                    if not driver.is_running():
                        raise RuntimeError("the event loop of this sandbox has stopped") from None
        except BaseException:
            there.cancel()
            raise

    # ---- other threads

    def deliver(self, fn: Callable[[], None]) -> None:
        """Runs fn in the thread that drives the client: now if it is this one, else soon."""
        driver = self.driver()
        if driver is not None:
            if self._thread == threading.get_ident():
                fn()
            else:
                driver.call_soon_threadsafe(fn)
            return
        self._posted.append(fn)
        self.client.wakeup()
        if self._turn.free():
            with self._turn:
                self._drain()

    def _drain(self) -> None:
        while self._posted:
            self._posted.popleft()()

    def close(self, grace_ms: int) -> None:
        """Ends every plugin of this client."""
        loop = self._loop() if self._loop is not None else None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self.client.fileno())
        self.client.close(grace_ms)


def _log(level: int, component: str, line: str) -> None:
    """What the core warns of goes to the logger of its room; unheard, Python prints it on stderr."""
    import logging

    logging.getLogger(f"agent_sandbox.{component}").log((_ERROR, _WARNING)[level > 0], "%s", line)


_ERROR, _WARNING = 40, 30
"""The levels of `logging`, which is loaded when there is something to say."""


async def _at_once(fn: Callable[[], T]) -> T:
    return fn()


def _notify(op: Op, waiter: Pending) -> Op:
    op.notify(waiter)
    return op


def _first_running() -> AbstractEventLoop:
    """Takes asyncio's own function from now on; asyncio is loaded by whoever runs a loop."""
    global _running
    from asyncio import get_running_loop

    _running = get_running_loop
    return get_running_loop()


_running: Callable[[], AbstractEventLoop] = _first_running


def current_host() -> Host:
    """The host of the running loop, else of this thread; a new one when the environment changed."""
    environ = dict(os.environ)
    environ.pop("PYTEST_CURRENT_TEST", None)  # another one with each test: no reason for new plugins
    loop = _loop_here()
    if loop is None:
        host = _local.host
        if host is None or host.environ != environ or host.generation != _generation:
            host = _local.host = _new_host(environ)
        return host
    host = _by_loop.get(loop)
    if host is None or host.environ != environ or host.generation != _generation:
        host = _by_loop[loop] = _new_host(environ)
        host.bind(loop)
    return host


def _loop_here() -> AbstractEventLoop | None:
    """The loop of this thread, be it only standing still in a synchronous call of ours."""
    if "asyncio" not in sys.modules:
        return None
    import asyncio

    return asyncio._get_running_loop()


_generation = 0


def renew() -> None:
    """What is asked for from now on gets new hosts, which know today's settings and providers.

    Sandboxes keep the one they have."""
    global _generation
    _generation += 1


_at_exit = False


def _new_host(environ: dict[str, str]) -> Host:
    global _at_exit
    if not _at_exit:
        _at_exit = True
        import atexit

        atexit.register(_close_all)
        os.register_at_fork(after_in_child=_forget_parent)
    return Host(environ)


def _close_all() -> None:
    """No plugin outlives the interpreter; those in use by other threads are the supervisor's."""
    for host in list(hosts.values()):
        try:
            host.close(EXIT_GRACE_MS)
        except RuntimeError:
            continue


def _forget_parent() -> None:
    """In a forked child: the parent's clients are kept, never touched, and new ones can be made."""
    _leaked.extend(hosts.values())
    hosts.clear()
    _by_loop.clear()
    _local.host = None
    _local.sync = False


def synchronous() -> bool:
    """A synchronous call of ours runs in this thread: a loop that runs here stands still."""
    return _local.sync


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine of this package to its end without an event loop, also inside a running one."""
    before, _local.sync = _local.sync, True
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        _local.sync = before
        coroutine.close()
    raise RuntimeError("a synchronous call waited for something that is not ours")


def iterate_sync(generator: Any) -> Iterator[Any]:
    """The items of an asynchronous generator of this package, without an event loop."""
    try:
        while True:
            try:
                yield run_sync(generator.__anext__())
            except StopAsyncIteration:
                return
    finally:
        run_sync(generator.aclose())


class _Breath:
    """Lets the other tasks of the loop run once."""

    def __await__(self) -> Generator[None, None, None]:
        if not _local.sync:
            yield


breath = _Breath()
