"""The built command in a world of its own: a private home, no settings, no terminal."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

TIMEOUT = 60  # seconds; only a hang gets there
GRACE = 10  # seconds a process gets to be gone


@dataclass
class Result:
    returncode: int
    stdout: str
    stderr: str


class Abx:
    """The command; `env` may be changed by a test before it runs it."""

    def __init__(self, binary: Path, home: Path, cwd: Path) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ABX_", "E2B_", "ALICLOUD_", "ALIBABA_"))}
        kept.pop("NO_COLOR", None)
        self.binary = binary
        self.cwd = cwd
        self.env = {**kept, "HOME": str(home.parent), "ABX_HOME": str(home), "LC_ALL": "C.UTF-8", "TERM": "dumb"}

    def run(self, *args: str, input: str = "", env: Mapping[str, str] | None = None) -> Result:
        done = subprocess.run([str(self.binary), *args], input=input.encode(), capture_output=True, cwd=self.cwd,
                              env={**self.env, **(env or {})}, timeout=TIMEOUT, check=False)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def __call__(self, *args: str, input: str = "", env: Mapping[str, str] | None = None, check: bool = True) -> Result:
        """What must succeed, unless check is false."""
        result = self.run(*args, input=input, env=env)
        assert not check or result.returncode == 0, result.stderr
        return result

    def popen(self, args: Sequence[str], **more: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen([str(self.binary), *args], env=self.env, cwd=self.cwd, **more)  # type: ignore[call-overload]


def running_in(home: Path) -> list[str]:
    """Command lines of processes that work in the home, after each had time to end."""
    left = []
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or not os.readlink(entry / "cwd").startswith(str(home)):
                continue
            fd = os.pidfd_open(int(entry.name))
        except OSError:
            continue
        try:
            if not select.select([fd], [], [], GRACE)[0]:
                left.append((entry / "cmdline").read_text(errors="replace").replace("\0", " "))
        finally:
            os.close(fd)
    return left


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """ABX_HOME, not made yet; at the end nothing runs in it and no half-done work lies in it."""
    home = tmp_path / "home" / ".abx"
    home.parent.mkdir()
    yield home
    assert running_in(home) == []
    for name in (".staging", ".trash"):
        folder = home / "providers" / name
        assert not folder.exists() or os.listdir(folder) == []


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
