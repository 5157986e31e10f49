"""Waiting without an event loop: what an op completes, and whose turn it is to touch a client."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent_sandbox._abx import Client


class Slot:
    """What an op completes where no event loop waits for it."""

    __slots__ = ("_done", "_error", "_value")

    def __init__(self) -> None:
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        return self._done

    def set_result(self, result: Any, /) -> None:
        self._done, self._value = True, result

    def set_exception(self, exception: BaseException, /) -> None:
        self._done, self._error = True, exception

    def result(self) -> Any:
        """The value, or raises the error."""
        if self._error is not None:
            raise self._error
        return self._value


class Turn:
    """Whose turn it is to touch a client; who waits for it is let in between two waits."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._gate = threading.Lock()
        self._turn = threading.RLock()

    def __enter__(self) -> None:
        if self._turn.acquire(blocking=False):
            return
        with self._gate:
            self._client.wakeup()
            self._turn.acquire()

    def __exit__(self, *exc: object) -> None:
        self._turn.release()

    def give_way(self) -> None:
        """Lets a thread in that waits; the gate keeps this one behind it."""
        if self._gate.locked():
            self._turn.release()
            with self._gate:
                self._turn.acquire()

    def free(self) -> bool:
        """No other thread is at it right now."""
        if self._turn.acquire(blocking=False):
            self._turn.release()
            return True
        return False
