"""The two suites of the contract, the Python one and the native one, and the lying plugin."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from limits import SLOW

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLE = ROOT / "examples" / "providers" / "local-process"
CASES = re.findall(r'^CASE\("(\w+)"', (ROOT / "cli" / "contract" / "cases.def").read_text(encoding="utf-8"), re.M)
TIMEOUT = 120 * SLOW  # seconds; only a hang gets there


def lies() -> list[str]:
    """The keys of LIES in the plugin, which can't be imported from here."""
    tree = ast.parse((HERE / "liar" / "liar.py").read_text(encoding="utf-8"))
    tables = [node.value for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "LIES"]
    assert isinstance(tables[0], ast.Dict)
    return [str(ast.literal_eval(key)) for key in tables[0].keys if key is not None]


def write_liar(directory: Path) -> Path:
    """The directory of the plugin: the example's modules and one of our own."""
    shutil.copytree(HERE / "liar", directory, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("epp.py", "box.py", "command.py", "provider.py"):
        shutil.copyfile(EXAMPLE / name, directory / name)
    return directory


class World:
    """A home, and what is run in it."""

    def __init__(self, home: Path) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ABX_", "E2B_", "ALICLOUD_", "PYTEST_"))}
        self.home = home
        self.env = {**kept, "HOME": str(home.parent), "ABX_HOME": str(home), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        self.package = os.environ.get("ABX_TEST_PYTHONPATH")
        self.binary = os.environ.get("ABX_TEST_BIN")

    def run(self, *argv: str, pythonpath: str = "") -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, (pythonpath, self.package)))
        env = {**self.env, "PYTHONPATH": path} if path else self.env
        return subprocess.run(argv, env=env, cwd=self.home.parent, capture_output=True, text=True, timeout=TIMEOUT, check=False)

    def abx(self, *args: str) -> subprocess.CompletedProcess[str]:
        if not self.binary:
            pytest.skip("ABX_TEST_BIN must name the built command")
        return self.run(self.binary, *args)

    def pytest(self, *args: str, pythonpath: str = "") -> dict[str, dict[str, str]]:
        """passed, failed or skipped of each case of each class."""
        report = self.home.parent / "report.xml"
        done = self.run(sys.executable, "-m", "pytest", "-q", "--noconftest", "-c", os.devnull, "-p", "no:cacheprovider", "-p",
                        "no:xdist", f"--junitxml={report}", *args, pythonpath=pythonpath)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        outcomes: dict[str, dict[str, str]] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            word = {"failure": "failed", "error": "failed", "skipped": "skipped"}
            kinds = [word[child.tag] for child in case if child.tag in word]
            cases = outcomes.setdefault(case.attrib["classname"].rpartition(".")[2], {})
            cases[case.attrib["name"].removeprefix("test_")] = kinds[0] if kinds else "passed"
        return outcomes

    def python_suite(self, provider: str, *args: str, pythonpath: str = "") -> dict[str, str]:
        """Those of the class that the package has for any provider."""
        return self.pytest("-p", "agent_sandbox.providers.testing", "--pyargs", "agent_sandbox.providers.contract",
                           "--provider-under-test", provider, *args, pythonpath=pythonpath)["TestProviderContract"]

    def python_classes(self, provider: str, options: list[dict[str, str]]) -> list[dict[str, str]]:
        """Those of subclasses, one for each set of options; in one process, which is faster."""
        text = "from agent_sandbox.providers.testing import ProviderContractTests\n"
        for number, chosen in enumerate(options):
            text += f"\n\nclass Test{number}(ProviderContractTests):\n    provider_id, provider_options = {provider!r}, {chosen}\n"
        file = self.home.parent / "test_classes.py"
        file.write_text(text, encoding="utf-8")
        outcomes = self.pytest(str(file))
        return [outcomes[f"Test{number}"] for number in range(len(options))]

    def native_suite(self, provider: str, *args: str) -> dict[str, str]:
        """The same of `abx provider test`."""
        done = self.abx("--json", "provider", "test", provider, *args)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return {case["name"]: case["outcome"] for case in json.loads(done.stdout)["cases"]}
