"""The skeletons of `abx provider new`, each driven over its standard input and output by a small client.

With ABX_TEST_BIN the command writes them; without it the programs are taken as they are in the source."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "api" / "scaffold"
ABX = os.environ.get("ABX_TEST_BIN")
LANGUAGES: dict[str, dict[str, Any]] = {
    "python": {"needs": ["python3"], "files": {"provider.py": "provider.py"}, "command": ["python3", "./provider.py"]},
    "node": {"needs": ["node"], "files": {"provider.mjs": "provider.mjs"}, "command": ["node", "./provider.mjs"]},
    "c": {"needs": ["make", "cc"], "files": {"provider.c": "provider.c", "json.h": "json.h", "Makefile.in": "Makefile"},
          "command": ["./provider"]},
    "shell": {"needs": ["bash", "jq", "flock"], "files": {"provider.sh": "provider.sh"}, "command": ["bash", "./provider.sh"]},
}
LIMIT = 60.0  # seconds until a wait counts as lost


class Error(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(json.dumps(error))
        self.code: int = error["code"]
        self.data: dict[str, Any] = error.get("data") or {}


class Client:
    """EPP/1 as a host speaks it; calls may be sent without waiting for their answer."""

    def __init__(self, command: list[str], data: Path) -> None:
        env = {k: os.environ[k] for k in ("PATH", "HOME", "LANG") if k in os.environ}
        env |= {"ABX_PROVIDER_DATA_DIR": str(data), "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(command, cwd=data, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.ids = itertools.count(1)
        self.answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self.strays: list[Any] = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            waiting = self.answers.pop(message.get("id"), None)
            waiting.put(message) if waiting and message["jsonrpc"] == "2.0" else self.strays.append(message)

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, **params: Any) -> tuple[int, queue.Queue[dict[str, Any]]]:
        number = next(self.ids)
        answer = self.answers[number] = queue.Queue()
        self.write({"id": number, "method": method, "params": params})
        return number, answer

    def call(self, method: str, **params: Any) -> Any:
        message = self.send(method, **params)[1].get(timeout=LIMIT)
        if "error" in message:
            raise Error(message["error"])
        return message["result"]

    def initialize(self) -> Any:
        return self.call("initialize", protocol="epp/1", host={"name": "test", "version": "1", "pid": os.getpid()},
                         provider_id="demo", config={}, core={"http_timeout": 30}, locale="en", data_dir="")

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(LIMIT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.reader.join(LIMIT)
            assert self.process.stdout
            self.process.stdout.close()


class Box:
    """One sandbox of a client."""

    def __init__(self, client: Client, data: Path) -> None:
        self.client = client
        self.id: str = client.call("sandbox.create", template="base", timeout=300, metadata={}, envs={"SAVED": "s v"})["sandbox_id"]
        self.root = data / "sandboxes" / self.id / "root"

    def call(self, method: str, **params: Any) -> Any:
        return self.client.call(method, sandbox_id=self.id, **params)

    def run(self, cmd: str, *args: str, cwd: str = "", timeout: int = 60, env: dict[str, str] | None = None) -> Any:
        return self.call("exec.run", cmd=cmd, args=list(args), cwd=cwd, user="", timeout=timeout, env=env or {})

    def write(self, path: str, data: bytes, **more: Any) -> None:
        assert self.call("files.write", path=path, content_b64=base64.b64encode(data).decode(), **more) == {}

    def read(self, path: str, **more: Any) -> bytes:
        return base64.b64decode(self.call("files.read", path=path, **more)["content_b64"], validate=True)


def until(what: Any) -> None:
    """Asks again until it is so; a pause between two questions, not a wait for time to pass."""
    end = time.monotonic() + LIMIT
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture(scope="session", params=list(LANGUAGES))
def skeleton(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    lang = request.param
    for program in LANGUAGES[lang]["needs"]:
        if not shutil.which(program):
            pytest.skip(f"{program} is not here")
    place = tmp_path_factory.mktemp("skeleton") / lang
    if ABX:
        home = tmp_path_factory.mktemp("home")
        subprocess.run([ABX, "provider", "new", "demo", "--lang", lang, "--dir", str(place)], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "ABX_HOME": str(home)})
    else:
        place.mkdir()
        for name, target in LANGUAGES[lang]["files"].items():
            shutil.copy(SOURCE / name, place / target)
    if lang == "c":
        subprocess.run(["make", "-s", "CFLAGS=-O1 -g -Wall -Wextra -Wshadow -Werror"], cwd=place, check=True)
    return lang, place


def command_of(skeleton: tuple[str, Path]) -> list[str]:
    lang, place = skeleton
    return [str(place / arg[2:]) if arg.startswith("./") else arg for arg in LANGUAGES[lang]["command"]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def client(skeleton: tuple[str, Path], data: Path) -> Iterator[Client]:
    client = Client(command_of(skeleton), data)
    try:
        client.initialize()
        yield client
    finally:
        client.close()
    assert client.strays == []


@pytest.fixture
def box(client: Client, data: Path) -> Box:
    return Box(client, data)


def test_handshake_says_what_the_manifest_says(client: Client, skeleton: tuple[str, Path]) -> None:
    tomllib = pytest.importorskip("tomllib")
    said = client.initialize()
    if ABX:
        text = (skeleton[1] / "abx-provider.toml").read_text()
    else:
        text = (SOURCE / "abx-provider.toml.in").read_text()
        text = text.replace("@COMMAND@", json.dumps(LANGUAGES[skeleton[0]]["command"])).replace("@ID@", "demo").replace("@ENV@", "DEMO")
    manifest = tomllib.loads(text)
    assert manifest["runtime"]["command"] == LANGUAGES[skeleton[0]]["command"]
    assert said["protocol"] == manifest["compat"]["protocol"]
    assert said["plugin"] == {"name": "demo", "version": manifest["provider"]["version"]}
    assert said["features"] == manifest["features"]["supported"]
    assert said["operation_contract_version"] == manifest["operation_contract_version"]
    assert said["operations"] == manifest["operations"]
    assert said["workflow_inputs"] == manifest["workflow"]["inputs"]
    assert said["startup_modes"] == manifest["workflow"]["startups"]


def test_lifecycle(client: Client, skeleton: tuple[str, Path], data: Path) -> None:
    made = [client.call("sandbox.create", template="t\u00e9\u2028\"", timeout=300, metadata={"k": "v\n\U0001f40d"}, envs={}) for _ in range(3)]
    assert made[0]["template"] == "t\u00e9\u2028\"" and made[0]["status"] == "running"
    assert made[0]["metadata"] == {"k": "v\n\U0001f40d"} and made[0]["created_at"].endswith("Z")
    assert client.call("sandbox.get", sandbox_id=made[0]["sandbox_id"]) == made[0]
    by_id = sorted(made, key=lambda r: r["sandbox_id"])
    assert client.call("sandbox.list", limit=100) == {"sandboxes": by_id}
    first = client.call("sandbox.list", limit=2)
    assert first["sandboxes"] == by_id[:2]
    assert client.call("sandbox.list", limit=2, cursor=first["next"]) == {"sandboxes": by_id[2:]}
    assert client.call("sandbox.list", limit=2, status="paused") == {"sandboxes": []}
    other = Client(command_of(skeleton), data)  # another host, or this one later
    try:
        assert other.call("sandbox.get", sandbox_id=made[1]["sandbox_id"]) == made[1]
    finally:
        other.close()
    assert client.call("sandbox.kill", sandbox_id=made[0]["sandbox_id"]) == {}
    assert not (data / "sandboxes" / made[0]["sandbox_id"]).exists()
    for method in ("sandbox.get", "sandbox.kill", "exec.run", "files.read"):
        with pytest.raises(Error) as e:
            client.call(method, sandbox_id=made[0]["sandbox_id"], cmd="true", args=[], path="x")
        assert e.value.code == -32002 and e.value.data["sdk_code"] == "E2009"


@pytest.mark.parametrize("bad", ["", ".", "..", "../sandboxes", "sbx-0123456789abcdef", "sbx-0123456789abcdef\n", "/", "'; exit 1; '"])
def test_an_id_is_no_path(client: Client, bad: str) -> None:
    for method in ("sandbox.get", "sandbox.kill", "files.list"):
        with pytest.raises(Error) as e:
            client.call(method, sandbox_id=bad, path="/")
        assert e.value.code == -32002 and e.value.data["sdk_code"] == "E2009"


@pytest.mark.parametrize("method, code, feature", [
    ("exec.start", -32003, "exec.stream"), ("pty.open", -32003, "pty"), ("process.list", -32003, "process.manage"),
    ("sandbox.pause", -32003, "sandbox.pause"), ("sandbox.set_timeout", -32003, "sandbox.timeout"), ("ports.url", -32003, "ports.url"),
    ("files.watch", -32003, "files.watch"), ("sandbox.connect", -32601, None), ("files.search", -32601, None), ("nonsense", -32601, None),
    ("main", -32601, None), ("toString", -32601, None),
])
def test_methods_it_lacks(client: Client, method: str, code: int, feature: str | None) -> None:
    with pytest.raises(Error) as e:
        client.call(method, sandbox_id="sbx-0123456789abcdef")
    assert e.value.code == code
    assert e.value.data.get("details", {}).get("feature") == feature


def test_commands(box: Box) -> None:
    words = ["a b", "$HOME", "*", "", "'\"\\", "line\nline\t\x01", "\u00e9\u2028\U0001f40d", "-n"]
    assert box.run("printf", "<%s>", *words) == {"stdout": "".join(f"<{w}>" for w in words), "stderr": "", "exit_code": 0}
    assert box.run("sh", "-c", "echo out; echo err >&2; exit 3") == {"stdout": "out\n", "stderr": "err\n", "exit_code": 3}
    assert box.run("sh", "-c", "kill -9 $$")["exit_code"] == 137
    assert box.run("sh", "-c", "cat; echo $SAVED,$GIVEN", env={"GIVEN": "x\ny"})["stdout"] == "s v,x y\n"
    assert box.run("sh", "-c", 'printf %s "$SAVED"', env={"SAVED": "over 'it'\n"})["stdout"] == "over 'it'\n"
    assert "ABX_PROVIDER_DATA_DIR" not in box.run("env")["stdout"]
    assert box.run("printf", "a\\377b\\000c")["stdout"] == "a\ufffdb\0c"
    box.call("files.mkdir", path="/in/there")
    assert box.run("pwd", cwd="/in/there")["stdout"] == f"{box.root}/in/there\n"
    assert box.run("pwd")["stdout"] == f"{box.root}\n"


def test_commands_that_do_not_start(box: Box) -> None:
    missing = box.run("no-such-command")
    assert missing["exit_code"] == 127 and "no-such-command" in missing["stderr"] and missing["stdout"] == ""
    assert box.run("./no-such-file")["exit_code"] == 127
    box.write("plain", b"#!/bin/sh\n", mode=0o644)
    assert box.run("./plain")["exit_code"] == 126
    box.write("script", b"#!/bin/sh\necho $1\n", mode=0o755)
    assert box.run("./script", "hello")["stdout"] == "hello\n"
    with pytest.raises(Error) as e:
        box.run("true", cwd="/not/there")
    assert e.value.code == -32002 and e.value.data["sdk_code"] == "E4001"


def test_a_background_child_does_not_hold_up_the_answer(box: Box) -> None:
    child = int(box.run("sh", "-c", "sleep 600 & echo $!")["stdout"])
    assert not gone(child)
    os.kill(child, signal.SIGKILL)


def test_a_timeout_ends_the_group(box: Box) -> None:
    with pytest.raises(Error) as e:
        box.run("sh", "-c", "sleep 600 & echo $! >child; wait", timeout=1)
    assert e.value.data["sdk_code"] == "E3001"
    until(lambda: gone(int(box.read("child"))))


def test_cancel_and_others_meanwhile(box: Box) -> None:
    number, answer = box.client.send("exec.run", sandbox_id=box.id, cmd="sh", args=["-c", "sleep 600 & echo $! >child; wait"], timeout=0)
    until(lambda: box.run("test", "-s", "child")["exit_code"] == 0)
    assert answer.empty()
    box.client.write({"method": "$/cancel", "params": {"id": number}})
    message = answer.get(timeout=LIMIT)
    assert "error" in message or message["result"]["exit_code"] == 137
    until(lambda: gone(int(box.read("child"))))


@pytest.mark.parametrize("end", ["sandbox.kill", "shutdown", "eof"])
def test_running_commands_end_with_the_sandbox_and_the_provider(skeleton: tuple[str, Path], data: Path, end: str) -> None:
    client = Client(command_of(skeleton), data)
    try:
        box = Box(client, data)
        client.send("exec.run", sandbox_id=box.id, cmd="sh", args=["-c", "sleep 600 & echo $! >child; wait"], timeout=0)
        until(lambda: (box.root / "child").exists() and (box.root / "child").read_text().endswith("\n"))
        child = int((box.root / "child").read_text())
        if end != "eof":
            assert client.call(end, sandbox_id=box.id) == {}
        if end == "shutdown":
            assert client.process.wait(LIMIT) == 0
    finally:
        client.close()
    until(lambda: gone(child))
    assert client.process.returncode == 0


def test_answers_over_the_limit_are_errors(box: Box) -> None:
    with pytest.raises(Error) as e:
        box.run("head", "-c", str(9 * 1024 * 1024), "/dev/zero")
    assert e.value.code == -32000
    (box.root / "big").write_bytes(bytes(7 * 1024 * 1024))
    with pytest.raises(Error) as e:
        box.read("big")
    assert e.value.code == -32000
    assert box.read("big", offset=5, length=1024 * 1024) == bytes(1024 * 1024)
    assert box.run("echo", "still here")["stdout"] == "still here\n"


def test_files(box: Box) -> None:
    data = bytes(range(256)) * 3
    box.write("/deep/er/bin", data, mode=0o640)
    assert box.read("deep/er/bin") == data
    assert box.read("deep/er/bin", offset=10, length=20) == data[10:30]
    assert box.read("deep/er/bin", offset=5000) == b""
    box.write("/deep/er/bin", b"12", append=True)
    assert box.read("/deep//er/./bin") == data + b"12"
    box.write("/deep/er/bin", b"")
    assert box.read("/deep/er/bin") == b""
    stat = box.call("files.stat", path="/deep/er/bin")
    assert stat["mtime"].endswith("Z") and {k: stat[k] for k in ("name", "path", "type", "size", "mode")} == {
        "name": "bin", "path": "/deep/er/bin", "type": "file", "size": 0, "mode": 0o640}
    for name in ("caf\u00e9 \U0001f40d", "new\nline", "tab\there", "-rf", "qu'o\"te", "end\n", "..."):
        box.write(f"/names/{name}", name.encode())
        assert box.read(f"names/{name}") == name.encode()
        assert box.call("files.stat", path=f"names/{name}")["name"] == name
    os.symlink("names", box.root / "link")
    box.call("files.mkdir", path="/empty/dir/")
    box.call("files.mkdir", path="empty/dir")
    names = [e["name"] for e in box.call("files.list", path="names")["entries"]]
    assert set(names) == set(os.listdir(box.root / "names")) and names == sorted(names)
    entries = box.call("files.list", path="/")["entries"]
    assert [(e["name"], e["path"], e["type"]) for e in entries] == [
        ("deep", "/deep", "dir"), ("empty", "/empty", "dir"), ("link", "/link", "symlink"), ("names", "/names", "dir")]
    assert box.call("files.list", path="/empty/dir") == {"entries": []}
    assert box.call("files.stat", path="/")["type"] == "dir"
    assert box.read("link/-rf") == b"-rf"
    assert box.call("files.remove", path="link") == {}
    assert box.call("files.remove", path="/names/") == {}
    assert sorted(p.name for p in box.root.iterdir()) == ["deep", "empty"]


def test_moves(box: Box) -> None:
    box.write("a", b"a")
    box.write("b", b"b")
    assert box.call("files.move", source="a", destination="/new/place/a") == {}
    assert box.read("new/place/a") == b"a" and not (box.root / "a").exists()
    with pytest.raises(Error):
        box.call("files.move", source="b", destination="new/place/a")
    assert box.read("b") == b"b" and box.read("new/place/a") == b"a"
    assert box.call("files.move", source="b", destination="new/place/a", overwrite=True) == {}
    assert box.read("new/place/a") == b"b" and not (box.root / "b").exists()
    box.write("full/x", b"x")
    assert box.call("files.move", source="new", destination="full", overwrite=True) == {}
    assert box.read("full/place/a") == b"b" and not (box.root / "full/x").exists()
    for source, destination in (("full", "full"), ("full", "full/in"), ("full/place", "full"), ("/", "elsewhere"), ("full", "/")):
        with pytest.raises(Error):
            box.call("files.move", source=source, destination=destination, overwrite=True)
    assert box.read("full/place/a") == b"b"


def test_what_is_not_there(box: Box) -> None:
    box.write("file", b"x")
    for method, params in (("files.read", {"path": "no"}), ("files.stat", {"path": "no/no"}), ("files.list", {"path": "no"}),
                           ("files.remove", {"path": "no"}), ("files.move", {"source": "no", "destination": "x"})):
        with pytest.raises(Error) as e:
            box.call(method, **params)
        assert e.value.code == -32002 and e.value.data["sdk_code"] == "E4001", method
    os.mkfifo(box.root / "fifo")
    for method, params in (("files.read", {"path": "/"}), ("files.list", {"path": "file"}), ("files.read", {"path": "fifo"}),
                           ("files.write", {"path": "/", "content_b64": ""}), ("files.write", {"path": "fifo", "content_b64": ""}),
                           ("files.mkdir", {"path": "file"}), ("files.write", {"path": "file/under", "content_b64": ""}),
                           ("files.write", {"path": "x", "content_b64": "!"}), ("files.write", {"path": "x", "content_b64": 7}),
                           ("files.read", {}), ("files.read", {"path": 7}), ("files.read", {"path": ["file", "x"]}),
                           ("files.read", {"path": "a\0b"})):
        with pytest.raises(Error):
            box.call(method, **params)
    assert box.read("file") == b"x"


def test_paths_stay_inside(box: Box, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "dir").mkdir(parents=True)
    (outside / "file").write_text("secret")
    os.symlink(outside, box.root / "out")
    os.symlink(outside / "file", box.root / "file")
    os.symlink(outside / "not-yet", box.root / "dangling")
    os.symlink("../../../../outside", box.root / "relative")
    box.write("mine", b"m")
    beside = box.root.parent / "record.json"
    record = beside.read_text()
    for path in ("../record.json", "/../record.json", "x/../../record.json", str(Path("out/file")), "file", "relative/file", "out/dir/new",
                 "dangling", "relative/new/deep", "out"):
        for method, params in (("files.read", {}), ("files.write", {"content_b64": ""}), ("files.list", {}), ("files.mkdir", {})):
            with pytest.raises(Error) as e:
                box.call(method, path=path, **params)
            assert e.value.data.get("sdk_code") == "E4002" or (path.startswith("x/") and e.value.code == -32002), (method, path, str(e.value))
    for path in ("..", "../record.json", "out/file", "out/dir", "relative/file", "/", "."):
        with pytest.raises(Error):
            box.call("files.remove", path=path)
        with pytest.raises(Error):
            box.call("files.move", source=path, destination="taken")
        with pytest.raises(Error):
            box.call("files.move", source="mine", destination=path, overwrite=True)
    with pytest.raises(Error):
        box.call("files.stat", path="out/file")
    with pytest.raises(Error):
        box.call("files.stat", path="..")
    for cwd in ("..", "out", "relative/dir"):
        with pytest.raises(Error):
            box.run("pwd", cwd=cwd)
    assert box.call("files.stat", path="out")["type"] == "symlink"
    assert box.call("files.move", source="out", destination="moved") == {}
    assert box.call("files.remove", path="moved") == {}
    assert box.call("files.remove", path="file") == {}
    assert sorted(p.relative_to(outside).as_posix() for p in outside.rglob("*")) == ["dir", "file"]
    assert (outside / "file").read_text() == "secret" and beside.read_text() == record and box.read("mine") == b"m"


@pytest.mark.skipif(not ABX, reason="ABX_TEST_BIN is not set")
def test_the_command_refuses(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for args in (["Bad", "--dir", "new"], ["demo", "--dir", "full"], ["demo", "--lang", "cobol", "--dir", "new"]):
        assert ABX
        ended = subprocess.run([ABX, "provider", "new", *args], cwd=tmp_path, env={**os.environ, "ABX_HOME": str(tmp_path / "home")},
                               capture_output=True, text=True)
        assert ended.returncode == 2 and "E8002" in ended.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["full"]
