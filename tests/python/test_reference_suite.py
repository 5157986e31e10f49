"""Either contract suite judges either package: the reference's ours, unmodified, and ours the reference.

Without a network to get the reference by these tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from environments import REFERENCE, environment, packages_of

TIMEOUT = 300  # seconds; only a hang gets there


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder in which the reference's agent_sandbox lies, for the Python that runs this."""
    return packages_of(environment("reference-0.4.0a6", REFERENCE))


def judge(home: Path, module: str, *path: Path | str) -> dict[str, str]:
    """passed, failed or skipped of each case, run by a pytest that finds its modules in path."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "ABX_HOME": str(home), "ABX_PROVIDER_UPDATE_CHECK": "0",
           "PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1"}
    report = home.parent / "report.xml"
    ini = home.parent / "pytest.ini"
    ini.write_text("[pytest]\n", encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--noconftest", "-c", str(ini), "-p", "no:cacheprovider", "-p",
                           "no:xdist", "-p", f"{module}.testing", "--pyargs", f"{module}.contract", "--provider-under-test",
                           "local-process", f"--junitxml={report}"],
                          env=env, cwd=home.parent, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        outcomes[case.attrib["name"]] = next((child.tag for child in case if child.tag != "properties"), "passed")
    return outcomes


def package_with(folder: Path, files: list[Path], *replace: tuple[str, str]) -> Path:
    """A package `suite` made of copies of files."""
    package = folder / "suite"
    package.mkdir()
    (package / "__init__.py").touch()
    for file in files:
        text = file.read_text(encoding="utf-8")
        for old, new in replace:
            text = text.replace(old, new)
        (package / file.name).write_text(text, encoding="utf-8")
    return folder


def our_package() -> Path:
    import agent_sandbox

    return Path(str(agent_sandbox.__file__)).parents[1]


def test_the_references_suite_passes_on_ours(reference: Path, home: Path, local: str, tmp_path: Path) -> None:
    """Its file is taken as it is; only its companion, which just names the class to collect, is told the new place."""
    held = reference / "agent_sandbox" / "providers"
    folder = package_with(tmp_path, [held / "testing.py"])
    assert (folder / "suite" / "testing.py").read_bytes() == (held / "testing.py").read_bytes()
    package_file = folder / "suite" / "contract.py"
    package_file.write_text("from suite.testing import ProviderContractTests\n\n\nclass TestProviderContract(ProviderContractTests):\n    pass\n",
                            encoding="utf-8")
    outcomes = judge(home, "suite", folder, our_package())
    skipped = {name for name, outcome in outcomes.items() if outcome == "skipped"}
    assert len(outcomes) >= 16
    assert skipped == {"test_pause_resume", "test_secret_options_are_redacted_from_errors"}


def test_our_suite_passes_on_the_reference(reference: Path, home: Path, local: str, tmp_path: Path) -> None:
    ours = our_package() / "agent_sandbox" / "providers"
    folder = package_with(tmp_path, [*sorted(ours.glob("_suite*.py")), ours / "testing.py", ours / "contract.py"])
    outcomes = judge(home, "suite", folder, reference)
    skipped = {name for name, outcome in outcomes.items() if outcome == "skipped"}
    assert len(outcomes) == 49
    assert skipped == {"test_pause_resume", "test_pause_of_unknown_is_e2009", "test_secret_options_are_redacted_from_errors"}
