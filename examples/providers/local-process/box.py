"""One sandbox: a directory, its record, and paths that can't lead out of it. And the methods files.*."""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from epp import LINE_LIMIT, EppError, Params, Request

READ_LIMIT = (LINE_LIMIT - 4096) // 4 * 3  # what fits into a line as base64
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def os_errors(path: str) -> Iterator[None]:
    """Turns what the system says about a path into an error answer."""
    try:
        yield
    except FileNotFoundError:
        raise EppError(-32002, f"No such file or directory: '{path}'.", "E4001") from None
    except PermissionError:
        raise EppError(-32000, f"Permission denied: '{path}'.", "E4002") from None
    except OSError as e:
        raise EppError(-32000, f"{e.strerror or e}: '{path}'.") from None


def remove_tree(name: str, parent: int | None, force: bool = False) -> None:
    """Removes a file or a whole directory, never through a symbolic link."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        return os.unlink(name, dir_fd=parent)
    if force:
        os.chmod(name, 0o700, dir_fd=parent)
    fd = os.open(name, DIRECTORY, dir_fd=parent)
    try:
        for child in os.listdir(fd):
            remove_tree(child, fd, force)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)


class Sandbox:
    """<sandboxes>/<id>/: root/ is the sandbox's "/", record.json what outlives this process."""

    def __init__(self, home: Path, record: Params) -> None:
        self.home, self.root, self.record = home, home / "root", record

    def save(self) -> None:
        temporary = self.home / f".record-{secrets.token_hex(4)}"
        with open(temporary, "w", encoding="utf-8") as f:
            json.dump(self.record, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, self.home / "record.json")

    def parts(self, path: str) -> list[str]:
        """The components of a path below root/, last first. Paths that a command printed work too."""
        root = str(self.root)
        if path == root or path.startswith(root + "/"):
            path = path[len(root) :]
        return [p for p in path.split("/") if p not in ("", ".")][::-1]

    def shown(self, path: str) -> str:
        return os.path.normpath("/" + "/".join(reversed(self.parts(path))))

    @contextlib.contextmanager
    def at(self, path: str, follow: bool = True, make: bool = False) -> Iterator[tuple[int, str]]:
        """An open directory and the name in it that path leads to; never outside of root/.

        Each component is opened from the one before without following links; links are read and
        walked here, so that nothing that changes meanwhile can lead out. make: create directories.
        """
        outside = EppError(-32000, f"The path leads out of the sandbox: '{path}'.", "E4002")
        parts, hops = self.parts(path), 0
        dirs = [os.open(self.root, DIRECTORY)]
        name = "."
        try:
            while parts:
                part = parts.pop()
                if part == "..":
                    if len(dirs) == 1:
                        raise outside
                    os.close(dirs.pop())
                    continue
                target = None
                with contextlib.suppress(OSError):
                    target = os.readlink(part, dir_fd=dirs[-1])
                if target is not None and (parts or follow):
                    hops += 1
                    if hops > 40:
                        raise EppError(-32000, f"Too many symbolic links: '{path}'.")
                    if target.startswith("/"):
                        if not (target + "/").startswith(f"{self.root}/"):
                            raise outside
                        while len(dirs) > 1:
                            os.close(dirs.pop())
                    parts += self.parts(target)
                elif not parts:
                    name = part
                else:
                    if make:
                        with contextlib.suppress(FileExistsError):
                            os.mkdir(part, dir_fd=dirs[-1])
                    dirs.append(os.open(part, DIRECTORY, dir_fd=dirs[-1]))
            yield dirs[-1], name
        finally:
            for fd in dirs:
                os.close(fd)


def entry(path: str, parent: int, name: str) -> Params:
    st = os.stat(name, dir_fd=parent, follow_symlinks=False)
    kind = "dir" if stat.S_ISDIR(st.st_mode) else "symlink" if stat.S_ISLNK(st.st_mode) else "file"
    mtime = datetime.fromtimestamp(st.st_mtime, timezone.utc).isoformat()
    return {"name": os.path.basename(path) or "/", "path": path, "type": kind, "size": st.st_size,
            "mtime": mtime, "mode": stat.S_IMODE(st.st_mode)}  # fmt: skip


def require_regular(st: os.stat_result) -> None:
    if stat.S_ISDIR(st.st_mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory")
    if not stat.S_ISREG(st.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file")


class FileMethods:
    """files.rw"""

    def box(self, p: Params) -> Sandbox:
        raise NotImplementedError

    def on_files_read(self, p: Params, _: Request) -> Params:
        path, offset, length = p["path"], p.get("offset") or 0, p.get("length")
        with os_errors(path), self.box(p).at(path) as (parent, name):
            require_regular(os.stat(name, dir_fd=parent, follow_symlinks=False))
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
            with open(fd, "rb") as f:
                f.seek(offset)
                data = f.read(min(max(0, READ_LIMIT + 1 if length is None else length), READ_LIMIT + 1))
        if len(data) > READ_LIMIT:
            raise EppError(-32000, f"'{path}' is too large for one answer: read {READ_LIMIT} bytes at a time, by offset.")
        return {"content_b64": base64.b64encode(data).decode()}

    def on_files_write(self, p: Params, _: Request) -> Params:
        path, mode, append = p["path"], p.get("mode"), bool(p.get("append"))
        data = base64.b64decode(p["content_b64"], validate=True)
        with os_errors(path), self.box(p).at(path, make=True) as (parent, name):
            with contextlib.suppress(FileNotFoundError):
                old = os.stat(name, dir_fd=parent, follow_symlinks=False)
                require_regular(old)
                if not os.access(name, os.W_OK, dir_fd=parent):
                    raise PermissionError
                mode = stat.S_IMODE(old.st_mode) if mode is None else mode
            target = name if append else f".{secrets.token_hex(8)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            flags |= os.O_APPEND if append else os.O_EXCL
            try:
                with open(os.open(target, flags, 0o666, dir_fd=parent), "wb") as f:
                    f.write(data)
                    if mode is not None:
                        os.fchmod(f.fileno(), mode & 0o7777)
                if not append:
                    os.replace(target, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                if not append:
                    with contextlib.suppress(OSError):
                        os.unlink(target, dir_fd=parent)
                raise
        return {}

    def on_files_list(self, p: Params, _: Request) -> Params:
        box, path, entries = self.box(p), p["path"], []
        with os_errors(path), box.at(path) as (parent, name):
            fd = os.open(name, DIRECTORY, dir_fd=parent)
            try:
                for child in sorted(os.listdir(fd)):
                    with contextlib.suppress(FileNotFoundError):  # went away meanwhile
                        entries.append(entry(os.path.join(box.shown(path), child), fd, child))
            finally:
                os.close(fd)
        return {"entries": entries}

    def on_files_stat(self, p: Params, _: Request) -> Params:
        box, path = self.box(p), p["path"]
        with os_errors(path), box.at(path) as (parent, name):
            return entry(box.shown(path), parent, name)

    def on_files_mkdir(self, p: Params, _: Request) -> Params:
        path = p["path"]
        with os_errors(path), self.box(p).at(path, make=True) as (parent, name):
            try:
                os.mkdir(name, dir_fd=parent)
            except FileExistsError:
                if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                    raise
        return {}

    def on_files_remove(self, p: Params, _: Request) -> Params:
        path = p["path"]
        with os_errors(path), self.box(p).at(path, follow=False) as (parent, name):
            if name == ".":
                raise EppError(-32000, f"'{path}' can't be removed: it is the root, or ends in '..'.")
            remove_tree(name, parent)
        return {}

    def on_files_move(self, p: Params, _: Request) -> Params:
        box, source, target = self.box(p), p["source"], p["destination"]
        with os_errors(source), box.at(source, follow=False) as (old_parent, old):
            os.stat(old, dir_fd=old_parent, follow_symlinks=False)
            with os_errors(target), box.at(target, follow=False, make=True) as (parent, name):
                if not p.get("overwrite"):
                    with contextlib.suppress(FileNotFoundError):
                        os.stat(name, dir_fd=parent, follow_symlinks=False)
                        raise FileExistsError(errno.EEXIST, "File exists")
                os.rename(old, name, src_dir_fd=old_parent, dst_dir_fd=parent)
        return {}
