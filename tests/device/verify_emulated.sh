#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests verification on GPUs that sum in a random order. The emulated cuDNN sums dQ over 32 blocks of keys in an order
# that is drawn for each call and block of rows, and the emulated NCCL uses another order in CUDA graphs. Correct runs
# and preflights must name no rank. A rank must be named with the op, before any step, if its dQ is wrong by 1 % of the
# norm, lacks a head, or has a flipped exponent bit. A wrong AdamW update must be found although gradients do not
# repeat.
# GSWBENCH_VERIFICATIONS is the number N of runs without a fault. There are N / 5 preflights, and N / 5 runs with each
# fault. Eight runs cover all layouts, precisions and models, with and without a CUDA graph.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
runs=${GSWBENCH_VERIFICATIONS:-8} some=$((${GSWBENCH_VERIFICATIONS:-8} / 5)) bad=3
export GSWBENCH LD_LIBRARY_PATH=$GSWBENCH_BINARY_DIR/tests/device/emulated/cudnn GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
job=(--config tiny-llama --backend cuda --comm nccl "${small[@]}" --set train.sequence=128 --set train.micro_batch=1)
arguments=("${job[@]}" --verbose --layers 2 --steps 2 --warmup 0 --set trace.steps=0)
run_on_own_device() {
    export FAKE_DEVICE=$OMPI_COMM_WORLD_RANK NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK
    [ "$OMPI_COMM_WORLD_RANK" = "${BAD_RANK:-none}" ] || unset FAKE_DQ
    exec "$GSWBENCH" "$@"
}
export -f run_on_own_device
launch() {    # launch CODE RANKS [ARGUMENT...]: runs gswbench on RANKS ranks and expects the exit code
    run "$1" mpirun -np "$2" bash -c 'run_on_own_device "$@"' run "${@:3}"
}

# Each run takes the next number of ranks, layout, model and precision, and captures the step or not.
layouts=('1' '2 dp' '2 fsdp' '4 dp' '4 fsdp')
for ((i = 0; i < runs; i++)); do
    read -r ranks axis <<<"${layouts[i % 5]}"
    options=(--set train.global_batch="$ranks" --set run.seed="$i" --set run.graphs=$([ $((i % 2)) -eq 0 ] && echo on || echo off))
    [ -z "$axis" ] || options+=(--set parallel.dp=1 --set "parallel.$axis=$ranks")
    if [ $((i / 2 % 2)) -eq 1 ]; then
        options+=(--set model.family=mixtral --set model.experts=4 --set model.top_k=2 --set model.capacity_factor=2)
        [ "$ranks $axis" != '2 dp' ] || options+=(--set parallel.ep=2)
    fi
    [ $((i / 4 % 2)) -eq 0 ] || options+=(--precision fp8)
    launch 0 "$ranks" run "${arguments[@]}" "${options[@]}"
    expect '^RESULT (VALID|DEGRADED)'
    expect '^proven: the numbers of ([0-9]+) of \1 steps, on (1 rank|all [24] ranks), run twice: loss and gradients within '
done

for ((i = 0; i < some; i++)); do
    launch 0 4 preflight "${job[@]}" --layers 1 --set train.global_batch=4 --set run.seed="$i" --seconds 1
    expect '^numbers: .* or within [0-9.e-]+ of the norm for ops that are not deterministic$'
    unexpected '^outlier: .*isolated tests'
done

for fault in percent head flip; do
    for ((i = 0; i < some; i++)); do
        bad=$(((bad + 1) % 4))
        BAD_RANK=$bad FAKE_DQ=$fault launch 5 4 run "${arguments[@]}" --set train.global_batch=4 --set run.seed="$i"
        expect "^invalid: device-differs: rank $bad, isolated tests before the steps: op [0-9]+ attention_backward .*: differs from 3 of 4 ranks by"
        [ "$(grep -c '^invalid: ' output)" -eq 1 ] || complain "more than rank $bad is named"
    done
done
BAD_RANK=2 FAKE_DQ=percent launch 5 4 preflight "${job[@]}" --layers 1 --set train.global_batch=4 --seconds 1
expect '^outlier: device 2 of host [^ ]+: rank 2, isolated tests before the steps: op [0-9]+ attention_backward '

# A bit of a weight that AdamW wrote is flipped. Then a run uses gswbench's own attention, which repeats bit by bit.
launch 5 2 run "${arguments[@]}" --set train.global_batch=2 --set fault.kind=flip --set fault.at=adamw --set fault.step=1 \
    --set fault.bit=9 --set fault.element=1000 --set fault.rank=1
expect '^invalid: optimizer-differs: step 1, rank 1: op [0-9]+ adamw '
launch 0 2 run "${arguments[@]}" --set train.global_batch=2 --deterministic
expect ', on all 2 ranks, run twice: bit for bit'
finish
