#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks and predicts the largest published row within 20 s of processor time and 2 GB per command.
set -euo pipefail
export OPENBLAS_NUM_THREADS=1    # each thread would allocate buffers of the 2 GB
ulimit -v 2097152 -t 20
for precision in bf16 fp8; do
    row=(--config llama3.1-405b --ranks 2048 --set "precision.compute=$precision")
    "$GSWBENCH" check "${row[@]}" | grep "verified       2048 ranks"
    "$GSWBENCH" predict "${row[@]}" --no-range | grep "predicted "
done
