"""Sandboxes nobody is connected to: list them, ask about one, end one."""

from __future__ import annotations

from agent_sandbox._sync import ClassSynchronous
from agent_sandbox.api.target import Target, core_settings
from agent_sandbox.models.sandbox import SandboxInfo, SandboxStatus, check_timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from typing import Any

    from agent_sandbox.providers.base import Provider


class SandboxDirectory:
    """What `Sandbox` does without having one: class methods that take an id."""

    @classmethod
    async def list(
        cls,
        *,
        status: SandboxStatus | str | None = None,
        limit: int = 100,
        offset: int = 0,
        access_key_id: str | None = None,
        access_key_secret: str | None = None,
        sandbox_api_key: str | None = None,
        sandbox_base_url: str | None = None,
        sandbox_domain: str | None = None,
        region: str | None = None,
        provider: str | Provider | None = None,
        provider_options: dict[str, Any] | None = None,
    ) -> builtins.list[SandboxInfo]:
        """The sandboxes of a provider, at most limit of them after the first offset."""
        if limit < 0 or offset < 0:
            raise ValueError("limit and offset must not be negative")
        if limit == 0:
            return []
        core = core_settings(
            access_key_id=access_key_id,
            access_key_secret=access_key_secret,
            sandbox_api_key=sandbox_api_key,
            sandbox_base_url=sandbox_base_url,
            sandbox_domain=sandbox_domain,
            region=region,
        )
        target = Target(provider, provider_options, core)
        wanted = None if status is None else SandboxStatus(status).value
        host, records = await target.ask(
            lambda client, future: client.list(
                future, target.provider, target.options, core, wanted, offset + limit
            )
        )
        owner = target.provider or host.client.provider_default()
        return [SandboxInfo.from_record(record, owner) for record in records[offset:]]

    @classmethod
    async def kill_by_id(
        cls,
        sandbox_id: str,
        *,
        access_key_id: str | None = None,
        access_key_secret: str | None = None,
        sandbox_api_key: str | None = None,
        sandbox_base_url: str | None = None,
        region: str | None = None,
        provider: str | Provider | None = None,
        provider_options: dict[str, Any] | None = None,
    ) -> None:
        """Kills a sandbox without connecting to it; one that is gone already is no error."""
        core = core_settings(
            access_key_id=access_key_id,
            access_key_secret=access_key_secret,
            sandbox_api_key=sandbox_api_key,
            sandbox_base_url=sandbox_base_url,
            region=region,
        )
        async with Target(provider, provider_options, core).attached(sandbox_id) as (host, handle):
            await host.call(handle.kill)

    @classmethod
    async def get_info_by_id(
        cls,
        sandbox_id: str,
        *,
        access_key_id: str | None = None,
        access_key_secret: str | None = None,
        sandbox_api_key: str | None = None,
        sandbox_base_url: str | None = None,
        region: str | None = None,
        provider: str | Provider | None = None,
        provider_options: dict[str, Any] | None = None,
    ) -> SandboxInfo:
        """What the provider knows of a sandbox, without connecting, resuming or renewing it."""
        core = core_settings(
            access_key_id=access_key_id,
            access_key_secret=access_key_secret,
            sandbox_api_key=sandbox_api_key,
            sandbox_base_url=sandbox_base_url,
            region=region,
        )
        async with Target(provider, provider_options, core).attached(sandbox_id) as (host, handle):
            record = await host.call(handle.info)
            return SandboxInfo.from_record(record, handle.provider)

    @classmethod
    async def set_timeout_by_id(
        cls,
        sandbox_id: str,
        timeout: int,
        *,
        access_key_id: str | None = None,
        access_key_secret: str | None = None,
        sandbox_api_key: str | None = None,
        sandbox_base_url: str | None = None,
        region: str | None = None,
        provider: str | Provider | None = None,
        provider_options: dict[str, Any] | None = None,
    ) -> None:
        """Sets the life a sandbox has left, in seconds from now, without connecting to it."""
        core = core_settings(
            access_key_id=access_key_id,
            access_key_secret=access_key_secret,
            sandbox_api_key=sandbox_api_key,
            sandbox_base_url=sandbox_base_url,
            region=region,
        )
        seconds = check_timeout(timeout)
        async with Target(provider, provider_options, core).attached(sandbox_id) as (host, handle):
            await host.call(lambda future: handle.set_timeout(future, seconds))

    list_sync = ClassSynchronous(list)
    kill_by_id_sync = ClassSynchronous(kill_by_id)
    get_info_by_id_sync = ClassSynchronous(get_info_by_id)
    set_timeout_by_id_sync = ClassSynchronous(set_timeout_by_id)
