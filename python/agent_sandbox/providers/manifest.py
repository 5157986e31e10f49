"""`abx-provider.toml` as an object. The core reads and checks it; nothing of it is judged here."""

from __future__ import annotations

import os

from agent_sandbox.models.errors import ProviderManifestError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from agent_sandbox.providers.base import ConfigField

MANIFEST_NAME = "abx-provider.toml"
MANIFEST_MAX_BYTES = 256 * 1024
STARTUP_TIMEOUT_MS = 10_000
CALL_TIMEOUT_MS = 60_000


class Table:
    """A read-only object whose attributes are given once."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if other.__class__ is self.__class__ else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class ProviderCommand(Table):
    """A management operation that a provider offers besides sandboxes."""

    id: str
    description: str
    description_zh: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    effect: str
    idempotent: bool

    def to_dict(self) -> dict[str, Any]:
        """Its descriptor as a receipt has it."""
        return dict(self.__dict__)


class Manifest(Table):
    """A manifest that the core found valid. What it leaves out is "", empty or the protocol's default."""

    id: str
    name: str
    name_zh: str
    version: str
    description: str
    license: str
    homepage: str
    kind: str
    protocol: str
    requires: dict[str, str]
    command: tuple[str, ...]
    startup_timeout_ms: int
    call_timeout_ms: int
    platforms: tuple[str, ...]
    features: tuple[str, ...]
    operation_contract_version: int | None
    operations: dict[str, tuple[str, ...]]
    workflow_inputs: tuple[str, ...]
    startup_modes: tuple[str, ...]
    security: dict[str, Any]
    inherit: tuple[str, ...]
    auth_any_of: tuple[tuple[str, ...], ...]
    fields: tuple[ConfigField, ...]
    endpoint: dict[str, Any]
    commands: tuple[ProviderCommand, ...]
    sha256: str
    raw: dict[str, Any]
    """The whole document, with the keys this host does not know."""

    def __repr__(self) -> str:
        return f"Manifest({self.id!r}, {self.version!r}, kind={self.kind!r})"

    def to_summary(self) -> dict[str, Any]:
        """What consent is asked for; lists are sorted."""
        endpoint = ["rest", self.endpoint.get("base_url", "")]
        summary: dict[str, Any] = {
            "runtime": list(self.command) if self.kind == "exec" else endpoint,
            "security": self.security,
            "features": sorted(self.features),
        }
        if self.operation_contract_version is not None:
            summary["operation_contract_version"] = self.operation_contract_version
            summary["operations"] = {k: sorted(v) for k, v in self.operations.items()}
            summary["workflow_inputs"] = sorted(self.workflow_inputs)
            summary["startup_modes"] = sorted(self.startup_modes)
        summary["inherit"] = sorted(self.inherit)
        summary["fields"] = sorted(f.key for f in self.fields)
        summary["commands"] = [c.to_dict() for c in sorted(self.commands, key=lambda c: c.id)]
        return summary


def load_manifest(directory: str | os.PathLike[str]) -> Manifest:
    """Reads `<directory>/abx-provider.toml`; ProviderManifestError names what is wrong with it."""
    from agent_sandbox import _abx

    directory = os.fspath(directory)
    _abx.manifest_describe(directory)
    return from_document(read_bytes(os.path.join(directory, MANIFEST_NAME)))


def parse_manifest(data: bytes | str) -> Manifest:
    """The same for a text that is in no plugin's directory yet."""
    import tempfile

    from agent_sandbox import _abx

    if isinstance(data, str):
        data = data.encode()
    with tempfile.TemporaryDirectory(prefix="abx-manifest-") as directory:
        with open(os.path.join(directory, MANIFEST_NAME), "wb") as file:
            file.write(data)
        _abx.manifest_describe(directory)
    return from_document(data)


def read_bytes(path: str | Path) -> bytes:
    """The text of a manifest; it may have gone since it was checked."""
    try:
        with open(path, "rb") as file:
            return file.read(MANIFEST_MAX_BYTES + 1)
    except OSError as error:
        raise ProviderManifestError(f"Invalid {MANIFEST_NAME}: unreadable: {error.strerror}.") from error


def from_document(data: bytes) -> Manifest:
    """The object for a text that was checked."""
    import hashlib

    from agent_sandbox import _abx

    doc = _abx.parse_toml(data)
    provider, runtime = doc.get("provider", {}), doc.get("runtime", {})
    compat, security, workflow = doc.get("compat", {}), doc.get("security", {}), doc.get("workflow", {})
    operations = doc.get("operations", {})
    return Manifest(
        id=provider["id"],
        name=provider.get("name") or provider["id"],
        name_zh=provider.get("name_zh", ""),
        version=provider["version"],
        description=provider.get("description", ""),
        license=provider.get("license", ""),
        homepage=provider.get("homepage", ""),
        kind=runtime["kind"],
        protocol=compat.get("protocol", ""),
        requires=dict(compat.get("requires", {})),
        command=tuple(runtime.get("command", ())),
        startup_timeout_ms=runtime.get("startup_timeout_ms", STARTUP_TIMEOUT_MS),
        call_timeout_ms=runtime.get("call_timeout_ms", CALL_TIMEOUT_MS),
        platforms=tuple(runtime.get("platforms", ())),
        features=tuple(doc.get("features", {}).get("supported", ())),
        operation_contract_version=doc.get("operation_contract_version"),
        operations={key: tuple(operations.get(key, ())) for key in ("cli", "python")},
        workflow_inputs=tuple(workflow.get("inputs", ())),
        startup_modes=tuple(workflow.get("startups", ())),
        security={
            "network": list(security.get("network", ())),
            "filesystem": list(security.get("filesystem", ())),
            "env_passthrough": list(security.get("env_passthrough", ())),
            "spawns_processes": bool(security.get("spawns_processes", False)),
        },
        inherit=tuple(doc.get("core", {}).get("inherit", ())),
        auth_any_of=tuple(tuple(group) for group in doc.get("auth", {}).get("any_of", ())),
        fields=tuple(field(key, spec) for key, spec in doc.get("config", {}).get("fields", {}).items()),
        endpoint=dict(doc.get("endpoint", {})),
        commands=tuple(command(entry) for entry in doc.get("commands", {}).get("entries", ())),
        sha256=hashlib.sha256(data).hexdigest(),
        raw=doc,
    )


def field(key: str, spec: dict[str, Any]) -> ConfigField:
    """A `[config.fields.<key>]` table."""
    from agent_sandbox.providers.base import ConfigField

    kind, default = spec.get("type", "string"), spec.get("default")
    return ConfigField(
        key=key,
        type="str" if kind == "string" else kind,
        required=spec.get("required", False),
        secret=spec.get("secret", False),
        credential=spec.get("credential", False),
        default=None if default == "" else default,
        description=spec.get("description", ""),
        description_zh=spec.get("description_zh", ""),
        env=tuple(spec.get("env", ())),
        choices=tuple(spec.get("choices", ())),
    )


def command(entry: dict[str, Any]) -> ProviderCommand:
    """A descriptor of the commands table."""
    return ProviderCommand(
        id=entry["id"],
        description=entry.get("description", ""),
        description_zh=entry.get("description_zh", ""),
        input_schema=entry.get("input_schema", {}),
        output_schema=entry.get("output_schema", {}),
        effect=entry.get("effect", "read"),
        idempotent=entry.get("idempotent", False),
    )
