"""Providers that run in this process: their answers and errors, as the core takes them.

The core gates, times, retries and redacts their calls as it does those of a plugin.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

from agent_sandbox import _abx, _spawn
from agent_sandbox.models.errors import (
    ProviderConfigError,
    ProviderConflictError,
    ProviderFeatureNotSupportedError,
    SandboxError,
)
from agent_sandbox.providers import registry
from agent_sandbox.providers.base import Provider, ordered_features
from agent_sandbox.providers.infra import InfraHandler, ProviderConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from agent_sandbox._abx import Call, Client

PROTOCOL = "epp/1"

RPC_CODES = {
    "E1000": -32001, "E2002": -32004, "E2009": -32002, "E4001": -32002, "E8000": -32000, "E8002": -32006,
    "E8004": -32003, "E8005": -32002, "E8022": -32005,
}  # fmt: skip
"""Errors that the wire has a code for."""
SDK_CODES = frozenset({
    "E1001", "E1002", "E1003", "E1004", "E2000", "E2001", "E2002", "E2003", "E2009", "E3001", "E4001",
    "E4002", "E5000", "E5001",
})  # fmt: skip
"""Errors that a plugin may name; the core maps and cleans them."""
GENERIC = 9999
"""The number of E0000 in the core's list."""


def install(client: Client) -> None:
    """Adds every registered provider that the client does not have."""
    for provider in registry.registered().values():
        try:
            add(client, provider)
        except ProviderConflictError:
            continue  # it has it


def check(provider: Provider) -> None:
    """Raises ProviderManifestError for what a provider declares that cannot be."""
    client = _abx.Client(environ={}, no_config=True)
    try:
        add(client, provider)
    finally:
        client.close(0)


def add(client: Client, provider: Provider) -> None:
    """Registers a provider with one client; ProviderConflictError when its id is taken there."""
    link = Link(client, provider)
    client.add_provider(manifest_of(provider), link, link.close)


def manifest_of(provider: Provider) -> dict[str, Any]:
    """abx-provider.toml as an object."""
    fields = {}
    for field in provider.config_fields:
        spec = {name: getattr(field, name) for name in ("required", "secret", "credential", "description")}
        spec["type"] = "string" if field.type == "str" else field.type
        spec["env"], spec["choices"] = list(field.env), list(field.choices)
        if field.default is not None:
            spec["default"] = field.default
        fields[field.key] = spec
    return {
        "manifest_version": 1,
        "provider": {
            "id": provider.id,
            "name": provider.display_name or provider.id,
            "name_zh": provider.display_name_zh,
            "version": provider.version,
        },
        "compat": {"protocol": PROTOCOL},
        "runtime": {"kind": "python"},
        "features": {"supported": ordered_features(provider.features)},
        "core": {"inherit": sorted(provider.inherit)},
        "auth": {"any_of": [list(group) for group in provider.auth_any_of]},
        "config": {"fields": fields},
    }


class Session:
    """A provider with one configuration: opened by initialize, closed with the client."""

    def __init__(self, provider: Provider, settings: dict[str, Any]) -> None:
        self.provider = provider
        config = settings.get("config") or {}
        keys = [field.key for field in provider.config_fields if field.secret]
        self.secrets = [str(config[key]) for key in keys if config.get(key)]
        self._infra: InfraHandler | None = None

    async def open(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The answer to initialize; a provider's own is added to what its class says."""
        provider, own = self.provider, None
        cls = type(provider)
        if cls.handle is Provider.handle and cls.build_infra is Provider.build_infra:
            raise ProviderConfigError(f"{cls.__name__} has neither handle() nor build_infra().")
        if cls.handle is Provider.handle:
            infra = await provider.build_infra(ProviderConfig(settings))
            self._infra = InfraHandler(provider.id, infra)
        else:
            try:
                own = await provider.handle("initialize", settings)
            except NotImplementedError:
                own = None
        plugin = {"name": provider.id, "version": provider.version}
        said = {"protocol": PROTOCOL, "plugin": plugin, "features": sorted(provider.features)}
        return {**said, **(own or {})}

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """The answer to any other call, contents of files as bytes."""
        if self._infra is not None:
            return await self._infra.handle(method, params)
        content = params.get("content_b64")
        if isinstance(content, bytes):
            params["content_b64"] = base64.b64encode(content).decode()
        result = await self.provider.handle(method, params)
        if method == "files.read" and isinstance(result, dict) and isinstance(result.get("content_b64"), str):
            result = {**result, "content_b64": base64.b64decode(result["content_b64"], validate=True)}
        return result

    async def close(self) -> None:
        """Tells the provider that it is over."""
        if self._infra is not None:
            await self._infra.close()
        elif type(self.provider).handle is not Provider.handle:
            await self.provider.handle("shutdown", {})

    def blot(self, text: str) -> str:
        """A text without secrets, for errors that the core takes as they are."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


class Link:
    """One provider in one client: what the core calls.

    The provider's coroutines run on the loop that drives the client, else on one of their own.
    """

    def __init__(self, client: Client, provider: Provider) -> None:
        self._client = client
        self._provider = provider
        self._sessions: dict[int, Session] = {}

    def __call__(self, call: Call, method: str, params: dict[str, Any]) -> None:
        """Starts the work of a call and returns."""
        if method == "initialize":
            session = self._sessions[call.session] = Session(self._provider, params)
            work: Coroutine[Any, Any, Any] = session.open(params)
        else:
            session = self._sessions[call.session]
            work = session.call(method, params)
        call.on_cancel = _spawn.spawn(self._client, self._serve(call, session, work))

    def close(self) -> None:
        """The core needs the provider no more."""
        while self._sessions:
            _, session = self._sessions.popitem()
            _spawn.spawn(self._client, quietly(session.close()))

    def _tell(self, call: Call, session: Session, fn: Callable[[], None]) -> None:
        """Touches the call in the client's thread. What the core can't take is the provider's error."""

        def guarded() -> None:
            try:
                fn()
            except (TypeError, ValueError, OverflowError) as error:
                fail(call, session, error)

        _spawn.deliver(self._client, guarded)

    async def _serve(self, call: Call, session: Session, work: Coroutine[Any, Any, Any]) -> None:
        """Waits for the provider and tells the core what came of it."""
        try:
            result = await work
            if hasattr(result, "__aiter__"):
                result = await self._stream(call, session, result)
            self._tell(call, session, lambda: call.finish({} if result is None else result))
        except asyncio.CancelledError:
            self._tell(call, session, lambda: call.fail_rpc(-32000, "The provider gave the call up."))
        except Exception as error:
            failure = error
            self._tell(call, session, lambda: fail(call, session, failure))

    async def _stream(
        self, call: Call, session: Session, items: AsyncIterator[dict[str, Any]]
    ) -> dict[str, Any]:
        """Passes on what a command does; the value of its exit."""
        try:
            async for item in items:
                event = event_of(item)
                self._tell(call, session, lambda event=event: call.emit(*event))  # type: ignore[misc]
                if event[0] == _abx.EXIT:
                    return {"exit_code": event[1]}
                await asyncio.sleep(0)  # the caller takes what came
        finally:
            aclose = getattr(items, "aclose", None)
            if aclose is not None:
                await aclose()
        raise ProviderConfigError("the stream ended without an exit_code")


def event_of(item: dict[str, Any]) -> tuple[int, Any]:
    """(kind, data) of an item of a stream."""
    if "exit_code" in item:
        return _abx.EXIT, item["exit_code"]
    if "data" in item or "data_b64" in item:
        data = item["data"] if "data" in item else base64.b64decode(item["data_b64"], validate=True)
        kind = _abx.STDERR if item.get("stream") == "stderr" else _abx.STDOUT
        return kind, data.encode() if isinstance(data, str) else data
    return _abx.STARTED, str(item["process_id"])


def fail(call: Call, session: Session, error: Exception) -> None:
    """Ends a call with what the provider raised."""
    if isinstance(error, NotImplementedError):
        call.fail_rpc(-32601, f"The provider has no method '{error}'.")
    elif not isinstance(error, SandboxError):
        call.fail_rpc(-32000, f"{type(error).__name__}: {error}")
    elif error.code in RPC_CODES or error.code in SDK_CODES:
        data: dict[str, Any] = {"sdk_code": error.code, "suggestion": error.suggestion}
        if isinstance(error, ProviderFeatureNotSupportedError):
            data["details"] = {"feature": error.feature}
        if error.retryable:
            data["retryable"] = True
        call.fail_rpc(RPC_CODES.get(error.code, -32000), error.message, data)
    else:
        number = GENERIC if error.code == SandboxError.code else int(error.code[1:])
        call.fail(number, session.blot(error.message), session.blot(error.suggestion))


async def quietly(work: Coroutine[Any, Any, Any]) -> None:
    """Runs to its end what nobody waits for; a provider that fails in its shutdown is gone all the same."""
    try:
        await work
    except Exception:
        return
