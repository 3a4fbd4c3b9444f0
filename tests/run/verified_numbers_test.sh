#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Verification must not change a run. An unverified run must have the same losses and gradient norms, even with 24
# ranks, where a difference between replicas would grow from step to step.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
numbers() { sed -n 's/^completed step.*, \(loss: .*, grad_norm: .*\)/\1/p' output; }
for layout in 'dp=24' 'dp=3 fsdp=8' 'dp=12 tp=2' 'dp=24 zero=1'; do
    arguments=(--config tiny-llama --ranks 24 --comm local --backend host --steps 3 --warmup 0 --layers 1 --set trace.steps=0
        --set train.micro_batch=1 --set train.global_batch=24)
    for axis in $layout; do
        arguments+=(--set "parallel.$axis")
    done
    run 5 "$GSWBENCH" "${arguments[@]}" --set run.verify=off
    alone=$(numbers)
    [ "$(wc -l <<<"$alone")" = 3 ] || complain "no numbers of $layout"
    for verify in quick full; do
        run 0 "$GSWBENCH" "${arguments[@]}" --set run.verify=$verify
        [ "$(numbers)" = "$alone" ] || complain "other numbers with verify = $verify of $layout than: $alone"
    done
done
finish
