"""The errors, one class for each code, from broad to narrow.

Made by tools/generrors.py from include/abx/error.h; edit the list there, then run it.
"""

from __future__ import annotations

from agent_sandbox.models._error_base import (
    CapabilityDetails,
    CommandNameDetails,
    EnvdDetails,
    FeatureDetails,
    LimitDetails,
    ProcessDetails,
    SandboxError,
    build,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class AuthenticationError(SandboxError):
    """Authentication error: E1000."""

    code = "E1000"
    exit_status = 3


class InvalidAPIKeyError(AuthenticationError):
    """The API key is not valid: E1001."""

    code = "E1001"
    suggestion = "Check your ABX_SANDBOX_API_KEY environment variable or pass sandbox_api_key."


class TokenExpiredError(AuthenticationError):
    """The token expired: E1002."""

    code = "E1002"


class InvalidCredentialsError(AuthenticationError):
    """Credentials are missing or not valid: E1003."""

    code = "E1003"


class TokenExchangeError(AuthenticationError):
    """The token could not be exchanged: E1004."""

    code = "E1004"


class SandboxCreationError(SandboxError):
    """The sandbox was not created: E2000."""

    code = "E2000"


class TemplateNotFoundError(SandboxCreationError):
    """Template not found: E2001."""

    code = "E2001"
    exit_status = 4


class QuotaExceededError(SandboxCreationError):
    """Quota exceeded: E2002."""

    code = "E2002"
    suggestion = "Destroy idle sandboxes or request a quota increase."
    exit_status = 6


class RegionUnavailableError(SandboxCreationError):
    """Region unavailable: E2003."""

    code = "E2003"


class TemplateParseError(SandboxCreationError):
    """The template is not valid: E2004."""

    code = "E2004"


class SandboxNotFoundError(SandboxError):
    """Sandbox not found: E2009."""

    code = "E2009"
    suggestion = (
        "Run 'abx list' to see the running sandboxes; a killed or expired sandbox cannot be "
        "reconnected."
    )
    exit_status = 4


class ExecutionError(SandboxError):
    """Execution error: E3000."""

    code = "E3000"


class CommandTimeoutError(ExecutionError):
    """The command timed out: E3001."""

    code = "E3001"
    exit_status = 5


class ProcessError(ProcessDetails, ExecutionError):
    """Process error: E3002."""

    code = "E3002"


class CodeExecutionError(ExecutionError):
    """The code failed: E3003."""

    code = "E3003"


class CapabilityNotSupportedError(CapabilityDetails, ExecutionError):
    """Not supported: E3004."""

    code = "E3004"


class CommandNotFoundError(CommandNameDetails, ExecutionError):
    """Command not found: E3005."""

    code = "E3005"


class EnvdRpcError(EnvdDetails, ExecutionError):
    """envd error: E3006."""

    code = "E3006"


class FileOperationError(SandboxError):
    """File operation error: E4000."""

    code = "E4000"


class FileNotFoundError_(FileOperationError):
    """File not found: E4001."""

    code = "E4001"
    exit_status = 4


class PermissionDeniedError(FileOperationError):
    """Permission denied: E4002."""

    code = "E4002"


class FileSizeLimitError(LimitDetails, FileOperationError):
    """The file is too large: E4003."""

    code = "E4003"


class NetworkError(SandboxError):
    """Network error: E5000."""

    code = "E5000"


class ConnectionError_(NetworkError):
    """The connection failed: E5001."""

    code = "E5001"


class SessionError(SandboxError):
    """Session error: E6000."""

    code = "E6000"


class SessionNotFoundError(SessionError):
    """Session not found: E6001."""

    code = "E6001"


class SessionAlreadyExistsError(SessionError):
    """Session exists: E6002."""

    code = "E6002"


class ProviderError(SandboxError):
    """Provider error: E8000."""

    code = "E8000"


class ProviderNotFoundError(ProviderError):
    """The provider is not installed: E8001."""

    code = "E8001"
    suggestion = "Run 'abx provider list'; install with 'abx provider install <path-or-git-url>'."
    exit_status = 4


class ProviderConfigError(ProviderError):
    """The configuration is not valid: E8002."""

    code = "E8002"
    exit_status = 2


class ProviderConflictError(ProviderError):
    """The id is taken: E8003."""

    code = "E8003"


class ProviderFeatureNotSupportedError(FeatureDetails, ProviderError, CapabilityNotSupportedError):
    """The provider does not support this: E8004."""

    code = "E8004"


class ProviderResourceNotFoundError(ProviderError):
    """Resource not found: E8005."""

    code = "E8005"
    exit_status = 4


class ProviderInstallError(ProviderError):
    """The install failed: E8010."""

    code = "E8010"


class ProviderIntegrityError(ProviderError):
    """The installed files changed: E8011."""

    code = "E8011"


class ProviderTrustError(ProviderError):
    """The source is not trusted: E8012."""

    code = "E8012"
    exit_status = 2


class ProviderVersionError(ProviderError):
    """The versions do not fit together: E8013."""

    code = "E8013"


class ProviderManifestError(ProviderError):
    """The manifest is not valid: E8014."""

    code = "E8014"


class ProviderProtocolError(ProviderError):
    """The plugin broke the protocol: E8020."""

    code = "E8020"


class ProviderProcessError(ProviderError):
    """The plugin process failed: E8021."""

    code = "E8021"


class ProviderTimeoutError(ProviderError):
    """The provider did not answer in time: E8022."""

    code = "E8022"
    exit_status = 5


class ProviderMismatchError(ProviderError):
    """The reference belongs to another provider: E8030."""

    code = "E8030"
    exit_status = 2


BY_NUMBER: dict[int, type[SandboxError]] = {
    1000: AuthenticationError,
    1001: InvalidAPIKeyError,
    1002: TokenExpiredError,
    1003: InvalidCredentialsError,
    1004: TokenExchangeError,
    2000: SandboxCreationError,
    2001: TemplateNotFoundError,
    2002: QuotaExceededError,
    2003: RegionUnavailableError,
    2004: TemplateParseError,
    2009: SandboxNotFoundError,
    3000: ExecutionError,
    3001: CommandTimeoutError,
    3002: ProcessError,
    3003: CodeExecutionError,
    3004: CapabilityNotSupportedError,
    3005: CommandNotFoundError,
    3006: EnvdRpcError,
    4000: FileOperationError,
    4001: FileNotFoundError_,
    4002: PermissionDeniedError,
    4003: FileSizeLimitError,
    5000: NetworkError,
    5001: ConnectionError_,
    6000: SessionError,
    6001: SessionNotFoundError,
    6002: SessionAlreadyExistsError,
    8000: ProviderError,
    8001: ProviderNotFoundError,
    8002: ProviderConfigError,
    8003: ProviderConflictError,
    8004: ProviderFeatureNotSupportedError,
    8005: ProviderResourceNotFoundError,
    8010: ProviderInstallError,
    8011: ProviderIntegrityError,
    8012: ProviderTrustError,
    8013: ProviderVersionError,
    8014: ProviderManifestError,
    8020: ProviderProtocolError,
    8021: ProviderProcessError,
    8022: ProviderTimeoutError,
    8030: ProviderMismatchError,
}
"""The class of each code's number."""


def class_of(number: int) -> type[SandboxError]:
    """The class of a code's number; for one without a row that of its thousand, else SandboxError."""
    return BY_NUMBER.get(number) or BY_NUMBER.get(number // 1000 * 1000, SandboxError)


def from_core(
    code: int,
    message: str,
    suggestion: str = "",
    provider: str | None = None,
    method: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> SandboxError:
    """The error that the core reports by its negative number: -8004 for E8004, or -errno."""
    number = -code
    cls = class_of(number) if 1000 <= number < 9999 else SandboxError
    text = SandboxError.code if cls is SandboxError else f"E{number}"
    return build(cls, text, message, suggestion, provider, method, data)


__all__ = [
    "BY_NUMBER",
    "AuthenticationError",
    "CapabilityNotSupportedError",
    "CodeExecutionError",
    "CommandNotFoundError",
    "CommandTimeoutError",
    "ConnectionError_",
    "EnvdRpcError",
    "ExecutionError",
    "FileNotFoundError_",
    "FileOperationError",
    "FileSizeLimitError",
    "InvalidAPIKeyError",
    "InvalidCredentialsError",
    "NetworkError",
    "PermissionDeniedError",
    "ProcessError",
    "ProviderConfigError",
    "ProviderConflictError",
    "ProviderError",
    "ProviderFeatureNotSupportedError",
    "ProviderInstallError",
    "ProviderIntegrityError",
    "ProviderManifestError",
    "ProviderMismatchError",
    "ProviderNotFoundError",
    "ProviderProcessError",
    "ProviderProtocolError",
    "ProviderResourceNotFoundError",
    "ProviderTimeoutError",
    "ProviderTrustError",
    "ProviderVersionError",
    "QuotaExceededError",
    "RegionUnavailableError",
    "SandboxCreationError",
    "SandboxError",
    "SandboxNotFoundError",
    "SessionAlreadyExistsError",
    "SessionError",
    "SessionNotFoundError",
    "TemplateNotFoundError",
    "TemplateParseError",
    "TokenExchangeError",
    "TokenExpiredError",
    "class_of",
    "from_core",
]
