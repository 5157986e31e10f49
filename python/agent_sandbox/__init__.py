"""Sandboxes of any provider, from Python: `from agent_sandbox import Sandbox`.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from agent_sandbox._version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent_sandbox.api.sandbox import Sandbox as Sandbox
    from agent_sandbox.models.errors import *  # noqa: F403

    AsyncSandbox = Sandbox
    ProviderSandbox = Sandbox

_SANDBOXES = ("Sandbox", "AsyncSandbox", "ProviderSandbox")


def __getattr__(name: str) -> Any:
    if name in _SANDBOXES:
        from agent_sandbox.api import sandbox

        globals()[name] = sandbox.Sandbox
        return sandbox.Sandbox
    from agent_sandbox.models import errors

    if name not in errors.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(errors, name)
    return value


def __dir__() -> list[str]:
    from agent_sandbox.models import errors

    return sorted({*globals(), *_SANDBOXES, *errors.__all__})
