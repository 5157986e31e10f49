"""How long things may take, in seconds."""

from __future__ import annotations

import os

SLOW = float(os.environ.get("ABX_TEST_SLOW", "1"))  # how much longer, under valgrind for one
TIMEOUT = 60 * SLOW  # only a hang gets there
GRACE = 10 * SLOW  # what a process gets to be gone
