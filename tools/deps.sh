#!/bin/sh
# Installs what building and testing need and what is missing, with apt; asks sudo when not root.
# tools/deps.sh [tests] [python]: python is for the package (pip install .), tests for both.
# Nothing is contacted when nothing is missing.
set -eu

packages=""
need() { # command-or-file package
    case "$1" in
    /*) [ -e "$1" ] && return 0 ;;
    *.pc) pkg-config --exists "${1%.pc}" 2>/dev/null && return 0 ;;
    *) command -v "$1" >/dev/null 2>&1 && return 0 ;;
    esac
    packages="$packages $2"
}

need cc gcc
need c++ g++
need pkg-config pkg-config
need meson meson
need ninja ninja-build
need git git
need python3 python3
need simdjson.pc libsimdjson-dev
need tomlplusplus.pc libtomlplusplus-dev
need libcrypto.pc libssl-dev
# The tests run under the distribution's interpreter, unless another one is named.
python=${ABX_TEST_PYTHON:-/usr/bin/python3}
case " $* " in *" python "* | *" tests "*)
    "$python" -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' 2>/dev/null ||
        packages="$packages python3-dev"
    "$python" -c 'import venv, ensurepip' 2>/dev/null || packages="$packages python3-venv"
    ;;
esac
case " $* " in *" tests "*)
    need cmocka.pc libcmocka-dev
    "$python" -c 'import pytest' 2>/dev/null || packages="$packages python3-pytest"
    "$python" -c 'import xdist' 2>/dev/null || packages="$packages python3-pytest-xdist"
    "$python" -c 'import uvloop' 2>/dev/null || packages="$packages python3-uvloop"
    ;;
esac

[ -n "$packages" ] || exit 0
sudo=""
if [ "$(id -u)" != 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null 2>&1 || { echo "missing packages:$packages; install them as root" >&2; exit 1; }
fi
echo "installing:$packages" >&2
$sudo apt-get update -q >&2
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends $packages >&2
