#!/bin/bash
# SPDX-License-Identifier: MIT
# Compares ptxas' report for every sm_90a kernel with kernel_resources.txt. A kernel must be listed, must not spill
# registers, and may use at most 8 registers more than recorded. --record rewrites the file.
set -euo pipefail

source_dir=${GSWBENCH_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${GSWBENCH_BINARY_DIR:-$source_dir/build/release}
table=$source_dir/tests/device/kernel_resources.txt
reports=("$build"/kernels/CMakeFiles/gswbench_kernels.dir/*.cu.o.report)
[ -e "${reports[0]}" ] || { echo "skipped: this build has no CUDA"; exit 77; }

# Prints a line per kernel: registers, bytes spilled, bytes of static shared memory, file and kernel. The mangled name
# of an anonymous namespace has a hash that changes with the file.
list_kernels() {
    awk '/Compiling entry function/    { is_ours = /sm_90a/ }
         /Function properties for/     { name = $NF }
         /bytes spill stores/          { spilled = $5 + $9 }
         / Used [0-9]+ registers/ && is_ours {
             file = FILENAME; sub(/.*\//, "", file); sub(/\.cu.*/, "", file)
             shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART) + 0 : 0
             match($0, /Used [0-9]+/)
             print substr($0, RSTART + 5, RLENGTH - 5), spilled, shared, file, name }' "${reports[@]}" |
        c++filt | sed -e 's/(anonymous namespace):://g' -e 's/([a-z_]*_args.*$//' -e 's/ void / /' | LC_ALL=C sort -k4
}

if [ "${1:-}" = --record ]; then
    echo "# Registers, bytes spilled, bytes of static shared memory, file and kernel, for sm_90a" > "$table"
    list_kernels >> "$table"
    exit
fi
list_kernels | awk '
    { key = $0; sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", key) }
    FNR == NR && !/^#/ { registers[key] = $1; spilled[key] = $2 }
    FNR == NR { next }
    !(key in registers) { print key ": not in the table"; bad = 1; next }
    $1 > registers[key] + 8 { print key ": " $1 " registers, recorded are " registers[key]; bad = 1 }
    $2 > spilled[key] { print key ": spills " $2 " bytes, recorded are " spilled[key]; bad = 1 }
    { seen++ }
    END { if (seen == 0) { print "no kernel was found"; bad = 1 }
          print bad ? "where that is meant: tests/device/kernel_resources_test.sh --record" : seen " kernels as recorded"
          exit bad }' "$table" -
