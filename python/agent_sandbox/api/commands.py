"""Commands and processes of a sandbox."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, overload

from agent_sandbox import _abx
from agent_sandbox._sync import synchronous
from agent_sandbox.api.streaming import StreamReader, read_events
from agent_sandbox.models.errors import ProviderFeatureNotSupportedError
from agent_sandbox.models.process import (
    ProcessChunk,
    ProcessChunkType,
    ProcessInfo,
    ProcessResult,
)

if TYPE_CHECKING:
    import builtins
    from collections.abc import AsyncGenerator, Callable

    from agent_sandbox._abx import Event, Op
    from agent_sandbox._loop import Host

_OPERATORS = frozenset("();<>|&")
_KINDS = {_abx.STDOUT: ProcessChunkType.STDOUT, _abx.STDERR: ProcessChunkType.STDERR}


def _needs_shell(cmd: str) -> bool:
    """True when a shell operator stands outside quotes."""
    if _OPERATORS.isdisjoint(cmd):
        return False
    import shlex

    words = shlex.shlex(cmd, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    try:
        return any(word and _OPERATORS.issuperset(word) for word in words)
    except ValueError:
        return False  # open quotes: the split below says so


def split_command(cmd: str, shell: bool = False) -> list[str]:
    """The argument vector of a command text.

    Unquoted operators ``( ) ; < > | &`` or shell=True make it ``sh -c``; anything else is split
    as POSIX quoting says, so variables and wildcards stay as they are written. ValueError for
    quotes that do not close.
    """
    if shell or _needs_shell(cmd):
        return ["sh", "-c", cmd]
    if cmd.isascii() and cmd.replace(" ", "").isalnum():
        return cmd.split() or [cmd]
    import shlex

    return shlex.split(cmd) or [cmd]


class CommandsModule:
    """``sandbox.commands``: run commands, stream their output, manage processes.

    timeout is in seconds and ends the command, not only the wait.
    """

    def __init__(self, host: Host, handle: _abx.Sandbox) -> None:
        self._host = host
        self._handle = handle

    def _need(self, feature: str) -> None:
        if not self._handle.has_feature(feature):
            raise ProviderFeatureNotSupportedError(self._handle.provider, feature)

    @overload
    async def run(
        self,
        cmd: str,
        *,
        timeout: int = 60,
        env: dict[str, str] | None = None,
        cwd: str = "",
        user: str = "",
        background: Literal[False] = False,
        shell: bool = False,
        on_stdout: Callable[[str], None] | None = None,
        on_stderr: Callable[[str], None] | None = None,
    ) -> ProcessResult: ...
    @overload
    async def run(
        self,
        cmd: str,
        *,
        timeout: int = 60,
        env: dict[str, str] | None = None,
        cwd: str = "",
        user: str = "",
        background: bool,
        shell: bool = False,
        on_stdout: Callable[[str], None] | None = None,
        on_stderr: Callable[[str], None] | None = None,
    ) -> ProcessResult | StreamReader[ProcessChunk]: ...
    async def run(
        self,
        cmd: str,
        *,
        timeout: int = 60,
        env: dict[str, str] | None = None,
        cwd: str = "",
        user: str = "",
        background: bool = False,
        shell: bool = False,
        on_stdout: Callable[[str], None] | None = None,
        on_stderr: Callable[[str], None] | None = None,
    ) -> ProcessResult | StreamReader[ProcessChunk]:
        """Runs a command and waits for its end; a result with another exit code is no error.

        background=True returns the lazy stream of `start` instead. on_stdout and on_stderr get
        text as it comes and need ``exec.stream``. Raises CommandTimeoutError (E3001) when the
        provider says the command was too slow.
        """
        argv = split_command(cmd, shell)
        if background:
            return self._reader(argv, timeout, env, cwd, user)
        began = time.monotonic()
        if on_stdout is None and on_stderr is None:
            handle = self._handle
            stdout, stderr, code = await self._host.call(
                lambda future: handle.exec_run(future, argv, env, cwd or None, user or None, timeout)
            )
            return ProcessResult(stdout, stderr, code, time.monotonic() - began)
        self._need("exec.run")
        texts: dict[ProcessChunkType, list[str]] = {kind: [] for kind in ProcessChunkType}
        hear = {ProcessChunkType.STDOUT: on_stdout, ProcessChunkType.STDERR: on_stderr}
        code = 0
        async for chunk in self._reader(argv, timeout, env, cwd, user):
            if chunk.type is ProcessChunkType.EXIT:
                code = chunk.exit_code or 0
                continue
            texts[chunk.type].append(chunk.data)
            listener = hear[chunk.type]
            if listener is not None:
                listener(chunk.data)
        return ProcessResult(
            "".join(texts[ProcessChunkType.STDOUT]),
            "".join(texts[ProcessChunkType.STDERR]),
            code,
            time.monotonic() - began,
        )

    def stream(
        self,
        cmd: str,
        *,
        timeout: int = 60,
        env: dict[str, str] | None = None,
        cwd: str = "",
        user: str = "",
    ) -> AsyncGenerator[ProcessChunk, None]:
        """The output of a command as it comes: chunks in order, then exactly one exit."""
        return self._chunks(split_command(cmd), timeout, env, cwd, user)

    async def start(
        self,
        cmd: str,
        *,
        timeout: int = 60,
        env: dict[str, str] | None = None,
        cwd: str = "",
        user: str = "",
    ) -> StreamReader[ProcessChunk]:
        """A lazy stream of a command: it starts when the first chunk is asked for."""
        return self._reader(split_command(cmd), timeout, env, cwd, user)

    def _reader(
        self,
        argv: builtins.list[str],
        timeout: int,
        env: dict[str, str] | None,
        cwd: str,
        user: str,
    ) -> StreamReader[ProcessChunk]:
        self._need("exec.stream")
        return StreamReader(lambda: self._chunks(argv, timeout, env, cwd, user))

    def _chunks(
        self,
        argv: builtins.list[str],
        timeout: int,
        env: dict[str, str] | None,
        cwd: str,
        user: str,
    ) -> AsyncGenerator[ProcessChunk, None]:
        def start() -> Op:
            return self._handle.exec_stream(argv, env, cwd or None, user or None, timeout)

        return read_events(self._host, start, _Chunks())

    async def list(self) -> builtins.list[ProcessInfo]:
        """The running processes the provider knows."""
        answer = await self._host.call(self._handle.process_list)
        return [ProcessInfo.from_record(record) for record in answer.get("processes") or ()]

    async def kill(self, pid: int | str) -> None:
        """Kills a process; pid as `list` or a chunk gives it."""
        handle = self._handle
        await self._host.call(lambda future: handle.process_kill(future, str(pid)))

    async def send_input(self, pid: int | str, data: str | bytes) -> None:
        """Writes to the standard input of a running process."""
        raw = data.encode() if isinstance(data, str) else bytes(data)
        handle = self._handle
        await self._host.call(lambda future: handle.process_stdin(future, str(pid), raw))

    async def close_input(self, pid: int | str) -> None:
        """Ends the standard input of a running process, where the provider knows how."""
        handle = self._handle
        await self._host.call(lambda future: handle.process_stdin_end(future, str(pid)))

    async def send_signal(self, pid: int | str, signal: int = 15) -> None:
        """Sends a signal, by its number on Linux."""
        handle = self._handle
        await self._host.call(lambda future: handle.process_signal(future, str(pid), signal))

    def stream_sync(
        self,
        cmd: str,
        *,
        timeout: int = 60,
        env: dict[str, str] | None = None,
        cwd: str = "",
        user: str = "",
    ) -> builtins.list[ProcessChunk]:
        """Every chunk of `stream`, after the command's end."""
        return list(self._reader(split_command(cmd), timeout, env, cwd, user))

    run_sync = synchronous(run)
    start_sync = synchronous(start)
    list_sync = synchronous(list)
    kill_sync = synchronous(kill)
    send_input_sync = synchronous(send_input)
    close_input_sync = synchronous(close_input)
    send_signal_sync = synchronous(send_signal)


class _Chunks:
    """Turns the events of one command into chunks that carry its process id."""

    __slots__ = ("_pid",)

    def __init__(self) -> None:
        self._pid: int | str | None = None

    def __call__(self, event: Event) -> ProcessChunk | None:
        kind, data, extra = event
        type_ = _KINDS.get(kind)
        if type_ is not None:
            return ProcessChunk(type_, data, None, self._pid, None, extra)
        if kind == _abx.EXIT:
            return ProcessChunk(ProcessChunkType.EXIT, "", data, self._pid)
        if kind == _abx.STARTED:
            self._pid = data
        return None
