"""The built command in an environment of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from limits import TIMEOUT


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
