"""An interactive terminal in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_sandbox import _abx

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agent_sandbox._abx import Event, Op
    from agent_sandbox._loop import Host


class TerminalSession:
    """A terminal that a shell of the sandbox writes to; close it, or leave its `async with`."""

    def __init__(self, host: Host, handle: _abx.Sandbox, op: Op) -> None:
        self._host = host
        self._handle = handle
        self._op = op
        self._waiting: list[bytes] = []
        self._id: int | str | None = None
        self.exit_code: int | None = None

    @classmethod
    async def open(
        cls, host: Host, handle: _abx.Sandbox, *, cols: int, rows: int, shell: str
    ) -> TerminalSession:
        """Opens one and waits until the provider has named it."""
        params = {"cols": cols, "rows": rows}
        op = handle.call(None, "pty.open", {**params, "shell": shell} if shell else params)
        session = cls(host, handle, op)
        while session._id is None and await session._more():
            pass
        if session._id is None:
            op.result()
        return session

    async def _more(self) -> bool:
        """Takes what came, waiting for something; False after the end."""
        events = self._op.take()
        if events == []:
            await self._host.more(self._op)
            events = self._op.take()
        for event in events or ():
            self._hear(event)
        return events is not None

    def _hear(self, event: Event) -> None:
        kind, data, _ = event
        if kind == _abx.STARTED:
            self._id = data
        elif kind == _abx.PTY:
            self._waiting.append(data)
        elif kind == _abx.EXIT:
            self.exit_code = data

    @property
    def is_connected(self) -> bool:
        """True until the shell has ended or the session was closed."""
        return not self._op.done and self.exit_code is None

    async def send(self, data: str) -> None:
        """Types text."""
        await self.send_bytes(data.encode())

    async def send_bytes(self, data: bytes) -> None:
        """Types bytes."""
        params = {"process_id": self._id, "data_b64": data}
        await self._host.call(lambda future: self._handle.call(future, "pty.write", params))

    async def resize(self, cols: int, rows: int) -> None:
        """Tells the shell the size of the window, in characters."""
        params = {"process_id": self._id, "cols": cols, "rows": rows}
        await self._host.call(lambda future: self._handle.call(future, "pty.resize", params))

    async def receive(self, timeout: float | None = None) -> bytes:
        """What was written since, at least a byte; b"" after the end. TimeoutError after seconds."""
        import asyncio

        return await asyncio.wait_for(self._receive(), timeout)

    async def _receive(self) -> bytes:
        while not self._waiting and await self._more():
            pass
        data = b"".join(self._waiting)
        self._waiting.clear()
        return data

    async def output_stream(self) -> AsyncGenerator[bytes, None]:
        """Output as it comes, to the end of the shell."""
        while data := await self._receive():
            yield data

    async def close(self) -> None:
        """Ends the shell."""
        if self.is_connected:
            params = {"process_id": self._id}
            await self._host.call(lambda future: self._handle.call(future, "pty.close", params))
        self._op.cancel()

    async def __aenter__(self) -> TerminalSession:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
