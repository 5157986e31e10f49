"""Lies about files."""

from __future__ import annotations

import base64

from epp import EppError, Params, Request
from honest import Honest


class WriteLies(Honest):
    """Writes something else."""

    def on_files_write(self, p: Params, r: Request) -> Params:
        data = self.written(p, self.content(p))
        return {} if data is None else super().on_files_write({**p, "content_b64": base64.b64encode(data).decode()}, r)

    def written(self, p: Params, data: bytes) -> bytes | None:
        return data


class Trims(WriteLies):
    def written(self, p: Params, data: bytes) -> bytes:
        return data.rstrip(b"\n") if data.isascii() else data


class TextOnly(WriteLies):
    """Takes small files for text."""

    def written(self, p: Params, data: bytes) -> bytes:
        return data.decode("utf-8", "replace").encode() if len(data) <= 4096 else data


class AsciiText(WriteLies):
    def written(self, p: Params, data: bytes) -> bytes:
        try:
            return data.decode().encode("ascii", "replace")
        except UnicodeDecodeError:
            return data


class NoTruncate(WriteLies):
    def written(self, p: Params, data: bytes) -> bytes:
        try:
            old = base64.b64decode(self.on_files_read(p, Request(None, {}))["content_b64"])
        except EppError:
            return data
        return data + old[len(data) :]


class NoEmpty(WriteLies):
    def written(self, p: Params, data: bytes) -> bytes | None:
        return data or None


class CutFile(WriteLies):
    def written(self, p: Params, data: bytes) -> bytes:
        return data[: 1 << 20]


class ListsLess(Honest):
    def on_files_list(self, p: Params, r: Request) -> Params:
        return {"entries": super().on_files_list(p, r)["entries"][1:]}


class NoSize(Honest):
    def on_files_stat(self, p: Params, r: Request) -> Params:
        return {**super().on_files_stat(p, r), "size": 0}


class Copies(Honest):
    def on_files_move(self, p: Params, r: Request) -> Params:
        content = self.on_files_read({**p, "path": p["source"]}, r)
        return self.on_files_write({**p, **content, "path": p["destination"]}, r)


class NoRemove(Honest):
    def on_files_remove(self, p: Params, r: Request) -> Params:
        return {}


class Untyped(Honest):
    """A missing file is just an error."""

    def on_files_read(self, p: Params, r: Request) -> Params:
        try:
            return super().on_files_read(p, r)
        except EppError as error:
            raise EppError(-32000, error.message) from None


class StatUntyped(Honest):
    def on_files_stat(self, p: Params, r: Request) -> Params:
        try:
            return super().on_files_stat(p, r)
        except EppError as error:
            raise EppError(-32000, error.message) from None
