#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs preflights of four emulated GPUs over NCCL. Without a fault, no GPU may be named. A GPU that is 10 % slow or
# computes wrong results must be named, and no other. Each GPU has an emulated clock with 2 % noise, so the load of the
# CPU has no effect. GSWBENCH_PREFLIGHTS is the number of preflights of each kind.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs GSWBENCH FAKE_VARY=2
arguments=(--config tiny-llama --layers 1 "${small[@]}" --set train.micro_batch=1 --set train.global_batch=4
    --backend cuda --comm nccl --seconds 4)
places=('gemm "qkv"' attention_forward)    # the faulty op; of equal ops, only the first one is tested
run_on_own_device() {
    export FAKE_DEVICE=$OMPI_COMM_WORLD_RANK NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK
    export FAKE_SLOW=0
    [ "$OMPI_COMM_WORLD_RANK" != "$SLOW_RANK" ] || FAKE_SLOW=10
    exec "$GSWBENCH" "$@"
}
export -f run_on_own_device

launch() {    # launch CODE SLOW_RANK [ARGUMENT...]: runs a preflight in which SLOW_RANK is 10 % slow
    export SLOW_RANK=$2
    run "$1" mpirun -np 4 bash -c 'run_on_own_device "$@"' preflight preflight "${arguments[@]}" "${@:3}"
    expect '^# preflight of tiny-llama: 4 ranks, cuda backend, nccl communicator'
    expect '^gemm bf16,bf16,bf16 .*FLOP/s, 4 devices$'
    expect '^device memory copy: .*B/s, 4 devices$'
    expect '^link within a node: .*B/s, [0-9]+ links'
}
expect_outliers() {    # expect_outliers PATTERN: expects that all outliers match PATTERN
    expect "^outlier: $1"
    ! unwrap output | grep '^outlier: ' | grep -vE "^outlier: $1" || complain "something else is named than $1"
    expect "^drain: $(hostname)$"
}

for ((i = 0; i < ${GSWBENCH_PREFLIGHTS:-1}; i++)); do
    launch 0 none
    expect '^drain: none$'
    unexpected '^outlier'

    launch 6 $((i % 4))
    expect_outliers "device $((i % 4)) of host [^ ]+ \\(rank $((i % 4))\\): (gemm|device memory copy|every link).* takes ([4-9]|1[0-9])\\.[0-9] % longer$"

    rank=$(((i + 1) % 4))
    launch 5 none --set fault.kind=flip --set "fault.at=${places[i % 2]}" --set fault.rank=$rank --set fault.bit=14
    expect_outliers "device $rank of host [^ ]+: rank $rank, isolated tests before the steps: "
done
finish
