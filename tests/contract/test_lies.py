"""Each case of the contract notices its own lie, and no other case does: in Python and natively.

The three cases about the host's own promises are failed by breaking the host.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from suites import CASES, HERE, World, lies, write_liar

HOST_KEEPS = {
    "declared_features_are_known",  # a manifest that says otherwise is not installed
    "describe_never_exposes_secret_defaults",  # likewise
    "undeclared_features_fail_with_e8004",  # the plugin is not asked
}
LIES = [lie for lie in lies() if lie != "none"]
GROUPS, AT_A_TIME = 8, 3


def failed(outcomes: dict[str, str]) -> set[str]:
    return {name for name, outcome in outcomes.items() if outcome == "failed"}


def test_each_case_has_a_lie() -> None:
    assert set(LIES) == set(CASES) - HOST_KEEPS


def test_names_are_those_of_the_list() -> None:
    from agent_sandbox.providers.testing import ProviderContractTests

    assert sorted(name.removeprefix("test_") for name in dir(ProviderContractTests) if name.startswith("test_")) == sorted(CASES)


def test_native_names_are_those_of_the_list(world: World) -> None:
    assert [case["name"] for case in json.loads(world.abx("--json", "provider", "test", "liar", "--list").stdout)] == CASES


def test_python_says_nothing_about_the_truth(world: World) -> None:
    outcomes = world.python_suite("liar", "--provider-option", "lie=none")
    assert outcomes == dict.fromkeys(outcomes, "passed")
    assert set(outcomes) == set(CASES)


def test_natively_nothing_is_said_about_the_truth(world: World) -> None:
    outcomes = world.native_suite("liar", "--option", "lie=none")
    assert outcomes == dict.fromkeys(CASES, "passed")


def tell(worlds: Callable[[], World], group: int, run: Callable[[World, list[str]], list[dict[str, str]]]) -> dict[str, set[str]]:
    """What failed for each lie of a group, at which some suites work at a time: they mostly wait."""
    told = LIES[group::GROUPS]
    shares = [told[start::AT_A_TIME] for start in range(AT_A_TIME)]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = list(pool.map(run, [worlds() for _ in shares], shares))
    outcomes = {lie: cases for share, some in zip(shares, found, strict=True) for lie, cases in zip(share, some, strict=True)}
    assert all(set(cases) == set(CASES) for cases in outcomes.values())
    return {lie: failed(cases) for lie, cases in outcomes.items()}


@pytest.mark.parametrize("group", range(GROUPS))
def test_python(worlds: Callable[[], World], group: int) -> None:
    found = tell(worlds, group, lambda world, told: world.python_classes("liar", [{"lie": lie} for lie in told]))
    assert found == {lie: {lie} for lie in found}


@pytest.mark.parametrize("group", range(GROUPS))
def test_native(worlds: Callable[[], World], group: int) -> None:
    def run(world: World, told: list[str]) -> list[dict[str, str]]:
        return [world.native_suite("liar", "--option", f"lie={lie}", "--timeout", "6") for lie in told]

    found = tell(worlds, group, run)
    assert found == {lie: {lie} for lie in found}


def test_a_broken_host_is_noticed(world: World) -> None:
    outcomes = world.python_suite("liar", "-p", "brokenhost", pythonpath=str(HERE))
    assert failed(outcomes) == HOST_KEEPS


@pytest.mark.parametrize(("old", "new"), [
    ('"ports.url",', '"ports.url", "exec.teleport",'),
    ("secret = true", 'secret = true\ndefault = "hunter2"'),
])
def test_what_overstates_is_not_installed(world: World, tmp_path: Path, old: str, new: str) -> None:
    manifest = write_liar(tmp_path / "liar") / "abx-provider.toml"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    done = world.abx("provider", "install", str(manifest.parent), "--yes", "--force")
    assert done.returncode == 1
    assert "E8014" in done.stderr
