"""What a provider is: its identity, what it declares, and the two ways to write one in Python."""

from __future__ import annotations

from abc import ABC
from collections import namedtuple

from agent_sandbox import _abx
from agent_sandbox.models.errors import (
    InvalidCredentialsError,
    ProviderConfigError,
    ProviderFeatureNotSupportedError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Literal, TypeAlias

    from agent_sandbox.providers.infra import ProviderConfig

    ProviderFeature: TypeAlias = Literal[
        "sandbox.lifecycle", "sandbox.timeout", "sandbox.pause", "exec.run", "exec.stream", "process.manage",
        "pty", "files.rw", "files.watch", "files.transfer", "templates.read", "templates.build",
        "templates.deploy", "ports.url", "ports.domain", "storage.mount", "network.vpc", "sessions",
    ]  # fmt: skip
    ProviderKind: TypeAlias = Literal["builtin", "rest", "exec", "node", "python"]

FEATURES: tuple[str, ...] = _abx.FEATURES
"""What can be declared, in the order in which it is shown."""

GENERIC_KEYS = frozenset({"sandbox_api_key", "sandbox_base_url", "sandbox_domain"})
"""Settings of the host that a provider may ask for by `inherit`."""

Extension = namedtuple("Extension", ("id", "summary", "summary_zh", "implemented", "when"))
"""Something a provider offers outside the features.

when: sandbox, code_interpreter_image, egress or command, what a sandbox must have to show it.
"""


def __getattr__(name: str) -> object:
    if name in ("ProviderFeature", "ProviderKind"):
        from typing import Literal

        kinds = ("builtin", "rest", "exec", "node", "python")
        return Literal[FEATURES if name == "ProviderFeature" else kinds]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def ordered_features(features: Iterable[str]) -> list[str]:
    """In registry order; what nobody knows comes last, by name."""
    known = set(features)
    return [f for f in FEATURES if f in known] + sorted(known.difference(FEATURES))


def compact_features(features: Iterable[str]) -> str:
    """In one line: `sandbox(lifecycle,pause) exec(run) pty`."""
    groups: dict[str, list[str]] = {}
    for feature in ordered_features(features):
        group, dot, name = feature.partition(".")
        groups.setdefault(group, []).extend([name] if dot else [])
    return " ".join(f"{group}({','.join(names)})" if names else group for group, names in groups.items())


def variable(provider_id: str, key: str) -> str:
    """The environment variable of a provider's setting: ABX_MY_CLOUD_TOKEN."""
    return f"ABX_{provider_id}_{key}".upper().replace("-", "_")


class ConfigField:
    """A setting of a provider: `[config.fields.<key>]` of a manifest.

    type: str, int, float, bool, enum, path, url or csv. env: names of other variables it is read from.
    A credential that is required and missing is E1003, another field E8002.
    """

    __slots__ = (  # noqa: RUF023 (the order of the constructor)
        "key", "type", "required", "secret", "credential", "default", "description", "description_zh", "env",
        "choices",
    )  # fmt: skip

    def __init__(
        self,
        key: str,
        type: str = "str",
        required: bool = False,
        secret: bool = False,
        credential: bool = False,
        default: Any = None,
        description: str = "",
        description_zh: str = "",
        env: Iterable[str] = (),
        choices: Iterable[str] = (),
    ) -> None:
        self.key = key
        self.type = type
        self.required = required
        self.secret = secret
        self.credential = credential
        self.default = default
        self.description = description
        self.description_zh = description_zh
        self.env = tuple(env)
        self.choices = tuple(choices)

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, ConfigField) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"ConfigField({self.key!r}, {self.type!r})"


class ProviderInfra:
    """What `Provider.build_infra` makes: objects that do the work, for one configuration.

    Their methods are those of the reference's protocols. close: an async function, called at the end.
    """

    def __init__(
        self,
        config: Any = None,
        auth: Any = None,
        http_client: Any = None,
        sandbox_protocol: Any = None,
        process_protocol: Any = None,
        filesystem_protocol: Any = None,
        code_interpreter_protocol: Any = None,
        close: Any = None,
    ) -> None:
        self.config = config
        self.auth = auth
        self.http_client = http_client
        self.sandbox_protocol = sandbox_protocol
        self.process_protocol = process_protocol
        self.filesystem_protocol = filesystem_protocol
        self.code_interpreter_protocol = code_interpreter_protocol
        self.close = close


class Provider(ABC):
    """A backend. A subclass says its id and features and overrides `handle` or `build_infra`.

    Only what is declared is ever called; the errors it raises become those of every provider.
    """

    id: str
    display_name: str = ""
    display_name_zh: str = ""
    version: str = "0.0.0"
    kind: ProviderKind = "python"
    features: frozenset[str] = frozenset()
    operation_contract_version: int = 1
    operations: frozenset[str] = frozenset()
    workflow_inputs: frozenset[str] = frozenset()
    startup_modes: frozenset[str] = frozenset()
    extensions: tuple[Extension, ...] = ()
    config_fields: tuple[ConfigField, ...] = ()
    inherit: frozenset[str] = frozenset()
    """The GENERIC_KEYS it wants."""
    auth_any_of: tuple[tuple[str, ...], ...] = ()
    """Groups of keys, one of which must have all its values."""
    create_options: frozenset[str] = frozenset()

    async def handle(self, method: str, params: dict[str, Any]) -> Any:
        """Answers one call of the protocol (docs/epp.md): its method, its params, its result.

        So the code can move into a plugin as it is. "initialize" comes first, with the settings, and may
        be left out; several configurations may be in use at a time. NotImplementedError means that
        there is no such method; SandboxError is raised as it is, anything else becomes E8000.

        What goes on after its answer, `exec.start`, is answered by an asynchronous iterator. Its items are
        the params of the protocol's notifications: {"process_id": "7"} first, then
        {"stream": "stdout", "data": "text or bytes"} as it comes, {"exit_code": 0} last. When the
        caller gives up, the task that runs it is cancelled.
        """
        raise NotImplementedError(method)

    async def build_infra(self, config: ProviderConfig) -> ProviderInfra:
        """The objects that do the work with a configuration; called once for each."""
        raise NotImplementedError("build_infra")

    def require(self, feature: str) -> None:
        """Raises ProviderFeatureNotSupportedError (E8004) unless the feature is declared."""
        if feature not in self.features:
            raise ProviderFeatureNotSupportedError(self.id, feature)

    def supports(self, feature: str) -> bool:
        """Whether the feature is declared."""
        return feature in self.features

    def extensions_for(
        self, *, image: str = "", sandbox_id: str = "", egress: bool = False, command_id: str = ""
    ) -> tuple[Extension, ...]:
        """The extensions that a sandbox shows; none without a sandbox."""
        shown = {
            "sandbox": True,
            "code_interpreter_image": "code-interpreter" in image,
            "egress": egress,
            "command": bool(command_id),
        }
        return tuple(e for e in self.extensions if shown.get(e.when)) if sandbox_id else ()

    def require_extension(self, extension_id: str) -> Extension:
        """The extension; E8004 when it is missing or not implemented."""
        for extension in self.extensions:
            if extension.id == extension_id and extension.implemented:
                return extension
        raise ProviderFeatureNotSupportedError(self.id, extension_id)

    def validate_config(self, config: ProviderConfig) -> None:
        """E8002 or, for credentials, E1003 when something that is required has no value."""

        def has(key: str) -> bool:
            if key in GENERIC_KEYS:
                return key in self.inherit and bool(getattr(config, key, None))
            return config.provider_options.get(key) not in (None, "")

        see = f"Run 'abx provider info {self.id}' to see its options."
        for field in self.config_fields:
            if field.required and not has(field.key):
                names = " or ".join((variable(self.id, field.key), *field.env))
                error = InvalidCredentialsError if field.credential else ProviderConfigError
                raise error(f"Provider '{self.id}' needs '{field.key}': set {names}.", suggestion=see)
        if self.auth_any_of and not any(all(map(has, group)) for group in self.auth_any_of):
            groups = " or ".join(" and ".join(group) for group in self.auth_any_of)
            text = f"Provider '{self.id}' has no credentials: set {groups}."
            raise InvalidCredentialsError(text, suggestion=see)

    def capabilities(self) -> frozenset[str]:
        """Coarse names of what it can do: shell, files, code, ports, terminal."""
        opens = {
            "shell": {"exec.run"},
            "files": {"files.rw"},
            "ports": {"ports.url"},
            "terminal": {"pty"},
        }
        found = {name for name, needs in opens.items() if needs <= self.features}
        return frozenset(found | ({"code"} if any(o.startswith("code.") for o in self.operations) else set()))

    def describe(self) -> dict[str, Any]:
        """Everything there is to know about it, as `provider info --json` has it."""
        manifest = getattr(self, "manifest", None)
        cli: Mapping[str, Iterable[str]] = manifest.operations if manifest is not None else {}
        return {
            "id": self.id,
            "name": self.display_name,
            "name_zh": self.display_name_zh,
            "version": self.version,
            "kind": self.kind,
            "features": sorted(self.features),
            "operation_contract_version": self.operation_contract_version,
            "operations": {"cli": list(cli.get("cli", ())), "python": sorted(self.operations)},
            "workflow_inputs": sorted(self.workflow_inputs),
            "startup_modes": sorted(self.startup_modes),
            "extensions": [extension._asdict() for extension in self.extensions],
            "config_fields": [self._described(field) for field in self.config_fields],
            "inherit": sorted(self.inherit),
        }

    def _described(self, field: ConfigField) -> dict[str, Any]:
        shown = {name: getattr(field, name) for name in field.__slots__ if name != "choices"}
        return shown | {"env": variable(self.id, field.key), "aliases": list(field.env)}
