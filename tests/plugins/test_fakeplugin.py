"""The misbehaving plugin does what its modes say, or tests of the host would prove nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import fakeplugin
import pytest
from eppclient import LIMIT_S, CallError, Client
from fakeplugin import MODES


def argv(directory: Path) -> list[str]:
    return [sys.executable, "-S", "-E", "-B", str(directory / "plugin.py")]


def client(tmp_path: Path, mode: str, **kw: Any) -> Client:
    return Client(argv(fakeplugin.make(tmp_path / "plugin", mode=mode, **kw)), tmp_path / "data")


def beginning(tmp_path: Path, mode: str, size: int) -> tuple[bytes, bytes, int]:
    """The first bytes after initialize, stderr and the status; the plugin is killed when it said that much."""
    data = tmp_path / "data"
    data.mkdir()
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"config": {"tok": "s3cret"}}}
    with open(tmp_path / "stderr", "wb") as err:
        process = subprocess.Popen(
            argv(fakeplugin.make(tmp_path / "plugin", mode=mode)), cwd=data, env={"ABX_PROVIDER_DATA_DIR": str(data)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
        )  # fmt: skip
    with process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        head = process.stdout.read(size)
        if head:
            process.kill()
        code = process.wait(LIMIT_S)
    return head, (tmp_path / "stderr").read_bytes(), code


def test_every_mode_makes_a_valid_manifest(tmp_path: Path) -> None:
    tomllib = pytest.importorskip("tomllib")
    for mode in MODES:
        manifest = tomllib.loads((fakeplugin.make(tmp_path, mode=mode) / "abx-provider.toml").read_text("utf-8"))
        assert manifest["provider"]["id"] == "fake" and manifest["config"]["fields"]["tok"]["secret"]
    with pytest.raises(ValueError):
        fakeplugin.make(tmp_path, mode="no-such-mode")


def test_overrides(tmp_path: Path) -> None:
    tomllib = pytest.importorskip("tomllib")
    more: dict[str, Any] = {"runtime__call_timeout_ms": 2000, "provider__name": None, "core__inherit": ["sandbox_domain"]}
    fakeplugin.make(tmp_path, plugin_id="other", **more)
    manifest = tomllib.loads((tmp_path / "abx-provider.toml").read_text("utf-8"))
    assert manifest["provider"] == {"id": "other", "version": "1.0.0"}
    assert manifest["runtime"]["call_timeout_ms"] == 2000 and manifest["core"] == {"inherit": ["sandbox_domain"]}


def test_ok_behaves(tmp_path: Path) -> None:
    with client(tmp_path, "ok", **fakeplugin.CONTRACT) as c:
        answer = c.initialize(tok="s3cret")
        assert answer["protocol"] == "epp/1" and answer["operations"]["python"] == ["sandbox.create", "sandbox.get"]
        assert c.call("sandbox.create")["sandbox_id"] == "sb1"
        process = c.call("exec.start", sandbox_id="sb1", cmd="echo", args=["a"])["process_id"]
        assert c.collect(process)[:2] == (b"echo a\n", b"")
        c.call("shutdown")
        assert c.process.wait(LIMIT_S) == 0
    assert (tmp_path / "data" / "calls").read_text().split() == ["initialize", "sandbox.create", "exec.start", "shutdown"]


@pytest.mark.parametrize(
    ("mode", "start"),
    [("banner", b"Welcome"), ("nonjson", b"{not"), ("array", b"[1]"), ("partial", b'{"json'), ("big9", b'{"json'),
     ("nonl20", b"xxx")],
)  # fmt: skip
def test_bad_beginnings(tmp_path: Path, mode: str, start: bytes) -> None:
    assert beginning(tmp_path, mode, len(start))[0] == start


def test_exit3_tells_the_secret(tmp_path: Path) -> None:
    out, err, code = beginning(tmp_path, "exit3", 1)
    assert (out, code) == (b"", 3) and b"\x1b[31m" in err and b"s3cret" in err


def test_flaky_and_slow(tmp_path: Path) -> None:
    with client(tmp_path, "flaky") as c:
        c.initialize()
        for _ in range(2):
            with pytest.raises(CallError) as e:
                c.call("sandbox.get", sandbox_id="sb1")
            assert e.value.code == -32005
        assert c.call("sandbox.get", sandbox_id="sb1")["sandbox_id"] == "sb1"
    with client(tmp_path, "slow 300") as c:
        c.initialize()
        ident = c.begin("sandbox.get", sandbox_id="sb1")
        c.cancel(ident)
        with pytest.raises(CallError):
            c.wait(ident)
    assert (tmp_path / "data" / "cancels").read_text().split() == [str(ident)]


def test_child_names_its_processes(tmp_path: Path) -> None:
    with client(tmp_path, "ok") as c:
        c.initialize(mode="child")
        pids = [int(p) for p in (tmp_path / "data" / "pids").read_text().split()]
        try:
            assert pids[0] == c.process.pid and len({os.getsid(p) for p in pids}) == 2
        finally:
            for pid in pids[1:]:
                os.kill(pid, signal.SIGKILL)
