#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Emulates, with a single rank, a job that was published for Llama 3.1 405B on 1024 GPUs: its mesh, layers and schedule,
# but small matrices. Pipeline stages with equal ops are executed only once, and every op must be measured.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"

shrink=(--set model.hidden=64 --set model.heads=16 --set model.kv_heads=8 --set model.head_dim=8 --set model.ffn=64
    --set model.vocab=128 --set train.sequence=128 --set train.global_batch=128
    --set train.accumulation=16 --set precision.compute=bf16)
run 0 "$GSWBENCH" run --verbose --config llama3.1-405b --emulate 1024 --backend host --repeat 1 --set run.threads=1 "${shrink[@]}" \
    --out results
expect '^# layout ranks 1024  tp 8  cp 2  dp 8  pp 8$'
expect '^RESULT EMULATED 1024 ranks emulated on one device: [2-8] of 8 stages executed, '
expect '([0-9]+) of \1 ops of the busiest stage are measured'
expect '^  bubble +[0-9.]+ s'
expect '^  exposed-cp +[0-9.]+ s'    # tp communication may be hidden by slow GEMMs, so no line is expected for it

# GEMMs leave 16 SMs free, so collectives on these SMs do not slow them down.
run 0 "$GSWBENCH" run --verbose --config tiny-llama --emulate 4 --backend host --repeat 1 --gpu h100-sxm \
    --set run.threads=1 --set run.sm_margin=16 --set hardware.contention=0 --set hardware.node_bandwidth=1e8 \
    --set parallel.dp=4 --out results
expect '^  exposed-dp +[0-9.]+ s'
unexpected '^  contention'
finish
