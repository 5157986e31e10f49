"""The hand-written half of the errors: the base class, and those whose constructors take more than a message.

The classes themselves are in `errors`, made from the list of include/abx/error.h.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar

    E = TypeVar("E", bound="SandboxError")


class SandboxError(Exception):
    """What every error of this package is.

    `str()` gives `[CODE] message` and, when there is one, the suggestion on a line of its own.
    """

    __module__ = "agent_sandbox.models.errors"  # where users import it from

    code: str = "E0000"
    suggestion: str = ""
    docs_url: str = ""
    exit_status: int = 1
    """What a command ends with because of this error."""

    message: str
    provider: str | None = None
    """Id of the provider it came from, when known."""
    method: str | None = None
    """The protocol method that failed, such as `exec.run`, when known."""
    data: Mapping[str, Any] | None = None
    """What the plugin said besides: `error.data` of the protocol."""
    retryable: bool = False
    """The provider said that trying again later can help."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        suggestion: str | None = None,
        docs_url: str | None = None,
    ) -> None:
        self.message = message
        if code is not None:
            self.code = code
        if suggestion is not None:
            self.suggestion = suggestion
        if docs_url is not None:
            self.docs_url = docs_url
        super().__init__(message)

    def __str__(self) -> str:
        line = f"[{self.code}] {self.message}"
        return f"{line}\n  Suggestion: {self.suggestion}" if self.suggestion else line

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by the constructor: those of subclasses take other things than the message.
        return blank, (type(self), self.args), self.__dict__

    def to_dict(self) -> dict[str, str]:
        """The four texts as `--json` prints them."""
        return {
            "code": self.code,
            "message": self.message,
            "suggestion": self.suggestion,
            "docs_url": self.docs_url,
        }


class ProcessDetails(SandboxError):
    """A process that ended badly, with what it wrote."""

    exit_code: int = -1
    stdout: str = ""
    stderr: str = ""

    def __init__(
        self, message: str, *, exit_code: int = -1, stdout: str = "", stderr: str = "", **kwargs: Any
    ) -> None:
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr
        super().__init__(message, **kwargs)


class CapabilityDetails(SandboxError):
    """Names the capability that is missing."""

    capability: str = ""

    def __init__(
        self,
        capability: str,
        *,
        message: str | None = None,
        suggestion: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.capability = capability
        super().__init__(
            message or f"This sandbox has no capability '{capability}'.",
            suggestion=suggestion or f"Choose a template or a provider that offers '{capability}'.",
            **kwargs,
        )


class FeatureDetails(CapabilityDetails):
    """Names the provider and the feature it lacks."""

    provider: str | None = None
    feature: str = ""

    def __init__(
        self,
        provider: str,
        feature: str,
        *,
        message: str | None = None,
        suggestion: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.provider = provider
        self.feature = feature
        super().__init__(
            feature,
            message=message or f"Provider '{provider}' does not support '{feature}'.",
            suggestion=suggestion or f"Run 'abx provider info {provider}' to see supported features.",
            **kwargs,
        )


class CommandNameDetails(SandboxError):
    """Names the command that the sandbox's server does not know."""

    command_name: str = ""

    def __init__(
        self,
        name: str,
        *,
        server_status: str = "",
        detail: str | None = None,
        suggestion: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.command_name = name
        text = f"There is no command {name!r}."
        if detail and detail.strip():
            text += f" {detail.strip().rstrip('.')}."
        if server_status:
            text += f" The server is {server_status}."
        super().__init__(
            text,
            suggestion=suggestion or "See what the sandbox's server registered, and that it runs.",
            **kwargs,
        )


class EnvdDetails(SandboxError):
    """What the sandbox's envd answered; the message never holds the address of the sandbox."""

    status_code: int = 0
    rpc_path: str = ""
    envd_error: dict[str, Any] | None = None
    body_text: str = ""

    def __init__(
        self,
        message: str,
        *,
        status_code: int = 0,
        rpc_path: str = "",
        envd_error: dict[str, Any] | None = None,
        body_text: str = "",
        **kwargs: Any,
    ) -> None:
        self.status_code = status_code
        self.rpc_path = rpc_path
        self.envd_error = envd_error
        self.body_text = body_text
        super().__init__(message, **kwargs)


class LimitDetails(SandboxError):
    """Says the limit, in bytes, that a file went over."""

    limit: int = 0

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"The file is larger than the limit of {limit} bytes.")


def blank(cls: type[E], args: tuple[Any, ...]) -> E:
    """An error without its constructor: its attributes are set by the caller."""
    error = cls.__new__(cls, *args)
    error.args = args
    return error


def build(
    cls: type[E],
    code: str,
    message: str,
    suggestion: str,
    provider: str | None,
    method: str | None,
    data: Mapping[str, Any] | None,
) -> E:
    """An error as the core describes it."""
    error = blank(cls, (message,))
    error.message = message
    if code != cls.code:
        error.code = code
    error.suggestion = suggestion
    if provider is not None:
        error.provider = provider
    if method is not None:
        error.method = method
    if data is not None:
        error.data = data
        error.retryable = data.get("retryable") is True
        add_details(error, data)
    return error


def add_details(error: SandboxError, data: Mapping[str, Any]) -> None:
    """Takes what the special classes carry out of the data; a plugin nests it in "details"."""
    nested = data.get("details")
    details = {**nested, **data} if isinstance(nested, dict) else data
    if isinstance(error, CapabilityDetails) and isinstance(feature := details.get("feature"), str):
        error.capability = feature
        if isinstance(error, FeatureDetails):
            error.feature = feature
    elif isinstance(error, ProcessDetails) and isinstance(exit_code := details.get("exit_code"), int):
        error.exit_code = exit_code
    elif isinstance(error, LimitDetails) and isinstance(limit := details.get("limit"), int):
        error.limit = limit
