#!/bin/sh
# Builds everything into a directory: tools/build.sh [DIR [MESON-OPTION…]]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
[ $# -eq 0 ] || shift
tools/deps.sh
[ -f "$build/build.ninja" ] || meson setup "$build" "$@" >&2
ninja -C "$build" >&2
