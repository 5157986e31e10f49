"""Commands, streams and processes against local-process."""

from __future__ import annotations

import asyncio

import pytest
from agent_sandbox.api.commands import split_command
from agent_sandbox.api.sandbox import Sandbox
from agent_sandbox.models.errors import SandboxError
from agent_sandbox.models.process import ProcessChunk, ProcessResult

PROVIDER = "local-process"


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("echo hello", ["echo", "hello"]),
        ("  echo   a  ", ["echo", "a"]),
        ("echo 'a b' \"c d\"", ["echo", "a b", "c d"]),
        ("echo $HOME *", ["echo", "$HOME", "*"]),
        ("a | b", ["sh", "-c", "a | b"]),
        ("a;b", ["sh", "-c", "a;b"]),
        ("echo 'a;b'", ["echo", "a;b"]),
        ('echo "x > y"', ["echo", "x > y"]),
        ("(a)", ["sh", "-c", "(a)"]),
        ("", [""]),
    ],
)
def test_a_command_text_is_split(text: str, argv: list[str]) -> None:
    assert split_command(text) == argv


def test_shell_takes_the_shell_and_open_quotes_are_refused() -> None:
    assert split_command("echo a", shell=True) == ["sh", "-c", "echo a"]
    with pytest.raises(ValueError, match="quotation"):
        split_command("echo 'a")


@pytest.mark.usefixtures("local")
class TestLocal:
    def test_run(self) -> None:
        async def scenario() -> None:
            async with await Sandbox.create(provider=PROVIDER) as sandbox:
                run = sandbox.commands.run
                result = await run("echo out; echo err >&2; exit 7", timeout=20)
                assert isinstance(result, ProcessResult)
                assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 7)
                assert not result.success
                assert 0 < result.execution_time < 20
                assert (await run("printenv NAME", env={"NAME": "v ü"})).stdout == "v ü\n"
                await sandbox.files.make_dir("/sub")
                assert (await run("pwd", cwd="/sub")).stdout.endswith("/sub\n")

        asyncio.run(scenario())

    def test_listeners_hear_both_streams(self) -> None:
        async def scenario() -> None:
            out: list[str] = []
            err: list[str] = []
            async with await Sandbox.create(provider=PROVIDER) as sandbox:
                result = await sandbox.commands.run(
                    "echo a; echo b >&2; exit 3", on_stdout=out.append, on_stderr=err.append
                )
            assert ("".join(out), "".join(err)) == ("a\n", "b\n") == (result.stdout, result.stderr)
            assert result.exit_code == 3

        asyncio.run(scenario())

    def test_a_stream_ends_with_one_exit(self) -> None:
        async def scenario() -> None:
            async with await Sandbox.create(provider=PROVIDER) as sandbox:
                chunks = [chunk async for chunk in sandbox.commands.stream("echo one; sleep 0.1; echo two; exit 4")]
                assert "".join(chunk.data for chunk in chunks) == "one\ntwo\n"
                assert [chunk.exit_code for chunk in chunks if chunk.type.value == "exit"] == [4]
                assert chunks[-1].type.value == "exit"
                assert all(chunk.pid == chunks[0].pid is not None for chunk in chunks)

        asyncio.run(scenario())

    def test_characters_come_whole_and_bytes_as_written(self) -> None:
        async def scenario() -> None:
            async with await Sandbox.create(provider=PROVIDER) as sandbox:
                command = r"printf '\303'; sleep 0.2; printf '\251'; printf '\377'"
                chunks: list[ProcessChunk] = await (await sandbox.commands.start(command)).collect()
                assert "".join(chunk.data for chunk in chunks) == "é\ufffd"
                assert b"".join(chunk.bytes for chunk in chunks) == b"\xc3\xa9\xff"

        asyncio.run(scenario())

    def test_start_is_lazy_and_cancel_kills(self) -> None:
        async def scenario() -> None:
            async with await Sandbox.create(provider=PROVIDER) as sandbox:
                reader = await sandbox.commands.start("echo up; sleep 300")
                assert await sandbox.commands.list() == []
                async for chunk in reader:
                    assert chunk.data == "up\n"
                    break
                running = await sandbox.commands.list()
                assert len(running) == 1
                await reader.cancel()
                while await sandbox.commands.list():
                    await asyncio.sleep(0.01)

        asyncio.run(asyncio.wait_for(scenario(), 30))

    def test_processes_take_signals_and_input(self) -> None:
        async def scenario() -> None:
            async with await Sandbox.create(provider=PROVIDER) as sandbox:
                commands = sandbox.commands
                stream = commands.stream("cat; sleep 300")
                listed: list[object] = []
                lines = ""

                async def talk() -> None:
                    while not listed:
                        listed.extend(await commands.list())
                        await asyncio.sleep(0.01)
                    pid = (await commands.list())[0].pid
                    await commands.send_input(pid, "typed\n")
                    await commands.close_input(pid)

                task = asyncio.create_task(talk())
                async for chunk in stream:
                    lines += chunk.data
                    if chunk.data:
                        await task
                        await commands.kill((await commands.list())[0].pid)
                    if chunk.type.value == "exit":
                        assert chunk.exit_code != 0
                assert lines == "typed\n"

        asyncio.run(asyncio.wait_for(scenario(), 30))

    def test_a_slow_command_is_ended(self) -> None:
        async def scenario() -> None:
            async with await Sandbox.create(provider=PROVIDER) as sandbox:
                try:
                    result = await sandbox.commands.run("sleep 60", timeout=1)
                except SandboxError as error:
                    assert error.code in ("E3001", "E8022")
                else:
                    assert result.exit_code != 0
                assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"

        asyncio.run(asyncio.wait_for(scenario(), 30))

    def test_a_reader_works_without_a_loop(self) -> None:
        with Sandbox.create_sync(provider=PROVIDER) as sandbox:
            reader = sandbox.commands.start_sync("echo a; echo b")
            assert "".join(chunk.data for chunk in reader) == "a\nb\n"
