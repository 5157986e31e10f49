"""Files and ports against local-process."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from agent_sandbox.api.sandbox import Sandbox
from agent_sandbox.models.errors import (
    FileNotFoundError_,
    FileSizeLimitError,
    ProviderResourceNotFoundError,
    SandboxError,
)
from agent_sandbox.models.filesystem import FileType

PROVIDER = "local-process"
MISSING = (FileNotFoundError_, ProviderResourceNotFoundError)
pytestmark = pytest.mark.usefixtures("local")


def test_text_and_bytes_survive() -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            files = sandbox.files
            for text in ("hello", "", "héllo 世界\0end", "x"):
                await files.write("/t", text)
                assert await files.read("/t") == text
            blob = os.urandom(3 << 20)
            for data in (blob, bytearray(blob), memoryview(blob)):
                await files.write("/b", data)
                assert await files.read_bytes("/b") == blob
            with pytest.raises(UnicodeDecodeError):
                await files.write("/b", b"\xff")
                await files.read("/b")
            assert await files.read("/b", encoding="latin-1") == "ÿ"
            with pytest.raises(UnicodeEncodeError):
                await files.write("/b", "\ud800")

    asyncio.run(scenario())


def test_directories_are_arranged() -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            files = sandbox.files
            await files.make_dir("/d/e")
            await files.write("/d/naïve 名前", "a")
            entries = {entry.name: entry for entry in await files.list("/d")}
            assert entries["e"].type is FileType.DIRECTORY
            assert entries["naïve 名前"].size == 1
            info = await files.get_info("/d/naïve 名前")
            assert info.modified is not None and info.modified.tzinfo is not None
            await files.move("/d/naïve 名前", "/d/e/b")
            assert await files.exists("/d/e/b") and not await files.exists("/d/naïve 名前")
            await files.remove("/d")
            assert not await files.exists("/d")

    asyncio.run(scenario())


def test_missing_files_are_typed_and_others_are_raised() -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            for call in (
                sandbox.files.read("/no"),
                sandbox.files.get_info("/no"),
                sandbox.files.list("/no"),
                sandbox.files.move("/no", "/other"),
            ):
                with pytest.raises(MISSING):
                    await call
            await sandbox.files.write("/f", "x")
            with pytest.raises(SandboxError) as error:
                await sandbox.files.exists("/f/../../../..")
            assert not isinstance(error.value, MISSING)

    asyncio.run(scenario())


def test_sizes_are_limited() -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            await sandbox.files.write("/f", "12345")
            assert await sandbox.files.read_bytes("/f", max_bytes=5) == b"12345"
            with pytest.raises(FileSizeLimitError):
                await sandbox.files.read_bytes("/f", max_bytes=4)
            with pytest.raises(ValueError):
                await sandbox.files.read_bytes("/f", max_bytes=-1)
            with pytest.raises(FileSizeLimitError):
                await sandbox.files.write("/f", bytes(9 << 20))
            assert await sandbox.files.read("/f") == "12345"

    asyncio.run(scenario())


def test_upload_and_download(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            source, target = tmp_path / "a", tmp_path / "b"
            source.write_bytes(b"\0data")
            await sandbox.files.upload(str(source), "/a")
            target.write_text("old")
            target.chmod(0o640)
            await sandbox.files.download("/a", str(target))
            assert target.read_bytes() == b"\0data"
            assert target.stat().st_mode & 0o777 == 0o640
            with pytest.raises(MISSING):
                await sandbox.files.download("/missing", str(target))
            assert target.read_bytes() == b"\0data"
            assert sorted(os.listdir(tmp_path)) == sorted({"a", "b", *os.listdir(tmp_path)} - {".abx-"})

    asyncio.run(scenario())


def test_ports_have_urls() -> None:
    async def scenario() -> None:
        async with await Sandbox.create(provider=PROVIDER) as sandbox:
            url, headers = await sandbox.network.resolve(8080)
            assert url.startswith("http://127.0.0.1")
            assert headers == {}
            for port in (0, 65536):
                with pytest.raises((ValueError, SandboxError)):
                    await sandbox.network.resolve(port)

    asyncio.run(scenario())
