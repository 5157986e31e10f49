"""`pip install .` in a clean environment: one wheel, complete, without a dependency."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from environments import environment, packages_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def installed(testrun_uid: str) -> Path:
    return environment("wheel", str(ROOT), run=testrun_uid)


def run(*argv: str | Path, **env: str) -> str:
    """Runs a program without the folder of the package under test; its output."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([*map(str, argv)], env={**kept, **env}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_brings_the_package_and_the_command(installed: Path, home: Path, source: Path) -> None:
    names = run(installed, "-m", "pip", "list", "--disable-pip-version-check", "--format=freeze").split()
    assert {name.split("==")[0] for name in names} - {"pip", "setuptools"} == {"abx-agent-sandbox"}
    abx = installed.parent / "abx"
    run(abx, "provider", "install", source, "--yes")
    assert run(abx, "run", "--provider", "local-process", "--", "echo", "out") == "out\n"
    program = """
import asyncio
from agent_sandbox import Sandbox, __version__
async def main():
    async with await Sandbox.create(provider="local-process") as sandbox:
        print((await sandbox.commands.run("echo hello")).stdout, end="")
asyncio.run(main())
"""
    assert run(installed, "-c", program) == "hello\n"
    assert "local-process" in run(installed, "-m", "agent_sandbox.providers", "list")


def test_its_files_are_those_of_the_package(installed: Path) -> None:
    listed = run(installed, "-m", "pip", "show", "-f", "--disable-pip-version-check", "abx-agent-sandbox")
    files = {line.strip() for line in listed.split("Files:\n", 1)[1].splitlines()}
    package = packages_of(installed) / "agent_sandbox"
    assert {"agent_sandbox/_abx.abi3.so", "agent_sandbox/abx-supervise", "agent_sandbox/py.typed"} <= files
    assert (package / "_abx.pyi").is_file()
    strangers = {f for f in files if not f.startswith(("agent_sandbox/", "abx_agent_sandbox-", "../../../bin/"))}
    assert strangers == set()
    assert "-abi3-" in next(package.parent.glob("abx_agent_sandbox-*.dist-info/WHEEL")).read_text()
