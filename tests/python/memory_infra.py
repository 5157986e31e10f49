"""The provider of memory_provider in the reference's form: objects that build_infra() makes."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator
from typing import Any, cast

from agent_sandbox.models.filesystem import FileInfo, FileType
from agent_sandbox.models.process import ProcessChunk, ProcessChunkType, ProcessInfo
from agent_sandbox.models.sandbox import SandboxConfig, SandboxInfo, SandboxStatus
from agent_sandbox.providers import Provider, ProviderInfra
from agent_sandbox.providers.infra import ProviderConfig
from memory_provider import FEATURES, FIELDS, Box, Boxes, exit_code, kill_group, pump, spawn


class Sandboxes:
    """sandbox_protocol"""

    def __init__(self, boxes: Boxes) -> None:
        self.all = boxes

    @staticmethod
    def info(box: Box) -> SandboxInfo:
        return SandboxInfo(box.id, status=SandboxStatus(box.status), envd_url=f"memory://{box.id}", envd_access_token="of-" + box.id)

    async def create(self, config: SandboxConfig, *, request_timeout: float | None = None) -> SandboxInfo:
        return self.info(self.all.new())

    async def connect(self, sandbox_id: str) -> SandboxInfo:
        return self.info(self.all.get(sandbox_id))

    get_info = connect

    async def list(self, *, status: SandboxStatus | None = None, limit: int = 100, offset: int = 0) -> list[SandboxInfo]:
        return [self.info(box) for box in self.all.boxes.values()][offset : offset + limit]

    async def kill(self, sandbox_id: str) -> None:
        self.all.kill(sandbox_id)

    async def set_timeout(self, sandbox_id: str, timeout: int) -> None:
        self.all.get(sandbox_id)

    async def pause(self, sandbox_id: str) -> None:
        self.all.get(sandbox_id).status = "paused"

    async def resume(self, sandbox_id: str) -> None:
        self.all.get(sandbox_id).status = "running"

    async def port_url(self, sandbox_id: str, port: int) -> tuple[str, dict[str, str]]:
        return f"http://127.0.0.1:{port}", {}


class DataPlane:
    """What process_protocol and filesystem_protocol share: they find their sandbox by its URL."""

    def __init__(self, boxes: Boxes) -> None:
        self.all = boxes

    def at(self, url: str, token: Any) -> Box:
        box = self.all.get(url.removeprefix("memory://"))
        assert token.token == "of-" + box.id
        return box


class Processes(DataPlane):
    """process_protocol"""

    async def start(self, envd_url: str, envd_token: Any, *, cmd: str, args: list[str] | None = None,
                    env: dict[str, str] | None = None, cwd: str = "", timeout: int = 60, user: str = "") -> AsyncIterator[ProcessChunk]:
        box = self.at(envd_url, envd_token)
        return self.chunks(box, await spawn(box, [cmd, *(args or [])], env or {}), timeout)

    async def chunks(self, box: Box, process: asyncio.subprocess.Process, timeout: int) -> AsyncIterator[ProcessChunk]:
        decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        async for name, chunk in pump(box, process, timeout):
            if text := decoders[name].decode(chunk):
                yield ProcessChunk(ProcessChunkType(name), text, pid=process.pid)
        yield ProcessChunk(ProcessChunkType.EXIT, exit_code=exit_code(process), pid=process.pid)

    async def list_processes(self, envd_url: str, envd_token: Any) -> list[ProcessInfo]:
        return [ProcessInfo(pid, text) for pid, (text, _) in self.at(envd_url, envd_token).running.items()]

    async def send_signal(self, envd_url: str, envd_token: Any, *, pid: int | str, signal: int = 15) -> None:
        kill_group(self.at(envd_url, envd_token).process(pid), signal)

    async def send_input(self, envd_url: str, envd_token: Any, *, pid: int | str, data: str) -> None:
        cast(asyncio.StreamWriter, self.at(envd_url, envd_token).process(pid).stdin).write(data.encode())


class Files(DataPlane):
    """filesystem_protocol"""

    def info(self, box: Box, path: str) -> FileInfo:
        name = path.rpartition("/")[2]
        return FileInfo(name, path, FileType.DIRECTORY) if path in box.dirs else FileInfo(name, path, size=len(box.read(path)))

    async def read(self, envd_url: str, envd_token: Any, *, path: str) -> bytes:
        return self.at(envd_url, envd_token).read(path)

    async def write(self, envd_url: str, envd_token: Any, *, path: str, content: str | bytes) -> None:
        self.at(envd_url, envd_token).files[path] = content.encode() if isinstance(content, str) else content

    async def list_dir(self, envd_url: str, envd_token: Any, *, path: str = "/") -> list[FileInfo]:
        box = self.at(envd_url, envd_token)
        return [self.info(box, name) for name in box.names(path)]

    async def stat(self, envd_url: str, envd_token: Any, *, path: str) -> FileInfo:
        return self.info(self.at(envd_url, envd_token), path)

    async def make_dir(self, envd_url: str, envd_token: Any, *, path: str) -> None:
        self.at(envd_url, envd_token).dirs.add(path)

    async def remove(self, envd_url: str, envd_token: Any, *, path: str) -> None:
        self.at(envd_url, envd_token).files.pop(path)

    async def move(self, envd_url: str, envd_token: Any, *, source: str, destination: str) -> None:
        box = self.at(envd_url, envd_token)
        box.files[destination] = box.files.pop(source)


class Built(Provider):
    """The reference's form."""

    id = "memory-infra"
    version = "1.0.0"
    features = FEATURES
    config_fields = FIELDS

    def __init__(self) -> None:
        self.all = Boxes()
        self.configs: list[ProviderConfig] = []
        self.closed = 0

    async def build_infra(self, config: ProviderConfig) -> ProviderInfra:
        self.configs.append(config)

        async def close() -> None:
            self.closed += 1

        return ProviderInfra(config, sandbox_protocol=Sandboxes(self.all), process_protocol=Processes(self.all),
                             filesystem_protocol=Files(self.all), close=close)
