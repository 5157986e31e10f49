"""A provider that the core runs, as the object `get_provider` gives: the built-in or an installed one."""

from __future__ import annotations

from agent_sandbox.models.errors import ProviderFeatureNotSupportedError
from agent_sandbox.providers.base import ConfigField, Provider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from agent_sandbox.providers.manifest import Manifest

CREATE_OPTIONS = {"storage.mount": "volume_mounts", "network.vpc": "vpc"}
"""What create() takes only when a feature is declared."""
NOT_DESCRIBED = frozenset({"receipt", "unknown_keys", "directory"})


class InstalledProvider(Provider):
    """What a provider declares. Its sandboxes come from `Sandbox`; here is nothing that starts it."""

    def __init__(self, info: Mapping[str, Any]) -> None:
        self._info = dict(info)
        self._manifest: Manifest | None = None
        self.id = info["id"]
        self.display_name = info["name"]
        self.display_name_zh = info["name_zh"]
        self.version = info["version"]
        self.kind = info["kind"]
        self.features = frozenset(info["features"])
        self.operation_contract_version = info.get("operation_contract_version", 1)
        self.operations = frozenset(info.get("operations", {}).get("python", ()))
        self.workflow_inputs = frozenset(info.get("workflow_inputs", ()))
        self.startup_modes = frozenset(info.get("startup_modes", ()))
        self.inherit = frozenset(info["inherit"])
        self.create_options = frozenset(v for k, v in CREATE_OPTIONS.items() if k in self.features)

    @property
    def receipt(self) -> dict[str, Any] | None:
        """What its install wrote down; None for the built-in."""
        receipt: dict[str, Any] | None = self._info.get("receipt")
        return receipt

    @property
    def manifest(self) -> Manifest | None:
        """Its manifest; None for the built-in, which has no file."""
        directory = self._info.get("directory")
        if self._manifest is None and directory:
            from agent_sandbox.providers.manifest import load_manifest

            self._manifest = load_manifest(directory)
        return self._manifest

    @property
    def config_fields(self) -> tuple[ConfigField, ...]:  # type: ignore[override]
        """Its settings."""
        if self.manifest is not None:
            return self.manifest.fields
        return tuple(builtin_field(field) for field in self._info["config_fields"])

    @property
    def auth_any_of(self) -> tuple[tuple[str, ...], ...]:  # type: ignore[override]
        """Groups of settings of which one must be complete; () when nothing is checked."""
        return self.manifest.auth_any_of if self.manifest is not None else ()

    @property
    def derive(self) -> dict[str, str]:
        """Templates of addresses made from settings."""
        return dict(self.manifest.endpoint.get("derive", {})) if self.manifest is not None else {}

    @property
    def endpoint_defaults(self) -> dict[str, str]:
        """Addresses the manifest of a rest provider says."""
        endpoint = self.manifest.endpoint if self.manifest is not None else {}
        names = {"sandbox_base_url": "base_url", "sandbox_domain": "domain"}
        return {key: endpoint[name] for key, name in names.items() if endpoint.get(name)}

    def describe(self) -> dict[str, Any]:
        """Everything about it, ready for JSON."""
        return {key: value for key, value in self._info.items() if key not in NOT_DESCRIBED}

    async def build_infra(self, config: object) -> NoReturn:
        """The core runs this one: use `Sandbox.create(provider=id)`."""
        raise ProviderFeatureNotSupportedError(
            self.id,
            "build_infra",
            message=f"Provider '{self.id}' runs outside of this program.",
            suggestion=f"Use Sandbox.create(provider='{self.id}').",
        )

    def __repr__(self) -> str:
        return f"<provider {self.id} {self.version} ({self.kind})>"


def builtin_field(row: Mapping[str, Any]) -> ConfigField:
    """A setting as the core describes it."""
    return ConfigField(
        key=row["key"],
        type=row["type"],
        required=row["required"],
        secret=row["secret"],
        credential=row["credential"],
        default=row["default"],
        description=row["description"],
        description_zh=row["description_zh"],
        env=tuple(row["aliases"]),
    )
