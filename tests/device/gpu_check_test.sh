#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/gpu-check, with programs that only pretend: its verdicts, its exit codes, and what a kill leaves in its folder.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/built/{bin,bench,tests}

# A program of that name that does so.
pretend() {
    printf '#!/bin/sh\n%s\n' "$2" >"$folder/built/$1"
    chmod +x "$folder/built/$1"
}
# shellcheck disable=SC2016
bench='case $1 in
--list) printf "one\ntwo\ncopy\n" ;;
--device) echo "a pretended GPU" ;;
*) sleep 0.05; echo "{\"name\": \"$2\", \"seconds\": 1}" >>"$1"; echo "$2    1.000 ms" ;;
esac'
pretend_all() {
    pretend bin/gswbench "echo \"\$@\" >>$folder/commands"'
for i in $(seq 20); do echo "step: $i, loss: 1.$i,"; done; sleep 0.05'
    pretend bin/mpirun 'shift 2; [ "$1" != bash ] || shift 4; shift; for i in $(seq 20); do echo "step: $i, loss: 1.$i,"; done'
    pretend bench/bench_device_ops "$bench"
    pretend bench/bench_device_layer "$bench"
    pretend tests/ops_device 'sleep 0.05'
    pretend tests/step_device 'sleep 0.05'
    pretend bin/nvidia-smi 'case "$*" in *memory.total*) echo 143771 ;; *-lms*) exec sleep 100 ;; esac'
}
check() { (cd "$GSWBENCH_SOURCE_DIR" && PATH="$folder/built/bin:$PATH" timeout 120 scripts/gpu-check --built "$folder/built" --out "$folder/out" "$@"); }

failures=0
complain() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
expect() {    # expect CODE PATTERN [ARGUMENT...]: the exit code, and a line of the table
    local expected=$1 pattern=$2 code=0
    shift 2
    rm -rf "$folder/out"
    check "$@" >"$folder/printed" 2>&1 || code=$?
    if [ $code -ne "$expected" ] || ! grep -qE "$pattern" "$folder/out/table.txt"; then
        complain "exit code $code, not $expected with '$pattern'"
        cat "$folder/printed"
    fi
    expect_lines
}
expect_lines() {    # every line of JSON is whole
    if ! cat "$folder"/out/*.jsonl 2>/dev/null | python3 -c "import json, sys; [json.loads(line) for line in sys.stdin]"; then
        complain "a file of the folder has a broken line"
    fi
}

pretend_all
expect 0 '^test ops_device +[0-9]+ s  passed' --part 1
expect 0 '^layer two +[0-9]+ s  passed' --part 2
[ "$(grep -c '"name": "two"' "$folder/out/records.jsonl")" -ge 1 ] || complain "no record of a benchmark was kept"
pretend tests/ops_device 'echo "a GEMM is wrong"; exit 1'
expect 2 '^    a GEMM is wrong' --part 1
pretend_all
pretend bin/gswbench 'for i in $(seq 20); do echo "step: $i, loss: 2.$i,"; done'
expect 4 '^train two ranks over mpi +[0-9]+ s  failed' --part 1
pretend_all
for program in tests/ops_device tests/step_device bench/bench_device_ops bench/bench_device_layer; do
    pretend $program '[ "$1" = --list ] && echo one && exit; echo "skipped: no device"; exit 77'
done
pretend bin/gswbench 'exit 4'
pretend bin/mpirun 'exit 4'
expect 77 '^nothing was proven'

# The jobs that it runs are ones that the program takes.
pretend_all
rm -f "$folder/commands"
expect 0 '^part 3' --part 3
expect 0 '^part 2' --part 2
grep -o -- '--config [lk].*' "$folder/commands" | sed -E 's/--emulate/--ranks/; s/ (--steps|--warmup|--out|-o) [^ ]+//g' |
    sort -u >"$folder/jobs"
[ "$(wc -l <"$folder/jobs")" -ge 4 ] || complain "only these jobs were run: $(cat "$folder/jobs")"
while read -r job; do
    # shellcheck disable=SC2086
    "$GSWBENCH" check $job >"$folder/printed" 2>&1 || complain "check $job: $(tail -n 2 "$folder/printed")"
done <"$folder/jobs"

# Killed at any moment, the folder has every stage that ended: in the table, as a record, and what it printed.
count() { grep -c "$1" "$folder/out/$2" 2>/dev/null || true; }
pretend_all
for moment in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$folder/out"
    check --part 2 >"$folder/printed" 2>&1 &
    sleep "$((moment / 5)).$((moment % 5 * 2))"
    while [ $moment -eq 10 ] && [ "0$(count ' s  ' table.txt)" -lt 3 ]; do sleep 0.05; done
    pkill -9 -f "gpu-check --built $folder" || true
    { wait $!; } 2>/dev/null || true
    expect_lines
    rows=$(count ' s  ' table.txt) records=$(count '^{' stages.jsonl) logs=$(find "$folder/out/logs" -name '*.txt' | wc -l)
    if [ "0$rows" -gt "0$records" ] || [ "0$records" -gt $((0$rows + 1)) ] || [ "$logs" -lt "0$records" ]; then
        complain "killed at moment $moment, it has $rows rows of its table, $records records and $logs logs"
    fi
done
exit $((failures > 0))
