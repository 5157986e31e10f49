"""Install, update and uninstall: the plan a person agrees to, and what is done with it.

Everything is the core's work, under the lock of the store; nothing of a plugin runs before it was agreed to.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from agent_sandbox._abx import Plan
    from agent_sandbox.providers._core import Driver

    ConfirmFn: TypeAlias = "Callable[[InstallPlan], bool]"
    VerifyFn: TypeAlias = "Callable[[str], None]"

NOBODY, YES_FLAG, PERSON = 0, 1, 2
"""Who agreed, in the core's numbers."""


class InstallPlan:
    """An install or update nobody agreed to yet; what it fetched is dropped with it."""

    def __init__(self, plan: Plan, driver: Driver) -> None:
        self._plan = plan
        self._driver = driver
        self._consent = plan.consent

    def summary(self) -> dict[str, Any]:
        """What a person must see before agreeing, ready for JSON."""
        return dict(self._consent)

    @property
    def id(self) -> str:
        """The id it will have."""
        return str(self._consent["id"])

    @property
    def version(self) -> str:
        """The version that was fetched."""
        return str(self._consent["version"])

    @property
    def source(self) -> dict[str, Any]:
        """Where it is from, as the receipt will say it."""
        return dict(self._consent["source"])

    @property
    def tree_sha256(self) -> str:
        """The digest of its files; "" for a link."""
        return str(self._consent["tree_sha256"])

    @property
    def trust(self) -> str:
        """pinned, unpinned, local or link."""
        return str(self._consent["trust"])

    @property
    def changes(self) -> list[str]:
        """What differs from what was agreed to before."""
        return list(self._consent["changes"])

    @property
    def previous(self) -> dict[str, Any] | None:
        """What it takes the place of; None for a first install."""
        return self._plan.previous

    @property
    def needs_consent(self) -> bool:
        """False for an update that changes nothing at risk."""
        return self._plan.needs_consent


def consent_known(yes: bool, interactive: bool) -> int:
    """What is known of the consent before there is a plan: lets refusals come early."""
    return YES_FLAG if yes else PERSON if interactive else NOBODY


def ask(plan: InstallPlan, yes: bool, confirm: ConfirmFn | None) -> int:
    """Who agrees to the plan."""
    if yes:
        return YES_FLAG
    if confirm is None or not plan.needs_consent:
        return NOBODY
    return PERSON if confirm(plan) else NOBODY


def tool_of(installed_by: Mapping[str, str] | None) -> str | None:
    """The name a receipt is to give for who installed."""
    return (installed_by.get("tool") or installed_by.get("name")) if installed_by else None


def plan_install(
    source: str,
    *,
    ref: str | None = None,
    subdir: str | None = None,
    sha256: str | None = None,
    link: bool = False,
    force: bool = False,
    allow_unpinned: bool = False,
    allow_insecure_transport: bool = False,
    no_verify: bool = True,
    consent: int = PERSON,
    installed_by: Mapping[str, str] | None = None,
) -> InstallPlan:
    """Fetches and checks a source; nothing of it is in the store afterwards."""
    from agent_sandbox.providers._core import driver

    drive = driver(tool_of(installed_by))
    plan = drive(
        lambda client, future: client.install_plan(
            future, source, ref=ref, sha256=sha256, subdir=subdir, link=link, force=force,
            allow_unpinned=allow_unpinned, allow_insecure_transport=allow_insecure_transport,
            no_verify=no_verify, consent=consent,
        )
    )  # fmt: skip
    return InstallPlan(plan, drive)


def apply(plan: InstallPlan, how: int) -> dict[str, Any]:
    """Does what the plan says and gives the receipt; the old version is back when anything fails."""
    receipt: dict[str, Any] = plan._driver(lambda client, future: plan._plan.apply(future, how))
    return receipt


def install(
    source: str,
    *,
    ref: str | None = None,
    subdir: str | None = None,
    sha256: str | None = None,
    link: bool = False,
    force: bool = False,
    allow_unpinned: bool = False,
    allow_insecure_transport: bool = False,
    yes: bool = False,
    confirm: ConfirmFn | None = None,
    interactive: bool | None = None,
    verify: VerifyFn | None = None,
    installed_by: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Installs a provider from a directory, a git URL or `owner/repo[//subdir][@ref]`; the receipt.

    Somebody must agree: yes=True, or a confirm that is shown the plan and returns true; else
    ProviderTrustError. interactive=False says that confirm can ask nobody. A source that can move
    needs confirm or allow_unpinned. verify runs when the files are in place; when it raises, they
    are gone again. ProviderConflictError when the id is installed and force is false,
    ProviderInstallError, ProviderIntegrityError or ProviderManifestError for what is wrong with the source.
    """
    from agent_sandbox.providers._verify import Verified

    asks = confirm is not None if interactive is None else interactive
    with Verified(verify) as verified:
        plan = plan_install(
            source, ref=ref, subdir=subdir, sha256=sha256, link=link, force=force,
            allow_unpinned=allow_unpinned, allow_insecure_transport=allow_insecure_transport,
            no_verify=not verified.by_core, consent=consent_known(yes, asks), installed_by=installed_by,
        )  # fmt: skip
        verified.keep_old(plan.id)
        receipt = apply(plan, ask(plan, yes, confirm))
        verified.check()
    return receipt


def plan_update(
    provider_id: str,
    *,
    ref: str | None = None,
    check: bool = False,
    allow_unpinned: bool = False,
    allow_insecure_transport: bool = False,
    no_verify: bool = True,
    consent: int = PERSON,
) -> tuple[dict[str, Any], InstallPlan | None]:
    """What update() would report, and the plan when there is something to do and check is false."""
    from agent_sandbox.providers._core import driver

    drive = driver()
    report, plan = drive(
        lambda client, future: client.update_plan(
            future, provider_id, ref=ref, check=check, allow_unpinned=allow_unpinned,
            allow_insecure_transport=allow_insecure_transport, no_verify=no_verify, consent=consent,
        )
    )  # fmt: skip
    return report, InstallPlan(plan, drive) if plan is not None and not check else None


def update(
    provider_id: str,
    *,
    ref: str | None = None,
    check: bool = False,
    yes: bool = False,
    confirm: ConfirmFn | None = None,
    allow_unpinned: bool = False,
    allow_insecure_transport: bool = False,
    verify: VerifyFn | None = None,
    interactive: bool | None = None,
) -> dict[str, Any]:
    """Fetches a provider anew from where it was installed.

    The result: {"id", "status", "installed", "available", "changes"}; status is "up-to-date",
    "pinned" (nothing to do without a ref), "available" (with check=True), "updated", or "bundled"
    for the built-in. ProviderInstallError for one that came from a directory; ProviderTrustError
    when nobody agrees to what changed.
    """
    from agent_sandbox.providers._verify import Verified

    asks = confirm is not None if interactive is None else interactive
    with Verified(verify) as verified:
        report, plan = plan_update(
            provider_id, ref=ref, check=check, allow_unpinned=allow_unpinned,
            allow_insecure_transport=allow_insecure_transport, no_verify=not verified.by_core,
            consent=consent_known(yes, asks),
        )  # fmt: skip
        if plan is None:
            return report
        verified.keep_old(provider_id)
        apply(plan, ask(plan, yes, confirm))
        verified.check()
    return {**report, "status": "updated"}


def uninstall(provider_id: str, *, purge: bool = False) -> dict[str, Any]:
    """Removes a provider: {"id", "removed", "purged", "default_reset"}.

    Its data and settings stay, unless purge is true.
    ProviderNotFoundError when it is not installed, ProviderConflictError for the built-in.
    """
    from agent_sandbox import _loop
    from agent_sandbox.providers import registry
    from agent_sandbox.providers._core import fresh

    result = fresh().uninstall(provider_id, purge)
    registry.forget(provider_id)
    _loop.renew()
    return result
