#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A rank that stops or spins during a preflight must end the job with exit code 7 and one message that names the rank
# and its activity. In the test of numbers, a fault at an op makes a rank hang; elsewhere, signals at random times do.
# GSWBENCH_HANGS is the number of signals.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
command -v mpirun >/dev/null || exit 77
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs GSWBENCH
RANDOM=${GSWBENCH_SEED:-3}
job=(mpirun --allow-run-as-root -np 4 bash -c 'echo $$ >"pid.$OMPI_COMM_WORLD_RANK"; exec "$GSWBENCH" "$@"' job preflight
    --config tiny-llama --layers 1 --backend host --comm mpi --set run.hang_seconds=2 --set train.micro_batch=1
    --set train.global_batch=4 --set parallel.fsdp=2 --set parallel.dp=2)

expect_hang() {    # expect_hang RANK STATE WHY WHAT: one message names RANK, its process state, reason and activity
    expect "^gswbench: hang: rank $1 \([^ ]+, pid $(<"pid.$1"), state $2\): $3; no progress for [23]\.[0-9] s; last: $4; [0-9]+ others? wait$"
    [ "$(grep -c '^gswbench: ' output)" = 1 ] || complain "more than one message"
    unexpected '^drain:'
}

run 7 "${job[@]}" --set fault.kind=stop --set fault.rank=2 --set 'fault.at="fc1"'
expect_hang 2 T 'its process is stopped' 'numbers, op [0-9]+.*'
run 7 "${job[@]}" --set fault.kind=spin --set fault.rank=1 --set 'fault.at="fc1"'
expect_hang 1 '[RS]' 'the others wait for it' 'numbers, op [0-9]+ gemm "fc1".*'
run 7 "${job[@]}" --set fault.kind=spin --set fault.rank=3 --set 'fault.at=gradient reduce-scatter'
expect_hang 3 '[RS]' 'the others wait for it' 'numbers, op [0-9]+.*'

# There are more ranks than cores, so ranks take turns. A slow rank makes the preflight repeat its probes, so that it
# takes some seconds.
job[3]=12
job+=(--set train.global_batch=12 --set parallel.dp=6 --set fault.kind=slow --set fault.rank=1 --set fault.amount=30)
for ((i = 0; i < ${GSWBENCH_HANGS:-2}; i++)); do
    rank=$((RANDOM % 12))
    rm -f pid.*
    {
        for ((j = 0; j < 500; j++)); do
            [ ! -s "pid.$rank" ] || break
            sleep 0.02
        done
        sleep "$((RANDOM % 3 + 1)).$((RANDOM % 10))"
        kill -STOP "$(<"pid.$rank")"
    } &
    run 7 "${job[@]}"
    wait $! || complain "the preflight was over before rank $rank was stopped"
    expect_hang $rank T 'its process is stopped' '((opening|after) )?(gemm|copy|device memory copy|GEMMs|opening|all_|reduce_|link|a link|numbers).*'
done
finish
