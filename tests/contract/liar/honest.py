"""local-process with a pause: what every lie is made from."""

from __future__ import annotations

import base64
import json
from typing import Any

import epp
from epp import EppError, Params, Request

import provider


class Honest(provider.Provider):
    """Tells the truth."""

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.token: str = (params.get("config") or {}).get("token") or ""
        vars(provider)["send"] = self.send  # its module speaks by this name

    def send(self, **message: Any) -> None:
        """What goes out beside the answers."""
        if message["method"] in ("exec.output", "exec.exit"):
            self.event(message["method"], message["params"])
        else:
            epp.send(**message)

    def event(self, method: str, params: Params) -> None:
        epp.send(method=method, params=params)

    def set_status(self, p: Params, status: str) -> Params:
        box = self.box(p)
        box.record["status"] = status
        box.save()
        return {}

    def on_sandbox_pause(self, p: Params, _: Request) -> Params:
        return self.set_status(p, "paused")

    def on_sandbox_resume(self, p: Params, _: Request) -> Params:
        return self.set_status(p, "running")

    def every(self) -> list[Params]:
        """The records of what runs, in order."""
        return [self.public(record) for record in self.all_records() if record["status"] == "running"]

    def page(self, p: Params, found: list[Params]) -> Params:
        """What a list answers, the cursor being a position."""
        start, limit = int(p.get("cursor") or 0), p.get("limit") or 100
        more = {"next": str(start + limit)} if len(found) > start + limit else {}
        return {"sandboxes": found[start : start + limit], **more}

    def exists(self, p: Params) -> bool:
        try:
            self.box(p)
        except EppError:
            return False
        return True

    def killed(self) -> list[Params]:
        """Records of what was killed; only kept by lies about it."""
        try:
            return list(json.loads((self.boxes / "killed.json").read_text("utf-8")))
        except OSError:
            return []

    def content(self, p: Params) -> bytes:
        return base64.b64decode(p["content_b64"])


class Remembering(Honest):
    """Keeps the record of what was killed last."""

    def on_sandbox_kill(self, p: Params, request: Request) -> Params:
        if self.exists(p):
            (self.boxes / "killed.json").write_text(json.dumps([self.public(self.box(p).record)]), "utf-8")
        return super().on_sandbox_kill(p, request)
