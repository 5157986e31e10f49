"""Where the coroutines of in-process providers run, and how they reach the client they work for."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from agent_sandbox._loop import hosts, synchronous

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Coroutine

    from agent_sandbox._abx import Client


def each_client(fn: Callable[[Client], None]) -> None:
    """Runs fn for every client there is, in its own thread."""
    for host in list(hosts.values()):
        host.deliver(lambda client=host.client: fn(client))  # type: ignore[misc]


def deliver(client: Client, fn: Callable[[], None]) -> None:
    """Runs fn in the thread that drives client: now if it is this one, else soon."""
    host = hosts.get(id(client))
    if host is not None:
        host.deliver(fn)


_private: AbstractEventLoop | None = None
_private_lock = threading.Lock()


def _forget_parent() -> None:
    """A child made by fork has no thread that runs the loop."""
    global _private
    _private = None


os.register_at_fork(after_in_child=_forget_parent)


def _private_loop() -> AbstractEventLoop:
    """The loop of providers whose callers run none; one daemon thread, made when first needed."""
    global _private
    with _private_lock:
        if _private is None:
            import asyncio

            _private = asyncio.new_event_loop()
            threading.Thread(target=_private.run_forever, name="agent-sandbox-providers", daemon=True).start()
        return _private


def spawn(client: Client, coroutine: Coroutine[Any, Any, None]) -> Callable[[], None]:
    """Runs a provider's coroutine on the loop that drives client, else on a private one.

    The coroutine must touch its Call only inside `deliver(client, …)`. Returns what cancels it.
    """
    import asyncio

    host = hosts.get(id(client))
    driver = host.driver() if host is not None else None
    if driver is not None and not synchronous():
        return _canceller(driver.create_task(coroutine))
    there = asyncio.run_coroutine_threadsafe(coroutine, _private_loop())
    return lambda: void(there.cancel())


def _canceller(task: Any) -> Callable[[], None]:
    return lambda: void(task.cancel())


def void(_: object) -> None:
    """Drops a result."""
