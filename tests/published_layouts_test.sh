#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every published system's layout, with its axes and options but small sizes, trains on 8 ranks: as threads and, where MPI
# is built in, as processes. 50 steps that must be VALID, and the same losses both ways.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# As few layers, heads and tokens as the axes allow. What stays the published system's own: block kinds, recompute,
# optimizer, precision, kinds of sharding and overlap.
shrink=(--set model.hidden=64 --set model.heads=8 --set model.kv_heads=4 --set model.head_dim=8 --set model.ffn=64
    --set model.vocab=128 --set model.vocab_multiple=1 --set train.sequence=64 --set run.layers=4 --set run.threads=1
    --set train.learning_rate=1e-3 --set run.steps=50 --set run.warmup=5 --set run.seed=3)

has_mpi=no
if command -v mpirun >/dev/null && "$GSWBENCH" run --help | grep -q 'auto, mpi'; then
    has_mpi=yes
fi

failures=0
expect_valid() {
    local name=$1 log=$2
    if ! grep -q '^RESULT VALID .* 50 steps' "$log"; then
        echo "FAILED: $name"
        grep RESULT "$log" || tail -5 "$log"
        failures=$((failures + 1))
    fi
}

# A line a layout: name, configuration, what is set for 8 ranks.
while read -r name config options; do
    # shellcheck disable=SC2086
    arguments=(--config "$config" "${shrink[@]}" $options)
    "$GSWBENCH" run "${arguments[@]}" --ranks 8 --comm local --out threads </dev/null >"$name.threads" 2>&1 || true
    expect_valid "$name as threads" "$name.threads"
    if [ "$has_mpi" = yes ]; then
        mpirun -np 8 --bind-to none "$GSWBENCH" run "${arguments[@]}" --out processes </dev/null >"$name.processes" 2>&1 || true
        expect_valid "$name as processes" "$name.processes"
        if ! diff <(grep -o 'loss: .*, phase' "$name.threads") <(grep -o 'loss: .*, phase' "$name.processes") >"$name.diff"; then
            echo "FAILED: $name: threads and processes train differently"
            failures=$((failures + 1))
        fi
    fi
done <<'LAYOUTS'
maxtext-fsdp      llama2-70b-fsdp          --set parallel.fsdp=8 --set train.global_batch=16
maxtext-hsdp      llama2-70b-fsdp          --set parallel.fsdp=4 --set parallel.dp=2 --set train.global_batch=16
llama-8b          llama3.1-8b              --set parallel.dp=4 --set parallel.cp=2 --set train.accumulation=4 --set train.global_batch=16
titan-8b          torchtitan-llama3-8b     --set parallel.fsdp=8 --set train.global_batch=8
titan-8b-op       torchtitan-llama3-8b-selective-op --set parallel.fsdp=8 --set train.global_batch=8
titan-70b         torchtitan-llama3-70b    --set parallel.fsdp=8 --set train.global_batch=8
titan-405b        torchtitan-llama3.1-405b --set parallel.tp=4 --set parallel.fsdp=2 --set train.global_batch=4
titan-405b-async  torchtitan-llama3.1-405b-async-tp --set precision.compute=bf16 --set parallel.tp=4 --set parallel.fsdp=2 --set train.global_batch=4
llama-70b         llama3.1-70b             --set parallel.tp=2 --set parallel.pp=2 --set parallel.vp=2 --set parallel.cp=2 --set parallel.dp=1 --set train.accumulation=4 --set train.global_batch=4
llama-405b        llama3.1-405b            --set parallel.tp=2 --set parallel.pp=2 --set parallel.vp=3 --set parallel.cp=2 --set parallel.dp=1 --set train.accumulation=4 --set train.global_batch=4
nemotron          nemotron4-340b           --set parallel.tp=2 --set parallel.pp=2 --set parallel.vp=2 --set parallel.dp=2 --set train.accumulation=4 --set train.global_batch=8
LAYOUTS
exit $((failures > 0))
