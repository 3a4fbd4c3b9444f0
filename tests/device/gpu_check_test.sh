#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/gpu-check, with programs that only pretend: its verdicts, its exit codes, and what a kill leaves in its folder.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
source "$GSWBENCH_SOURCE_DIR/tests/device/gpu_check_folder.sh"
mkdir -p built/{bin,bench,tests}

# A program of that name that does so.
pretend() {
    printf '#!/bin/sh\n%s\n' "$2" >"built/$1"
    chmod +x "built/$1"
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
    pretend tests/ops_device 'echo "| op | 1.0 ms |"; sleep 0.05'
    pretend tests/step_device 'sleep 0.05'
    pretend bin/nvidia-smi 'case "$*" in *memory.total*) echo 143771 ;; *-lms*) exec sleep 100 ;; esac'
}
check=(env "TMPDIR=$PWD" "PATH=$PWD/built/bin:$PATH" "$GSWBENCH_SOURCE_DIR/scripts/gpu-check" --built "$PWD/built" --out "$PWD/out")

expect_verdict() {    # expect_verdict CODE PATTERN [ARGUMENT...]: the exit code, and a line of the table
    local expected=$1 pattern=$2
    shift 2
    rm -rf out
    run "$expected" "${check[@]}" "$@"
    expect "$pattern" out/table.txt
    expect_lines
}

pretend_all
expect_verdict 0 '^test ops_device +[0-9]+ s  passed' --part 1
! grep -q '^|' out/table.txt || complain "rows of documents stand among the measured times" out/table.txt
expect_verdict 0 '^layer two +[0-9]+ s  passed' --part 2
[ "$(grep -c '"name": "two"' out/records.jsonl)" -ge 1 ] || complain "no record of a benchmark was kept"
pretend tests/ops_device 'echo "a GEMM is wrong"; exit 1'
expect_verdict 2 '^    a GEMM is wrong' --part 1
pretend_all
pretend bin/gswbench 'for i in $(seq 20); do echo "step: $i, loss: 2.$i,"; done'
expect_verdict 4 '^train two ranks over mpi +[0-9]+ s  failed' --part 1
pretend_all
for program in tests/ops_device tests/step_device bench/bench_device_ops bench/bench_device_layer; do
    pretend $program '[ "$1" = --list ] && echo one && exit; echo "skipped: no device"; exit 77'
done
pretend bin/gswbench 'exit 4'
pretend bin/mpirun 'exit 4'
expect_verdict 77 '^nothing was proven'

# The jobs that it runs are ones that the program takes.
pretend_all
rm -f commands
expect_verdict 0 '^part 3' --part 3
expect_verdict 0 '^part 2' --part 2
grep -o -- '--config [lk].*' commands | sed -E 's/--emulate/--ranks/; s/ (--steps|--warmup|--out|-o) [^ ]+//g' |
    sort -u >distinct
[ "$(wc -l <distinct)" -ge 4 ] || complain "there are other jobs that it runs" distinct
while read -r job; do
    # shellcheck disable=SC2086
    run 0 "$GSWBENCH" check $job
done <distinct

# Killed at any moment, the folder has every stage that ended: in the table, as a record, and what it printed.
three_stages() { while [ "$(ended_stages)" -lt 3 ]; do sleep 0.05; done; }
pretend_all
for until in 'sleep '{0.2,0.4,0.6,0.8,1,1.2,1.4,1.6,1.8} three_stages; do
    kill_when "$until" "${check[@]}" --part 2
done
finish
