#!/usr/bin/env python3
"""Writes python/agent_sandbox/models/errors.py from ABX_ERROR_MAP of include/abx/error.h.

generrors.py [--check] [ROOT]: with --check nothing is written and a file that differs is an error."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from gendocs import GENERIC, ErrorRow, ExitRule, TableError, differences, error_rows, exit_rule

FILE = Path("python/agent_sandbox/models/errors.py")
BASE = "SandboxError"
WIDTH = 110

# Classes with a constructor of their own, and the hand-written class of _error_base.py that has it.
DETAILS = {
    "ProcessError": "ProcessDetails",
    "CapabilityNotSupportedError": "CapabilityDetails",
    "ProviderFeatureNotSupportedError": "FeatureDetails",
    "CommandNotFoundError": "CommandNameDetails",
    "EnvdRpcError": "EnvdDetails",
    "FileSizeLimitError": "LimitDetails",
}
# Classes that are something else besides their parent.
ALSO = {"ProviderFeatureNotSupportedError": ["CapabilityNotSupportedError"]}

HEAD = '''\
"""The errors, one class for each code, from broad to narrow.

Made by tools/generrors.py from include/abx/error.h; edit the list there, then run it.
"""

from __future__ import annotations

{imports}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any
'''

TAIL = '''\
BY_NUMBER: dict[int, type[SandboxError]] = {{
{table}
}}
"""The class of each code's number."""


def class_of(number: int) -> type[SandboxError]:
    """The class of a code's number; for one without a row that of its thousand, else SandboxError."""
    return BY_NUMBER.get(number) or BY_NUMBER.get(number // 1000 * 1000, SandboxError)


def from_core(
    code: int,
    message: str,
    suggestion: str = "",
    provider: str | None = None,
    method: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> SandboxError:
    """The error that the core reports by its negative number: -8004 for E8004, or -errno."""
    number = -code
    cls = class_of(number) if 1000 <= number < {generic} else SandboxError
    text = SandboxError.code if cls is SandboxError else f"E{{number}}"
    return build(cls, text, message, suggestion, provider, method, data)


__all__ = [
{names}
]
'''


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def attribute(name: str, text: str) -> list[str]:
    """A class attribute, its text over several lines when one is too long."""
    line = f"    {name} = {quoted(text)}"
    if len(line) <= WIDTH:
        return [line]
    parts = re.findall(rf".{{1,{WIDTH - 20}}}(?:\s+|$)", text)
    return [f"    {name} = (", *(f"        {quoted(part)}" for part in parts), "    )"]


def sentence(row: ErrorRow) -> str:
    text = row.text if row.python.startswith("Envd") else row.text[0].upper() + row.text[1:]
    return f'    """{text}: {row.id}."""'


def statuses(rows: list[ErrorRow], rule: ExitRule) -> dict[str, int]:
    """The exit status that each class has from its parent."""
    own = {row.python: rule.status(row) for row in rows}
    return {row.python: own[row.parent] for row in rows if row.parent in own}


def class_text(row: ErrorRow, rule: ExitRule, inherited: int) -> list[str]:
    own = [DETAILS[row.python]] if row.python in DETAILS else []
    bases = ", ".join([*own, row.parent, *ALSO.get(row.python, [])])
    lines = [f"class {row.python}({bases}):", sentence(row), "", f'    code = "{row.id}"']
    if row.hint:
        lines += attribute("suggestion", row.hint)
    if rule.status(row) != inherited:
        lines.append(f"    exit_status = {rule.status(row)}")
    return [*lines, "", ""]


def page(root: Path) -> str:
    rows, rule = error_rows(root), exit_rule(root)
    known = {row.python for row in rows}
    if lost := sorted({*DETAILS, *ALSO} - known):
        raise TableError(f"the map has no class {', '.join(lost)}")
    if rows[0].number != GENERIC or rows[0].python != BASE:
        raise TableError(f"the first class of the map is not {BASE}")
    inherited, defined, lines = statuses(rows, rule), {BASE}, []
    for row in rows[1:]:
        if missing := {row.parent, *ALSO.get(row.python, [])} - defined:
            raise TableError(f"{row.python} comes before {', '.join(sorted(missing))}")
        defined.add(row.python)
        lines += class_text(row, rule, inherited[row.python])
    imports = ["from agent_sandbox.models._error_base import ("]
    imports += [f"    {name}," for name in sorted([BASE, *DETAILS.values()])] + ["    build,", ")"]
    head = HEAD.format(imports="\n".join(imports)) + "\n\n"
    table = "\n".join(f"    {row.number}: {row.python}," for row in rows[1:])
    names = "\n".join(f'    "{name}",' for name in ["BY_NUMBER", *sorted(known), "class_of", "from_core"])
    return head + "\n".join(lines) + "\n" + TAIL.format(table=table, names=names, generic=GENERIC)


def main() -> int:
    parser = argparse.ArgumentParser(description=f"Makes {FILE}.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the file differs")
    args = parser.parse_args()
    try:
        text = page(args.root)
    except (TableError, OSError) as e:
        print(f"generrors: {e}", file=sys.stderr)
        return 1
    path = args.root / FILE
    if not args.check:
        path.write_text(text, encoding="utf-8")
    elif diff := differences(path, text):
        print("\n".join([*diff, "Run tools/generrors.py and commit what it wrote."]), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
