"""The contract's cases on declarations, ports, missing features and secrets."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agent_sandbox.api.sandbox import Sandbox
from agent_sandbox.models.errors import (
    CapabilityNotSupportedError,
    ProviderFeatureNotSupportedError,
    SandboxError,
)
from agent_sandbox.providers import registry
from agent_sandbox.providers.base import FEATURES

from ._suite import UNKNOWN_ID, Suite, give_up
from ._suite_exec import stream
from ._suite_process import last

PIECE = 12
"""So many characters of a secret in a row are a leak, too."""

Probe = Callable[[Sandbox], Awaitable[object]]
PROBES: dict[str, Probe] = {
    "sandbox.timeout": lambda box: box.set_timeout(600),
    "sandbox.pause": lambda box: box.pause(),
    "exec.run": lambda box: box.commands.run("true"),
    "exec.stream": lambda box: last(stream(box, "true")),
    "process.manage": lambda box: box.commands.list(),
    "pty": lambda box: box.get_terminal(),
    "files.rw": lambda box: box.files.read("/etc/hostname"),
    "files.watch": lambda box: box.files.watch("/tmp"),
    "files.transfer": lambda box: box.files.download_url("/etc/hostname"),
    "ports.url": lambda box: box.network.resolve(8080),
}
"""A call that each feature opens."""


def leaks(secret: str, text: str) -> bool:
    """Whether a piece of the secret is in the text."""
    return any(secret[i : i + PIECE] in text for i in range(len(secret) - PIECE + 1))


class ErrorCases:
    """Declarations, ports.url, E8004 and redaction."""

    def test_declared_features_are_known(self, suite: Suite) -> None:
        assert suite.features() <= set(FEATURES)

    def test_describe_never_exposes_secret_defaults(self, suite: Suite) -> None:
        fields = registry.get_provider(suite.pid).describe()["config_fields"]
        exposed = [field["key"] for field in fields if field["secret"] and field["default"] not in (None, "")]
        assert exposed == []

    def test_ports_url(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "ports.url")

        async def case() -> None:
            url = await (await suite.shared()).network.resolve_url(8080)
            assert url.startswith(("http://", "https://"))

        suite.run(case())

    def test_undeclared_features_fail_with_e8004(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")
        probes = {feature: probe for feature, probe in PROBES.items() if feature not in suite.features()}
        if not probes:
            pytest.skip(f"{suite.pid} declares every feature that can be asked for")

        async def case() -> None:
            box = await suite.shared()
            if not box.url.startswith("epp:"):
                probes.pop("ports.url", None)  # the backend's naming rule answers
            for feature, probe in probes.items():
                with pytest.raises(ProviderFeatureNotSupportedError) as raised:
                    await probe(box)
                assert raised.value.code == "E8004", feature
                assert isinstance(raised.value, CapabilityNotSupportedError), feature

        suite.run(case())

    def test_secret_options_are_redacted_from_errors(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle")
        keys = [field.key for field in registry.get_provider(suite.pid).config_fields if field.secret]
        if not keys:
            pytest.skip(f"{suite.pid} has no secret fields")
        canary = f"canary-{uuid.uuid4().hex}"
        target: dict[str, Any] = {
            "provider": suite.pid,
            "provider_options": {**suite.options, **dict.fromkeys(keys, canary)},
        }

        async def case() -> None:
            errors: list[SandboxError] = []
            made: list[Sandbox] = []
            try:
                for attempt in (Sandbox.create(**target), Sandbox.connect(UNKNOWN_ID, **target)):
                    try:
                        made.append(await attempt)
                    except SandboxError as error:
                        errors.append(error)
            finally:
                for box in made:
                    await give_up(box)
            for raised in errors:
                data = getattr(raised, "data", None)
                assert not leaks(canary, f"{raised} {raised!r} {raised.to_dict()} {data!r}")

        suite.run(case())
