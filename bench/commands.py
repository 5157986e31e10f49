#!/usr/bin/env python3
"""Times whole commands: list, and install and digest check of 2000 files.

usage: commands.py WORK COMMAND…: "abx" or "python -m agent_sandbox.providers".
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path


def timed(argv: list[str], n: int) -> float:
    times = []
    for _ in range(n):
        start = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main(work: Path, command: list[str]) -> None:
    base = [*command, "provider"] if Path(command[0]).name == "abx" else command
    print(f"list {timed([*base, 'list'], 9):.6g} ms")
    install = [*base, "install", str(work / "tree"), "--yes", "--force", "--no-verify"]
    print(f"install_2000 {timed(install, 5):.6g} ms")
    start = timed([*base, "doctor", "bench", "--no-handshake"], 7)
    print(f"digest_2000 {timed([*base, 'doctor', 'tree', '--no-handshake'], 7) - start:.6g} ms")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
