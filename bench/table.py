#!/usr/bin/env python3
"""Prints measurements side by side, as Markdown tables with ratios: table.py c|python OURS THEIRS."""

from __future__ import annotations

import sys
from pathlib import Path

# Name, what it is, whether more is better, the goals as a ratio to the reference: in C, in Python.
ROWS: list[tuple[str, str, bool, str, str]] = [
    ("import", "import of the API", False, "", "≥ 10×"),
    ("create", "start a plugin, handshake, create", False, "", "≥ 3×"),
    ("close", "orderly close", False, "", ""),
    ("raw_ping_pong", "raw pipe ping-pong of the same bytes", False, "", ""),
    ("bare_call", "one call (files.stat), p50", False, "≤ 1.5× raw", "≥ 5×"),
    ("command", "one command, p50", False, "", "≥ 5×"),
    ("concurrent_commands", "100 commands at a time", True, "", "≥ 6×"),
    ("small_messages", "stream of 100 000 × 100 B", True, "≥ 20×", "≥ 10×"),
    ("stream_256m", "stream of 256 MiB in 64 KiB", True, "≥ 3×", ""),
    ("write_1k", "write 1 KiB", False, "", ""),
    ("read_1k", "read 1 KiB", False, "", ""),
    ("write_1m", "write 1 MiB", False, "", ""),
    ("read_1m", "read 1 MiB", False, "", ""),
    ("write_5m", "write 5 MiB", False, "", "≥ 6×"),
    ("read_5m", "read 5 MiB", False, "≥ 8×", "≥ 6×"),
    ("stall_concurrent_commands", "longest stall of the loop: 100 commands", False, "", "≥ 10×"),
    ("stall_small_messages", "longest stall of the loop: small messages", False, "", "≥ 10×"),
    ("stall_stream_256m", "longest stall of the loop: 256 MiB", False, "", "≥ 10×"),
    ("stall_write_5m", "longest stall of the loop: write 5 MiB", False, "", "≥ 10×"),
    ("stall_read_5m", "longest stall of the loop: read 5 MiB", False, "", "≥ 10×"),
    ("stopped_consumer", "host memory with a consumer that stops", False, "≤ 16 MiB", ""),
    ("many_create", "many sandboxes: create each", False, "", ""),
    ("many_memory", "many sandboxes: host memory each", False, "", "≤ 16 KiB"),
    ("many_end", "many sandboxes: end, each", False, "", ""),
    ("list", "provider list, whole command", False, "≥ 50×", ""),
    ("install_2000", "install of 2000 files, whole command", False, "", ""),
    ("digest_2000", "digest of 2000 files", False, "≥ 4×", ""),
]


def read(path: str) -> dict[str, tuple[float, str]]:
    rows = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        name, value, unit = line.split()
        rows[name] = (float(value), unit)
    return rows


def main(language: str, ours: dict[str, tuple[float, str]], theirs: dict[str, tuple[float, str]]) -> None:
    print(f"| {'from C' if language == 'c' else 'from Python'} | abx | reference | ratio | goal |\n| --- | ---: | ---: | ---: | --- |")
    for name, title, more, *goals in ROWS:
        if name not in ours:
            continue
        value, unit = ours[name]
        other = theirs.get(name, (0.0, unit))[0]
        ratio = (value / other if more else other / value) if other > 0 and value > 0 else 0.0
        shown = f"{ratio:.1f}×" if ratio else ""
        if name == "bare_call" and "raw_ping_pong" in ours:
            shown = f"{shown} ({value / ours['raw_ping_pong'][0]:.2f}× raw)".strip()
        goal = goals[language == "python"]
        print(f"| {title} | {value:.4g} {unit} | {f'{other:.4g} {unit}' if other else '–'} | {shown} | {goal} |")


if __name__ == "__main__":
    main(sys.argv[1], read(sys.argv[2]), read(sys.argv[3]))
