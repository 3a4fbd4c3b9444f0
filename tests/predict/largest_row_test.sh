#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The largest published row is planned, verified and predicted in seconds and in less than 2 GB: each command stops when
# it takes more.
set -euo pipefail
export OPENBLAS_NUM_THREADS=1    # its buffers count as memory, and there are as many as cores
ulimit -v 2097152 -t 20
for precision in bf16 fp8; do
    row=(--config llama3.1-405b --ranks 2048 --set "precision.compute=$precision")
    "$GSWBENCH" check "${row[@]}" | grep "verified       2048 ranks"
    "$GSWBENCH" predict "${row[@]}" --no-range | grep "predicted "
done
