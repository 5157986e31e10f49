"""Lies about sandboxes, ports and secrets."""

from __future__ import annotations

import re

from epp import EppError, Params, Request
from honest import Honest, Remembering

import provider

PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+")
GIVEN_ID = re.compile(r"lp-[0-9a-f-]+")


class CreateStatus(Honest):
    def on_sandbox_create(self, p: Params, r: Request) -> Params:
        return {**super().on_sandbox_create(p, r), "status": "error"}


class CreateAgain(Honest):
    """The second of two with the same timeout gets the first."""

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.first: dict[int, Params] = {}

    def on_sandbox_create(self, p: Params, r: Request) -> Params:
        old = self.first.pop(p["timeout"], None)
        if old and self.exists(old):
            return old
        new = self.first[p["timeout"]] = super().on_sandbox_create(p, r)
        return new


class ConnectOther(Honest):
    def on_sandbox_connect(self, p: Params, r: Request) -> Params:
        record = self.on_sandbox_get(p, r)
        return {**record, "sandbox_id": record["sandbox_id"] + "-other"}


class GetOther(Honest):
    def on_sandbox_get(self, p: Params, r: Request) -> Params:
        record = super().on_sandbox_get(p, r)
        return {**record, "sandbox_id": record["sandbox_id"] + "-other"}

    def on_sandbox_connect(self, p: Params, r: Request) -> Params:
        return super().on_sandbox_get(p, r)


class ListTwice(Honest):
    """The newest comes twice."""

    def on_sandbox_list(self, p: Params, r: Request) -> Params:
        found = self.every()
        return self.page(p, found + found[-1:])


class ListSkips(Honest):
    """The third is on no page."""

    def on_sandbox_list(self, p: Params, r: Request) -> Params:
        found = self.every()
        return self.page(p, found[:2] + found[3:])


class ListKilled(Remembering):
    def on_sandbox_list(self, p: Params, r: Request) -> Params:
        return self.page(p, self.every() + self.killed())


class UnknownIsGeneric(Honest):
    def lie(self, p: Params) -> None:
        if PLAIN_ID.fullmatch(p["sandbox_id"]) and not GIVEN_ID.fullmatch(p["sandbox_id"]):
            raise EppError(-32000, "Something went wrong.")

    def on_sandbox_get(self, p: Params, r: Request) -> Params:
        self.lie(p)
        return super().on_sandbox_get(p, r)

    def on_sandbox_connect(self, p: Params, _: Request) -> Params:
        return self.on_sandbox_get(p, _)


class OddIdIsGeneric(UnknownIsGeneric):
    def lie(self, p: Params) -> None:
        if not PLAIN_ID.fullmatch(p["sandbox_id"]):
            raise EppError(-32000, "This id is no id.")


class KillOnce(Honest):
    def on_sandbox_kill(self, p: Params, r: Request) -> Params:
        if not self.exists(p):
            raise EppError(-32000, "It is not there.")
        return super().on_sandbox_kill(p, r)


class KilledRuns(Remembering):
    def on_sandbox_get(self, p: Params, r: Request) -> Params:
        for record in self.killed():
            if record["sandbox_id"] == p["sandbox_id"]:
                return record
        return super().on_sandbox_get(p, r)

    on_sandbox_connect = provider.Provider.on_sandbox_connect


class NoTimeout(Honest):
    def on_sandbox_set_timeout(self, p: Params, r: Request) -> Params:
        super().on_sandbox_set_timeout(p, r)
        raise EppError(-32000, "The timeout can't be changed.")


class TimeoutOfUnknown(Honest):
    def on_sandbox_set_timeout(self, p: Params, r: Request) -> Params:
        return super().on_sandbox_set_timeout(p, r) if self.exists(p) else {}


class NoResume(Honest):
    def on_sandbox_resume(self, p: Params, r: Request) -> Params:
        super().on_sandbox_resume(p, r)
        raise EppError(-32000, "It stays paused.")


class PauseOfUnknown(Honest):
    def on_sandbox_pause(self, p: Params, r: Request) -> Params:
        return super().on_sandbox_pause(p, r) if self.exists(p) else {}


class OddUrl(Honest):
    def on_ports_url(self, p: Params, r: Request) -> Params:
        return {"url": f"tcp://127.0.0.1:{p['port']}"}


class LeakToken(Honest):
    """The host blots the whole token out, so it says all but its last letter."""

    def on_sandbox_get(self, p: Params, r: Request) -> Params:
        try:
            return super().on_sandbox_get(p, r)
        except EppError as error:
            raise EppError(error.code, f"{error.message} (as {self.token[:-1]})", error.sdk_code) from None

    def on_sandbox_connect(self, p: Params, _: Request) -> Params:
        return self.on_sandbox_get(p, _)
