#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Ops that are checked one by one are those that ran: an exam of transfers, which leaves out what computes, finds nothing
# in what such ops would have written.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
for precision in bf16 fp8; do
    run 0 "$GSWBENCH" --config tiny-llama --ranks 2 --comm local --backend host --steps 2 --warmup 0 --layers 1 --quiet \
        --set run.check=ops --set run.verify=full --precision $precision
    expect '^RESULT DEGRADED'
done
finish
