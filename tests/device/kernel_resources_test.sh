#!/bin/bash
# SPDX-License-Identifier: MIT
# Compares the registers that ptxas reports for every sm_90a kernel with kernel_resources.txt. A kernel must be listed,
# must not spill more than recorded, and may use at most 8 registers more than recorded. --record rewrites the file.
set -euo pipefail

source_dir=${GSWBENCH_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${GSWBENCH_BINARY_DIR:-$source_dir/build/release}
table=$source_dir/tests/device/kernel_resources.txt
reports=("$build"/kernels/CMakeFiles/gswbench_kernels.dir/*.cu.o.report)
[ -e "${reports[0]}" ] || { echo "skipped: this build has no CUDA"; exit 77; }

# Prints a line for each kernel: registers, bytes spilled, bytes of static shared memory, file, and name. The name is
# demangled without "(anonymous namespace)", because its mangled form has a hash that changes with the file.
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

# Kernels that differ only in their last template argument are in one row of the table.
if [ "${1:-}" = --record ]; then
    { sed '/^[^#]/d' "$table"
      list_kernels | awk '
        { numbers = $1 " " $2 " " $3; name = $0; sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", name); last = depth = 0
          for (i = length(name) - 1; name ~ />$/ && !last; i--) {
              letter = substr(name, i, 1)
              depth += (letter == ">") - (letter == "<")
              if (depth < 0 || (depth == 0 && letter == ",")) { last = i }
          }
          argument = last ? substr(name, last + 1, length(name) - last - 1) " " : ""
          sub(/^ /, "", argument)
          stem = last ? substr(name, 1, last) : name
          printf "%s | %s%s", stem == before ? "" : (NR > 1 ? "\n" : "") stem, argument, numbers
          before = stem }
        END { print "" }'; } > "$table.new"
    mv "$table.new" "$table"
    exit
fi
list_kernels | awk '
    FNR == NR && !/^#/ {
        count = split($0, part, " [|] ")
        for (i = 2; i <= count; i++) {
            argument = part[i]; sub(/ ?[0-9]+ [0-9]+ [0-9]+$/, "", argument)
            key = part[1] (argument == "" ? "" : (part[1] ~ /<$/ ? "" : " ") argument ">")
            words = split(part[i], word, " ")
            registers[key] = word[words - 2]; spilled[key] = word[words - 1]
        }
    }
    FNR == NR { next }
    { key = $0; sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", key) }
    !(key in registers) { print key ": not in the table"; bad = 1; next }
    $1 > registers[key] + 8 { print key ": " $1 " registers, recorded are " registers[key]; bad = 1 }
    $2 > spilled[key] { print key ": spills " $2 " bytes, recorded are " spilled[key]; bad = 1 }
    { seen++ }
    END { if (seen == 0) { print "no kernel was found"; bad = 1 }
          print bad ? "where that is meant: tests/device/kernel_resources_test.sh --record" : seen " kernels as recorded"
          exit bad }' "$table" -
