"""Lies about commands and processes."""

from __future__ import annotations

import threading

from command import Command
from epp import EppError, Params, Request
from honest import Honest

import provider


class RunLies(Honest):
    """Changes the result of exec.run."""

    def on_exec_run(self, p: Params, r: Request) -> Params:
        return self.changed(super().on_exec_run(p, r))

    def changed(self, result: Params) -> Params:
        return result


class OwnEcho(Honest):
    """Its echo forgets the end of the line."""

    def on_exec_run(self, p: Params, r: Request) -> Params:
        result = super().on_exec_run(p, r)
        return {**result, "stdout": result["stdout"].rstrip("\n")} if p["cmd"] == "echo" else result


class ExitOne(RunLies):
    def changed(self, result: Params) -> Params:
        return {**result, "exit_code": int(result["exit_code"] != 0)}


class MergedStderr(RunLies):
    def changed(self, result: Params) -> Params:
        return {**result, "stdout": result["stdout"] + result["stderr"], "stderr": ""}


class AsciiOutput(RunLies):
    def changed(self, result: Params) -> Params:
        return {**result, "stdout": result["stdout"].encode("ascii", "replace").decode()}


class CutOutput(RunLies):
    def changed(self, result: Params) -> Params:
        return {**result, "stdout": result["stdout"][: 64 << 10]}


class NoEnv(Honest):
    def on_exec_run(self, p: Params, r: Request) -> Params:
        return super().on_exec_run({**p, "env": {}}, r)


class SplitArguments(Honest):
    """Joins and splits the arguments once more, except a shell's script."""

    def on_exec_run(self, p: Params, r: Request) -> Params:
        if p["cmd"].rpartition("/")[2] not in ("sh", "bash"):
            p = {**p, "args": " ".join(p["args"]).split()}
        return super().on_exec_run(p, r)


class EndsInTime(Honest):
    """Says that a command which was too slow ended well."""

    def on_exec_run(self, p: Params, r: Request) -> Params:
        try:
            return super().on_exec_run(p, r)
        except EppError as error:
            if error.sdk_code != "E3001":
                raise
            return {"stdout": "", "stderr": "", "exit_code": 0}


class MixedUp(Honest):
    """Several at a time get something else."""

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.guard, self.now, self.mixed = threading.Lock(), 0, False

    def on_exec_run(self, p: Params, r: Request) -> Params:
        with self.guard:
            self.now += 1
            self.mixed |= self.now > 1
        result = super().on_exec_run(p, r)
        with self.guard:
            mixed, self.now = self.mixed, self.now - 1
            self.mixed &= self.now > 0
        return {**result, "stdout": "another one's\n"} if mixed else result


class Swapped(Honest):
    """The second chunk of whole lines comes after the third, or before the exit."""

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.count: dict[str, int] = {}
        self.held: dict[str, Params] = {}

    def event(self, method: str, params: Params) -> None:
        ident = params["process_id"]
        held = self.held.pop(ident, None)
        if method == "exec.exit" and held:
            super().event("exec.output", held)
        if params.get("data", "").endswith("\n"):
            self.count[ident] = self.count.get(ident, 0) + 1
            if self.count[ident] == 2:
                self.held[ident] = params
                return
        super().event(method, params)
        if method == "exec.output" and held:
            super().event("exec.output", held)


class ExitZero(Honest):
    def event(self, method: str, params: Params) -> None:
        super().event(method, {**params, "exit_code": 0} if method == "exec.exit" else params)


class BrokenText(Honest):
    """Takes each chunk for text of its own."""

    def on_exec_start(self, p: Params, r: Request) -> None:
        names = vars(provider)
        split, names["split_text"] = names["split_text"], lambda chunk: (chunk.decode("utf-8", "replace"), b"")
        try:
            super().on_exec_start(p, r)
        finally:
            names["split_text"] = split


class AllStdout(Honest):
    def event(self, method: str, params: Params) -> None:
        super().event(method, {**params, "stream": "stdout"} if method == "exec.output" else params)


class CancelBreaks(Honest):
    """A sandbox in which a stream was killed runs nothing more."""

    in_order = (*Honest.in_order, "process.kill")

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.broken: set[str] = set()

    def on_process_signal(self, p: Params, r: Request) -> Params:
        self.broken.add(p["sandbox_id"])
        return super().on_process_signal(p, r)

    def launch(self, p: Params, request: Request, stdin: int) -> Command:
        if p["sandbox_id"] in self.broken:
            raise EppError(-32000, "The sandbox is broken.")
        return super().launch(p, request, stdin)


class EmptyList(Honest):
    def on_process_list(self, p: Params, r: Request) -> Params:
        super().on_process_list(p, r)
        return {"processes": []}


class NoKill(Honest):
    def on_process_signal(self, p: Params, r: Request) -> Params:
        self.box(p)
        return {}


class OtherInput(Honest):
    def on_process_stdin(self, p: Params, request: Request) -> None:
        super().on_process_stdin({**p, "data": "something else\n"}, request)
