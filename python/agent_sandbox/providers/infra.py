"""The reference's way to write a provider, in terms of the protocol: `build_infra()` behind `handle()`."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from agent_sandbox.models.errors import ProviderResourceNotFoundError
from agent_sandbox.models.process import ProcessChunkType
from agent_sandbox.models.sandbox import SandboxConfig, SandboxStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from datetime import datetime

    from agent_sandbox.models.filesystem import FileInfo
    from agent_sandbox.models.process import ProcessChunk
    from agent_sandbox.models.sandbox import SandboxInfo
    from agent_sandbox.providers.base import ProviderInfra

SIGKILL = 9
LONG = 86400
"""Seconds that a command may take which was given no time."""


class ProviderConfig:
    """The settings of a provider, resolved. What it did not ask for, or nobody set, is None or ""."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        core: Mapping[str, Any] = settings.get("core") or {}
        self.provider: str = settings.get("provider_id", "")
        self.provider_options: dict[str, Any] = dict(settings.get("config") or {})
        self.sandbox_api_key: str | None = core.get("sandbox_api_key")
        self.sandbox_base_url: str = core.get("sandbox_base_url") or ""
        self.sandbox_domain: str = core.get("sandbox_domain") or ""
        self.region: str = core.get("region") or ""
        self.access_key_id: str | None = core.get("access_key_id")
        self.access_key_secret: str | None = core.get("access_key_secret")
        self.http_timeout: float = core.get("http_timeout") or 30.0

    def __repr__(self) -> str:
        return f"ProviderConfig({self.provider!r})"  # its values may be secrets


class SessionToken:
    """The access token of a sandbox, as the objects of ProviderInfra take it."""

    def __init__(self, token: str | None, sandbox_id: str | None) -> None:
        self.token, self.sandbox_id = token, sandbox_id

    def get_headers(self) -> dict[str, str]:
        """Headers beside those the backend makes itself: none."""
        return {}

    def set_token(self, token: str, sandbox_id: str | None = None) -> None:
        """Takes a newer one."""
        self.token, self.sandbox_id = token, sandbox_id or self.sandbox_id

    def clear(self) -> None:
        """Forgets it."""
        self.token = self.sandbox_id = None


def text_of(moment: datetime | None) -> str | None:
    """RFC 3339, or None."""
    return moment.isoformat() if moment is not None else None


def record_of(info: SandboxInfo) -> dict[str, Any]:
    """The protocol's record. It has no address: the data goes through the provider's own objects."""
    return {
        "sandbox_id": info.sandbox_id,
        "template": info.template,
        "status": SandboxStatus(info.status).value,
        "metadata": dict(info.metadata),
        "created_at": text_of(info.started_at),
        "expires_at": text_of(info.end_at),
    }


def entry_of(info: FileInfo) -> dict[str, Any]:
    """The protocol's file entry."""
    kind = "dir" if info.type.value == "directory" else info.type.value
    entry = {"name": info.name, "path": info.path, "type": kind, "size": info.size}
    return entry if info.modified is None else {**entry, "mtime": info.modified.isoformat()}


class InfraHandler:
    """Answers calls of the protocol by the objects of one ProviderInfra."""

    def __init__(self, provider_id: str, infra: ProviderInfra) -> None:
        self._provider = provider_id
        self._sandboxes = infra.sandbox_protocol
        self._processes = infra.process_protocol
        self._files = infra.filesystem_protocol
        self._close = infra.close
        self._http = infra.http_client
        self._known: dict[str, tuple[str, SessionToken]] = {}
        self._numbers = itertools.count(1)
        self._pids: dict[str, int | str] = {}

    async def handle(self, method: str, params: dict[str, Any]) -> Any:
        """The result of a call; contents of files are bytes in "content_b64"."""
        answer = getattr(self, "on_" + method.replace(".", "_"), None)
        if answer is None:
            raise NotImplementedError(method)
        return await answer(params)

    async def close(self) -> None:
        """Lets go of what build_infra made."""
        if self._close is not None:
            await self._close()
        elif self._http is not None:
            await self._http.close()

    # ---- sandboxes

    def _arrived(self, info: SandboxInfo) -> dict[str, Any]:
        url = info.envd_url or f"epp://{self._provider}/{info.sandbox_id}"
        self._known[info.sandbox_id] = url, SessionToken(info.envd_access_token, info.sandbox_id)
        return record_of(info)

    async def _address(self, p: dict[str, Any]) -> tuple[str, SessionToken]:
        """Where the data of a sandbox is; one that only a handle was made of is asked for."""
        if p["sandbox_id"] not in self._known:
            self._arrived(await self._sandboxes.get_info(p["sandbox_id"]))
        return self._known[p["sandbox_id"]]

    async def on_sandbox_create(self, p: dict[str, Any]) -> dict[str, Any]:
        names = ("template", "timeout", "metadata", "cpu", "memory", "disk", "gpu", "secure", "volume_mounts")
        config = SandboxConfig(
            env_vars=p.get("envs") or {},
            provider_options=p.get("options") or {},
            **{name: p[name] for name in names if p.get(name) is not None},
        )
        return self._arrived(await self._sandboxes.create(config, request_timeout=p.get("request_timeout")))

    async def on_sandbox_connect(self, p: dict[str, Any]) -> dict[str, Any]:
        return self._arrived(await self._sandboxes.connect(p["sandbox_id"]))

    async def on_sandbox_get(self, p: dict[str, Any]) -> dict[str, Any]:
        return self._arrived(await self._sandboxes.get_info(p["sandbox_id"]))

    async def on_sandbox_list(self, p: dict[str, Any]) -> dict[str, Any]:
        limit, offset = p.get("limit") or 100, int(p.get("cursor") or 0)
        status = SandboxStatus(p["status"]) if p.get("status") else None
        infos = await self._sandboxes.list(status=status, limit=limit, offset=offset)
        more = {"next": str(offset + limit)} if len(infos) >= limit else {}
        return {"sandboxes": [record_of(info) for info in infos], **more}

    async def on_sandbox_kill(self, p: dict[str, Any]) -> dict[str, Any]:
        await self._sandboxes.kill(p["sandbox_id"])
        self._known.pop(p["sandbox_id"], None)
        return {}

    async def on_sandbox_set_timeout(self, p: dict[str, Any]) -> dict[str, Any]:
        await self._sandboxes.set_timeout(p["sandbox_id"], p["timeout"])
        return {}

    async def on_sandbox_pause(self, p: dict[str, Any]) -> dict[str, Any]:
        await self._sandboxes.pause(p["sandbox_id"])
        return {}

    async def on_sandbox_resume(self, p: dict[str, Any]) -> dict[str, Any]:
        await self._sandboxes.resume(p["sandbox_id"])
        return {}

    async def on_ports_url(self, p: dict[str, Any]) -> dict[str, Any]:
        resolve = getattr(self._sandboxes, "port_url", None)
        if resolve is None:
            raise NotImplementedError("ports.url")
        url, headers = await resolve(p["sandbox_id"], p["port"])
        return {"url": url, "headers": headers}

    # ---- commands

    async def _start(self, p: dict[str, Any]) -> AsyncIterator[ProcessChunk]:
        url, token = await self._address(p)
        given = {name: p[name] for name in ("args", "env", "cwd", "user") if p.get(name)}
        timeout = p.get("timeout") or LONG
        reader = await self._processes.start(url, token, cmd=p["cmd"], timeout=timeout, **given)
        chunks: AsyncIterator[ProcessChunk] = reader.__aiter__()
        return chunks

    async def on_exec_run(self, p: dict[str, Any]) -> dict[str, Any]:
        texts: dict[str, list[str]] = {"stdout": [], "stderr": [], "exit": []}
        code = 0
        async for chunk in await self._start(p):
            texts[chunk.type.value].append(chunk.data)
            if chunk.type is ProcessChunkType.EXIT:
                code = chunk.exit_code or 0
        return {"stdout": "".join(texts["stdout"]), "stderr": "".join(texts["stderr"]), "exit_code": code}

    async def on_exec_start(self, p: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        return self._events(f"stream-{next(self._numbers)}", await self._start(p))

    async def _events(self, name: str, chunks: AsyncIterator[ProcessChunk]) -> AsyncIterator[dict[str, Any]]:
        """Named at once, since its first chunk may take long; by that name its pid is found later."""
        yield {"process_id": name}
        try:
            async for chunk in chunks:
                if chunk.pid is not None:
                    self._pids[name] = chunk.pid
                if chunk.type is ProcessChunkType.EXIT:
                    yield {"exit_code": chunk.exit_code or 0}
                    return
                yield {"stream": chunk.type.value, "data": getattr(chunk, "bytes", chunk.data)}
        finally:
            self._pids.pop(name, None)
            aclose = getattr(chunks, "aclose", None)
            if aclose is not None:
                await aclose()

    def _pid(self, p: dict[str, Any]) -> int | str:
        pid: int | str = p["pid"]
        if isinstance(pid, str) and pid.startswith("stream-"):
            if pid not in self._pids:
                raise ProviderResourceNotFoundError(f"The process '{pid}' has no number yet, or any more.")
            return self._pids[pid]
        return pid

    async def on_process_list(self, p: dict[str, Any]) -> dict[str, Any]:
        found = await self._processes.list_processes(*await self._address(p))
        return {"processes": [{"pid": i.pid, "command": i.command, "status": i.status} for i in found]}

    async def on_process_signal(self, p: dict[str, Any]) -> dict[str, Any]:
        url, token = await self._address(p)
        await self._processes.send_signal(url, token, pid=self._pid(p), signal=p["signal"])
        return {}

    async def on_process_kill(self, p: dict[str, Any]) -> dict[str, Any]:
        return await self.on_process_signal({**p, "signal": SIGKILL})

    async def on_process_stdin(self, p: dict[str, Any]) -> dict[str, Any]:
        url, token = await self._address(p)
        await self._processes.send_input(url, token, pid=self._pid(p), data=p.get("data", ""))
        return {}

    # ---- files

    async def on_files_read(self, p: dict[str, Any]) -> dict[str, Any]:
        return {"content_b64": await self._files.read(*await self._address(p), path=p["path"])}

    async def on_files_write(self, p: dict[str, Any]) -> dict[str, Any]:
        await self._files.write(*await self._address(p), path=p["path"], content=p["content_b64"])
        return {}

    async def on_files_list(self, p: dict[str, Any]) -> dict[str, Any]:
        entries = await self._files.list_dir(*await self._address(p), path=p["path"])
        return {"entries": [entry_of(info) for info in entries]}

    async def on_files_stat(self, p: dict[str, Any]) -> dict[str, Any]:
        return entry_of(await self._files.stat(*await self._address(p), path=p["path"]))

    async def on_files_mkdir(self, p: dict[str, Any]) -> dict[str, Any]:
        await self._files.make_dir(*await self._address(p), path=p["path"])
        return {}

    async def on_files_remove(self, p: dict[str, Any]) -> dict[str, Any]:
        await self._files.remove(*await self._address(p), path=p["path"])
        return {}

    async def on_files_move(self, p: dict[str, Any]) -> dict[str, Any]:
        where = await self._address(p)
        await self._files.move(*where, source=p["source"], destination=p["destination"])
        return {}
