#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests failures during traced steps, with a fake CUPTI that reports planted times. The result of the measured steps
# must be kept, a rank that hangs must be named, and the time of an op must include the host's work for it.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
cupti=$GSWBENCH_BINARY_DIR/tests/device/emulated/cupti
[ -d "$cupti" ] || { echo "skipped: the toolkit has no header of CUPTI"; is_finished=yes; exit 77; }
arguments=(run --verbose --config tiny-llama --backend cuda --layers 2 --steps 3 --warmup 1 --trace all "${small[@]}"
    --set train.micro_batch=1 --set train.global_batch=2)
traced() {    # traced EXIT_CODE FAILURE ARGUMENT...: runs the job with this FAILURE of the fake CUPTI
    rm -f log
    FAKE_CUPTI=$2 FAKE_CUPTI_LOG=$PWD/log LD_LIBRARY_PATH=$cupti run "$1" "$GSWBENCH" "${arguments[@]}" "${@:3}"
}

# If tracing fails, the result and its files must be written, and the exit code must report the failure.
traced 4 flush --set trace.source=cupti
expect '^RESULT (VALID|DEGRADED)'
expect '^note: trace-failed: \[trace\] source = cupti: cuptiActivityFlushAll: refused on command'
expect '^gswbench: \[trace\] source = cupti: cuptiActivityFlushAll: refused on command \(999\); or set source = auto or events'
expect '^files: '
kept=$(dirname "$(result result.json)")
expect '"status": "(valid|degraded)"' "$kept/result.json"
expect '"id": "trace-failed"' "$kept/result.json"
for file in steps.csv ranks.csv report.html; do
    [ -s "$kept/$file" ] || complain "no $file"
done
[ ! -e "$kept/trace.json" ] || complain 'a trace is there'
run 0 "$GSWBENCH" report "$kept"
expect '^RESULT (VALID|DEGRADED)'

# Traced steps must reuse the buffer of the first one. The fake CUPTI counts the buffers that it gets, and how many of
# them were used before: only the first may be new.
traced 0 pieces --set trace.steps=3
[[ $(cat log) =~ ([0-9]+)\ of\ ([0-9]+)\ buffers ]] && [ "${BASH_REMATCH[2]}" = $((BASH_REMATCH[1] + 1)) ] ||
    complain 'a step made buffers' log

# If one rank cannot use CUPTI, the other ranks detach it. No rank of their process may use the GPU during that.
traced 0 slow --set parallel.dp=2 --set run.ranks_per_device=2 --comm local
grep -qE ', 0 of [1-9][0-9]* calls since$' log || complain 'the device was used meanwhile' log

# A rank that hangs in a traced step must be named as in any other step.
traced 7 '' --set parallel.dp=2 --set run.ranks_per_device=2 --comm local --set run.hang_seconds=2 \
    --set fault.kind=spin --set fault.rank=1 --set fault.step=4 --set 'fault.at=fc1'
expect 'gswbench: hang: rank 1 \(.*\): the others wait for it; no progress for [2-4]\.[0-9] s; last: step 4, .*fc1'

# If data goes through host memory, the time of a receive must include the host's wait for the sender, here about 0.7 s.
rank() { FAKE_DEVICE=$OMPI_COMM_WORLD_RANK exec "$GSWBENCH" "$@"; }
export -f rank
LD_LIBRARY_PATH=$cupti run 0 mpirun -np 2 bash -c 'rank "$@"' rank "${arguments[@]}" --comm mpi --set parallel.pp=2 \
    --set fault.kind=delay --set fault.rank=0 --set fault.step=4 --set fault.amount=0.7 --set 'fault.at=fc1'
python3 - "$(result trace.json)" >check 2>&1 <<'CHECK' || complain 'the wait is lost' check
import json, sys
slices = [event for event in json.load(open(sys.argv[1]))["traceEvents"] if event["ph"] == "X"]
received = [event["dur"] for event in slices if event["pid"] == 1 and event["args"]["kind"] == "receive"]
sent = [event["dur"] for event in slices if event["pid"] == 0 and event["args"]["kind"] == "send"]
assert 5e5 < max(received) < 9e5, received
assert len(sent) == len(received) and sorted(received)[-2] < 2e5, (sent, received)
CHECK
finish
