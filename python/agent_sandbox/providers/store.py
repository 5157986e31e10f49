"""The folder of installed providers, `~/.abx/providers`: where things are, receipts, digests."""

from __future__ import annotations

import os

from agent_sandbox.models.errors import ProviderNotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

RECEIPT_NAME = ".abx-install.json"
RECEIPT_VERSION = 1


def home() -> Path:
    """`$ABX_HOME`, else `~/.abx`; nothing is made."""
    from pathlib import Path

    return Path(os.environ.get("ABX_HOME") or os.path.expanduser("~/.abx"))


def providers_dir() -> Path:
    """The folder with a folder for each installed provider."""
    return home() / "providers"


def provider_dir(provider_id: str) -> Path:
    """Where the files and the receipt of one provider are; a linked one has its files elsewhere."""
    return providers_dir() / provider_id


def data_dir(provider_id: str) -> Path:
    """A plugin's own folder, made when it is not there. It survives updates."""
    path = provider_dir(provider_id) / "data"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def digest_dir(root: str | os.PathLike[str]) -> str:
    """The digest of a plugin's tree as consent screens and receipts show it, 64 hex digits."""
    from agent_sandbox import _abx

    return _abx.digest_dir(os.fspath(root))


def read_receipt(provider_id: str) -> dict[str, Any] | None:
    """What an install wrote down; None when the provider is not installed or its receipt cannot be read."""
    from agent_sandbox import _abx
    from agent_sandbox.models.errors import SandboxError

    try:
        return _abx.read_receipt(os.fspath(home()), provider_id)
    except SandboxError:
        return None


def verify_integrity(provider_id: str) -> dict[str, Any]:
    """Compares the files with the receipt and returns it; a linked provider's are not looked at.

    ProviderIntegrityError when they changed, ProviderNotFoundError when it is not installed.
    """
    from agent_sandbox import _abx

    receipt = read_receipt(provider_id)
    if receipt is None and not provider_dir(provider_id).is_dir():
        raise ProviderNotFoundError(f"Provider '{provider_id}' is not installed.")
    if receipt is None or receipt.get("trust") != "link":
        _abx.verify_integrity(os.fspath(home()), provider_id)
    return receipt or {}


def list_installed_ids() -> list[str]:
    """The ids with a receipt, sorted."""
    root = os.fspath(providers_dir())
    try:
        names = os.listdir(root)
    except OSError:
        return []
    return sorted(n for n in names if n[0] != "." and os.path.exists(os.path.join(root, n, RECEIPT_NAME)))
