"""The reference SDK and abx on one store: what either installs, the other lists, verifies and starts.

Without a network to get the real package by these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from environments import REFERENCE, environment

SOURCE = Path(os.environ.get("ABX_TEST_SOURCE", Path(__file__).resolve().parents[2]))
EXAMPLE = SOURCE / "examples" / "providers" / "local-process"


@pytest.fixture(scope="session")
def reference() -> Path:
    """The Python of an environment that has the reference."""
    return environment("reference-0.4.0a6", REFERENCE)


def peer(reference: Path, home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """python -m agent_sandbox.providers with the same store: its home is the parent of ours."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "ABX_PROVIDER_UPDATE_CHECK": "0"}
    return subprocess.run([str(reference), "-m", "agent_sandbox.providers", *args], env=env, capture_output=True, text=True,
                          timeout=120, cwd=home.parent)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """An ABX_HOME where the reference looks for it, too: ~/.abx."""
    home = tmp_path / "user" / ".abx"
    home.parent.mkdir()
    return home


def plugin(root: Path) -> Path:
    """A tree with what digests get wrong: unicode names, executable bits, empty files, 2000 entries."""
    root.mkdir()
    for name in ("abx-provider.toml", "provider.py"):
        (root / name).write_bytes((EXAMPLE / name).read_bytes())
    (root / "naïve 名前.txt").write_text("é", encoding="utf-8")
    (root / "e\u0301").write_bytes(b"")
    (root / "run.sh").write_bytes(b"#!/bin/sh\r\n")
    (root / "run.sh").chmod(0o755)
    (root / "deep" / "er").mkdir(parents=True)
    for i in range(2000 - 5):
        (root / "deep" / "er" / f"{i}").write_bytes(b"x" * (i % 3))
    return root


def receipt(home: Path) -> dict[str, object]:
    text = (home / "providers" / "local-process" / ".abx-install.json").read_text(encoding="utf-8")
    value = json.loads(text)
    for key in ("installed_at", "installed_by"):
        value.pop(key)
    return value


def test_receipts_and_digests_are_equal(abx, reference: Path, shared: Path, tmp_path: Path) -> None:
    source = plugin(tmp_path / "plugin")
    abx("provider", "install", str(source), "--yes", "--no-verify", env={"ABX_HOME": str(shared)})
    raw_ours = (shared / "providers" / "local-process" / ".abx-install.json").read_text(encoding="utf-8")
    ours = receipt(shared)
    done = peer(reference, shared, "install", str(source), "--yes", "--force", "--no-verify")
    assert done.returncode == 0, done.stderr
    raw_theirs = (shared / "providers" / "local-process" / ".abx-install.json").read_text(encoding="utf-8")
    assert receipt(shared) == ours

    def comparable(raw: str) -> list[str]:
        lines, skipping = [], False
        for line in raw.splitlines(keepends=True):
            if line.startswith('  "installed_by"'):
                skipping = True
            if not skipping and not line.startswith('  "installed_at"'):
                lines.append(line)
            if skipping and line.startswith("  }"):
                skipping = False
        return lines

    assert comparable(raw_ours) == comparable(raw_theirs)


def test_ours_is_started_by_the_reference(abx, reference: Path, shared: Path) -> None:
    abx("provider", "install", str(EXAMPLE), "--yes", env={"ABX_HOME": str(shared)})
    listed = peer(reference, shared, "--json", "list")
    assert "local-process" in [row["id"] for row in json.loads(listed.stdout)]
    doctor = peer(reference, shared, "--json", "doctor", "local-process")
    assert json.loads(doctor.stdout)["ok"], doctor.stdout
    assert [c["name"] for c in json.loads(doctor.stdout)["checks"]][-1] == "handshake"


def test_theirs_is_started_by_us(abx, reference: Path, shared: Path) -> None:
    done = peer(reference, shared, "install", str(EXAMPLE), "--yes")
    assert done.returncode == 0, done.stderr
    env = {"ABX_HOME": str(shared)}
    assert "local-process" in abx("provider", "list", env=env).stdout
    assert json.loads(abx("--json", "provider", "doctor", "local-process", env=env).stdout)["ok"]
    ran = abx("run", "--provider", "local-process", "--", "echo", "hello", env=env)
    assert ran.stdout == "hello\n"


def test_a_change_is_seen_by_both(abx, reference: Path, shared: Path) -> None:
    abx("provider", "install", str(EXAMPLE), "--yes", "--no-verify", env={"ABX_HOME": str(shared)})
    (shared / "providers" / "local-process" / "provider.py").open("a").write("# changed\n")
    assert abx("provider", "doctor", "local-process", env={"ABX_HOME": str(shared)}, check=False).returncode == 2
    assert peer(reference, shared, "doctor", "local-process").returncode == 2


def test_the_lock_of_one_stops_the_other(abx, reference: Path, shared: Path) -> None:
    """The reference locks by the existence of a file: ours must leave none, and wait for theirs."""
    abx("provider", "install", str(EXAMPLE), "--yes", "--no-verify", env={"ABX_HOME": str(shared)})
    assert not (shared / "providers" / ".lock").exists()
    done = peer(reference, shared, "uninstall", "local-process")
    assert done.returncode == 0, done.stderr
    assert not (shared / "providers" / ".lock").exists()
