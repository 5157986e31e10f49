#!/bin/sh
# The tour of the README: installs what is missing, builds, and walks through the main job with the
# example provider, in a private ABX_HOME that is removed at the end.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
tools/deps.sh
[ -f "$build/build.ninja" ] || meson setup "$build" -Dtests=false >&2
ninja -C "$build" >&2

ABX_HOME=$(mktemp -d)
export ABX_HOME
trap 'rm -rf "$ABX_HOME"' EXIT
trap 'exit 130' INT TERM
abx=$PWD/$build/cli/abx
case "$build" in /*) abx=$build/cli/abx ;; esac

step() { printf '\n\033[1m$ abx %s\033[0m\n' "$*"; }
[ -t 1 ] || step() { printf '\n$ abx %s\n' "$*"; }
tour() { step "$@"; "$abx" "$@"; }

# The consent screen is for a person in a terminal: script(1) lends one, and the answer is typed.
step provider install ./examples/providers/local-process
answer() { sleep 1; echo y; }
answer | script -qec "'$abx' provider install ./examples/providers/local-process" /dev/null
tour provider list
step create --provider local-process
ref=$("$abx" create --provider local-process)
echo "$ref"
tour exec "$ref" -- sh -c 'for i in 1 2 3; do echo "line $i"; done; echo "to stderr" >&2'
step "files put - $ref:/note.txt"
echo 'kept in the sandbox' | "$abx" files put - "$ref:/note.txt"
tour files cat "$ref:/note.txt"
tour list --provider local-process
tour kill "$ref"
tour provider uninstall local-process --purge
