"""abx provider test: what it says of good, of poor and of lying providers, in every form, and that nothing stays."""

from __future__ import annotations

import json
import os
import re
import signal
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fakeplugin
import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / "examples" / "providers" / "local-process"
ROW = re.compile(r'^CASE\("(\w+)", "([^"]*)", "([^"]*)"\)$', re.M)
CASES = ROW.findall((ROOT / "cli" / "contract" / "cases.def").read_text(encoding="utf-8"))
NAMES = [name for name, _, _ in CASES]

# A wrapper of local-process: its class with some methods that lie.
LIAR = """
import re
import sys

sys.dont_write_bytecode = True
import provider
from epp import EppError, run, send


class Liar(provider.Provider):
{methods}

run(Liar, {{**provider.HANDSHAKE, "features": {features}}})
"""


Install = Callable[..., None]


@pytest.fixture
def install(abx: Any, tmp_path: Path) -> Install:
    """Installs local-process as provider lying, with methods of its own, or with fewer features."""

    def make(methods: str = "pass", features: list[str] | None = None, narrowed: list[str] | None = None) -> None:
        folder = tmp_path / "lying"
        folder.mkdir()
        manifest = (LOCAL / "abx-provider.toml").read_text(encoding="utf-8")
        for name in ("epp.py", "box.py", "command.py", "provider.py"):
            (folder / name).write_text((LOCAL / name).read_text(encoding="utf-8"), encoding="utf-8")
        declared = features or re.findall(r'"([a-z.]+)"', manifest.split("supported = [")[1].split("]")[0])
        head, tail = manifest.split("supported = [")
        manifest = head + "supported = " + json.dumps(declared) + tail.split("]", 1)[1]
        manifest = re.sub(r"\n\[operations\].*?\n\[security\]", "\n[security]", manifest, flags=re.S)
        manifest = manifest.replace("operation_contract_version", "# ").replace("./provider.py", "./liar.py")
        manifest = re.sub(r'(?m)^(id\s*=\s*)".*"', r'\1"lying"', manifest, count=1)
        (folder / "abx-provider.toml").write_text(manifest, encoding="utf-8")
        body = "\n".join("    " + line for line in methods.strip("\n").splitlines())
        text = LIAR.format(methods=body, features=narrowed or declared)
        (folder / "liar.py").write_text(text, encoding="utf-8")
        abx("provider", "install", str(folder), "--yes", "--no-verify")

    return make


def results(abx: Any, *args: str, status: int = 0, env: Mapping[str, str] | None = None) -> dict[str, tuple[str, str]]:
    """Outcome and detail of each case that ran."""
    done = abx("provider", "test", *args, "--json", check=False, env=env)
    assert done.returncode == status, done.stderr
    answer = json.loads(done.stdout)
    rows = answer["cases"]
    for word in ("passed", "failed", "skipped"):
        assert answer[word] == sum(row["outcome"] == word for row in rows)
    assert all(row["seconds"] >= 0 for row in rows)
    return {row["name"]: (row["outcome"], row["detail"]) for row in rows}


def boxes(home: Path, provider: str = "lying") -> list[str]:
    folder = home / "providers" / provider / "data" / "sandboxes"
    return os.listdir(folder) if folder.exists() else []


# ---- a provider that keeps the contract -----------------------------------------------------------------


def test_the_example_passes(abx: Any, home: Path) -> None:
    abx("provider", "install", str(LOCAL), "--yes")
    done = results(abx, "local-process")
    assert list(done) == NAMES
    skipped = {name for name, (outcome, _) in done.items() if outcome == "skipped"}
    assert skipped == {"pause_resume", "pause_of_unknown_is_e2009", "secret_options_are_redacted_from_errors"}
    assert done["pause_resume"][1] == "local-process does not declare sandbox.pause"
    assert boxes(home, "local-process") == []


def test_what_is_not_declared_is_skipped(abx: Any, install: Install) -> None:
    install(features=["sandbox.lifecycle"])
    done = results(abx, "lying", "-k", "e", "-k", "files")
    for name, features, _ in CASES:
        if set(features.split()) <= {"sandbox.lifecycle"}:
            continue
        assert done.get(name, ("skipped", "lying does not declare"))[0] == "skipped"
    assert done["files_move"] == ("skipped", "lying does not declare files.rw")
    assert done["undeclared_features_fail_with_e8004"][0] == "passed"


def test_what_the_handshake_leaves_out_is_skipped(abx: Any, install: Install) -> None:
    install(narrowed=["sandbox.lifecycle", "exec.run"])
    done = results(abx, "lying", "-k", "files_roundtrip", "-k", "exec_run", "-k", "undeclared")
    assert done["files_roundtrip"] == ("skipped", "the handshake of lying leaves out files.rw")
    assert (done["exec_run"][0], done["undeclared_features_fail_with_e8004"][0]) == ("passed", "passed")


# ---- providers that lie in one point -----------------------------------------------------------------------

LIES = {
    "create_returns_a_running_sandbox": """
def on_sandbox_create(self, p, r):
    return {**super().on_sandbox_create(p, r), "status": "stopped"}
""",
    "list_pages_to_the_end": """
def on_sandbox_list(self, p, r):
    answer = super().on_sandbox_list(p, r)
    answer.pop("next", None)
    return answer
""",
    "odd_ids_are_e2009": """
def on_sandbox_get(self, p, r):
    if not p["sandbox_id"].isascii():
        raise EppError(-32603, "what a name")
    return super().on_sandbox_get(p, r)
""",
    "exec_exit_code": """
def on_exec_run(self, p, r):
    answer = super().on_exec_run(p, r)
    return {**answer, "exit_code": 0}
""",
    "exec_stderr": """
def on_exec_run(self, p, r):
    answer = super().on_exec_run(p, r)
    return {**answer, "stdout": answer["stdout"] + answer["stderr"], "stderr": ""}
""",
    "exec_arguments_are_not_split": """
def on_exec_run(self, p, r):
    words = " ".join([p["cmd"], *p["args"]]).split()
    return super().on_exec_run({**p, "cmd": words[0], "args": words[1:]}, r)
""",
    "exec_env": """
def on_exec_run(self, p, r):
    return super().on_exec_run({**p, "env": {}}, r)
""",
    "files_overwrite_truncates": """
def on_files_write(self, p, r):
    import base64
    new = base64.b64decode(p["content_b64"])
    try:
        old = base64.b64decode(self.on_files_read({**p, "content_b64": None}, r)["content_b64"])
    except EppError:
        old = b""
    return super().on_files_write({**p, "content_b64": base64.b64encode(new + old[len(new):]).decode()}, r)
""",
    "missing_file_is_a_typed_not_found": """
def on_files_read(self, p, r):
    try:
        return super().on_files_read(p, r)
    except EppError:
        raise EppError(-32000, "no")
""",
    "process_list": """
def on_process_list(self, p, r):
    return {"processes": []}
""",
    "ports_url": """
def on_ports_url(self, p, r):
    return {"url": "127.0.0.1:8080"}
""",
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_in_one_point_fails_in_one_case(abx: Any, home: Path, install: Install, name: str) -> None:
    install(LIES[name])
    done = results(abx, "lying", status=1)
    failed = {case: detail for case, (outcome, detail) in done.items() if outcome == "failed"}
    assert list(failed) == [name]
    assert "expected" in failed[name] and "came" in failed[name] and "\n" not in failed[name]
    assert boxes(home) == []


def test_what_came_is_printed_harmlessly(abx: Any, install: Install, tmp_path: Path) -> None:
    install("""
def on_exec_run(self, p, r):
    return {"stdout": "\\x1b[31m\\x00\\u202e\\x85<&>\\"'", "stderr": "", "exit_code": 0}
""")
    report = tmp_path / "report.xml"
    done = abx("provider", "test", "lying", "-k", "exec_run", "--junit", str(report), check=False)
    assert done.returncode == 1
    assert r'came "\x1b[31m\x00\xe2\x80\xae\xc2\x85<&>\"' in done.stdout
    failure = ET.parse(report).getroot().find(".//failure")
    assert failure is not None and failure.get("message") in done.stdout


# ---- forms --------------------------------------------------------------------------------------------------


def test_list_is_the_table(abx: Any) -> None:
    rows = json.loads(abx("provider", "test", "--list", "--json").stdout)
    assert [(row["name"], " ".join(row["features"]), row["about"]) for row in rows] == CASES
    lines = abx("provider", "test", "--list").stdout.splitlines()[1:]
    assert [re.split(r"\s{2,}", line) for line in lines] == [[n, f or "-", a] for n, f, a in CASES]


@pytest.fixture
def mixed(abx: Any, install: Install) -> tuple[str, ...]:
    """Four cases: passed, skipped, failed, passed."""
    install(LIES["exec_exit_code"], features=["sandbox.lifecycle", "exec.run"])
    return ("provider", "test", "lying", "-k", "kill_is", "-k", "pause_r", "-k", "exec_exit", "-k", "exec_env")


def test_for_people(abx: Any, mixed: tuple[str, ...]) -> None:
    done = abx(*mixed, check=False)
    lines = [re.sub(r"\d+\.\d\ds", "TIME", line) for line in done.stdout.splitlines()]
    assert [line.split()[:2] for line in lines[:3]] == [["ok", "kill_is_idempotent"], ["skip", "pause_resume"], ["FAIL", "exec_exit_code"]]
    assert len({line.index("TIME") for line in lines if line.startswith(("ok", "FAIL"))}) == 1
    assert "lying does not declare sandbox.pause" in lines[1]
    assert lines[3:5] == ["     an exit code other than 0 comes back", "     exit_code of 'false': expected 1, came 0"]
    assert lines[-1] == "lying: 2 passed, 1 failed, 1 skipped in TIME"
    assert (done.returncode, done.stderr) == (1, "")


def test_quiet_tells_failures_only(abx: Any, mixed: tuple[str, ...]) -> None:
    lines = abx(*mixed, "-q", check=False).stdout.splitlines()
    assert len(lines) == 3 and lines[0].startswith("FAIL exec_exit_code")


def test_tap(abx: Any, mixed: tuple[str, ...]) -> None:
    lines = abx(*mixed, "--tap", check=False).stdout.splitlines()
    assert lines[:2] == ["TAP version 14", "1..4"]
    assert [line for line in lines if re.match(r"(not )?ok ", line)] == [
        "ok 1 - kill_is_idempotent",
        "ok 2 - pause_resume # SKIP lying does not declare sandbox.pause",
        "not ok 3 - exec_exit_code",
        "ok 4 - exec_env",
    ]
    begin, end = lines.index("  ---"), lines.index("  ...")
    assert lines[begin - 1] == "not ok 3 - exec_exit_code"
    block = dict(line.strip().split(": ", 1) for line in lines[begin + 1 : end])
    assert json.loads(block["message"]) == "exit_code of 'false': expected 1, came 0"
    assert block["severity"] == "fail" and int(block["duration_ms"]) >= 0


@pytest.mark.parametrize("place", ["-", "report.xml"])
def test_junit(abx: Any, mixed: tuple[str, ...], place: str) -> None:
    done = abx(*mixed, "--junit", place, check=False)
    assert done.returncode == 1
    root = ET.fromstring(done.stdout if place == "-" else (abx.cwd / place).read_text(encoding="utf-8"))
    suite = root[0]
    assert (root.tag, suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("testsuites", "4", "1", "1")
    assert [(case.get("name"), [child.tag for child in case]) for case in suite] == [
        ("kill_is_idempotent", []),
        ("pause_resume", ["skipped"]),
        ("exec_exit_code", ["failure"]),
        ("exec_env", []),
    ]


# ---- choice and ends -------------------------------------------------------------------------------------------


def test_fail_fast(abx: Any, mixed: tuple[str, ...]) -> None:
    assert list(results(abx, *mixed[2:], "-x", status=1)) == ["kill_is_idempotent", "pause_resume", "exec_exit_code"]
    assert abx(*mixed, "-x", "--tap", check=False).stdout.endswith("Bail out! Stopped at the first failure\n")
    assert "1 not run" in abx(*mixed, "-x", check=False).stdout


@pytest.mark.parametrize(
    ("args", "status", "text"),
    [
        (["nowhere"], 4, "[E8001]"),
        (["fake", "-k", "zzz"], 2, "No case matches 'zzz'."),
        (["fake", "--tap", "--json"], 2, "choose one"),
        (["fake", "--timeout", "soon"], 2, "whole number"),
        (["fake", "-o", "unheard=1"], 2, "unheard"),
        (["fake", "--junit", "no/where.xml"], 1, "Cannot write 'no/where.xml'"),
    ],
)
def test_usage(abx: Any, tmp_path: Path, args: list[str], status: int, text: str) -> None:
    fakeplugin.make(tmp_path / "fake")
    abx("provider", "install", str(tmp_path / "fake"), "--yes", "--no-verify")
    done = abx("provider", "test", *args, check=False)
    assert done.returncode == status and text in done.stderr


def test_options_reach_the_plugin_and_secrets_stay_in_it(abx: Any, tmp_path: Path) -> None:
    """The plugin quotes its secret in each error of sandbox.get."""
    fakeplugin.make(tmp_path / "fake")
    abx("provider", "install", str(tmp_path / "fake"), "--yes", "--no-verify")
    done = results(abx, "fake", "-o", "mode=code -32000", "-k", "secret", "-k", "get_tells", "-o", "tok=s3cret-word", status=1)
    assert done["secret_options_are_redacted_from_errors"][0] == "passed"
    assert done["get_tells_about_the_sandbox"] == ("failed", "sandbox.get: expected success, came [E8000] msg ***")


def test_a_plugin_that_hangs_fails_the_case_and_not_the_next(abx: Any, tmp_path: Path, home: Path) -> None:
    fakeplugin.make(tmp_path / "fake")
    abx("provider", "install", str(tmp_path / "fake"), "--yes", "--no-verify")
    done = results(abx, "fake", "-o", "mode=noexec", "--timeout", "1", "-k", "exec_stream_stderr", "-k", "ports_url", status=1)
    assert done["exec_stream_stderr"] == ("failed", "the streamed command: expected an end within 1s, none came")
    assert done["ports_url"][0] == "passed"
    pids = (home / "providers" / "fake" / "data" / "pids").read_text(encoding="utf-8").split()
    assert len(pids) == 2  # the second case had a plugin of its own


def test_a_plugin_that_crashes_fails_the_case_and_not_the_next(abx: Any, tmp_path: Path) -> None:
    fakeplugin.make(tmp_path / "fake")
    abx("provider", "install", str(tmp_path / "fake"), "--yes", "--no-verify")
    done = results(abx, "fake", "-o", "mode=crashget", "-k", "get_tells", "-k", "ports_url", status=1)
    assert done["get_tells_about_the_sandbox"][1].startswith("sandbox.get: expected success, came [E8021]")
    assert done["ports_url"][0] == "passed"


WAITING = """
def on_exec_run(self, p, r):
    open("waiting", "w").close()
    return super().on_exec_run({**p, "cmd": "sleep", "args": ["300"], "timeout": 300}, r)
"""


def start_waiting(abx: Any, home: Path, *args: str) -> Any:
    """The command while its case waits for a command that goes on: the plugin tells by a named pipe."""
    fifo = home / "providers" / "lying" / "data" / "waiting"
    fifo.parent.mkdir(mode=0o700, exist_ok=True)
    os.mkfifo(fifo)
    process = abx.popen(["provider", "test", "lying", "-k", "files_roundtrip", "-k", "exec_run", "-k", "exec_env", *args],
                        stdout=-1, stderr=-1)  # fmt: skip
    with open(fifo, encoding="utf-8"):
        pass
    return process


@pytest.mark.parametrize("form", ["people", "--tap", "--json", "--junit=-"])
def test_interrupt_kills_and_reports_what_ran(abx: Any, home: Path, install: Install, form: str) -> None:
    install(WAITING)
    process = start_waiting(abx, home, "-k", "kill_is", *([form] if form != "people" else []))
    process.send_signal(signal.SIGINT)
    out, err = (text.decode() for text in process.communicate(timeout=60))
    assert (process.returncode, err) == (130, "Interrupted.\n")
    assert boxes(home) == []
    if form == "--json":
        assert [row["name"] for row in json.loads(out)["cases"]] == ["kill_is_idempotent"]
    elif form == "--tap":
        assert out == "TAP version 14\n1..4\nok 1 - kill_is_idempotent\nBail out! Interrupted\n"
    elif form == "people":
        assert "1 passed, 0 failed, 0 skipped, 3 not run" in out
    else:
        assert ET.fromstring(out)[0].get("tests") == "1"


def test_a_reader_that_left_ends_it(abx: Any, home: Path, install: Install) -> None:
    install()
    process = abx.popen(["provider", "test", "lying", "-k", "ex"], stdout=-1, stderr=-1)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 128 + signal.SIGPIPE
    assert boxes(home) == []
