#!/usr/bin/env python3
"""local-process: an EPP/1 plugin whose sandboxes are directories and whose commands are processes.

It isolates nothing: see README.md. It is meant to be copied: epp.py as it is, this file as the shape of a
backend. box.py and command.py are what this backend is made of.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection
from datetime import datetime, timedelta, timezone
from pathlib import Path

sys.dont_write_bytecode = True  # a .pyc beside the code would change the digest of the installed files

from box import FileMethods, Sandbox, os_errors, remove_tree  # noqa: E402
from command import OUTPUT_LIMIT, CannotRun, Command, bounded_text, split_text  # noqa: E402
from epp import EppError, Params, Request, run, send  # noqa: E402

FEATURES = ["sandbox.lifecycle", "sandbox.timeout", "exec.run", "exec.stream", "process.manage", "files.rw", "ports.url"]
OPERATIONS = ["exec.run", "exec.stream", "files.list", "files.move", "files.read", "files.remove", "files.stat",
              "files.write", "ports.resolve", "sandbox.create", "sandbox.delete", "sandbox.get", "sandbox.list",
              "sandbox.timeout"]  # fmt: skip
# Equal to the manifest, or the host refuses the handshake.
HANDSHAKE = {"protocol": "epp/1", "plugin": {"name": "local-process", "version": "0.1.0"}, "features": FEATURES,
             "operation_contract_version": 1, "operations": {"cli": [], "python": OPERATIONS},
             "workflow_inputs": [], "startup_modes": []}  # fmt: skip


class Provider(FileMethods):
    """One method per method of the protocol, on_<name>; those of files.* are in box.py."""

    in_order: Collection[str] = ("process.stdin",)

    def __init__(self, params: Params) -> None:
        root = (params.get("config") or {}).get("workdir_root")
        self.boxes = Path(os.path.realpath(os.path.expanduser(root) if root else os.path.join(params["data_dir"], "sandboxes")))
        try:
            self.boxes.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as e:
            raise EppError(-32006, f"workdir_root: {e.strerror}: '{self.boxes}'.") from None
        self.lock, self.numbers = threading.Lock(), itertools.count(1)
        self.running: set[Command] = set()
        self.streams: dict[str, Command] = {}
        self.leftovers: dict[int, str] = {}  # process groups that outlived their command, and their sandbox
        threading.Thread(target=self.sweep, daemon=True).start()

    def close(self) -> None:
        self.kill_commands()

    def sweep(self) -> None:
        """Removes what expired, each second, and what a killed plugin left half removed."""
        for path in self.boxes.glob(".gone-*"):
            with contextlib.suppress(OSError):
                remove_tree(str(path), None, force=True)
        while True:
            self.all_records()
            time.sleep(1)

    # sandbox.lifecycle, sandbox.timeout

    def live(self, home: Path) -> Params | None:
        """The record of a sandbox, None when there is none or its time is over."""
        try:
            record: Params = json.loads((home / "record.json").read_text("utf-8"))
            if record["expires_at"] and datetime.fromisoformat(record["expires_at"]) <= datetime.now(timezone.utc):
                self.destroy(home)
                return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return record

    def all_records(self) -> list[Params]:
        return [r for path in sorted(self.boxes.glob("lp-*")) if (r := self.live(path))]

    def box(self, p: Params) -> Sandbox:
        ident = p["sandbox_id"]
        home = self.boxes / ident
        if re.fullmatch(r"lp-[0-9a-f-]+", ident) and (record := self.live(home)):
            return Sandbox(home, record)
        raise EppError(-32002, f"No sandbox '{ident}'.", "E2009")

    def destroy(self, home: Path) -> None:
        """Gone at once by a rename; then its processes, then its files."""
        gone = self.boxes / f".gone-{home.name}"
        with contextlib.suppress(OSError):
            os.rename(home, gone)
            self.kill_commands(home.name)
            remove_tree(str(gone), None, force=True)

    def expiry(self, timeout: int) -> str | None:
        if timeout < 0:
            raise ValueError("timeout must not be negative")
        return (datetime.now(timezone.utc) + timedelta(seconds=timeout)).isoformat() if timeout else None

    @staticmethod
    def public(record: Params) -> Params:
        return {key: value for key, value in record.items() if key != "envs"}

    def on_sandbox_create(self, p: Params, _: Request) -> Params:
        if any(p.get(key) for key in ("cpu", "memory", "disk", "gpu")):
            send(method="log", params={"level": "warning", "message": "local-process does not limit cpu, memory, disk or gpu."})
        ident = f"lp-{time.time_ns() // 1000:x}-{secrets.token_hex(3)}"
        record = {"sandbox_id": ident, "template": p.get("template") or "", "status": "running",
                  "metadata": p.get("metadata") or {}, "envs": p.get("envs") or {},
                  "created_at": datetime.now(timezone.utc).isoformat(),
                  "expires_at": self.expiry(p.get("timeout") or 0)}  # fmt: skip
        with os_errors(str(self.boxes)):
            new = Sandbox(self.boxes / f".new-{ident}", record)
            new.home.mkdir(mode=0o700)
            new.root.mkdir()
            new.save()
            os.rename(new.home, self.boxes / ident)
        return self.public(record)

    def on_sandbox_get(self, p: Params, _: Request) -> Params:
        return self.public(self.box(p).record)

    on_sandbox_connect = on_sandbox_get

    def on_sandbox_list(self, p: Params, _: Request) -> Params:
        wanted, after, limit = p.get("status") or "running", p.get("cursor") or "", p.get("limit") or 100
        found = [self.public(r) for r in self.all_records() if r["status"] == wanted and r["sandbox_id"] > after]
        more = {"next": found[limit - 1]["sandbox_id"]} if len(found) > limit else {}
        return {"sandboxes": found[:limit], **more}

    def on_sandbox_kill(self, p: Params, _: Request) -> Params:
        with contextlib.suppress(EppError):  # one that is gone is killed
            self.destroy(self.box(p).home)
        return {}

    def on_sandbox_set_timeout(self, p: Params, _: Request) -> Params:
        box = self.box(p)
        box.record["expires_at"] = self.expiry(p["timeout"])
        with os_errors(box.home.name):
            box.save()
        return {}

    def on_ports_url(self, p: Params, _: Request) -> Params:
        self.box(p)
        if not 1 <= p["port"] <= 65535:
            raise ValueError("port must be 1 to 65535")
        return {"url": f"http://127.0.0.1:{p['port']}", "headers": {}}

    # exec.run, exec.stream, process.manage

    def launch(self, p: Params, request: Request, stdin: int) -> Command:
        command = Command(self.box(p), p, stdin)
        request.on_cancel = lambda: command.signal(signal.SIGKILL)
        with self.lock:
            self.running.add(command)
        if request.cancelled:
            command.signal(signal.SIGKILL)
        return command

    def over(self, command: Command) -> None:
        with self.lock:
            self.running.discard(command)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(command.process.pid, 0)
                self.leftovers[command.process.pid] = command.box_id

    def kill_commands(self, box_id: str | None = None) -> None:
        """Those of a sandbox, or all, with the background children of ended ones."""
        with self.lock:
            commands = [c for c in self.running if box_id in (None, c.box_id)]
            groups = [g for g, owner in self.leftovers.items() if box_id in (None, owner)]
            for group in groups:
                del self.leftovers[group]
        for command in commands:
            command.signal(signal.SIGKILL)
        for group in groups:
            try:
                os.kill(group, 0)  # a process with this very id is a newcomer: the number was used again
            except ProcessLookupError:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)
            except PermissionError:
                pass

    def on_exec_run(self, p: Params, request: Request) -> Params:
        timeout = p.get("timeout") or 0
        kept, total = {"stdout": bytearray(), "stderr": bytearray()}, {"stdout": 0, "stderr": 0}

        def emit(stream: str, chunk: bytes) -> None:
            total[stream] += len(chunk)
            kept[stream] += chunk[: OUTPUT_LIMIT - len(kept[stream])]

        try:
            command = self.launch(p, request, subprocess.DEVNULL)
        except CannotRun as e:
            return {"stdout": "", "stderr": e.args[1], "exit_code": e.args[0]}
        command.pump(emit, timeout)
        self.over(command)
        if request.cancelled:
            raise EppError(-32000, "The command was cancelled.")
        if command.timed_out:
            raise EppError(-32000, f"The command timed out after {timeout:g} s.", "E3001")
        texts = {stream: bounded_text(bytes(kept[stream]), total[stream]) for stream in kept}
        notes = [f"\n[{stream} was cut; it has {total[stream]} bytes]\n" for stream in kept if texts[stream][1]]
        return {"stdout": texts["stdout"][0], "stderr": "".join([texts["stderr"][0], *notes]), **command.status()}

    def on_exec_start(self, p: Params, request: Request) -> None:
        ident, timeout = f"p{next(self.numbers)}", p.get("timeout") or 0
        tails = {"stdout": b"", "stderr": b""}

        def output(stream: str, data: str | bytes) -> None:
            content = {"data": data} if isinstance(data, str) else {"data_b64": base64.b64encode(data).decode()}
            if data:
                send(method="exec.output", params={"process_id": ident, "stream": stream, **content})

        def emit(stream: str, chunk: bytes) -> None:
            data, tails[stream] = split_text(tails[stream] + chunk)
            output(stream, data)

        try:
            command = self.launch(p, request, subprocess.PIPE)
        except CannotRun as e:
            request.answer({"process_id": ident})
            output("stderr", e.args[1])
            return send(method="exec.exit", params={"process_id": ident, "exit_code": e.args[0]})
        with self.lock:
            self.streams[ident] = command
        request.answer({"process_id": ident})
        threading.Thread(target=command.feed, daemon=True).start()
        command.pump(emit, timeout)
        self.over(command)
        with self.lock:
            del self.streams[ident]
            command.inbox.put(None)
        for stream, tail in tails.items():
            output(stream, tail)
        status = command.status()
        if command.timed_out:  # the number is that of timeout(1), for hosts that do not look at timed_out
            status = {"exit_code": 124, "timed_out": True}
        send(method="exec.exit", params={"process_id": ident, **status})

    def stream(self, p: Params) -> Command:
        """The streamed command that pid names, by process_id or by number. The caller holds the lock."""
        box_id, pid = p["sandbox_id"], str(p["pid"])
        for ident, command in self.streams.items():
            if command.box_id == box_id and pid in (ident, str(command.process.pid)):
                return command
        raise EppError(-32002, f"No process '{pid}' in sandbox '{box_id}'.")

    def on_process_list(self, p: Params, _: Request) -> Params:
        box_id = self.box(p).home.name
        with self.lock:
            found = {ident: c for ident, c in self.streams.items() if c.box_id == box_id}
        return {"processes": [{"pid": c.process.pid, "process_id": ident, "command": c.text, "status": "running"}
                              for ident, c in found.items()]}  # fmt: skip

    def on_process_signal(self, p: Params, _: Request) -> Params:
        self.box(p)
        with self.lock:
            command = self.stream(p)
        if not 1 <= p["signal"] < signal.NSIG:
            raise ValueError(f"{p['signal']} is no signal")
        with os_errors(f"process {p['pid']}"):
            command.signal(p["signal"])
        return {}

    def on_process_kill(self, p: Params, request: Request) -> Params:
        return self.on_process_signal({**p, "signal": signal.SIGKILL}, request)

    def on_process_stdin(self, p: Params, request: Request) -> None:
        self.box(p)
        data = base64.b64decode(p["data_b64"], validate=True) if "data_b64" in p else p.get("data", "").encode()
        with self.lock:
            self.stream(p).inbox.put((request, data, bool(p.get("eof"))))


if __name__ == "__main__":
    run(Provider, HANDSHAKE)
