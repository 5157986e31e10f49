"""Which providers there are: ids, references, registered objects, entry points, installed ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agent_sandbox.providers as P
import pytest
from agent_sandbox import _abx
from agent_sandbox.api.sandbox import Sandbox
from agent_sandbox.models.errors import (
    ProviderConfigError,
    ProviderConflictError,
    ProviderFeatureNotSupportedError,
    ProviderIntegrityError,
    ProviderManifestError,
    ProviderNotFoundError,
    SandboxError,
)
from agent_sandbox.providers import doctor, manifest, registry, settings, store
from agent_sandbox.providers.base import ConfigField, Provider

pytestmark = pytest.mark.usefixtures("home", "clean")

MODULE = """
from agent_sandbox.providers import Provider

class Good(Provider):
    id = "from-dist"
    version = "2.0.0"
    features = frozenset({"sandbox.lifecycle"})

    async def handle(self, method, params):
        return {}

instance = Good()
instance.id = "from-instance"

class Reserved(Provider):
    id = "core"

number = 3
"""
ENTRY_POINTS = """
[agent_sandbox.providers]
class = own_providers:Good
instance = own_providers:instance
lost = own_providers:Missing
gone = no_such_module_at_all:X
number = own_providers:number
reserved = own_providers:Reserved
"""


class Mine(Provider):
    id = "mine"
    display_name = "Mine"
    version = "1.2.3"
    features = frozenset({"exec.run", "sandbox.lifecycle"})
    config_fields: tuple[ConfigField, ...] = (ConfigField("token", secret=True, credential=True, required=True),)

    async def handle(self, method: str, params: dict[str, Any]) -> Any:
        return {}


@pytest.fixture
def clean() -> Iterator[None]:
    """Nothing is registered, before and after."""
    registry.reset_registry()
    yield
    registry.reset_registry()


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed distribution that offers providers, good and bad ones."""
    site = tmp_path / "site"
    info = site / "own_providers-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "own_providers.py").write_text(MODULE, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-providers\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("own_providers", None)


def row_of(provider_id: str) -> dict[str, Any]:
    return next(row for row in registry.list_providers() if row["id"] == provider_id)


def test_the_package_exports_what_people_import() -> None:
    for name in P.MODULES:
        assert getattr(P, name) is not None
        assert name in dir(P)
    assert P.BUILTIN_PROVIDER_ID == "alicloud-express"
    assert P.FEATURES == _abx.FEATURES
    with pytest.raises(AttributeError):
        P.nothing_like_it  # noqa: B018


# ---- ids and references


@pytest.mark.parametrize("provider_id", [
    "my-cloud", "a1", "e2b", "opensandbox", "alicloud-container", "x" * 40, "", "a", "x" * 41, "A-b", "1a", "a--b", "a-",
    "-a", "a_b", "a.b", "ä-b", "core", "default", "all", "none", "builtin", "transport", "providers", "shortcuts",
    "shortcuts-x", "abx-foo", "alicloud-foo", "alicloud-express", "a\nb", "a b", "²a", "a²",
])
def test_ids_are_judged_as_the_core_judges_them(provider_id: str) -> None:
    document = {
        "manifest_version": 1, "operation_contract_version": 1,
        "provider": {"id": provider_id, "version": "1"}, "runtime": {"kind": "python"},
        "features": {"supported": []}, "operations": {"cli": [], "python": []}, "workflow": {"inputs": [], "startups": []},
    }
    try:
        _abx.Client(no_config=True).add_provider(document, lambda call, method, params: None)
        said = None
    except SandboxError as error:
        said = error.message.rstrip(".")
    assert registry.validate_provider_id(provider_id) == said


def test_references(local: str) -> None:
    assert registry.parse_sandbox_ref("sbx-1") == (None, "sbx-1")
    assert registry.parse_sandbox_ref("local-process:sbx:1") == (local, "sbx:1")
    assert registry.parse_sandbox_ref("alicloud-express:i-1") == ("alicloud-express", "i-1")
    assert registry.qualify("a", "b") == registry.qualify("a", "b", ambient="a") == "a:b"
    for bad in ("local-process:", ":x", "Core:x", "a--b:x"):
        with pytest.raises(ProviderConfigError):
            registry.parse_sandbox_ref(bad)
    with pytest.raises(ProviderNotFoundError):
        registry.parse_sandbox_ref("not-there:x")


# ---- registered providers


def test_a_registered_provider_is_found_by_its_id() -> None:
    mine = Mine()
    assert registry.register_provider(mine) is mine
    assert registry.register_provider(mine) is mine
    assert registry.get_provider("mine") is mine
    assert row_of("mine") == {
        "id": "mine", "name": "Mine", "name_zh": "", "version": "1.2.3", "kind": "python", "trust": "python",
        "features": ["sandbox.lifecycle", "exec.run"]}
    with pytest.raises(ProviderConflictError, match="already registered"):
        registry.register_provider(Mine())
    other = registry.register_provider(Mine(), replace=True)
    assert registry.get_provider("mine") is other
    assert other.describe()["config_fields"][0]["env"] == "ABX_MINE_TOKEN"
    registry.unregister_provider("mine")
    registry.unregister_provider("mine")
    with pytest.raises(ProviderNotFoundError):
        registry.get_provider("mine")


@pytest.mark.parametrize("provider_id", ["core", "alicloud-express", "Mine", "x"])
def test_ids_no_provider_of_a_program_gets(provider_id: str) -> None:
    provider = Mine()
    provider.id = provider_id
    with pytest.raises(ProviderConflictError, match="Cannot register"):
        registry.register_provider(provider)
    assert provider_id not in registry.registered()


def test_a_registered_provider_goes_before_an_installed_one(local: str) -> None:
    provider = Mine()
    provider.id = local
    registry.register_provider(provider)
    assert registry.get_provider(local) is provider
    assert row_of(local)["trust"] == "python"


# ---- entry points


@pytest.mark.usefixtures("distribution")
def test_distributions_offer_providers() -> None:
    assert "own_providers" not in sys.modules
    provider = registry.get_provider("from-dist")
    assert (provider.id, provider.version) == ("from-dist", "2.0.0")
    assert registry.get_provider("from-instance").id == "from-instance"
    assert registry.parse_sandbox_ref("from-dist:x") == ("from-dist", "x")


@pytest.mark.usefixtures("distribution")
def test_what_fails_to_load_is_a_row_that_says_why() -> None:
    rows = {row["id"]: row for row in registry.list_providers()}
    assert row_of("from-dist")["trust"] == "python"
    assert "error" not in rows["from-dist"]
    assert "Missing" in rows["lost"]["error"]
    assert "no_such_module_at_all" in rows["gone"]["error"]
    assert "int" in rows["number"]["error"]
    assert "reserved" in rows["reserved"]["error"]
    assert registry.list_providers()[0]["id"] == "alicloud-express"


@pytest.mark.usefixtures("distribution")
def test_installed_providers_need_no_entry_points(local: str) -> None:
    registry.get_provider(local)
    assert "own_providers" not in sys.modules


@pytest.mark.usefixtures("distribution")
def test_entry_points_are_loaded_once() -> None:
    assert registry.load_entry_points()
    assert not registry.load_entry_points()
    assert set(registry.registered()) == {"from-dist", "from-instance"}


# ---- installed ones and the built-in


def test_the_built_in_is_always_there() -> None:
    builtin = registry.get_provider("alicloud-express")
    assert registry.get_provider().id == registry.ambient_provider_id() == "alicloud-express"
    assert (builtin.kind, builtin.display_name_zh) == ("builtin", "阿里云极速版")
    assert builtin.supports("exec.run")
    assert [field.key for field in builtin.config_fields] == ["region", "access_key_id", "access_key_secret"]
    assert builtin.config_fields[2].secret
    assert builtin.capabilities() >= {"shell", "files", "terminal", "ports"}
    assert "receipt" not in builtin.describe()
    assert isinstance(builtin, Provider)
    with pytest.raises(ProviderFeatureNotSupportedError) as error:
        builtin.require("code.execute")
    assert error.value.feature == "code.execute"


def test_an_installed_provider_says_what_its_manifest_says(local: str) -> None:
    provider: Any = registry.get_provider(local)
    assert (provider.id, provider.kind, provider.version) == ("local-process", "exec", "0.1.0")
    assert (provider.display_name, provider.display_name_zh) == ("Local Process", "本地进程")
    assert provider.features == {"sandbox.lifecycle", "sandbox.timeout", "exec.run", "exec.stream", "process.manage",
                                 "files.rw", "ports.url"}
    assert "files.read" in provider.operations
    assert (provider.inherit, provider.auth_any_of, provider.create_options) == (frozenset(), (), frozenset())
    assert [(f.key, f.type, f.required) for f in provider.config_fields] == [("workdir_root", "path", False)]
    assert provider.receipt == store.read_receipt(local)
    assert provider.manifest.command == ("python3", "./provider.py")
    described = provider.describe()
    assert json.loads(json.dumps(described)) == described
    assert list(described) == [
        "id", "name", "name_zh", "version", "kind", "features", "operation_contract_version", "operations",
        "workflow_inputs", "startup_modes", "extensions", "config_fields", "inherit"]
    assert described["config_fields"][0]["env"] == "ABX_LOCAL_PROCESS_WORKDIR_ROOT"
    assert row_of(local) == {
        "id": "local-process", "name": "Local Process", "name_zh": "本地进程", "version": "0.1.0", "kind": "exec",
        "trust": "local", "features": ["sandbox.lifecycle", "sandbox.timeout", "exec.run", "exec.stream",
                                       "process.manage", "files.rw", "ports.url"]}


def test_a_broken_one_is_a_row_that_says_why(local: str, home: Path) -> None:
    (home / "providers" / local / "abx-provider.toml").write_text("x = \n", encoding="utf-8")
    row = row_of(local)
    assert row["error"].startswith("[E80")
    assert (row["version"], row["kind"], row["trust"], row["features"]) == ("0.1.0", "exec", "local", [])
    with pytest.raises(SandboxError):
        registry.get_provider(local)


def test_a_near_miss_is_suggested(local: str) -> None:
    with pytest.raises(ProviderNotFoundError) as error:
        registry.get_provider("local-proces")
    assert "local-process" in error.value.suggestion


# ---- the default


def test_the_default_is_what_is_configured_now(local: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.set_default_provider(local)
    assert registry.ambient_provider_id() == local
    assert 'provider = "local-process"' in (home / "config.toml").read_text(encoding="utf-8")
    (home / "config.toml").write_text('[core]\nprovider = "other-one" # mine\n', encoding="utf-8")
    assert registry.ambient_provider_id() == "other-one"
    monkeypatch.setenv("ABX_PROVIDER", local)
    assert registry.resolve_provider_id() == local
    assert registry.resolve_provider_id("explicit") == "explicit"
    monkeypatch.delenv("ABX_PROVIDER")
    settings.set_default_provider(None)
    assert registry.ambient_provider_id() == "alicloud-express"
    settings.set_default_provider(local)
    settings.set_default_provider("alicloud-express")
    assert "provider" not in (home / "config.toml").read_text(encoding="utf-8").replace("providers", "")
    with pytest.raises(ProviderNotFoundError):
        settings.set_default_provider("not-there")


def test_purge_takes_a_providers_settings_and_no_others(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text(
        '# mine\n[core]\nprovider = "x"\n\n[providers.my-cloud]  # gone\nurl = "u"\n[providers."my-cloud".more]\na = 1\n'
        '[providers.my-cloud-two]\nurl = "v"\n', encoding="utf-8")
    (home / ".env").write_text("# mine\nABX_MY_CLOUD_TOKEN=a\n export ABX_MY_CLOUD_URL=b\nABX_MY_CLOUDY=c\n",
                               encoding="utf-8")
    settings.purge_provider_settings("my-cloud")
    assert (home / "config.toml").read_text(encoding="utf-8") == (
        '# mine\n[core]\nprovider = "x"\n\n[providers.my-cloud-two]\nurl = "v"\n')
    assert (home / ".env").read_text(encoding="utf-8") == "# mine\nABX_MY_CLOUDY=c\n"
    assert (home / ".env").stat().st_mode & 0o777 == 0o600
    assert {p.name for p in home.iterdir()} == {"config.toml", ".env"}


# ---- the store and manifests


def test_the_store(local: str, home: Path) -> None:
    assert store.list_installed_ids() == [local]
    assert store.provider_dir(local) == home / "providers" / local
    receipt = store.read_receipt(local)
    assert receipt is not None
    assert store.digest_dir(store.provider_dir(local)) == receipt["tree_sha256"]
    assert store.verify_integrity(local) == receipt
    assert store.data_dir(local) == home / "providers" / local / "data"
    (store.data_dir(local) / "state").write_text("x", encoding="utf-8")
    store.verify_integrity(local)
    with (store.provider_dir(local) / "box.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    with pytest.raises(ProviderIntegrityError):
        store.verify_integrity(local)
    assert store.read_receipt("not-there") is None
    with pytest.raises(ProviderNotFoundError):
        store.verify_integrity("not-there")


def test_manifests(source: Path) -> None:
    loaded = manifest.load_manifest(source)
    data = (source / "abx-provider.toml").read_bytes()
    assert manifest.parse_manifest(data) == loaded == manifest.parse_manifest(data.decode())
    assert (loaded.id, loaded.kind, loaded.protocol, loaded.license) == ("local-process", "exec", "epp/1", "Apache-2.0")
    assert (loaded.startup_timeout_ms, loaded.call_timeout_ms) == (10_000, 60_000)
    assert loaded.platforms == ("linux", "darwin")
    assert loaded.security == {"network": ["*"], "filesystem": ["any"], "env_passthrough": [], "spawns_processes": True}
    assert loaded.fields == (ConfigField("workdir_root", type="path", description=loaded.fields[0].description),)
    assert loaded.raw["provider"]["name"] == "Local Process"
    summary = loaded.to_summary()
    assert summary["runtime"] == ["python3", "./provider.py"]
    assert summary["features"] == sorted(loaded.features)
    with pytest.raises(AttributeError):
        loaded.id = "other"


@pytest.mark.parametrize(("old", "new", "why"), [
    ('id          = "local-process"', 'id = "core"', "reserved"),
    ("manifest_version = 1", "manifest_version = 2", "manifest_version must be 1"),
    ('"files.rw"', '"files.fly"', "files.fly"),
    ("[features]", "[features", ""),
])
def test_a_bad_manifest_names_the_field(source: Path, old: str, new: str, why: str) -> None:
    text = (source / "abx-provider.toml").read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(ProviderManifestError, match=why) as error:
        manifest.parse_manifest(text.replace(old, new))
    assert "abx-provider.toml" in error.value.message


def test_a_directory_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(ProviderManifestError):
        manifest.load_manifest(tmp_path)


def test_commands_of_a_manifest(source: Path) -> None:
    text = (source / "abx-provider.toml").read_text(encoding="utf-8") + """
[commands]
protocol = "provider-commands/1"
[[commands.entries]]
id = "image.list"
description = "Lists images."
description_zh = "列出镜像。"
effect = "read"
idempotent = true
input_schema = {type = "object", additionalProperties = false}
output_schema = {type = "object"}
"""
    (command,) = manifest.parse_manifest(text).commands
    assert (command.id, command.effect, command.idempotent) == ("image.list", "read", True)
    assert command.to_dict()["input_schema"] == {"type": "object", "additionalProperties": False}


# ---- running clients


class Answering(Mine):
    """A provider that says who it is by the exit code of any command."""

    config_fields = ()

    def __init__(self, code: int) -> None:
        self.code = code

    async def handle(self, method: str, params: dict[str, Any]) -> Any:
        if method == "sandbox.create":
            return {"sandbox_id": "s"}
        if method == "exec.run":
            return {"stdout": "", "stderr": "", "exit_code": self.code}
        return {}


def answer() -> int:
    sandbox = Sandbox.create_sync(provider="mine")
    try:
        code: int = sandbox.commands.run_sync("x").exit_code
        return code
    finally:
        sandbox.kill_sync()


def test_calls_go_by_the_registry_as_it_is() -> None:
    with pytest.raises(ProviderNotFoundError):
        answer()
    registry.register_provider(Answering(3))
    assert answer() == 3
    registry.register_provider(Answering(4), replace=True)
    assert answer() == 4
    registry.unregister_provider("mine")
    with pytest.raises(ProviderNotFoundError):
        answer()


def test_sandboxes_of_a_replaced_provider_stay_with_it() -> None:
    registry.register_provider(Answering(3))
    sandbox = Sandbox.create_sync(provider="mine")
    registry.register_provider(Answering(4), replace=True)
    assert sandbox.commands.run_sync("x").exit_code == 3
    sandbox.kill_sync()


def test_declaring_nonsense_is_refused() -> None:
    provider = Answering(1)
    provider.features = frozenset({"files.fly"})
    with pytest.raises(ProviderManifestError, match=r"files\.fly"):
        registry.register_provider(provider)
    assert registry.registered() == {}


def test_a_new_default_is_used_at_once(local: str) -> None:
    registry.register_provider(Answering(5))
    settings.set_default_provider(local)
    sandbox = Sandbox.create_sync()
    assert sandbox.provider == local
    sandbox.kill_sync()
    assert doctor.doctor("mine")["ok"]
