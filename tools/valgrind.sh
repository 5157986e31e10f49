#!/bin/sh
# The unit tests and the command's tests under valgrind: tools/valgrind.sh [DIR]
#
# Children run natively: they are plugins, not ours. test_proc and test_store need pidfd_open(), which the
# valgrind of Debian 12 does not know: they are left to the sanitizers.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
tools/deps.sh tests
[ -f "$build/build.ninja" ] || meson setup "$build" >&2
ninja -C "$build" >&2
here=$(pwd)
case "$build" in /*) bin=$build ;; *) bin=$here/$build ;; esac
export ABX_TEST_BUILD="$bin" ABX_TEST_SOURCE="$here"
grind="valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --track-fds=no"
for t in "$bin"/tests/unit/test_*; do
    case "$t" in *.p | */test_proc | */test_store) continue ;; esac
    echo "$(basename "$t")" >&2
    $grind "$t" >/dev/null
done
# The command itself, through a wrapper that the tests take for it.
# What valgrind says goes to files: the tests read the command's stderr.
work=$(mktemp -d)
trap 'grep -h "^==" "$work"/log.* >&2 2>/dev/null || true; rm -rf "$work"' EXIT
wrapper=$work/abx
printf '#!/bin/sh\nexec %s --log-file="%s/log.%%p" "%s/cli/abx" "$@"\n' "$grind" "$work" "$bin" >"$wrapper"
chmod +x "$wrapper"
ABX_TEST_SLOW=4 ABX_TEST_BIN="$wrapper" ${ABX_TEST_PYTHON:-/usr/bin/python3} -m pytest -q -p no:cacheprovider -n 2 tests/cli -k "flow or local_process"
echo "valgrind: clean"
