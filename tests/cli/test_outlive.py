"""Nothing of a plugin outlives the host, however the host ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from pathlib import Path

import fakeplugin
import pytest

BIN = os.environ.get("ABX_TEST_BIN", "abx")
LIMIT_S = 20.0


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        return False


def wait_gone(pids: list[int]) -> list[int]:
    """Waits for each by its pidfd, not by the clock; what is left after the limit."""
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            select.select([fd], [], [], LIMIT_S)
        finally:
            os.close(fd)
    return [pid for pid in pids if alive(pid)]


def start(home: Path, tmp_path: Path, mode: str) -> tuple[subprocess.Popen[bytes], list[int]]:
    """abx with a command that stays; the pids of the plugin and of what it started."""
    plugin = tmp_path / "plugin"
    fakeplugin.make(plugin, mode=mode)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ABX_HOME": str(home)}
    subprocess.run([BIN, "provider", "install", str(plugin), "--yes", "--no-verify"], env=env, check=True, capture_output=True)
    host = subprocess.Popen([BIN, "exec", "fake:sb1", "--", "hold"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pids = home / "providers" / "fake" / "data" / "pids"
    assert host.stdout is not None
    ready, _, _ = select.select([host.stdout], [], [], LIMIT_S)
    assert ready, "the command said nothing"
    return host, [int(p) for p in pids.read_text().split()]


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_children_and_setsid_grandchildren_go_with_the_host(home: Path, tmp_path: Path, sig: int) -> None:
    host, pids = start(home, tmp_path, "child")
    assert pids and all(alive(p) for p in pids)
    host.send_signal(sig)
    host.communicate(timeout=LIMIT_S)
    assert wait_gone(pids) == []


def test_a_plugin_that_ignores_everything_goes_too(home: Path, tmp_path: Path) -> None:
    host, pids = start(home, tmp_path, "ignoreterm")
    host.kill()
    host.communicate(timeout=LIMIT_S)
    assert wait_gone(pids) == []


def test_git_goes_with_the_host(home: Path, tmp_path: Path) -> None:
    """A git that hangs in a child of its own session, and a host that is killed meanwhile."""
    told = tmp_path / "pids"
    os.mkfifo(told)
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\ncase \"$*\" in *fetch*) setsid sleep 300 & echo $$ $! >{told}; wait;; *) exit 0;; esac\n")
    git.chmod(0o755)
    env = {"PATH": f"{git.parent}:{os.environ['PATH']}", "HOME": str(tmp_path), "ABX_HOME": str(home)}
    host = subprocess.Popen([BIN, "provider", "install", "https://example.invalid/x.git", "--yes"], env=env,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pids = [int(p) for p in told.read_text().split()]
    assert len(pids) == 2 and all(alive(p) for p in pids)
    host.kill()
    host.wait(LIMIT_S)
    assert wait_gone(pids) == []
    # What the dead one left in staging is swept by the next that changes the store.
    assert os.listdir(home / "providers" / ".staging")
    plugin = fakeplugin.make(tmp_path / "plugin")
    subprocess.run([BIN, "provider", "install", str(plugin), "--yes", "--no-verify"], env=env, capture_output=True, check=True)
    assert not os.listdir(home / "providers" / ".staging")
