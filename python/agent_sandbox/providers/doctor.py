"""What is wrong with a provider: its files, its configuration, its credentials, its handshake."""

from __future__ import annotations

from agent_sandbox.models.errors import ProviderInstallError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def know(provider_id: str) -> None:
    """Lets the core know of a provider that a distribution offers."""
    from agent_sandbox.providers import registry

    try:
        registry.get_provider(provider_id)
    except Exception:  # the checks say what is wrong with it
        return


async def doctor_async(provider_id: str, *, handshake: bool = True) -> dict[str, Any]:
    """Checks a provider step by step: {"id", "ok", "checks": [{"name", "ok", "detail"}]}.

    What is wrong is in the report; nothing is raised for it. The plugin is started only for the
    handshake, and not when an earlier check failed.
    """
    from agent_sandbox import _loop

    know(provider_id)
    host = _loop.current_host()
    report: dict[str, Any] = await host.call(
        lambda future: host.client.doctor(future, provider_id, None, handshake)
    )
    return report


def doctor(provider_id: str, *, handshake: bool = True) -> dict[str, Any]:
    """`doctor_async`, waiting; also inside a running event loop."""
    from agent_sandbox.providers._core import wait

    know(provider_id)
    report: dict[str, Any] = wait(lambda client, future: client.doctor(future, provider_id, None, handshake))
    return report


def verify_handshake(provider_id: str) -> None:
    """For the verify of install() and update(): ProviderInstallError when the plugin does not start.

    A setting or credential that is missing yet is no failure.
    """
    for check in doctor(provider_id)["checks"]:
        if check["name"] in ("installed", "integrity", "handshake") and not check["ok"]:
            raise ProviderInstallError(f"Provider '{provider_id}' failed {check['name']}: {check['detail']}")
