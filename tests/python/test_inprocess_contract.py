"""The contract suite on providers in this process: one in the protocol's form, one in the reference's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_sandbox.providers import Provider, registry
from agent_sandbox.providers._suite import Suite
from agent_sandbox.providers.testing import ProviderContractTests
from memory_infra import Built
from memory_provider import Handled


class Registered(ProviderContractTests):
    """Its provider is registered for the whole class."""

    provider: type[Provider]

    @pytest.fixture(autouse=True, scope="class")
    def registered(self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        home: Path = tmp_path_factory.mktemp("home")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ABX_HOME", str(home / ".abx"))
            provider = registry.register_provider(request.cls.provider())
            yield
            request.cls.teardown_class()
            registry.unregister_provider(provider.id)


class TestHandled(Registered):
    provider, provider_id = Handled, Handled.id


class TestBuilt(Registered):
    provider, provider_id = Built, Built.id


class Narrow(Handled):
    """Its handshake leaves out a feature that is declared."""

    id = "memory-narrow"

    async def on_initialize(self, p: dict[str, object]) -> dict[str, object]:
        return {"features": sorted(self.features - {"sandbox.pause"})}


def test_what_the_handshake_leaves_out_is_skipped(home: Path) -> None:
    registry.register_provider(Narrow())
    suite = Suite(Narrow.id, {})
    try:
        suite.need("sandbox.lifecycle", "exec.run")
        with pytest.raises(pytest.skip.Exception, match=r"leaves out sandbox\.pause"):
            suite.need("sandbox.lifecycle", "sandbox.pause")
        with pytest.raises(pytest.skip.Exception, match="does not declare pty"):
            suite.need("pty")
    finally:
        suite.close()
        registry.unregister_provider(Narrow.id)
