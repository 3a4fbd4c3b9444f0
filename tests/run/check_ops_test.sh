#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.check = ops checks only ops that ran. The isolated test of collectives skips compute ops, so their outputs must
# not be checked there.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
for precision in bf16 fp8; do
    run 0 "$GSWBENCH" --config tiny-llama --ranks 2 --comm local --backend host --steps 2 --warmup 0 --layers 1 --quiet \
        --set run.check=ops --set run.verify=full --precision $precision
    expect '^RESULT DEGRADED'
done
finish
