"""Sandboxes as records: what one is made from, and what its provider says about it."""

from __future__ import annotations

import enum

from agent_sandbox.models._model import Model, parse_time, text, text_map
from agent_sandbox.models.errors import ProviderConfigError, ProviderProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

TIMEOUT_MAX = 86400
"""The longest life of a sandbox, in seconds."""

MOUNT_FORBIDDEN = frozenset({"bin", "opt", "var", "dev"})
"""Directories of the root that no volume may cover."""
MOUNT_NAMES_FORBIDDEN = frozenset({"__proto__", "prototype", "constructor"})


class SandboxStatus(str, enum.Enum):
    """Where a sandbox is in its life."""

    CREATING = "creating"
    RUNNING = "running"
    PAUSED = "paused"
    PAUSING = "pausing"
    STOPPING = "stopping"
    STOPPED = "stopped"
    ERROR = "error"


def mount_path_fits(path: object) -> bool:
    """An absolute path in its shortest form, with no hidden part and outside the system's directories."""
    if not isinstance(path, str) or path in MOUNT_NAMES_FORBIDDEN or path != path.strip() or "\0" in path:
        return False
    root, *parts = path.split("/")
    if root or not parts or parts[0] in MOUNT_FORBIDDEN:
        return False
    return all(part and part[0] != "." for part in parts)


def validate_volume_mounts(value: object) -> dict[str, str]:
    """The mounts of create(), {path: name of a volume}, as a copy; {} for None.

    ProviderConfigError when it is no plain dict, or a path or name does not fit.
    """
    if value is None:
        return {}
    if type(value) is not dict:
        raise ProviderConfigError("volume_mounts must be a dict of mount paths and volume names.")
    for path, name in value.items():
        if not mount_path_fits(path):
            raise ProviderConfigError(
                f"volume_mounts: {path!r} is no place for a volume.",
                suggestion="Use an absolute path outside of /bin, /opt, /var and /dev, with no hidden part.",
            )
        if not isinstance(name, str) or not name or name != name.strip() or "\0" in name:
            raise ProviderConfigError(f"volume_mounts: {name!r} is no name of a volume.")
    return dict(value)


def check_timeout(seconds: object) -> int:
    """A life of a sandbox in seconds; ValueError outside of 1 to 86400."""
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        raise ValueError(f"timeout must be a whole number of seconds, not {seconds!r}")
    if not 1 <= seconds <= TIMEOUT_MAX:
        raise ValueError(f"timeout must be between 1 and {TIMEOUT_MAX} seconds, not {seconds}")
    return seconds


class SandboxConfig(Model):
    """What a sandbox is made from. timeout in seconds, memory and disk in MB.

    ValueError for a timeout outside of 1 to 86400, ProviderConfigError for mounts that do not fit.
    """

    _names = (
        "template", "timeout", "auto_pause", "metadata", "env_vars", "volume_mounts", "cpu", "memory", "disk",
        "gpu", "secure", "provider_options",
    )  # fmt: skip
    __slots__ = _names
    _hidden = frozenset({"volume_mounts", "secure", "provider_options"})
    _aliases = {  # noqa: RUF012
        "template": "templateID",
        "auto_pause": "autoPause",
        "env_vars": "envVars",
    }

    def __init__(
        self,
        template: str = "base",
        timeout: int = 300,
        auto_pause: bool = False,
        metadata: dict[str, str] | None = None,
        env_vars: dict[str, str] | None = None,
        volume_mounts: dict[str, str] | None = None,
        cpu: int | None = None,
        memory: int | None = None,
        disk: int | None = None,
        gpu: str | None = None,
        secure: bool | None = None,
        provider_options: dict[str, Any] | None = None,
    ) -> None:
        self.template = template
        self.timeout = check_timeout(timeout)
        self.auto_pause = auto_pause
        self.metadata = metadata if metadata is not None else {}
        self.env_vars = env_vars if env_vars is not None else {}
        self.volume_mounts = validate_volume_mounts(volume_mounts)
        self.cpu = cpu
        self.memory = memory
        self.disk = disk
        self.gpu = gpu
        self.secure = secure
        self.provider_options = provider_options if provider_options is not None else {}

    def to_create_payload(self) -> dict[str, Any]:
        """The body of the HTTP API's POST /sandboxes; what was not asked for is not in it."""
        mounts = validate_volume_mounts(self.volume_mounts)
        payload: dict[str, Any] = {
            "templateID": self.template,
            "timeout": self.timeout,
            "autoPause": self.auto_pause,
            "metadata": self.metadata,
            "envVars": self.env_vars,
        }
        sizes = {"cpuCount": self.cpu, "memoryMB": self.memory, "diskSizeMB": self.disk, "gpu": self.gpu}
        payload.update({key: value for key, value in sizes.items() if value is not None})
        if mounts:
            payload["volumeMounts"] = [{"name": name, "path": path} for path, name in mounts.items()]
        return payload


class SandboxInfo(Model):
    """What is known about a sandbox; times are aware, timeout is in seconds, sizes in MB.

    What from_record() did not find is "", 0 or None: it never stands for another provider's default.
    """

    _names = (
        "sandbox_id", "template", "alias_name", "status", "envd_access_token", "envd_version",
        "client_id", "account_id", "user_id", "started_at", "end_at", "cpu_count", "memory_mb",
        "disk_size_mb", "lifecycle", "metadata", "reported_domain", "timeout", "region", "envd_url",
    )  # fmt: skip
    __slots__ = _names
    _aliases = {  # noqa: RUF012
        "sandbox_id": "sandboxID",
        "template": "templateID",
        "alias_name": "alias",
        "status": "state",
        "envd_access_token": "envdAccessToken",
        "envd_version": "envdVersion",
        "client_id": "clientID",
        "account_id": "accountID",
        "user_id": "userID",
        "started_at": "startedAt",
        "end_at": "endAt",
        "cpu_count": "cpuCount",
        "memory_mb": "memoryMB",
        "disk_size_mb": "diskSizeMB",
        "reported_domain": "domain",
        "envd_url": "envdUrl",
    }

    def __init__(
        self,
        sandbox_id: str,
        template: str = "",
        alias_name: str | None = None,
        status: SandboxStatus | str = SandboxStatus.RUNNING,
        envd_access_token: str | None = None,
        envd_version: str | None = None,
        client_id: str | None = None,
        account_id: str | None = None,
        user_id: str | None = None,
        started_at: datetime | str | None = None,
        end_at: datetime | str | None = None,
        cpu_count: int | None = None,
        memory_mb: int | None = None,
        disk_size_mb: int | None = None,
        lifecycle: dict[str, Any] | str | None = None,
        metadata: dict[str, str] | None = None,
        reported_domain: str | None = None,
        timeout: int = 300,
        region: str = "cn-hangzhou",
        envd_url: str | None = None,
    ) -> None:
        self.sandbox_id = sandbox_id
        self.template = template
        self.alias_name = alias_name
        self.status = SandboxStatus(status)
        self.envd_access_token = envd_access_token
        self.envd_version = envd_version
        self.client_id = client_id
        self.account_id = account_id
        self.user_id = user_id
        self.started_at = parse_time(started_at) if isinstance(started_at, str) else started_at
        self.end_at = parse_time(end_at) if isinstance(end_at, str) else end_at
        self.cpu_count = cpu_count
        self.memory_mb = memory_mb
        self.disk_size_mb = disk_size_mb
        self.lifecycle = lifecycle
        self.metadata = metadata if metadata is not None else {}
        self.reported_domain = reported_domain
        self.timeout = timeout
        self.region = region
        self.envd_url = envd_url

    def __repr__(self) -> str:
        # A repr ends up in logs: the token stays out of it.
        known = {name: value for name, value in self if value not in (None, "", {})}
        if "envd_access_token" in known:
            known["envd_access_token"] = "***"
        return f"SandboxInfo({', '.join(f'{name}={value!r}' for name, value in known.items())})"

    @property
    def url(self) -> str:
        """The address of its envd, or epp://provider/id when calls go through the provider; or ""."""
        return self.envd_url or ""

    @classmethod
    def from_record(cls, record: Mapping[str, Any], provider: str) -> SandboxInfo:
        """From a SandboxRecord of the protocol. ProviderProtocolError when it has no sandbox_id."""
        sandbox_id = text(record.get("sandbox_id"))
        if not sandbox_id:
            raise ProviderProtocolError(f"Provider '{provider}' returned a sandbox without an id.")
        started, end = parse_time(record.get("created_at")), parse_time(record.get("expires_at"))
        life = round((end - started).total_seconds()) if started and end else 0
        return cls(
            sandbox_id=sandbox_id,
            template=text(record.get("template")),
            status=status_of(record.get("status")),
            envd_access_token=text(record.get("envd_access_token")) or None,
            started_at=started,
            end_at=end,
            metadata=text_map(record.get("metadata")),
            timeout=max(life, 0),
            region=text(record.get("region")),
            envd_url=text(record.get("envd_url"))
            or text(record.get("url"))
            or f"epp://{provider}/{sandbox_id}",
        )


def status_of(value: object) -> SandboxStatus:
    """A status of the protocol; one that nobody knows is running."""
    try:
        return SandboxStatus(value)
    except ValueError:
        return SandboxStatus.RUNNING
