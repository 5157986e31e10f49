#!/usr/bin/env python3
"""A sandbox provider: EPP/1 on standard input and output, one JSON object a line.

A sandbox is a directory <data>/sandboxes/<id>/ with record.json and root/; a path of the sandbox is a
path under root/. This is a place to start from and no isolation: commands run as you.
"""
from __future__ import annotations

import base64
import errno
import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

FEATURES = ["sandbox.lifecycle", "exec.run", "files.rw"]
OPERATIONS = ["exec.run", "files.list", "files.move", "files.read", "files.remove", "files.stat", "files.write",
              "sandbox.create", "sandbox.delete", "sandbox.get", "sandbox.list"]
# Methods, or their first word, of the features this provider lacks.
LACKING = {"sandbox.set_timeout": "sandbox.timeout", "sandbox.pause": "sandbox.pause", "sandbox.resume": "sandbox.pause",
           "exec.start": "exec.stream", "files.watch": "files.watch", "files.unwatch": "files.watch",
           "process": "process.manage", "pty": "pty", "ports": "ports.url", "session": "sessions"}
LINE_LIMIT = 8 * 1024 * 1024
BOXES = os.path.join(os.path.realpath(os.environ.get("ABX_PROVIDER_DATA_DIR", ".")), "sandboxes")


class Failure(Exception):
    def __init__(self, code: int, message: str, **data: Any) -> None:
        self.error = {"code": code, "message": message, "data": data}


class Call:
    """One exec.run: the lock orders its start and what kills it."""

    def __init__(self, sandbox_id: object) -> None:
        self.sandbox_id, self.cancelled, self.lock = sandbox_id, False, threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        with self.lock:
            self.cancelled = True
            if self.process and self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)


output, running = threading.Lock(), dict[int, Call]()


def get(p: dict, key: str, kind: type, default: Any = None) -> Any:
    value = p.get(key)
    value = default if value is None else value
    if not isinstance(value, kind):
        raise Failure(-32602, f"{key} must be of type {kind.__name__}")
    return value


def load(p: dict) -> tuple[str, dict]:
    """The directory of a sandbox and what record.json says. The pattern keeps ids from being paths."""
    box = os.path.join(BOXES, get(p, "sandbox_id", str))
    try:
        if re.fullmatch(r"sbx-[0-9a-f]{16}", p["sandbox_id"]):
            with open(os.path.join(box, "record.json"), encoding="utf-8") as f:
                return box, json.load(f)
    except FileNotFoundError:
        pass
    raise Failure(-32002, f"there is no sandbox {p['sandbox_id']}", sdk_code="E2009")


def inside(p: dict, key: str = "path", follow: bool = True) -> tuple[str, str]:
    """The root of the sandbox and the real place of a path in it; without follow, of a link itself."""
    root = os.path.join(load(p)[0], "root")
    parent, name = os.path.split(os.path.join(root, get(p, key, str).strip("/")))
    real = os.path.join(os.path.realpath(parent), name)
    if follow or name in ("", ".", ".."):
        real = os.path.realpath(real)
    if real != root and not real.startswith(root + "/"):
        raise Failure(-32000, f"{p[key]} leaves the sandbox", sdk_code="E4002")
    return root, real


def moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def entry(root: str, path: str) -> dict:
    st = os.lstat(path)
    kind = "dir" if stat.S_ISDIR(st.st_mode) else "symlink" if stat.S_ISLNK(st.st_mode) else "file"
    place = os.fsencode(path[len(root):] or "/").decode("utf-8", "replace")
    return {"name": place.rsplit("/", 1)[-1] or "/", "path": place, "type": kind, "size": st.st_size,
            "mtime": moment(st.st_mtime), "mode": stat.S_IMODE(st.st_mode)}


def initialize(p: dict) -> dict:
    plugin = {"name": get(p, "provider_id", str, "provider"), "version": "0.1.0"}
    return {"protocol": "epp/1", "plugin": plugin, "features": FEATURES, "operation_contract_version": 1,
            "operations": {"cli": [], "python": OPERATIONS}, "workflow_inputs": [], "startup_modes": []}


def sandbox_create(p: dict) -> dict:
    record = {"sandbox_id": "sbx-" + secrets.token_hex(8), "template": get(p, "template", str, ""), "status": "running",
              "metadata": get(p, "metadata", dict, {}), "created_at": moment(time.time())}
    text = json.dumps({"record": record, "envs": get(p, "envs", dict, {})})
    box = os.path.join(BOXES, record["sandbox_id"])
    os.makedirs(os.path.join(box, "root"))
    with open(os.path.join(box, "record.json"), "w", encoding="utf-8") as f:
        f.write(text)
    return record


def sandbox_list(p: dict) -> dict:
    limit, after, status = get(p, "limit", int, 0), get(p, "cursor", str, ""), get(p, "status", str, "")
    ids = sorted(i for i in os.listdir(BOXES) if i > after and os.path.exists(os.path.join(BOXES, i, "record.json")))
    page = [] if status not in ("", "running") else ids[:limit] if limit > 0 else ids
    more = {"next": page[-1]} if page and len(page) < len(ids) else {}
    return {"sandboxes": [load({"sandbox_id": i})[1]["record"] for i in page], **more}


def sandbox_kill(p: dict) -> dict:
    box = load(p)[0]
    for call in list(running.values()):
        if call.sandbox_id == p["sandbox_id"]:
            call.kill()
    os.unlink(os.path.join(box, "record.json"))  # from here on it is gone for everybody
    shutil.rmtree(box, ignore_errors=True)
    return {}


def exec_run(p: dict, call: Call) -> dict:
    """Runs argv without a shell. Output goes to files, so that a background child can't hold up the answer."""
    saved = load(p)[1]["envs"]
    root, cwd = inside({"sandbox_id": p["sandbox_id"], "cwd": p.get("cwd") or "/"}, "cwd")
    if not os.path.isdir(cwd):
        raise Failure(-32002, f"there is no directory {p['cwd']}", sdk_code="E4001")
    argv, timeout = [get(p, "cmd", str), *get(p, "args", list, [])], get(p, "timeout", int, 0)
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": root, **saved, **get(p, "env", dict, {})}
    with tempfile.TemporaryFile(dir=BOXES) as out, tempfile.TemporaryFile(dir=BOXES) as err:
        try:
            with call.lock:
                if call.cancelled:
                    raise Failure(-32000, "cancelled")
                call.process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                                stderr=err, start_new_session=True)
        except OSError as e:  # what a shell says of a command that is missing, or is no program
            if e.errno not in (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC):
                raise
            # A directory of PATH that can't be read is no reason to say that the command may not be run.
            hidden = e.errno == errno.EACCES and "/" not in argv[0] and not shutil.which(argv[0], os.F_OK, env["PATH"])
            why = errno.ENOENT if hidden else e.errno
            return {"stdout": "", "stderr": f"{argv[0]}: {os.strerror(why)}\n", "exit_code": 127 if why == errno.ENOENT else 126}
        try:
            status = call.process.wait(timeout if timeout > 0 else None)
        except subprocess.TimeoutExpired:
            call.kill()
            call.process.wait()
            raise Failure(-32000, f"the command ran longer than {timeout} s", sdk_code="E3001") from None
        out.seek(0)
        err.seek(0)
        texts = [f.read(LINE_LIMIT).decode("utf-8", "replace") for f in (out, err)]
    return {"stdout": texts[0], "stderr": texts[1], "exit_code": status if status >= 0 else 128 - status}


def regular(p: dict) -> str:
    """The real place of a path that is a file or not there: opening a FIFO would wait for its other end."""
    path = inside(p)[1]
    if os.path.exists(path) and not os.path.isfile(path):
        raise Failure(-32000, f"{p['path']} is not a regular file")
    return path


def files_read(p: dict) -> dict:
    with open(regular(p), "rb") as f:
        f.seek(get(p, "offset", int, 0))
        return {"content_b64": base64.b64encode(f.read(min(get(p, "length", int, LINE_LIMIT), LINE_LIMIT))).decode()}


def files_write(p: dict) -> dict:
    path, data = regular(p), base64.b64decode(get(p, "content_b64", str), validate=True)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "ab" if p.get("append") else "wb") as f:
        f.write(data)
        if p.get("mode") is not None:
            os.fchmod(f.fileno(), get(p, "mode", int) & 0o777)
    return {}


def files_list(p: dict) -> dict:
    root, path = inside(p)
    return {"entries": [entry(root, os.path.join(path, name)) for name in sorted(os.listdir(path))]}


def files_mkdir(p: dict) -> dict:
    os.makedirs(inside(p)[1], exist_ok=True)
    return {}


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def files_remove(p: dict) -> dict:
    root, path = inside(p, follow=False)
    if path == root:
        raise Failure(-32000, "the root of a sandbox can't be removed", sdk_code="E4002")
    remove(path)
    return {}


def files_move(p: dict) -> dict:
    (root, source), (_, target) = inside(p, "source", False), inside(p, "destination", False)
    os.lstat(source)  # missing: said before anything else
    if source == root or (target + "/").startswith(source + "/") or (source + "/").startswith(target + "/"):
        raise Failure(-32000, f"{p['source']} can't be moved to {p['destination']}")
    if os.path.lexists(target):
        if not p.get("overwrite"):
            raise Failure(-32000, f"{p['destination']} exists")
        remove(target)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.rename(source, target)
    return {}


METHODS = {"initialize": initialize, "shutdown": lambda p: {}, "sandbox.create": sandbox_create, "sandbox.list": sandbox_list,
           "sandbox.get": lambda p: load(p)[1]["record"], "sandbox.kill": sandbox_kill, "exec.run": exec_run,
           "files.read": files_read, "files.write": files_write, "files.list": files_list, "files.mkdir": files_mkdir,
           "files.stat": lambda p: entry(*inside(p, follow=False)), "files.remove": files_remove, "files.move": files_move}


def dispatch(method: str, p: dict, *call: Call) -> dict:
    """The result or the error of one request: whatever happens, it is answered."""
    try:
        if method in METHODS:
            return {"result": METHODS[method](p, *call)}
        lacking = LACKING.get(method) or LACKING.get(method.split(".")[0])
        if lacking:
            raise Failure(-32003, f"{method} is not supported", details={"feature": lacking})
        raise Failure(-32601, f"there is no method {method}")
    except Failure as e:
        return {"error": e.error}
    except OSError as e:
        known = {errno.ENOENT: (-32002, "E4001"), errno.EACCES: (-32000, "E4002"), errno.EPERM: (-32000, "E4002")}
        code, sdk_code = known.get(e.errno or 0, (-32000, ""))
        return {"error": {"code": code, "message": os.strerror(e.errno or errno.EIO), "data": {"sdk_code": sdk_code}}}
    except Exception as e:
        return {"error": {"code": -32602, "message": f"{method}: {type(e).__name__}: {e}"}}


def answer(request: dict, *call: Call) -> None:
    reply = dispatch(str(request.get("method")), request.get("params") or {}, *call)
    line = json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}, separators=(",", ":")).encode()
    if len(line) > LINE_LIMIT:
        reply = {"error": {"code": -32000, "message": "the answer is longer than 8 MiB"}}
        line = json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}).encode()
    running.pop(request["id"], None)
    with output:  # commands answer from threads of their own
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def main() -> None:
    os.makedirs(BOXES, mode=0o700, exist_ok=True)
    for line in sys.stdin.buffer:
        request = json.loads(line) if line.strip() else {}
        method, params = request.get("method"), request.get("params") or {}
        if method == "$/cancel":
            call = running.get(params["id"])
            if call:
                call.kill()
        elif method == "exec.run" and "id" in request:
            call = running[request["id"]] = Call(params.get("sandbox_id"))
            threading.Thread(target=answer, args=(request, call)).start()
        elif "id" in request:
            answer(request)
            if method == "shutdown":
                break
    for call in list(running.values()):
        call.kill()


if __name__ == "__main__":
    main()
