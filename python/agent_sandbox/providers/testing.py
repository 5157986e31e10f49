"""The contract suite: what a provider must do for the features it declares, one point a case.

Three ways to run it:

    python -m agent_sandbox.providers test my-cloud --option base_url=http://127.0.0.1:8080

    pytest -p agent_sandbox.providers.testing --pyargs agent_sandbox.providers.contract \
           --provider-under-test my-cloud --provider-option base_url=http://127.0.0.1:8080

    from agent_sandbox.providers.testing import ProviderContractTests

    class TestMyCloud(ProviderContractTests):
        provider_id = "my-cloud"

What is not declared is skipped. `abx provider test` runs the same cases, by the same names, natively.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

CASES = ("lifecycle", "exec", "process", "files", "errors")
pytest.register_assert_rewrite(*(f"{__package__}._suite_{part}" for part in CASES))

from ._suite import Suite  # noqa: E402
from ._suite_errors import ErrorCases  # noqa: E402
from ._suite_exec import ExecCases, StreamCases  # noqa: E402
from ._suite_files import FilesCases  # noqa: E402
from ._suite_lifecycle import LifecycleCases  # noqa: E402
from ._suite_process import ProcessCases  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable


def pytest_addoption(parser: pytest.Parser) -> None:
    """Registers the options; called by pytest when this module is loaded as a plugin."""
    parser.addoption(
        "--provider-under-test",
        metavar="ID",
        default=os.environ.get("ABX_PROVIDER_UNDER_TEST"),
        help="the provider that ProviderContractTests judges (default: ABX_PROVIDER_UNDER_TEST)",
    )
    parser.addoption(
        "--provider-option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="an option for this provider; may be given more than once",
    )


def parse_options(pairs: Iterable[str]) -> dict[str, str]:
    """{"a": "b=c"} of ["a=b=c"]; pytest.UsageError for what has no key or no "="."""
    options = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key.strip() or not equals:
            raise pytest.UsageError(f"--provider-option takes KEY=VALUE, not {pair!r}")
        options[key.strip()] = value
    return options


class ProviderContractTests(LifecycleCases, ExecCases, StreamCases, ProcessCases, FilesCases, ErrorCases):
    """The cases of the contract; subclass it as Test… and say which provider."""

    provider_id: ClassVar[str | None] = None
    """The provider to judge; None: what --provider-under-test says."""
    provider_options: ClassVar[dict[str, Any]] = {}
    """Its options; --provider-option adds to them and wins."""
    _suite: ClassVar[Suite | None] = None

    @pytest.fixture
    def pid(self, request: pytest.FixtureRequest) -> str:
        """The id of the provider; without one the suite fails."""
        chosen = self.provider_id or request.config.getoption("--provider-under-test", default=None)
        if not chosen:
            chosen = os.environ.get("ABX_PROVIDER_UNDER_TEST")
        if not chosen:
            pytest.fail("no provider to test: say provider_id or --provider-under-test", pytrace=False)
        return str(chosen)

    @pytest.fixture
    def popts(self, request: pytest.FixtureRequest) -> dict[str, Any]:
        """The options of the provider."""
        given = request.config.getoption("--provider-option", default=None)
        return {**self.provider_options, **parse_options(given or ())}

    @pytest.fixture
    def suite(self, pid: str, popts: dict[str, Any]) -> Suite:
        """What all cases of a class share."""
        cls = type(self)
        suite = cls.__dict__.get("_suite")
        if suite is None or (suite.pid, suite.options) != (pid, popts):
            cls.teardown_class()
            suite = cls._suite = Suite(pid, popts)
        return suite

    @classmethod
    def teardown_class(cls) -> None:
        """Kills what the cases shared."""
        suite, cls._suite = cls.__dict__.get("_suite"), None
        if suite is not None:
            suite.close()


__all__ = ["ProviderContractTests", "parse_options", "pytest_addoption"]
