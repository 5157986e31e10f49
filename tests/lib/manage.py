"""`python -m agent_sandbox.providers` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from limits import TIMEOUT

SETTINGS = ("ABX_", "E2B_", "ALICLOUD_", "ALIBABA_")


@dataclass
class Result:
    returncode: int
    stdout: str
    stderr: str


class Manage:
    """`python -m agent_sandbox.providers`; `env` may be changed by a test before it runs it."""

    def __init__(self, home: Path, cwd: Path, package: str | None) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith((*SETTINGS, "PYTEST_"))}
        self.cwd = cwd
        self.env = {**kept, "ABX_HOME": str(home), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        if package:
            self.env["PYTHONPATH"] = package

    def run(self, *args: str, input: str = "", env: Mapping[str, str] | None = None) -> Result:
        done = subprocess.run([sys.executable, "-m", "agent_sandbox.providers", *args], input=input.encode(),
                              capture_output=True, cwd=self.cwd, env={**self.env, **(env or {})}, timeout=TIMEOUT,
                              check=False)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def __call__(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """What must succeed."""
        result = self.run(*args, env=env)
        assert result.returncode == 0, result.stdout + result.stderr
        return result
