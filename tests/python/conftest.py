"""The package in a world of its own: a private home, no settings, no terminal.

ABX_TEST_PYTHONPATH names the folder with the built package; without it an installed one is tested.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from leftovers import half_done, running_in
from manage import SETTINGS, Manage

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = os.environ.get("ABX_TEST_PYTHONPATH")

try:
    import agent_sandbox._abx  # noqa: F401
except ImportError as error:
    raise pytest.UsageError(f"the package is not built or not found, set ABX_TEST_PYTHONPATH: {error}") from None


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """ABX_HOME, not made yet; at the end nothing runs in it and no half-done work lies in it."""
    home = tmp_path / "home" / ".abx"
    work = tmp_path / "work"
    home.parent.mkdir()
    work.mkdir()
    for name in [n for n in os.environ if n.startswith(SETTINGS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ABX_HOME", str(home))
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.chdir(work)
    yield home
    gc.collect()
    assert running_in(home) == []
    assert half_done(home) == []


@pytest.fixture
def source() -> Path:
    """The provider most tests use, as it is shipped."""
    return ROOT / "examples" / "providers" / "local-process"


@pytest.fixture
def local(home: Path, source: Path) -> str:
    """The id of local-process, installed in the home."""
    from agent_sandbox.providers import installer

    return str(installer.install(str(source), yes=True)["id"])


@pytest.fixture
def manage(home: Path, tmp_path: Path) -> Manage:
    """The management commands, run in a process of their own."""
    return Manage(home, tmp_path / "work", PACKAGE)
