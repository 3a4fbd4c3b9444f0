#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Long runs. There must be no alarm while a rank takes three times the time of others, no growth of memory, no files
# left after a thousand runs, and 64 ranks must run on the cores of this machine. GSWBENCH_SOAK_SECONDS is the duration
# of the first part, 900 by default.
. "${BASH_SOURCE%/*}/../support/script.sh"
command -v mpirun >/dev/null || exit 77
seconds=${GSWBENCH_SOAK_SECONDS:-900}
tiny=(run --config tiny-llama --layers 1 --backend host --set trace.steps=0)

resident() {    # prints the resident memory of all ranks in KiB
    local sum=0 pid
    for pid in $(pgrep -f "^$GSWBENCH run .*soaked"); do
        sum=$((sum + $(awk '/^VmRSS:/ { print $2 }' "/proc/$pid/status")))
    done
    echo $sum
}
mpirun --allow-run-as-root --oversubscribe -np 4 "$GSWBENCH" "${tiny[@]}" --comm mpi --steps 1000000 --warmup 1 \
    --set parallel.fsdp=4 --set run.verify=quick --set run.hang_seconds=5 --set fault.kind=slow --set fault.rank=2 \
    --set fault.amount=200 --time-limit "$seconds" --quiet --set run.output=soaked >output 2>&1 </dev/null &
sleep $((seconds / 5))
early=$(resident)
sleep $((seconds * 3 / 5))
late=$(resident)
code=0
wait $! || code=$?
[ $code -eq 12 ] || complain "exit code $code"
expect '^partial: stopped: stopped after step [0-9]+ by its time limit$'
unexpected 'hang'
steps=$(grep -o '[0-9]* of 1000000 steps' output | head -1)
echo "$steps, resident $early KiB, later $late KiB"
# Each rank keeps 128 bytes per step.
allowed=$((early / 100 + 4 * ${steps%% *} * 128 / 1024))
[ $((late - early)) -le $allowed ] || complain "resident memory grew from $early to $late KiB"

left() { find /dev/shm -maxdepth 1 -regex '.*/gswbench-[0-9a-f]+-[0-9]+' | wc -l; }
before=$(left)
for ((i = 0; i < 1000; i++)); do
    "$GSWBENCH" "${tiny[@]}" --steps 1 --warmup 0 --quiet --out many >output 2>&1 </dev/null || complain "run $i"
done
[ "$(find many -name result.json | wc -l)" -eq 1000 ] || complain "not 1,000 results"
[ "$(left)" -le "$before" ] || complain "shared memory is left in /dev/shm"

began=$SECONDS
run 0 mpirun --allow-run-as-root --oversubscribe -np 64 "$GSWBENCH" "${tiny[@]}" --comm mpi --steps 3 --warmup 1 \
    --set train.micro_batch=1 --set train.global_batch=64 --set parallel.fsdp=8 --set parallel.dp=8 --out results
echo "64 ranks took $((SECONDS - began)) s"
[ $((SECONDS - began)) -le 60 ] || complain "64 ranks took $((SECONDS - began)) s"
finish
