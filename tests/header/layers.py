#!/usr/bin/env python3
"""Checks that a room of src/ includes only rooms below it, and that the command and the
extension see nothing of src/ but base/. The order is the one of src/README.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Each room, and what it may include besides itself.
ORDER = ["base", "json", "toml", "loop", "proc", "rpc", "drivers", "provider", "config", "store", "api"]
ALLOWED = {room: set(ORDER[: i + 1]) for i, room in enumerate(ORDER)}
ALLOWED["json"] = {"base", "json"}
ALLOWED["toml"] = {"base", "toml"}
ALLOWED["loop"] = {"base", "loop"}
ALLOWED["proc"] = {"base", "loop", "proc", "supervise"}  # the bytes the two exchange
ALLOWED["rpc"] = {"base", "json", "loop", "rpc"}
ALLOWED["supervise"] = {"supervise"}
ALLOWED["store"] = ALLOWED["store"] | {"supervise"}  # git runs under it, too
# Drivers carry messages for the table of methods, which is data of the room above.
EXCEPTIONS = {("src/drivers/drivers.c", "provider/methods.def")}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def problems(root: Path) -> list[str]:
    found = []
    files = [p for folder in ("src", "cli") for p in (root / folder).rglob("*") if p.suffix in (".c", ".h", ".cc", ".def")]
    for path in sorted(files):
        rel = path.relative_to(root)
        room = rel.parts[1] if rel.parts[0] == "src" else rel.parts[0]
        allowed = ALLOWED.get(room, {"base"})
        for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
            target = include.split("/")[0] if "/" in include else room
            if target == room or target in allowed or (str(rel), include) in EXCEPTIONS:
                continue
            if rel.parts[0] == "cli" and not (root / "src" / target).is_dir():
                continue
            found.append(f"{rel} includes {include}: {room} stands below {target}")
    return found


def order_in_readme(root: Path) -> list[str]:
    text = (root / "src" / "README.md").read_text(encoding="utf-8")
    rooms = re.findall(r"^\| `(\w+)/`", text, re.M)
    wanted = [r for r in ORDER if r in rooms]
    return [] if [r for r in rooms if r in ORDER] == wanted == ORDER else ["src/README.md lists the rooms in another order"]


if __name__ == "__main__":
    top = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    errors = problems(top) + order_in_readme(top)
    for line in errors:
        print(line, file=sys.stderr)
    sys.exit(1 if errors else 0)
