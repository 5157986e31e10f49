"""`python -m agent_sandbox.providers` and the functions behind it, with real installs of local-process.

The texts, shapes and exit codes are the reference's, whose scripts people have.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_sandbox.models.errors import (
    ProviderConflictError,
    ProviderInstallError,
    ProviderIntegrityError,
    ProviderNotFoundError,
    ProviderTrustError,
)
from agent_sandbox.providers import doctor, installer, registry, store
from manage import TIMEOUT, Manage

ID = "local-process"
NOT_INSTALLED = "Run 'abx provider list'; install with 'abx provider install <path-or-git-url>'."
CONSENT_KEYS = [
    "id", "name", "name_zh", "version", "source", "tree_sha256", "trust", "runtime", "kind", "features",
    "operation_contract_version", "operations", "workflow_inputs", "startup_modes", "commands", "security", "fields",
    "inherit", "changes",
]  # fmt: skip
RECEIPT_KEYS = {
    "receipt_version", "id", "version", "source", "tree_sha256", "manifest_sha256", "trust", "consented",
    "installed_at", "installed_by",
}  # fmt: skip
INFO_KEYS = [
    "id", "name", "name_zh", "version", "kind", "features", "operation_contract_version", "operations",
    "workflow_inputs", "startup_modes", "extensions", "config_fields", "inherit", "receipt",
]  # fmt: skip


def error_of(text: str) -> dict[str, str]:
    """The error a --json command wrote."""
    error: dict[str, str] = json.loads(text)["error"]
    assert list(error) == ["code", "message", "suggestion", "docs_url"]
    return error


@pytest.fixture
def copy(source: Path, tmp_path: Path) -> Path:
    """local-process in a directory that a test may change."""
    return Path(shutil.copytree(source, tmp_path / "copy"))


@pytest.fixture
def git(copy: Path, tmp_path: Path) -> Git:
    return Git(copy, tmp_path / "git-home")


class Git:
    """A repository with local-process, and its commits."""

    def __init__(self, work: Path, home: Path) -> None:
        home.mkdir()
        self.work = work
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
        for role in ("AUTHOR", "COMMITTER"):
            self.env |= {f"GIT_{role}_NAME": "t", f"GIT_{role}_EMAIL": "t@example.com"}
        self("init", "-q", "-b", "main")
        self("config", "uploadpack.allowAnySHA1InWant", "true")
        self.first = self.commit("first")

    def __call__(self, *args: str) -> str:
        done = subprocess.run(["git", *args], cwd=self.work, env=self.env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        self("add", "-A")
        self("commit", "-q", "-m", message)
        return self("rev-parse", "HEAD")

    @property
    def url(self) -> str:
        return f"file://{self.work}"


def change(work: Path, old: str, new: str) -> None:
    path = work / "abx-provider.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


# ---- list, info, default


def test_list_shows_one_line_a_provider(manage: Manage, local: str) -> None:
    lines = manage("list").stdout.splitlines()
    assert lines[0].startswith("* alicloud-express         ")
    assert lines[1] == ("  local-process            0.1.0      exec     local     sandbox(lifecycle,timeout) "
                        "exec(run,stream) process(manage) files(rw) ports(url)")
    assert len(lines) == 2


@pytest.mark.parametrize("words", [("--json", "list"), ("list", "--json")])
def test_list_json(manage: Manage, local: str, words: tuple[str, ...]) -> None:
    rows = json.loads(manage(*words).stdout)
    assert [row["id"] for row in rows] == ["alicloud-express", ID]
    assert list(rows[1]) == ["id", "name", "name_zh", "version", "kind", "trust", "features", "default"]
    assert (rows[0]["kind"], rows[0]["trust"], rows[0]["default"]) == ("builtin", "builtin", True)
    assert (rows[1]["name_zh"], rows[1]["trust"], rows[1]["default"]) == ("本地进程", "local", False)


def test_list_says_why_one_is_unusable(manage: Manage, local: str, home: Path) -> None:
    (home / "providers" / ID / ".abx-install.json").write_text("{", encoding="utf-8")
    line = manage("list").stdout.splitlines()[1]
    assert line.startswith("  local-process ")
    assert "(unusable: [E80" in line
    assert json.loads(manage("list", "--json").stdout)[1]["error"].startswith("[E80")


def test_info_is_json_either_way(manage: Manage, local: str, source: Path) -> None:
    plain, as_json = manage("info", ID).stdout, manage("--json", "info", ID).stdout
    assert plain == as_json
    info = json.loads(plain)
    assert list(info) == INFO_KEYS
    assert info["receipt"]["source"] == {"path": str(source), "type": "local"}
    assert info["features"] == sorted(info["features"])
    assert json.loads(manage("info", "alicloud-express").stdout)["receipt"] is None


@pytest.mark.parametrize("words", [("info",), ("uninstall",), ("update",), ("default",), ("test",)])
def test_a_provider_that_is_not_there(manage: Manage, words: tuple[str, ...]) -> None:
    result = manage.run(*words, "nope")
    assert (result.returncode, result.stdout) == (4, "")
    assert result.stderr == f"[E8001] Provider 'nope' is not installed.\n  Suggestion: {NOT_INSTALLED}\n"
    told = manage.run("--json", *words, "nope")
    assert error_of(told.stderr) == {
        "code": "E8001", "message": "Provider 'nope' is not installed.", "suggestion": NOT_INSTALLED, "docs_url": ""}


def test_default(manage: Manage, local: str, home: Path) -> None:
    assert manage("default").stdout == "alicloud-express\n"
    assert manage("default", ID).stdout == "Default provider: local-process\n"
    assert manage("default").stdout == "local-process\n"
    assert json.loads(manage("--json", "default").stdout) == {"default": ID}
    assert (home / "config.toml").read_text(encoding="utf-8") == '[core]\nprovider = "local-process"\n'
    assert manage("list").stdout.splitlines()[1].startswith("* local-process")
    assert json.loads(manage("default", "alicloud-express", "--json").stdout) == {"default": "alicloud-express"}
    assert manage("default").stdout == "alicloud-express\n"


# ---- the command line


@pytest.mark.parametrize("words", [(), ("bogus",), ("info",), ("install", "--nope", "x"), ("list", "more")])
def test_wrong_usage(manage: Manage, words: tuple[str, ...]) -> None:
    result = manage.run(*words)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("usage: python -m agent_sandbox.providers")


def test_help_names_every_verb(manage: Manage) -> None:
    text = manage("--help").stdout
    for verb in ("list", "info", "install", "uninstall", "update", "default", "test", "doctor"):
        assert f"    {verb}" in text


def test_a_reader_that_leaves_is_no_error(manage: Manage, local: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run([sys.executable, "-m", "agent_sandbox.providers", "info", ID], stdout=gone,
                              stderr=subprocess.PIPE, env=manage.env, timeout=TIMEOUT, check=False)
    assert done.stderr == b""


# ---- install


def test_install_asks_and_nobody_is_there(manage: Manage, source: Path, home: Path) -> None:
    result = manage.run("install", str(source), input="y\n")
    assert (result.returncode, result.stdout) == (2, "")
    shown, _, error = result.stderr.partition("\n}\n")
    consent = json.loads(shown + "}")
    assert list(consent) == CONSENT_KEYS
    assert (consent["id"], consent["trust"], consent["changes"]) == (ID, "local", [])
    assert consent["fields"] == [{"key": "workdir_root", "secret": False}]
    assert error.startswith("[E8012] Installation cancelled.\n")
    assert not (home / "providers" / ID).exists()


def test_install_and_once_more(manage: Manage, source: Path) -> None:
    assert manage("install", str(source), "--yes").stdout == "Installed local-process 0.1.0\n"
    again = manage.run("install", str(source), "--yes")
    assert (again.returncode, again.stderr) == (
        1, "[E8003] Provider id 'local-process' is already installed.\n  Suggestion: Re-run with --force to replace it.\n")
    receipt = json.loads(manage("--json", "install", str(source), "-y", "--force").stdout)
    assert set(receipt) == RECEIPT_KEYS
    assert (receipt["trust"], receipt["installed_by"]) == ("local", {"tool": "python-sdk"})
    assert receipt["source"] == {"type": "local", "path": str(source)}


def test_install_of_a_link(manage: Manage, source: Path, home: Path) -> None:
    refused = manage.run("install", str(source), "--link")
    assert (refused.returncode, refused.stderr) == (
        2, "[E8012] --link requires --yes (the linked code is not pinned).\n"
           "  Suggestion: Re-run with --yes after reviewing the directory.\n")
    receipt = json.loads(manage("install", str(source), "--link", "--yes", "--json").stdout)
    assert (receipt["trust"], receipt["tree_sha256"], receipt["source"]["type"]) == ("link", "", "link")
    assert " link " in manage("list").stdout
    assert manage.run("update", ID).stderr == (
        "[E8010] Provider 'local-process' was installed from a local directory; reinstall it with "
        "'abx provider install --force <path>'.\n")


def test_what_does_not_start_is_not_installed(manage: Manage, copy: Path, home: Path) -> None:
    (copy / "provider.py").write_text("import sys\nsys.exit('I am broken')\n", encoding="utf-8")
    result = manage.run("install", str(copy), "--yes")
    assert result.returncode == 1
    assert result.stderr.startswith("[E802")
    assert manage("list").stdout.count("\n") == 1
    assert manage("install", str(copy), "--yes", "--no-verify").stdout == "Installed local-process 0.1.0\n"


def test_a_person_agrees_in_a_terminal(manage: Manage, source: Path) -> None:
    for answer, status in ((b"n\n", 2), (b"y\n", 0)):
        master, slave = pty.openpty()
        try:
            child = subprocess.Popen([sys.executable, "-m", "agent_sandbox.providers", "install", str(source)],
                                     stdin=slave, stdout=subprocess.PIPE, stderr=slave, env=manage.env)
            os.close(slave)
            slave = -1
            seen = b""
            while b"[y/N] " not in seen:
                assert select.select([master], [], [], TIMEOUT)[0], seen
                seen += os.read(master, 65536)
            os.write(master, answer)
            out = child.communicate(timeout=TIMEOUT)[0]
            assert child.returncode == status
            assert b'"tree_sha256"' in seen
        finally:
            os.close(master)
            if slave >= 0:
                os.close(slave)
    assert out == b"Installed local-process 0.1.0\n"


def test_text_of_a_plugin_moves_no_cursor(manage: Manage, copy: Path) -> None:
    change(copy, '"Local Process"', '"\\u202Egnilaets\\u009B31m"')
    result = manage.run("install", str(copy))
    assert "gnilaets" in result.stderr
    assert not {"\u202e", "\u009b", "\x1b"} & set(result.stderr)


# ---- git


def test_a_moving_ref_needs_more_than_yes(manage: Manage, git: Git) -> None:
    assert manage.run("install", git.url, "--yes").stderr.startswith("[E8012] Insecure provider source")
    result = manage.run("install", git.url, "--allow-insecure-transport", "--yes")
    assert result.returncode == 2
    assert result.stderr == (
        "[E8012] Refusing an unpinned git source without review (--yes does not accept a moving ref).\n"
        f"  Suggestion: Pin it: --ref {git.first} (or --sha256 <digest>); or pass --allow-unpinned to accept the "
        "current head.\n")
    asked = manage.run("install", git.url, "--allow-insecure-transport")
    assert asked.returncode == 2
    assert '"trust": "unpinned"' in asked.stderr
    assert "[E8012] Installation cancelled." in asked.stderr


def test_update_of_a_branch(manage: Manage, git: Git, home: Path) -> None:
    words = ("--allow-insecure-transport", "--allow-unpinned", "--no-verify", "--yes")
    manage("install", git.url, "--ref", "main", *words)
    assert manage("update", ID, *words).stdout == "local-process: up-to-date\n"
    change(git.work, 'version     = "0.1.0"', 'version     = "0.2.0"')
    second = git.commit("second")
    (report,) = json.loads(manage("update", ID, "--check", "--allow-insecure-transport", "--json").stdout)
    assert report == {"id": ID, "status": "available", "installed": git.first, "available": second, "changes": []}
    assert manage("update", *words).stdout == "local-process: updated\n"
    assert json.loads(manage("info", ID).stdout)["version"] == "0.2.0"


def test_update_of_a_pinned_one(manage: Manage, git: Git) -> None:
    words = ("--allow-insecure-transport", "--no-verify", "--yes")
    manage("install", git.url, "--ref", git.first, *words)
    change(git.work, 'network          = ["*"]', 'network          = []')
    second = git.commit("second")
    assert manage("update", ID, "--allow-insecure-transport").stdout == "local-process: pinned\n"
    asked = manage.run("update", ID, "--ref", second, "--allow-insecure-transport")
    assert asked.returncode == 2
    assert "[E8012] Update cancelled." in asked.stderr
    assert json.loads(asked.stderr.partition("\n}\n")[0] + "}")["changes"] == ["security"]
    (report,) = json.loads(manage("--json", "update", ID, "--ref", second, *words).stdout)
    assert (report["status"], report["changes"]) == ("updated", ["security"])


def test_update_goes_on_past_a_failure(manage: Manage, git: Git, source: Path, tmp_path: Path) -> None:
    words = ("--allow-insecure-transport", "--no-verify", "--yes")
    other = Path(shutil.copytree(source, tmp_path / "other"))
    change(other, 'id          = "local-process"', 'id          = "a-local-one"')
    manage("install", str(other), "--no-verify", "--yes")
    manage("install", git.url, "--ref", git.first, *words)
    result = manage.run("update", *words)
    assert result.returncode == 1
    assert result.stdout == "local-process: pinned\n"
    assert result.stderr.startswith("[E8010] Provider 'a-local-one' was installed from a local directory")


def test_the_built_in_is_updated_with_the_package(manage: Manage) -> None:
    assert manage("update", "alicloud-express").stdout.startswith("alicloud-express: bundled — ")
    (report,) = json.loads(manage("--json", "update", "alicloud-express").stdout)
    assert (report["status"], report["available"], report["changes"]) == ("bundled", None, [])
    refused = manage.run("--json", "update", "alicloud-express", "--ref", "x")
    assert (refused.returncode, error_of(refused.stderr)["code"]) == (1, "E8010")
    assert json.loads(manage("--json", "update").stdout) == []


# ---- doctor


def test_doctor(manage: Manage, local: str, home: Path) -> None:
    digest = store.digest_dir(home / "providers" / ID)[:16]
    text = f"ok   installed: local-process 0.1.0\nok   integrity: {digest}\nok   config\n"
    assert manage("doctor", ID, "--no-handshake").stdout == text
    assert manage("doctor", ID).stdout == text + "ok   handshake\n"
    report = json.loads(manage("--json", "doctor", ID).stdout)
    assert (list(report), report["ok"]) == (["id", "ok", "checks"], True)
    assert report["checks"][1] == {"name": "integrity", "ok": True, "detail": digest}


def test_doctor_finds_something(manage: Manage, local: str, home: Path) -> None:
    missing = manage.run("doctor", "nope")
    assert (missing.returncode, missing.stdout, missing.stderr) == (
        2, "FAIL installed: Provider 'nope' is not installed.\n", "")
    (home / "providers" / ID / "box.py").unlink()
    changed = manage.run("doctor", ID)
    assert changed.returncode == 2
    assert "FAIL integrity: Provider 'local-process': files changed since install" in changed.stdout


# ---- uninstall


def test_uninstall_keeps_the_data_unless_purged(manage: Manage, local: str, home: Path, source: Path) -> None:
    folder = home / "providers" / ID
    manage("default", ID)
    (store.data_dir(ID) / "state").write_text("mine", encoding="utf-8")
    assert json.loads(manage("--json", "uninstall", ID).stdout) == {
        "id": ID, "removed": True, "purged": False, "default_reset": True}
    assert [p.name for p in folder.iterdir()] == ["data"]
    assert manage("default").stdout == "alicloud-express\n"
    assert manage.run("uninstall", ID).returncode == 4
    manage("install", str(source), "--yes", "--no-verify")
    assert (folder / "data" / "state").read_text(encoding="utf-8") == "mine"
    assert manage("uninstall", ID, "--purge").stdout == "Removed local-process\n"
    assert not folder.exists()
    refused = manage.run("uninstall", "alicloud-express")
    assert (refused.returncode, refused.stderr) == (1, "[E8003] The built-in provider cannot be removed.\n")


# ---- the functions


def test_install_wants_somebody_to_agree(home: Path, source: Path) -> None:
    with pytest.raises(ProviderTrustError):
        installer.install(str(source))
    seen: list[dict[str, Any]] = []

    def no(plan: installer.InstallPlan) -> bool:
        seen.append(plan.summary())
        assert (plan.id, plan.version, plan.trust, plan.changes, plan.previous) == (ID, "0.1.0", "local", [], None)
        return False

    with pytest.raises(ProviderTrustError, match="cancelled"):
        installer.install(str(source), confirm=no)
    assert store.list_installed_ids() == []
    receipt = installer.install(str(source), confirm=lambda plan: True, installed_by={"name": "my-tool", "version": "1"})
    assert receipt["tree_sha256"] == seen[0]["tree_sha256"]
    assert receipt["installed_by"] == {"tool": "my-tool"}
    with pytest.raises(ProviderConflictError):
        installer.install(str(source), yes=True)
    with pytest.raises(ProviderIntegrityError):
        installer.install(str(source), yes=True, force=True, sha256="0" * 64)
    pinned = installer.install(str(source), yes=True, force=True, sha256=receipt["tree_sha256"])
    assert pinned["trust"] == "pinned"


def test_a_check_of_ones_own_can_refuse_an_install(home: Path, source: Path, copy: Path) -> None:
    checked: list[str] = []

    def refuse(provider_id: str) -> None:
        checked.append(store.read_receipt(provider_id)["version"])  # type: ignore[index]
        raise ProviderInstallError("not today")

    with pytest.raises(ProviderInstallError, match="not today"):
        installer.install(str(source), yes=True, verify=refuse)
    assert store.list_installed_ids() == []
    installer.install(str(source), yes=True, verify=checked.append)
    (store.data_dir(ID) / "state").write_text("mine", encoding="utf-8")
    before = {p.name: p.read_bytes() for p in store.provider_dir(ID).iterdir() if p.is_file()}
    change(copy, 'version     = "0.1.0"', 'version     = "0.2.0"')
    (copy / "more.txt").write_text("more", encoding="utf-8")
    with pytest.raises(ProviderInstallError, match="not today"):
        installer.install(str(copy), yes=True, force=True, verify=refuse)
    assert checked == ["0.1.0", ID, "0.2.0"]
    assert {p.name: p.read_bytes() for p in store.provider_dir(ID).iterdir() if p.is_file()} == before
    assert (store.data_dir(ID) / "state").read_text(encoding="utf-8") == "mine"
    store.verify_integrity(ID)


def test_plans_that_are_dropped_leave_nothing(home: Path, source: Path) -> None:
    plan = installer.plan_install(str(source))
    assert list((home / "providers" / ".staging").iterdir())
    del plan
    assert list((home / "providers" / ".staging").iterdir()) == []


def test_uninstall_forgets_the_provider(local: str) -> None:
    assert installer.uninstall(ID) == {"id": ID, "removed": True, "purged": False, "default_reset": False}
    with pytest.raises(ProviderNotFoundError):
        registry.get_provider(ID)
    with pytest.raises(ProviderNotFoundError):
        installer.uninstall(ID)
    with pytest.raises(ProviderConflictError):
        installer.uninstall("alicloud-express")


def test_the_doctor_comes_to_loops_too(local: str) -> None:
    async def scenario() -> None:
        waited = await doctor.doctor_async(ID)
        blocked = doctor.doctor(ID)
        assert waited == blocked
        assert waited["ok"]
        assert [check["name"] for check in waited["checks"]] == ["installed", "integrity", "config", "handshake"]
        doctor.verify_handshake(ID)

    asyncio.run(scenario())
    doctor.verify_handshake(ID)
    with pytest.raises(ProviderInstallError, match="installed"):
        doctor.verify_handshake("nope")


def test_a_plugin_that_does_not_start_fails_its_handshake(home: Path, copy: Path) -> None:
    (copy / "provider.py").write_text("import sys\nsys.exit('I am broken')\n", encoding="utf-8")
    installer.install(str(copy), yes=True)
    report = doctor.doctor(ID)
    assert not report["ok"]
    assert report["checks"][-1]["name"] == "handshake"
    with pytest.raises(ProviderInstallError, match="handshake"):
        doctor.verify_handshake(ID)
    assert doctor.doctor(ID, handshake=False)["ok"]


# ---- test


def test_the_contract_suite_runs_apart(manage: Manage, local: str) -> None:
    (manage.cwd / "conftest.py").write_text("raise SystemExit('never read')\n", encoding="utf-8")
    (manage.cwd / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n", encoding="utf-8")
    result = manage("test", ID, "--", "-k", "files_roundtrip or exec_run", "-q", env={"PYTEST_ADDOPTS": "--no-such-option"})
    assert " passed" in result.stdout
    assert "failed" not in result.stdout


def test_nothing_collected_is_a_failure(manage: Manage, local: str) -> None:
    result = manage.run("test", ID, "--option", "workdir_root=/tmp", "--", "-k", "no_case_is_called_this")
    assert result.returncode == 1
    assert result.stderr.endswith(f"No case of the contract was collected for '{ID}'.\n")


def test_the_suite_needs_pytest(manage: Manage, local: str, tmp_path: Path) -> None:
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide" / "pytest.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    paths = [str(tmp_path / "hide"), manage.env.get("PYTHONPATH", "")]
    result = manage.run("test", ID, env={"PYTHONPATH": os.pathsep.join(p for p in paths if p)})
    assert (result.returncode, result.stdout) == (1, "")
    assert "pip install pytest" in result.stderr
