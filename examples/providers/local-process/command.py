"""One command: a process with its children, its output, its input, its end."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from box import DIRECTORY, Sandbox, os_errors
from epp import EppError, Params, Request

OUTPUT_LIMIT = 5 << 19  # 2.5 MiB of each stream of exec.run
TEXT_LIMIT = 7 << 19  # 3.5 MiB for the same once it is JSON
GRACE = 0.2  # how long background children may keep the pipes of an ended command


class CannotRun(Exception):
    """The program is missing or no program; a shell would say 127 or 126."""


class Command:
    """A process in a session of its own, so that it and its children can be killed together."""

    def __init__(self, box: Sandbox, params: Params, stdin: int) -> None:
        argv = [str(params["cmd"]), *map(str, params.get("args") or [])]
        user, cwd = params.get("user") or "", params.get("cwd") or "/"
        if user:
            raise EppError(-32000, f"Commands run as the user who runs the host, not as '{user}'.")
        with os_errors(cwd), box.at(cwd) as (parent, name):
            os.close(os.open(name, DIRECTORY, dir_fd=parent))
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(box.root), "LANG": os.environ.get("LANG", "C.UTF-8")}
        env.update(box.record.get("envs") or {}, **(params.get("env") or {}))
        self.lock, self.timed_out = threading.Lock(), False
        self.inbox: queue.SimpleQueue[tuple[Request, bytes, bool] | None] = queue.SimpleQueue()
        self.text, self.box_id = " ".join(argv), box.home.name
        where = box.root.joinpath(*reversed(box.parts(cwd)))
        try:
            self.process = subprocess.Popen(argv, cwd=where, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            bufsize=0, start_new_session=True)  # fmt: skip
        except OSError as e:
            # A directory of PATH that can't be read hides nothing that is there: the command is missing.
            hidden = isinstance(e, PermissionError) and "/" not in argv[0] and not shutil.which(argv[0], os.F_OK, env["PATH"])
            if hidden or isinstance(e, FileNotFoundError):
                raise CannotRun(127, f"{argv[0]}: not found\n") from None
            raise CannotRun(126, f"{argv[0]}: {e.strerror}\n") from None

    def ended(self) -> bool:
        with self.lock:
            return self.process.poll() is not None

    def signal(self, number: int) -> None:
        """To the whole group. The lock keeps the process from being reaped, and its id from being reused, in between."""
        with self.lock:
            if self.process.poll() is None:
                os.killpg(self.process.pid, number)

    def pump(self, emit: Callable[[str, bytes], None], timeout: float) -> None:
        """Hands output to emit until the command is over; kills it when its time is up."""
        deadline = time.monotonic() + timeout if timeout > 0 else float("inf")
        grace, budget, tick = GRACE, 1 << 20, 0.001  # budget: more than a pipe holds
        selector = selectors.DefaultSelector()
        pipes: dict[str, Any] = {"stdout": self.process.stdout, "stderr": self.process.stderr}
        for stream, pipe in pipes.items():
            selector.register(pipe, selectors.EVENT_READ, stream)
        while not (ended := self.ended()) or pipes:
            began = time.monotonic()
            ready = selector.select(grace if ended else tick)
            tick = 0.001 if ready else min(tick * 2, 0.1)
            if ended:
                grace -= time.monotonic() - began
                if not ready or grace <= 0 or budget <= 0:
                    break
            elif began >= deadline and not self.timed_out:
                self.timed_out = True
                self.signal(signal.SIGKILL)
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                if chunk:
                    budget -= len(chunk) if ended else 0
                    emit(key.data, chunk)
                else:
                    selector.unregister(pipes[key.data])
                    pipes.pop(key.data).close()
        selector.close()
        for pipe in pipes.values():  # a background child would die of SIGPIPE if they were closed
            threading.Thread(target=drain, args=(pipe,), daemon=True).start()

    def status(self) -> Params:
        code = self.process.returncode
        if code >= 0:
            return {"exit_code": code}
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"SIG{-code}"
        return {"exit_code": 128 - code, "signal": name}

    def feed(self) -> None:
        """Writes to the command's stdin in the order of the requests; a full pipe holds up only this thread."""
        pipe = self.process.stdin
        while pipe and (item := self.inbox.get()):
            request, data, eof = item
            try:
                while data:
                    data = data[pipe.write(data) :]
                if eof:
                    pipe.close()
                request.answer({})
            except (OSError, ValueError):
                request.fail(EppError(-32000, "The process does not read its input any more."))
        if pipe:
            pipe.close()


def drain(pipe: Any) -> None:
    with contextlib.suppress(OSError), pipe:
        while pipe.read(65536):
            pass


def split_text(chunk: bytes) -> tuple[str | bytes, bytes]:
    """Text when it is UTF-8, with a character that is still incomplete kept for later; else the bytes."""
    try:
        return chunk.decode(), b""
    except UnicodeDecodeError as e:
        if e.reason == "unexpected end of data":
            return chunk[: e.start].decode(), chunk[e.start :]
        return chunk, b""


def bounded_text(data: bytes, total: int) -> tuple[str, bool]:
    text, cut = data.decode("utf-8", "replace"), total > len(data)
    while len(json.dumps(text, ensure_ascii=False).encode()) > TEXT_LIMIT:
        text, cut = text[: len(text) // 2], True
    return text, cut
