#!/bin/bash
# SPDX-License-Identifier: MIT
# Compiles the kernels that state a minimum number of blocks per SM for all architectures of a default build. ptxas
# rejects a bound that needs more threads than an SM has. That is 1,536 for compute capability 8.9 and 12.0, and 2,048
# for the others.
set -euo pipefail

source_dir=${GSWBENCH_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || { echo "skipped: no nvcc"; exit 77; }
files=$(grep -lE '__launch_bounds__\([^()<]*, ' "$source_dir"/kernels/*.cu)
[ -n "$files" ] || { echo "no kernel states a number of blocks"; exit 1; }
for architecture in $("$nvcc" --list-gpu-code | grep -xE 'sm_(80|89|100|120)'); do
    for file in $files; do
        echo "${file##*/} for $architecture"
        "$nvcc" -I "$source_dir/include" -O3 -Werror all-warnings -arch "$architecture" -cubin -o /dev/null "$file"
    done
done
