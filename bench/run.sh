#!/bin/sh
# One table: abx beside the reference, on this machine, in this run.
#
# usage: bench/run.sh [BUILD]. ABX_BENCH_PYTHON names a Python with agent-sandbox-client; without it
# only abx is measured, its package with python3. ABX_BENCH_MANY (500) is the number of sandboxes of the last part.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}-bench
many=${ABX_BENCH_MANY:-500}
python=${ABX_BENCH_PYTHON:-}
tools/deps.sh python
[ -f "$build/build.ninja" ] || meson setup "$build" -Dtests=false -Dbench=true -Dbuildtype=release >&2
meson configure "$build" -Dpython=on >/dev/null
ninja -C "$build" >&2
case "$build" in /*) ;; *) build=$PWD/$build ;; esac
abx=$build/cli/abx
package=$build/package/agent_sandbox
rm -rf "$build/package" && mkdir -p "$package"
ln -s "$PWD"/python/agent_sandbox/* "$build/python/_abx.abi3.so" "$package"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export HOME="$work" ABX_HOME="$work/.abx" ABX_PROVIDER_UPDATE_CHECK=0
mkdir "$work/plugin" "$work/tree"
cp bench/plugin/abx-provider.toml bench/plugin/init.json "$build/bench/plugin" "$work/plugin/"
"$abx" provider install "$work/plugin" --yes >&2
python3 bench/trees.py "$work/tree"

{
    "$build/bench/abx-bench" bench "$many"
    python3 bench/commands.py "$work" "$abx"
} >"$work/abx.txt"
PYTHONPATH=$build/package "${python:-python3}" bench/api.py bench "$many" >"$work/abx-python.txt"
: >"$work/reference.txt"
if [ -n "$python" ]; then
    # The reference has no notion of ABX_HOME: its store is under HOME, which is this one too.
    { "$python" bench/api.py bench "$many"; python3 bench/commands.py "$work" "$python" -m agent_sandbox.providers; } >"$work/reference.txt"
fi
python3 bench/table.py c "$work/abx.txt" "$work/reference.txt"
echo
python3 bench/table.py python "$work/abx-python.txt" "$work/reference.txt"
