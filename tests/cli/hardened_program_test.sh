#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ELF hardening: position-independent, read-only relocations, non-executable stack, fortified functions, and library
# paths that are only the system's and those of the link.
set -euo pipefail
command -v readelf >/dev/null || exit 77
headers=$(readelf --wide --file-header --program-headers --dynamic "$GSWBENCH")
symbols=$(readelf --wide --dyn-syms "$GSWBENCH")

expect() {    # expect WHAT TEXT REGULAR-EXPRESSION
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

# No library is loaded from the current folder.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for library in $(sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' <<<"$headers"); do
    echo "no library" >"$library"
done
"$GSWBENCH" --version >/dev/null

# The program reports the linker's build id.
build=$(readelf -n "$GSWBENCH" | sed -n 's/.*Build ID: //p')
if [ -n "$build" ] && ! "$GSWBENCH" --version | grep -qx "build $build"; then
    echo "FAILED: readelf says build $build, the program:"
    "$GSWBENCH" --version
    exit 1
fi
