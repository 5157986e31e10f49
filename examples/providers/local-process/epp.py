"""The wire: requests in, answers and notifications out, a thread for each request. Copy it as it is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection
from typing import Any, Protocol

LINE_LIMIT = 8 << 20
Params = dict[str, Any]

# Lines go to a private copy of stdout; a stray print(), here or in a library, lands on stderr.
WIRE = os.dup(1)
WIRE_LOCK = threading.Lock()
os.dup2(2, 1)


class EppError(Exception):
    """An error answer. -32002 is "not found", -32003 "not supported", -32000 anything else."""

    def __init__(self, code: int, message: str, sdk_code: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.sdk_code = code, message, sdk_code


def send(**message: Any) -> None:
    text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
    line = text.encode("utf-8", "replace")
    if len(line) > LINE_LIMIT:
        raise EppError(-32000, f"The answer has {len(line)} bytes, a line of the protocol holds {LINE_LIMIT}.")
    line += b"\n"
    with WIRE_LOCK, contextlib.suppress(BrokenPipeError):  # a host that is gone ends us by EOF
        while line:
            line = line[os.write(WIRE, line) :]


class Request:
    """A request on its way: answered once, cancelled perhaps."""

    def __init__(self, ident: Any, params: Params) -> None:
        self.id, self.params = ident, params
        self.answered = self.cancelled = False
        self.on_cancel: Callable[[], None] = lambda: None

    def answer(self, result: Params) -> None:
        send(id=self.id, result=result)
        self.answered = True

    def fail(self, e: EppError) -> None:
        data = {"sdk_code": e.sdk_code} if e.sdk_code else {}
        send(id=self.id, error={"code": e.code, "message": e.message, "data": data})
        self.answered = True

    def cancel(self) -> None:
        self.cancelled = True
        self.on_cancel()


class Plugin(Protocol):
    """Anything with a method on_<name> for each method of the protocol, dots as underscores.

    It takes the parameters and the request, and returns the result; None: the answer came, or comes, otherwise.
    """

    in_order: Collection[str]  # methods that never block and are run one after the other, without a thread

    def close(self) -> None: ...


def handle(request: Request, handler: Callable[[Params, Request], Params | None], requests: dict[Any, Request]) -> None:
    """Runs one request; whatever goes wrong becomes an error answer."""
    try:
        try:
            result = handler(request.params, request)
            if result is not None:
                request.answer(result)
        except EppError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise EppError(-32602, f"Invalid parameters: {e!r}.") from e
        except Exception as e:
            traceback.print_exc()
            raise EppError(-32603, f"Internal error: {e!r}.") from e
    except EppError as e:
        if not request.answered:
            request.fail(e)
    finally:
        requests.pop(request.id, None)


def run(start: Callable[[Params], Plugin], handshake: Params) -> None:
    """Serves until shutdown, the end of stdin or SIGTERM. start makes the plugin from the parameters of initialize."""
    plugin: Plugin | None = None
    requests: dict[Any, Request] = {}

    def initialize(params: Params, _: Request) -> Params:
        nonlocal plugin
        if params["protocol"] != "epp/1":
            raise EppError(-32000, f"This plugin speaks epp/1, the host {params['protocol']}.")
        plugin = start(params)
        return handshake

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
                method, params, ident = message["method"], message.get("params") or {}, message.get("id")
                if not (isinstance(method, str) and isinstance(params, dict) and isinstance(ident, int | str | None)):
                    raise TypeError
            except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
                send(id=None, error={"code": -32700, "message": "This line is no request."})
                continue
            if ident is None:
                if method == "$/cancel" and (running := requests.get(params.get("id"))):
                    running.cancel()
                continue
            request = requests[ident] = Request(ident, params)
            if method == "shutdown":
                return request.answer({})
            name = "on_" + method.replace(".", "_")
            handler = initialize if method == "initialize" else getattr(plugin, name, None)
            if handler is None:
                request.fail(EppError(-32601, f"No method '{method}'."))
            elif method == "initialize" or (plugin and method in plugin.in_order):
                handle(request, handler, requests)
            else:
                threading.Thread(target=handle, args=(request, handler, requests), daemon=True).start()
    finally:
        if plugin:
            plugin.close()
