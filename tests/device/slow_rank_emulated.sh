#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A rank whose GPU is 6 % slow must be named. A rank that is 1 % slow must not be, nor any other rank. The emulated GPU
# has its own clock, with 10 % noise per item, so the load of the CPU has no effect. Otherwise the run measures as on a
# real GPU, with events around waits, also in captured steps. GSWBENCH_SLOW_RUNS is the number of runs of each kind;
# docs/method.md reports 20.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"

runs=${GSWBENCH_SLOW_RUNS:-1}
arguments=(--config tiny-llama --verbose --backend cuda --comm nccl --deterministic --layers 1 --steps 25 --warmup 5
    --set run.verify=light --set trace.steps=0 "${small[@]}" --set train.micro_batch=1 --set train.global_batch=4)
run_on_own_device() {
    export FAKE_DEVICE=$OMPI_COMM_WORLD_RANK NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK
    export FAKE_SLOW=0
    [ "$OMPI_COMM_WORLD_RANK" != "$SLOW_RANK" ] || FAKE_SLOW=$SLOW_PERCENT
    exec "$GSWBENCH" "$@"
}
export -f run_on_own_device

launch() {    # launch RANK PERCENT [ARGUMENT...]: makes RANK slow by PERCENT
    export SLOW_RANK=$1 SLOW_PERCENT=$2
    shift 2
    run 0 mpirun -np 4 bash -c 'run_on_own_device "$@"' run "${arguments[@]}" "$@"
}

for ((i = 1; i <= runs; i++)); do
    slow=$((i % 4))
    launch $slow 6 --set run.graphs=on
    expect "^(note|degraded): slow-rank: rank $slow \(.*\) computes [4-8]\.[0-9] % longer than the median of the 4 ranks"
    [ "$(grep -c slow-rank: output)" -eq 1 ] || complain 'not one rank is named'
    expect "^ranks: .*computes longest: rank $slow \(.*\) \+[4-8]\.[0-9]% to its peers, at least \+[0-9.]+%$"
    launch $slow 1
    unexpected slow-rank
done

# Pipeline stages have different ops, so ranks must be compared only within their stage. Rank 0, which is named, has two
# small ops less than its neighbour, 1 % of the time of such a small model. With run.compute_times = no, ranks record no
# events and none is named.
launch 0 8 --set run.graphs=off --set parallel.pp=2 --set parallel.dp=2 --layers 4
expect '^(note|degraded): slow-rank: rank 0 \(.*\) computes [4-9]\.[0-9] % longer than the median of the 2 ranks'
[ "$(grep -c slow-rank: output)" -eq 1 ] || complain 'not one rank is named'
launch 1 6 --set run.compute_times=no
unexpected 'slow-rank|computes longest'
finish
