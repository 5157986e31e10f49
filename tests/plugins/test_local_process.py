"""The local-process example, driven over its pipes: no abx needed."""

from __future__ import annotations

import base64
import json
import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from eppclient import LIMIT_S, CallError, Client, Message

SOURCE = Path(os.environ.get("ABX_TEST_SOURCE", Path(__file__).resolve().parents[2]))
EXAMPLE = SOURCE / "examples" / "providers" / "local-process"


def start(data: Path, **config: Any) -> Client:
    client = Client([sys.executable, str(EXAMPLE / "provider.py")], data)
    client.initialize(**config)
    return client


class Box:
    """A client and one sandbox of it."""

    def __init__(self, client: Client, **create: Any) -> None:
        self.client = client
        self.record: Message = client.call("sandbox.create", template="base", **create)
        self.id: str = self.record["sandbox_id"]
        self.root = client.data / "sandboxes" / self.id / "root"

    def call(self, method: str, **params: Any) -> Any:
        return self.client.call(method, sandbox_id=self.id, **params)

    def run(self, *argv: str, **params: Any) -> Message:
        return self.call("exec.run", cmd=argv[0], args=list(argv[1:]), **params)  # type: ignore[no-any-return]

    def start(self, *argv: str, **params: Any) -> str:
        return str(self.call("exec.start", cmd=argv[0], args=list(argv[1:]), **params)["process_id"])

    def write(self, path: str, data: bytes, **params: Any) -> None:
        self.call("files.write", path=path, content_b64=base64.b64encode(data).decode(), **params)

    def read(self, path: str, **params: Any) -> bytes:
        return base64.b64decode(self.call("files.read", path=path, **params)["content_b64"], validate=True)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with start(tmp_path / "data") as c:
        yield c


@pytest.fixture
def box(client: Client) -> Box:
    return Box(client)


def fails(code: int, sdk_code: str | None, call: Callable[[], object]) -> str:
    with pytest.raises(CallError) as e:
        call()
    assert (e.value.code, e.value.sdk_code) == (code, sdk_code), e.value.message
    return e.value.message


def wait_gone(pid: int) -> bool:
    """Waits for the end of a process by its pidfd."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], LIMIT_S)[0])
    finally:
        os.close(fd)


# ---- handshake and wire --------------------------------------------------------------------


def test_the_handshake_equals_the_manifest(tmp_path: Path) -> None:
    tomllib = pytest.importorskip("tomllib")
    manifest = tomllib.loads((EXAMPLE / "abx-provider.toml").read_text("utf-8"))
    with Client([sys.executable, str(EXAMPLE / "provider.py")], tmp_path / "data") as c:
        result = c.initialize()
    assert result["protocol"] == manifest["compat"]["protocol"]
    assert result["features"] == manifest["features"]["supported"]
    assert result["operation_contract_version"] == manifest["operation_contract_version"]
    assert result["operations"] == manifest["operations"]
    assert result["workflow_inputs"] == manifest["workflow"]["inputs"]
    assert result["startup_modes"] == manifest["workflow"]["startups"]
    assert result["plugin"]["version"] == manifest["provider"]["version"]
    assert manifest["runtime"]["command"] == ["python3", "./provider.py"]


def test_a_run_leaves_no_bytecode(client: Client) -> None:
    assert not (EXAMPLE / "__pycache__").exists()


def test_another_protocol_is_refused(tmp_path: Path) -> None:
    with Client([sys.executable, str(EXAMPLE / "provider.py")], tmp_path / "data") as c:
        message = fails(-32000, None, lambda: c.call("initialize", protocol="epp/2", config={}, data_dir=str(c.data)))
    assert "epp/1" in message and "epp/2" in message


def test_shutdown_answers_and_exits(client: Client) -> None:
    assert client.call("shutdown") == {}
    assert client.process.wait(LIMIT_S) == 0
    assert client.stderr == b""


def test_the_end_of_stdin_ends_it_with_its_commands(client: Client, box: Box) -> None:
    box.start("sh", "-c", "echo $$; sleep 300 & sleep 300")
    pid = int(client.first_output())
    assert client.close() == 0
    assert wait_gone(pid)


def test_sigterm_ends_its_commands(client: Client, box: Box) -> None:
    box.start("sh", "-c", "echo $$; exec sleep 300")
    pid = int(client.first_output())
    client.process.terminate()
    assert client.process.wait(LIMIT_S) == 143
    assert wait_gone(pid)


def test_garbage_gets_an_answer_and_does_no_harm(client: Client) -> None:
    client.write(b"\xff\n[1]\nnull\n" + b"[" * 100000 + b'\n{"id":1,"method":2}\n{"method":"$/cancel","params":{"id":99}}\n')
    assert client.call("sandbox.list")["sandboxes"] == []
    assert sum(json.loads(line).get("error", {}).get("code") == -32700 for line in client.lines) == 5


def test_unknown_methods_and_bad_parameters(client: Client, box: Box) -> None:
    fails(-32601, None, lambda: box.call("sandbox.pause"))
    fails(-32601, None, lambda: box.call("__class__"))
    fails(-32602, None, lambda: box.call("files.read"))
    fails(-32602, None, lambda: box.call("files.read", path="a\0b"))
    fails(-32602, None, lambda: box.call("files.write", path="a", content_b64="!!!"))
    fails(-32602, None, lambda: box.call("ports.url", port=0))
    assert client.call("sandbox.list")["sandboxes"]


def test_many_requests_at_once(client: Client, box: Box) -> None:
    box.run("mkfifo", "gate")
    slow = client.begin("exec.run", sandbox_id=box.id, cmd="cat", args=["gate"])
    ids = [client.begin("exec.run", sandbox_id=box.id, cmd="echo", args=[str(i)]) for i in range(30)]
    for i, ident in reversed(list(enumerate(ids))):
        assert client.wait(ident)["stdout"] == f"{i}\n"
    (box.root / "gate").write_text("slow")
    assert client.wait(slow)["stdout"] == "slow"


# ---- sandboxes -----------------------------------------------------------------------------


def test_lifecycle(client: Client) -> None:
    box = Box(client, metadata={"a": "1"}, timeout=0)
    assert box.record["status"] == "running" and box.record["template"] == "base"
    assert box.record["metadata"] == {"a": "1"} and box.record["expires_at"] is None
    assert datetime.fromisoformat(box.record["created_at"]).tzinfo
    assert box.call("sandbox.get") == box.record == box.call("sandbox.connect")
    assert client.call("sandbox.list", limit=10) == {"sandboxes": [box.record]}
    assert box.call("sandbox.kill") == {} == box.call("sandbox.kill")
    assert client.call("sandbox.list")["sandboxes"] == []
    assert list((client.data / "sandboxes").iterdir()) == []


def test_list_pages(client: Client) -> None:
    ids = [Box(client).id for _ in range(5)]
    seen: list[str] = []
    cursor = ""
    while True:
        page = client.call("sandbox.list", limit=2, cursor=cursor)
        seen += [r["sandbox_id"] for r in page["sandboxes"]]
        if not (cursor := page.get("next", "")):
            break
    assert seen == ids
    assert client.call("sandbox.list", status="paused")["sandboxes"] == []


@pytest.mark.parametrize("ident", ["lp-0", "", "..", "../..", "lp-0/../lp-1", "ü", 7])
def test_unknown_sandboxes(client: Client, ident: Any) -> None:
    calls: dict[str, dict[str, Any]] = {
        "sandbox.get": {}, "sandbox.connect": {}, "sandbox.set_timeout": {"timeout": 5}, "exec.run": {"cmd": "true"},
        "exec.start": {"cmd": "true"}, "files.read": {"path": "/a"}, "files.write": {"path": "/a", "content_b64": ""},
        "files.list": {"path": "/"}, "process.list": {}, "process.kill": {"pid": 1}, "process.stdin": {"pid": 1, "data": ""},
        "ports.url": {"port": 80},
    }  # fmt: skip
    if ident == 7:
        fails(-32602, None, lambda: client.call("sandbox.get", sandbox_id=ident))
        return
    for method, params in calls.items():
        fails(-32002, "E2009", lambda m=method, p=params: client.call(m, sandbox_id=ident, **p))  # type: ignore[misc]
    assert client.call("sandbox.kill", sandbox_id=ident) == {}


def test_a_restart_finds_the_sandboxes(tmp_path: Path) -> None:
    with start(tmp_path / "data") as c:
        box = Box(c, envs={"WHO": "me"})
        box.write("/a/b", b"x")
        c.close()
    with start(tmp_path / "data") as c:
        assert c.call("sandbox.get", sandbox_id=box.id) == box.record
        assert "envs" not in box.record
        again = c.call("exec.run", sandbox_id=box.id, cmd="sh", args=["-c", "cat a/b; echo $WHO"])
        assert again["stdout"] == "xme\n"
        box.client = c
        assert box.read("/a/b") == b"x"


def test_expired_sandboxes_are_gone(client: Client, tmp_path: Path) -> None:
    box, kept = Box(client, timeout=3600), Box(client, timeout=3600)
    box.start("sh", "-c", "echo $$; exec sleep 300")
    pid = int(client.first_output())
    assert 3590 < (datetime.fromisoformat(box.record["expires_at"]) - datetime.now().astimezone()).total_seconds() <= 3600
    assert box.call("sandbox.set_timeout", timeout=0) == {}
    assert box.call("sandbox.get")["expires_at"] is None
    fails(-32602, None, lambda: box.call("sandbox.set_timeout", timeout=-1))
    record = json.loads((box.root.parent / "record.json").read_text())
    (box.root.parent / "record.json").write_text(json.dumps({**record, "expires_at": "2020-01-01T00:00:00+00:00"}))
    fails(-32002, "E2009", lambda: box.call("sandbox.get"))
    assert wait_gone(pid), "its commands end with it"
    assert [r["sandbox_id"] for r in client.call("sandbox.list")["sandboxes"]] == [kept.id]
    record = json.loads((kept.root.parent / "record.json").read_text())
    client.close()
    (kept.root.parent / "record.json").write_text(json.dumps({**record, "expires_at": "2020-01-01T00:00:00+00:00"}))
    with start(tmp_path / "data") as c:
        fails(-32002, "E2009", lambda: c.call("sandbox.get", sandbox_id=kept.id))
        assert not kept.root.exists()


def test_expiry_ends_a_running_command_by_itself(client: Client) -> None:
    box = Box(client, timeout=1)
    _, _, end, _ = client.collect(box.start("sleep", "300"))
    assert end["exit_code"] == 137
    assert client.call("sandbox.list")["sandboxes"] == []


def test_kill_ends_commands_and_background_children(client: Client, box: Box) -> None:
    done = box.run("sh", "-c", "sleep 300 & echo $!")
    background = int(done["stdout"])
    process = box.start("sh", "-c", "sleep 300 & sleep 300")
    os.chmod(box.root, 0)
    box.call("sandbox.kill")
    assert wait_gone(background)
    assert client.collect(process)[2]["exit_code"] == 137
    assert list((client.data / "sandboxes").iterdir()) == []


def test_workdir_root(tmp_path: Path) -> None:
    with start(tmp_path / "data", workdir_root=str(tmp_path / "elsewhere")) as c:
        ident = c.call("sandbox.create")["sandbox_id"]
        assert (tmp_path / "elsewhere" / ident / "root").is_dir()
        assert not (tmp_path / "data" / "sandboxes").exists()
    (tmp_path / "file").touch()
    with Client([sys.executable, str(EXAMPLE / "provider.py")], tmp_path / "data") as c:
        fails(-32006, None, lambda: c.initialize(workdir_root=str(tmp_path / "file" / "x")))


def test_limits_are_not_promised(client: Client) -> None:
    client.call("sandbox.create", cpu=2)
    assert client.note()["method"] == "log"


def test_ports(box: Box) -> None:
    assert box.call("ports.url", port=8080)["url"] == "http://127.0.0.1:8080"


# ---- exec.run ------------------------------------------------------------------------------


def test_run_answers_what_came_out(box: Box) -> None:
    assert box.run("sh", "-c", "echo out; echo err >&2; exit 3") == {"stdout": "out\n", "stderr": "err\n", "exit_code": 3}
    assert box.run("echo", "$HOME; `id` *", "")["stdout"] == "$HOME; `id` * \n"
    assert box.run("cat")["stdout"] == "", "stdin is empty"
    assert box.run("printf", "\\303\\251\\377")["stdout"] == "é\ufffd"


def test_run_environment_and_directory(box: Box) -> None:
    box.write("/sub/x", b"")
    got = box.run("env", env={"A": "1 2", "HOME": "/h"})
    assert set(got["stdout"].splitlines()) >= {"A=1 2", "HOME=/h"}
    assert not [line for line in got["stdout"].splitlines() if line.startswith("ABX_")]
    assert box.run("sh", "-c", "echo $HOME; pwd")["stdout"] == f"{box.root}\n{box.root}\n"
    for cwd in ("/sub", "sub", "/sub/../sub/.", str(box.root / "sub")):
        assert box.run("ls", cwd=cwd)["stdout"] == "x\n"
    assert "/none" in fails(-32002, "E4001", lambda: box.run("true", cwd="/none"))
    assert "Not a directory" in fails(-32000, None, lambda: box.run("true", cwd="/sub/x"))
    fails(-32000, "E4002", lambda: box.run("true", cwd="/.."))
    fails(-32000, None, lambda: box.run("true", user="nobody"))
    fails(-32602, None, lambda: box.run("env", env={"A": 1}))


def test_missing_and_broken_commands(client: Client, box: Box) -> None:
    assert box.run("no-such-cmd", "x") == {"stdout": "", "stderr": "no-such-cmd: not found\n", "exit_code": 127}
    box.write("/plain", b"text", mode=0o644)
    assert box.run("./plain")["exit_code"] == 126
    _, err, end, _ = client.collect(box.start("no-such-cmd"))
    assert (err, end["exit_code"]) == (b"no-such-cmd: not found\n", 127)
    assert box.call("process.list")["processes"] == []
    assert "Argument list too long" in box.run("true", "x" * (1 << 20))["stderr"]


def test_signals_in_the_exit_code(client: Client, box: Box) -> None:
    done = box.run("sh", "-c", "kill -TERM $$")
    assert (done["exit_code"], done["signal"]) == (143, "SIGTERM")
    _, _, end, _ = client.collect(box.start("sh", "-c", "kill -40 $$"))
    assert end["exit_code"] == 168


def test_run_timeout_kills_the_group(box: Box) -> None:
    script = "echo $$ > pids; sleep 300 & echo $! >> pids; sleep 300"
    message = fails(-32000, "E3001", lambda: box.run("sh", "-c", script, timeout=1))
    assert "1 s" in message
    pids = [int(p) for p in box.read("pids").split()]
    assert len(pids) == 2 and all(wait_gone(p) for p in pids)


@pytest.mark.parametrize("stream", [False, True])
def test_background_children_do_not_hold_the_answer(client: Client, box: Box, stream: bool) -> None:
    began = time.monotonic()
    script = "(echo b; sleep 300; echo late) & echo pid $!; sleep 300 & echo done"
    if stream:
        out, _, end, _ = client.collect(box.start("sh", "-c", script))
        code = end["exit_code"]
    else:
        done = box.run("sh", "-c", script)
        out, code = done["stdout"].encode(), done["exit_code"]
    assert code == 0 and b"done" in out and b"b\n" in out
    assert time.monotonic() - began < 10
    pid = int(re.search(rb"pid (\d+)", out).group(1))  # type: ignore[union-attr]
    os.kill(pid, 0)  # still there: it was started on purpose
    box.call("sandbox.kill")
    assert wait_gone(pid)


def test_a_background_flood_does_not_hold_the_answer(box: Box) -> None:
    done = box.run("sh", "-c", "yes & echo $! >pid", timeout=300)
    assert done["exit_code"] == 0
    os.kill(int(box.read("pid")), signal.SIGKILL)


def test_output_before_the_end_is_never_lost(client: Client, box: Box) -> None:
    script = "head -c 60000 /dev/zero; (sleep 300) & "
    for _ in range(5):
        assert len(box.run("sh", "-c", script)["stdout"]) == 60000
        assert len(client.collect(box.start("sh", "-c", script))[0]) == 60000


@pytest.mark.parametrize("what", ["a", "\\377", "\\001"])
def test_huge_output_is_cut_and_says_so(client: Client, box: Box, what: str) -> None:
    script = f"head -c 20000000 /dev/zero | tr '\\000' '{what}'; echo e >&2"
    done = box.run("sh", "-c", script)
    assert done["exit_code"] == 0 and len(done["stdout"]) <= 2621440
    assert done["stderr"].startswith("e\n") and "stdout was cut; it has 20000000 bytes" in done["stderr"]
    assert max(map(len, client.lines)) < 8 << 20


def test_a_command_may_close_its_output(box: Box) -> None:
    assert box.run("sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4")["exit_code"] == 4
    fails(-32000, "E3001", lambda: box.run("sh", "-c", "exec >&- 2>&-; sleep 300", timeout=1))


def test_cancel_kills_a_run(client: Client, box: Box) -> None:
    ident = client.begin("exec.run", sandbox_id=box.id, cmd="sh", args=["-c", "echo $$ > pid; sleep 300 & sleep 300"])
    while not (box.root / "pid").exists() or not (box.root / "pid").read_text():
        box.call("files.list", path="/")
    client.cancel(ident)
    assert "cancelled" in fails(-32000, None, lambda: client.wait(ident))
    assert wait_gone(int(box.read("pid")))


# ---- streams -------------------------------------------------------------------------------


def test_stream_events(client: Client, box: Box) -> None:
    process = box.start("sh", "-c", "echo a; echo b >&2; read x; echo $x")
    assert client.first_output() in (b"a\n", b"b\n")
    client.first_output()
    box.call("process.stdin", pid=process, data="é\n")
    out, err, end, _ = client.collect(process)
    assert (out, err, end) == ("é\n".encode(), b"", {"process_id": process, "exit_code": 0})
    assert client.notes.empty()


def test_split_characters_come_out_whole(client: Client, box: Box) -> None:
    script = r"printf 'a\303'; read x; printf '\251b'; read x; printf '\360\237'; read x; printf '\230\200'"
    process = box.start("sh", "-c", script)
    texts = [client.first_output()]
    box.call("process.stdin", pid=process, data="\n")
    texts.append(client.first_output())
    box.call("process.stdin", pid=process, data="\n")
    box.call("process.stdin", pid=process, data="\n")
    out, _, _, events = client.collect(process)
    assert [t.decode() for t in texts] + [out.decode()] == ["a", "éb", "😀"]
    assert all("data" in e for e in events)


def test_bytes_that_are_no_text(client: Client, box: Box) -> None:
    box.write("/bin", bytes(range(256)) * 1000)
    out, _, _, events = client.collect(box.start("cat", "bin"))
    assert out == bytes(range(256)) * 1000 and any("data_b64" in e for e in events)
    out, _, _, events = client.collect(box.start("printf", r"ok\303"))
    assert out == b"ok\xc3" and [set(e) & {"data", "data_b64"} for e in events] == [{"data"}, {"data_b64"}]


def test_a_large_stream_is_whole(client: Client, box: Box) -> None:
    out, _, end, events = client.collect(box.start("sh", "-c", "yes é | head -c 3000000"))
    assert out == "é\n".encode() * 1000000 and end["exit_code"] == 0
    assert all("data" in e for e in events)


def test_a_slow_reader_loses_nothing(client: Client, box: Box) -> None:
    """A command ends while the plugin is held by a host that does not read: the rest of its output must not be dropped."""
    box.run("mkfifo", "gate")
    with client.reading:
        # 20000 zeros hold the plugin, as JSON they fill its pipe; 40000 more fit into the pipe of the command.
        script = "head -c 20000 /dev/zero; sleep 0.2; head -c 40000 /dev/zero; echo > gate; (sleep 300) &"
        ident = client.begin("exec.start", sandbox_id=box.id, cmd="sh", args=["-c", script])
        (box.root / "gate").read_text()
        time.sleep(0.5)  # not to wait for something: longer than the plugin's patience with pipes
    assert len(client.collect(client.wait(ident)["process_id"])[0]) == 60000


def test_stream_timeout(client: Client, box: Box) -> None:
    out, err, end, _ = client.collect(box.start("sh", "-c", "echo $$; sleep 300 & sleep 300", timeout=1))
    assert wait_gone(int(out))
    assert err == b""
    assert (end["exit_code"], end["timed_out"], "signal" in end) == (124, True, False)


def test_processes(client: Client, box: Box) -> None:
    other = Box(client)
    process = box.start("sleep", "300")
    (listed,) = box.call("process.list")["processes"]
    assert (listed["process_id"], listed["command"], listed["status"]) == (process, "sleep 300", "running")
    assert other.call("process.list")["processes"] == []
    for method, params in (("process.kill", {}), ("process.signal", {"signal": 15}), ("process.stdin", {"data": "x"})):
        fails(-32002, None, lambda m=method, p=params: other.call(m, pid=process, **p))  # type: ignore[misc]
        fails(-32002, None, lambda m=method, p=params: box.call(m, pid=999999999, **p))  # type: ignore[misc]
    fails(-32602, None, lambda: box.call("process.signal", pid=process, signal=4000))
    box.call("process.signal", pid=listed["pid"], signal=15)
    end = client.collect(process)[2]
    assert (end["exit_code"], end["signal"]) == (143, "SIGTERM")
    assert box.call("process.list")["processes"] == []
    process = box.start("sh", "-c", "sleep 300 & sleep 300")
    box.call("process.kill", pid=process)
    assert client.collect(process)[2]["exit_code"] == 137
    process = box.start("sleep", "300")
    client.cancel(client.ids)
    assert client.collect(process)[2]["exit_code"] == 137


def test_stdin_keeps_its_order_and_holds_nothing_up(client: Client, box: Box) -> None:
    box.run("mkfifo", "gate")
    process = box.start("sh", "-c", "read go < gate; exec cat")
    chunks = [chr(97 + i % 26) * 50000 for i in range(20)]
    ids = [client.begin("process.stdin", sandbox_id=box.id, pid=process, data=c) for c in chunks]
    ids.append(client.begin("process.stdin", sandbox_id=box.id, pid=process, data="", eof=True))
    assert box.run("echo", "free")["stdout"] == "free\n"
    (box.root / "gate").write_text("go\n")
    out, _, end, _ = client.collect(process)
    assert out.decode() == "".join(chunks) and end["exit_code"] == 0
    assert [client.wait(i) for i in ids] == [{}] * len(ids)
    process = box.start("sh", "-c", "exec <&-; echo closed; sleep 300")
    client.first_output()
    assert "input" in fails(-32000, None, lambda: box.call("process.stdin", pid=process, data="x"))


# ---- files ---------------------------------------------------------------------------------


def test_read_and_write(box: Box) -> None:
    box.write("/deep/er/f", b"\0\xff text")
    assert box.read("deep/er/f") == b"\0\xff text" == (box.root / "deep/er/f").read_bytes()
    assert box.read("/deep/er/f", offset=2, length=3) == b" te"
    assert box.read("/deep/er/f", offset=99) == b"" == box.read("/deep/er/f", length=0)
    box.write("/deep/er/f", b"!", append=True)
    assert box.read("/deep/er/f") == b"\0\xff text!"
    box.write("/deep/er/f", b"short", mode=0o751)
    assert box.call("files.stat", path="/deep/er/f")["mode"] == 0o751
    box.write("/deep/er/f", b"again")
    assert box.call("files.stat", path="/deep/er/f")["mode"] == 0o751, "kept"
    assert os.listdir(box.root / "deep/er") == ["f"], "no temporary files stay"
    box.write("/ü 名", b"", append=True)
    assert box.read("/ü 名") == b""


def test_write_is_atomic_for_a_reader(box: Box) -> None:
    box.write("/f", b"old")
    with open(box.root / "f", "rb") as f:
        box.write("/f", b"new")
        assert f.read() == b"old"


def test_large_files(client: Client, box: Box) -> None:
    data = os.urandom(5 << 20)
    box.write("/f", data)
    assert box.read("/f") == data
    box.write("/f", data, append=True)
    message = fails(-32000, None, lambda: box.read("/f"))
    assert "offset" in message
    assert box.read("/f", offset=5 << 20, length=5 << 20) == data
    with open(box.root / "sparse", "wb") as f:
        f.truncate(1 << 40)
    fails(-32000, None, lambda: box.read("/sparse"))


def test_list_and_stat(box: Box) -> None:
    box.write("/d/f", b"xyz")
    os.symlink("f", box.root / "d/link")
    os.symlink("/etc", box.root / "d/out")
    entries = box.call("files.list", path="d/")["entries"]
    assert [(e["name"], e["path"], e["type"]) for e in entries] == [
        ("f", "/d/f", "file"), ("link", "/d/link", "symlink"), ("out", "/d/out", "symlink"),
    ]  # fmt: skip
    stat = box.call("files.stat", path="/d/../d//f")
    assert (stat["name"], stat["path"], stat["type"], stat["size"]) == ("f", "/d/f", "file", 3)
    assert datetime.fromisoformat(stat["mtime"]).tzinfo
    assert box.call("files.stat", path="/")["path"] == "/"
    assert box.call("files.stat", path="/d")["type"] == "dir"
    assert box.call("files.stat", path="/d/link")["type"] == "file"
    assert box.call("files.list", path="/")["entries"][0]["path"] == "/d"


def test_missing_files(box: Box) -> None:
    for method in ("read", "list", "stat", "remove"):
        assert "'/none'" in fails(-32002, "E4001", lambda m=method: box.call(f"files.{m}", path="/none"))  # type: ignore[misc]
    fails(-32002, "E4001", lambda: box.call("files.move", source="/none", destination="/x"))
    os.symlink("nowhere", box.root / "dangling")
    fails(-32002, "E4001", lambda: box.read("/dangling"))


def test_wrong_kinds(box: Box) -> None:
    box.write("/d/f", b"x")
    os.mkfifo(box.root / "fifo")
    assert "Is a directory" in fails(-32000, None, lambda: box.read("/d"))
    assert "Is a directory" in fails(-32000, None, lambda: box.write("/d", b""))
    assert "Is a directory" in fails(-32000, None, lambda: box.write("/", b""))
    assert "Not a directory" in fails(-32000, None, lambda: box.write("/d/f/x", b""))
    assert "Not a directory" in fails(-32000, None, lambda: box.call("files.list", path="/d/f"))
    assert "File exists" in fails(-32000, None, lambda: box.call("files.mkdir", path="/d/f"))
    assert "Not a regular file" in fails(-32000, None, lambda: box.read("/fifo"))
    assert "Not a regular file" in fails(-32000, None, lambda: box.write("/fifo", b"x"))
    assert box.read("/d/f") == b"x"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do anything")
def test_permissions(box: Box) -> None:
    box.write("/f", b"x", mode=0)
    fails(-32000, "E4002", lambda: box.read("/f"))
    fails(-32000, "E4002", lambda: box.write("/f", b"y"))


def test_mkdir_remove_move(box: Box) -> None:
    box.call("files.mkdir", path="/a/b/c")
    box.call("files.mkdir", path="/a/b/c")
    box.call("files.mkdir", path="/")
    box.write("/a/b/f", b"1")
    box.write("/g", b"2")
    assert "File exists" in fails(-32000, None, lambda: box.call("files.move", source="/g", destination="/a/b/f"))
    box.call("files.move", source="/g", destination="/a/b/f", overwrite=True)
    assert box.read("/a/b/f") == b"2"
    box.call("files.move", source="/a", destination="/new/place")
    assert box.read("/new/place/b/f") == b"2"
    fails(-32000, None, lambda: box.call("files.move", source="/new", destination="/new/place/x"))
    box.call("files.remove", path="/new")
    assert os.listdir(box.root) == []
    for path in ("/", "", "."):
        fails(-32000, None, lambda p=path: box.call("files.remove", path=p))  # type: ignore[misc]
    assert box.root.is_dir()


def test_paths_can_not_leave(box: Box, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "dir").mkdir()
    box.write("/in/f", b"inside")
    links = {"abs": str(secret), "rel": os.path.relpath(secret, box.root), "dir": str(tmp_path / "dir"), "up": "..",
             "self": str(box.root) + "/../..", "hop": "in/hop2", "in/hop2": "../abs", "loop": "loop",
             "twin": str(box.root) + "x"}  # fmt: skip
    for name, target in links.items():
        os.symlink(target, box.root / name)
    outside = ["/../record.json", "../../../../secret", "/in/../../record.json", "abs", "rel", "hop", "up/record.json", "self/x",
               "dir/new", "twin"]  # fmt: skip
    for path in outside:
        fails(-32000, "E4002", lambda p=path: box.read(p))  # type: ignore[misc]
        fails(-32000, "E4002", lambda p=path: box.write(p, b"overwritten"))  # type: ignore[misc]
        fails(-32000, "E4002", lambda p=path: box.call("files.stat", path=p))  # type: ignore[misc]
    for path in ("dir", "up", "self", "/.."):
        fails(-32000, "E4002", lambda p=path: box.call("files.list", path=p))  # type: ignore[misc]
        fails(-32000, "E4002", lambda p=path: box.call("files.mkdir", path=p + "/new"))  # type: ignore[misc]
        fails(-32000, "E4002", lambda p=path: box.call("files.move", source="/in/f", destination=p + "/f"))  # type: ignore[misc]
        fails(-32000, "E4002", lambda p=path: box.call("files.remove", path=p + "/x"))  # type: ignore[misc]
    fails(-32000, "E4002", lambda: box.run("true", cwd="dir"))
    assert "symbolic links" in fails(-32000, None, lambda: box.read("loop"))
    assert secret.read_text() == "secret" and os.listdir(tmp_path / "dir") == []
    assert box.read("/in/f") == b"inside"


def test_links_inside_are_followed(box: Box) -> None:
    box.write("/in/f", b"inside")
    os.symlink("in", box.root / "rel")
    os.symlink(box.root / "in", box.root / "abs")
    os.symlink("../in/f", box.root / "in" / "g")
    os.symlink("in/new", box.root / "dangling")
    for path in ("rel/f", "abs/f", "rel/g", "abs/../in/g", str(box.root / "in" / "f")):
        assert box.read(path) == b"inside"
    box.write("rel/g", b"through")
    assert box.read("in/f") == b"through" and (box.root / "in" / "g").is_symlink()
    box.write("dangling", b"made")
    assert box.read("in/new") == b"made"
    assert [e["name"] for e in box.call("files.list", path="abs")["entries"]] == ["f", "g", "new"]


def test_remove_and_move_take_the_link_itself(box: Box, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").touch()
    os.symlink(outside, box.root / "link")
    box.call("files.move", source="link", destination="d/link")
    box.call("files.remove", path="d")
    assert (outside / "f").exists()
    os.symlink(outside, box.root / "link")
    box.call("sandbox.kill")
    assert (outside / "f").exists()


def test_a_link_that_changes_meanwhile(client: Client, box: Box, tmp_path: Path) -> None:
    """A directory is swapped with a link to the outside all the time; nothing outside is ever read."""
    (tmp_path / "f").write_text("secret")
    box.write("/real/f", b"inside")
    stop = threading.Event()

    def swap() -> None:
        os.symlink(tmp_path, box.root / "evil")
        while not stop.is_set():
            os.rename(box.root / "real", box.root / "x")
            os.rename(box.root / "evil", box.root / "real")
            os.rename(box.root / "real", box.root / "evil")
            os.rename(box.root / "x", box.root / "real")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(300):
            try:
                assert box.read("/real/f") == b"inside"
            except CallError as e:
                assert e.sdk_code in ("E4001", "E4002") or "Not a directory" in e.message or "symbolic" in e.message
    finally:
        stop.set()
        thread.join()
