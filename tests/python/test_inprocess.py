"""Providers in this process, in both forms: use, the gate, errors, secrets, cancelling, registration."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from agent_sandbox.api.sandbox import Sandbox
from agent_sandbox.models import errors
from agent_sandbox.models.errors import (
    ProviderConfigError,
    ProviderConflictError,
    ProviderError,
    ProviderFeatureNotSupportedError,
    ProviderManifestError,
    ProviderNotFoundError,
    ProviderProtocolError,
    ProviderResourceNotFoundError,
    SandboxError,
    SandboxNotFoundError,
)
from agent_sandbox.providers import ConfigField, Provider, ProviderInfra, registry
from agent_sandbox.providers.base import FEATURES, compact_features, ordered_features
from agent_sandbox.providers.infra import ProviderConfig
from memory_infra import Built
from memory_provider import Handled

SECRET = "s3cret-value-of-the-token"


@pytest.fixture(autouse=True)
def clean(home: object) -> Iterator[None]:
    """No provider of this program, before and after; a home of the test's own."""
    registry.reset_registry()
    yield
    registry.reset_registry()


@pytest.fixture(params=[Handled, Built], ids=["handle", "infra"])
def provider(request: pytest.FixtureRequest) -> Any:
    return registry.register_provider(request.param())


# ---- what a provider says about itself


def test_features_have_one_order() -> None:
    assert ordered_features(["zzz", "pty", "exec.run", "aaa"]) == ["exec.run", "pty", "aaa", "zzz"]
    assert compact_features(["pty", "exec.stream", "exec.run"]) == "exec(run,stream) pty"
    from agent_sandbox.providers.base import ProviderFeature

    assert ProviderFeature.__args__ == FEATURES  # type: ignore[attr-defined]


def test_require_and_describe() -> None:
    provider = Handled()
    provider.require("exec.run")
    with pytest.raises(ProviderFeatureNotSupportedError):
        provider.require("pty")
    assert provider.supports("pty") is False
    assert provider.capabilities() == {"shell", "files", "ports"}
    told = provider.describe()
    assert (told["id"], told["kind"], told["features"]) == (provider.id, "python", sorted(provider.features))
    assert [(f["key"], f["secret"], f["env"]) for f in told["config_fields"]] == [
        ("region", False, "ABX_MEMORY_HANDLE_REGION"), ("token", True, "ABX_MEMORY_HANDLE_TOKEN"),
    ]


def test_what_is_missing_is_named() -> None:
    class Strict(Handled):
        config_fields = (ConfigField("token", required=True, secret=True, credential=True),)

    with pytest.raises(errors.InvalidCredentialsError, match="ABX_MEMORY_HANDLE_TOKEN"):
        Strict().validate_config(ProviderConfig({"config": {}}))
    Strict().validate_config(ProviderConfig({"config": {"token": "x"}}))


# ---- use


def test_both_ways_of_calling(provider: Any) -> None:
    box = Sandbox.create_sync(provider=provider.id)
    assert box.commands.run_sync("echo here").stdout == "here\n"
    assert box.commands.stream_sync("echo streamed; exit 3")[-1].exit_code == 3
    box.files.write_sync("/a", b"\xff")
    assert box.files.read_bytes_sync("/a") == b"\xff"
    box.kill_sync()
    box.close_sync()


async def in_a_loop(provider: Any) -> str:
    async with await Sandbox.create(provider=provider) as box:
        return (await box.commands.run("echo there")).stdout


def test_an_object_is_registered_by_create(provider: Any) -> None:
    other = type(provider)()
    assert asyncio.run(in_a_loop(other)) == "there\n"
    assert registry.get_provider(provider.id) is other


def test_threads_and_loops_at_once(provider: Any) -> None:
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.append(asyncio.run(in_a_loop(provider)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["there\n"] * 4


def test_configurations_are_kept_apart() -> None:
    provider = Built()
    registry.register_provider(provider)

    async def main() -> None:
        boxes = [await Sandbox.create(provider=Built.id, provider_options={"region": r}) for r in ("eu", "us")]
        assert [config.provider_options["region"] for config in provider.configs] == ["eu", "us"]
        for box in boxes:
            await box.kill()

    asyncio.run(main())


def test_a_sandbox_that_was_only_named_is_asked_for(provider: Any) -> None:
    async def main() -> None:
        box = await Sandbox.create(provider=provider.id)
        again = await Sandbox.connect(f"{provider.id}:{box.id}")
        await again.files.write("/x", "1")
        assert await box.files.read("/x") == "1"
        await again.close()
        await box.kill()

    asyncio.run(main())


# ---- errors


class Failing(Provider):
    """Makes a sandbox; anything else raises what it was given."""

    id = "failing"
    features = frozenset({"sandbox.lifecycle", "sandbox.timeout", "exec.run", "exec.stream"})
    config_fields = (ConfigField("token", secret=True),)

    def __init__(self, error: Callable[[str], BaseException]) -> None:
        self.error, self.token = error, ""

    async def handle(self, method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            self.token = params["config"].get("token", "")
            return None
        if method in ("sandbox.create", "sandbox.kill"):
            return {"sandbox_id": "f-1", "status": "running"}
        raise self.error(self.token)


def caught(error: Callable[[str], BaseException], call: Callable[[Sandbox], Any] = lambda box: box.refresh_info()) -> SandboxError:
    async def main() -> SandboxError:
        box = await Sandbox.create(provider=Failing(error), provider_options={"token": SECRET})
        try:
            with pytest.raises(SandboxError) as raised:
                await call(box)
            return raised.value
        finally:
            await box.kill()

    return asyncio.run(main())


def plain_errors() -> list[type[SandboxError]]:
    found = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, SandboxError) and "code" in vars(c)]
    return [c for c in found if next(iter(inspect.signature(c).parameters)) == "message"]


def test_every_error_arrives_as_it_was_raised() -> None:
    kinds = [kind for kind in plain_errors() if not issubclass(kind, ProviderFeatureNotSupportedError)]
    assert len(kinds) > 25
    for kind in kinds:
        error = caught(lambda token, kind=kind: kind("what happened", suggestion="what to do"))  # type: ignore[misc]
        expected = SandboxNotFoundError if kind is ProviderResourceNotFoundError else kind
        assert (type(error), error.message) == (expected, "what happened"), kind
        assert error.suggestion == "what to do"


def test_a_feature_that_is_not_there_after_all() -> None:
    error = caught(lambda token: ProviderFeatureNotSupportedError("failing", "sandbox.timeout"))
    assert isinstance(error, ProviderFeatureNotSupportedError)
    assert error.feature == "sandbox.timeout"


@pytest.mark.parametrize(("raised", "kind", "text"), [
    (ValueError("bad value"), ProviderError, "ValueError: bad value"),
    (KeyError("k"), ProviderError, "KeyError: 'k'"),
    (NotImplementedError("x"), ProviderProtocolError, "x"),
    (asyncio.CancelledError(), ProviderError, "gave the call up"),
])
def test_other_exceptions(raised: BaseException, kind: type[SandboxError], text: str) -> None:
    error = caught(lambda token: raised)
    assert type(error) is kind
    assert text in error.message
    assert error.provider == "failing"


@pytest.mark.parametrize("kind", [ValueError, errors.AuthenticationError, errors.SessionError, SandboxError, ProviderError])
def test_secrets_stay_out_of_texts(kind: type[Exception]) -> None:
    error = caught(lambda token: kind(f"with {token} in it"))
    assert SECRET not in f"{error} {error!r} {error.to_dict()} {error.data}"
    assert "***" in error.message


def test_what_is_not_declared_is_not_called() -> None:
    error = caught(ValueError, lambda box: box.files.read("/x"))
    assert (type(error), error.code) == (ProviderFeatureNotSupportedError, "E8004")
    assert isinstance(error, errors.CapabilityNotSupportedError)


def test_a_stream_that_fails(provider: Any) -> None:
    async def main() -> None:
        async with await Sandbox.create(provider=provider.id) as box:
            with pytest.raises(errors.CommandTimeoutError):
                async for _ in box.commands.stream("echo a; sleep 60", timeout=1):
                    pass

    asyncio.run(main())


# ---- cancelling


class Waiting(Failing):
    """exec.run and exec.start go on until they are cancelled."""

    id = "waiting"

    def __init__(self) -> None:
        super().__init__(ValueError)
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    async def handle(self, method: str, params: dict[str, Any]) -> Any:
        if method == "exec.run":
            await self.forever()
        return self.stream() if method == "exec.start" else await super().handle(method, params)

    async def forever(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def stream(self) -> AsyncIterator[dict[str, Any]]:
        yield {"process_id": "1"}
        yield {"stream": "stdout", "data": "ready\n"}
        await self.forever()


def test_a_cancelled_task_cancels_the_provider() -> None:
    async def main() -> None:
        provider = Waiting()
        box = await Sandbox.create(provider=provider)
        task = asyncio.ensure_future(box.commands.run("x"))
        await provider.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(provider.ended.wait(), 10)
        await box.kill()

    asyncio.run(main())


def test_a_stream_that_is_given_up_ends_the_provider() -> None:
    async def main() -> None:
        provider = Waiting()
        box = await Sandbox.create(provider=provider)
        stream = box.commands.stream("x")
        assert (await stream.__anext__()).data == "ready\n"
        await provider.begun.wait()
        await stream.aclose()
        await asyncio.wait_for(provider.ended.wait(), 10)
        await box.kill()

    asyncio.run(main())


def test_a_late_answer_is_a_timeout() -> None:
    async def main() -> None:
        box = await Sandbox.create(provider=Waiting())
        with pytest.raises(errors.ProviderTimeoutError):
            await box.commands.run("x", timeout=1)
        await box.kill()

    asyncio.run(main())


# ---- registration


def test_an_id_is_taken_once() -> None:
    one, two = Handled(), Handled()
    registry.register_provider(one)
    with pytest.raises(ProviderConflictError):
        registry.register_provider(two)
    assert registry.get_provider(one.id) is one


def test_a_replaced_provider_serves_the_calls_that_come() -> None:
    async def main() -> None:
        old, new = Handled(), Handled()
        new.features = Handled.features - {"files.rw"}
        registry.register_provider(old)
        box = await Sandbox.create(provider=old.id)
        registry.register_provider(new, replace=True)
        other = await Sandbox.create(provider=old.id)
        assert (len(old.all.boxes), len(new.all.boxes)) == (1, 1)
        with pytest.raises(ProviderFeatureNotSupportedError):
            await other.files.read("/x")
        await box.files.write("/x", "its own provider stays")
        await box.kill()
        await other.kill()

    asyncio.run(main())


def test_an_unregistered_provider_is_not_found() -> None:
    async def main() -> None:
        registry.register_provider(Handled())
        await (await Sandbox.create(provider=Handled.id)).kill()
        registry.unregister_provider(Handled.id)
        with pytest.raises(ProviderNotFoundError):
            await Sandbox.create(provider=Handled.id)

    asyncio.run(main())


@pytest.mark.parametrize(("change", "kind"), [
    ({"features": frozenset({"exec.teleport"})}, ProviderManifestError),
    ({"config_fields": (ConfigField("token", secret=True, default="x"),)}, ProviderManifestError),
    ({"version": "no version"}, ProviderManifestError),
    ({"id": "core"}, ProviderConflictError),
])
def test_what_cannot_be_is_not_registered(change: dict[str, Any], kind: type[SandboxError]) -> None:
    provider = type("Changed", (Handled,), change)()
    with pytest.raises(kind):
        registry.register_provider(provider)
    assert provider.id not in registry.registered()


def test_a_provider_that_answers_nothing_says_so_when_it_is_used() -> None:
    registry.register_provider(type("Silent", (Handled,), {"handle": Provider.handle})())
    with pytest.raises(ProviderConfigError, match="Silent has neither"):
        Sandbox.create_sync(provider=Handled.id)


def test_infra_is_closed_with_its_last_sandbox() -> None:
    async def main() -> int:
        provider = Built()
        box = await Sandbox.create(provider=provider)
        await box.kill()
        for _ in range(100):
            if provider.closed:
                break
            await asyncio.sleep(0.01)
        return provider.closed

    assert asyncio.run(main()) == 1


def test_a_provider_that_fails_to_start() -> None:
    class Broken(Built):
        async def build_infra(self, config: ProviderConfig) -> ProviderInfra:
            raise errors.InvalidCredentialsError("no such account")

    with pytest.raises(errors.InvalidCredentialsError, match="no such account"):
        Sandbox.create_sync(provider=Broken())


@pytest.mark.parametrize("answer", [{"stdout": object()}, {1: "x"}, {"stdout": {1, 2}}])
def test_an_answer_that_is_no_value(answer: object) -> None:
    class Odd(Failing):
        id = "odd"

        async def handle(self, method: str, params: dict[str, Any]) -> Any:
            return answer if method == "exec.run" else await super().handle(method, params)

    box = Sandbox.create_sync(provider=Odd(ValueError))
    with pytest.raises(ProviderError, match="TypeError"):
        box.commands.run_sync("x")
    box.kill_sync()


@pytest.mark.parametrize("items", [[{"stream": "stdout", "data": 3}], [{"exit_code": "zz"}], [{}], [{"process_id": "1"}], []])
def test_a_stream_that_is_none(items: list[dict[str, Any]]) -> None:
    class Odd(Failing):
        id = "odd"

        async def handle(self, method: str, params: dict[str, Any]) -> Any:
            return self.events() if method == "exec.start" else await super().handle(method, params)

        async def events(self) -> AsyncIterator[dict[str, Any]]:
            for item in items:
                yield item

    box = Sandbox.create_sync(provider=Odd(ValueError))
    with pytest.raises(ProviderError):
        box.commands.stream_sync("x")
    box.kill_sync()
