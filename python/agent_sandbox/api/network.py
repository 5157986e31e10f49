"""How to reach the ports of a sandbox from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from agent_sandbox._sync import synchronous
from agent_sandbox.models.errors import ProviderFeatureNotSupportedError

if TYPE_CHECKING:
    from agent_sandbox import _abx
    from agent_sandbox._loop import Host


class NetworkModule:
    """``sandbox.network``: host names and URLs of ports.

    `resolve` asks the provider; the synchronous `get_*` compute, which only a backend with a known
    naming rule allows: elsewhere they raise ProviderFeatureNotSupportedError (E8004).
    """

    def __init__(self, host: Host, handle: _abx.Sandbox) -> None:
        self._host = host
        self._handle = handle

    def _no_rule(self) -> NoReturn:
        raise ProviderFeatureNotSupportedError(
            self._handle.provider,
            "ports.url",
            suggestion="Use 'await sandbox.network.resolve(port)': it asks the provider.",
        )

    def get_host(self, port: int) -> str:
        """The host name of a port, without asking anybody."""
        self._no_rule()

    def get_url(self, port: int) -> str:
        """The URL of a port, without asking anybody."""
        self._no_rule()

    def get_access_headers(self) -> dict[str, str]:
        """The headers a request to a port needs, without asking anybody."""
        self._no_rule()

    async def resolve(self, port: int) -> tuple[str, dict[str, str]]:
        """(url, headers) of a port, 1 to 65535."""
        handle = self._handle
        answer = await self._host.call(lambda future: handle.ports_url(future, port))
        return answer["url"], answer.get("headers") or {}

    async def resolve_url(self, port: int) -> str:
        """The URL of a port."""
        return (await self.resolve(port))[0]

    resolve_sync = synchronous(resolve)
    resolve_url_sync = synchronous(resolve_url)
