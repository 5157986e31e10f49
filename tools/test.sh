#!/bin/sh
# Builds and runs every test: tools/test.sh [DIR [MESON-OPTION…]]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
[ $# -eq 0 ] || shift
tools/deps.sh tests
[ -f "$build/build.ninja" ] || meson setup "$build" "$@" >&2
# A directory that was set up before the tests could be built gets them now.
meson configure "$build" -Dtests=true >/dev/null
ninja -C "$build" >&2
meson test -C "$build" --print-errorlogs
# A PATH that su handed over may name directories of another user; what they hide is not under test.
path=""
old_ifs=$IFS; IFS=:
for dir in $PATH; do [ ! -x "$dir" ] || path=$path${path:+:}$dir; done
IFS=$old_ifs
export PATH="$path"
here=$(pwd)
case "$build" in /*) bin=$build ;; *) bin=$here/$build ;; esac
# Under a sanitizer each process is checked; a leak is a failure of the test that made it. Freed memory is
# kept a little while only: some tests look at how much there is.
export ASAN_OPTIONS="${ASAN_OPTIONS:-quarantine_size_mb=8:thread_local_quarantine_size_kb=64}"
ABX_TEST_BIN=$bin/cli/abx ABX_TEST_BUILD=$bin ABX_TEST_SOURCE=$here PYTHONDONTWRITEBYTECODE=1 \
    ${ABX_TEST_PYTHON:-/usr/bin/python3} -m pytest -q -p no:cacheprovider -n 4 ${PYTEST_ARGS:-} tests
