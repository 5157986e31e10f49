"""The contract's cases on running processes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from agent_sandbox.models.errors import ProviderFeatureNotSupportedError, SandboxError

from ._suite import Suite
from ._suite_exec import stream

if TYPE_CHECKING:
    from agent_sandbox.api.sandbox import Sandbox
    from agent_sandbox.models.process import ProcessChunk

SOON = 5
"""Seconds until a killed command must have ended."""


async def processes(box: Sandbox) -> set[str]:
    """The ids of what runs."""
    return {str(process.pid) for process in await box.commands.list()}


async def name_of(box: Sandbox, chunk: ProcessChunk, word: str) -> str | int:
    """How to address the command of a chunk: as the chunk says, else as the list has one with this word."""
    if chunk.pid is not None:
        return chunk.pid
    found = await box.commands.list()
    named = [process for process in found if word in process.command] or found
    assert named, "neither the stream nor the list names the process"
    return named[-1].pid


class ProcessCases:
    """process.manage. Commands say when they run, and have sandboxes of their own to be killed in."""

    def test_process_list(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.stream", "process.manage")

        async def case() -> None:
            async with suite.sandbox() as box:
                before = await processes(box)
                async with contextlib.aclosing(stream(box, "echo ready; sleep 60")) as output:
                    await output.__anext__()
                    assert await processes(box) - before

        suite.run(case())

    def test_process_kill(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.stream", "process.manage")

        async def case() -> None:
            async with (
                suite.sandbox() as box,
                contextlib.aclosing(stream(box, "echo ready; sleep 60", timeout=90)) as output,
            ):
                pid = await name_of(box, await output.__anext__(), "sleep")
                await box.commands.kill(pid)
                with contextlib.suppress(SandboxError):  # an end, too
                    await asyncio.wait_for(last(output), SOON)

        suite.run(case())

    def test_process_stdin(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "exec.stream", "process.manage")

        async def case() -> None:
            async with suite.sandbox() as box:
                script = 'echo ready; read line; echo "got $line"'
                async with contextlib.aclosing(stream(box, script, timeout=SOON)) as output:
                    pid = await name_of(box, await output.__anext__(), "read")
                    try:
                        await box.commands.send_input(pid, "the line\n")
                    except ProviderFeatureNotSupportedError:
                        return
                    rest = [chunk.data async for chunk in output if chunk.type.value == "stdout"]
                    assert "got the line" in "".join(rest)

        suite.run(case())


async def last(output: object) -> None:
    """Reads a stream to its end."""
    async for _ in output:  # type: ignore[attr-defined]
        pass
