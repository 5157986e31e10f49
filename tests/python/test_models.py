"""The records: what they take, what they read from the protocol, how they turn into dicts."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import agent_sandbox
import pytest
from agent_sandbox import _abx, models
from agent_sandbox.models.errors import ProviderConfigError, ProviderProtocolError
from agent_sandbox.models.filesystem import FileInfo, FileType, WatchEvent, WatchEventType
from agent_sandbox.models.process import (
    CodeResult,
    OutputFile,
    ProcessChunk,
    ProcessChunkType,
    ProcessInfo,
    ProcessResult,
)
from agent_sandbox.models.sandbox import SandboxConfig, SandboxInfo, SandboxStatus, validate_volume_mounts

ROOT = Path(__file__).resolve().parents[2]
UTC = timezone.utc


def test_the_version_is_the_projects() -> None:
    match = re.search(r"^\s*version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None
    assert agent_sandbox.__version__ == match[1] == _abx.VERSION


def test_importing_the_package_loads_nothing_of_it() -> None:
    code = "import sys, agent_sandbox; print(sorted(m for m in sys.modules if m.startswith('agent_sandbox')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": ":".join(sys.path)})
    assert done.stdout.strip() == "['agent_sandbox', 'agent_sandbox._version']"


def test_the_models_load_no_slow_library() -> None:
    slow = {"asyncio", "dataclasses", "inspect", "re", "typing", "pathlib", "json", "datetime", "argparse"}
    code = f"import sys, agent_sandbox.models.sandbox, agent_sandbox.models.process, agent_sandbox.models.filesystem\n" \
           f"print(sorted({slow!r} & set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; before = set(sys.modules)\n{code}"],
                          capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.stdout.strip() == "[]"


def test_names_of_the_models_package() -> None:
    assert models.SandboxInfo is SandboxInfo
    assert models.ProcessChunk is ProcessChunk
    assert "FileInfo" in dir(models)
    assert "SandboxError" in dir(models)
    with pytest.raises(AttributeError):
        models.nothing_like_it  # noqa: B018


# ---- chunks and results


def test_a_chunk_gives_its_bytes() -> None:
    plain = ProcessChunk(type=ProcessChunkType.STDOUT, data="zwölf", pid=7, timestamp=1.5)
    assert plain.bytes == "zwölf".encode()
    broken = ProcessChunk("stderr", "\ufffd", raw=b"\xff")
    assert broken.type is ProcessChunkType.STDERR
    assert broken.bytes == b"\xff"
    end = ProcessChunk(type="exit", exit_code=3)
    assert (end.data, end.exit_code, end.pid, end.timestamp) == ("", 3, None, None)
    with pytest.raises(ValueError, match="nonsense"):
        ProcessChunk("nonsense")


def test_a_chunk_is_as_the_reference_dumps_it() -> None:
    chunk = ProcessChunk("stdout", "hi", pid="p1", raw=b"hi")
    assert chunk.model_dump(mode="json") == {
        "type": "stdout", "data": "hi", "exit_code": None, "pid": "p1", "timestamp": None}
    assert json.loads(chunk.model_dump_json(exclude_none=True)) == {"type": "stdout", "data": "hi", "pid": "p1"}
    assert set(chunk.model_dump(include={"data"})) == {"data"}
    assert "data" not in chunk.model_dump(exclude={"data"})
    assert dict(chunk)["type"] is ProcessChunkType.STDOUT


def test_results() -> None:
    assert ProcessResult().success
    assert not ProcessResult(exit_code=1).success
    code = CodeResult(text="3", output_files=[OutputFile(name="a", path="/a")])
    assert code.output_files[0].mime_type == "application/octet-stream"
    assert code.model_dump()["output_files"] == [
        {"name": "a", "path": "/a", "size": 0, "mime_type": "application/octet-stream"}]
    assert CodeResult.model_validate(code.model_dump()) == code
    assert CodeResult().output_files == []


@pytest.mark.parametrize("record", [
    ProcessChunk("stdout", "x", raw=b"\xff"), ProcessResult("a", "b", 1, 0.5), ProcessInfo(3, "sleep"),
    FileInfo("a", "/a", "dir", 3, "2026-01-01T00:00:00Z"), WatchEvent("created", "/a"), SandboxConfig(cpu=2),
    SandboxInfo("s", metadata={"a": "b"}),
], ids=lambda r: type(r).__name__)
def test_records_are_values(record: Any) -> None:
    for other in (pickle.loads(pickle.dumps(record)), copy.copy(record), copy.deepcopy(record), record.model_copy()):
        assert other == record
        assert other is not record
    assert record != 3
    assert type(record).__name__ in repr(record)
    name = next(iter(dict(record)))
    assert record.model_copy(update={name: "other"}) != record
    with pytest.raises(TypeError):
        hash(record)
    with pytest.raises(AttributeError):
        record.no_such_field = 1


def test_process_records() -> None:
    assert ProcessInfo.from_record({"pid": 4, "command": "sleep 1"}) == ProcessInfo(4, "sleep 1", "running")
    assert ProcessInfo.from_record({"pid": "p-1", "status": "stopped"}) == ProcessInfo("p-1", "", "stopped")


# ---- files


@pytest.mark.parametrize(("word", "kind"), [
    ("file", FileType.FILE), ("dir", FileType.DIRECTORY), ("directory", FileType.DIRECTORY),
    ("symlink", FileType.SYMLINK), ("socket", FileType.FILE), (None, FileType.FILE),
])
def test_entries(word: str | None, kind: FileType) -> None:
    entry = {"name": "a", "path": "/a", "size": 5, "mtime": "2026-01-02T03:04:05Z", "type": word, "mode": 0o644}
    info = FileInfo.from_entry(entry)
    assert (info.name, info.path, info.size, info.type, info.mode) == ("a", "/a", 5, kind, 0o644)
    assert info.modified == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert info.is_dir == (kind is FileType.DIRECTORY)


def test_an_entry_may_say_little() -> None:
    assert FileInfo.from_entry({"name": "a", "path": "/a"}) == FileInfo("a", "/a", FileType.FILE, 0, None, None)


def test_events() -> None:
    event = WatchEvent.from_event({"type": "renamed", "path": "/b", "old_path": "/a"}, timestamp=2.0)
    assert event == WatchEvent(WatchEventType.RENAMED, "/b", "/a", 2.0)
    assert WatchEvent.from_event({"type": "chmod", "path": "/b"}).type is WatchEventType.MODIFIED


# ---- sandboxes


def test_what_a_plugin_leaves_out_stays_unknown() -> None:
    info = SandboxInfo.from_record({"sandbox_id": "sbx-1"}, "my-cloud")
    assert (info.template, info.region, info.timeout) == ("", "", 0)
    assert (info.started_at, info.end_at, info.envd_access_token, info.metadata) == (None, None, None, {})
    assert info.status is SandboxStatus.RUNNING
    assert info.url == info.envd_url == "epp://my-cloud/sbx-1"


def test_a_full_record() -> None:
    info = SandboxInfo.from_record({
        "sandbox_id": "sbx-1", "template": "base", "status": "paused", "metadata": {"a": "b", "n": 1},
        "envd_url": "https://49983-sbx-1.example.com", "envd_access_token": "secret", "region": "eu",
        "created_at": "2026-01-01T00:00:00", "expires_at": "2026-01-01T02:10:00+02:00",
    }, "my-cloud")
    assert (info.template, info.status, info.region) == ("base", SandboxStatus.PAUSED, "eu")
    assert info.metadata == {"a": "b", "n": "1"}
    assert info.started_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert info.end_at is not None
    assert info.end_at.utcoffset() == timedelta(hours=2)
    assert info.timeout == 600
    assert info.url == "https://49983-sbx-1.example.com"
    assert "secret" not in repr(info)
    assert info.model_dump()["envd_access_token"] == "secret"


@pytest.mark.parametrize(("text", "want"), [
    ("2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
    ("2026-01-01T00:00:00.5Z", datetime(2026, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)),
    ("2026-01-01T00:00:00.123456789+01:00", datetime(2025, 12, 31, 23, 0, 0, 123456, tzinfo=UTC)),
    ("2026-01-01 00:00:00", datetime(2026, 1, 1, tzinfo=UTC)),
    ("yesterday", None), ("", None), (None, None), (17, None),
])
def test_times(text: object, want: datetime | None) -> None:
    assert SandboxInfo.from_record({"sandbox_id": "s", "created_at": text}, "p").started_at == want


@pytest.mark.parametrize("status", ["hibernating", None, 3])
def test_an_unknown_status_is_running(status: object) -> None:
    assert SandboxInfo.from_record({"sandbox_id": "s", "status": status}, "p").status is SandboxStatus.RUNNING


@pytest.mark.parametrize("record", [{}, {"sandbox_id": ""}, {"sandbox_id": None}])
def test_a_record_needs_an_id(record: dict[str, Any]) -> None:
    with pytest.raises(ProviderProtocolError, match="without an id"):
        SandboxInfo.from_record(record, "my-cloud")


def test_names_of_the_http_api() -> None:
    info = SandboxInfo.model_validate({"sandboxID": "s", "templateID": "t", "state": "paused", "endAt":
                                       "2026-01-01T00:00:00Z", "unknown": 1})
    assert (info.sandbox_id, info.template, info.status) == ("s", "t", SandboxStatus.PAUSED)
    dumped = info.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert (dumped["sandboxID"], dumped["state"], dumped["endAt"]) == ("s", "paused", "2026-01-01T00:00:00Z")
    with pytest.raises(ValueError, match="sandbox_id"):
        SandboxInfo.model_validate({"templateID": "t"})


def test_the_create_payload_has_what_was_said() -> None:
    assert SandboxConfig().to_create_payload() == {
        "templateID": "base", "timeout": 300, "autoPause": False, "metadata": {}, "envVars": {}}
    full = SandboxConfig(template="t", timeout=60, auto_pause=True, metadata={"a": "b"}, env_vars={"C": "d"}, cpu=2,
                         memory=512, disk=1024, gpu="A10", volume_mounts={"/mnt/x": "vol"}, secure=True)
    assert full.to_create_payload() == {
        "templateID": "t", "timeout": 60, "autoPause": True, "metadata": {"a": "b"}, "envVars": {"C": "d"},
        "cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024, "gpu": "A10",
        "volumeMounts": [{"name": "vol", "path": "/mnt/x"}]}
    assert not {"volume_mounts", "secure", "provider_options"} & set(full.model_dump())


@pytest.mark.parametrize("timeout", [0, -1, 86401, True, "60", 1.5])
def test_a_life_has_limits(timeout: Any) -> None:
    with pytest.raises(ValueError, match="timeout"):
        SandboxConfig(timeout=timeout)


def test_the_longest_and_shortest_life() -> None:
    assert [SandboxConfig(timeout=t).timeout for t in (1, 86400)] == [1, 86400]


@pytest.mark.parametrize("path", [
    "mnt", "/", "", "/mnt/", "/mnt//x", "/mnt/../x", "/mnt/.hidden", "/bin/x", "/opt", "/var/x", "/dev", " /mnt",
    "/mnt\0", "__proto__", 3,
])
def test_places_no_volume_goes(path: Any) -> None:
    with pytest.raises(ProviderConfigError):
        validate_volume_mounts({path: "vol"})


@pytest.mark.parametrize("mounts", [[("/mnt", "v")], {"/mnt": ""}, {"/mnt": " v"}, {"/mnt": "v\0"}, {"/mnt": 1}])
def test_mounts_that_are_none(mounts: Any) -> None:
    with pytest.raises(ProviderConfigError):
        validate_volume_mounts(mounts)


def test_mounts_are_copied() -> None:
    mounts = {"/mnt/data": "vol", "/home/user/.x": "v"}
    with pytest.raises(ProviderConfigError):
        validate_volume_mounts(mounts)
    del mounts["/home/user/.x"]
    copied = validate_volume_mounts(mounts)
    assert copied == mounts
    assert copied is not mounts
    assert validate_volume_mounts(None) == {}


def test_dataclasses_takes_records_for_its_own() -> None:
    info = SandboxInfo("s", metadata={"a": "b"}, status="paused")
    assert dataclasses.is_dataclass(info)
    assert [field.name for field in dataclasses.fields(info)][:3] == ["sandbox_id", "template", "alias_name"]
    assert dataclasses.asdict(info)["metadata"] == {"a": "b"}
    other = dataclasses.replace(info, template="base")
    assert (other.template, other.status, info.template) == ("base", info.status, "")
    assert dataclasses.astuple(ProcessResult("out", "", 3, 0.5)) == ("out", "", 3, 0.5)
