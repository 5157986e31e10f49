#!/usr/bin/env python3
"""Checks the library as it was built: it exports what libabx.sym lists, that is what the public
headers declare, and nothing in it can print or end the program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# Calls no library may make in its host program. abort() is assert's, on programmer error.
FORBIDDEN = {
    "exit", "_exit", "_Exit", "quick_exit", "printf", "puts", "putchar", "vprintf", "perror", "warn", "err",
    "__printf_chk", "__vprintf_chk", "setlocale", "umask", "signal", "sigaction", "chdir", "setenv", "putenv",
    "unsetenv", "system", "popen",
}
# The child between clone and exec is a process of its own: it must end, and it resets its signals.
CHILD_ONLY = {"spawn.c": {"_exit", "chdir"}}


def declared(root: Path) -> set[str]:
    text = "".join(p.read_text(encoding="utf-8") for p in sorted((root / "include").rglob("*.h")))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"ABX_API[^;{]*?\b(abx_\w+)\s*\(", text))


def listed(root: Path) -> set[str]:
    return set(re.findall(r"^\s*(abx_\w+);", (root / "libabx.sym").read_text(encoding="utf-8"), re.M))


def nm(path: Path, *args: str) -> list[list[str]]:
    out = subprocess.run(["nm", *args, str(path)], check=True, capture_output=True, text=True).stdout
    return [line.split() for line in out.splitlines() if line.strip()]


def main(root: Path, library: Path, archives: list[Path]) -> int:
    errors = []
    exported = {f[2].split("@")[0] for f in nm(library, "-D", "--defined-only") if len(f) > 2 and f[1] in "TDBR"}
    for what, have, want in (("exports but does not declare", exported, declared(root)), ("declares but does not export", declared(root), exported),
                             ("lists but does not declare", listed(root), declared(root)), ("declares but does not list", declared(root), listed(root))):
        errors += [f"the library {what}: {name}" for name in sorted(have - want)]
    for archive in archives:
        for fields in nm(archive, "-u", "-A"):
            joined = " ".join(fields)
            match = re.match(r".*?:([^:]+\.o):\s+U (\S+)", joined)
            if not match:
                continue
            member, name = match.group(1), match.group(2)
            source = Path(member.removesuffix(".o")).name
            if name in FORBIDDEN and name not in CHILD_ONLY.get(source, set()):
                errors.append(f"{archive.name}: {source} calls {name}")
    for line in errors:
        print(line, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(a) for a in sys.argv[3:]]))
