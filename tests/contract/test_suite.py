"""How the Python suite is told what to judge."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from agent_sandbox.providers.testing import parse_options
from suites import CASES, World

PLUGIN = ("-p", "agent_sandbox.providers.testing", "--pyargs", "agent_sandbox.providers.contract")
QUIET = ("-q", "--noconftest", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:xdist")


def run(world: World, *args: str) -> subprocess.CompletedProcess[str]:
    return world.run(sys.executable, "-m", "pytest", *QUIET, *PLUGIN, *args)


def test_options() -> None:
    assert parse_options(["a=1", " b =x=y", "a=2", "c="]) == {"a": "2", "b": "x=y", "c": ""}
    for bad in ("a", "=x", " =x", ""):
        with pytest.raises(pytest.UsageError, match="KEY=VALUE"):
            parse_options([bad])


def test_without_a_provider_every_case_fails(world: World) -> None:
    done = run(world)
    assert done.returncode == 1
    assert "no provider to test" in done.stdout
    assert f"{len(CASES)} errors" in done.stdout


def test_the_environment_names_the_default(world: World) -> None:
    world.env["ABX_PROVIDER_UNDER_TEST"] = "liar"
    assert run(world, "-k", "files_roundtrip").returncode == 0
    assert run(world, "-k", "files_roundtrip", "--provider-option", "lie=files_roundtrip").returncode == 1
    assert run(world, "-k", "files_roundtrip", "--provider-under-test", "nobody").returncode == 1


def test_a_broken_option_is_told(world: World) -> None:
    done = run(world, "--provider-under-test", "liar", "--provider-option", "lie", "-k", "files_roundtrip")
    assert done.returncode != 0
    assert "KEY=VALUE" in done.stdout + done.stderr


def test_one_command_runs_it(world: World) -> None:
    told = ("--option", "lie=files_roundtrip", "--", "-k", "files_roundtrip or files_empty", *QUIET)
    done = world.run(sys.executable, "-m", "agent_sandbox.providers", "test", "liar", *told)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    done = world.run(sys.executable, "-m", "agent_sandbox.providers", "test", "liar", "--", "-k", "no_such_case")
    assert done.returncode == 1
