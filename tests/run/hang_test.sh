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

# The next pipeline stage waits for a send that is skipped, and the stage that skipped it waits for a gradient.
run 7 mpirun --allow-run-as-root -np 4 "$GSWBENCH" run --config tiny-llama --backend host --comm mpi --steps 1000 \
    --set parallel.pp=4 --set train.global_batch=6 --set train.micro_batch=1 --set run.output=results \
    --set run.hang_seconds=2 --set fault.kind=skip --set fault.rank=2 --set fault.step=3 --set 'fault.at="residual send"'
expect '^gswbench: hang: rank 2 \(.*: the others wait for it; no progress for [23]\.[0-9] s; last: step 3, '

# A slow rank and a long delay are no hangs.
run 0 "${job[@]}" --steps 20 --set run.hang_seconds=2 --set fault.kind=slow --set fault.rank=1 --set fault.amount=200
expect '^RESULT DEGRADED'
run 0 "${job[@]}" --steps 5 --set run.hang_seconds=4 --set fault.kind=delay --set fault.rank=1 --set fault.amount=2 \
    --set fault.step=3
expect '^RESULT DEGRADED'

# The output is a pipe that nobody reads, with room for the first lines only. The watchdog ends the run, and so does
# SIGTERM.
job=("$GSWBENCH" run --config tiny-llama --layers 1 --backend host --ranks 2 --steps 100000 --set trace.steps=0)
mkfifo pipe
exec 7<>pipe
timeout 10 head -c 61000 /dev/zero >&7 || true    # a pipe may hold only 4 KiB
code=0
timeout -k 9 60 "${job[@]}" --out first --set run.hang_seconds=1 >pipe 2>output || code=$?
[ $code -eq 7 ] || complain "exit code $code, not 7, of a hanging run"
expect '^gswbench: hang: rank 0 .*; last: at file standard output; 1 other waits$'
timeout -k 9 60 "${job[@]}" --out second >pipe 2>output &
process=$! code=0
until [ -n "$(find second -name run.jsonl 2>/dev/null)" ] || ! kill -0 $process; do
    sleep 0.1
done
sleep 1    # now the run waits for the pipe
kill -TERM $process
wait $process || code=$?
[ $code -eq 12 ] || complain "exit code $code, not 12, after SIGTERM"
expect '^gswbench: stopped during a step by SIGTERM: the result is in second/.*, but nobody reads standard output$'
run 0 "$GSWBENCH" report "$(dirname "$(find second -name run.jsonl)")"
expect '^RESULT PARTIAL'
finish
