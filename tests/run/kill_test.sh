#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# If a run is killed or gets a signal at any time, all its ranks end within seconds, and each step that it printed is in
# its journal. GSWBENCH_KILLS and GSWBENCH_SIGNALS are the numbers of kills and of other signals.
# shellcheck source=tests/support/script.sh
. "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
command -v mpirun >/dev/null || exit 77

RANDOM=11
launch=(mpirun --allow-run-as-root -np 4)
job=("$GSWBENCH" run --verbose --config tiny-llama --layers 1 --backend host --warmup 1 --comm mpi
    --steps 2000 --set trace.steps=0 --set parallel.fsdp=4 --set run.output="$folder/results")
ranks() { pgrep -f "^$GSWBENCH run .*$folder/results" | sort -n || true; }
now() { echo "${EPOCHREALTIME/./}"; }

begin() {    # begin SECONDS [ARGUMENT...]: starts a job with these arguments, and waits SECONDS
    local seconds=$1 own
    shift
    rm -rf results
    : >output    # the loops below must not see the steps of the job before
    # Each launcher has its own TMPDIR. Otherwise processes that a killed launcher left could remove the session folder
    # of the next launcher. Until its exec, a subshell may lose signals and run the exit trap of this script.
    own=$(mktemp -d "$folder/XXX")
    (trap - EXIT && exec env TMPDIR="$own" "${launch[@]}" "${job[@]}" "$@") >output 2>&1 </dev/null &
    launcher=$!
    while [ "$(cat /proc/$launcher/comm 2>/dev/null)" = bash ]; do
        sleep 0.01
    done
    sleep "$seconds"
}

ends() {    # ends WITHIN_MS: the launcher returns an error, no rank is left, and no printed step is lost
    local code=0 began took left printed kept run
    began=$(now)
    # Polls, because a sleep in the background would be a subshell until its exec, and if that is killed, it runs the
    # exit trap of this script.
    for _ in {1..600}; do
        kill -0 "$launcher" 2>/dev/null || break
        sleep 0.05
    done
    kill -KILL "$launcher" 2>/dev/null || true
    wait "$launcher" 2>/dev/null || code=$?
    took=$((($(now) - began) / 1000))
    [ $code -ne 0 ] || complain "the launcher says that all is well"
    [ $took -le "$1" ] || complain "the launcher took $took ms"
    for _ in {1..100}; do
        left=$(ranks | wc -l)
        [ "$left" -gt 0 ] || break
        sleep 0.1
    done
    [ "$left" -eq 0 ] || complain "$left processes are left after 10 s"
    run=$(find results -name config.merged.ini -printf '%h\n' 2>/dev/null || true)
    printed=$(grep -c '^completed step: ' output) || true
    [ "$printed" -gt 0 ] || return 0
    [ -f "$run/result.json" ] || "$GSWBENCH" report --recover "$run" >recovered 2>&1 || complain "not recovered" recovered
    kept=$(($(wc -l <"$run/steps.csv") - 1))
    [ "$kept" -ge "$printed" ] || complain "$kept steps are kept of $printed that were printed"
    "$GSWBENCH" report "$run" >shown 2>&1 || complain "no result" shown
    grep -q '^RESULT PARTIAL' shown || complain "the result is not partial" shown
    worst=$((took > worst ? took : worst))
}

worst=0
for ((i = 0; i < ${GSWBENCH_KILLS:-3}; i++)); do
    begin "$((RANDOM % 2)).$((RANDOM % 9 + 1))"
    mapfile -t processes < <(ranks)
    [ ${#processes[@]} -eq 0 ] || kill -KILL "${processes[RANDOM % ${#processes[@]}]}"
    [ ${#processes[@]} -gt 0 ] || kill -KILL $launcher    # no rank has started
    ends 5000
done
echo "the slowest of ${GSWBENCH_KILLS:-3} kills took $worst ms"

# All ranks are killed at once, so only the journal is left.
begin 0
until grep -q '^completed step: ' output; do
    sleep 0.1
done
run=$(find results -name run.jsonl -printf '%h\n')
code=0
"$GSWBENCH" report --recover "$run" >recovered 2>&1 || code=$?
[ $code -eq 2 ] || complain "exit code $code for a run that is not over" recovered
expect 'its run is not over: wait, or stop it with SIGINT' recovered
[ ! -e "$run/steps.csv" ] || complain "a run that is not over was recovered"
# shellcheck disable=SC2046
kill -KILL $(ranks)
wait $launcher 2>/dev/null || true
run 2 "$GSWBENCH" report "$run"
expect 'has no result: its run died or still runs; gswbench report --recover writes a partial result'
run 0 "$GSWBENCH" report --recover "$run"
expect '^RESULT PARTIAL'
expect '^partial: died: the run died; [0-9]+ of 2000 steps are in its journal$'
run 2 "$GSWBENCH" report --recover "$run"
expect "$run: nothing to recover: the run is over, and its result.json has [0-9]+ of 2000 steps: type gswbench report $run\$"
run 0 "$GSWBENCH" report "$run"

# A run can also die while it writes its files. Incomplete or missing files must not prevent the recovery. A complete
# result.json is kept, even if it is not a result of this version.
truncate -s 100 "$run/result.json"
rm "$run/ranks.csv"
run 0 "$GSWBENCH" report --recover "$run"
expect '^partial: died: the run died; [0-9]+ of 2000 steps are in its journal$'
[ -f "$run/ranks.csv" ] || complain "a missing file is not written"
echo '{"schema": "of another version"}' >"$run/result.json"
run 3 "$GSWBENCH" report --recover "$run"
expect ': to recover the run from its journal, move this file away$'

# Only the launcher is killed. Ranks end and save no further checkpoint, whether or not a script runs between launcher
# and ranks.
cat >script <<'END'
"$@"
true
END
own=("${launch[@]}")
for script in '' script; do
    launch=("${own[@]}" ${script:+bash "$script"})
    begin 0 --quiet --set checkpoint.save="$folder/saved" --set checkpoint.every=1 --set checkpoint.asynchronous=yes
    until ls saved/step-*/manifest.json >/dev/null 2>&1; do
        sleep 0.1
    done
    kill -KILL $launcher
    sleep 0.5    # the watchdog polls every 0.1 s, and a write may have started
    whole=$(ls saved/step-*/manifest.json)
    sleep 2.5
    [ -z "$(ranks)" ] || complain "ranks are left 3 s after their launcher"
    [ "$whole" = "$(ls saved/step-*/manifest.json)" ] || complain "a checkpoint was saved after the launcher's end"
    "$GSWBENCH" report "$(find results -name run.jsonl -printf '%h\n')" >shown 2>&1 || complain "no result" shown
    expect '^partial: died: stopped during a step by the end of its launcher; [0-9]+ of 2000 steps are in its journal$' shown
    rm -r saved
done
launch=("${own[@]}")

# The signals arrive within a step that takes a minute. They end the run, after SIGUSR2 has asked for its status.
for signal in TERM HUP; do
    begin 0 --set fault.kind=delay --set fault.rank=2 --set fault.step=3 --set fault.amount=60
    until grep -q '^completed step: 2,' output; do
        sleep 0.1
    done
    sleep 0.5    # now the run is in step 3
    kill -USR2 "$(ranks | head -1)"
    sleep 0.5
    kill -$signal "$(ranks | head -1)"
    ends 5000
    expect '^gswbench: rank 2 \(.*, pid [0-9]+, state .\): step 3, op [0-9]+ .*; last progress [0-9.]+ s ago$'
    expect "^partial: died: stopped during a step by SIG($signal|TERM); 3 of 2000 steps are in its journal\$"
done

# Sends any signal to one rank, to all ranks or to the launcher, at any time, and sometimes twice.
signals=(TERM INT HUP USR1)
for ((i = 0; i < ${GSWBENCH_SIGNALS:-3}; i++)); do
    signal=${signals[RANDOM % 4]} whom=$((RANDOM % 3)) twice=$((RANDOM % 3))
    begin "$((RANDOM % 2)).$((RANDOM % 9 + 1))"
    until [ $signal != USR1 ] || [ -n "$(ranks)" ]; do    # mpirun forwards USR1 to its ranks, so one must exist
        sleep 0.02
    done
    mapfile -t processes < <(ranks)
    case $whom in
    0) [ ${#processes[@]} -eq 0 ] || processes=("${processes[RANDOM % ${#processes[@]}]}") ;;
    1) processes=("$launcher") ;;
    esac
    [ ${#processes[@]} -gt 0 ] || processes=("$launcher")
    kill -$signal "${processes[@]}" 2>/dev/null || true
    if [ $twice -eq 0 ]; then
        sleep 0.05
        kill -$signal "${processes[@]}" 2>/dev/null || true
    fi
    ends 5000
done

# After a signal before the first step, there is nothing to keep.
begin 0
until [ -n "$(ranks)" ]; do
    sleep 0.02
done
kill -TERM "$(ranks | head -1)"
ends 5000
unexpected '^(completed step|RESULT)'

# The time limit expires between short steps, then within a long step. On a busy machine the start alone may take
# seconds, so the limit is doubled until the run reaches this state. The model is small, so that steps are short.
limited() {    # limited PATTERN [ARGUMENT...]: expects this line of a run that its time limit ends
    local limit pattern=$1
    shift
    for limit in 1 2 4 8 16 32; do
        run 12 "$GSWBENCH" run --verbose --config tiny-llama --layers 1 "${small[@]}" --backend host --ranks 2 \
            --steps 100000 --set trace.steps=0 --out results --time-limit $limit "$@"
        ! grep -qE "$pattern" output || break
    done
    expect "$pattern"
}
limited '^partial: stopped: stopped after step [0-9]+ by its time limit$'
expect '^RESULT PARTIAL'
limited '^partial: died: stopped during a step by its time limit; 2 of 100000 steps are in its journal$' \
    --set fault.kind=delay --set fault.rank=1 --set fault.step=2 --set fault.amount=60

# If the disk is full, a run that gets SIGTERM reports that it has no result, and how to recover one.
disk=$GSWBENCH_BINARY_DIR/tests/libfaulty_disk.so
[ -f "$disk" ] || finish
rm -rf results
: >output
LD_PRELOAD=$disk FAULTY_NAME=steps.csv FAULTY_CALL=1 FAULTY_ERRNO=28 "$GSWBENCH" run --config tiny-llama --layers 1 --backend host \
    --ranks 2 --steps 100000 --set trace.steps=0 --out results --set fault.kind=delay --set fault.rank=1 --set fault.step=2 \
    --set fault.amount=60 >output 2>&1 </dev/null &
process=$! code=0
until grep -qs '^completed step: 1,' output || ! kill -0 $process; do
    sleep 0.1
done
kill -TERM $process
wait $process || code=$?
[ $code -eq 9 ] || complain "exit code $code, not 9, on a full disk"
expect '^gswbench: stopped during a step by SIGTERM: cannot write results/.*/steps.csv: No space left on device: when this is mended, type gswbench report --recover results/'
run 0 "$GSWBENCH" report --recover "$(find results -name run.jsonl -printf '%h\n')"
expect '; 2 of 100000 steps are in its journal$'
finish
