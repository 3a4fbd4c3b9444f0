#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests that the ELF file is hardened: position-independent code, read-only relocations, a stack that is not executable,
# and fortified functions. Libraries may come only from system folders and the folders given at link time.
set -euo pipefail
command -v readelf >/dev/null || exit 77
headers=$(readelf --wide --file-header --program-headers --dynamic "$GSWBENCH")
symbols=$(readelf --wide --dyn-syms "$GSWBENCH")

expect() {    # expect WHAT TEXT REGULAR-EXPRESSION: fails if no line of TEXT matches; WHAT is for the message
    grep -Eq "$3" <<<"$2" || { echo "$headers"; echo "$1: no $3"; exit 1; }
}
expect "loaded anywhere" "$headers" '^ *Type: +DYN'
expect "loaded anywhere" "$headers" 'FLAGS_1.* PIE'
expect "resolved before main" "$headers" 'FLAGS_1.*NOW'
expect "read-only after that" "$headers" '^ *GNU_RELRO'
expect "a stack without code" "$headers" '^ *GNU_STACK .* RW +0x'
expect "checked stacks" "$symbols" ' __stack_chk_fail(@|$)'
if grep -q '^GSWBENCH_SANITIZE:[A-Z]*=$' "$GSWBENCH_BINARY_DIR/CMakeCache.txt" &&
    ! grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Debug$' "$GSWBENCH_BINARY_DIR/CMakeCache.txt"; then
    expect "checked copies" "$symbols" ' __snprintf_chk(@|$)'
fi
if grep -E '\((RUNPATH|RPATH)\)' <<<"$headers" | grep -Ev '\[/[^]:]*(:/[^]:]*)*\]'; then
    echo "an entry of RUNPATH is empty or of the current folder"
    exit 1
fi

# The program must load no library from the current folder. Here, an invalid file has the name of each library.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for library in $(sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' <<<"$headers"); do
    echo "no library" >"$library"
done
"$GSWBENCH" --version >/dev/null

# --version must print the build id that the linker wrote.
build=$(readelf -n "$GSWBENCH" | sed -n 's/.*Build ID: //p')
if [ -n "$build" ] && ! "$GSWBENCH" --version | grep -qx "build $build"; then
    echo "FAILED: readelf says build $build, the program:"
    "$GSWBENCH" --version
    exit 1
fi
