"""Files of a sandbox, and what changes among them."""

from __future__ import annotations

import enum

from agent_sandbox.models._model import Model, parse_time, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any


class FileType(str, enum.Enum):
    """What an entry of a directory is."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"

    @classmethod
    def _missing_(cls, value: object) -> FileType | None:
        return cls.DIRECTORY if value == "dir" else None


class FileInfo(Model):
    """A file or directory. size in bytes; modified is aware; mode has the permission bits, or None."""

    _names = ("name", "path", "type", "size", "modified", "mode")
    __slots__ = _names

    def __init__(
        self,
        name: str,
        path: str,
        type: FileType | str = FileType.FILE,
        size: int = 0,
        modified: datetime | str | None = None,
        mode: int | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.type = FileType(type)
        self.size = size
        self.modified = parse_time(modified) if isinstance(modified, str) else modified
        self.mode = mode

    @property
    def is_dir(self) -> bool:
        """It is a directory."""
        return self.type is FileType.DIRECTORY

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> FileInfo:
        """From a FileEntry of the protocol; a type nobody knows reads as a file."""
        kind, size, mode = entry.get("type"), entry.get("size"), entry.get("mode")
        return cls(
            name=text(entry.get("name")),
            path=text(entry.get("path")),
            type=kind if kind in ("file", "dir", "directory", "symlink") else FileType.FILE,
            size=int(size) if isinstance(size, (int, float)) else 0,
            modified=parse_time(entry.get("mtime")),
            mode=mode if isinstance(mode, int) else None,
        )


class WatchEventType(str, enum.Enum):
    """What happened to a watched file."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"


class WatchEvent(Model):
    """Something happened below a watched directory; old_path for a rename, timestamp as time.time()."""

    _names = ("type", "path", "old_path", "timestamp")
    __slots__ = _names

    def __init__(
        self,
        type: WatchEventType | str,
        path: str,
        old_path: str | None = None,
        timestamp: float | None = None,
    ) -> None:
        self.type = WatchEventType(type)
        self.path = path
        self.old_path = old_path
        self.timestamp = timestamp

    @classmethod
    def from_event(cls, event: Mapping[str, Any], timestamp: float | None = None) -> WatchEvent:
        """From a files.event of the protocol; a type nobody knows reads as a modification."""
        kind, old = event.get("type"), event.get("old_path")
        try:
            type_ = WatchEventType(kind)
        except ValueError:
            type_ = WatchEventType.MODIFIED
        return cls(type_, text(event.get("path")), old if isinstance(old, str) else None, timestamp)
