"""Help, mistakes, completion and what happens when nobody can read the output."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from command import Abx
from limits import TIMEOUT

EXPECTED = ["create", "list", "info", "kill", "timeout", "pause", "resume", "exec", "run", "ps", "signal", "stdin", "port", "completion", "help", "version"] + [
    f"files {v}" for v in ["ls", "cat", "put", "get", "stat", "mkdir", "rm", "mv"]] + [
    f"provider {v}" for v in ["list", "info", "default", "install", "update", "uninstall", "doctor", "new", "test"]] + [
    f"config {v}" for v in ["get", "set", "list", "explain"]]


# ---- help ------------------------------------------------------------------------------


def test_help_names_every_verb(verbs: list[str]) -> None:
    assert sorted(verbs) == sorted(EXPECTED)


def test_every_verb_has_help(abx: Abx, verbs: list[str]) -> None:
    for verb in verbs:
        by_option, by_verb = abx.run(*verb.split(), "--help"), abx.run("help", *verb.split())
        assert (by_option.returncode, by_option.stderr) == (0, ""), verb
        assert by_option.stdout.startswith(f"Usage: abx {verb}"), verb
        assert "--json" in by_option.stdout
        assert by_verb == by_option


@pytest.mark.parametrize("group", ["provider", "files", "config", "sandbox"])
def test_group_help_and_a_group_alone(abx: Abx, group: str) -> None:
    assert abx.run(group, "--help").returncode == 0
    alone = abx.run(group)
    assert (alone.returncode, alone.stdout) == (2, "")
    assert f"'abx {group}' needs a command" in alone.stderr


def test_sandbox_is_an_alias(abx: Abx) -> None:
    assert abx.run("sandbox", "exec", "--help") == abx.run("exec", "--help")
    assert abx.run("sandbox", "provider").returncode == 2


def test_examples_parse(abx: Abx, verbs: list[str]) -> None:
    """Each option an example uses exists: --help after it must not be a usage error."""
    for verb in verbs:
        text = abx.run(*verb.split(), "--help").stdout
        for line in text.split("Examples:\n", 1)[1].splitlines() if "Examples:" in text else []:
            words = line.split(" -- ")[0].split("|")[0].split("&&")[0].split(">")[0].split()
            if words and words[0] == "abx":
                assert abx.run(*words[1:], "--help").returncode == 0, line


def test_version(abx: Abx) -> None:
    first = abx.run("--version")
    assert first.returncode == 0
    assert first.stdout.startswith("abx ") and first.stdout[4].isdigit()
    assert abx.run("version") == first
    assert json.loads(abx.run("--json", "--version").stdout) == {"version": first.stdout.split()[1]}


# ---- mistakes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "near"),
    [
        (["lsit"], "abx list"),
        (["creat"], "abx create"),
        (["provider", "instal"], "abx provider install"),
        (["files", "mkdri"], "abx files mkdir"),
        (["sandbox", "kil"], "abx sandbox kill"),
        (["help", "provider", "infos"], "abx provider info"),
        (["--jsn", "list"], "--json"),
        (["list", "--all-provider"], "--all-providers"),
        (["provider", "install", "x", "--forec"], "--force"),
        (["provider", "list", "--color=alway"], "always"),
    ],
)
def test_mistake_names_the_nearest(abx: Abx, args: list[str], near: str) -> None:
    result = abx.run(*args)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("[E8002] ")
    assert f"Did you mean '{near}'?" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["zzzzzzzz"],
        ["info"],
        ["info", "a", "b"],
        ["timeout", "x:y", "soon"],
        ["list", "--limit", "-1"],
        ["list", "--limit"],
        ["list", "--json=yes"],
        ["list", "-x"],
        ["list", "--option", "novalue"],
        ["exec", "x:y"],
        ["exec", "x:y", "--"],
        ["exec", "x:y", "ls"],
        ["files", "ls", "nopath"],
        ["signal", "x:y", "1", "NOSUCH"],
        ["port", "x:y", "70000"],
        ["completion", "csh"],
    ],
)
def test_wrong_usage_is_2(abx: Abx, args: list[str]) -> None:
    result = abx.run(*args)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("[E8002] ")


def test_usage_error_as_json_wherever_the_option_stands(abx: Abx) -> None:
    for args in (["--json", "provider", "lst"], ["provider", "lst", "--json"]):
        error = json.loads(abx.run(*args).stderr)["error"]
        assert list(error) == ["code", "message", "suggestion", "docs_url"]
        assert error["code"] == "E8002"


@pytest.mark.parametrize("args", [["run", "sh", "-c", "x"], ["exec", "a:b", "ls", "-l"], ["exec", "a:b", "--zzzz"]])
def test_a_command_without_the_dashes(abx: Abx, args: list[str]) -> None:
    result = abx.run(*args)
    assert result.returncode == 2
    assert f"go after '--': abx {args[0]} " in result.stderr and "-- CMD [ARG...]" in result.stderr


def test_a_bad_pair_is_not_quoted(abx: Abx) -> None:
    assert "s3cret" not in abx.run("list", "--option", "s3cret").stderr


def test_double_dash_ends_options(abx: Abx) -> None:
    result = abx.run("provider", "info", "--", "--force")
    assert result.returncode != 0
    assert "Unknown option" not in result.stderr


def test_json_error_has_the_reference_s_spacing(abx: Abx) -> None:
    result = abx.run("--json", "provider", "info", "nope")
    assert result.returncode == 4
    assert result.stderr == (
        '{"error": {"code": "E8001", "message": "Provider \'nope\' is not installed.", "suggestion": "Run \'abx provider '
        "list'; install with 'abx provider install <path-or-git-url>'.\", \"docs_url\": \"\"}}\n"
    )


# ---- generated files --------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_parses(abx: Abx, tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    script = tmp_path / "script"
    script.write_text(abx.run("completion", shell).stdout)
    for word in ("provider", "--allow-unpinned", "--color", "auto"):
        assert word in script.read_text().replace("-l ", "--")
    if program:
        subprocess.run([program, "-n", str(script)], check=True, timeout=TIMEOUT)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("abx prov", "provider"),
        ("abx provider in", "install"),
        ("abx --json provider uni", "uninstall"),
        ("abx sandbox cre", "create"),
        ("abx list --color al", "always"),
        ("abx provider install --allow-unp", "--allow-unpinned"),
        ("abx completion zs", "zsh"),
        ("abx --provider x provider do", "doctor"),
    ],
)
def test_bash_completes(abx: Abx, tmp_path: Path, line: str, word: str) -> None:
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash")
    script = tmp_path / "script"
    script.write_text(abx.run("completion", "bash").stdout)
    words = line.split()
    program = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _abx; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run([bash, "-c", program, "bash", str(script), *words], capture_output=True, text=True, env=abx.env,
                          timeout=TIMEOUT, check=True)
    assert word in done.stdout.split()


def test_manual_names_every_verb(abx: Abx, verbs: list[str]) -> None:
    page = abx.run("man")
    assert page.returncode == 0
    for verb in verbs:
        assert f".SS abx {verb}" in page.stdout
    assert all(line.isprintable() for line in page.stdout.splitlines())


# ---- output that goes nowhere ---------------------------------------------------------------------


def test_closed_pipe_is_quiet(abx: Abx) -> None:
    process = abx.popen(["--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    # Either it had written all before, or it ends as if SIGPIPE had ended it.
    assert process.wait(TIMEOUT) in (0, 128 + signal.SIGPIPE)
    assert err == b""


def test_reader_that_left_before_is_quiet(abx: Abx) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        process = abx.popen(["provider", "list"], stdout=write_end, stderr=subprocess.PIPE)
    finally:
        os.close(write_end)
    _, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (128 + signal.SIGPIPE, b"")


@pytest.mark.parametrize("args", [["--help"], ["provider", "list"], ["provider", "list", "--json"], ["completion", "zsh"]])
def test_full_disk_is_an_error(abx: Abx, args: list[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with open("/dev/full", "wb") as full:
        process = abx.popen(args, stdout=full, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert b"No space left on device" in err


def test_closed_descriptors(abx: Abx) -> None:
    """A descriptor that was closed must not be given to a file the command opens."""
    shell = subprocess.run(["sh", "-c", '"$0" provider list >&- 2>&- <&-', str(abx.binary)], env=abx.env, cwd=abx.cwd,
                           timeout=TIMEOUT, check=False)
    assert shell.returncode == 1  # a result that is lost is a failure, as with ls(1)


# ---- surroundings ---------------------------------------------------------------------------------


def test_no_home_falls_back_to_passwd(abx: Abx) -> None:
    del abx.env["HOME"]
    del abx.env["ABX_HOME"]
    assert abx.run("--version").returncode == 0
    assert abx.run("--help").returncode == 0
    result = abx.run("config", "get", "provider")
    if pwd.getpwuid(os.getuid()).pw_dir:
        assert (result.returncode, result.stdout) == (0, "alicloud-express\n")
    else:
        assert result.returncode == 2


def test_home_that_can_t_be_used(abx: Abx) -> None:
    abx.env["ABX_HOME"] = "/dev/null/abx"
    assert abx.run("--help").returncode == 0
    result = abx.run("provider", "default", "alicloud-express")
    assert result.returncode in (1, 2)
    assert result.stderr.startswith("[E80")


@pytest.mark.parametrize("name", ["HOME", "ABX_HOME"])
def test_a_relative_home(abx: Abx, name: str) -> None:
    """It would be another one in each directory."""
    del abx.env["ABX_HOME"]
    abx.env[name] = "here"
    for args in (["config", "list"], ["provider", "list"], ["provider", "install", "x", "--yes"]):
        result = abx.run(*args)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"[E8002] {name} is not an absolute path: 'here'.\n  Suggestion: ")
    assert list(abx.cwd.iterdir()) == []


def test_colour(abx: Abx) -> None:
    assert "\033[" not in abx.run("--help").stdout
    assert "\033[" in abx.run("--help", "--color", "always").stdout
    abx.env["NO_COLOR"] = "1"
    assert "\033[" in abx.run("--help", "--color=always").stdout
    assert "\033[" not in abx.run("--help", "--color", "never").stdout


def test_reading_changes_nothing(abx: Abx, home: Path) -> None:
    for args in (["provider", "list"], ["config", "list"], ["provider", "default"]):
        assert abx.run(*args).returncode == 0
    assert not home.exists()
    assert list(abx.cwd.iterdir()) == []
