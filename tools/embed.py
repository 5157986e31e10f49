#!/usr/bin/env python3
"""Makes a C file that holds files: embed.py OUT SYMBOL HEADER FILE…

SYMBOL becomes an array of struct embedded (HEADER declares it), ended by one without a name."""

from __future__ import annotations

import sys
from pathlib import Path


def array(index: int, data: bytes) -> str:
    lines = [",".join(str(b) for b in data[i : i + 24]) for i in range(0, len(data), 24)]
    return f"static const unsigned char file_{index}[] = {{\n" + ",\n".join([*lines, "0"]) + "};\n"


def main(out: str, symbol: str, header: str, files: list[str]) -> None:
    text = f"/* Made by tools/embed.py. */\n#include \"{header}\"\n\n"
    rows = []
    for i, path in enumerate(map(Path, files)):
        data = path.read_bytes()
        text += array(i, data)
        rows.append(f'    {{"{path.name}", (const char *)file_{i}, {len(data)}}},\n')
    text += f"\nconst struct embedded {symbol}[] = {{\n" + "".join(rows) + "    {0},\n};\n"
    Path(out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
