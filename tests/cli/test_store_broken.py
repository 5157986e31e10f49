"""An installed plugin that somebody laid hands on, and sources that can't be installed: what a person is told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import fakeplugin
import pytest
from command import Abx
from limits import TIMEOUT

FLAGS = ["--yes", "--no-verify"]
GIT = ["--allow-insecure-transport", "--allow-unpinned", *FLAGS]


@pytest.fixture
def installed(abx: Abx, tmp_path: Path, home: Path) -> Path:
    """<home>/providers/fake"""
    abx("provider", "install", str(fakeplugin.make(tmp_path / "plugin")), *FLAGS)
    return home / "providers" / "fake"


def refused(abx: Abx, code: str, *args: str) -> tuple[str, str]:
    """Message and suggestion of the error that args end with; both are whole sentences."""
    result = abx.run("--json", *args)
    error = json.loads(result.stderr)["error"]
    assert (error["code"], result.returncode) == (code, 2 if code == "E8002" else 1), error
    assert error["message"].endswith(".") and error["suggestion"].endswith("."), error
    return error["message"], error["suggestion"]


def replace(path: Path, kind: str) -> None:
    """path becomes something else of that name."""
    moved = path.with_name(path.name + ".moved")
    path.rename(moved)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(moved)
    elif kind == "directory":
        path.mkdir()


@pytest.mark.parametrize("kind", ["fifo", "link", "directory", "missing"])
def test_a_manifest_that_is_no_file(abx: Abx, installed: Path, kind: str) -> None:
    replace(installed / "abx-provider.toml", kind)
    message, suggestion = refused(abx, "E8011", "info", "fake:sb1")
    assert "files changed since install ('abx-provider.toml')" in message and "--force" in suggestion
    doctor = abx.run("provider", "doctor", "fake")
    assert doctor.returncode == 2 and "FAIL" in doctor.stdout
    assert "[E8011]" in abx("provider", "list").stdout


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_a_receipt_that_is_no_file(abx: Abx, installed: Path, kind: str) -> None:
    receipt = installed / ".abx-install.json"
    replace(receipt, kind)
    message, suggestion = refused(abx, "E8011", "info", "fake:sb1")
    assert f"'{receipt}' is not a regular file" in message and "--force" in suggestion


def test_a_receipt_that_is_gone(abx: Abx, installed: Path, tmp_path: Path) -> None:
    """The reference drops it from its list without a word."""
    (installed / ".abx-install.json").unlink()
    rows = {row["id"]: row for row in json.loads(abx("provider", "list", "--json").stdout)}
    assert rows["fake"]["error"]["code"] == "E8011" and "no install receipt" in rows["fake"]["error"]["message"]
    assert "abx provider install --force" in refused(abx, "E8011", "info", "fake:sb1")[1]
    abx("provider", "install", str(tmp_path / "plugin"), *FLAGS, "--force")
    assert abx("info", "fake:sb1").returncode == 0
    (installed / ".abx-install.json").unlink()
    abx("provider", "uninstall", "fake")
    assert not (installed / "abx-provider.toml").exists()
    assert "fake" not in abx("provider", "list").stdout


def test_a_provider_that_became_a_link(abx: Abx, installed: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    installed.rename(elsewhere)
    installed.symlink_to(elsewhere)
    for args in (["info", "fake:sb1"], ["provider", "uninstall", "fake"]):
        message, suggestion = refused(abx, "E8011", *args)
        assert f"'{installed}' is a symbolic link" in message and "Remove the link" in suggestion
    assert "[E8011]" in abx("provider", "list").stdout
    assert (elsewhere / "abx-provider.toml").is_file() and installed.is_symlink()
    installed.unlink()
    assert abx.run("info", "fake:sb1").returncode == 4


def test_what_an_uninstall_left_is_not_listed(abx: Abx, installed: Path) -> None:
    assert abx("info", "fake:sb1").returncode == 0
    abx("provider", "uninstall", "fake")
    assert (installed / "data").is_dir()
    assert "fake" not in abx("provider", "list").stdout
    assert abx.run("provider", "uninstall", "fake").returncode == 4


def test_doctor_does_not_praise_what_can_t_start(abx: Abx) -> None:
    for args in ([], ["alicloud-express"], ["alicloud-express", "--no-handshake"]):
        result = abx.run("provider", "doctor", *args)
        assert result.returncode == 2
        assert "FAIL driver: Provider 'alicloud-express' is of kind 'builtin'" in result.stdout
    assert json.loads(abx.run("--json", "provider", "doctor").stdout)["ok"] is False


# ---- sources ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("digest", ["abc", "", "z" * 64, "0" * 63, "0" * 65])
def test_a_digest_that_is_none(abx: Abx, tmp_path: Path, home: Path, digest: str) -> None:
    """Before anything is fetched: the source is not even there."""
    message, _ = refused(abx, "E8002", "provider", "install", f"file://{tmp_path}/none", "--sha256", digest, *GIT)
    assert message.startswith("--sha256 needs 64 hexadecimal digits")
    assert not home.exists()


@pytest.fixture
def repo(tmp_path: Path) -> str:
    """URL of a repository whose plugin is in the directory sub."""
    root = tmp_path / "repo"
    fakeplugin.make(root / "sub")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    for args in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *args], cwd=root, env=env, check=True,
                       timeout=TIMEOUT)
    return f"file://{root}"


def commit_of(url: str) -> str:
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=url.removeprefix("file://"), check=True, capture_output=True, text=True,
                          timeout=TIMEOUT).stdout.strip()


def test_git_s_words_become_ours(abx: Abx, repo: str) -> None:
    commit = commit_of(repo)
    cases = [
        (["--ref", commit[:8]], "no branch or tag", "all 40 digits"),
        (["--ref", "nosuch"], "no branch or tag 'nosuch'", "a branch or a tag that is there"),
        (["--ref", "f" * 40], "has no commit", "pushed"),
        (["--subdir", "nodir"], "no directory 'nodir'", "abx-provider.toml"),
        (["--subdir", "sub/abx-provider.toml"], "no directory 'sub/abx-provider.toml'", "abx-provider.toml"),
    ]
    for args, why, what in cases:
        message, suggestion = refused(abx, "E8010", "provider", "install", repo, *args, *GIT)
        assert why in message and "fatal" not in message and what in suggestion, (args, message, suggestion)


def test_what_only_the_shorthand_knows(abx: Abx, repo: str) -> None:
    """store.md: owner/repo//subdir@ref; a URL takes --subdir and --ref."""
    for suffix, option in (("//sub", "--subdir"), ("//sub@main", "--subdir"), ("@main", "--ref")):
        assert option in refused(abx, "E8010", "provider", "install", repo + suffix, *GIT)[1]
    abx("provider", "install", repo, "--subdir", "sub", "--ref", "main", *GIT)


def test_an_empty_repository(abx: Abx, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "empty")], check=True, timeout=TIMEOUT)
    message, _ = refused(abx, "E8010", "provider", "install", f"file://{tmp_path}/empty", *GIT)
    assert "no commit yet" in message


@pytest.mark.parametrize("how", [[], ["--link"]])
def test_an_update_of_a_local_directory(abx: Abx, tmp_path: Path, how: list[str]) -> None:
    """As the reference has it, also with --check and for all."""
    abx("provider", "install", str(fakeplugin.make(tmp_path / "plugin")), *FLAGS, *how)
    for args in (["fake"], ["--check"], []):
        result = abx.run("provider", "update", *args)
        assert (result.returncode, result.stdout, result.stderr) == (
            1, "", "[E8010] Provider 'fake' was installed from a local directory; reinstall it with "
            "'abx provider install --force <path>'.\n")
    shutil.rmtree(tmp_path / "plugin")
    assert abx.run("provider", "update", "fake").returncode == 1
