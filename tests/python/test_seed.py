"""The Python snippets of the page that defines the product run unchanged against local-process.

The page lies beside the project where it is worked on; elsewhere these tests are skipped.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from agent_sandbox.providers import installer
from test_docs import ROOT, run

PAGE = ROOT.parent / "shared" / "seed" / "providers.txt"
EXAMPLE = ROOT / "examples" / "providers" / "local-process"


def snippets() -> list[str]:
    """Every run of lines that begins at Python and ends before prose."""
    if not PAGE.is_file():
        pytest.skip(f"{PAGE.name} is not beside the project")
    found: list[list[str]] = []
    inside = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        starts = line.startswith(("from agent_sandbox", "sb = await", "class ", "register_provider("))
        goes_on = inside and (not line or line.startswith((" ", "sb ", "proc ", "await ", "print(")))
        if starts and not inside:
            found.append([])
        inside = starts or goes_on
        if inside:
            found[-1].append(line)
    return ["\n".join(lines) for lines in found]


def install_as(tmp_path: Path, id_: str, *fields: str) -> None:
    """local-process under another id, with more fields of its own."""
    root = tmp_path / id_
    shutil.copytree(EXAMPLE, root)
    manifest = root / "abx-provider.toml"
    text = manifest.read_text(encoding="utf-8").replace('"local-process"', f'"{id_}"')
    for field in fields:
        text += f'\n[config.fields.{field}]\ntype = "string"\nrequired = false\n'
    manifest.write_text(text, encoding="utf-8")
    installer.install(str(root), yes=True)


@pytest.fixture
def shown(tmp_path: Path, home: Path, local: str) -> list[str]:
    install_as(tmp_path, "my-cloud", "cluster")
    install_as(tmp_path, "opensandbox")
    return snippets()


def test_the_snippets_are_found(shown: list[str]) -> None:
    assert len(shown) == 4
    assert "provider_options" in shown[0]
    assert "commands.run" in shown[1]
    assert "register_provider" in "".join(shown)
    assert "ProviderContractTests" in "".join(shown)


def test_the_snippets_run(shown: list[str]) -> None:
    first, second, *rest = shown
    run("choosing", first, ABX_PROVIDER="local-process")
    run("opensandbox", first.splitlines()[0] + "\n" + second)
    for one in rest:
        run("providers", one)
