#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One rank of this machine stands for a published row of Llama 3.1 405B on 1024 GPUs: its mesh, layers and schedule, with
# small sizes. All that it computes is measured, on every stage that differs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

shrink=(--set model.hidden=64 --set model.heads=16 --set model.kv_heads=8 --set model.head_dim=8 --set model.ffn=64
    --set model.vocab=128 --set train.sequence=128 --set train.global_batch=128
    --set train.accumulation=16 --set precision.compute=bf16)
"$GSWBENCH" run --config llama3.1-405b --emulate 1024 --backend host --repeats 1 --set run.threads=1 "${shrink[@]}" \
    --out results >log || { cat log; exit 1; }

expect() {    # expect PATTERN: a line of the report
    if ! grep -Eq "$1" log; then
        echo "expected a line like: $1"
        cat log
        exit 1
    fi
}
expect '^# config llama3.1-405b .* ranks 1024  tp 8  cp 2  dp 8  pp 8$'
expect '^RESULT EMULATED  1024 ranks by one device: [2-8] of 8 stages executed, [0-9.]+% of the step measured$'
expect '([0-9]+) of \1 ops of the busiest stage are measured'
expect '^  bubble +[0-9.]+ s'
expect '^  exposed-tp +[0-9.]+ s'
