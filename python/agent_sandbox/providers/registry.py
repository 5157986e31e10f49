"""Which providers there are: the built-in one, those of this program, and those that are installed."""

from __future__ import annotations

import threading

from agent_sandbox.models.errors import (
    ProviderConfigError,
    ProviderConflictError,
    ProviderNotFoundError,
    SandboxError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from agent_sandbox.providers.base import Provider

BUILTIN_PROVIDER_ID = "alicloud-express"
ENTRY_POINT_GROUP = "agent_sandbox.providers"

RESERVED_IDS = frozenset(
    {BUILTIN_PROVIDER_ID, "default", "all", "none", "builtin", "shortcuts", "core", "transport", "providers"}
)
RESERVED_PREFIXES = ("abx-", "alicloud-", "shortcuts")
CATALOG_IDS = frozenset({"opensandbox", "cubesandbox", "e2b", "alicloud-container"})
"""Ids of published providers: free for them although a reserved prefix fits."""

_lock = threading.RLock()
_registered: dict[str, Provider] = {}
_broken: dict[str, str] = {}
"""Entry points that failed to load, and why."""
_entry_points_loaded = False


# ---- ids


def validate_provider_id(provider_id: str) -> str | None:
    """What is wrong with the id of a new provider, as the end of a sentence; None when nothing is."""
    words = provider_id.split("-")
    shaped = all(w and w.isascii() and w.isalnum() and w == w.lower() for w in words)
    if not (2 <= len(provider_id) <= 40 and shaped and provider_id[0].isalpha()):
        return (
            "provider id must be 2-40 chars of lowercase letters, digits and single hyphens, "
            "starting with a letter"
        )
    if provider_id in CATALOG_IDS:
        return None
    if provider_id in RESERVED_IDS or provider_id.startswith(RESERVED_PREFIXES):
        return f"provider id '{provider_id}' is reserved"
    return None


def resolve_provider_id(explicit: str | None = None) -> str:
    """The provider a call is for.

    explicit, else what ABX_PROVIDER, ./.env, ~/.abx/.env or config.toml say, else the built-in."""
    if explicit:
        return explicit
    from agent_sandbox.providers._core import fresh

    return fresh().provider_default()


def ambient_provider_id() -> str:
    """The provider of calls that name none."""
    return resolve_provider_id(None)


def parse_sandbox_ref(ref: str) -> tuple[str | None, str]:
    """("my-cloud", "sbx-1") of "my-cloud:sbx-1"; (None, ref) when no provider is named.

    ProviderConfigError for a reference without an id or with an impossible provider,
    ProviderNotFoundError for a provider that is not installed.
    """
    provider, colon, sandbox_id = ref.partition(":")
    if not colon:
        return None, ref
    if not sandbox_id:
        raise ProviderConfigError(f"The sandbox reference '{ref}' names no sandbox.")
    problem = None if provider == BUILTIN_PROVIDER_ID else validate_provider_id(provider)
    if problem is not None:
        raise ProviderConfigError(f"The sandbox reference '{ref}' names no provider: {problem}.")
    get_provider(provider)
    return provider, sandbox_id


def qualify(provider_id: str, sandbox_id: str, *, ambient: str | None = None) -> str:
    """The reference that names a sandbox whatever the default provider is: "my-cloud:sbx-1"."""
    return f"{provider_id}:{sandbox_id}"


# ---- providers of this program


def register_provider(provider: Provider, *, replace: bool = False) -> Provider:
    """Makes a provider object usable by its id, in every thread and loop of this process.

    Sandboxes of one that is replaced stay with it. ProviderConflictError when the id cannot be had, or
    is registered and replace is false; ProviderManifestError when what it declares cannot be.
    """
    problem = validate_provider_id(provider.id)
    if problem is not None:
        raise ProviderConflictError(f"Cannot register provider '{provider.id}': {problem}.")
    from agent_sandbox.providers import inprocess

    with _lock:
        old = _registered.get(provider.id)
        if old is provider:
            return provider
        if old is not None and not replace:
            raise ProviderConflictError(f"Provider id '{provider.id}' is already registered.")
        inprocess.check(provider)
        _registered[provider.id] = provider
    if old is None:
        tell_clients()
    else:
        renew_clients()
    return provider


def unregister_provider(provider_id: str) -> None:
    """Forgets a registered provider; nothing happens when there is none of that id."""
    with _lock:
        old = _registered.pop(provider_id, None)
    if old is not None:
        renew_clients()


forget = unregister_provider


def registered() -> dict[str, Provider]:
    """The provider objects of this program by id."""
    with _lock:
        return dict(_registered)


def reset_registry() -> None:
    """Forgets every provider of this program; entry points are loaded anew when next asked for."""
    global _entry_points_loaded
    with _lock:
        _registered.clear()
        _broken.clear()
        _entry_points_loaded = False
    renew_clients()


def tell_clients() -> None:
    """Clients that run already learn of new providers, each in its own thread."""
    from agent_sandbox import _spawn
    from agent_sandbox.providers import inprocess

    _spawn.each_client(inprocess.install)


def renew_clients() -> None:
    """Calls from now on go by the registry as it is."""
    from agent_sandbox import _loop

    _loop.renew()


def load_entry_points() -> bool:
    """Loads the providers that installed distributions offer, once; true when there are new ones."""
    global _entry_points_loaded
    with _lock:
        if _entry_points_loaded:
            return False
        _entry_points_loaded = True
        from importlib.metadata import entry_points

        from agent_sandbox.providers import inprocess

        new = {}
        for entry in entry_points(group=ENTRY_POINT_GROUP):
            try:
                provider = provider_of(entry.load())
                inprocess.check(provider)
                if provider.id in _registered or provider.id in new:
                    raise ProviderConflictError(f"Provider id '{provider.id}' is already registered.")
                new[provider.id] = provider
            except Exception as error:  # a stranger's code; its row says what it did
                _broken[entry.name] = one_line(error)
        _registered.update(new)
    if new:
        tell_clients()
    return bool(new)


def provider_of(thing: object) -> Provider:
    """What an entry point names: a provider, its class, or a function that makes one."""
    from agent_sandbox.providers.base import Provider

    made = thing() if callable(thing) and not isinstance(thing, Provider) else thing
    if not isinstance(made, Provider):
        raise ProviderConfigError(f"The entry point gives a {type(made).__name__}, which is no Provider.")
    problem = validate_provider_id(made.id)
    if problem is not None:
        raise ProviderConfigError(f"The entry point gives a provider that cannot be: {problem}.")
    return made


def one_line(error: BaseException) -> str:
    """An error as a row of the list tells it."""
    if isinstance(error, SandboxError):
        return f"[{error.code}] {error.message}"
    return " ".join(f"{type(error).__name__}: {error}".split())


# ---- all of them


def get_provider(provider_id: str | None = None) -> Provider:
    """The provider of an id, the default one for None.

    ProviderNotFoundError when there is none; what is wrong with the files of an installed one is
    raised as the error that it is.
    """
    from agent_sandbox.providers._core import fresh

    client = fresh()
    if provider_id is None:
        provider_id = client.provider_default()
    own = registered().get(provider_id)
    if own is not None:
        return own
    from agent_sandbox.providers._installed import InstalledProvider

    try:
        return InstalledProvider(client.provider_info(provider_id))
    except ProviderNotFoundError:
        load_entry_points()
        own = registered().get(provider_id)
        if own is None:
            raise
        return own


def list_providers() -> list[dict[str, Any]]:
    """A summary of each: the built-in first, then by id. A broken one has "error", a text that says why."""
    from agent_sandbox.providers._core import fresh

    load_entry_points()
    rows = {row["id"]: summary(row) for row in fresh().provider_list()}
    builtin = rows.pop(BUILTIN_PROVIDER_ID)
    for name, why in sorted(_broken.items()):
        rows.setdefault(name, broken_row(name, why))
    rows.update({p.id: own_row(p) for p in registered().values()})
    return [builtin, *(rows[key] for key in sorted(rows))]


def summary(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the core in the words of this package."""
    shown = {key: row[key] for key in ("id", "name", "name_zh", "version", "kind", "trust", "features")}
    error = row.get("error")
    if error:
        from agent_sandbox.providers import store

        receipt = store.read_receipt(row["id"]) or {}
        shown["version"] = shown["version"] or str(receipt.get("version", ""))
        shown["trust"] = shown["trust"] or str(receipt.get("trust", "local"))
        shown["kind"] = shown["kind"] or "exec"
        shown["error"] = f"[{error['code']}] {error['message']}"
    return shown


def own_row(provider: Provider) -> dict[str, Any]:
    """A row for a provider of this program."""
    from agent_sandbox.providers.base import ordered_features

    return {
        "id": provider.id,
        "name": provider.display_name or provider.id,
        "name_zh": provider.display_name_zh,
        "version": provider.version,
        "kind": provider.kind,
        "trust": "python",
        "features": ordered_features(provider.features),
    }


def broken_row(name: str, why: str) -> dict[str, Any]:
    """A row for an entry point that did not load."""
    return {
        "id": name,
        "name": name,
        "name_zh": "",
        "version": "",
        "kind": "python",
        "trust": "python",
        "features": [],
        "error": why,
    }
