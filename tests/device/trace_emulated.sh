#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the times of ops in traced steps. A fake CUPTI reports planted times. If it fails on command, events must time
# the ops.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
cupti=$GSWBENCH_BINARY_DIR/tests/device/emulated/cupti
[ -d "$cupti" ] || { echo "skipped: the toolkit has no header of CUPTI"; is_finished=yes; exit 77; }
arguments=(run --verbose --config tiny-llama --backend cuda --layers 1 --steps 3 --warmup 1 --trace all "${small[@]}"
    --set train.micro_batch=1 --set train.global_batch=2)
traced() {    # traced EXIT_CODE FAILURE LIBRARY ARGUMENT...: runs the job with this FAILURE of the fake CUPTI
    rm -f log
    FAKE_CUPTI=$2 FAKE_CUPTI_LOG=$PWD/log LD_LIBRARY_PATH=$3 run "$1" "$GSWBENCH" "${arguments[@]}" "${@:4}"
}
ops() { grep -c '"ph": "X"' "$(result trace.json)"; }
by() {    # by SOURCE LOST: expects in all outputs of the last run that SOURCE timed the ops, with LOST records lost
    expect "\"timed_by\": \"$1\"" "$(result result.json)"
    expect "\"lost_records\": $2," "$(result result.json)"
    expect "\"otherData\": {\"timed_by\": \"$1\", \"lost_records\": $2}" "$(result trace.json)"
    expect "ops timed by $(sed s/cupti/CUPTI/ <<<"$1")" "$(result report.html)"
    expect "^where a step goes: .*, ops timed by $(sed s/cupti/CUPTI/ <<<"$1")$"
}

# Only the ops of the two traced steps may push correlation ids, and CUPTI must be off afterwards.
traced 0 '' "$cupti"
expect '^RESULT (VALID|DEGRADED)'
unexpected 'trace-events|trace-lost'
by cupti 0
[ "$(cat log)" = "attached 1, 0 kinds left, $((2 * $(ops))) pushed" ] || complain 'it was used otherwise' log

# Times must equal the planted ones, converted to the program's clock. An op without records takes no time, and is
# placed after the op before it.
cat >check.py <<'CHECK'
import json, sys
slices = [event for event in json.load(open(sys.argv[1]))["traceEvents"]
          if event["ph"] == "X" and event["pid"] == int(sys.argv[2])]
assert len(slices) > 20
slices.sort(key=lambda event: event["args"]["op"])
first, before = slices[0]["ts"], {}
assert 900 < first < 60000, first
for n, event in enumerate(slices):
    begin, took = event["ts"], event["dur"]
    assert event["args"]["op"] == n, event
    if n % 7 == 3:
        assert took == 0 and begin > before.get(event["tid"], 0) - 0.0005, event
    else:
        assert abs(begin - first - 10 * n) < 0.05 * 10 * n + 0.002, (n, first, event)
        assert abs(took - (2 * (n % 3) + 1)) < 0.3, (n, event)
    before[event["tid"]] = begin + took
CHECK
python3 check.py "$(result trace.json)" 0 >check 2>&1 || complain 'other times' check
result=$(result result.json) trace=$(result trace.json)
python3 - "$result" "$trace" >check 2>&1 <<'SUMS' || complain 'other sums' check
import json, sys
ops = json.load(open(sys.argv[1]))["waterfall"]["op_times"]
slices = [event for event in json.load(open(sys.argv[2]))["traceEvents"] if event["ph"] == "X"]
for op in ops:
    own = [event["dur"] for event in slices if (event["args"]["kind"], event["cat"]) == (op["kind"], op["phase"])]
    assert len(own) == op["count"] and abs(1e-6 * sum(own) - op["time_s"]) < 1e-9 * len(own), op
SUMS

LD_LIBRARY_PATH=$cupti run 0 "$GSWBENCH_BINARY_DIR/tests/trace_device"
expect '^[0-9]+ ops: [0-9.]+ us by CUPTI, [0-9.]+ us by events, [0-9]+ without work$'

# Lost records must be counted, if CUPTI reports them and if a record has no times.
traced 0 drop "$cupti"
by cupti 5
expect '^note: trace-lost: CUPTI lost 5 records of traced steps: ops may have taken longer than shown$'
traced 0 untimed "$cupti"
by cupti 1

# If CUPTI is not available, events must time the ops, and the result must say why.
mkdir broken
touch broken/libcupti.so.{12,13,14}
declare -A reasons=([taken]='cuptiSubscribe: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED \(39\): a profiler or debugger has it, run without one'
    [enable]='cuptiActivityEnable: refused on command \(35\)' [flush]='cuptiActivityFlushAll: refused on command \(999\)'
    [dlopen]='libcupti\.so\.1[0-9] cannot be loaded .*')
for failure in "${!reasons[@]}"; do
    library=$cupti
    [ $failure != dlopen ] || library=$PWD/broken
    traced 0 $failure "$library"
    expect '^RESULT (VALID|DEGRADED)'
    expect "^note: trace-events: ops of the traced step are timed by events, not by CUPTI: ${reasons[$failure]}"
    expect '"id": "trace-events"' "$(result result.json)"
    by events 0
    [ $failure = flush ] || traced 4 $failure "$library" --set trace.source=cupti
    [ $failure = flush ] || expect "\[trace\] source = cupti: ${reasons[$failure]}.*; or set source = auto or events "
done
[ ! -e log ] || complain 'what another has was closed' log

# trace.source selects CUPTI or events. If a profiler is detected, the run must not use CUPTI, which the profiler needs.
traced 0 '' "$cupti" --set trace.source=events
by events 0
unexpected trace-events
[ ! -e log ] || complain 'it was used' log
traced 0 '' "$cupti" --set trace.source=cupti
by cupti 0
[ "$(cat log)" = "attached 1, 0 kinds left, 0 pushed
attached 1, 0 kinds left, $((2 * $(ops))) pushed" ] || complain 'it was used otherwise' log
traced 0 '' "$cupti" --set trace.source=cupti --trace 0 --set trace.steps=1
[ "$(tail -1 log)" = "attached 1, 0 kinds left, $(ops) pushed" ] || complain 'it was used otherwise' log
NSYS_PROFILING_SESSION_ID=1 traced 0 '' "$cupti"
expect '^note: trace-events: .*not by CUPTI: a profiler already uses CUPTI on rank 0 \(NSYS_PROFILING_SESSION_ID is set\): run without the profiler'
NSYS_PROFILING_SESSION_ID=1 traced 4 '' "$cupti" --set trace.source=cupti
expect '\[trace\] source = cupti: a profiler already uses CUPTI on rank 0 \(NSYS_PROFILING_SESSION_ID is set\)'
traced 3 '' "$cupti" --backend host --set trace.source=cupti
expect '\[trace\] source = cupti: backend host has no device; or set source = auto or events'

# All ranks of a job must use one source of times. Two ranks with communication streams use CUPTI. Then one rank cannot
# use it, and finally two ranks of one process cannot.
rank() {    # rank NUMBER=FAILURE ARGUMENT...: sets FAILURE on rank NUMBER
    [ $OMPI_COMM_WORLD_RANK != "${1%=*}" ] || export FAKE_CUPTI=${1#*=}
    FAKE_DEVICE=$OMPI_COMM_WORLD_RANK exec "$GSWBENCH" "${@:2}"
}
export -f rank
together() {    # together NUMBER=FAILURE: runs two ranks with FAILURE on rank NUMBER
    LD_LIBRARY_PATH=$cupti run 0 mpirun -np 2 bash -c 'rank "$@"' together "$1" "${arguments[@]}" --set parallel.dp=2
    expect '^RESULT (VALID|DEGRADED)'
}
together 0=
by cupti 0
for number in 0 1; do
    python3 check.py "$(result trace.json)" $number >check 2>&1 || complain "other times of rank $number" check
done
together 1=drop
by cupti 5
together 1=enable
by events 0
expect '^note: trace-events: .*not by CUPTI: rank 1: cuptiActivityEnable: refused on command'
traced 0 '' "$cupti" --set parallel.dp=2 --set run.ranks_per_device=2 --comm local
by events 0
expect '^note: trace-events: .*another rank of this process uses CUPTI: launch one process per rank'
finish
