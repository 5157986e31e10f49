"""A tiny EPP/1 host for tests: starts a plugin as it is, without abx, and talks to it over its pipes."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

LIMIT_S = 20.0  # for what must happen; never waited for when it does
Message = dict[str, Any]


class CallError(Exception):
    """An error answer."""

    def __init__(self, error: Message) -> None:
        super().__init__(error.get("message"))
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.sdk_code: str | None = (error.get("data") or {}).get("sdk_code")


class Client:
    """One running plugin. Answers and notifications are kept apart, each in the order of arrival."""

    def __init__(self, argv: Sequence[str], data: Path, env: dict[str, str] | None = None) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.data = data
        env = {"PATH": os.environ["PATH"], "HOME": str(data), "ABX_PROVIDER_DATA_DIR": str(data), **(env or {})}
        self.process = subprocess.Popen(
            argv, cwd=data, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.ids = 0
        self.lines: list[bytes] = []
        self.answers: dict[int, queue.Queue[Message]] = {}
        self.notes: queue.Queue[Message | None] = queue.Queue()
        self.stderr = b""
        self.lock = threading.Lock()
        self.reading = threading.Lock()  # held: nothing is read from the plugin
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self._read, self._read_stderr)]
        for t in self.threads:
            t.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self.reading:
                self.lines.append(line)
            message = json.loads(line)
            assert isinstance(message, dict) and message["jsonrpc"] == "2.0", line[:200]
            if "method" in message:
                self.notes.put(message)
            else:
                self._box(message["id"]).put(message)
        self.notes.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.stderr += line

    def _box(self, ident: int) -> queue.Queue[Message]:
        with self.lock:
            return self.answers.setdefault(ident, queue.Queue())

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def begin(self, method: str, **params: Any) -> int:
        self.ids += 1
        message = {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}
        self.write(json.dumps(message).encode() + b"\n")
        return self.ids

    def wait(self, ident: int, timeout: float = LIMIT_S) -> Any:
        message = self._box(ident).get(timeout=timeout)
        if "error" in message:
            raise CallError(message["error"])
        return message["result"]

    def call(self, method: str, **params: Any) -> Any:
        return self.wait(self.begin(method, **params))

    def cancel(self, ident: int) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": ident}}).encode() + b"\n")

    def initialize(self, **config: Any) -> Message:
        result = self.call(
            "initialize", protocol="epp/1", host={"name": "test", "version": "0", "pid": os.getpid()},
            provider_id="test", config=config, core={}, locale="C", data_dir=str(self.data),
        )  # fmt: skip
        assert isinstance(result, dict)
        return result

    def note(self, timeout: float = LIMIT_S) -> Message:
        message = self.notes.get(timeout=timeout)
        assert message is not None, f"the plugin is gone: {self.stderr!r}"
        return message

    def collect(self, process_id: str) -> tuple[bytes, bytes, Message, list[Message]]:
        """stdout, stderr and the exit of a streamed process, and its output events as they came."""
        out = {"stdout": b"", "stderr": b""}
        events: list[Message] = []
        while True:
            message = self.note()
            params = message["params"]
            if params.get("process_id") != process_id:
                continue
            if message["method"] == "exec.exit":
                return out["stdout"], out["stderr"], params, events
            assert message["method"] == "exec.output"
            events.append(params)
            data = base64.b64decode(params["data_b64"]) if "data_b64" in params else params["data"].encode()
            out[params["stream"]] += data

    def first_output(self) -> bytes:
        message = self.note()
        assert message["method"] == "exec.output", message
        return str(message["params"]["data"]).encode()

    def close(self) -> int:
        """Ends the plugin by the end of its stdin; its exit status."""
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            return self.process.wait(LIMIT_S)
        finally:
            self.process.kill()
            self.process.wait()
            for thread, pipe in zip(self.threads, (self.process.stdout, self.process.stderr), strict=True):
                thread.join(LIMIT_S)
                if pipe:
                    pipe.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, t: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
