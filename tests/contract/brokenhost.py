"""A pytest plugin that breaks the host's own promises, one for each case that no plugin can fail."""

from __future__ import annotations

from typing import Any

from agent_sandbox.api.sandbox import Sandbox
from agent_sandbox.providers import registry
from agent_sandbox.providers.base import ConfigField, Provider

real = registry.get_provider


class Overstated(Provider):
    """Declares what the core would not let through."""

    def __init__(self, provider: Provider) -> None:
        self.id = provider.id
        self.features = provider.features | {"exec.teleport"}
        self.config_fields = (*provider.config_fields, ConfigField("key", secret=True, default="hunter2"))


def get_provider(provider_id: str | None = None) -> Provider:
    return Overstated(real(provider_id))


async def nothing(self: Sandbox, **_: Any) -> None:
    """A terminal of a provider that has none."""


registry.get_provider = get_provider
Sandbox.get_terminal = nothing  # type: ignore[method-assign,assignment]
