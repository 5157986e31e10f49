"""Streams: what a command writes, or a watched directory does, as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agent_sandbox._loop import breath, iterate_sync

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from agent_sandbox._abx import Event, Op
    from agent_sandbox._loop import Host

T = TypeVar("T")

BATCH = 256
"""Events taken at a time; the loop's other tasks run between two batches."""


async def read_events(
    host: Host, start: Callable[[], Op], convert: Callable[[Event], T | None]
) -> AsyncGenerator[T, None]:
    """Starts an op and yields what its events convert to; given up early, the op is cancelled.

    The plugin is held back while nobody takes its events.
    """
    op = host.touch(start)
    try:
        while True:
            events = host.touch(lambda: op.take(BATCH))
            if events is None:
                op.result()
                return
            if not events:
                await host.more(op)
                continue
            for event in events:
                item = convert(event)
                if item is not None:
                    yield item
            if len(events) == BATCH:
                await breath
    finally:
        op.cancel()


class StreamReader(Generic[T]):
    """A lazy stream: nothing is sent to the provider before the first item is asked for.

    It can be read once, asynchronously (`async for`) or from a program without a loop (`for`).
    """

    def __init__(self, source: Callable[[], AsyncGenerator[T, None]]) -> None:
        self._source = source
        self._items: AsyncGenerator[T, None] | None = None

    def _open(self) -> AsyncGenerator[T, None]:
        if self._items is None:
            self._items = self._source()
        return self._items

    def __aiter__(self) -> AsyncGenerator[T, None]:
        return self._open()

    async def __anext__(self) -> T:
        return await self._open().__anext__()

    def __iter__(self) -> Iterator[T]:
        return iterate_sync(self._open())

    async def collect(self) -> list[T]:
        """Every item, to the end."""
        return [item async for item in self._open()]

    async def cancel(self) -> None:
        """Gives the stream up; its command is killed where the provider can."""
        items: Any = self._open()
        await items.aclose()
