"""make(): writes the directory of a plugin that misbehaves in one named way, for tests of the host.

The mode is fixed when the directory is made. Its config fields are mode (overrides it) and tok (secret,
ABX_FAKE_TOK). What the plugin saw and did is in its data directory: calls (one method a line), cancels (ids),
pids (its own and of what it started). The program is plain Python, without a line of the product in it.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parent / "fake" / "plugin.py"
FEATURES = ("sandbox.lifecycle", "sandbox.timeout", "exec.run", "exec.stream", "process.manage", "files.rw", "ports.url")

MODES: dict[str, str] = {
    "ok": "behaves",
    # before and instead of the handshake
    "banner": "prints text on stdout first",
    "emptylines": "sends empty lines between the others",
    "nonjson": "sends a line that is not JSON",
    "array": "sends a line that is an array",
    "partial": "sends half a line and exits 0",
    "deep": "sends 10000 nested arrays",
    "big9": "sends a line of 9 MiB",
    "nonl20": "sends 20 MB without a newline",
    "exit3": "traceback with colours and the secret on stderr, exit 3",
    "hang_init": "never answers initialize",
    "slow_init": "answers initialize after ARG seconds (1)",
    "proto2": "speaks epp/2",
    "contract": "answers other operations than the manifest has",
    "initerr": "refuses the configuration, with the secret and escapes in the text",
    "initauth": "refuses the credentials, with the secret in message and suggestion",
    "features": "declares only sandbox.lifecycle in the handshake",
    # answers
    "recnull": "null as the record of a sandbox",
    "reclist": "an array as the record",
    "noid": "a record without an id",
    "slashid": "a sandbox id with slashes and odd characters",
    "code": "error with code ARG on sandbox.get, the secret in its message",
    "unknownid": "answers an id nobody asked for, then the right one",
    "twice": "answers everything twice",
    "noidreply": "an error without an id and one with null, then nothing",
    "dupkeys": "a record with the same key twice",
    "bigint": "numbers out of every range",
    "surrogate": "a lone surrogate as an escape",
    "invalidutf8": "bytes that are not UTF-8 in a line",
    "nob64": "files.read without content_b64",
    "badb64": "files.read with no base64",
    "flaky": "sandbox.get: two retryable errors, then the answer",
    "slow": "answers sandbox.get and exec.run after ARG seconds (2); honours $/cancel",
    "env": "exec.run prints environment, argv and cwd as JSON",
    # streams
    "badexit": "exit_code \"zz\"",
    "noexec": "never answers exec.start",
    "earlyevents": "output and exit before the answer that names the process",
    "manyearly": "output of 100 processes before the answer that names the last of them",
    "late": "an exit that says the command ran out of its time",
    "crashmid": "exits 7 in the middle of a stream",
    "floodunknown": "notifications without end for a process nobody knows",
    "spew": "ARG is N:S: N chunks of S bytes, then exit 0",
    "afterexit": "output and a second exit after the exit",
    "splitutf8": "a character cut over two chunks of bytes",
    "killed": "exit_code 137 and a signal",
    # processes
    "crashget": "sandbox.get exits 9",
    "stderrflood": "100 MiB on stderr",
    "stopread": "reads no more after sandbox.create or .get",
    "ignoreterm": "ignores the end of stdin, shutdown and SIGTERM",
    "child": "starts a sleep in its session and one in a session of its own",
    "holdpipes": "starts a setsid child that keeps stdout and stderr, then exits 4",
}


CONTRACT: dict[str, Any] = {
    "operation_contract_version": 1,
    "operations.cli": [],
    "operations.python": ["sandbox.create", "sandbox.get"],
    "workflow.inputs": [],
    "workflow.startups": [],
}


def manifest(plugin_id: str, command: Sequence[str], features: Sequence[str], overrides: Mapping[str, Any]) -> str:
    """The text of abx-provider.toml. overrides: dotted key -> value replaces a line or adds to its table; None drops it."""
    values: dict[str, Any] = {
        "manifest_version": 1,
        "provider.id": plugin_id,
        "provider.name": plugin_id,
        "provider.version": "1.0.0",
        "compat.protocol": "epp/1",
        "runtime.kind": "exec",
        "runtime.command": list(command),
        "runtime.startup_timeout_ms": 10000,
        "runtime.call_timeout_ms": 60000,
        "features.supported": list(features),
        "security.network": [],
        "security.filesystem": ["data_dir"],
        "security.spawns_processes": True,
        "config.fields.mode.type": "string",
        "config.fields.tok.type": "string",
        "config.fields.tok.secret": True,
    }
    values.update(overrides)
    tables: dict[str, list[str]] = {"": []}
    for dotted, value in values.items():
        table, _, key = dotted.rpartition(".")
        if value is not None:
            tables.setdefault(table, []).append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    lines = tables.pop("")
    for table, content in tables.items():
        lines += ["", f"[{table}]", *content]
    return "\n".join(lines) + "\n"


def make(
    dir: Path | str,
    mode: str = "ok",
    arg: str = "",
    features: Sequence[str] = FEATURES,
    plugin_id: str = "fake",
    python: Sequence[str] = (sys.executable, "-S", "-E", "-B"),
    **overrides: Any,
) -> Path:
    """Writes <dir>/abx-provider.toml, plugin.py and mode.json; the directory may exist.

    overrides: keys of the manifest with "__" for dots, runtime__call_timeout_ms=2000. With **CONTRACT the manifest has
    the newer tables and the handshake repeats them.
    """
    name, _, inline = mode.partition(" ")
    if name not in MODES:
        raise ValueError(f"no mode {mode!r}")
    dir = Path(dir)
    dir.mkdir(parents=True, exist_ok=True)
    command = [*python, "./plugin.py"]
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    if name == "contract":
        dotted = {**CONTRACT, **dotted}
    (dir / "abx-provider.toml").write_text(manifest(plugin_id, command, features, dotted), encoding="utf-8")
    content = {"mode": name, "arg": arg or inline, "features": list(features), "operations": dotted.get("operations.python")}
    (dir / "mode.json").write_text(json.dumps(content), encoding="utf-8")
    shutil.copyfile(PROGRAM, dir / "plugin.py")
    return dir


if __name__ == "__main__":
    make(sys.argv[1], *sys.argv[2:3])
