"""A caller's own check of an install, and the way back when it fails.

The core checks the handshake between the swap and its commit; a caller's function can only run
after the commit, so the old version is kept aside for it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Any


class Verified:
    """The check of one install; a context, so that what is kept aside goes with it."""

    def __init__(self, verify: Callable[[str], None] | None) -> None:
        from agent_sandbox.providers.doctor import verify_handshake

        self.by_core = verify is verify_handshake
        self._verify = None if self.by_core else verify
        self._id = ""
        self._aside: Path | None = None
        self._receipt: bytes | None = None
        self._source: dict[str, Any] = {}

    def __enter__(self) -> Verified:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._aside is not None:
            import shutil

            shutil.rmtree(self._aside, ignore_errors=True)

    def keep_old(self, provider_id: str) -> None:
        """Copies the files and the receipt of what is about to be replaced."""
        self._id = provider_id
        if self._verify is None:
            return
        import shutil
        import tempfile
        from pathlib import Path

        from agent_sandbox.providers import store

        folder = store.provider_dir(provider_id)
        receipt = store.read_receipt(provider_id)
        if receipt is None:
            return
        self._receipt = (folder / store.RECEIPT_NAME).read_bytes()
        self._source = receipt.get("source", {})
        self._aside = Path(tempfile.mkdtemp(prefix="abx-old-"))
        if self._source.get("type") != "link":
            left_out = {store.RECEIPT_NAME, "data"}
            top = str(folder)
            shutil.copytree(
                folder,
                self._aside,
                ignore=lambda where, names: left_out.intersection(names) if where == top else set(),
                dirs_exist_ok=True,
            )

    def check(self) -> None:
        """Runs the caller's check; when it raises, what was there before is there again."""
        if self._verify is None:
            return
        try:
            self._verify(self._id)
        except BaseException:
            self.take_back()
            raise

    def take_back(self) -> None:
        """The old version, or none when there was none; data/ stays as it is."""
        from agent_sandbox.providers import store
        from agent_sandbox.providers._core import fresh
        from agent_sandbox.providers.installer import YES_FLAG, apply, plan_install

        if self._receipt is None or self._aside is None:
            fresh().uninstall(self._id, False)
            return
        linked = self._source.get("type") == "link"
        where = str(self._source["path"]) if linked else str(self._aside)
        apply(plan_install(where, link=linked, force=True, consent=YES_FLAG), YES_FLAG)
        path = store.provider_dir(self._id) / store.RECEIPT_NAME
        new = path.with_name(f"{path.name}.new")
        new.touch(mode=0o600)
        new.write_bytes(self._receipt)
        new.replace(path)
