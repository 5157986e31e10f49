"""The command with a real provider: the local-process example, from install to kill."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from limits import SLOW, TIMEOUT

SOURCE = Path(os.environ.get("ABX_TEST_SOURCE", Path(__file__).resolve().parents[2]))
EXAMPLE = SOURCE / "examples" / "providers" / "local-process"


@pytest.fixture
def local(abx: Any) -> Any:
    abx("provider", "install", str(EXAMPLE), "--yes")
    abx("provider", "default", "local-process")
    return abx


@pytest.fixture
def ref(local: Any) -> str:
    return str(local("create", "--timeout", "3600").stdout).rstrip("\n")


def fails(result: Any, code: str, status: int) -> str:
    assert (result.returncode, f"[{code}]" in result.stderr) == (status, True), result.stderr
    return str(result.stderr)


def test_install_and_doctor(local: Any, home: Path) -> None:
    listed = local("provider", "list").stdout
    assert re.search(r"^\* local-process .*sandbox\(lifecycle,timeout\) exec\(run,stream\)", listed, re.M)
    assert "FAIL" not in local("provider", "doctor", "local-process").stdout
    local("run", "--", "true")
    assert local("provider", "doctor", "local-process", "--no-handshake").returncode == 0, "a run leaves the digest as it was"
    assert not list((home / "providers" / "local-process").glob("**/__pycache__"))


def test_lifecycle(local: Any) -> None:
    reference = local("create", "--timeout", "60", "--metadata", "team=a b").stdout.rstrip("\n")
    assert re.fullmatch(r"local-process:lp-[0-9a-f-]+", reference)
    info = json.loads(local("--json", "info", reference).stdout)
    assert info["status"] == "running" and info["metadata"] == {"team": "a b"}
    assert reference.split(":")[1] in local("list").stdout
    local("timeout", reference, "0")
    local("timeout", reference, "600")
    local("kill", reference)
    local("kill", reference)
    assert reference.split(":")[1] not in local("list").stdout
    fails(local("info", reference, check=False), "E2009", 4)
    fails(local("exec", reference, "--", "true", check=False), "E2009", 4)
    fails(local("files", "ls", f"{reference}:/", check=False), "E2009", 4)


def test_features_it_lacks(local: Any, ref: str) -> None:
    fails(local("pause", ref, check=False), "E8004", 1)


def test_exec(local: Any, ref: str) -> None:
    done = local("exec", ref, "--", "sh", "-c", "echo out; echo err >&2; exit 3", check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)
    assert local("exec", ref, "--", "printf", "%s|", "a b", "$HOME", "").stdout == "a b|$HOME||"
    assert local("exec", ref, "--shell", "--", "echo $((1 + 1)) | cat").stdout == "2\n"
    assert local("exec", ref, "--env", "A=1=2", "--", "sh", "-c", "echo $A").stdout == "1=2\n"
    local("files", "mkdir", f"{ref}:/sub")
    assert local("exec", ref, "--cwd", "/sub", "--", "pwd").stdout.endswith("/root/sub\n")
    fails(local("exec", ref, "--cwd", "/none", "--", "true", check=False), "E4001", 4)


def test_exit_codes_of_commands(local: Any, ref: str) -> None:
    missing = local("exec", ref, "--", "no-such-command", check=False)
    assert (missing.returncode, missing.stderr) == (127, "no-such-command: not found\n")
    assert local("exec", ref, "--", "sh", "-c", "kill -TERM $$", check=False).returncode == 143
    began = time.monotonic()
    late = local("exec", ref, "--timeout", "1", "--", "sh", "-c", "sleep 300 & sleep 300", check=False)
    fails(late, "E3001", 5)
    assert time.monotonic() - began < 20 * SLOW


def test_bytes_and_text_come_through(local: Any, ref: str) -> None:
    process = subprocess.run([str(local.binary), "exec", ref, "--", "sh", "-c", r"head -c 200000 /dev/urandom | tee copy"],
                             env=local.env, capture_output=True, timeout=TIMEOUT, check=True)  # fmt: skip
    assert len(process.stdout) == 200000
    back = subprocess.run([str(local.binary), "files", "cat", f"{ref}:/copy"], env=local.env, capture_output=True, timeout=TIMEOUT)
    assert back.stdout == process.stdout
    assert local("exec", ref, "--", "sh", "-c", "yes é | head -c 300000").stdout == "é\n" * 100000


def test_a_background_child_does_not_hold_the_command(local: Any, ref: str) -> None:
    began = time.monotonic()
    assert local("exec", ref, "--", "sh", "-c", "sleep 300 & echo on").stdout == "on\n"
    assert time.monotonic() - began < 20 * SLOW


def test_output_comes_as_it_is_written(local: Any, ref: str) -> None:
    local("exec", ref, "--", "mkfifo", "gate")
    process = local.popen(["exec", ref, "--", "sh", "-c", "echo first; cat gate"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"first\n"
    local("exec", ref, "--", "sh", "-c", "echo second > gate")
    assert process.communicate(timeout=TIMEOUT)[0] == b"second\n"
    assert process.returncode == 0


def test_stdin_is_forwarded(local: Any, ref: str) -> None:
    done = local("exec", ref, "--stdin", "--", "sh", "-c", "read a; read b; echo $b $a", input="one\ntwo ü\n")
    assert done.stdout == "two ü one\n"
    assert local("exec", ref, "--timeout", "30", "--", "sh", "-c", "echo quiet", input="unused\n").stdout == "quiet\n"


def test_interrupt_ends_the_command(local: Any, ref: str) -> None:
    argv = ["exec", ref, "--", "sh", "-c", "echo $$; exec sleep 300"]
    process = local.popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT)
    assert process.returncode != 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_run(local: Any) -> None:
    assert local("run", "--", "echo", "hello").stdout == "hello\n"
    assert local("run", "--", "sh", "-c", "exit 7", check=False).returncode == 7
    assert "lp-" not in local("list").stdout, "the sandboxes are gone"


def test_files(local: Any, ref: str, tmp_path: Path) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(os.urandom(100000))
    source.chmod(0o750)
    local("files", "put", str(source), f"{ref}:/a/b/f")
    local("files", "get", f"{ref}:/a/b/f", str(back))
    assert back.read_bytes() == source.read_bytes() and back.stat().st_mode & 0o777 == 0o750
    stat = json.loads(local("--json", "files", "stat", f"{ref}:/a/b/f").stdout)
    assert re.search(rf"^mode: +0{stat['mode']:o}$", local("files", "stat", f"{ref}:/a/b/f").stdout, re.M)
    assert (stat["size"], stat["type"]) == (100000, "file")
    local("files", "mkdir", f"{ref}:/a/new/er")
    assert re.findall(r"\b(b|new)\b", local("files", "ls", f"{ref}:/a").stdout) == ["b", "new"]
    local("files", "mv", f"{ref}:/a/b/f", "/g")
    local("exec", ref, "--", "test", "-x", "g")
    local("files", "rm", f"{ref}:/g")
    fails(local("files", "cat", f"{ref}:/g", check=False), "E4001", 4)
    fails(local("files", "ls", f"{ref}:/none", check=False), "E4001", 4)
    assert "Is a directory" in fails(local("files", "cat", f"{ref}:/a", check=False), "E8000", 1)


def test_paths_stay_inside(local: Any, ref: str) -> None:
    local("exec", ref, "--", "ln", "-s", "/etc", "out")
    for path in ("/out/passwd", "/../record.json"):
        fails(local("files", "cat", f"{ref}:{path}", check=False), "E4002", 1)


def test_processes(local: Any, ref: str) -> None:
    assert "sleep" not in local("ps", ref).stdout
    fails(local("signal", ref, "999999999", check=False), "E8005", 4)
    fails(local("stdin", ref, "p77", input="x", check=False), "E8005", 4)


def test_port(local: Any, ref: str) -> None:
    assert local("port", ref, "8080").stdout.strip() == "http://127.0.0.1:8080"


def test_workdir_root_from_the_environment_and_option(local: Any, tmp_path: Path) -> None:
    env = {"ABX_LOCAL_PROCESS_WORKDIR_ROOT": str(tmp_path / "boxes")}
    ident = local("create", env=env).stdout.strip().split(":")[1]
    assert (tmp_path / "boxes" / ident / "root").is_dir()
    assert ident not in local("list").stdout
    assert ident in local("list", "--option", f"workdir_root={tmp_path / 'boxes'}").stdout


def test_expiry_between_two_commands(local: Any, home: Path) -> None:
    reference = local("create", "--timeout", "60").stdout.strip()
    record = home / "providers" / "local-process" / "data" / "sandboxes" / reference.split(":")[1] / "record.json"
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "expires_at": "2020-01-01T00:00:00+00:00"}))
    fails(local("info", reference, check=False), "E2009", 4)
    assert not record.parent.exists()


def test_many_commands_at_once(local: Any, ref: str) -> None:
    results: list[str] = []

    def one(i: int) -> None:
        results.append(local("exec", ref, "--", "sh", "-c", f"echo {i} | tee f{i}").stdout)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [f"{i}\n" for i in range(6)]
