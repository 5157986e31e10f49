"""The examples of docs/python and of the README run as they stand, a page a program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import agent_sandbox
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "python").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

RUNNER = """
import ast, asyncio, inspect, sys
page = sys.argv[1]
code = compile(sys.stdin.read(), page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
result = eval(code, {"__name__": "page"})
if inspect.isawaitable(result):
    asyncio.run(result)
"""


def run(name: str, program: str, **env: str) -> None:
    """Runs a program that may await at its top level."""
    package = str(Path(agent_sandbox.__file__).parents[1])
    done = subprocess.run([sys.executable, "-W", "error", "-c", RUNNER, name], input=program, text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": package, **env}, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_a_page_runs(page: Path) -> None:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    if not blocks:
        pytest.skip("no example on this page")
    run(page.name, "\n".join(blocks))


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "python" / "README.md").read_text(encoding="utf-8")
    assert {page.name for page in PAGES[1:]} - {"README.md"} == set(re.findall(r"\]\((\w[\w-]*\.md)\)", index))
