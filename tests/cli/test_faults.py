"""Plugins that misbehave: what the person sees, how the command ends, and that nothing stays behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import fakeplugin
import pytest

SECRET = "tok-5ecret-value"
NO_STREAM = [f for f in fakeplugin.FEATURES if f != "exec.stream"]
SHORT = {"runtime__call_timeout_ms": 400}


class Fake:
    """The fake plugin, installed in one mode; its data directory tells what it saw."""

    def __init__(self, abx: Any, home: Path, tmp_path: Path) -> None:
        self.abx, self.data, self.source = abx, home / "providers" / "fake" / "data", tmp_path / "plugin"

    def install(self, mode: str, **kw: Any) -> None:
        fakeplugin.make(self.source, mode=mode, **kw)
        self.abx("provider", "install", str(self.source), "--yes", "--no-verify", "--force")

    def run(self, *args: str, **kw: Any) -> Any:
        return self.abx(*args, check=False, env={"ABX_FAKE_TOK": SECRET, **kw})

    def fails(self, code: str, status: int, *args: str) -> tuple[str, str]:
        """Message and suggestion of the error that args end with."""
        result = self.run("--json", *args)
        assert SECRET not in result.stdout + result.stderr
        assert "\x1b" not in result.stdout + result.stderr and "\x07" not in result.stderr
        error = json.loads(result.stderr.strip().splitlines()[-1] if result.stderr.count("\n") == 1 else result.stderr)["error"]
        assert (error["code"], result.returncode) == (code, status), error
        return error["message"], error["suggestion"]

    def seen(self, name: str = "calls") -> list[str]:
        path = self.data / name
        return path.read_text(encoding="utf-8").split() if path.exists() else []


@pytest.fixture
def fake(abx: Any, home: Path, tmp_path: Path) -> Fake:
    return Fake(abx, home, tmp_path)


def test_ok(fake: Fake) -> None:
    """The plugin is no reason for what the other tests see."""
    fake.install("ok")
    result = fake.run("exec", "fake:sb1", "--", "say", "a b")
    assert (result.stdout, result.stderr, result.returncode) == ("say a b\n", "", 0)
    # It is told that there is no input, unless it was faster.
    assert [m for m in fake.seen() if m != "process.stdin"] == ["initialize", "exec.start", "shutdown"]


# ---- the handshake -------------------------------------------------------------------------

BROKEN_LINES = {
    "banner": "Welcome to",
    "nonjson": "{not json}",
    "array": "not a JSON object",
    "partial": "malformed",
    "deep": "",
    "big9": "larger than 8 MiB",
    "nonl20": "larger than 8 MiB",
    "noidreply": "no id at all",
}


@pytest.mark.parametrize("mode", BROKEN_LINES)
def test_broken_lines_end_it_at_once(fake: Fake, mode: str) -> None:
    fake.install(mode)
    began = time.monotonic()
    message, _ = fake.fails("E8020", 1, "info", "fake:sb1")
    assert time.monotonic() - began < 8, "not by the start-up timeout of 10 s"
    assert BROKEN_LINES[mode] in message and "fake" in message
    assert len(message) < 400


def test_a_crash_at_the_start_quotes_stderr(fake: Fake) -> None:
    fake.install("exit3")
    message, suggestion = fake.fails("E8021", 1, "info", "fake:sb1")
    assert "exited unexpectedly (code 3)" in message
    assert "Plugin stderr: " in suggestion and "Boom: red tok=***" in suggestion


def test_a_crash_with_pipes_held_by_a_setsid_child(fake: Fake) -> None:
    fake.install("holdpipes")
    began = time.monotonic()
    message, suggestion = fake.fails("E8021", 1, "info", "fake:sb1")
    assert time.monotonic() - began < 8
    assert "(code 4)" in message and "going" in suggestion


def test_a_start_that_hangs(fake: Fake) -> None:
    fake.install("hang_init", runtime__startup_timeout_ms=300)
    message, _ = fake.fails("E8022", 5, "info", "fake:sb1")
    assert "did not initialize within 0.3s" in message


def test_a_slow_start_is_waited_for(fake: Fake) -> None:
    fake.install("slow_init 0.6", runtime__call_timeout_ms=300)
    assert fake.run("info", "fake:sb1").returncode == 0


@pytest.mark.parametrize("mode", ["proto2", "contract"])
def test_another_contract(fake: Fake, mode: str) -> None:
    fake.install(mode)
    message, _ = fake.fails("E8013", 1, "info", "fake:sb1")
    assert "fake" in message and ("epp/2" in message or mode == "contract")
    assert "sandbox.get" not in fake.seen()


def test_the_contract_may_be_repeated(fake: Fake) -> None:
    fake.install("ok", **fakeplugin.CONTRACT)
    assert fake.run("info", "fake:sb1").returncode == 0


def test_a_refused_configuration(fake: Fake) -> None:
    fake.install("initerr")
    message, suggestion = fake.fails("E8002", 2, "info", "fake:sb1")
    assert message.startswith("bad config") and "tok=***" in message and suggestion == "use ***"
    fake.install("initauth")
    message, suggestion = fake.fails("E1001", 3, "info", "fake:sb1")
    assert (message, suggestion) == ("denied ***", "renew ***")


def test_features_the_handshake_takes_back(fake: Fake) -> None:
    fake.install("features")
    message, suggestion = fake.fails("E8004", 1, "exec", "fake:sb1", "--", "x")
    assert "exec." in message and "abx provider info fake" in suggestion
    assert not {"exec.start", "exec.run"} & set(fake.seen())


def test_doctor_says_what_failed(fake: Fake) -> None:
    fake.install("nonjson")
    result = fake.run("provider", "doctor", "fake")
    assert result.returncode == 2 and "FAIL" in result.stdout and "handshake" in result.stdout


# ---- answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["recnull", "reclist", "noid", "dupkeys", "invalidutf8", "surrogate"])
def test_records_that_are_none(fake: Fake, mode: str) -> None:
    fake.install(mode)
    fake.fails("E8020", 1, "create", "--provider", "fake")


@pytest.mark.parametrize("mode", ["unknownid", "twice", "emptylines", "stderrflood", "ok"])
def test_what_is_ignored(fake: Fake, mode: str) -> None:
    fake.install(mode)
    result = fake.run("--json", "info", "fake:sb1")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["sandbox_id"].endswith("sb1")


def test_numbers_out_of_range_do_no_harm(fake: Fake) -> None:
    fake.install("bigint")
    result = fake.run("info", "fake:sb1")
    assert result.returncode == 0 or (result.returncode == 1 and "[E8020]" in result.stderr)


def test_an_id_with_odd_characters(fake: Fake) -> None:
    fake.install("slashid")
    reference = fake.run("create", "--provider", "fake").stdout.rstrip("\n")
    assert reference == "fake:s/1 %:é '\""
    assert fake.run("exec", reference, "--", "a").stdout == "a\n"
    assert fake.run("kill", reference).returncode == 0


@pytest.mark.parametrize(
    ("code", "becomes", "status"),
    [(-32000, "E8000", 1), (-32001, "E1000", 3), (-32002, "E2009", 4), (-32003, "E8004", 1), (-32004, "E2002", 6),
     (-32005, "E8022", 5), (-32006, "E8002", 2), (-32601, "E8020", 1), (-32602, "E8020", 1), (-32603, "E8020", 1),
     (-1, "E8020", 1), (42, "E8020", 1)],
)  # fmt: skip
def test_error_codes(fake: Fake, code: int, becomes: str, status: int) -> None:
    fake.install(f"code {code}")
    message, _ = fake.fails(becomes, status, "info", "fake:sb1")
    assert message == "msg ***"


def test_kill_of_what_is_gone_is_success(fake: Fake) -> None:
    fake.install("code -32002")
    assert fake.run("kill", "fake:sb1").returncode == 0


@pytest.mark.parametrize("mode", ["nob64", "badb64"])
def test_files_without_their_content(fake: Fake, mode: str) -> None:
    fake.install(mode)
    fake.fails("E8020", 1, "files", "cat", "fake:sb1:/f")


def test_retryable_errors_are_tried_again(fake: Fake) -> None:
    fake.install("flaky")
    assert fake.run("info", "fake:sb1").returncode == 0
    assert fake.seen().count("sandbox.get") == 3


def test_a_timeout_is_told_to_the_plugin(fake: Fake) -> None:
    fake.install("slow 300", **SHORT)
    message, _ = fake.fails("E8022", 5, "info", "fake:sb1")
    assert "did not answer 'sandbox.get' within 0.4s" in message
    assert len(fake.seen("cancels")) == 1


def test_environment_arguments_and_directory(fake: Fake) -> None:
    fake.install("env", features=NO_STREAM, security__env_passthrough=["PASSED", "NOT_SET"])
    more = {"PASSED": "yes", "OTHER": "no", "GITHUB_TOKEN": "g", "OPENAI_API_KEY": "o", "E2B_API_KEY": "e",
            "ABX_SANDBOX_API_KEY": "a", "ABX_FAKE_MODE": "", "LD_LIBRARY_PATH": "/x", "PYTHONPATH": "/x", "BASH_ENV": "/x",
            "LC_TIME": "C", "TMPDIR": "/tmp"}  # fmt: skip
    result = fake.run("exec", "fake:sb1", "--", "x", **more)
    assert result.returncode == 0, result.stderr
    got = json.loads(result.stdout)
    allowed = {"PATH", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "LANG", "SYSTEMROOT", "COMSPEC", "PASSED",
               "ABX_PROVIDER_DATA_DIR", "PYTHONDONTWRITEBYTECODE"}  # fmt: skip
    assert {k for k in got["env"] if not k.startswith("LC_")} <= allowed
    assert got["env"]["PASSED"] == "yes" and got["env"]["LC_TIME"] == "C" and got["env"]["PYTHONDONTWRITEBYTECODE"] == "1"
    assert got["env"]["ABX_PROVIDER_DATA_DIR"] == got["cwd"] == str(fake.data)
    assert got["config"] is True, "the secret came by initialize"
    assert SECRET not in json.dumps(got)
    assert fake.data.stat().st_mode & 0o777 == 0o700


# ---- streams -------------------------------------------------------------------------------


def test_bad_exit_codes(fake: Fake) -> None:
    fake.install("badexit")
    fake.fails("E8020", 1, "exec", "fake:sb1", "--", "x")
    fake.install("badexit", features=NO_STREAM)
    fake.fails("E8020", 1, "exec", "fake:sb1", "--", "x")


def test_a_command_that_never_starts(fake: Fake) -> None:
    fake.install("noexec", **SHORT)
    message, _ = fake.fails("E8022", 5, "exec", "fake:sb1", "--", "x")
    assert "'exec.start'" in message
    assert len(fake.seen("cancels")) == 1


def test_events_before_the_answer(fake: Fake) -> None:
    fake.install("earlyevents")
    result = fake.run("exec", "fake:sb1", "--", "x")
    assert (result.stdout, result.stderr, result.returncode) == ("early\n", "and err\n", 5)


def test_a_crash_in_a_stream_is_no_success(fake: Fake) -> None:
    fake.install("crashmid")
    result = fake.run("exec", "fake:sb1", "--", "part")
    assert result.stdout == "part\n" and result.returncode == 1
    assert "[E8021]" in result.stderr and "(code 7)" in result.stderr


def test_one_exit_ends_a_stream(fake: Fake) -> None:
    fake.install("afterexit")
    result = fake.run("exec", "fake:sb1", "--", "x")
    assert (result.stdout, result.stderr, result.returncode) == ("x\n", "", 0)


def test_characters_over_two_chunks(fake: Fake) -> None:
    fake.install("splitutf8")
    assert fake.run("exec", "fake:sb1", "--", "x").stdout == "café 😀\n"


def test_a_killed_command(fake: Fake) -> None:
    fake.install("killed")
    assert fake.run("exec", "fake:sb1", "--", "x").returncode == 137


def test_a_lone_surrogate_in_a_stream(fake: Fake) -> None:
    fake.install("surrogate")
    result = fake.run("exec", "fake:sb1", "--", "x")
    assert result.returncode == 1 and "[E8020]" in result.stderr


def peak(fake: Fake, *args: str, size: int = 0) -> tuple[int, int]:
    """Exit status and largest resident memory in MiB; the reader of stdout is slow at first."""
    process = fake.abx.popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    total = len(process.stdout.read(65536))
    time.sleep(0.3)  # not to wait for something: the host must bear a consumer that does not read
    while chunk := process.stdout.read(1 << 20):
        total += len(chunk)
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert total == size
    return process.returncode, usage.ru_maxrss // 1024


def test_a_large_stream_keeps_memory_flat(fake: Fake) -> None:
    fake.install("spew 3000:65000")
    status, mib = peak(fake, "exec", "fake:sb1", "--", "x", size=3000 * 65000)
    assert status == 0 and mib < 100


def test_a_flood_for_nobody_ends_by_the_timeout(fake: Fake) -> None:
    fake.install("floodunknown", **SHORT)
    status, mib = peak(fake, "exec", "fake:sb1", "--timeout", "1", "--", "x")
    assert status == 5 and mib < 100


def test_output_of_many_that_nobody_asked_for_is_said_once(fake: Fake) -> None:
    fake.install("manyearly")
    result = fake.run("exec", "fake:sb1", "--", "say")
    assert (result.returncode, result.stdout) == (0, "say\n")
    assert result.stderr.count("warning: ") == 1 and "more than 64 processes" in result.stderr


def test_a_command_that_the_plugin_ended_for_its_time(fake: Fake) -> None:
    fake.install("late")
    result = fake.run("exec", "fake:sb1", "--", "say")
    assert (result.returncode, result.stdout) == (5, "so far\n")
    assert result.stderr.startswith("[E3001] ") and result.stderr.endswith(".\n")


# ---- processes -----------------------------------------------------------------------------


def gone(pid: int) -> bool:
    """The end is over when the command is: nothing is waited for. A zombie of somebody else's is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def test_a_crash_in_a_call(fake: Fake) -> None:
    fake.install("crashget")
    message, _ = fake.fails("E8021", 1, "info", "fake:sb1")
    assert "(code 9)" in message


@pytest.mark.parametrize("mode", ["child", "ignoreterm", "stopread", "ok"])
def test_nothing_is_left(fake: Fake, mode: str) -> None:
    fake.install(mode)
    began = time.monotonic()
    assert fake.run("info", "fake:sb1").returncode == 0
    assert time.monotonic() - began < 15, "the ladder has 2 + 3 + 3 seconds"
    pids = [int(p) for p in fake.seen("pids")]
    assert pids and all(map(gone, pids))


def test_requests_nobody_reads_end_by_the_timeout(fake: Fake, tmp_path: Path) -> None:
    fake.install("stopread", **SHORT)
    (tmp_path / "big").write_bytes(b"x" * (5 << 20))
    assert fake.run("info", "fake:sb1").returncode == 0
    began = time.monotonic()
    result = fake.run("files", "put", str(tmp_path / "big"), "fake:sb1:/big")
    assert time.monotonic() - began < 20
    assert result.returncode in (0, 5), result.stderr


def test_verbose_traces_hide_the_secret(fake: Fake) -> None:
    fake.install("ok")
    result = fake.run("-v", "info", "fake:sb1")
    assert result.returncode == 0 and re.search(r"initialize", result.stderr)
    assert SECRET not in result.stderr
