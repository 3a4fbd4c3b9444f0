#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Only ops that ran are checked. The isolated test of transfers skips compute ops, so it must not check their outputs.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
for precision in bf16 fp8; do
    run 0 "$GSWBENCH" --config tiny-llama --ranks 2 --comm local --backend host --steps 2 --warmup 0 --layers 1 --quiet \
        --set run.check=ops --set run.verify=full --precision $precision
    expect '^RESULT DEGRADED'
done
finish
