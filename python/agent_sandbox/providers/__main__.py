"""`python -m agent_sandbox.providers`: the management of providers without the native command.

The verbs, texts, JSON and exit codes are those of `abx provider`; results go to stdout, all else to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

from agent_sandbox.models.errors import SandboxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from agent_sandbox.providers.installer import InstallPlan

PROG = "python -m agent_sandbox.providers"
TOOL = {"tool": "python-sdk"}
FOUND_SOMETHING = 2


def shown(text: str) -> str:
    """A stranger's text without what could move a cursor or turn the line around."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)


def dumps(value: Any) -> str:
    """JSON for people and programs alike; what is not printable is escaped."""
    return shown(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def out(args: argparse.Namespace, value: Any, text: str) -> None:
    """A result, in the form that was asked for."""
    print(dumps(value) if args.json else shown(text))


def fail(args: argparse.Namespace, error: SandboxError) -> int:
    """Tells an error and gives its exit status."""
    if args.json:
        print(shown(json.dumps({"error": error.to_dict()}, ensure_ascii=False)), file=sys.stderr)
    else:
        print(shown(str(error)), file=sys.stderr)
    return error.exit_status


def can_ask() -> bool:
    """Somebody sits in front of it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> Any:
    """A confirm function for the installer: shows the plan and asks, when there is somebody to ask."""

    def asked(plan: InstallPlan) -> bool:
        print(dumps(plan.summary()), file=sys.stderr)
        if not can_ask():
            return False
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return asked


# ---- the verbs


def run_list(args: argparse.Namespace) -> int:
    from agent_sandbox.providers import registry
    from agent_sandbox.providers.base import compact_features

    rows = registry.list_providers()
    default = registry.ambient_provider_id()
    lines = []
    for row in rows:
        row["default"] = row["id"] == default
        about = f"(unusable: {row['error']})" if row.get("error") else compact_features(row["features"])
        head = f"{'*' if row['default'] else ' '} {row['id']:<24} {row['version']:<10}"
        lines.append(f"{head} {row['kind']:<8} {row['trust']:<9} {about}")
    out(args, rows, "\n".join(lines))
    return 0


def run_info(args: argparse.Namespace) -> int:
    from agent_sandbox.providers import registry

    provider = registry.get_provider(args.id)
    about = provider.describe()
    about["receipt"] = getattr(provider, "receipt", None)
    print(dumps(about))
    return 0


def run_install(args: argparse.Namespace) -> int:
    from agent_sandbox.providers import doctor, installer

    receipt = installer.install(
        args.source,
        ref=args.ref,
        subdir=args.subdir,
        sha256=args.sha256,
        link=args.link,
        force=args.force,
        allow_unpinned=args.allow_unpinned,
        allow_insecure_transport=args.allow_insecure_transport,
        yes=args.yes,
        confirm=confirm("Install this provider?"),
        interactive=can_ask(),
        verify=None if args.no_verify else doctor.verify_handshake,
        installed_by=TOOL,
    )
    out(args, receipt, f"Installed {receipt['id']} {receipt['version']}")
    return 0


def run_uninstall(args: argparse.Namespace) -> int:
    from agent_sandbox.providers import installer

    out(args, installer.uninstall(args.id, purge=args.purge), f"Removed {args.id}")
    return 0


def run_update(args: argparse.Namespace) -> int:
    from agent_sandbox.providers import doctor, installer, store

    reports, worst = [], 0
    for provider_id in [args.id] if args.id else store.list_installed_ids():
        try:
            report = installer.update(
                provider_id,
                ref=args.ref,
                check=args.check,
                yes=args.yes,
                confirm=confirm(f"Update {provider_id}?"),
                interactive=can_ask(),
                allow_unpinned=args.allow_unpinned,
                allow_insecure_transport=args.allow_insecure_transport,
                verify=None if args.no_verify else doctor.verify_handshake,
            )
        except SandboxError as error:  # the others are not kept back by it
            worst = max(worst, fail(args, error))
        else:
            reports.append(report)
    if reports or (args.json and not worst):
        out(args, reports, "\n".join(update_line(report) for report in reports))
    return worst


def update_line(report: dict[str, Any]) -> str:
    message = f" — {report['message']}" if report.get("message") else ""
    return f"{report['id']}: {report['status']}{message}"


def run_default(args: argparse.Namespace) -> int:
    from agent_sandbox.providers import registry, settings

    if args.id is None:
        current = registry.ambient_provider_id()
        out(args, {"default": current}, current)
        return 0
    registry.get_provider(args.id)
    settings.set_default_provider(args.id)
    out(args, {"default": args.id}, f"Default provider: {args.id}")
    return 0


def run_doctor(args: argparse.Namespace) -> int:
    from agent_sandbox.providers import doctor, registry

    report = doctor.doctor(args.id or registry.ambient_provider_id(), handshake=not args.no_handshake)
    lines = [
        f"{'ok  ' if c['ok'] else 'FAIL'} {c['name']}" + (f": {c['detail']}" if c["detail"] else "")
        for c in report["checks"]
    ]
    out(args, report, "\n".join(lines))
    return 0 if report["ok"] else FOUND_SOMETHING


def run_test(args: argparse.Namespace) -> int:
    from agent_sandbox.providers import registry
    from agent_sandbox.providers._run_contract import run_contract

    registry.get_provider(args.id)
    return run_contract(args.id, args.option, args.pytest_args)


# ---- the command line


def flag(parser: argparse.ArgumentParser, *names: str, help: str) -> None:
    parser.add_argument(*names, action="store_true", help=help)


def add_install_options(parser: argparse.ArgumentParser) -> None:
    """What install and update have in common."""
    parser.add_argument("--ref", help="branch, tag or full commit; a full commit pins the source")
    flag(parser, "--yes", "-y", help="agree without being asked; does not accept a moving ref")
    flag(parser, "--allow-unpinned", help="accept a ref that can move")
    flag(parser, "--allow-insecure-transport", help="accept file://, http:// and git:// sources")
    flag(parser, "--no-verify", help="do not start the plugin once to check it")


def build_parser() -> argparse.ArgumentParser:
    """The command line; --json may stand before or behind the verb."""
    parser = argparse.ArgumentParser(prog=PROG)
    flag(parser, "--json", help="machine-readable output")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    verbs = parser.add_subparsers(dest="command", required=True)

    def verb(name: str, run: Any, help: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, parents=[common], help=help, allow_abbrev=False)
        added.set_defaults(run=run)
        return added

    verb("list", run_list, "list the providers, * marks the default one")
    verb("info", run_info, "show everything about a provider as JSON").add_argument("id")
    p = verb("install", run_install, "install from a directory, a git URL or OWNER/REPO[//DIR][@REF]")
    p.add_argument("source")
    add_install_options(p)
    p.add_argument("--subdir", help="directory of the plugin inside the source")
    p.add_argument("--sha256", help="pin the source to this tree digest")
    flag(p, "--link", help="use a local directory as it is, without an integrity check")
    flag(p, "--force", help="replace what is installed under the same id")
    p = verb("uninstall", run_uninstall, "remove a plugin; its data and settings stay")
    p.add_argument("id")
    flag(p, "--purge", help="remove its data and settings, too")
    p = verb("update", run_update, "update one plugin, or all, from where it was installed")
    p.add_argument("id", nargs="?")
    add_install_options(p)
    flag(p, "--check", help="say what is available and change nothing")
    verb("default", run_default, "show the default provider, or set it").add_argument("id", nargs="?")
    p = verb("test", run_test, "run the contract suite (needs pytest); more arguments for pytest behind --")
    p.add_argument("id")
    p.add_argument("--option", "-o", action="append", default=[], metavar="KEY=VALUE", help="a setting")
    p = verb("doctor", run_doctor, "check a provider; 2 when something is wrong")
    p.add_argument("id", nargs="?")
    flag(p, "--no-handshake", help="do not start the plugin")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb; its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    more: list[str] = []
    if "test" in words and "--" in words:  # pytest's arguments are none of argparse's business
        at = words.index("--")
        words, more = words[:at], words[at + 1 :]
    args = build_parser().parse_args(words)
    args.pytest_args = more
    try:
        status = int(args.run(args))
        sys.stdout.flush()
        return status
    except SandboxError as error:
        return fail(args, error)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has left; the interpreter would complain at its end, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main())
