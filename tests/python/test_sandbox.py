"""The Sandbox against local-process: its life, its ways of being found, what its errors are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agent_sandbox.api.sandbox import Sandbox
from agent_sandbox.models.errors import (
    CapabilityNotSupportedError,
    ProviderConfigError,
    ProviderFeatureNotSupportedError,
    ProviderMismatchError,
    ProviderNotFoundError,
    SandboxNotFoundError,
)
from agent_sandbox.models.sandbox import SandboxStatus

PROVIDER = "local-process"
pytestmark = pytest.mark.usefixtures("local")


def test_create_gives_a_running_sandbox_and_kill_ends_it() -> None:
    async def scenario() -> None:
        sandbox = await Sandbox.create(provider=PROVIDER, metadata={"a": "b"}, timeout=120)
        assert (sandbox.provider, sandbox.status) == (PROVIDER, SandboxStatus.RUNNING)
        assert sandbox.info.metadata == {"a": "b"}
        assert sandbox.url == f"epp://{PROVIDER}/{sandbox.id}"
        assert repr(sandbox).startswith(f"<Sandbox id={sandbox.id!r}")
        assert await sandbox.is_running()
        await sandbox.kill()
        await sandbox.kill()
        await sandbox.close()
        await Sandbox.kill_by_id(sandbox.id, provider=PROVIDER)
        with pytest.raises(SandboxNotFoundError):
            await Sandbox.connect(sandbox.id, provider=PROVIDER)

    asyncio.run(scenario())


def test_a_sandbox_is_found_by_id_and_by_reference() -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            for reference in (sandbox.id, f"{PROVIDER}:{sandbox.id}"):
                again = await Sandbox.connect(reference, provider=PROVIDER)
                assert again.id == sandbox.id
                await again.close()
            by_prefix = await Sandbox.connect(f"{PROVIDER}:{sandbox.id}")
            await by_prefix.close()
            info = await Sandbox.get_info_by_id(f"{PROVIDER}:{sandbox.id}")
            assert info.sandbox_id == sandbox.id
            await Sandbox.set_timeout_by_id(sandbox.id, 900, provider=PROVIDER)
            with pytest.raises(ProviderMismatchError) as error:
                await Sandbox.connect(f"{PROVIDER}:{sandbox.id}", provider="alicloud-express")
            assert error.value.code == "E8030"

    asyncio.run(scenario())


def test_list_has_pages() -> None:
    async def scenario() -> None:
        made = [await Sandbox.create(provider=PROVIDER) for _ in range(3)]
        ids = [info.sandbox_id for info in await Sandbox.list(provider=PROVIDER)]
        assert set(ids) == {sandbox.id for sandbox in made}
        first = await Sandbox.list(provider=PROVIDER, limit=2)
        rest = await Sandbox.list(provider=PROVIDER, limit=2, offset=2)
        assert [info.sandbox_id for info in first + rest] == ids
        assert await Sandbox.list(provider=PROVIDER, limit=0) == []
        assert await Sandbox.list(provider=PROVIDER, status=SandboxStatus.PAUSED) == []
        for sandbox in made:
            await sandbox.kill()

    asyncio.run(scenario())


def test_what_is_not_declared_is_e8004() -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            calls: list[Any] = [
                sandbox.pause(),
                sandbox.resume(),
                sandbox.get_terminal(),
                sandbox.run_code("1"),
                sandbox.files.watch("/"),
                sandbox.files.upload_url("/x"),
                sandbox.files.download_url("/x"),
            ]
            for call in calls:
                with pytest.raises(ProviderFeatureNotSupportedError) as error:
                    await call
                assert error.value.code == "E8004"
                assert isinstance(error.value, CapabilityNotSupportedError)
            with pytest.raises(ProviderFeatureNotSupportedError):
                sandbox.network.get_url(80)
        with pytest.raises(ProviderFeatureNotSupportedError):
            await Sandbox.create(provider=PROVIDER, volume_mounts={"/data": "volume"})

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"timeout": 0}, ValueError),
        ({"timeout": 86401}, ValueError),
        ({"timeout": "5"}, ValueError),
        ({"request_timeout": 0}, ValueError),
        ({"metadata": {"a": 1}}, (TypeError, ValueError, ProviderConfigError)),
        ({"provider": "no-such"}, ProviderNotFoundError),
        ({"provider_options": {"unknown": "x"}}, ProviderConfigError),
        ({"provider_options": {"workdir_root": object()}}, TypeError),
    ],
)
def test_bad_arguments_make_nothing(arguments: dict[str, Any], error: Any) -> None:
    async def scenario() -> None:
        with pytest.raises(error):
            await Sandbox.create(**{"provider": PROVIDER, **arguments})
        assert await Sandbox.list(provider=PROVIDER) == []

    asyncio.run(scenario())


def test_a_failing_on_created_kills_what_was_made() -> None:
    heard: list[str] = []

    def refuse(sandbox_id: str) -> None:
        heard.append(sandbox_id)
        raise RuntimeError("no room in the ledger")

    async def scenario() -> None:
        with pytest.raises(RuntimeError, match="ledger") as error:
            await Sandbox.create(provider=PROVIDER, on_created=refuse)
        assert error.value.owned_resource == {"provider_id": PROVIDER, "sandbox_id": heard[0]}  # type: ignore[attr-defined]
        assert error.value.resource_cleanup_complete is True  # type: ignore[attr-defined]
        assert await Sandbox.list(provider=PROVIDER) == []

    asyncio.run(scenario())


def test_the_synchronous_twins_work_without_and_within_a_loop() -> None:
    sandbox = Sandbox.create_sync(provider=PROVIDER)
    assert sandbox.commands.run_sync("echo plain").stdout == "plain\n"
    assert [chunk.type.value for chunk in sandbox.commands.stream_sync("echo x; exit 2")] == ["stdout", "exit"]
    assert sandbox.id in {info.sandbox_id for info in Sandbox.list_sync(provider=PROVIDER)}
    sandbox.set_timeout_sync(100)

    async def scenario() -> None:
        inside = Sandbox.create_sync(provider=PROVIDER)
        waiting = asyncio.create_task(inside.commands.run("echo both"))
        await asyncio.sleep(0)
        assert inside.commands.run_sync("echo inside").stdout == "inside\n"
        assert (await waiting).stdout == "both\n"
        # The one made without a loop is this loop's as long as it runs.
        assert (await sandbox.commands.run("echo moved")).stdout == "moved\n"
        inside.kill_sync()

    asyncio.run(scenario())
    assert sandbox.commands.run_sync("echo back").stdout == "back\n"
    with sandbox:
        pass
    assert Sandbox.list_sync(provider=PROVIDER) == []


def test_a_sandbox_outlives_its_loop() -> None:
    sandbox = asyncio.run(Sandbox.create(provider=PROVIDER))
    assert asyncio.run(sandbox.commands.run("echo second loop")).stdout == "second loop\n"
    assert sandbox.commands.run_sync("echo none").stdout == "none\n"
    asyncio.run(sandbox.kill())


def test_a_subclass_keeps_its_type() -> None:
    class Mine(Sandbox):
        pass

    async def scenario() -> None:
        async with await Mine.create(provider=PROVIDER) as sandbox:
            assert type(sandbox) is Mine
            again = await Mine.connect(sandbox.id, provider=PROVIDER)
            assert type(again) is Mine
            await again.close()

    asyncio.run(scenario())
    with Mine.create_sync(provider=PROVIDER) as sandbox:
        assert type(sandbox) is Mine


def test_the_environment_of_the_moment_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def scenario() -> None:
        monkeypatch.setenv("ABX_PROVIDER", PROVIDER)
        async with await Sandbox.create() as sandbox:
            assert sandbox.provider == PROVIDER
        monkeypatch.setenv("ABX_PROVIDER", "no-such")
        with pytest.raises(ProviderNotFoundError):
            await Sandbox.create()

    asyncio.run(scenario())
