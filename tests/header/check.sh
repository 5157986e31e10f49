#!/bin/sh
# Each public header compiles alone, as pedantic C11 and as C++.
set -eu
cd "$(dirname "$0")/../.."
passed=0
for h in include/abx/*.h include/abx/sys/*.h; do
    ${CC:-cc} -std=c11 -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c "$h"
    ${CXX:-c++} -std=c++20 -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ "$h"
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
