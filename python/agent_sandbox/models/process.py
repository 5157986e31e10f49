"""Processes of a sandbox: what they write, how they end, which there are."""

from __future__ import annotations

import enum

from agent_sandbox.models._model import Model, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    Raw: TypeAlias = bytes  # ProcessChunk has a property of that name


class ProcessChunkType(str, enum.Enum):
    """What a piece of a running command's output is."""

    STDOUT = "stdout"
    STDERR = "stderr"
    EXIT = "exit"


class ProcessChunk(Model):
    """One piece of a running command's output, or its end.

    timestamp is seconds since the epoch. data is decoded across pieces: a character that arrives in
    two halves comes whole with the second one, and bytes that are no UTF-8 read as U+FFFD.
    """

    _names = ("type", "data", "exit_code", "pid", "timestamp")
    __slots__ = (*_names, "_raw")

    type: ProcessChunkType
    data: str
    exit_code: int | None
    pid: int | str | None
    timestamp: float | None
    _raw: Raw | None

    def __init__(
        self,
        type: ProcessChunkType | str,
        data: str = "",
        exit_code: int | None = None,
        pid: int | str | None = None,
        timestamp: float | None = None,
        raw: Raw | None = None,
    ) -> None:
        """raw: the bytes as they came, when data does not say them."""
        self.type = type if type.__class__ is ProcessChunkType else ProcessChunkType(type)
        self.data = data
        self.exit_code = exit_code
        self.pid = pid
        self.timestamp = timestamp
        self._raw = raw

    @property
    def bytes(self) -> Raw:
        """The piece as the process wrote it."""
        return self.data.encode() if self._raw is None else self._raw


class ProcessResult(Model):
    """A command that has ended; execution_time is in seconds."""

    _names = ("stdout", "stderr", "exit_code", "execution_time")
    __slots__ = _names

    def __init__(
        self, stdout: str = "", stderr: str = "", exit_code: int = 0, execution_time: float = 0.0
    ) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.exit_code = exit_code
        self.execution_time = execution_time

    @property
    def success(self) -> bool:
        """It ended with 0."""
        return self.exit_code == 0


class OutputFile(Model):
    """A file that run code left; size in bytes."""

    _names = ("name", "path", "size", "mime_type")
    __slots__ = _names

    def __init__(
        self, name: str, path: str, size: int = 0, mime_type: str = "application/octet-stream"
    ) -> None:
        self.name = name
        self.path = path
        self.size = size
        self.mime_type = mime_type


class CodeResult(Model):
    """What run_code() gives: text is the value of the last expression; execution_time is in seconds."""

    _names = ("text", "stdout", "stderr", "exit_code", "output_files", "execution_time")
    __slots__ = _names

    def __init__(
        self,
        text: str = "",
        stdout: str = "",
        stderr: str = "",
        exit_code: int = 0,
        output_files: list[OutputFile] | None = None,
        execution_time: float = 0.0,
    ) -> None:
        self.text = text
        self.stdout = stdout
        self.stderr = stderr
        self.exit_code = exit_code
        self.output_files = [OutputFile.model_validate(f) for f in output_files or []]
        self.execution_time = execution_time

    @property
    def success(self) -> bool:
        """It ended with 0."""
        return self.exit_code == 0


class ProcessInfo(Model):
    """A process that runs in a sandbox; pid is whatever its provider names it by."""

    _names = ("pid", "command", "status")
    __slots__ = _names

    def __init__(self, pid: int | str, command: str = "", status: str = "running") -> None:
        self.pid = pid
        self.command = command
        self.status = status

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ProcessInfo:
        """From a ProcessRecord of the protocol."""
        pid = record.get("pid")
        return cls(
            pid=pid if isinstance(pid, (int, str)) else text(pid),
            command=text(record.get("command")),
            status=text(record.get("status")) or "running",
        )
