"""What the cases of the contract suite stand on: one event loop and one sandbox for a test class.

Only names that the reference package has, too, are used by the suite, so that it can judge either.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from agent_sandbox.api.sandbox import Sandbox
from agent_sandbox.models.errors import SandboxError
from agent_sandbox.providers import registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

T = TypeVar("T")

CASE_LIMIT = 120
"""Seconds a case may take; only a provider that hangs gets there."""
SHARED_LIFE = 900
"""Seconds the shared sandbox lives, should nobody kill it."""
UNKNOWN_ID = "abx-contract-unknown-0000"
"""A plain id that no provider has given."""


class Suite:
    """One provider with its options. Cases on files and commands share a sandbox: making one may be slow."""

    def __init__(self, pid: str, options: dict[str, Any]) -> None:
        self.pid = pid
        self.options = options
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shared: Sandbox | None = None

    @property
    def target(self) -> dict[str, Any]:
        """The arguments that choose the provider."""
        return {"provider": self.pid, "provider_options": dict(self.options)}

    def features(self) -> frozenset[str]:
        """What the provider declares."""
        return frozenset(registry.get_provider(self.pid).features)

    def need(self, *features: str) -> None:
        """Skips the case when one of them is not declared, or left out by the handshake.

        Makes the shared sandbox: as long as it is in use, the provider's process stays for all cases.
        """
        missing = [feature for feature in features if feature not in self.features()]
        if missing:
            pytest.skip(f"{self.pid} does not declare {' '.join(missing)}")
        with contextlib.suppress(SandboxError):  # said by the cases
            box = self.loop().run_until_complete(self.shared())
            handle = getattr(box, "_handle", None)  # the reference's sandboxes have none
            left_out = [f for f in features if handle is not None and not handle.has_feature(f)]
            if left_out:
                pytest.skip(f"the handshake of {self.pid} leaves out {' '.join(left_out)}")

    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of every case."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop

    def run(self, case: Coroutine[Any, Any, T]) -> T:
        """Runs a case to its end. After a failure the shared sandbox is not used again."""
        try:
            return self.loop().run_until_complete(asyncio.wait_for(case, CASE_LIMIT))
        except BaseException:
            self.loop().run_until_complete(self._drop())
            raise

    @contextlib.asynccontextmanager
    async def sandbox(self) -> AsyncIterator[Sandbox]:
        """A sandbox of the case's own; that it can't be killed is no matter of the case."""
        box = await Sandbox.create(**self.target)
        try:
            yield box
        finally:
            await give_up(box)

    async def shared(self) -> Sandbox:
        """A running sandbox that other cases use, too."""
        if self._shared is None:
            self._shared = await Sandbox.create(timeout=SHARED_LIFE, **self.target)
        return self._shared

    async def _drop(self) -> None:
        box, self._shared = self._shared, None
        if box is not None:
            await give_up(box)

    def close(self) -> None:
        """Kills the shared sandbox and ends the loop."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        try:
            loop.run_until_complete(self._drop())
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=CASE_LIMIT))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


async def give_up(box: Sandbox) -> None:
    """Kills a sandbox and lets go of the provider, whatever they say to it."""
    with contextlib.suppress(SandboxError):
        await box.kill()
    with contextlib.suppress(SandboxError):
        await box.close()


def fresh_path(name: str) -> str:
    """A path nobody has used, in a directory that sandboxes have."""
    return f"/tmp/abx-contract-{uuid.uuid4().hex[:12]}-{name}"
