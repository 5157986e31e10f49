"""The extension itself, without the package above it: every method, the errors, and who may use it when."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fakeplugin
import pytest
from agent_sandbox import _abx
from agent_sandbox.models import errors
from limits import SLOW

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = str(Path(_abx.__file__).parents[1])
TIMEOUT_MS = int(30000 * SLOW)  # only a hang gets there


class Pending:
    """What an op completes, in one thread."""

    def __init__(self, then: Callable[[], None] | None = None) -> None:
        self.ended = 0
        self.value: Any = None
        self.error: BaseException | None = None
        self.then = then

    def done(self) -> bool:
        return self.ended > 0

    def set_result(self, value: Any) -> None:
        self.value = value
        self._end()

    def set_exception(self, error: BaseException) -> None:
        self.error = error
        self._end()

    def _end(self) -> None:
        self.ended += 1
        if self.then:
            self.then()


class World:
    """One client and a way to wait for it."""

    def __init__(self, home: Path, **more: Any) -> None:
        self.home = home
        self.client = _abx.Client(home=str(home), dotenv="", **more)

    def until(self, *pending: Pending) -> None:
        end = time.monotonic() + TIMEOUT_MS / 1000
        while not all(p.done() for p in pending):
            self.client.wait(TIMEOUT_MS)
            assert time.monotonic() < end, "nothing happens"

    def call(self, start: Callable[[Pending], _abx.Op]) -> Any:
        pending = Pending()
        op = start(pending)
        self.until(pending)
        assert op.done
        if pending.error:
            raise pending.error
        return pending.value

    def events(self, op: _abx.Op) -> list[_abx.Event]:
        found: list[_abx.Event] = []
        while (some := op.take()) is not None:
            found += some
            if not some:
                pending = Pending()
                op.notify(pending)
                self.until(pending)
        return found

    def install(self, source: Path | str) -> str:
        plan = self.call(lambda f: self.client.install_plan(f, str(source), consent=2))
        return str(self.call(lambda f: plan.apply(f, 2))["id"])

    def create(self, provider: str, **params: Any) -> _abx.Sandbox:
        made = self.call(lambda f: self.client.create(f, provider, None, None, params))
        assert isinstance(made, _abx.Sandbox)
        return made


@pytest.fixture
def world(home: Path) -> Iterator[World]:
    world = World(home)
    yield world
    world.client.close()


@pytest.fixture
def box(world: World, source: Path) -> _abx.Sandbox:
    return world.create(world.install(source))


def fake(world: World, tmp_path: Path, mode: str = "ok", **more: Any) -> _abx.Sandbox:
    return world.create(world.install(fakeplugin.make(tmp_path / "fake", mode, **more)))


# ---- what there is ---------------------------------------------------------------------------


def test_constants() -> None:
    assert _abx.VERSION and _abx.FEATURES[0] == "sandbox.lifecycle" and len(_abx.FEATURES) == 18
    assert (8004, "FEATURE", "ProviderFeatureNotSupportedError", "ProviderError") in {row[:4] for row in _abx.ERRORS}
    kinds = (_abx.STARTED, _abx.STDOUT, _abx.STDERR, _abx.PTY, _abx.FS, _abx.PROGRESS, _abx.EXIT)
    assert len(set(kinds)) == 7
    assert _abx.features_line(["exec.run", "exec.stream"]) == "exec(run,stream)"


def test_commands_and_files(world: World, box: _abx.Sandbox) -> None:
    call = world.call
    assert call(lambda f: box.exec_run(f, ["sh", "-c", "printf $X; printf é >&2; exit 4"], {"X": "1"}, None, None, 9)) == ("1", "é", 4)
    content = bytes(range(256)) * 300
    assert call(lambda f: box.files_write(f, "a", content, 0o640)) == {}
    assert call(lambda f: box.files_read(f, "a")) == content
    assert call(lambda f: box.files_write(f, "t", "größer")) == {}
    assert call(lambda f: box.files_read(f, "t")) == "größer".encode()
    assert call(lambda f: box.files_stat(f, "a"))["mode"] == 0o640
    call(lambda f: box.files_mkdir(f, "d"))
    call(lambda f: box.files_move(f, "a", "d/b", False))
    assert [e["name"] for e in call(lambda f: box.files_list(f, "d"))] == ["b"]
    call(lambda f: box.files_remove(f, "d"))
    with pytest.raises(errors.FileNotFoundError_):
        call(lambda f: box.files_read(f, "d/b"))
    assert call(lambda f: box.call(f, "files.stat", {"path": "t"}))["name"] == "t"


def test_lifecycle(world: World, box: _abx.Sandbox) -> None:
    call, client = world.call, world.client
    assert box.provider == "local-process" and box.ref == f"local-process:{box.id}"
    assert box.record is not None and box.record["status"] == "running"
    assert box.has_feature("exec.run") and not box.has_feature("storage.mount")
    assert call(lambda f: box.info(f))["sandbox_id"] == box.id
    call(lambda f: box.set_timeout(f, 600))
    other = call(lambda f: client.connect(f, box.ref, None, None, None))
    assert other.id == box.id
    attached = client.attach(box.ref, None, None, None)
    assert attached.record is None and attached.ref == box.ref
    listed = call(lambda f: client.list(f, "local-process", None, None, None, 0))
    assert [r["sandbox_id"] for r in listed] == [box.id]
    assert call(lambda f: client.list(f, "local-process", None, None, "paused", 5)) == []
    call(lambda f: box.kill(f))
    with pytest.raises(errors.SandboxNotFoundError) as caught:
        call(lambda f: other.info(f))
    assert caught.value.provider == "local-process"


def test_processes(world: World, box: _abx.Sandbox) -> None:
    op = box.exec_stream(["cat"], None, None, None, 0)
    while not (some := op.take(1)):
        assert some is not None
        world.client.wait(TIMEOUT_MS)
    assert some[0][0] == _abx.STARTED
    pid = some[0][1]
    assert pid in {str(p["pid"]) for p in world.call(lambda f: box.process_list(f))["processes"]} | {pid}
    world.call(lambda f: box.process_stdin(f, pid, "häl".encode()))
    world.call(lambda f: box.process_stdin(f, pid, b"lo\n"))
    world.call(lambda f: box.process_stdin_end(f, pid))
    events = world.events(op)
    assert "".join(data for kind, data, _ in events if kind == _abx.STDOUT) == "hällo\n"
    assert events[-1][:2] == (_abx.EXIT, 0) and op.result()["exit_code"] == 0
    sleeper = box.exec_stream(["sleep", "100"], None, None, None, 0)
    while not (some := sleeper.take()):
        world.client.wait(TIMEOUT_MS)
    world.call(lambda f: box.process_signal(f, some[0][1], signal.SIGTERM))
    assert world.events(sleeper)[-1][0] == _abx.EXIT
    with pytest.raises(errors.ProviderError):
        world.call(lambda f: box.process_kill(f, "no-such"))


def test_stream_text(world: World, tmp_path: Path) -> None:
    events = world.events(fake(world, tmp_path, "splitutf8").exec_stream(["x"], None, None, None, 0))
    parts = [e for e in events if e[0] == _abx.STDOUT]
    assert "".join(data for _, data, _ in parts) == "café 😀\n"
    assert all(raw is None for _, _, raw in parts)


def test_stream_bytes(world: World, box: _abx.Sandbox) -> None:
    op = box.exec_stream(["sh", "-c", r"printf 'a\377b'; printf '\303' >&2"], None, None, None, 0)
    events = world.events(op)
    out = b"".join(raw if raw is not None else data.encode() for kind, data, raw in events if kind == _abx.STDOUT)
    assert out == b"a\xffb"
    assert [e[1:] for e in events if e[0] == _abx.STDERR] == [("\N{REPLACEMENT CHARACTER}", b"\xc3")]
    assert events[-1][0] == _abx.EXIT  # what was kept of a character comes before the end


def test_watch(world: World, tmp_path: Path, home: Path) -> None:
    box = fake(world, tmp_path, features=[*fakeplugin.FEATURES, "files.watch"])
    op = box.call(None, "files.watch", {"path": "/"})
    events: list[_abx.Event] = []
    while len(events) < 3:
        some = op.take()
        assert some is not None
        events += some
        world.client.wait(TIMEOUT_MS if not some else 0)
    assert events == [(_abx.STARTED, "w1", None), (_abx.FS, {"type": "create", "path": "early"}, None),
                      (_abx.FS, {"type": "modify", "path": "/f"}, None)]
    op.cancel()
    world.call(lambda f: box.files_stat(f, "x"))
    assert "files.unwatch" in (home / "providers" / "fake" / "data" / "calls").read_text().splitlines()


def test_ports(world: World, tmp_path: Path) -> None:
    assert world.call(lambda f: fake(world, tmp_path).ports_url(f, 80))["url"] == "http://127.0.0.1:80"


def test_manage(world: World, home: Path, source: Path, tmp_path: Path) -> None:
    client, call = world.client, world.call
    plan = call(lambda f: client.install_plan(f, str(source), consent=2))
    assert plan.needs_consent and not plan.pinned and plan.previous is None and plan.consent["id"] == "local-process"
    receipt = call(lambda f: plan.apply(f, 2))
    assert receipt["tree_sha256"] == _abx.digest_dir(str(source))
    assert {r["id"] for r in client.provider_list()} == {"alicloud-express", "local-process"}
    assert client.provider_info("local-process")["receipt"] == receipt
    assert client.provider_default() == "alicloud-express"
    client.provider_set_default("local-process")
    assert _abx.Client(home=str(home), dotenv="", environ={}).provider_default() == "local-process"
    checks = call(lambda f: client.doctor(f, "local-process", None, True))
    assert checks["ok"] and {c["name"] for c in checks["checks"]}
    with pytest.raises(errors.ProviderInstallError, match="local directory"):
        call(lambda f: client.update_plan(f, "local-process"))
    report, update = call(lambda f: client.update_plan(f, "alicloud-express"))
    assert report["status"] == "bundled" and update is None
    assert any(row["key"] == "http_timeout" for row in client.config_explain(None))
    assert client.config_set("http_timeout", "7").endswith("config.toml")
    assert _abx.Client(home=str(home), dotenv="", environ={}).config_get("http_timeout")["value"] == 7
    assert _abx.read_receipt(str(home), "local-process") == receipt
    assert _abx.read_receipt(str(home), "other") is None
    _abx.verify_integrity(str(home), "local-process")
    (home / "providers" / "local-process" / "provider.py").write_text("changed\n")
    with pytest.raises(errors.ProviderIntegrityError):
        _abx.verify_integrity(str(home), "local-process")
    assert client.uninstall("local-process", True)["purged"] is True
    manifest = _abx.manifest_describe(str(source))
    assert manifest["id"] == "local-process" and "exec.run" in manifest["features"] and manifest["security"]["spawns_processes"]
    with pytest.raises(errors.ProviderManifestError):
        _abx.manifest_describe(str(tmp_path))
    assert _abx.parse_toml(b'a = 1\n[b]\nc = "d"\n') == {"a": 1, "b": {"c": "d"}}
    with pytest.raises(errors.ProviderManifestError, match="line 2"):
        _abx.parse_toml(b"a = 1\nb = \n")


def test_log(home: Path, source: Path) -> None:
    lines: list[tuple[int, str, str]] = []
    world = World(home, log=lambda *line: lines.append(line), log_level=4)
    world.create(world.install(source))
    world.client.close()
    assert any("sandbox.create" in text for _, _, text in lines)
    assert all(0 <= level <= 4 for level, _, _ in lines)


# ---- values -------------------------------------------------------------------------------------


def echo(world: World, value: Any) -> Any:
    """What an in-process provider gets for it, and gives back."""
    if not any(row["id"] == "echo" for row in world.client.provider_list()):
        register(world, "echo", lambda call, method, params: call.finish(answer(method, params)))
    return world.call(lambda f: world.create("echo").call(f, "process.list", {"v": value}))["v"]


def answer(method: str, params: dict[str, Any]) -> Any:
    return {"initialize": {"protocol": "epp/1", "plugin": {"name": "x", "version": "1"}},
            "sandbox.create": {"sandbox_id": "s1"}}.get(method, params)


def register(world: World, name: str, handler: Callable[[_abx.Call, str, dict[str, Any]], None],
             close: Callable[[], None] | None = None, features: tuple[str, ...] = _abx.FEATURES) -> None:
    manifest = {"manifest_version": 1, "provider": {"id": name, "name": name, "version": "1.0.0"},
                "compat": {"protocol": "epp/1"}, "runtime": {"kind": "python"},
                "features": {"supported": [f for f in features if f not in ("storage.mount", "network.vpc")]},
                "security": {"network": [], "filesystem": [], "spawns_processes": False}}
    world.client.add_provider(manifest, handler, close)


@pytest.mark.parametrize("value", [None, True, False, 0, -(2**63), 2**64 - 1, 1.5, "", "a\0b", "\U0001f600", b"", b"\0\xff",
                                   [], [[1], {"a": [None]}], {"b": 1, "a": 2}])
def test_values_come_back(world: World, value: Any) -> None:
    back = echo(world, value)
    assert back == value and type(back) is type(value)
    if isinstance(value, dict):
        assert list(back) == list(value)


class Odd:
    pass


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(("value", "error"), [
    ("\ud800", ValueError), (float("nan"), ValueError), (float("inf"), ValueError), (2**64, ValueError), (-(2**63) - 1, ValueError),
    (Odd(), TypeError), ({1: 2}, TypeError), ({"a\0": 1}, ValueError), (nested(101), ValueError), (circle(), ValueError),
    (bytearray(b"x"), TypeError), ({1, 2}, TypeError), ({"k": {"l": Odd()}}, TypeError), (1j, TypeError)])
def test_values_that_cannot_go(world: World, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        echo(world, value)


def test_a_tuple_becomes_a_list(world: World) -> None:
    assert echo(world, (1, (2,))) == [1, [2]]


@pytest.mark.parametrize("start", [
    lambda b: b.exec_run(None, "ls", None, None, None, 0),
    lambda b: b.exec_run(None, ["ls", 1], None, None, None, 0),
    lambda b: b.exec_run(None, ["ls"], {"A": 1}, None, None, 0),
    lambda b: b.exec_run(None, ["ls"], None, None, None, "5"),
    lambda b: b.exec_run(None, ["ls"]),
    lambda b: b.files_read(None, b"path"),
    lambda b: b.files_read(None, "p", path="p"),
    lambda b: b.files_read(None, other="p"),
    lambda b: b.files_write(None, "p", bytearray(b"x")),
    lambda b: b.process_stdin(None, "1", "text"),
    lambda b: b.call(None, "process.list", [1]),
    lambda b: _abx.Op(),
    lambda b: _abx.Sandbox()])
def test_wrong_types(world: World, tmp_path: Path, start: Callable[[Any], Any]) -> None:
    box = fake(world, tmp_path)
    with pytest.raises(TypeError):
        start(box)


@pytest.mark.parametrize("start", [
    lambda b: b.files_read(None, "a\0b"),
    lambda b: b.files_read(None, "\ud800"),
    lambda b: b.files_write(None, "p", "\ud800"),
    lambda b: b.ports_url(None, 2**40)])
def test_wrong_values(world: World, tmp_path: Path, start: Callable[[Any], Any]) -> None:
    box = fake(world, tmp_path)
    with pytest.raises(ValueError):
        start(box)


def test_core_settings_reach_who_inherits(world: World) -> None:
    seen: list[Any] = []

    def handler(call: _abx.Call, method: str, params: dict[str, Any]) -> None:
        if method == "initialize":
            seen.append(params["core"].get("sandbox_api_key"))
        call.finish(answer(method, params))

    manifest = {"manifest_version": 1, "provider": {"id": "heir", "name": "h", "version": "1.0.0"}, "compat": {"protocol": "epp/1"},
                "runtime": {"kind": "python"}, "features": {"supported": ["sandbox.lifecycle"]}, "core": {"inherit": ["sandbox_api_key"]},
                "security": {"network": [], "filesystem": [], "spawns_processes": False}}
    world.client.add_provider(manifest, handler)
    register(world, "stranger", handler)
    for provider in ("heir", "stranger"):
        pending = Pending()
        op = world.client.create(pending, provider, None, {"sandbox_api_key": "k-123456"}, {})
        world.until(pending)
        assert op.done
    assert seen == ["k-123456", None]
    with pytest.raises(errors.ProviderConfigError):
        world.client.create(Pending(), "heir", None, {"openai_api_key": "k"}, {})
    with pytest.raises(TypeError):
        world.client.create(Pending(), "heir", None, {"sandbox_api_key": 1}, {})  # type: ignore[dict-item]


# ---- ends -----------------------------------------------------------------------------------------


def test_errors_at_the_start_are_raised_there(world: World, tmp_path: Path) -> None:
    box = fake(world, tmp_path, features=["sandbox.lifecycle"])
    with pytest.raises(errors.ProviderFeatureNotSupportedError):
        box.exec_run(Pending(), ["ls"], None, None, None, 0)
    with pytest.raises(errors.ProviderNotFoundError):
        world.client.create(Pending(), "no-such", None, None, {})
    with pytest.raises(errors.ProviderConfigError):
        box.call(None, "no.such.method")
    with pytest.raises(TypeError, match="parameter 'tmplate'"):
        world.client.create(Pending(), "fake", None, None, {"tmplate": "x"})


def test_errors_later_complete_the_future(world: World, tmp_path: Path) -> None:
    box = fake(world, tmp_path, "crashget")
    pending = Pending()
    op = box.info(pending)
    with pytest.raises(RuntimeError):
        op.result()
    world.until(pending)
    assert isinstance(pending.error, errors.ProviderProcessError)
    with pytest.raises(errors.ProviderProcessError):
        op.result()


def test_cancel(world: World, tmp_path: Path, home: Path) -> None:
    box = fake(world, tmp_path, "slow 60")
    pending = Pending()
    op = box.exec_run(pending, ["x"], None, None, None, 0)
    op.cancel()
    op.cancel()
    world.until(pending)
    assert isinstance(pending.error, errors.SandboxError) and "ancelled" in str(pending.error)
    assert op.done


def test_a_dropped_op_is_cancelled(world: World, tmp_path: Path, home: Path) -> None:
    box = fake(world, tmp_path, "slow 60")
    box.info(Pending())  # nobody holds it
    assert world.call(lambda f: box.files_stat(f, "x"))["name"] == "f"
    assert (home / "providers" / "fake" / "data" / "cancels").read_text()


def test_a_done_future_is_left_alone(world: World, tmp_path: Path) -> None:
    box = fake(world, tmp_path)
    pending = Pending()
    op = box.info(pending)
    pending.set_result("mine")
    while not op.done:
        world.client.wait(TIMEOUT_MS)
    assert (pending.value, pending.ended) == ("mine", 1)
    assert op.result()["sandbox_id"] == box.id


def test_close_ends_what_runs(world: World, tmp_path: Path) -> None:
    box = fake(world, tmp_path, "slow 60")
    pending = Pending()
    op = box.exec_run(pending, ["x"], None, None, None, 0)
    assert world.client.close() == 0
    assert pending.ended == 1 and isinstance(pending.error, errors.SandboxError)
    assert op.done and box.id and world.client.close() == 0
    for use in (lambda: box.info(Pending()), lambda: world.client.run(), lambda: world.client.fileno(), lambda: world.client.provider_list()):
        with pytest.raises(RuntimeError, match="closed"):
            use()


def test_close_of_a_sandbox_waits_for_its_plugin(world: World, tmp_path: Path, home: Path) -> None:
    box = fake(world, tmp_path)
    other = world.client.attach(box.ref, None, None, None)
    pid = int((home / "providers" / "fake" / "data" / "pids").read_text().splitlines()[-1])
    world.call(lambda f: box.close(f))
    os.kill(pid, 0)  # the other handle still holds it
    assert world.call(lambda f: other.info(f))["sandbox_id"] == other.id
    world.call(lambda f: other.close(f))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(errors.ProviderError):
        other.info(Pending())


# ---- callbacks ----------------------------------------------------------------------------------------


def test_a_callback_may_do_anything(world: World, tmp_path: Path) -> None:
    box = fake(world, tmp_path)
    kept: list[Any] = [box]
    last = Pending()

    def again() -> None:
        kept.append(kept[0].info(last))  # starts one
        kept[1].cancel()                 # cancels another
        del kept[1]                      # and drops it
        world.client.run()               # a turn inside of a turn

    first = Pending(again)
    kept.append(box.exec_run(Pending(), ["x"], None, None, None, 0))
    op = box.info(first)
    world.until(first, last)
    assert first.ended == last.ended == 1 and op.done


def test_a_callback_may_drop_everything(home: Path, tmp_path: Path) -> None:
    world = World(home)
    kept: dict[str, Any] = {"box": fake(world, tmp_path), "client": world.client}
    pending = Pending(kept.clear)
    kept["op"] = kept["box"].info(pending)
    world.until(pending)
    assert not kept
    world.client.close()


def test_what_a_callback_raises_is_told(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: told.append((u.exc_type, u.exc_value)))
    box = fake(world, tmp_path)

    def fail() -> None:
        raise ZeroDivisionError("x")

    op = box.info(pending := Pending(fail))
    world.until(pending)
    assert told[0][0] is ZeroDivisionError and op.done
    told.clear()
    del op


def test_an_interrupt_of_a_callback_leaves_through_the_loop(world: World, tmp_path: Path) -> None:
    box = fake(world, tmp_path)

    def stop() -> None:
        raise KeyboardInterrupt

    pending = Pending(stop)
    op = box.info(pending)
    with pytest.raises(KeyboardInterrupt):
        world.until(pending)
    assert op.done and world.call(lambda f: box.info(f))


def test_a_signal_ends_the_wait(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise InterruptedError

    old = signal.signal(signal.SIGUSR1, stop)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        with pytest.raises(InterruptedError):
            while True:
                world.client.wait(TIMEOUT_MS)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, old)


# ---- providers in Python ------------------------------------------------------------------------------


def test_contents_are_not_copied_on_their_way(world: World) -> None:
    """What an in-process provider answers comes out as the very object; a plugin's is made once."""
    content = b"x" * 100_000

    def handler(call: _abx.Call, method: str, params: dict[str, Any]) -> None:
        answers = {"sandbox.create": {"sandbox_id": "s1"}, "files.read": {"content_b64": content}}
        call.finish(answers.get(method, {"protocol": "epp/1", "features": []}))

    register(world, "mine", handler)
    sandbox = world.call(lambda p: world.client.create(p, "mine", None, None, {}))
    before = sys.getrefcount(content)
    read = world.call(lambda p: sandbox.files_read(p, "/f"))
    assert read is content
    del read
    gc.collect()
    assert sys.getrefcount(content) == before


def test_in_process_provider(world: World) -> None:
    calls: list[str] = []
    closed: list[int] = []
    held: dict[str, _abx.Call] = {}

    def handler(call: _abx.Call, method: str, params: dict[str, Any]) -> None:
        calls.append(method)
        if method == "exec.start":
            call.emit(_abx.STARTED, "p1")
            call.emit(_abx.STDOUT, b"out\xff")
            call.emit(_abx.STDERR, b"err")
            call.emit(_abx.EXIT, 3)
            call.finish({"exit_code": 3})
            call.finish("ignored")
        elif method == "files.read":
            call.finish({"content_b64": b"\0\1"})
        elif method == "exec.run":
            held[method] = call  # ended later
        elif method == "sandbox.get":
            call.fail_rpc(-32002, "gone")
        elif method == "files.stat":
            call.fail(4001, "no such file", "look elsewhere")
        elif method == "files.list":
            raise ZeroDivisionError("oops")
        elif method == "files.mkdir":
            pass  # dropped without an answer
        else:
            call.finish(answer(method, params))

    register(world, "mine", handler, lambda: closed.append(1))
    with pytest.raises(errors.ProviderConflictError):
        register(world, "mine", handler)
    box = world.create("mine")
    assert world.client.provider_info("mine")["kind"] == "python"
    events = world.events(box.exec_stream(["x"], None, None, None, 0))
    assert [e[0] for e in events] == [_abx.STARTED, _abx.STDOUT, _abx.STDERR, _abx.EXIT]
    assert events[1] == (_abx.STDOUT, "out\N{REPLACEMENT CHARACTER}", b"out\xff")
    assert world.call(lambda f: box.files_read(f, "x")) == b"\0\1"
    op = box.exec_run(pending := Pending(), ["x"], None, None, None, 0)
    held["exec.run"].finish({"stdout": "o", "exit_code": 0})
    assert held["exec.run"].ended
    world.until(pending)
    assert pending.value == ("o", "", 0) and op.done
    with pytest.raises(errors.SandboxNotFoundError):
        world.call(lambda f: box.info(f))
    with pytest.raises(errors.FileNotFoundError_) as caught:
        world.call(lambda f: box.files_stat(f, "x"))
    assert caught.value.suggestion == "look elsewhere" and caught.value.provider == "mine"
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with pytest.raises(errors.ProviderError, match="oops"):
            world.call(lambda f: box.files_list(f, "x"))
    finally:
        sys.unraisablehook = hook
    with pytest.raises(errors.ProviderError, match="dropped"):
        world.call(lambda f: box.files_mkdir(f, "x"))
    world.call(lambda f: box.close(f))
    assert closed == [1] and calls[0] == "initialize"


def test_a_cancelled_call_is_told(world: World) -> None:
    told: list[str] = []
    held: list[_abx.Call] = []

    def handler(call: _abx.Call, method: str, params: dict[str, Any]) -> None:
        if method != "exec.run":
            return call.finish(answer(method, params))
        call.on_cancel = lambda: told.append(method)
        held.append(call)
        return None

    register(world, "mine", handler)
    box = world.create("mine")
    op = box.exec_run(pending := Pending(), ["x"], None, None, None, 0)
    op.cancel()
    world.until(pending)
    assert told == ["exec.run"] and held[0].ended
    held[0].finish({"exit_code": 0})  # too late, ignored
    world.call(lambda f: box.call(f, "process.list"))
    op = box.exec_run(pending, ["x"], None, None, None, 0)
    world.client.close()
    assert told == ["exec.run"] * 2


def test_a_sandbox_that_comes_late_is_killed(world: World) -> None:
    told: list[str] = []
    held: list[_abx.Call] = []
    calls: list[tuple[str, Any]] = []

    def handler(call: _abx.Call, method: str, params: dict[str, Any]) -> None:
        calls.append((method, params.get("sandbox_id")))
        if method != "sandbox.create":
            return call.finish(answer(method, params))
        call.on_cancel = lambda: told.append(method)
        held.append(call)
        return None

    register(world, "mine", handler)
    op = world.client.create(pending := Pending(), "mine", None, None, {})
    while not held:
        world.client.wait(TIMEOUT_MS)
    op.cancel()
    world.until(pending)
    assert isinstance(pending.error, errors.SandboxError) and told == ["sandbox.create"] and not held[0].ended
    held[0].finish({"sandbox_id": "late"})
    while calls[-1] != ("sandbox.kill", "late"):
        world.client.wait(TIMEOUT_MS)


# ---- threads and processes -----------------------------------------------------------------------------


def test_wakeup_from_another_thread(world: World) -> None:
    timer = threading.Timer(0.05, world.client.wakeup)
    timer.start()
    world.client.wait(TIMEOUT_MS)
    timer.join()


def test_another_thread_is_refused(world: World, tmp_path: Path) -> None:
    box = fake(world, tmp_path, "slow 60")
    pending = Pending()
    op = box.exec_run(pending, ["x"], None, None, None, 0)
    found: list[Any] = []
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        while not pending.done():
            world.client.wait(TIMEOUT_MS)

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    while not found:
        try:
            world.client.provider_default()
        except RuntimeError as error:
            found.append(str(error))
    assert "another thread" in found[0]
    # What is dropped or cancelled meanwhile is done by the thread that is inside.
    extra = world_op(box)
    del extra
    op.cancel()
    thread.join()
    assert isinstance(pending.error, errors.SandboxError)


def world_op(box: _abx.Sandbox) -> Any:
    try:
        return box.info(Pending())
    except RuntimeError:
        return None


def test_dropped_while_another_thread_waits(world: World, tmp_path: Path) -> None:
    box = fake(world, tmp_path, "slow 60")
    stop = Pending()
    op = box.exec_run(stop, ["x"], None, None, None, 0)
    dropped = [box.info(Pending()) for _ in range(50)]
    others = [world.client.attach(box.ref, None, None, None) for _ in range(50)]

    def wait() -> None:
        while not stop.done():
            world.client.wait(TIMEOUT_MS)

    thread = threading.Thread(target=wait)
    thread.start()
    while dropped or others:
        if dropped:
            dropped.pop()
        if others:
            others.pop()
    op.cancel()
    thread.join()
    assert isinstance(stop.error, errors.SandboxError)


def test_fork(world: World, tmp_path: Path) -> None:
    box = fake(world, tmp_path)
    op = box.exec_stream(["hold"], None, None, None, 0)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            refused = 0
            for use in (lambda: box.info(Pending()), lambda: world.client.run(), lambda: op.take(), lambda: op.cancel(),
                        lambda: world.client.close(), lambda: box.record, lambda: world.client.wakeup(), lambda: op.result()):
                try:
                    use()
                except RuntimeError as error:
                    refused += "another process" in str(error)
            del op, box
            world.client = None  # type: ignore[assignment]
            gc.collect()
            fresh = _abx.Client(home=str(world.home), dotenv="", environ={})
            status = 0 if refused == 8 and fresh.provider_default() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert world.call(lambda f: box.info(f))["sandbox_id"] == box.id  # the parent's plugin lives
    op.cancel()


def run_python(code: str, home: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ABX_HOME": str(home), "PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True,
                          timeout=60 * SLOW, check=False, **more)


@pytest.mark.parametrize("end", ["", "client.close()", "sys.exit(0)", "import _abx_none", "os._exit(0)", "os.kill(os.getpid(), 9)",
                                 "import threading; threading.Thread(target=client.wait, daemon=True).start()"])
def test_the_end_of_the_interpreter(world: World, tmp_path: Path, home: Path, end: str) -> None:
    """However it ends, no process is left: the fixture looks."""
    fake(world, tmp_path, "child")
    world.client.close()
    done = run_python(f"""
        import os, sys
        from agent_sandbox import _abx
        class P:
            ended = False
            def done(self): return self.ended
            def set_result(self, value): self.value, self.ended = value, True
            def set_exception(self, error): raise error
        client = _abx.Client(log=lambda *a: None, log_level=4)
        pending = P()
        op = client.create(pending, "fake", None, None, {{}})
        while not pending.ended:
            client.wait()
        box = pending.value
        stream = box.exec_stream(["hold"], None, None, None, 0)
        client.run()
        keep = [client, box, op, stream, pending]
        keep.append(keep)
        client_again = _abx.Client()
        print("reached", flush=True)
        {end}
    """, home)
    assert done.stdout == "reached\n", done.stderr
    assert "unraisable" not in done.stderr and "Fatal" not in done.stderr, done.stderr
    assert done.returncode in (0, 1, -9), done.stderr


def test_sub_interpreters_are_refused(home: Path) -> None:
    done = run_python("""
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        import sys
        id = interpreters.create()
        code = f'''
        import sys
        sys.path[:] = {sys.path!r}
        try:
            import agent_sandbox._abx
        except ImportError as error:
            assert "main interpreter" in str(error) or "subinterpreter" in str(error), error
        else:
            raise SystemExit("imported")
        '''
        import textwrap
        failed = interpreters.run_string(id, textwrap.dedent(code))
        assert failed is None, failed
        print("ok")
    """, home)
    assert done.stdout == "ok\n", done.stderr


# ---- nothing is left ---------------------------------------------------------------------------------------


def test_nothing_grows(world: World, tmp_path: Path) -> None:
    box = fake(world, tmp_path)
    data = b"x" * 5000

    def some(n: int) -> None:
        for _ in range(n):
            world.call(lambda f: box.exec_run(f, ["x"], {"A": "b"}, None, None, 0))
            world.call(lambda f: box.files_write(f, "p", data))
            world.call(lambda f: box.files_read(f, "p"))
            world.events(box.exec_stream(["x"], None, None, None, 0))
            with pytest.raises(TypeError):
                box.files_write(Pending(), "p", 1)  # type: ignore[arg-type]

    some(20)
    gc.collect()
    before = sys.getrefcount(data), sys.getrefcount(world.client), sys.getrefcount(None)
    tracemalloc.start()
    try:
        some(20)
        gc.collect()
        first = tracemalloc.get_traced_memory()[0]
        some(250)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - first
    finally:
        tracemalloc.stop()
    after = sys.getrefcount(data), sys.getrefcount(world.client), sys.getrefcount(None)
    assert grown < 20000, grown
    assert after[:2] == before[:2]
    assert after[2] - before[2] < 500


def test_cycles_are_collected(home: Path) -> None:
    world = World(home)
    gone: list[int] = []

    class Watched:
        def __del__(self) -> None:
            gone.append(1)

    watched = Watched()
    client = world.client
    register(world, "mine", lambda call, method, params, keep=(watched, client): call.finish(answer(method, params)))  # type: ignore[misc]
    box = world.create("mine")
    pending = Pending()
    pending.value = [box.exec_stream(["x"], None, None, None, 0), pending]
    del world, client, box, pending, watched
    gc.collect()
    assert gone == [1]
