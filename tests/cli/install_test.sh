#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An installed program must find its configurations and documents from any folder, and must not contain a path of the
# source tree.
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$GSWBENCH_BINARY_DIR" --prefix "$prefix" >/dev/null
cd /

"$prefix/bin/gswbench" configs >"$prefix/list"
grep -q llama2-70b-fsdp "$prefix/list" || { cat "$prefix/list"; echo "the installed configs are not found by name"; exit 1; }
"$prefix/bin/gswbench" check --config llama2-70b-fsdp --ranks 64 >/dev/null
[ ! -e "$GSWBENCH_BINARY_DIR/lib/gswbench/mpi.so" ] || ASAN_OPTIONS=detect_leaks=0 "$prefix/bin/gswbench" run --config tiny-llama --layers 1 --steps 1 \
    --warmup 0 --comm mpi --out "$prefix/results" >/dev/null
for file in doc/gswbench/{design.md,README.md,LICENSE,copyright} man/man1/gswbench.1 man/man5/gswbench.5 \
    bash-completion/completions/gswbench zsh/{site-functions,vendor-completions}/_gswbench gswbench/slurm/{job.sbatch,submit}; do
    test -s "$prefix/share/$file" || { echo "no $file is installed"; exit 1; }
done
"$prefix/bin/gswbench" options --man 1 | cmp - "$prefix/share/man/man1/gswbench.1"
"$prefix/bin/gswbench" options --completion bash | cmp - "$prefix/share/bash-completion/completions/gswbench"
test -f "$prefix/share/gswbench/configs/models/llama2-70b.ini"
if grep -q "$GSWBENCH_SOURCE_DIR/configs" "$prefix/bin/gswbench"; then
    echo "the installed program names the source folder"
    exit 1
fi
