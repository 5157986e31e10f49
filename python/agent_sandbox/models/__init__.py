"""The records and errors of the package, each loaded when it is first asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent_sandbox.models.errors import *  # noqa: F403
    from agent_sandbox.models.filesystem import FileInfo as FileInfo
    from agent_sandbox.models.filesystem import FileType as FileType
    from agent_sandbox.models.filesystem import WatchEvent as WatchEvent
    from agent_sandbox.models.filesystem import WatchEventType as WatchEventType
    from agent_sandbox.models.process import CodeResult as CodeResult
    from agent_sandbox.models.process import OutputFile as OutputFile
    from agent_sandbox.models.process import ProcessChunk as ProcessChunk
    from agent_sandbox.models.process import ProcessChunkType as ProcessChunkType
    from agent_sandbox.models.process import ProcessInfo as ProcessInfo
    from agent_sandbox.models.process import ProcessResult as ProcessResult
    from agent_sandbox.models.sandbox import SandboxConfig as SandboxConfig
    from agent_sandbox.models.sandbox import SandboxInfo as SandboxInfo
    from agent_sandbox.models.sandbox import SandboxStatus as SandboxStatus

RECORDS = {
    "FileInfo": "filesystem",
    "FileType": "filesystem",
    "WatchEvent": "filesystem",
    "WatchEventType": "filesystem",
    "CodeResult": "process",
    "OutputFile": "process",
    "ProcessChunk": "process",
    "ProcessChunkType": "process",
    "ProcessInfo": "process",
    "ProcessResult": "process",
    "SandboxConfig": "sandbox",
    "SandboxInfo": "sandbox",
    "SandboxStatus": "sandbox",
}
"""The module of each record."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    module = RECORDS.get(name, "errors")
    try:
        value = getattr(import_module(f"agent_sandbox.models.{module}"), name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from agent_sandbox.models import errors

    return sorted({*globals(), *RECORDS, *errors.__all__})
