"""Files of a sandbox. Paths are the sandbox's, not this machine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_sandbox import _abx
from agent_sandbox._sync import synchronous
from agent_sandbox.api.streaming import StreamReader, read_events
from agent_sandbox.models.errors import (
    FileNotFoundError_,
    FileSizeLimitError,
    ProviderFeatureNotSupportedError,
    ProviderResourceNotFoundError,
)
from agent_sandbox.models.filesystem import FileInfo, WatchEvent

if TYPE_CHECKING:
    import builtins
    from collections.abc import AsyncGenerator

    from agent_sandbox._abx import Event
    from agent_sandbox._loop import Host


class FilesModule:
    """``sandbox.files``: read, write and arrange files.

    A missing path raises FileNotFoundError_ (E4001) or ProviderResourceNotFoundError (E8005),
    as the provider says it.
    """

    def __init__(self, host: Host, handle: _abx.Sandbox) -> None:
        self._host = host
        self._handle = handle

    async def read(self, path: str, *, encoding: str = "utf-8") -> str:
        """A file as text; UnicodeDecodeError when it is none in this encoding."""
        return str(await self.read_bytes(path), encoding)

    async def read_bytes(self, path: str, *, max_bytes: int | None = None) -> bytes:
        """A file as bytes. More than max_bytes of them: FileSizeLimitError (E4003)."""
        if max_bytes is not None and max_bytes < 0:
            raise ValueError(f"max_bytes must not be negative, got {max_bytes!r}")
        handle = self._handle
        data: bytes = await self._host.call(lambda future: handle.files_read(future, path))
        if max_bytes is not None and len(data) > max_bytes:
            raise FileSizeLimitError(max_bytes)
        return data

    async def write(self, path: str, content: str | bytes | bytearray | memoryview) -> None:
        """Writes a whole file, text as UTF-8; what was there before is gone."""
        if not isinstance(content, (str, bytes)):
            content = bytes(content)
        handle, data = self._handle, content
        await self._host.call(lambda future: handle.files_write(future, path, data))

    async def list(self, path: str = "/") -> builtins.list[FileInfo]:
        """The entries of a directory."""
        handle = self._handle
        entries = await self._host.call(lambda future: handle.files_list(future, path))
        return [FileInfo.from_entry(entry) for entry in entries]

    async def remove(self, path: str) -> None:
        """Removes a file, or a directory with what is in it."""
        handle = self._handle
        await self._host.call(lambda future: handle.files_remove(future, path))

    async def exists(self, path: str) -> bool:
        """False only when the provider says not found; every other error is raised."""
        try:
            await self.get_info(path)
        except (FileNotFoundError_, ProviderResourceNotFoundError):
            return False
        return True

    async def make_dir(self, path: str) -> None:
        """Makes a directory and those above it."""
        handle = self._handle
        await self._host.call(lambda future: handle.files_mkdir(future, path))

    async def move(self, source: str, destination: str) -> None:
        """Renames a file or a directory."""
        handle = self._handle
        await self._host.call(lambda future: handle.files_move(future, source, destination, False))

    async def get_info(self, path: str) -> FileInfo:
        """Name, type, size in bytes and time of change."""
        handle = self._handle
        return FileInfo.from_entry(await self._host.call(lambda future: handle.files_stat(future, path)))

    async def upload(self, local_path: str, remote_path: str) -> None:
        """Copies a file of this machine into the sandbox."""
        with open(local_path, "rb") as file:
            await self.write(remote_path, file.read())

    async def download(self, remote_path: str, local_path: str) -> None:
        """Copies a file of the sandbox to this machine; an existing one is replaced whole."""
        import os
        import tempfile

        data = await self.read_bytes(remote_path)
        target = os.path.realpath(local_path)
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as sink:
                sink.write(data)
            return
        fd, part = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".abx-")
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
            os.chmod(part, _mode_of(target))
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise

    async def watch(self, path: str) -> StreamReader[WatchEvent]:
        """What changes in a directory from now on."""
        if not self._handle.has_feature("files.watch"):
            raise ProviderFeatureNotSupportedError(self._handle.provider, "files.watch")
        op = self._handle.call(None, "files.watch", {"path": path})

        def source() -> AsyncGenerator[WatchEvent, None]:
            return read_events(self._host, lambda: op, _watch_event)

        return StreamReader(source)

    async def upload_url(self, path: str) -> str:
        """A URL a file can be sent to; needs ``files.transfer``."""
        return await self._transfer_url("files.upload_url", path)

    async def download_url(self, path: str) -> str:
        """A URL a file can be fetched from; needs ``files.transfer``."""
        return await self._transfer_url("files.download_url", path)

    async def _transfer_url(self, method: str, path: str) -> str:
        if not self._handle.has_feature("files.transfer"):
            raise ProviderFeatureNotSupportedError(self._handle.provider, "files.transfer")
        handle = self._handle
        answer = await self._host.call(lambda future: handle.call(future, method, {"path": path}))
        return str(answer["url"])

    read_sync = synchronous(read)
    read_bytes_sync = synchronous(read_bytes)
    write_sync = synchronous(write)
    list_sync = synchronous(list)
    remove_sync = synchronous(remove)
    exists_sync = synchronous(exists)
    make_dir_sync = synchronous(make_dir)
    move_sync = synchronous(move)
    get_info_sync = synchronous(get_info)
    upload_sync = synchronous(upload)
    download_sync = synchronous(download)
    watch_sync = synchronous(watch)
    upload_url_sync = synchronous(upload_url)
    download_url_sync = synchronous(download_url)


def _watch_event(event: Event) -> WatchEvent | None:
    return WatchEvent.from_event(event[1]) if event[0] == _abx.FS else None


def _mode_of(path: str) -> int:
    """The permissions a written file gets: those of the one it replaces, else what umask leaves."""
    import os
    import stat

    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        with open("/proc/self/status", encoding="ascii") as status:
            mask = next(line for line in status if line.startswith("Umask:"))
        return 0o666 & ~int(mask.split()[1], 8)
