#!/usr/bin/env python3
"""Writes docs/errors.md and docs/features.md from the tables of the source, so that each list exists once.

gendocs.py [--check] [ROOT]: with --check nothing is written and a page that differs is an error."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

NOTICE = "<!-- Made by tools/gendocs.py; edit the tables it reads, then run it. -->"
CODE_PREFIX = "ABX_E_"
GENERIC = 9999  # printed as E0000: the number of no row

# The traits of methods.def in words; RECORD and GLOBAL first say something about the result and the parameters.
TRAITS = {
    "COMMAND": "deadline: the command's timeout, when it has one, + 5 s",
    "STREAM": "goes on after its answer, until the exit notification",
    "SANDBOX": "a bare -32002 is E2009",
    "KILL": "-32002 is success",
    "RECORD": "answers a sandbox record",
    "GLOBAL": "no sandbox_id",
    "CREATES": "a sandbox that comes after a cancel or a timeout is killed",
    "WATCH": "named by watch_id, given up by files.unwatch",
}


class TableError(Exception):
    """A table of the source does not look as expected."""


@dataclass(frozen=True)
class ErrorRow:
    number: int
    name: str
    python: str
    parent: str
    text: str
    hint: str

    @property
    def id(self) -> str:
        return "E0000" if self.number == GENERIC else f"E{self.number}"


@dataclass(frozen=True)
class ExitRule:
    """abx_error_exit_status(): ranges of numbers first, then single codes, then the rest."""

    ranges: list[tuple[int, int, int]]
    codes: dict[str, int]
    rest: int

    def status(self, row: ErrorRow) -> int:
        for low, high, status in self.ranges:
            if low <= row.number < high:
                return status
        return self.codes.get(row.name, self.rest)


@dataclass(frozen=True)
class Method:
    name: str
    feature: str
    idempotent: bool
    fallback: str | None
    traits: list[str]


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def arguments(text: str, start: int) -> tuple[list[str], int]:
    """The arguments of a macro call whose "(" is at start, and the position behind its ")"."""
    args = [""]
    depth, i = 0, start
    while i < len(text):
        string = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, i)
        if string:
            args[-1] += string.group()
            i = string.end()
            continue
        char = text[i]
        i += 1
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return [a.strip() for a in args], i
        if char == "," and depth == 1:
            args.append("")
        elif not (char == "(" and depth == 1):
            args[-1] += char
    raise TableError(f"a row is not closed: {text[start : start + 60]!r}")


def calls(text: str, macro: str) -> list[list[str]]:
    found, at = [], 0
    pattern = re.compile(rf"\b{macro}(?=\()")
    while match := pattern.search(text, at):
        args, at = arguments(text, match.end())
        found.append(args)
    return found


def literal(arg: str) -> str | None:
    """The text of adjoining C string literals; None for NULL."""
    if arg == "NULL":
        return None
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"', arg)
    if not parts or re.sub(r'"(?:[^"\\]|\\.)*"', "", arg).strip():
        raise TableError(f"{arg!r} is no string")
    return re.sub(r"\\(.)", r"\1", "".join(parts))


def text_of(arg: str) -> str:
    value = literal(arg)
    if value is None:
        raise TableError("NULL where a text is expected")
    return value


def error_rows(root: Path) -> list[ErrorRow]:
    text = (root / "include/abx/error.h").read_text(encoding="utf-8")
    match = re.search(r"#define ABX_ERROR_MAP\(X\)((?:[^\n]*\\\n)*[^\n]*)", text)
    if not match:
        raise TableError("include/abx/error.h: there is no ABX_ERROR_MAP")
    rows = []
    for args in calls(match.group(1).replace("\\\n", "\n"), "X"):
        if len(args) != 6:
            raise TableError(f"include/abx/error.h: a row has {len(args)} members: {args}")
        number, name, *texts = args
        rows.append(ErrorRow(int(number), name, *(text_of(t) for t in texts)))
    if not rows:
        raise TableError("include/abx/error.h: ABX_ERROR_MAP has no rows")
    return sorted(rows, key=lambda row: row.id)


def exit_rule(root: Path) -> ExitRule:
    text = without_comments((root / "src/base/err.c").read_text(encoding="utf-8"))
    match = re.search(r"^int abx_error_exit_status\(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    if not match:
        raise TableError("src/base/err.c: there is no abx_error_exit_status()")
    body = match.group(1)
    pattern = r"code <= -(\d+) && code > -(\d+)\)\s*return (\d+);"
    ranges = [(int(a), int(b), int(s)) for a, b, s in re.findall(pattern, body)]
    codes: dict[str, int] = {}
    rest, waiting = None, []
    for label, status in re.findall(r"case (\w+):|default:|return (\d+);", body[body.index("switch") :]):
        if label:
            waiting.append(label)
        elif status:
            codes.update({name.removeprefix(CODE_PREFIX): int(status) for name in waiting if name.startswith(CODE_PREFIX)})
            rest, waiting = int(status), []  # the last one is default's
    if rest is None or not codes:
        raise TableError("src/base/err.c: the rule of abx_error_exit_status() was not understood")
    return ExitRule(ranges, codes, rest)


def methods(root: Path) -> list[Method]:
    text = without_comments((root / "src/provider/methods.def").read_text(encoding="utf-8"))
    rows = []
    for args in calls(text, "METHOD"):
        if len(args) != 6:
            raise TableError(f"src/provider/methods.def: a row has {len(args)} members: {args}")
        traits = [t.strip() for t in args[5].split("|") if t.strip() != "0"]
        if unknown := [t for t in traits if t not in TRAITS]:
            raise TableError(f"src/provider/methods.def: {args[0]} has unknown traits {unknown}")
        rows.append(Method(text_of(args[0]), text_of(args[1]), args[2] == "1", literal(args[3]), traits))
    return rows


def features(root: Path) -> list[str]:
    """The first string of each row, whatever the row's macro is called."""
    text = without_comments((root / "src/provider/features.def").read_text(encoding="utf-8"))
    found = re.findall(r'^[ \t]*\w+\(\s*"([^"]+)"', text, re.MULTILINE)
    if not found or len(set(found)) != len(found):
        raise TableError("src/provider/features.def has no rows, or one twice")
    return found


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [row(*head), row(*["---"] * len(head)), *(row(*r) for r in rows)]


def errors_page(root: Path) -> str:
    rule, rows = exit_rule(root), error_rows(root)
    known = {r.name for r in rows}
    if lost := sorted(set(rule.codes) - known):
        raise TableError(f"src/base/err.c names codes that the map lacks: {lost}")
    lines = [
        "# Errors",
        "",
        NOTICE,
        "",
        "An error has a code, a message and often a suggestion. The command prints `[CODE] message` on stderr and the",
        'suggestion on the line below; with `--json` it prints `{"error": {"code", "message", "suggestion", "docs_url"}}`.',
        "In C a function that fails returns the constant, which is the negative number of the code, and an `abx_error` with",
        "the facts; -1 to -999 are -errno and show as E0000. The class is the one of the Python SDK, with its parent.",
        "",
        "The text stands in when an error came without a message of its own, the suggestion when it came without one.",
        "",
        "`abx exec` and `abx run` exit with the code of their command (128 + signal when one ended it). Every other failure",
        "exits with the status of the table; wrong usage and a doctor that found something exit with 2.",
        "",
    ]
    cells = [
        [r.id, f"`{CODE_PREFIX}{r.name}`", f"{r.python} ({r.parent})", r.text, r.hint, str(rule.status(r))] for r in rows
    ]
    lines += table(["code", "C constant", "class (parent)", "text", "suggestion", "exit"], cells)
    return "\n".join(lines) + "\n"


def notes(method: Method) -> str:
    parts = [f"-32601: `{method.fallback}` is called instead"] if method.fallback else []
    return "; ".join(parts + [TRAITS[t] for t in method.traits])


def features_page(root: Path) -> str:
    names, all_methods = features(root), methods(root)
    if lost := sorted({m.feature for m in all_methods} - set(names)):
        raise TableError(f"src/provider/methods.def uses features that features.def lacks: {lost}")
    lines = [
        "# Features and methods",
        "",
        NOTICE,
        "",
        "A manifest lists the features of its provider in `features.supported`; the handshake may take some away. A call",
        "whose feature is missing is E8004 and reaches nobody. The order is the one of every list that abx prints.",
        "A feature without methods is an option of `sandbox.create`, or is not called by this version.",
        "",
    ]
    of = {n: [f"`{m.name}`" for m in all_methods if m.feature == n] for n in names}
    lines += table(["feature", "methods"], [[f"`{n}`", " ".join(of[n])] for n in names])
    lines += [
        "",
        "## Methods",
        "",
        "Only an idempotent method is ever tried again, and only when the plugin's error says `retryable`.",
        "Parameters and results are in [epp.md](epp.md).",
        "",
    ]
    cells = [
        [f"`{m.name}`", f"`{m.feature}`", "yes" if m.idempotent else "no", notes(m)]
        for n in names
        for m in all_methods
        if m.feature == n
    ]
    lines += table(["method", "feature", "idempotent", "notes"], cells)
    return "\n".join(lines) + "\n"


def differences(path: Path, want: str) -> list[str]:
    have = path.read_text(encoding="utf-8") if path.exists() else ""
    return list(difflib.unified_diff(have.splitlines(), want.splitlines(), f"{path.name} as it is", "as it should be", "", "", 0, ""))


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes docs/errors.md and docs/features.md.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page differs")
    args = parser.parse_args()
    try:
        pages = {"errors.md": errors_page(args.root), "features.md": features_page(args.root)}
    except (TableError, OSError) as e:
        print(f"gendocs: {e}", file=sys.stderr)
        return 1
    stale = False
    for name, text in pages.items():
        path = args.root / "docs" / name
        if not args.check:
            path.write_text(text, encoding="utf-8")
        elif diff := differences(path, text):
            stale = True
            print("\n".join(diff), file=sys.stderr)
    if stale:
        print("Run tools/gendocs.py and commit what it wrote.", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
