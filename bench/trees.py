#!/usr/bin/env python3
"""Writes the plugin tree of 2000 small files that digest and install are measured on."""

from __future__ import annotations

import sys
from pathlib import Path

MANIFEST = (Path(__file__).parent / "plugin" / "abx-provider.toml").read_text(encoding="utf-8")


def main(root: Path) -> None:
    (root / "abx-provider.toml").write_text(MANIFEST.replace('id = "bench"', 'id = "tree"'), encoding="utf-8")
    for i in range(1999):
        folder = root / f"d{i % 20}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{i}").write_bytes(bytes([i % 251]) * 1000)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
