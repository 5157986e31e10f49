"""The Python of this project is clean for ruff and mypy --strict, and so is a program that uses it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from environments import environment

ROOT = Path(__file__).resolve().parents[2]

USER = '''
import asyncio
from agent_sandbox import Sandbox, SandboxError
from agent_sandbox.models.process import ProcessResult


async def main() -> str:
    async with await Sandbox.create(provider="local-process", timeout=60) as sandbox:
        result: ProcessResult = await sandbox.commands.run("echo hello")
        async for chunk in sandbox.commands.stream("echo a"):
            print(chunk.data, chunk.exit_code)
        text: str = await sandbox.files.read("/x")
    twin: Sandbox = Sandbox.create_sync()
    code: int = twin.commands.run_sync("true").exit_code
    return result.stdout + text + str(code)


try:
    asyncio.run(main())
except SandboxError as error:
    print(error.code, error.to_dict())
'''


def check(*argv: str | Path) -> None:
    done = subprocess.run([*map(str, argv)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff() -> None:
    ruff = environment("lint", "ruff", "mypy", "pytest").parent / "ruff"
    check(ruff, "check", "--no-cache", ROOT)
    check(ruff, "format", "--no-cache", "--check", ROOT / "python")


def test_mypy(tmp_path: Path) -> None:
    mypy = environment("lint", "ruff", "mypy", "pytest").parent / "mypy"
    user = tmp_path / "user.py"
    user.write_text(USER, encoding="utf-8")
    options = ["--config-file", ROOT / "pyproject.toml", "--python-executable", mypy.parent / "python"]
    check(mypy, *options, "--cache-dir", tmp_path / "cache", "-p", "agent_sandbox")
    check(mypy, *options, "--cache-dir", tmp_path / "cache", user)
