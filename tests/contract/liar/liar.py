#!/usr/bin/env python3
"""local-process with one lie: the option `lie` names the case of the contract that must notice.

It runs beside copies of the example's files. A lie is a class that answers one method otherwise, and as
narrowly as it can: every other case must not notice.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import epp
import lies_exec
import lies_files
import lies_sandbox
from epp import Params
from honest import Honest

import provider

FEATURES = [*provider.FEATURES, "sandbox.pause"]
HANDSHAKE = {"protocol": "epp/1", "plugin": {"name": "liar", "version": "1.0.0"}, "features": FEATURES}

LIES: dict[str, type[Honest]] = {
    "none": Honest,
    "create_returns_a_running_sandbox": lies_sandbox.CreateStatus,
    "create_gives_distinct_ids": lies_sandbox.CreateAgain,
    "connect_finds_the_sandbox": lies_sandbox.ConnectOther,
    "get_tells_about_the_sandbox": lies_sandbox.GetOther,
    "list_contains_the_sandbox": lies_sandbox.ListTwice,
    "list_pages_to_the_end": lies_sandbox.ListSkips,
    "list_forgets_the_killed": lies_sandbox.ListKilled,
    "unknown_sandbox_is_e2009": lies_sandbox.UnknownIsGeneric,
    "odd_ids_are_e2009": lies_sandbox.OddIdIsGeneric,
    "kill_is_idempotent": lies_sandbox.KillOnce,
    "killed_sandbox_is_gone": lies_sandbox.KilledRuns,
    "set_timeout": lies_sandbox.NoTimeout,
    "set_timeout_of_unknown_is_e2009": lies_sandbox.TimeoutOfUnknown,
    "pause_resume": lies_sandbox.NoResume,
    "pause_of_unknown_is_e2009": lies_sandbox.PauseOfUnknown,
    "exec_run": lies_exec.OwnEcho,
    "exec_exit_code": lies_exec.ExitOne,
    "exec_stderr": lies_exec.MergedStderr,
    "exec_env": lies_exec.NoEnv,
    "exec_arguments_are_not_split": lies_exec.SplitArguments,
    "exec_unicode": lies_exec.AsciiOutput,
    "exec_large_output": lies_exec.CutOutput,
    "exec_timeout_is_enforced": lies_exec.EndsInTime,
    "exec_concurrent_calls": lies_exec.MixedUp,
    "exec_stream_order": lies_exec.Swapped,
    "exec_stream_single_exit": lies_exec.ExitZero,
    "exec_stream_split_utf8": lies_exec.BrokenText,
    "exec_stream_stderr": lies_exec.AllStdout,
    "exec_stream_cancel": lies_exec.CancelBreaks,
    "process_list": lies_exec.EmptyList,
    "process_kill": lies_exec.NoKill,
    "process_stdin": lies_exec.OtherInput,
    "files_roundtrip": lies_files.Trims,
    "files_binary": lies_files.TextOnly,
    "files_unicode": lies_files.AsciiText,
    "files_overwrite_truncates": lies_files.NoTruncate,
    "files_empty": lies_files.NoEmpty,
    "files_large": lies_files.CutFile,
    "files_mkdir_and_list": lies_files.ListsLess,
    "files_stat": lies_files.NoSize,
    "files_move": lies_files.Copies,
    "files_remove": lies_files.NoRemove,
    "missing_file_is_a_typed_not_found": lies_files.Untyped,
    "files_exists_is_false_only_for_missing": lies_files.StatUntyped,
    "ports_url": lies_sandbox.OddUrl,
    "secret_options_are_redacted_from_errors": lies_sandbox.LeakToken,
}


def start(params: Params) -> Honest:
    return LIES[(params.get("config") or {}).get("lie") or "none"](params)


if __name__ == "__main__":
    epp.run(start, HANDSHAKE)
