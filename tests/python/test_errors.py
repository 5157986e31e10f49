"""The errors: one class a code, how they read, and how the core's become ours."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import agent_sandbox
import pytest
from agent_sandbox import _abx, exceptions
from agent_sandbox.models import errors as E
from agent_sandbox.models.errors import SandboxError, from_core

ROOT = Path(__file__).resolve().parents[2]

# The classes of the reference and what each is, as people's except clauses rely on it.
PARENTS = {
    "AuthenticationError": "SandboxError",
    "InvalidAPIKeyError": "AuthenticationError",
    "TokenExpiredError": "AuthenticationError",
    "InvalidCredentialsError": "AuthenticationError",
    "TokenExchangeError": "AuthenticationError",
    "SandboxCreationError": "SandboxError",
    "TemplateNotFoundError": "SandboxCreationError",
    "QuotaExceededError": "SandboxCreationError",
    "RegionUnavailableError": "SandboxCreationError",
    "TemplateParseError": "SandboxCreationError",
    "SandboxNotFoundError": "SandboxError",
    "ExecutionError": "SandboxError",
    "CommandTimeoutError": "ExecutionError",
    "ProcessError": "ExecutionError",
    "CodeExecutionError": "ExecutionError",
    "CapabilityNotSupportedError": "ExecutionError",
    "CommandNotFoundError": "ExecutionError",
    "EnvdRpcError": "ExecutionError",
    "FileOperationError": "SandboxError",
    "FileNotFoundError_": "FileOperationError",
    "PermissionDeniedError": "FileOperationError",
    "FileSizeLimitError": "FileOperationError",
    "NetworkError": "SandboxError",
    "ConnectionError_": "NetworkError",
    "SessionError": "SandboxError",
    "SessionNotFoundError": "SessionError",
    "SessionAlreadyExistsError": "SessionError",
    "ProviderError": "SandboxError",
    "ProviderNotFoundError": "ProviderError",
    "ProviderConfigError": "ProviderError",
    "ProviderConflictError": "ProviderError",
    "ProviderFeatureNotSupportedError": "ProviderError",
    "ProviderResourceNotFoundError": "ProviderError",
    "ProviderInstallError": "ProviderError",
    "ProviderIntegrityError": "ProviderError",
    "ProviderTrustError": "ProviderError",
    "ProviderVersionError": "ProviderError",
    "ProviderManifestError": "ProviderError",
    "ProviderProtocolError": "ProviderError",
    "ProviderProcessError": "ProviderError",
    "ProviderTimeoutError": "ProviderError",
    "ProviderMismatchError": "ProviderError",
}

# What the command ends with: the rest is 1.
STATUS = {
    2: {"E8002", "E8012", "E8030"},
    3: {"E1000", "E1001", "E1002", "E1003", "E1004"},
    4: {"E2001", "E2009", "E4001", "E8001", "E8005"},
    5: {"E3001", "E8022"},
    6: {"E2002"},
}

SPECIAL = [
    E.ProcessError("it failed", exit_code=3, stdout="out", stderr="err", suggestion="look"),
    E.CapabilityNotSupportedError("shell"),
    E.ProviderFeatureNotSupportedError("my-cloud", "pty"),
    E.FileSizeLimitError(10),
    E.CommandNotFoundError("greet", server_status="running", detail="It was removed."),
    E.EnvdRpcError("no", status_code=500, rpc_path="/process.Process/Start", envd_error={"code": "x"}, body_text="y"),
]


@pytest.mark.parametrize("name", PARENTS)
def test_each_class_is_what_its_parent_is_and_is_found_everywhere(name: str) -> None:
    cls = getattr(E, name)
    assert issubclass(cls, getattr(E, PARENTS[name]))
    assert getattr(exceptions, name) is getattr(agent_sandbox, name) is cls
    assert cls.__doc__


def test_every_row_of_the_core_is_a_class_with_its_code() -> None:
    rows = [row for row in _abx.ERRORS if row[2] != "SandboxError"]
    assert {row[2] for row in rows} == set(PARENTS)
    for number, _, name, parent, _, hint in rows:
        cls = getattr(E, name)
        assert (cls.code, cls.suggestion, cls.docs_url) == (f"E{number}", hint, "")
        assert issubclass(cls, getattr(E, parent))
        assert E.BY_NUMBER[number] is cls


def test_the_generated_file_is_what_the_tool_writes() -> None:
    done = subprocess.run([sys.executable, "-B", str(ROOT / "tools" / "generrors.py"), "--check"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_exit_statuses_are_those_of_the_command() -> None:
    classes: list[type[SandboxError]] = [SandboxError, *E.BY_NUMBER.values()]
    for cls in classes:
        assert cls.exit_status == next((status for status, codes in STATUS.items() if cls.code in codes), 1), cls


def test_text_and_dict() -> None:
    plain = SandboxError("it broke")
    assert str(plain) == "[E0000] it broke"
    told = E.QuotaExceededError("no more")
    assert str(told) == "[E2002] no more\n  Suggestion: Destroy idle sandboxes or request a quota increase."
    own = E.NetworkError("x", code="E5999", suggestion="try", docs_url="https://example.com")
    assert own.to_dict() == {"code": "E5999", "message": "x", "suggestion": "try", "docs_url": "https://example.com"}
    assert (E.NetworkError.code, own.args) == ("E5000", ("x",))


def test_a_missing_feature_is_a_missing_capability_too() -> None:
    error = E.ProviderFeatureNotSupportedError("my-cloud", "pty")
    assert isinstance(error, E.ProviderError)
    assert isinstance(error, E.CapabilityNotSupportedError)
    assert (error.code, error.provider, error.feature, error.capability) == ("E8004", "my-cloud", "pty", "pty")
    assert "my-cloud" in error.message
    assert "pty" in error.message
    assert E.ProviderFeatureNotSupportedError("a", "b", message="m", suggestion="s").to_dict()["message"] == "m"
    assert E.CapabilityNotSupportedError("shell", message="m").capability == "shell"


def test_special_constructors_keep_what_they_are_given() -> None:
    process, _, _, limit, command, envd = SPECIAL
    assert isinstance(process, E.ProcessError)
    assert (process.exit_code, process.stdout, process.stderr, process.suggestion) == (3, "out", "err", "look")
    assert isinstance(limit, E.FileSizeLimitError)
    assert limit.limit == 10
    assert isinstance(command, E.CommandNotFoundError)
    assert command.command_name == "greet"
    assert "It was removed." in command.message
    assert isinstance(envd, E.EnvdRpcError)
    assert (envd.status_code, envd.rpc_path, envd.envd_error, envd.body_text) == (
        500, "/process.Process/Start", {"code": "x"}, "y")


@pytest.mark.parametrize("error", [*SPECIAL, from_core(-8004, "m", "s", "p", "pty.open", {"feature": "pty"})], ids=repr)
def test_errors_travel(error: SandboxError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is type(error)
        assert (other.args, other.__dict__, str(other)) == (error.args, error.__dict__, str(error))


def test_what_the_core_says_is_kept() -> None:
    data = {"retryable": True, "details": {"feature": "pty"}}
    error = from_core(-8004, "no terminal", "", "my-cloud", "pty.open", data)
    assert isinstance(error, E.ProviderFeatureNotSupportedError)
    assert (error.message, error.suggestion) == ("no terminal", "")
    assert (error.provider, error.method, error.data, error.retryable) == ("my-cloud", "pty.open", data, True)
    assert (error.feature, error.capability) == ("pty", "pty")
    plain = from_core(-4001, "gone", "look elsewhere")
    assert (plain.provider, plain.method, plain.data, plain.retryable) == (None, None, None, False)


@pytest.mark.parametrize(("number", "name", "code"), [
    (4001, "FileNotFoundError_", "E4001"), (2999, "SandboxCreationError", "E2999"), (1777, "AuthenticationError", "E1777"),
    (8099, "ProviderError", "E8099"), (7001, "SandboxError", "E0000"), (9999, "SandboxError", "E0000"),
    (125, "SandboxError", "E0000"),
])
def test_a_code_without_a_row_is_of_its_family(number: int, name: str, code: str) -> None:
    error = from_core(-number, "m")
    assert (type(error).__name__, error.code) == (name, code)


def test_special_classes_from_the_core_have_every_attribute() -> None:
    process = from_core(-3002, "m", data={"details": {"exit_code": 7}})
    assert isinstance(process, E.ProcessError)
    assert (process.exit_code, process.stdout) == (7, "")
    limit = from_core(-4003, "m", data={"limit": 5})
    assert isinstance(limit, E.FileSizeLimitError)
    assert limit.limit == 5
    bare = from_core(-3006, "m")
    assert isinstance(bare, E.EnvdRpcError)
    assert (bare.status_code, bare.envd_error) == (0, None)


def test_a_failure_of_the_core_comes_as_its_class(home: Path) -> None:
    with pytest.raises(E.ProviderNotFoundError) as error:
        _abx.Client().provider_info("nobody-has-it")
    assert error.value.message == "Provider 'nobody-has-it' is not installed."
    with pytest.raises(E.ProviderManifestError) as bad:
        _abx.parse_toml(b"a = \n")
    assert bad.value.code == "E8014"
