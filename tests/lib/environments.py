"""Virtual environments the tests need, kept in the build directory between runs.

What they hold comes from PyPI; without a network, and without an earlier run, a test that asks for one is
skipped with the reason.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

REFERENCE = "agent-sandbox-client==0.4.0a6"
TIMEOUT = 900  # seconds; a download or a build may take some


def environment(name: str, *packages: str, run: str = "") -> Path:
    """The Python of an environment that has packages; made anew for each run that is named."""
    if "ABX_TEST_BUILD" not in os.environ:
        pytest.skip("ABX_TEST_BUILD must name the build directory")
    root = Path(os.environ["ABX_TEST_BUILD"]) / "environments" / name
    root.parent.mkdir(exist_ok=True)
    python = root / "bin" / "python"
    with open(f"{root}.lock", "w", encoding="ascii") as lock:  # one worker makes it
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = root / "ready"
        if not ready.exists() or ready.read_text(encoding="ascii") != run:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(root)], check=True)
            got = subprocess.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages],
                                 capture_output=True, text=True, timeout=TIMEOUT, check=False)
            if got.returncode != 0:
                said = got.stderr.strip()
                if "Could not find a version" in said or "Failed to establish" in said or "Retrying" in said:
                    pytest.skip(f"{' '.join(packages)}: no network ({said.splitlines()[-1]})")
                pytest.fail(f"pip install {' '.join(packages)}:\n{said}")
            ready.write_text(run, encoding="ascii")
    return python


def packages_of(python: Path) -> Path:
    """The folder in which an environment keeps its packages."""
    asked = subprocess.run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                           capture_output=True, text=True, check=True)
    return Path(asked.stdout.strip())
