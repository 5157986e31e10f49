"""Whom a call is for: a provider, its options and the settings said beside them."""

from __future__ import annotations

from contextlib import asynccontextmanager

from agent_sandbox._loop import Host, current_host
from agent_sandbox.models.errors import ProviderNotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from typing import Any, TypeVar

    from agent_sandbox import _abx
    from agent_sandbox._abx import Client, Op, Pending
    from agent_sandbox.providers.base import Provider

    T = TypeVar("T")


class Target:
    """A provider by id, by object (registered when it is not yet) or by what is configured."""

    def __init__(
        self,
        provider: str | Provider | None,
        options: dict[str, Any] | None,
        core: dict[str, str] | None,
    ) -> None:
        if provider is not None and not isinstance(provider, str):
            from agent_sandbox.providers.registry import register_provider

            register_provider(provider, replace=True)
            provider = provider.id
        self.provider = provider
        self.options = options
        self.core = core

    async def found(self, use: Callable[[Host], Awaitable[T]]) -> T:
        """What use gives; a provider nobody knows may be one that an entry point offers."""
        try:
            return await use(current_host())
        except ProviderNotFoundError:
            from agent_sandbox.providers.registry import load_entry_points

            if not load_entry_points():
                raise
        return await use(current_host())

    async def ask(self, start: Callable[[Client, Pending], Op]) -> tuple[Host, Any]:
        """The value of an op of the client in charge, and its host."""

        async def use(host: Host) -> tuple[Host, Any]:
            return host, await host.call(lambda future: start(host.client, future))

        return await self.found(use)

    @asynccontextmanager
    async def attached(self, ref: str) -> AsyncGenerator[tuple[Host, _abx.Sandbox], None]:
        """A handle of a sandbox by reference, for one question; given up afterwards."""

        async def use(host: Host) -> tuple[Host, _abx.Sandbox]:
            return host, host.client.attach(ref, self.provider, self.options, self.core)

        host, handle = await self.found(use)
        try:
            yield host, handle
        finally:
            await host.call(handle.close)


def core_settings(**said: str | None) -> dict[str, str] | None:
    """The settings the caller said, without those left to the configuration."""
    return {key: value for key, value in said.items() if value is not None} or None
