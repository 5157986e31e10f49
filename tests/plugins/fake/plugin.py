"""The program of fakeplugin.make(): an EPP/1 plugin that goes wrong as mode.json, or the field mode, says."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "mode.json"), encoding="utf-8") as setup_file:
    SETUP: dict[str, Any] = json.load(setup_file)
DATA = os.environ.get("ABX_PROVIDER_DATA_DIR", ".")
LOCK = threading.Lock()
WAKE: dict[Any, threading.Event] = {}

mode: str = SETUP["mode"]
arg: str = SETUP["arg"]
secret = ""
processes = 0
gets = 0


def note(name: str, text: str) -> None:
    with open(os.path.join(DATA, name), "a", encoding="utf-8") as f:
        f.write(text + "\n")


def raw(data: bytes) -> None:
    with LOCK:
        while data:
            data = data[os.write(1, data) :]


def line(**message: Any) -> None:
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(ident: Any, result: Any) -> None:
    if mode == "unknownid":
        line(id=777777, result={"sandbox_id": "wrong"})
    if mode == "emptylines":
        raw(b"\n\r\n\n")
    line(id=ident, result=result)
    if mode == "twice":
        line(id=ident, result={"sandbox_id": "second"})


def error(ident: Any, code: int, message: str, **data: Any) -> None:
    line(id=ident, error={"code": code, "message": message, "data": data})


def output(process: str, data: "str | bytes", stream: str = "stdout") -> None:
    content = {"data": data} if isinstance(data, str) else {"data_b64": base64.b64encode(data).decode()}
    line(method="exec.output", params={"process_id": process, "stream": stream, **content})


def exited(process: str, code: Any = 0, **more: Any) -> None:
    line(method="exec.exit", params={"process_id": process, "exit_code": code, **more})


def stay() -> None:
    while True:
        time.sleep(3600)


def sleeper(**kw: Any) -> int:
    return subprocess.Popen(["sleep", "300"], **kw).pid


def quiet() -> dict[str, Any]:
    return {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def handshake() -> dict[str, Any]:
    result: dict[str, Any] = {
        "protocol": "epp/1",
        "plugin": {"name": "fake", "version": "1.0.0"},
        "features": SETUP["features"],
    }
    if SETUP["operations"] is not None:
        result["operation_contract_version"] = 1
        result["operations"] = {"cli": [], "python": SETUP["operations"]}
        result["workflow_inputs"] = result["startup_modes"] = []
    return result


def initialize(ident: Any, params: dict[str, Any]) -> None:
    global mode, arg, secret
    config = params.get("config") or {}
    secret = config.get("tok") or ""
    if config.get("mode"):
        mode, _, arg = config["mode"].partition(" ")
    pids = [os.getpid()]
    if mode == "child":
        pids += [sleeper(**quiet()), sleeper(start_new_session=True, **quiet())]
    elif mode == "holdpipes":
        pids.append(sleeper(start_new_session=True))
    elif mode == "ignoreterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("pids", " ".join(map(str, pids)))
    result = handshake()
    if mode == "banner":
        raw(b"Welcome to \x1b[31mfake\x1b[0m 1.0!\n")
    elif mode == "nonjson":
        raw(b"{not json}\n")
        stay()
    elif mode == "array":
        raw(b"[1]\n")
        stay()
    elif mode == "partial":
        raw(b'{"jsonrpc":"2.0","id":')
        sys.exit(0)
    elif mode == "deep":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":' % ident + b"[" * 10000 + b"]" * 10000 + b"}\n")
        stay()
    elif mode == "big9":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":"' % ident + b"x" * (9 << 20) + b'"}\n')
        stay()
    elif mode == "nonl20":
        raw(b"x" * 20_000_000)
        stay()
    elif mode == "exit3":
        text = f"Traceback (most recent call last):\nBoom: \x1b[31mred\x1b[0m\x07 tok={secret}\n"
        os.write(2, text.encode())
        os._exit(3)
    elif mode == "holdpipes":
        os.write(2, b"going\n")
        os._exit(4)
    elif mode == "hang_init":
        stay()
    elif mode == "slow_init":
        time.sleep(float(arg or 1))
    elif mode == "stderrflood":
        chunk = (b"e" * 1023 + b"\n") * 1024
        for _ in range(100):
            os.write(2, chunk)
    elif mode == "proto2":
        result["protocol"] = "epp/2"
    elif mode == "contract":
        result["operation_contract_version"] = 1
        result["operations"] = {"cli": [], "python": ["sandbox.get"]}
        result["workflow_inputs"] = result["startup_modes"] = []
    elif mode == "features":
        result["features"] = ["sandbox.lifecycle"]
    elif mode == "initerr":
        return error(ident, -32006, f"bad config \x1b[2J tok={secret}", suggestion=f"use {secret}")
    elif mode == "initauth":
        return error(ident, -32001, f"denied {secret}", sdk_code="E1001", suggestion=f"renew {secret}")
    elif mode == "noidreply":
        line(error={"code": -32000, "message": "no id at all"})
        line(id=None, error={"code": -32000, "message": "id is null"})
        return
    answer(ident, result)


def record(sandbox_id: str = "sb1") -> dict[str, Any]:
    return {"sandbox_id": sandbox_id, "template": "base", "status": "running", "metadata": {}}


def sandbox(ident: Any, method: str, params: dict[str, Any]) -> None:
    global gets
    if mode == "crashget" and method == "sandbox.get":
        os._exit(9)
    if method == "sandbox.get":
        gets += 1
    if mode == "flaky" and gets < 3 and method == "sandbox.get":
        return error(ident, -32005, "temporary", retryable=True, retry_after_ms=10)
    if mode == "code" and method == "sandbox.get":
        return error(ident, int(arg), f"msg {secret}")
    if mode == "slow" and method == "sandbox.get":
        return later(ident, record(params["sandbox_id"]))
    bad: dict[str, Any] = {"recnull": None, "reclist": [1], "noid": {"status": "running"}}
    if mode in bad:
        return answer(ident, bad[mode])
    if mode == "dupkeys":
        return raw(b'{"jsonrpc":"2.0","id":%d,"result":{"sandbox_id":"a","sandbox_id":"b"}}\n' % ident)
    if mode == "bigint":
        numbers = b'"a":1e400,"b":%d,"c":-%d,"d":1e-400' % (2**70, 2**70)
        return raw(b'{"jsonrpc":"2.0","id":%d,"result":{"sandbox_id":"sb1","status":"running",%s}}\n' % (ident, numbers))
    if mode == "surrogate":
        return raw(b'{"jsonrpc":"2.0","id":%d,"result":{"sandbox_id":"s\\ud800","status":"running"}}\n' % ident)
    if mode == "invalidutf8":
        return raw(b'{"jsonrpc":"2.0","id":%d,"result":{"sandbox_id":"s\xff\xfe","status":"running"}}\n' % ident)
    name = "s/1 %:\u00e9 '\"" if mode == "slashid" else params.get("sandbox_id", "sb1")
    answer(ident, record(name))
    if mode == "stopread":
        stay()


def later(ident: Any, result: Any) -> None:
    """Answers after a while; at once, with an error, when cancelled."""
    event = WAKE[ident] = threading.Event()

    def wait() -> None:
        if event.wait(float(arg or 2)):
            error(ident, -32000, "cancelled")
        else:
            answer(ident, result)

    threading.Thread(target=wait, daemon=True).start()


def run(ident: Any, params: dict[str, Any]) -> None:
    if mode == "slow":
        return later(ident, {"stdout": "late\n", "stderr": "", "exit_code": 0})
    if mode == "env":
        text = json.dumps({"env": dict(os.environ), "argv": sys.argv, "cwd": os.getcwd(), "config": secret != ""})
        return answer(ident, {"stdout": text, "stderr": "", "exit_code": 0})
    argv = " ".join([params["cmd"], *params.get("args", [])])
    answer(ident, {"stdout": argv + "\n", "stderr": "", "exit_code": "zz" if mode == "badexit" else 0})


def start(ident: Any, params: dict[str, Any]) -> None:
    """Echoes the command, and exits 0; the command hold stays."""
    global processes
    processes += 1
    process = f"p{processes}"
    argv = " ".join([params["cmd"], *params.get("args", [])])
    if mode == "noexec":
        return
    if mode == "slow":
        return later(ident, {"process_id": process})
    if mode == "earlyevents":
        output(process, "early\n")
        output(process, "and err\n", "stderr")
        exited(process, 5)
        return answer(ident, {"process_id": process})
    if mode == "manyearly":
        for number in range(100):
            output(f"other{number}", "x")
    answer(ident, {"process_id": process})
    if mode == "late":
        output(process, "so far\n")
        return exited(process, 124, timed_out=True)
    if mode == "spew":
        count, _, size = arg.partition(":")
        chunk = "x" * int(size or 65000)
        for _ in range(int(count or 1000)):
            output(process, chunk)
        return exited(process)
    if mode == "floodunknown":
        while True:
            output("nobody", "x" * 65000)
    if mode == "env":
        output(process, json.dumps({"env": dict(os.environ), "argv": sys.argv, "cwd": os.getcwd(), "config": secret != ""}))
        return exited(process)
    if mode == "splitutf8":
        output(process, b"caf\xc3")
        output(process, b"\xa9 \xf0\x9f")
        output(process, b"\x98\x80\n")
        return exited(process)
    if mode == "surrogate":
        line(method="exec.output", params={"process_id": process, "stream": "stdout", "data": "a\ud800b"})
        return exited(process)
    if mode == "killed":
        return exited(process, 137, signal="SIGKILL")
    output(process, argv + "\n")
    if mode == "crashmid":
        os._exit(7)
    if params["cmd"] == "hold":
        return
    exited(process, "zz" if mode == "badexit" else 0)
    if mode == "afterexit":
        output(process, "too late\n")
        exited(process, 9)


def request(ident: Any, method: str, params: dict[str, Any]) -> None:
    note("calls", method)
    if method == "initialize":
        initialize(ident, params)
    elif method in ("sandbox.create", "sandbox.get", "sandbox.connect"):
        sandbox(ident, method, params)
    elif method == "sandbox.list":
        answer(ident, {"sandboxes": [record()]})
    elif method == "exec.run":
        run(ident, params)
    elif method == "exec.start":
        start(ident, params)
    elif method == "files.read":
        results: dict[str, Any] = {"badb64": {"content_b64": "!!!"}, "nob64": {}}
        answer(ident, results.get(mode, {"content_b64": "aGk="}))
    elif method == "files.list":
        answer(ident, {"entries": []})
    elif method == "files.stat":
        answer(ident, {"name": "f", "path": params["path"], "type": "file", "size": 2})
    elif method == "files.watch":
        line(method="files.event", params={"watch_id": "w1", "type": "create", "path": "early"})
        answer(ident, {"watch_id": "w1"})
        line(method="files.event", params={"watch_id": "w1", "type": "modify", "path": "/f"})
        line(method="files.event", params={"watch_id": "other", "type": "modify", "path": "/g"})
    elif method == "process.list":
        answer(ident, {"processes": []})
    elif method == "ports.url":
        answer(ident, {"url": f"http://127.0.0.1:{params['port']}"})
    elif method == "shutdown" and mode == "ignoreterm":
        pass
    else:
        answer(ident, {})
        if method == "shutdown":
            sys.exit(0)


def main() -> None:
    for text in sys.stdin.buffer:
        message = json.loads(text)
        method, params = message["method"], message.get("params") or {}
        if "id" in message:
            request(message["id"], method, params)
        elif method == "$/cancel":
            note("cancels", str(params.get("id")))
            if params.get("id") in WAKE:
                WAKE[params["id"]].set()
    if mode == "ignoreterm":
        stay()


if __name__ == "__main__":
    main()
