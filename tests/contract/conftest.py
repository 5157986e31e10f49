"""Homes with the lying plugin in their store."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from leftovers import running_in
from suites import World, write_liar


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the plugin, to be copied."""
    folder = tmp_path_factory.mktemp("installed")
    source = write_liar(folder / "liar")
    world = World(folder / ".abx")
    install = [world.binary] if world.binary else [sys.executable, "-m", "agent_sandbox.providers"]
    done = world.run(*install, *(["provider"] if world.binary else []), "install", str(source), "--yes", "--no-verify")
    assert done.returncode == 0, done.stderr
    return world.home


@pytest.fixture
def worlds(tmp_path: Path, installed: Path) -> Iterator[Callable[[], World]]:
    """Makes homes of the test's own, in which at the end nothing runs and no sandbox is left."""
    made: list[World] = []

    def make() -> World:
        home = tmp_path / f"user-{len(made)}" / ".abx"
        shutil.copytree(installed, home)
        made.append(World(home))
        return made[-1]

    yield make
    for world in made:
        assert running_in(world.home) == []
        boxes = world.home / "providers" / "liar" / "data" / "sandboxes"
        assert not boxes.exists() or [box.name for box in boxes.iterdir() if box.name.startswith("lp-")] == []


@pytest.fixture
def world(worlds: Callable[[], World]) -> World:
    """One of them."""
    return worlds()
