#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A run on the emulated GPU must continue from its checkpoint bit by bit. A run on the host must be able to continue
# from it, too.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"

arguments=(run --config tiny-llama --layers 1 --warmup 0 --json --set trace.steps=0 "${small[@]}"
    --set train.micro_batch=1 --set train.global_batch=2 --set train.accumulation=auto --set run.verify=light
    --set run.cache=cache --deterministic)
losses() { python3 -c 'import json, sys; print(*[step["loss"] for step in json.load(open("output"))["steps"]])'; }

for precision in bf16 fp8; do
    rm -rf saved
    run 0 "$GSWBENCH" "${arguments[@]}" --backend cuda --precision $precision --steps 4
    whole=$(losses)
    run 0 "$GSWBENCH" "${arguments[@]}" --backend cuda --precision $precision --steps 2 --set checkpoint.save=saved
    first=$(losses)
    run 0 "$GSWBENCH" "${arguments[@]}" --backend cuda --precision $precision --steps 2 --set checkpoint.load=saved \
        --set checkpoint.save=saved --set checkpoint.asynchronous=yes
    [ "$first $(losses)" = "$whole" ] || complain "$precision: $first $(losses), not $whole"
    run 0 "$GSWBENCH" checkpoint verify saved
    expect '^saved: step 4, [0-9]* tensors in [0-9]* slices of 1 file, .*: whole$'
    run 0 "$GSWBENCH" "${arguments[@]}" --backend host --precision $precision --steps 1 --set checkpoint.load=saved
done
finish
