"""The Sandbox: what a program creates, uses and kills.

async with await Sandbox.create(template="base", provider="local-process") as sandbox:
    result = await sandbox.commands.run("echo hello")
    print(result.stdout)
"""

from __future__ import annotations

from agent_sandbox._loop import Host
from agent_sandbox._sync import MakerSynchronous, synchronous
from agent_sandbox.api.directory import SandboxDirectory
from agent_sandbox.api.target import Target, core_settings
from agent_sandbox.models.errors import ProviderFeatureNotSupportedError, SandboxNotFoundError
from agent_sandbox.models.sandbox import (
    SandboxInfo,
    SandboxStatus,
    check_timeout,
    validate_volume_mounts,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    from agent_sandbox import _abx
    from agent_sandbox._abx import Op, Pending
    from agent_sandbox.api.commands import CommandsModule
    from agent_sandbox.api.files import FilesModule
    from agent_sandbox.api.network import NetworkModule
    from agent_sandbox.api.terminal import TerminalSession
    from agent_sandbox.models.process import CodeResult
    from agent_sandbox.providers.base import Provider

    S = TypeVar("S", bound="Sandbox")


class Sandbox(SandboxDirectory):
    """One sandbox of one provider, and the hold on the provider's process.

    Made by `create` or `connect`. Every coroutine has a `_sync` twin, which also works inside a
    running event loop. The sandboxes of one provider and configuration share one plugin process;
    `close` or `kill` of the last one ends it.
    """

    def __init__(self, host: Host, handle: _abx.Sandbox) -> None:
        self._host = host
        self._handle = handle
        self._info = SandboxInfo.from_record(handle.record or {"sandbox_id": handle.id}, handle.provider)
        self._killed = False
        self._closed = False
        self._commands: CommandsModule | None = None
        self._files: FilesModule | None = None
        self._network: NetworkModule | None = None

    # ---- what it is

    @property
    def id(self) -> str:
        """The provider's id of this sandbox."""
        return self._handle.id

    @property
    def provider(self) -> str:
        """The id of the provider that owns it."""
        return self._handle.provider

    @property
    def status(self) -> SandboxStatus:
        """As last heard; `refresh_info` asks again."""
        return self._info.status

    @property
    def url(self) -> str:
        """The envd URL, or ``epp://provider/id`` where there is none."""
        return self._info.url

    @property
    def info(self) -> SandboxInfo:
        """All that is known, as last heard."""
        return self._info

    @property
    def capabilities(self) -> frozenset[str]:
        """Coarse names of what the provider can do: shell, files, code, ports, terminal."""
        from agent_sandbox.providers.registry import get_provider

        return get_provider(self.provider).capabilities()

    @property
    def operations(self) -> frozenset[str]:
        """The operations the provider's manifest declares for this host."""
        from agent_sandbox.providers.registry import get_provider

        return get_provider(self.provider).operations

    @property
    def commands(self) -> CommandsModule:
        """Commands and processes."""
        if self._commands is None:
            from agent_sandbox.api.commands import CommandsModule

            self._commands = CommandsModule(self._host, self._handle)
        return self._commands

    @property
    def files(self) -> FilesModule:
        """Files."""
        if self._files is None:
            from agent_sandbox.api.files import FilesModule

            self._files = FilesModule(self._host, self._handle)
        return self._files

    @property
    def network(self) -> NetworkModule:
        """Ports."""
        if self._network is None:
            from agent_sandbox.api.network import NetworkModule

            self._network = NetworkModule(self._host, self._handle)
        return self._network

    def __repr__(self) -> str:
        return f"<Sandbox id={self.id!r} provider={self.provider!r} status={self.status.value!r}>"

    # ---- making and finding

    @classmethod
    async def create(
        cls: type[S],
        template: str = "base",
        *,
        timeout: int = 300,
        request_timeout: float | None = None,
        metadata: dict[str, str] | None = None,
        envs: dict[str, str] | None = None,
        volume_mounts: dict[str, str] | None = None,
        cpu: int | None = None,
        memory: int | None = None,
        disk: int | None = None,
        gpu: str | None = None,
        secure: bool | None = None,
        access_key_id: str | None = None,
        access_key_secret: str | None = None,
        sandbox_api_key: str | None = None,
        sandbox_base_url: str | None = None,
        sandbox_domain: str | None = None,
        region: str | None = None,
        provider: str | Provider | None = None,
        provider_options: dict[str, Any] | None = None,
        on_created: Callable[[str], None] | None = None,
    ) -> S:
        """Creates a sandbox.

        timeout is its life, 1 to 86400 seconds; request_timeout bounds the wait for the answer,
        in seconds. cpu counts cores, memory and disk MB. secure None leaves the choice to the
        provider. provider: an id, a registered object, or None for what the configuration says
        (ABX_PROVIDER, config.toml, else the built-in). on_created gets the id before anything
        else is done with it. When anything fails after the provider made the sandbox, or the
        task is cancelled, the sandbox is killed.
        """
        if request_timeout is not None and request_timeout <= 0:
            raise ValueError(f"request_timeout must be positive seconds, got {request_timeout!r}")
        params: dict[str, Any] = {
            "template": template,
            "timeout": check_timeout(timeout),
            "request_timeout": request_timeout,
            "metadata": metadata,
            "envs": envs,
            "cpu": cpu,
            "memory": memory,
            "disk": disk,
            "gpu": gpu,
            "secure": secure,
            "volume_mounts": _mounts(volume_mounts),
        }
        core = core_settings(
            access_key_id=access_key_id,
            access_key_secret=access_key_secret,
            sandbox_api_key=sandbox_api_key,
            sandbox_base_url=sandbox_base_url,
            sandbox_domain=sandbox_domain,
            region=region,
        )
        target = Target(provider, provider_options, core)
        ops: builtins.list[tuple[Host, Op]] = []

        async def use(host: Host) -> S:
            def start(future: Pending) -> Op:
                op = host.client.create(future, target.provider, target.options, core, params)
                ops.append((host, op))
                return op

            handle = await host.call(start)
            if on_created is not None:
                on_created(handle.id)
            return cls(host, handle)

        try:
            return await target.found(use)
        except BaseException as error:
            await _kill_made(ops, error)
            raise

    @classmethod
    async def connect(
        cls: type[S],
        sandbox_id: str,
        *,
        access_key_id: str | None = None,
        access_key_secret: str | None = None,
        sandbox_api_key: str | None = None,
        sandbox_base_url: str | None = None,
        sandbox_domain: str | None = None,
        region: str | None = None,
        provider: str | Provider | None = None,
        provider_options: dict[str, Any] | None = None,
    ) -> S:
        """A live sandbox by its id, or by ``provider:id``.

        SandboxNotFoundError (E2009) when there is none; ProviderMismatchError (E8030) when the
        prefix contradicts provider.
        """
        core = core_settings(
            access_key_id=access_key_id,
            access_key_secret=access_key_secret,
            sandbox_api_key=sandbox_api_key,
            sandbox_base_url=sandbox_base_url,
            sandbox_domain=sandbox_domain,
            region=region,
        )
        target = Target(provider, provider_options, core)
        host, handle = await target.ask(
            lambda client, future: client.connect(future, sandbox_id, target.provider, target.options, core)
        )
        return cls(host, handle)

    # ---- its life

    async def kill(self) -> None:
        """Kills the sandbox and lets the provider's process go; again, it does nothing."""
        if self._killed:
            return
        try:
            await self._host.call(self._handle.kill)
            self._killed = True
        finally:
            await self.close()

    async def close(self) -> None:
        """Lets the provider's process go; the sandbox lives on."""
        if not self._closed:
            self._closed = True
            await self._host.call(self._handle.close)

    async def set_timeout(self, timeout: int) -> None:
        """Sets the life it has left, 1 to 86400 seconds from now."""
        seconds = check_timeout(timeout)
        await self._host.call(lambda future: self._handle.set_timeout(future, seconds))

    async def is_running(self) -> bool:
        """Asks the provider; a sandbox it does not know is not running."""
        try:
            info = await self.refresh_info()
        except SandboxNotFoundError:
            return False
        return info.status is SandboxStatus.RUNNING

    async def pause(self) -> None:
        """Pauses it: it keeps its state and does nothing."""
        await self._host.call(self._handle.pause)

    async def resume(self) -> None:
        """Lets it go on."""
        await self._host.call(self._handle.resume)

    async def refresh_info(self) -> SandboxInfo:
        """Asks the provider about it."""
        record = await self._host.call(self._handle.info)
        self._info = SandboxInfo.from_record(record, self.provider)
        return self._info

    async def run_code(
        self,
        code: str,
        *,
        language: str = "python",
        timeout: int = 30,
        context_id: str | None = None,
        mode: str = "stateless",
        envs: dict[str, str] | None = None,
        on_stdout: Callable[[str], None] | None = None,
        on_stderr: Callable[[str], None] | None = None,
        on_result: Callable[..., None] | None = None,
    ) -> CodeResult:
        """Runs code in an interpreter; only an E2B code-interpreter backend has one.

        Elsewhere ProviderFeatureNotSupportedError (E8004) for ``code.execute``.
        """
        raise ProviderFeatureNotSupportedError(self.provider, "code.execute")

    async def get_terminal(self, *, cols: int = 80, rows: int = 24, shell: str = "") -> TerminalSession:
        """Opens an interactive terminal of cols by rows characters; needs ``pty``.

        shell: its program; "" leaves the choice to the provider.
        """
        if not self._handle.has_feature("pty"):
            raise ProviderFeatureNotSupportedError(self.provider, "pty")
        from agent_sandbox.api.terminal import TerminalSession

        return await TerminalSession.open(self._host, self._handle, cols=cols, rows=rows, shell=shell)

    async def __aenter__(self: S) -> S:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kills it. A failure to do so is raised unless another error is on its way."""
        try:
            await self.kill()
        except Exception:
            if error is None:
                raise

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.kill_sync()
        except Exception:
            if error is None:
                raise

    create_sync = MakerSynchronous(create)
    connect_sync = MakerSynchronous(connect)
    kill_sync = synchronous(kill)
    close_sync = synchronous(close)
    set_timeout_sync = synchronous(set_timeout)
    is_running_sync = synchronous(is_running)
    pause_sync = synchronous(pause)
    resume_sync = synchronous(resume)
    refresh_info_sync = synchronous(refresh_info)
    run_code_sync = synchronous(run_code)
    get_terminal_sync = synchronous(get_terminal)


def _mounts(mounts: dict[str, str] | None) -> list[dict[str, str]] | None:
    """Volume mounts as the protocol lists them."""
    checked = validate_volume_mounts(mounts)
    return [{"name": name, "path": path} for path, name in checked.items()] or None


async def _kill_made(ops: list[tuple[Host, Op]], error: BaseException) -> None:
    """Kills what a create made before it failed; the first error is what the caller sees."""
    host, op = ops[-1] if ops else (None, None)
    if host is None or op is None or not op.done:
        return
    try:
        handle: _abx.Sandbox = op.result()
    except Exception:
        return  # nothing was made
    error.owned_resource = {"provider_id": handle.provider, "sandbox_id": handle.id}  # type: ignore[attr-defined]
    try:
        await host.call(handle.kill)
        await host.call(handle.close)
    except Exception:
        error.resource_cleanup_complete = False  # type: ignore[attr-defined]
    else:
        error.resource_cleanup_complete = True  # type: ignore[attr-defined]
