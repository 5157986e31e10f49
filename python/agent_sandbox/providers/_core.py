"""How the management functions reach the core: a short-lived client for questions, the host's for work."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from agent_sandbox._abx import Client, Op, Pending

    Start: TypeAlias = Callable[[Client, Pending], Op]
    Driver: TypeAlias = Callable[[Start], Any]


def fresh() -> Client:
    """A client that has read no file yet: what it says is true now, whatever other programs wrote."""
    from agent_sandbox import _abx, _loop

    return _abx.Client(environ=dict(os.environ), host_name=_loop.HOST_NAME)


def driver(name: str | None = None) -> Driver:
    """Starts work with one client and waits for what comes of it, also inside a running loop.

    name: another host's, whose client it is to be: a receipt calls the program that installed by it.
    """
    from agent_sandbox import _abx, _loop

    if name is not None and name != _loop.HOST_NAME:
        client = _abx.Client(environ=dict(os.environ), host_name=name)
        return lambda start: drive(client, start)
    host = _loop.current_host()
    return lambda start: host.blocking(lambda future: start(host.client, future))


def wait(start: Start) -> Any:
    """Work of a single step."""
    return driver()(start)


def drive(client: Client, start: Start) -> Any:
    """Waits for an op of a client that nobody else drives."""
    from agent_sandbox._turn import Slot

    slot = Slot()
    op = start(client, slot)
    try:
        while not slot.done():
            client.wait(-1)
    except BaseException:
        op.cancel()
        raise
    return slot.result()
