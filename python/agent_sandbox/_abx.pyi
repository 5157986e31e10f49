"""The C core as Python sees it: thin, one class for each handle of libabx.

A client and what was made from it belong to one thread at a time; `wakeup()` alone may be called
from any. Values cross as None, bool, int, float, str, bytes, list and dict.
"""

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, final

Value: TypeAlias = Any

class Pending(Protocol):
    """What an op completes: an asyncio.Future, or anything with these three."""

    def done(self) -> bool: ...
    def set_result(self, result: Any, /) -> None: ...
    def set_exception(self, exception: BaseException, /) -> None: ...

VERSION: str
FEATURES: tuple[str, ...]
"""The features a provider can declare, in registry order."""
ERRORS: tuple[tuple[int, str, str, str, str, str], ...]
"""(number, constant, class, parent, text, hint): the one list of include/abx/error.h."""

STARTED: int
STDOUT: int
STDERR: int
PTY: int
FS: int
PROGRESS: int
EXIT: int

Event: TypeAlias = tuple[int, Any, Any]
"""(kind, data, extra).

STARTED: (kind, process_id, None). STDOUT and STDERR: (kind, text, raw): text is decoded as UTF-8
incrementally, a broken sequence as U+FFFD; raw is None when text.encode() gives the bytes back, else
the bytes as they came. PTY: (kind, bytes, None). FS and PROGRESS: (kind, value, None).
EXIT: (kind, exit_code, value or None).
"""

@final
class Op:
    """One call in flight. Dropping the last reference of a running one cancels it."""

    @property
    def done(self) -> bool:
        """True once it ended, well or not."""
    def cancel(self) -> None:
        """Asks for an end; `$/cancel` to the plugin. Never fails."""
    def take(self, limit: int = 256) -> list[Event] | None:
        """Up to `limit` events; [] when there is none now, None when there will be none any more."""
    def notify(self, waiter: Pending) -> None:
        """Completes waiter with None once: at once when events wait or the op has ended."""
    def result(self) -> Value:
        """The value, or raises what it failed with; RuntimeError while it runs."""

@final
class Sandbox:
    """A handle of one sandbox; holds its provider's process."""

    @property
    def id(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def ref(self) -> str: ...
    @property
    def record(self) -> dict[str, Any] | None:
        """As last heard; None before the provider was asked."""
    def has_feature(self, feature: str) -> bool: ...
    def call(self, future: Pending | None, method: str, params: Mapping[str, Any] | None = None) -> Op:
        """Any method of the protocol that has a feature; sandbox_id is added.

        Without a future: a stream, as of pty.open, or files.watch (STARTED gives its watch_id, then FS)."""
    def info(self, future: Pending) -> Op: ...
    def kill(self, future: Pending) -> Op: ...
    def set_timeout(self, future: Pending, seconds: int) -> Op: ...
    def pause(self, future: Pending) -> Op: ...
    def resume(self, future: Pending) -> Op: ...
    def exec_run(
        self,
        future: Pending,
        argv: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: str | None,
        user: str | None,
        timeout: int,
    ) -> Op:
        """Result: (stdout, stderr, exit_code). timeout in seconds, of the command."""
    def exec_stream(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: str | None,
        user: str | None,
        timeout: int,
    ) -> Op: ...
    def process_list(self, future: Pending) -> Op: ...
    def process_kill(self, future: Pending, pid: str) -> Op: ...
    def process_signal(self, future: Pending, pid: str, signal: int) -> Op: ...
    def process_stdin(self, future: Pending, pid: str, data: bytes) -> Op: ...
    def process_stdin_end(self, future: Pending, pid: str) -> Op: ...
    def files_read(self, future: Pending, path: str) -> Op:
        """Result: bytes, decoded into the object that comes out."""
    def files_write(self, future: Pending, path: str, data: bytes | str, mode: int = -1) -> Op:
        """data is used as it lies, without a copy, and kept until the op ends."""
    def files_list(self, future: Pending, path: str) -> Op:
        """Result: the list of entries."""
    def files_stat(self, future: Pending, path: str) -> Op: ...
    def files_mkdir(self, future: Pending, path: str) -> Op: ...
    def files_remove(self, future: Pending, path: str) -> Op: ...
    def files_move(self, future: Pending, source: str, destination: str, overwrite: bool) -> Op: ...
    def ports_url(self, future: Pending, port: int) -> Op:
        """Result: {"url", "headers"}."""
    def close(self, future: Pending) -> Op:
        """Gives the handle up; done when the provider's process has ended, if this was its last user.

        Result: True when it had to be killed. Later calls on the handle are E8000."""

@final
class Plan:
    """An install or update nobody agreed to yet. Dropped, it removes its staging folder."""

    @property
    def consent(self) -> dict[str, Any]:
        """What a person must see."""
    @property
    def previous(self) -> dict[str, Any] | None: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def needs_consent(self) -> bool: ...
    def apply(self, future: Pending, how: int) -> Op:
        """how: 0 nobody was asked, 1 a --yes flag, 2 a person. Result: the receipt."""

@final
class Call:
    """A call that came to an in-process provider. It is ended once; later ends are ignored. One that is
    dropped without an end fails.

    Thread: the client's. on_cancel is called, without arguments, when the caller gave up."""

    on_cancel: Callable[[], None] | None
    @property
    def ended(self) -> bool: ...
    @property
    def session(self) -> int:
        """Which opening of the provider it belongs to: each began with an "initialize" of its own."""
    def emit(self, kind: int, data: Any) -> None:
        """STARTED id, STDOUT/STDERR/PTY bytes, FS/PROGRESS value, EXIT int."""
    def finish(self, value: Value) -> None: ...
    def fail(self, code: int, message: str, hint: str = "") -> None:
        """code: a number of ERRORS."""
    def fail_rpc(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        """A failure as a plugin says it: the core maps it."""

@final
class Client:
    """Configuration snapshot, registry of providers and loop.

    log(level, component, line) is called in the thread that uses the client, at the end of a call."""

    def __new__(
        cls,
        *,
        home: str | None = None,
        environ: Mapping[str, str] | None = None,
        dotenv: str | None = None,
        no_config: bool = False,
        host_name: str | None = None,
        log: Callable[[int, str, str], None] | None = None,
        log_level: int = 1,
    ) -> Client: ...
    def fileno(self) -> int:
        """Readable when run() has something to do."""
    def run(self) -> int:
        """Does what can be done without waiting and completes futures; how many callbacks ran."""
    def wait(self, timeout_ms: int = -1) -> int:
        """The same after waiting, without the interpreter's lock, until something happens."""
    def wakeup(self) -> None:
        """Ends a wait() in another thread."""
    def close(self, grace_ms: int = -1) -> int:
        """Ends every plugin in order; how many had to be killed. Later calls raise RuntimeError."""
    def create(
        self,
        future: Pending,
        provider: str | None,
        options: Mapping[str, Any] | None,
        core: Mapping[str, str] | None,
        params: Mapping[str, Any],
    ) -> Op:
        """params: template timeout secure metadata envs cpu memory disk gpu volume_mounts vpc
        request_timeout, all optional. core: sandbox_api_key, sandbox_base_url, sandbox_domain, region,
        access_key_id, access_key_secret said by the caller. Result: Sandbox."""
    def connect(
        self,
        future: Pending,
        ref: str,
        provider: str | None,
        options: Mapping[str, Any] | None,
        core: Mapping[str, str] | None,
    ) -> Op:
        """Result: Sandbox."""
    def attach(
        self,
        ref: str,
        provider: str | None,
        options: Mapping[str, Any] | None,
        core: Mapping[str, str] | None,
    ) -> Sandbox:
        """A handle without asking the provider."""
    def list(
        self,
        future: Pending,
        provider: str | None,
        options: Mapping[str, Any] | None,
        core: Mapping[str, str] | None,
        status: str | None,
        limit: int,
    ) -> Op:
        """Result: a list of records, at most limit (0: all)."""
    def provider_list(self) -> builtins.list[dict[str, Any]]: ...
    def provider_info(self, id: str) -> dict[str, Any]: ...
    def provider_default(self) -> str: ...
    def provider_set_default(self, id: str) -> None: ...
    def doctor(
        self, future: Pending, provider: str | None, options: Mapping[str, Any] | None, handshake: bool
    ) -> Op: ...
    def install_plan(
        self,
        future: Pending,
        source: str,
        *,
        ref: str | None = None,
        sha256: str | None = None,
        subdir: str | None = None,
        link: bool = False,
        force: bool = False,
        allow_unpinned: bool = False,
        allow_insecure_transport: bool = False,
        no_verify: bool = False,
        consent: int = 0,
    ) -> Op:
        """Result: Plan."""
    def update_plan(
        self,
        future: Pending,
        id: str,
        *,
        ref: str | None = None,
        check: bool = False,
        allow_unpinned: bool = False,
        allow_insecure_transport: bool = False,
        no_verify: bool = False,
        consent: int = 0,
    ) -> Op:
        """Result: (report, Plan or None)."""
    def uninstall(self, id: str, purge: bool) -> dict[str, Any]: ...
    def config_explain(self, provider: str | None) -> builtins.list[dict[str, Any]]: ...
    def config_get(self, key: str) -> dict[str, Any]: ...
    def config_set(self, key: str, value: str | None) -> str: ...
    def add_provider(
        self,
        manifest: Mapping[str, Any],
        handler: Callable[[Call, str, dict[str, Any]], None],
        close: Callable[[], None] | None = None,
    ) -> None:
        """Registers an in-process provider. handler(call, method, params) starts the work ("initialize"
        first, with the settings) and returns; it ends call now or later. E8003 when the id is taken."""

def features_line(features: Sequence[str]) -> str:
    """`sandbox(lifecycle,pause) exec(run)`: the one-line form."""

def digest_dir(path: str) -> str:
    """The tree digest of store.md, 64 hex digits."""

def parse_toml(data: bytes) -> dict[str, Any]:
    """E8014 with the position when it is not TOML."""

def manifest_describe(path: str) -> dict[str, Any]:
    """Reads and checks the manifest of a plugin directory: id name name_zh version kind command
    features inherit security config_fields ...; E8014 names the broken field."""

def read_receipt(home: str | None, id: str) -> dict[str, Any] | None: ...
def verify_integrity(home: str | None, id: str) -> None:
    """E8011 when the installed files are not those of the receipt."""
