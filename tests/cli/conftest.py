"""The built command in a world of its own: a private home, no settings, no terminal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Abx
from leftovers import half_done, running_in

# A job in the background begins with SIGINT ignored, and what it starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """ABX_HOME, not made yet; at the end nothing runs in it and no half-done work lies in it."""
    home = tmp_path / "home" / ".abx"
    home.parent.mkdir()
    yield home
    assert running_in(home) == []
    assert half_done(home) == []


@pytest.fixture
def abx(home: Path, tmp_path: Path) -> Abx:
    binary = os.environ.get("ABX_TEST_BIN")
    if not binary or not Path(binary).is_file():
        pytest.fail("ABX_TEST_BIN must name the built command")
    cwd = tmp_path / "work"
    cwd.mkdir()
    return Abx(Path(binary).resolve(), home, cwd)


@pytest.fixture
def verbs(abx: Abx) -> list[str]:
    """Every verb that --help shows, "provider list" and the like as one string."""
    text = abx("--help").stdout.split("Commands:\n", 1)[1].split("\n\n", 1)[0]
    return [line.strip().split("  ", 1)[0] for line in text.splitlines()]
