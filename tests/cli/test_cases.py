"""Troubles that hosts of plugins meet in the field, each from the command down to a real process."""

from __future__ import annotations

import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakeplugin
import pytest
from command import Abx
from limits import TIMEOUT

EXAMPLE = Path(os.environ.get("ABX_TEST_SOURCE", Path(__file__).resolve().parents[2])) / "examples" / "providers" / "local-process"
FLAGS = ["--yes", "--no-verify"]


def gone(pid: int) -> bool:
    """Ended now, without waiting; a zombie of somebody else's is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def patch(plugin: Path, *changes: tuple[str, str]) -> None:
    """Changes the program of a fake plugin; each text must be there once."""
    program = plugin / "plugin.py"
    text = program.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    program.write_text(text, encoding="utf-8")


def limited(abx: Abx, args: list[str], before: Callable[[], object], **more: Any) -> subprocess.CompletedProcess[str]:
    """The command after `before` ran in its process."""
    return subprocess.run([str(abx.binary), *args], env=abx.env, cwd=abx.cwd, capture_output=True, text=True, timeout=TIMEOUT,
                          preexec_fn=before, check=False, **more)


@pytest.fixture
def fake(abx: Abx, tmp_path: Path) -> Callable[..., Path]:
    """Installs the fake plugin, changed or not; its source directory."""

    def install(mode: str = "ok", *changes: tuple[str, str], **manifest: Any) -> Path:
        plugin = fakeplugin.make(tmp_path / "plugin", mode=mode, **manifest)
        patch(plugin, *changes)
        abx("provider", "install", str(plugin), *FLAGS, "--force")
        return plugin

    return install


@pytest.fixture
def pids(home: Path) -> Callable[[], list[int]]:
    """Of the plugin and of what it started."""
    return lambda: [int(p) for p in (home / "providers" / "fake" / "data" / "pids").read_text().split()]


@pytest.fixture
def ref(abx: Abx) -> str:
    """A sandbox of the example provider."""
    abx("provider", "install", str(EXAMPLE), *FLAGS)
    return abx("create", "--provider", "local-process").stdout.strip()


# ---- birth and death --------------------------------------------------------------------------------


def test_a_call_that_times_out_takes_the_grandchildren(abx: Abx, fake: Any, pids: Any) -> None:
    fake("child", runtime__call_timeout_ms=400)
    assert abx.run("exec", "fake:sb1", "--timeout", "1", "--", "hold").returncode == 5
    assert len(pids()) == 3 and all(map(gone, pids()))


def test_a_child_that_holds_the_pipes_of_a_crashed_plugin_goes(abx: Abx, fake: Any, pids: Any) -> None:
    fake("holdpipes", runtime__startup_timeout_ms=60000)
    result = abx.run("info", "fake:sb1")
    assert (result.returncode, result.stderr[:7]) == (1, "[E8021]")
    assert len(pids()) == 2 and all(map(gone, pids()))


def test_an_exit_at_the_start_does_not_wait_for_the_timeout(abx: Abx, fake: Any) -> None:
    fake("exit3", runtime__startup_timeout_ms=60000)
    began = time.monotonic()
    result = abx.run("info", "fake:sb1")
    assert time.monotonic() - began < 20
    assert "(code 3)" in result.stderr and "Boom" in result.stderr


def test_the_last_words_of_a_crash_are_never_lost(abx: Abx, fake: Any) -> None:
    words = 'for i in range(3000): os.write(2, b"line %d\\n" % i)\n    os.write(2, b"the last words\\n")\n    os._exit(3)'
    fake("ok", ("    result = handshake()\n", f"    {words}\n"))
    for _ in range(8):
        result = abx.run("info", "fake:sb1")
        assert result.returncode == 1 and "(code 3)" in result.stderr
        assert "the last words" in result.stderr and "already closed" not in result.stderr


def test_a_plugin_inherits_no_descriptor(abx: Abx, fake: Any, home: Path) -> None:
    fake("ok", ("    result = handshake()\n", '    note("fds", " ".join(os.listdir("/proc/self/fd")))\n    result = handshake()\n'))
    reader, writer = os.pipe()
    try:
        process = abx.popen(["info", "fake:sb1"], pass_fds=(reader, writer), stdout=subprocess.DEVNULL)
        assert process.wait(TIMEOUT) == 0
    finally:
        os.close(reader)
        os.close(writer)
    fds = (home / "providers" / "fake" / "data" / "fds").read_text().split()
    assert len(fds) == 4, "three and the directory that is listed"


LONG_LIVED = """
import ctypes, os, sys
p, lib = ctypes.c_void_p, ctypes.CDLL(sys.argv[1])
for name in ("abx_op_take_sandbox", "abx_sandbox_unref", "abx_op_unref", "abx_client_unref"):
    getattr(lib, name).restype, getattr(lib, name).argtypes = p, [p]
lib.abx_client_close.argtypes = lib.abx_op_wait.argtypes = [p, ctypes.c_int]
lib.abx_sandbox_connect_start.argtypes = [p, p, ctypes.c_char_p, p, p]
counts = []
for _ in range(int(sys.argv[2])):
    client, op = p(), p()
    assert lib.abx_client_new(ctypes.byref(client), None, None) == 0
    assert lib.abx_sandbox_connect_start(ctypes.byref(op), client, b"fake:sb1", None, None) == 0
    lib.abx_op_wait(op, 30000)
    sandbox = lib.abx_op_take_sandbox(op)
    assert sandbox
    lib.abx_sandbox_unref(sandbox)
    lib.abx_op_unref(op)
    lib.abx_client_close(client, 5000)
    lib.abx_client_unref(client)
    children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    counts.append((len(children), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))))
print(counts[0], len(set(counts)))
"""


def test_a_long_lived_host_keeps_no_zombie_descriptor_or_thread(abx: Abx, fake: Any, pids: Any) -> None:
    fake("ok")
    library = Path(os.environ["ABX_TEST_BUILD"]) / "libabx.so"
    done = subprocess.run([sys.executable, "-c", LONG_LIVED, str(library), "30"], env=abx.env, cwd=abx.cwd, capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(0, ") and done.stdout.endswith(" 1\n"), done.stdout
    assert len(pids()) == 30 and all(map(gone, pids()))


def test_many_commands_leave_no_process(abx: Abx, fake: Any, pids: Any) -> None:
    fake("ok")
    for _ in range(20):
        assert abx.run("info", "fake:sb1").returncode == 0
    assert len(pids()) == 20 and all(map(gone, pids()))


# ---- the protocol -----------------------------------------------------------------------------------


def test_both_sides_write_at_once(abx: Abx, fake: Any) -> None:
    """The plugin reads nothing until its 13 MB are written; the host has 4 MB for it meanwhile."""
    fake("spew 200:65000")
    result = abx.run("exec", "fake:sb1", "--stdin", "--", "x", input="i" * (4 << 20))
    assert (result.returncode, result.stderr, len(result.stdout)) == (0, "", 200 * 65000)


def test_long_lines_are_read(abx: Abx, fake: Any) -> None:
    fake("spew 3:5000000")
    result = abx.run("exec", "fake:sb1", "--", "x")
    assert (result.returncode, result.stderr, len(result.stdout)) == (0, "", 15_000_000)


def test_characters_split_over_reads_of_the_pipe(abx: Abx, fake: Any) -> None:
    fake("ok", ("data[os.write(1, data) :]", "data[os.write(1, data[:1]) :]"), ('**message}).encode()', '**message}, ensure_ascii=False).encode()'))
    text = "é名😀" * 300
    result = abx.run("exec", "fake:sb1", "--", text)
    assert (result.returncode, result.stdout, result.stderr) == (0, text + "\n", "")


def test_nul_and_control_characters_come_through(abx: Abx, ref: str) -> None:
    script = r"printf 'a\000b\033[31m\001\177'"
    assert abx("exec", ref, "--", "sh", "-c", script).stdout == "a\0b\033[31m\1\177"
    assert json.loads(abx("--json", "exec", ref, "--", "sh", "-c", script).stdout)["stdout"] == "a\0b\033[31m\1\177"


def test_another_version_says_ours_and_theirs(abx: Abx, fake: Any) -> None:
    fake("proto2")
    result = abx.run("--json", "info", "fake:sb1")
    error = json.loads(result.stderr)["error"]
    assert error["code"] == "E8013"
    assert "epp/1" in error["message"] + error["suggestion"] and "epp/2" in error["message"]
    assert error["suggestion"]


# ---- commands and sandboxes -------------------------------------------------------------------------


def test_a_timeout_of_a_command_is_not_that_of_its_sandbox(abx: Abx, ref: str) -> None:
    before = json.loads(abx("info", ref, "--json").stdout)
    assert abx.run("exec", ref, "--timeout", "1", "--", "sleep", "300").returncode == 5
    after = json.loads(abx("info", ref, "--json").stdout)
    assert after == before
    assert abx("exec", ref, "--", "echo", "on").stdout == "on\n"


def test_arguments_over_the_limit_of_the_system(abx: Abx, ref: str) -> None:
    result = abx.run("exec", ref, "--shell", "--", "echo", "x" * 100_000, "y" * 100_000)
    assert result.returncode == 126 and "too long" in result.stderr
    assert abx("exec", ref, "--", "echo", "on").stdout == "on\n"
    text = "z" * 1_000_000
    abx("files", "put", "-", f"{ref}:/big", input=text)
    assert abx("files", "cat", f"{ref}:/big").stdout == text


def test_a_lost_answer_to_create_is_no_second_sandbox(abx: Abx, fake: Any, home: Path) -> None:
    fake("ok", ('    name = "s/1', '    if method == "sandbox.create":\n        return\n    name = "s/1'), runtime__call_timeout_ms=400)
    assert abx.run("create", "--provider", "fake").returncode == 5
    calls = (home / "providers" / "fake" / "data" / "calls").read_text().split()
    assert calls.count("sandbox.create") == 1
    assert (home / "providers" / "fake" / "data" / "cancels").read_text().count("\n") == 1


def test_every_sandbox_is_listed(abx: Abx, ref: str) -> None:
    made = {ref} | {abx("create", "--provider", "local-process").stdout.strip() for _ in range(11)}
    assert len(made) == 12
    assert set(abx("list", "--provider", "local-process", "-q").stdout.split()) == made
    assert len(abx("list", "--provider", "local-process", "-q", "--limit", "5").stdout.split()) == 5


def test_keys_of_the_host_do_not_reach_a_sandbox(abx: Abx, ref: str) -> None:
    keys = {"E2B_API_KEY": "k3y-value", "ABX_SANDBOX_API_KEY": "k3y-value", "ALICLOUD_ACCESS_KEY_SECRET": "k3y-value", "GITHUB_TOKEN": "k3y-value"}
    result = abx("exec", ref, "--", "env", env=keys)
    assert "PATH=" in result.stdout and "k3y-value" not in result.stdout


def test_files_and_directories_in_the_way(abx: Abx, ref: str) -> None:
    abx("files", "put", "-", f"{ref}:/f", input="old")
    abx("files", "mkdir", f"{ref}:/d/f")
    (abx.cwd / "f").write_text("new")
    assert abx.run("files", "put", "-", f"{ref}:/f/x", input="new").returncode != 0
    assert abx.run("files", "put", "f", f"{ref}:/d").returncode != 0
    assert abx.run("files", "put", "f", f"{ref}:/").returncode == 0
    assert abx("files", "cat", f"{ref}:/f").stdout == "new"
    assert abx.run("files", "mkdir", f"{ref}:/f/x").returncode != 0
    assert abx("files", "ls", f"{ref}:/d").stdout == "f/\n"
    assert abx("files", "ls", f"{ref}:/d/f").stdout == ""


# ---- the store --------------------------------------------------------------------------------------


def test_installs_at_once(abx: Abx, fake: Any, tmp_path: Path) -> None:
    """Of one id and of others; each ends well or says that the store is busy, and the store is whole."""
    sources = [fakeplugin.make(tmp_path / f"p{i}", plugin_id=f"fake{i % 3}", provider__version=f"1.0.{i}") for i in range(9)]
    running = [abx.popen(["provider", "install", str(s), *FLAGS, "--force"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for s in sources]
    for process in running:
        _, err = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, err
    for i in range(3):
        assert abx("info", f"fake{i}:sb1").returncode == 0
        assert json.loads(abx("--json", "provider", "doctor", f"fake{i}", env={f"ABX_FAKE{i}_TOK": "t"}).stdout)["ok"]


def test_a_full_disk_leaves_the_installed_version(abx: Abx, fake: Any) -> None:
    plugin = fake("ok")
    (plugin / "big").write_bytes(b"x" * 200_000)

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = limited(abx, ["provider", "install", str(plugin), *FLAGS, "--force"], small)
    assert done.returncode not in (0, -signal.SIGXFSZ) and done.stderr.startswith("[E80"), done.stderr
    assert abx("info", "fake:sb1").returncode == 0
    assert abx("provider", "install", str(plugin), *FLAGS, "--force").returncode == 0


def test_a_kill_during_the_check_leaves_the_installed_version(abx: Abx, fake: Any, home: Path, tmp_path: Path) -> None:
    plugin = fake("ok")
    told = tmp_path / "told"
    os.mkfifo(told)
    reader = os.open(told, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    patch(plugin, ("    result = handshake()\n", f'    open("{told}", "w").write("up")\n    stay()\n    result = handshake()\n'))
    process = abx.popen(["provider", "install", str(plugin), "--yes", "--force"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert select.select([reader], [], [], TIMEOUT)[0] and os.read(reader, 2) == b"up"
    os.close(reader)
    process.kill()
    process.wait(TIMEOUT)
    # The next command, one that only reads too, undoes what the dead one left, and says so.
    assert "Undid the interrupted install of 'fake'" in abx("provider", "list").stderr
    assert abx("info", "fake:sb1").stderr == ""
    other = fakeplugin.make(tmp_path / "other", plugin_id="other")
    abx("provider", "install", str(other), *FLAGS)  # sweeps the staging of the dead one


def test_a_tight_umask_changes_no_digest_and_no_bit(abx: Abx, fake: Any, home: Path) -> None:
    plugin = fake("ok", ("import base64\n", "#!/usr/bin/env python3\nimport base64\n"))
    (plugin / "run.sh").write_bytes(b"#!/bin/sh\r\n")
    (plugin / "run.sh").chmod(0o755)
    digests = set()
    for umask in (0o000, 0o022, 0o077, 0o777):
        done = limited(abx, ["--json", "provider", "install", str(plugin), *FLAGS, "--force"], lambda umask=umask: os.umask(umask))
        assert done.returncode == 0, done.stderr
        installed = home / "providers" / "fake"
        assert (installed / "run.sh").stat().st_mode & 0o700 == 0o700
        assert (installed / "run.sh").read_bytes() == b"#!/bin/sh\r\n"
        digests.add(json.loads((home / "providers" / "fake" / ".abx-install.json").read_text())["tree_sha256"])
        assert abx("info", "fake:sb1").returncode == 0
    assert len(digests) == 1


def test_what_changes_between_the_question_and_the_answer_is_not_installed(abx: Abx, home: Path, tmp_path: Path) -> None:
    plugin = fakeplugin.make(tmp_path / "plugin")
    host, terminal = pty.openpty()
    process = abx.popen(["provider", "install", str(plugin), "--no-verify"], stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown, asked = b"", False
    while select.select([host], [], [], TIMEOUT)[0]:
        try:
            shown += os.read(host, 4096)
        except OSError:
            break
        if b"[y/N] " in shown and not asked:
            asked = True
            with (plugin / "plugin.py").open("a") as f:
                f.write("# another program\n")
            os.write(host, b"y\n")
    os.close(host)
    status = process.wait(TIMEOUT)
    assert asked
    installed = home / "providers" / "fake" / "plugin.py"
    assert status == 0 or b"[E80" in shown
    assert installed.exists() == (status == 0)
    assert not installed.exists() or "another program" not in installed.read_text()


def test_a_source_that_changes_afterwards_changes_nothing(abx: Abx, fake: Any) -> None:
    plugin = fake("ok")
    (plugin / "plugin.py").write_text("raise SystemExit(9)\n")
    assert abx("info", "fake:sb1").returncode == 0


@pytest.mark.parametrize("answer", ["", "y\n", "yes\nyes\n"])
def test_a_pipe_is_nobody_who_agrees(abx: Abx, home: Path, tmp_path: Path, answer: str) -> None:
    plugin = fakeplugin.make(tmp_path / "plugin")
    result = abx.run("provider", "install", str(plugin), input=answer)
    assert result.returncode == 2 and "[E8012]" in result.stderr and "--yes" in result.stderr
    assert not (home / "providers" / "fake").exists()


def test_a_pin_holds(abx: Abx, tmp_path: Path, home: Path) -> None:
    repo = fakeplugin.make(tmp_path / "repo")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*args: str) -> str:
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *args], cwd=repo, env=env, check=True,
                              capture_output=True, text=True, timeout=TIMEOUT).stdout.strip()

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "HEAD")
    near = ["--allow-insecure-transport"]
    abx("provider", "install", f"file://{repo}", "--ref", commit, *FLAGS, *near)
    receipt = home / "providers" / "fake" / ".abx-install.json"
    before = receipt.read_bytes()
    digest = json.loads(before)["tree_sha256"]
    manifest = repo / "abx-provider.toml"
    manifest.write_text(manifest.read_text().replace('version = "1.0.0"', 'version = "2.0.0"'))
    git("commit", "-qam", "two")
    assert "pinned" in abx("provider", "update", "fake", *FLAGS, *near).stdout
    assert receipt.read_bytes() == before
    wrong = abx.run("provider", "install", f"file://{repo}", "--ref", "main", "--sha256", digest, *FLAGS, *near, "--force")
    assert wrong.returncode != 0 and "[E80" in wrong.stderr
    abx("provider", "install", f"file://{repo}", "--ref", commit, *FLAGS, *near, "--force")
    assert json.loads(receipt.read_bytes())["tree_sha256"] == digest
    # A branch that is named like a commit, or a short commit, is no pin.
    git("branch", "f" * 40)
    for name in ("f" * 40, commit[:10], commit.upper()):
        result = abx.run("provider", "install", f"file://{repo}", "--ref", name, *FLAGS, *near, "--force")
        assert result.returncode != 0 or json.loads(receipt.read_bytes())["tree_sha256"] == digest, name


def test_uninstall_keeps_what_is_the_users(abx: Abx, fake: Any, home: Path) -> None:
    fake("ok")
    config = home / "config.toml"
    config.write_text('# mine\nprovider = "fake" # why\n\n# about fake\n[providers.fake]\nmode = "ok" # a word\n\n# others\n[providers.other]\na = "b"\n')
    config.chmod(0o600)
    assert abx("info", "fake:sb1").returncode == 0
    before, data = config.read_text(), home / "providers" / "fake" / "data"
    abx("provider", "uninstall", "fake")
    assert config.read_text() == before and (data / "calls").exists()
    fake("ok")
    assert (data / "calls").exists()
    abx("provider", "uninstall", "fake", "--purge")
    assert not data.exists()
    after = config.read_text()
    assert "mode" not in after and "[providers.fake]" not in after
    assert "# mine\n" in after and '# others\n[providers.other]\na = "b"\n' in after


# ---- the home ---------------------------------------------------------------------------------------


def test_a_home_that_is_a_link(abx: Abx, fake: Any, home: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    home.symlink_to(tmp_path / "real")
    fake("ok")
    abx("config", "set", "provider", "fake")
    assert abx("info", "sb1").returncode == 0
    assert home.is_symlink() and (tmp_path / "real" / "config.toml").is_file()


def test_the_root_as_home_is_only_read_by_what_reads(abx: Abx) -> None:
    del abx.env["ABX_HOME"]
    abx.env["HOME"] = "/"
    there = os.path.lexists("/.abx")
    for args in (["provider", "list"], ["config", "list"], ["config", "explain"]):
        assert abx.run(*args).returncode == 0
    assert os.path.lexists("/.abx") == there


def test_a_full_disk_leaves_the_settings(abx: Abx, home: Path) -> None:
    abx("config", "set", "provider", "alicloud-express")
    before = {p.name: p.read_bytes() for p in home.iterdir() if p.is_file()}

    def none() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = limited(abx, ["config", "set", "provider", "e2b"], none)
    assert done.returncode > 0 and done.stderr.startswith("[E"), done.stderr
    assert {p.name: p.read_bytes() for p in home.iterdir() if p.is_file()} == before
