#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# If a rank stops, spins or skips a collective, the watchdog names it and the job ends with exit code 7. A slow rank is
# no hang. GSWBENCH_HANGS is the number of cases of each kind.
# shellcheck source=tests/support/script.sh
. "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
command -v mpirun >/dev/null || exit 77

RANDOM=7
job=(mpirun --allow-run-as-root -np 4 "$GSWBENCH" run --config tiny-llama --layers 1 --backend host --warmup 1 --comm mpi
    --set trace.steps=0 --set parallel.fsdp=2 --set parallel.dp=2 --set run.output=results)
anywhere=('"fc1"' 'attention gradient' adamw 'mlp norm' 'head weight gradient')
collectives=('gradient reduce-scatter' 'weight gather' 'gradient norm reduce' 'loss reduce' 'gradient reduce"')
worst=0
for kind in stop spin skip; do
    for ((i = 0; i < ${GSWBENCH_HANGS:-1}; i++)); do
        at=${collectives[RANDOM % 5]} rank=$((RANDOM % 4)) step=$((RANDOM % 8 + 1))
        [ $kind = skip ] || [ $((RANDOM % 2)) = 0 ] || at=${anywhere[RANDOM % 5]}
        begin=${EPOCHREALTIME/./}
        run 7 "${job[@]}" --steps 1000 --set run.hang_seconds=2 --set fault.kind=$kind --set fault.rank=$rank \
            --set fault.step=$step --set "fault.at=$at"
        took=$(((${EPOCHREALTIME/./} - begin) / 1000))
        [ $took -le $worst ] || worst=$took
        expect "^gswbench: hang: rank $rank \(.*, pid [0-9]+, state .\): .* no progress for [23]\.[0-9] s; last: (step $step, op [0-9]+ |(after|between ops of) step $step;)"
        [ "$(grep -c '^gswbench: ' output)" = 1 ] || complain "more than one message"
        [ $kind != stop ] || expect ', state T\): its process is stopped; '
    done
done
echo "the slowest of $((3 * ${GSWBENCH_HANGS:-1})) took $worst ms"

# A slow rank and a long delay are no hangs.
run 0 "${job[@]}" --steps 20 --set run.hang_seconds=2 --set fault.kind=slow --set fault.rank=1 --set fault.amount=200
expect '^RESULT DEGRADED'
run 0 "${job[@]}" --steps 5 --set run.hang_seconds=4 --set fault.kind=delay --set fault.rank=1 --set fault.amount=2 \
    --set fault.step=3
expect '^RESULT DEGRADED'
finish
