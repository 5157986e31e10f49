"""The verbs on the example provider: streams, statuses, copies, signals, updates and the consent screen."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
from pathlib import Path

import pytest
from command import Abx
from limits import TIMEOUT

EXAMPLE = Path(os.environ.get("ABX_TEST_SOURCE", Path(__file__).resolve().parents[2])) / "examples" / "providers" / "local-process"


@pytest.fixture
def local(abx: Abx) -> Abx:
    """The command with the example provider installed and chosen."""
    abx("provider", "install", str(EXAMPLE), "--yes", "--no-verify")
    abx.env["ABX_PROVIDER"] = "local-process"
    return abx


@pytest.fixture
def ref(local: Abx) -> str:
    return local("create", "--metadata", "owner=test").stdout.strip()


# ---- life ---------------------------------------------------------------------------------


def test_create_list_info_kill(local: Abx, ref: str) -> None:
    assert ref.startswith("local-process:")
    assert local("list", "-q").stdout.split() == [ref]
    record = json.loads(local("info", ref.split(":", 1)[1], "--json").stdout)
    assert (record["ref"], record["provider"], record["metadata"]) == (ref, "local-process", {"owner": "test"})
    every = local("list", "--all-providers", "--json")
    assert [row["ref"] for row in json.loads(every.stdout)] == [ref]
    assert local.run("kill", ref, "nope:x").returncode == 4
    assert local("list", "-q").stdout == ""


def test_conflicting_provider_is_2(local: Abx, ref: str) -> None:
    result = local.run("info", ref, "--provider", "alicloud-express")
    assert (result.returncode, result.stderr[:7]) == (2, "[E8030]")


# ---- commands --------------------------------------------------------------------------------


def test_streams_and_status(local: Abx, ref: str) -> None:
    result = local.run("exec", ref, "--env", "X=1 2", "--", "sh", "-c", 'printf "%s" "$X"; echo err >&2; exit 7')
    assert (result.returncode, result.stdout, result.stderr) == (7, "1 2", "err\n")


@pytest.mark.parametrize(("script", "status"), [("kill -9 $$", 137), ("kill -TERM $$", 143), ("exit 255", 255)])
def test_status_of_signals(local: Abx, ref: str, script: str, status: int) -> None:
    assert local.run("exec", ref, "--", "sh", "-c", script).returncode == status


def test_command_that_is_missing_is_127_with_text(local: Abx, ref: str) -> None:
    result = local.run("exec", ref, "--", "no-such-command")
    assert result.returncode == 127
    assert "no-such-command" in result.stderr


def test_sandbox_that_is_missing_is_not_a_status_of_the_command(local: Abx) -> None:
    assert local.run("exec", "local-process:none", "--", "true").returncode == 4


def test_shell_joins_words(local: Abx, ref: str) -> None:
    assert local("exec", ref, "--shell", "--", "echo $((40 + 2))", "|", "cat").stdout == "42\n"


def test_json_keeps_bytes(local: Abx, ref: str) -> None:
    result = local.run("exec", ref, "--json", "--", "sh", "-c", r"printf 'a\377'; printf '\351\232\236' >&2; exit 3")
    assert result.returncode == 3
    assert json.loads(result.stdout) == {"stdout_b64": "Yf8=", "stderr": "隞", "exit_code": 3}


def test_stdin_is_forwarded(local: Abx, ref: str) -> None:
    text = "名" * 50_000 + "\n"  # cut by every chunk, but never inside a character
    assert local("exec", ref, "--stdin", "--", "sh", "-c", "head -n 1 | wc -c", input=text).stdout.strip() == str(len(text.encode()))


def test_output_comes_before_the_end(local: Abx, ref: str) -> None:
    process = local.popen(["exec", ref, "--", "sh", "-c", "echo first; exec sleep 60"], stdout=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == b"first\n"
    process.send_signal(signal.SIGINT)
    process.stdout.close()
    assert process.wait(TIMEOUT) == 130


# ---- run ----------------------------------------------------------------------------------------


def test_run_kills_and_returns_the_status(local: Abx) -> None:
    assert local.run("run", "--", "sh", "-c", "exit 5").returncode == 5
    assert local.run("run", "--", "no-such-command").returncode == 127
    assert local("list", "-q").stdout == ""
    kept = local("run", "--keep", "--", "true").stderr.strip()
    assert local("list", "-q").stdout.split() == [kept]


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_run_kills_after_a_signal(local: Abx, signo: signal.Signals) -> None:
    process = local.popen(["run", "--", "sh", "-c", "echo up; exec sleep 60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == b"up\n"
    process.send_signal(signo)
    _, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (128 + signo, b"Interrupted.\n")
    assert local("list", "-q").stdout == ""


def test_run_kills_when_the_reader_leaves(local: Abx) -> None:
    process = local.popen(["run", "--", "sh", "-c", "while echo y; do :; done"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(TIMEOUT) == 128 + signal.SIGPIPE
    assert local("list", "-q").stdout == ""


# ---- files ---------------------------------------------------------------------------------------


def test_trees_go_there_and_back(local: Abx, ref: str) -> None:
    tree = local.cwd / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "a").write_bytes(bytes(range(256)))
    (tree / "sub" / "名前").write_bytes(b"")
    (tree / "sub" / "run").write_text("#!/bin/sh\n")
    (tree / "sub" / "run").chmod(0o750)
    local("files", "put", "tree", f"{ref}:/t")
    assert local("files", "ls", f"{ref}:/t").stdout.split() == ["a", "sub/"]
    local("files", "get", f"{ref}:/t", "back")
    back = local.cwd / "back"
    assert (back / "a").read_bytes() == bytes(range(256))
    assert (back / "sub" / "名前").read_bytes() == b""
    assert (back / "sub" / "run").stat().st_mode & 0o777 == 0o750
    local("files", "put", "tree/a", f"{ref}:/t/sub")  # into a directory that is there
    local("files", "mv", f"{ref}:/t/sub/a", "/t/moved")
    local("files", "rm", f"{ref}:/t/a")
    assert local("files", "ls", f"{ref}:/t").stdout.split() == ["moved", "sub/"]
    assert local.run("files", "cat", f"{ref}:/t/a").returncode == 4


def test_links_are_left_out_and_said(local: Abx, ref: str) -> None:
    tree = local.cwd / "tree"
    tree.mkdir()
    (tree / "link").symlink_to("/etc/passwd")
    result = local.run("files", "put", "tree", f"{ref}:/t")
    assert result.returncode == 1
    assert "symbolic link" in result.stderr


def test_get_follows_no_link_below_its_top(local: Abx, ref: str) -> None:
    (local.cwd / "in").mkdir()
    (local.cwd / "in" / "f").write_text("new")
    local("files", "put", "in", f"{ref}:/t")
    (local.cwd / "t").mkdir()
    (local.cwd / "victim").write_text("old")
    (local.cwd / "t" / "f").symlink_to("../victim")
    assert local.run("files", "get", f"{ref}:/t").returncode == 1
    assert (local.cwd / "victim").read_text() == "old"


# ---- updates -----------------------------------------------------------------------------------------


def test_update_from_git(abx: Abx) -> None:
    repo = abx.cwd / "repo"
    repo.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(repo), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*args: str) -> None:
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *args], cwd=repo, env=env, check=True,
                       capture_output=True, timeout=TIMEOUT)

    for file in EXAMPLE.iterdir():
        if file.is_file():
            (repo / file.name).write_bytes(file.read_bytes())
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "one")
    flags = ["--allow-insecure-transport", "--yes", "--allow-unpinned", "--no-verify"]
    abx("provider", "install", f"file://{repo}", "--ref", "main", *flags)
    manifest = repo / "abx-provider.toml"
    manifest.write_text(manifest.read_text().replace("spawns_processes = true", "spawns_processes = false"))
    git("commit", "-qam", "two")
    check = abx("provider", "update", "local-process", "--check", "--allow-insecure-transport")
    assert check.stdout == "local-process: available\n"
    declined = abx.run("provider", "update", "local-process", "--allow-insecure-transport")
    assert (declined.returncode, declined.stdout) == (2, "")
    shown, end = declined.stderr.rsplit("\n[", 1)
    assert json.loads(shown)["changes"] == ["security"]
    assert end.startswith("E8012] Update cancelled.\n  Suggestion: ")
    updated = json.loads(abx("--json", "provider", "update", *flags).stdout)
    assert [(row["id"], row["status"], row["changes"]) for row in updated] == [("local-process", "updated", ["security"])]
    assert abx("provider", "update", "local-process", *flags).stdout == "local-process: up-to-date\n"


# ---- a person at a terminal -------------------------------------------------------------------------


def at_terminal(abx: Abx, args: list[str], answer: bytes) -> tuple[str, int]:
    """Answers the first question; what the terminal showed, and the exit status."""
    host, terminal = pty.openpty()
    process = abx.popen(args, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown, answered = b"", False
    while select.select([host], [], [], TIMEOUT)[0]:
        try:
            data = os.read(host, 4096)
        except OSError:
            break
        shown += data
        if b"[y/N] " in shown and not answered:
            os.write(host, answer)
            answered = True
    os.close(host)
    return shown.decode(), process.wait(TIMEOUT)


@pytest.mark.parametrize(("answer", "status"), [(b"\n", 2), (b"no\n", 2), (b"\x04", 2), (b"y\n", 0), (b"YES\n", 0)])
def test_consent_screen(abx: Abx, answer: bytes, status: int) -> None:
    shown, code = at_terminal(abx, ["provider", "install", str(EXAMPLE), "--no-verify"], answer)
    assert code == status
    for text in ("Install provider local-process", "python3 ./provider.py", "workdir_root", "not enforced"):
        assert text in shown
    assert ("Installed local-process" in shown) == (status == 0)
    assert ("local-process" in abx("provider", "list", "-q").stdout.split()) == (status == 0)


def test_consent_screen_shows_no_escapes_of_a_plugin(abx: Abx) -> None:
    plugin = abx.cwd / "plugin"
    plugin.mkdir()
    for file in EXAMPLE.iterdir():
        if file.is_file():
            (plugin / file.name).write_bytes(file.read_bytes())
    manifest = plugin / "abx-provider.toml"
    text = manifest.read_text()
    assert '"Local Process"' in text
    manifest.write_text(text.replace('"Local Process"', '"Good\\u001B[2K\\rEvil\\u202E"'))
    shown, code = at_terminal(abx, ["provider", "install", str(plugin), "--color", "never"], b"n\n")
    assert code in (1, 2)
    assert "\033" not in shown and "\u202e" not in shown


def test_no_input_never_asks(abx: Abx) -> None:
    shown, code = at_terminal(abx, ["provider", "install", str(EXAMPLE), "--no-input"], b"y\n")
    assert code == 2
    assert "[y/N]" not in shown


def test_consent_screen_of_a_link_says_that_there_is_no_digest(abx: Abx) -> None:
    shown, code = at_terminal(abx, ["provider", "install", str(EXAMPLE), "--link", "--color", "never"], b"n\n")
    assert code == 2
    assert "Tree digest   none" in shown


def test_two_signals_at_once_are_one_wish(abx: Abx) -> None:
    """timeout(1) sends its signal to the child and then to the group; the sandbox is killed nevertheless."""
    abx("provider", "install", str(EXAMPLE), "--yes")
    process = abx.popen(["run", "--provider", "local-process", "--", "sh", "-c", "echo up; sleep 600"], stdout=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGHUP)
    process.stdout.close()
    assert process.wait(TIMEOUT) in (128 + signal.SIGTERM, 128 + signal.SIGHUP)
    assert abx("list", "--provider", "local-process", "-q").stdout == ""


def test_new_plugin_in_c_is_built_before_it_is_tried(abx: Abx) -> None:
    assert "Try it: make -C ./my-c && abx provider install ./my-c" in abx("provider", "new", "my-c", "--lang", "c").stdout
    assert "make" not in abx("provider", "new", "my-rest", "--kind", "rest", "--lang", "c").stdout
