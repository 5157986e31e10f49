"""The contract's cases on files. Only the first has a text of lines, only the second bytes, and so on."""

from __future__ import annotations

import pytest

from agent_sandbox.models.errors import (
    FileNotFoundError_,
    ProviderResourceNotFoundError,
    SandboxError,
)

from ._suite import Suite, fresh_path

EVERY_BYTE = bytes(range(256)) * 5
LARGE = " ".join(f"{i:015d}" for i in range((2 << 20) // 16))
"""2 MiB without a repetition."""


class FilesCases:
    """files.rw."""

    def test_files_roundtrip(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, path = (await suite.shared()).files, fresh_path("text")
            await files.write(path, "first\n\tsecond\r\nlast\n")
            assert await files.read(path) == "first\n\tsecond\r\nlast\n"

        suite.run(case())

    def test_files_binary(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, path = (await suite.shared()).files, fresh_path("binary")
            await files.write(path, EVERY_BYTE)
            assert await files.read_bytes(path) == EVERY_BYTE

        suite.run(case())

    def test_files_unicode(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, path = (await suite.shared()).files, fresh_path("名前 é")
            await files.write(path, "héllo 世界 🎉\n")
            assert await files.read(path) == "héllo 世界 🎉\n"

        suite.run(case())

    def test_files_overwrite_truncates(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, path = (await suite.shared()).files, fresh_path("twice")
            await files.write(path, "a long text of the first time")
            await files.write(path, "short")
            assert await files.read(path) == "short"

        suite.run(case())

    def test_files_empty(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, path = (await suite.shared()).files, fresh_path("empty")
            await files.write(path, b"")
            assert await files.read_bytes(path) == b""

        suite.run(case())

    def test_files_large(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, path = (await suite.shared()).files, fresh_path("large")
            await files.write(path, LARGE)
            assert await files.read_bytes(path) == LARGE.encode()

        suite.run(case())

    def test_files_mkdir_and_list(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, path = (await suite.shared()).files, fresh_path("directory")
            await files.make_dir(path)
            await files.write(f"{path}/one", "1")
            await files.write(f"{path}/two", "2")
            assert sorted(entry.name for entry in await files.list(path)) == ["one", "two"]

        suite.run(case())

    def test_files_stat(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, path = (await suite.shared()).files, fresh_path("five")
            await files.write(path, "five5")
            info = await files.get_info(path)
            assert (info.name, info.type.value, info.size) == (path.rpartition("/")[2], "file", 5)

        suite.run(case())

    def test_files_move(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, old, new = (await suite.shared()).files, fresh_path("old"), fresh_path("new")
            await files.write(old, "moved")
            await files.move(old, new)
            assert await files.read(new) == "moved"
            with pytest.raises(SandboxError):
                await files.read(old)

        suite.run(case())

    def test_files_remove(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, path = (await suite.shared()).files, fresh_path("removed")
            await files.write(path, "soon gone")
            await files.remove(path)
            with pytest.raises(SandboxError):
                await files.read(path)

        suite.run(case())

    def test_missing_file_is_a_typed_not_found(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            with pytest.raises((FileNotFoundError_, ProviderResourceNotFoundError)):
                await (await suite.shared()).files.read(fresh_path("never-written"))

        suite.run(case())

    def test_files_exists_is_false_only_for_missing(self, suite: Suite) -> None:
        suite.need("sandbox.lifecycle", "files.rw")

        async def case() -> None:
            files, path = (await suite.shared()).files, fresh_path("there")
            await files.write(path, "here")
            assert await files.exists(path) is True
            assert await files.exists(fresh_path("not-there")) is False

        suite.run(case())
