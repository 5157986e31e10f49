"""Settings that belong to providers: the default one, and what goes when a provider is purged."""

from __future__ import annotations

from agent_sandbox.providers.registry import BUILTIN_PROVIDER_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def set_default_provider(provider_id: str | None) -> None:
    """Writes `[core] provider` of config.toml; None and the built-in's id remove it.

    ProviderNotFoundError for one that is not installed.
    """
    from agent_sandbox import _loop
    from agent_sandbox.providers._core import fresh

    if provider_id is None or provider_id == BUILTIN_PROVIDER_ID:
        fresh().config_set("core.provider", None)
    else:
        fresh().provider_set_default(provider_id)
    _loop.renew()


def provider_env_prefix(provider_id: str) -> str:
    """How the environment variables of a provider begin: `ABX_MY_CLOUD_`."""
    return f"ABX_{provider_id.upper().replace('-', '_')}_"


def purge_provider_settings(provider_id: str) -> None:
    """Removes `[providers.<id>]` from config.toml and `ABX_<ID>_*` from the .env beside it, no more."""
    from agent_sandbox import _loop
    from agent_sandbox.providers import store

    table = f"providers.{provider_id}"
    prefix = provider_env_prefix(provider_id)
    rewrite(store.home() / "config.toml", lambda lines: without_table(lines, table))
    rewrite(store.home() / ".env", lambda lines: without_names(lines, prefix))
    _loop.renew()


purge = purge_provider_settings


def rewrite(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Replaces the lines of a file at once; a reader sees the old text or the new one, 0600."""
    import os
    import tempfile

    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        return
    kept = change(lines)
    if kept == lines:
        return
    path = path.resolve()  # a linked file stays linked
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="utf-8", newline="") as file:
            file.writelines(kept)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def table_name(line: str) -> str | None:
    """The name in a `[table]` or `[[array]]` line of TOML; None for any other line."""
    bare = line.split("#", 1)[0].strip()
    if not (bare.startswith("[") and bare.endswith("]")):
        return None
    return ".".join(part.strip().strip("\"'") for part in bare.strip("[]").split("."))


def without_table(lines: list[str], table: str) -> list[str]:
    """The lines of a TOML text without a table and the ones below it."""
    kept, skipping = [], False
    for line in lines:
        name = table_name(line)
        if name is not None:
            skipping = name == table or name.startswith(table + ".")
        if not skipping:
            kept.append(line)
    return kept


def without_names(lines: list[str], prefix: str) -> list[str]:
    """The lines of a dotenv text without the variables that begin with prefix."""
    return [line for line in lines if not line.strip().removeprefix("export ").lstrip().startswith(prefix)]
