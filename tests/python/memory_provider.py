"""A provider that keeps files in memory and runs commands here, in the form of the protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import signal
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from typing import Any, cast

from agent_sandbox.models.errors import CommandTimeoutError, FileNotFoundError_, SandboxNotFoundError
from agent_sandbox.providers import ConfigField, Provider

FEATURES = frozenset({
    "sandbox.lifecycle", "sandbox.timeout", "sandbox.pause", "exec.run", "exec.stream", "process.manage",
    "files.rw", "ports.url",
})
FIELDS = (ConfigField("region"), ConfigField("token", secret=True))


class Box:
    """One sandbox."""

    def __init__(self, ident: str) -> None:
        self.id, self.status = ident, "running"
        self.files: dict[str, bytes] = {}
        self.dirs: set[str] = {"/", "/tmp"}
        self.running: dict[int, tuple[str, asyncio.subprocess.Process]] = {}

    def kill(self) -> None:
        for pid in self.running:
            kill_group(self.running[pid][1], signal.SIGKILL)

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError_(f"no file '{path}'")
        return self.files[path]

    def names(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        return [p for p in sorted({*self.files, *self.dirs}) if p.startswith(start) and "/" not in p[len(start):] and p != start]

    def process(self, pid: int | str) -> asyncio.subprocess.Process:
        return self.running[int(pid)][1]


class Boxes:
    """All sandboxes of a provider."""

    def __init__(self) -> None:
        self.boxes: dict[str, Box] = {}
        self.numbers = itertools.count(1)

    def new(self) -> Box:
        box = Box(f"mem-{next(self.numbers)}")
        self.boxes[box.id] = box
        return box

    def get(self, ident: str) -> Box:
        if ident not in self.boxes:
            raise SandboxNotFoundError(f"no sandbox '{ident}'")
        return self.boxes[ident]

    def kill(self, ident: str) -> None:
        self.get(ident).kill()
        del self.boxes[ident]


def kill_group(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


async def spawn(box: Box, argv: list[str], env: dict[str, str]) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, env={"PATH": "/usr/bin:/bin", **env}, stdin=pipe, stdout=pipe, stderr=pipe,
                                                   start_new_session=True)
    box.running[process.pid] = " ".join(argv), process
    return process


async def pump(box: Box, process: asyncio.subprocess.Process, timeout: float) -> AsyncIterator[tuple[str, bytes]]:
    """(stream, bytes) as they come. At its end, timeout or cancelled, the process is gone."""
    queue: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()

    async def copy(name: str, pipe: asyncio.StreamReader) -> None:
        while chunk := await pipe.read(65536):
            queue.put_nowait((name, chunk))
        queue.put_nowait((name, b""))

    pipes = {"stdout": process.stdout, "stderr": process.stderr}
    tasks = [asyncio.ensure_future(copy(name, cast(asyncio.StreamReader, pipe))) for name, pipe in pipes.items()]
    end = asyncio.get_running_loop().time() + timeout
    try:
        while pipes:
            left = end - asyncio.get_running_loop().time()
            try:
                name, chunk = await asyncio.wait_for(queue.get(), max(left, 0))
            except asyncio.TimeoutError:
                raise CommandTimeoutError(f"the command took longer than {timeout:g} s") from None
            if chunk:
                yield name, chunk
            else:
                del pipes[name]
        await process.wait()
    finally:
        kill_group(process, signal.SIGKILL)
        for task in tasks:
            task.cancel()
        box.running.pop(process.pid, None)
        cast(asyncio.StreamWriter, process.stdin).close()
        await process.wait()


def exit_code(process: asyncio.subprocess.Process) -> int:
    code = process.returncode or 0
    return code if code >= 0 else 128 - code


class Handled(Provider):
    """The form of the protocol."""

    id = "memory-handle"
    version = "1.0.0"
    features = FEATURES
    config_fields: tuple[ConfigField, ...] = FIELDS

    def __init__(self) -> None:
        self.all = Boxes()
        self.calls: list[str] = []

    async def handle(self, method: str, params: dict[str, Any]) -> Any:
        self.calls.append(method)
        answer = getattr(self, "on_" + method.replace(".", "_"), None)
        if answer is None:
            raise NotImplementedError(method)
        return await answer(params)

    def box(self, p: dict[str, Any]) -> Box:
        return self.all.get(p["sandbox_id"])

    @staticmethod
    def record(box: Box) -> dict[str, Any]:
        return {"sandbox_id": box.id, "status": box.status, "created_at": datetime.now(timezone.utc).isoformat()}

    async def on_sandbox_create(self, p: dict[str, Any]) -> dict[str, Any]:
        return self.record(self.all.new())

    async def on_sandbox_get(self, p: dict[str, Any]) -> dict[str, Any]:
        return self.record(self.box(p))

    async def on_sandbox_list(self, p: dict[str, Any]) -> dict[str, Any]:
        found, start, limit = list(self.all.boxes.values()), int(p.get("cursor") or 0), p["limit"]
        more = {"next": str(start + limit)} if len(found) > start + limit else {}
        return {"sandboxes": [self.record(box) for box in found[start : start + limit]], **more}

    async def on_sandbox_kill(self, p: dict[str, Any]) -> None:
        self.all.kill(p["sandbox_id"])

    async def on_sandbox_set_timeout(self, p: dict[str, Any]) -> None:
        self.box(p)

    async def on_sandbox_pause(self, p: dict[str, Any]) -> None:
        self.box(p).status = "paused"

    async def on_sandbox_resume(self, p: dict[str, Any]) -> None:
        self.box(p).status = "running"

    async def on_ports_url(self, p: dict[str, Any]) -> dict[str, Any]:
        return {"url": f"http://127.0.0.1:{p['port']}"}

    async def on_exec_run(self, p: dict[str, Any]) -> dict[str, Any]:
        box = self.box(p)
        process = await spawn(box, [p["cmd"], *p["args"]], p["env"])
        texts = {"stdout": b"", "stderr": b""}
        async for name, chunk in pump(box, process, p["timeout"]):
            texts[name] += chunk
        return {name: text.decode("utf-8", "replace") for name, text in texts.items()} | {"exit_code": exit_code(process)}

    async def on_exec_start(self, p: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        return self.events(self.box(p), p)

    async def events(self, box: Box, p: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        process = await spawn(box, [p["cmd"], *p["args"]], p["env"])
        yield {"process_id": str(process.pid)}
        async for name, chunk in pump(box, process, p["timeout"] or 3600):
            yield {"stream": name, "data": chunk}
        yield {"exit_code": exit_code(process)}

    async def on_process_list(self, p: dict[str, Any]) -> dict[str, Any]:
        return {"processes": [{"pid": pid, "command": text} for pid, (text, _) in self.box(p).running.items()]}

    async def on_process_kill(self, p: dict[str, Any]) -> None:
        kill_group(self.box(p).process(p["pid"]), signal.SIGKILL)

    async def on_process_signal(self, p: dict[str, Any]) -> None:
        kill_group(self.box(p).process(p["pid"]), p["signal"])

    async def on_process_stdin(self, p: dict[str, Any]) -> None:
        cast(asyncio.StreamWriter, self.box(p).process(p["pid"]).stdin).write(p["data"].encode())

    async def on_files_read(self, p: dict[str, Any]) -> dict[str, Any]:
        return {"content_b64": base64.b64encode(self.box(p).read(p["path"])).decode()}

    async def on_files_write(self, p: dict[str, Any]) -> None:
        self.box(p).files[p["path"]] = base64.b64decode(p["content_b64"], validate=True)

    async def on_files_list(self, p: dict[str, Any]) -> dict[str, Any]:
        box = self.box(p)
        return {"entries": [self.entry(box, path) for path in box.names(p["path"])]}

    def entry(self, box: Box, path: str) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        if path in box.dirs:
            return {"name": name, "path": path, "type": "dir", "size": 0}
        return {"name": name, "path": path, "type": "file", "size": len(box.read(path))}

    async def on_files_stat(self, p: dict[str, Any]) -> dict[str, Any]:
        return self.entry(self.box(p), p["path"])

    async def on_files_mkdir(self, p: dict[str, Any]) -> None:
        self.box(p).dirs.add(p["path"])

    async def on_files_remove(self, p: dict[str, Any]) -> None:
        self.box(p).read(p["path"])
        del self.box(p).files[p["path"]]

    async def on_files_move(self, p: dict[str, Any]) -> None:
        box = self.box(p)
        box.files[p["destination"]] = box.read(p["source"])
        del box.files[p["source"]]
