"""The contract's cases on sandboxes: create, connect, get, list, kill, timeout, pause."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from agent_sandbox.api.sandbox import Sandbox
from agent_sandbox.models.errors import SandboxNotFoundError

from ._suite import UNKNOWN_ID, Suite, give_up

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ODD_IDS = ("../../etc/passwd", "a/b", "a b", "..", "名前-é", "%2e%2e%2f", "a?b#c")
LIST_LIMIT = 1000
FEW = 50
"""With more sandboxes than this, somebody else's among them, small pages would take too long."""


async def assert_not_found(suite: Suite, ref: str) -> None:
    """connect and get both say E2009."""
    with pytest.raises(SandboxNotFoundError):
        await give_up(await Sandbox.connect(ref, **suite.target))
    with pytest.raises(SandboxNotFoundError):
        await Sandbox.get_info_by_id(ref, **suite.target)


@contextlib.asynccontextmanager
async def three(suite: Suite) -> AsyncIterator[set[str]]:
    """The ids of three new sandboxes."""
    async with contextlib.AsyncExitStack() as stack:
        yield {(await stack.enter_async_context(suite.sandbox())).id for _ in range(3)}


async def listed(suite: Suite, limit: int = LIST_LIMIT, offset: int = 0) -> list[str]:
    """Ids of a list, as often as they are in it."""
    infos = await Sandbox.list(limit=limit, offset=offset, **suite.target)
    return [info.sandbox_id for info in infos]


class LifecycleCases:
    """sandbox.lifecycle, sandbox.timeout, sandbox.pause."""

    def test_create_returns_a_running_sandbox(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")

        async def case() -> None:
            async with suite.sandbox() as box:
                assert box.id
                assert box.provider == suite.pid
                assert box.status.value == "running"

        suite.run(case())

    def test_create_gives_distinct_ids(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")

        async def case() -> None:
            async with suite.sandbox() as one, suite.sandbox() as two:
                assert one.id != two.id

        suite.run(case())

    def test_connect_finds_the_sandbox(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")

        async def case() -> None:
            async with suite.sandbox() as box:
                again = await Sandbox.connect(box.id, **suite.target)
                try:
                    assert again.id == box.id
                finally:
                    await again.close()

        suite.run(case())

    def test_get_tells_about_the_sandbox(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")

        async def case() -> None:
            async with suite.sandbox() as box:
                info = await Sandbox.get_info_by_id(box.id, **suite.target)
                assert info.sandbox_id == box.id

        suite.run(case())

    def test_list_contains_the_sandbox(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")

        async def case() -> None:
            async with suite.sandbox() as box:
                assert (await listed(suite)).count(box.id) == 1

        suite.run(case())

    def test_list_pages_to_the_end(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")

        async def case() -> None:
            async with three(suite) as ids:
                total = len(await listed(suite))
                for size in (1, 2, 100) if total <= FEW else (100,):
                    found: set[str] = set()
                    for offset in range(0, total + size, size):
                        found.update(await listed(suite, size, offset))
                    assert ids <= found, f"a sandbox is missing from pages of {size}"

        suite.run(case())

    def test_list_forgets_the_killed(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")

        async def case() -> None:
            async with suite.sandbox() as box:
                await box.kill()
                infos = await Sandbox.list(limit=LIST_LIMIT, **suite.target)
                running = {info.sandbox_id for info in infos if info.status.value == "running"}
                assert box.id not in running

        suite.run(case())

    def test_unknown_sandbox_is_e2009(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")
        suite.run(assert_not_found(suite, UNKNOWN_ID))

    def test_odd_ids_are_e2009(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")

        async def case() -> None:
            for odd in ODD_IDS:
                await assert_not_found(suite, odd)

        suite.run(case())

    def test_kill_is_idempotent(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")

        async def case() -> None:
            async with suite.sandbox() as box:
                for _ in range(2):
                    await Sandbox.kill_by_id(box.id, **suite.target)
            await Sandbox.kill_by_id(UNKNOWN_ID, **suite.target)

        suite.run(case())

    def test_killed_sandbox_is_gone(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")

        async def case() -> None:
            async with suite.sandbox() as box:
                await box.kill()
                try:
                    info = await Sandbox.get_info_by_id(box.id, **suite.target)
                except SandboxNotFoundError:
                    return
                assert info.status.value == "stopped"

        suite.run(case())

    def test_set_timeout(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "sandbox.timeout")

        async def case() -> None:
            async with suite.sandbox() as box:
                await box.set_timeout(600)

        suite.run(case())

    def test_set_timeout_of_unknown_is_e2009(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "sandbox.timeout")

        async def case() -> None:
            with pytest.raises(SandboxNotFoundError):
                await Sandbox.set_timeout_by_id(UNKNOWN_ID, 600, **suite.target)

        suite.run(case())

    def test_pause_resume(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "sandbox.pause")

        async def case() -> None:
            async with suite.sandbox() as box:
                await box.pause()
                await box.resume()

        suite.run(case())

    def test_pause_of_unknown_is_e2009(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "sandbox.pause")

        async def case() -> None:
            async with suite.sandbox() as box:
                await Sandbox.kill_by_id(box.id, **suite.target)
                with pytest.raises(SandboxNotFoundError):
                    await box.pause()

        suite.run(case())
