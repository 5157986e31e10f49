#!/bin/sh
# Builds and runs every test: tools/test.sh [DIR [MESON-OPTION…]]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
[ $# -eq 0 ] || shift
tools/deps.sh tests
[ -f "$build/build.ninja" ] || meson setup "$build" "$@" >&2
# A directory that was set up before the tests could be built gets them now.
meson configure "$build" -Dtests=true -Dpython=on >/dev/null
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
# The package as it lies in the source, with the extension of this build.
package=$bin/package/agent_sandbox
rm -rf "$bin/package" && mkdir -p "$package"
ln -s "$here"/python/agent_sandbox/* "$bin/python/_abx.abi3.so" "$package"
# Under a sanitizer each process is checked; a leak is a failure of the test that made it. Freed memory is
# kept a little while only: some tests look at how much there is.
export ASAN_OPTIONS="${ASAN_OPTIONS:-quarantine_size_mb=8:thread_local_quarantine_size_kb=64}"
export ABX_TEST_BIN="$bin/cli/abx" ABX_TEST_BUILD="$bin" ABX_TEST_SOURCE="$here" ABX_TEST_PYTHONPATH="$bin/package" PYTHONDONTWRITEBYTECODE=1
run() { ${ABX_TEST_PYTHON:-/usr/bin/python3} -m pytest -q -p no:cacheprovider -n 4 ${PYTEST_ARGS:-} "$@"; }
case "$(meson introspect "$build" --buildoptions | tr -d '\n ')" in
*'"name":"b_sanitize","value":"none"'*)
    run tests
    ;;
*)  # The interpreter that loads a checked extension needs the checker first; its own memory is not looked at.
    run tests --ignore tests/python --ignore tests/contract
    export LD_PRELOAD="$(cc -print-file-name=libasan.so) $(cc -print-file-name=libubsan.so) $(cc -print-file-name=libstdc++.so)"
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
    run tests/python tests/contract
    ;;
esac
