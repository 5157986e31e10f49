"""Providers: which there are, how to write one, and the management of installed ones.

Names are loaded when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent_sandbox.providers.base import FEATURES as FEATURES
    from agent_sandbox.providers.base import ConfigField as ConfigField
    from agent_sandbox.providers.base import Provider as Provider
    from agent_sandbox.providers.base import ProviderFeature as ProviderFeature
    from agent_sandbox.providers.base import ProviderInfra as ProviderInfra
    from agent_sandbox.providers.manifest import ProviderCommand as ProviderCommand
    from agent_sandbox.providers.registry import BUILTIN_PROVIDER_ID as BUILTIN_PROVIDER_ID
    from agent_sandbox.providers.registry import ambient_provider_id as ambient_provider_id
    from agent_sandbox.providers.registry import get_provider as get_provider
    from agent_sandbox.providers.registry import list_providers as list_providers
    from agent_sandbox.providers.registry import parse_sandbox_ref as parse_sandbox_ref
    from agent_sandbox.providers.registry import qualify as qualify
    from agent_sandbox.providers.registry import register_provider as register_provider
    from agent_sandbox.providers.registry import resolve_provider_id as resolve_provider_id
    from agent_sandbox.providers.registry import unregister_provider as unregister_provider

MODULES = {
    "FEATURES": "base",
    "ConfigField": "base",
    "Provider": "base",
    "ProviderFeature": "base",
    "ProviderInfra": "base",
    "ProviderCommand": "manifest",
    "BUILTIN_PROVIDER_ID": "registry",
    "ambient_provider_id": "registry",
    "get_provider": "registry",
    "list_providers": "registry",
    "parse_sandbox_ref": "registry",
    "qualify": "registry",
    "register_provider": "registry",
    "resolve_provider_id": "registry",
    "unregister_provider": "registry",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    module = MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"agent_sandbox.providers.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})
