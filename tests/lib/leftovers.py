"""What a test must not leave behind."""

from __future__ import annotations

import os
import select
from pathlib import Path

from limits import GRACE


def running_in(home: Path) -> list[str]:
    """Command lines of processes that work in the home, after each had time to end."""
    left = []
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or not os.readlink(entry / "cwd").startswith(str(home)):
                continue
            fd = os.pidfd_open(int(entry.name))
        except OSError:
            continue
        try:
            if not select.select([fd], [], [], GRACE)[0]:
                left.append((entry / "cmdline").read_text(errors="replace").replace("\0", " "))
        finally:
            os.close(fd)
    return left


def half_done(home: Path) -> list[str]:
    """What lies in the store's working folders; nothing does when no command is at work."""
    folders = [home / "providers" / name for name in (".staging", ".trash")]
    return [str(entry) for folder in folders if folder.exists() for entry in folder.iterdir()]
