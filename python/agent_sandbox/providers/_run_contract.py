"""Runs the contract suite by pytest, apart from whatever pytest is configured for where one happens to be."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SUITE = "agent_sandbox.providers.contract"
PLUGIN = "agent_sandbox.providers.testing"
NOTHING_COLLECTED = 5
"""The exit status of pytest for that."""


def run_contract(provider_id: str, options: Sequence[str], more: Sequence[str]) -> int:
    """The exit status: 0 when no case failed, 1 also when nothing was collected or there is no pytest."""
    try:
        import pytest
    except ImportError:
        print("The contract suite needs pytest: pip install pytest", file=sys.stderr)
        return 1
    import tempfile

    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory(prefix="abx-contract-") as folder:
        ini = os.path.join(folder, "pytest.ini")
        with open(ini, "w", encoding="utf-8") as file:
            file.write("[pytest]\n")
        words = ["-c", ini, "--rootdir", folder, "--noconftest", "-p", PLUGIN, "-p", "no:cacheprovider"]
        words += ["--pyargs", SUITE, "--provider-under-test", provider_id]
        for pair in options:
            words += ["--provider-option", pair]
        status = int(pytest.main([*words, *more]))
    if status == NOTHING_COLLECTED:
        print(f"No case of the contract was collected for '{provider_id}'.", file=sys.stderr)
        return 1
    return status
