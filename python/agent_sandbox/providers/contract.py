"""The contract suite, ready to be collected: `pytest --pyargs agent_sandbox.providers.contract`."""

from __future__ import annotations

from .testing import ProviderContractTests


class TestProviderContract(ProviderContractTests):
    """Judges the provider of --provider-under-test."""
