"""The tests of every folder share what lies in lib/ and plugins/, and the package of the build under test.

ABX_TEST_PYTHONPATH names the folder with the built package; without it an installed one is tested.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [p for p in (os.environ.get("ABX_TEST_PYTHONPATH"), str(HERE / "lib"), str(HERE / "plugins")) if p]
