"""The contract's cases on commands: results and streams."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from agent_sandbox.models.errors import ProviderTimeoutError, SandboxError

from ._suite import Suite

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agent_sandbox.api.sandbox import Sandbox
    from agent_sandbox.models.process import ProcessChunk, ProcessResult

LARGE = 1 << 20
TEXT = "héllo_世界_Привет_🎉"
ARGUMENTS = ("two  blanks", 'a "quoted" word', "it's", "$HOME", "back\\slash", "")
ENFORCED = 5.5
"""Seconds that a command of one second may take to be ended: after six the host would do it."""


async def run(box: Sandbox, script: str, timeout: int = 30, **more: Any) -> ProcessResult:
    """The result of a shell script."""
    return cast("ProcessResult", await box.commands.run(script, shell=True, timeout=timeout, **more))


def stream(box: Sandbox, script: str, timeout: int = 30) -> AsyncGenerator[ProcessChunk, None]:
    """The chunks of a script, which needs a shell operator to be taken for one."""
    return box.commands.stream(script, timeout=timeout)


async def chunks(box: Sandbox, script: str, kind: str) -> list[ProcessChunk]:
    """Those of a kind, of a script that ends."""
    return [chunk async for chunk in stream(box, script) if chunk.type.value == kind]


class ExecCases:
    """exec.run."""

    def test_exec_run(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.run")

        async def case() -> None:
            result = await (await suite.shared()).commands.run("echo contract")
            assert (result.stdout, result.exit_code) == ("contract\n", 0)

        suite.run(case())

    def test_exec_exit_code(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.run")

        async def case() -> None:
            assert (await run(await suite.shared(), "exit 37")).exit_code == 37

        suite.run(case())

    def test_exec_stderr(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.run")

        async def case() -> None:
            result = await run(await suite.shared(), "echo outside; echo inside >&2")
            assert (result.stdout.strip(), result.stderr.strip()) == ("outside", "inside")

        suite.run(case())

    def test_exec_env(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.run")

        async def case() -> None:
            env = {"CONTRACT_WORD": "the word"}
            result = await run(await suite.shared(), 'echo "$CONTRACT_WORD"', env=env)
            assert result.stdout.strip() == "the word"

        suite.run(case())

    def test_exec_arguments_are_not_split(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.run")

        async def case() -> None:
            command = shlex.join(["printf", "[%s]", *ARGUMENTS])
            result = await (await suite.shared()).commands.run(command)
            assert result.stdout.strip() == "".join(f"[{argument}]" for argument in ARGUMENTS)

        suite.run(case())

    def test_exec_unicode(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.run")

        async def case() -> None:
            assert (await run(await suite.shared(), f"echo {TEXT}")).stdout.strip() == TEXT

        suite.run(case())

    def test_exec_large_output(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.run")

        async def case() -> None:
            result = await run(await suite.shared(), f"head -c {LARGE} /dev/zero | tr '\\000' x", timeout=60)
            assert len(result.stdout.strip()) == LARGE
            assert set(result.stdout.strip()) == {"x"}

        suite.run(case())

    def test_exec_timeout_is_enforced(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.run")

        async def case() -> None:
            box = await suite.shared()
            began = time.monotonic()
            try:
                result = await run(box, "sleep 30", timeout=1)
            except ProviderTimeoutError as error:
                pytest.fail(f"the host gave the command up, not the provider: {error}")
            except SandboxError:
                pass
            else:
                assert result.exit_code != 0
            assert time.monotonic() - began < ENFORCED

        suite.run(case())

    def test_exec_concurrent_calls(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.run")

        async def case() -> None:
            box = await suite.shared()
            results = await asyncio.gather(*(run(box, f"sleep 0.3; echo call-{i}") for i in range(8)))
            assert [result.stdout.strip() for result in results] == [f"call-{i}" for i in range(8)]

        suite.run(case())


class StreamCases:
    """exec.stream."""

    def test_exec_stream_order(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.stream")

        async def case() -> None:
            script = "; sleep 0.15; ".join(f"echo {i}" for i in range(4))
            out = await chunks(await suite.shared(), script, "stdout")
            assert "".join(chunk.data for chunk in out).split() == ["0", "1", "2", "3"]

        suite.run(case())

    def test_exec_stream_single_exit(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.stream")

        async def case() -> None:
            seen = [chunk async for chunk in stream(await suite.shared(), "echo last; exit 4")]
            ends = [chunk for chunk in seen if chunk.type.value == "exit"]
            assert [end.exit_code for end in ends] == [4]
            assert seen[-1] is ends[0]

        suite.run(case())

    def test_exec_stream_split_utf8(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.stream")

        async def case() -> None:
            script = "printf 'caf\\303'; sleep 0.3; printf '\\251'"
            out = await chunks(await suite.shared(), script, "stdout")
            assert "".join(chunk.data for chunk in out) == "café"

        suite.run(case())

    def test_exec_stream_stderr(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.stream")

        async def case() -> None:
            err = await chunks(await suite.shared(), "echo inside >&2", "stderr")
            assert "".join(chunk.data for chunk in err).strip() == "inside"

        suite.run(case())

    def test_exec_stream_cancel(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.run", "exec.stream")

        async def case() -> None:
            async with suite.sandbox() as box:
                async with contextlib.aclosing(stream(box, "echo ready; sleep 60")) as output:
                    await output.__anext__()
                assert (await run(box, "echo usable")).stdout.strip() == "usable"

        suite.run(case())
