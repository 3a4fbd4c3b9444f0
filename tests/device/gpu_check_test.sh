#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs scripts/gpu-check in a package of fake programs. Tests its verdicts, exit codes, the arguments that it passes,
# and the archive that it leaves when it is killed.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
source "$GSWBENCH_SOURCE_DIR/tests/device/gpu_check_folder.sh"
mkdir -p pack/{bin,bench/pytorch,tests,lib,scripts} others
cp "$GSWBENCH_SOURCE_DIR"/scripts/{gpu-check,mpi-environment} pack/scripts

# Creates a fake program that has this name and shell code.
pretend() {
    printf '#!/bin/bash\n%s\n' "$2" >"$1"
    chmod +x "$1"
}
# shellcheck disable=SC2016
bench='case $1 in
--device) echo "a warning" >&2; echo "a pretended GPU" ;;
*) sleep 0.02; echo "{\"name\": \"$2\", \"seconds\": 1}" >>"$1"; echo "$2    1.000 ms" ;;
esac'
pretend_all() {
    # shellcheck disable=SC2016
    pretend pack/bin/gswbench "echo \"\$@\" >>$folder/commands"'
for i in $(seq 20); do echo "step: $i, loss: 1.$i,"; done; sleep 0.02'
    pretend pack/bench/bench_device_ops "$bench"
    pretend pack/bench/bench_device_layer "$bench"
    pretend pack/bench/pytorch/layer.py 'echo "libraries: $LD_LIBRARY_PATH"'
    for test in ops attention gemm profile run step trace; do
        pretend pack/tests/${test}_device 'echo "| op | 1.0 ms |"'
    done
    # shellcheck disable=SC2016
    pretend others/mpirun 'shift 2; [ "$1" != bash ] || shift 4; shift; for i in $(seq 20); do echo "step: $i, loss: 1.$i,"; done'
    pretend others/compute-sanitizer 'echo "libraries: $LD_LIBRARY_PATH"; echo "asked: $*"'
    pretend others/nvidia-smi 'case "$*" in
*memory.total*) echo 143771 ;;
*clocks_event_reasons.active*-lms*|*-lms*clocks_event_reasons.active*)
    echo "timestamp, index, clocks.current.sm [MHz], clocks.current.memory [MHz], power.draw [W], temperature.gpu, utilization.gpu [%], clocks_event_reasons.active"
    echo "2026/11/26 06:00:00.000, 0, 1980 MHz, 2619 MHz, 512.30 W, 61, 100 %, 0x0000000000000000"
    echo "2026/11/26 06:00:00.200, 0, 1410 MHz, 2619 MHz, 690.10 W, 60, 100 %, 0x0000000000000004"
    exec sleep 100 ;;
esac'
}
check=(env "TMPDIR=$PWD" "LD_LIBRARY_PATH=/given" "PATH=$PWD/others:$PATH" "$PWD/pack/scripts/gpu-check" --out "$PWD/out")

# expect_verdict CODE PATTERN [ARGUMENT...]: runs gpu-check and expects the exit code, and a line in its table.
expect_verdict() {
    local expected=$1 pattern=$2
    shift 2
    rm -rf out
    run "$expected" "${check[@]}" "$@"
    expect "$pattern" out/table.txt
    expect_packed
    awk '/^part [123]: / { n++; long = long || $3 > 480 } END { exit !n || long }' out/table.txt ||
        complain "a part takes more than 480 s by its estimates" out/table.txt
    cmp -s out/table.txt unpacked/table.txt || complain "the packed table is another one"
}

pretend_all
expect_verdict 0 '^test ops_device +[0-9]+ s  passed' --part 1
expect '^clocks: 2 samples, SM 1410 to 1980 MHz, at most 690 W, 61 C$' out/table.txt
! grep -q '^|' out/table.txt || complain "rows of documents stand among the measured times" out/table.txt
expect '1980 MHz' unpacked/clocks.csv
expect '^device: a pretended GPU$' unpacked/facts.txt
expect '^run, default' <(sed -n 2p out/table.txt)
! grep -q 'run.verify' commands || complain "the default run is not a default one" commands
expect "^next: timeout 575 $PWD/pack/scripts/gpu-check --part 2 --out $PWD/out\$" out/table.txt
for tool in memcheck racecheck; do
    log=$(echo unpacked/logs/*-$tool.txt)
    expect "^asked: --tool $tool --kernel-regex kns=GLOBAL__N .* env LD_LIBRARY_PATH=$PWD/pack/lib:.* --way plain" "$log"
    expect '^libraries: .*/given$' "$log"
    ! grep -q "^libraries: .*$PWD/pack" "$log" || complain "$tool gets the libraries of the package" "$log"
done
expect_verdict 0 '^layer llama3-8b/bf16 +[0-9]+ s  passed' --part 2
[ "$(grep -c '"name": "llama3-8b/bf16"' out/records.jsonl)" -eq 1 ] || complain "no record of a benchmark was kept"
expect '^libraries: .*/given$' unpacked/logs/*PyTorch-llama3-8b-bf16*
! grep -q "^libraries: .*$PWD/pack" unpacked/logs/*PyTorch* || complain "PyTorch gets the libraries of the package"

# A stage that does not fit into the remaining time is skipped, and does not fail.
expect_verdict 0 '^run a published row of one device +[0-9]+ s  not run: [0-9]+ s left' --part 3 --seconds 119
expect '^layer, again llama2-70b/bf16 +[0-9]+ s  passed' out/table.txt
! grep -q '^next' out/table.txt || complain "something follows part 3" out/table.txt

# shellcheck disable=SC2016
pretend pack/tests/ops_device 'head -c 12000000 /dev/urandom | base64; echo "a GEMM is wrong"; exit 1'
expect_verdict 2 '^    a GEMM is wrong' --part 1
pretend_all
# shellcheck disable=SC2016
pretend pack/bin/gswbench 'for i in $(seq 20); do echo "step: $i, loss: 2.$i,"; done'
expect_verdict 4 '^train 2 ranks over mpi +[0-9]+ s  failed' --part 1
pretend_all
pretend others/nvidia-smi 'case "$*" in
*clocks_event_reasons*) echo "not a valid field"; exit 2 ;;
*clocks_throttle_reasons.active*) echo "now, 0, 1000 MHz, 1 MHz, 5 W, 6, 7 %, 0x0" ;;
esac'
expect_verdict 0 '^clocks: 1 samples, SM 1000 to 1000 MHz, at most 5 W, 6 C$' --part 2
for program in pack/tests/*_device pack/bench/bench_device_* pack/bench/pytorch/layer.py others/compute-sanitizer; do
    pretend "$program" 'echo "skipped: no device"; exit 77'
done
pretend pack/bin/gswbench 'exit 4'
pretend others/mpirun 'exit 4'
pretend pack/bench/bench_device_ops 'echo "libcublasLt.so.13 cannot be loaded" >&2; exit 4'
expect_verdict 77 '^nothing was proven'
pretend others/nvidia-smi '[ "$1" != -L ] || echo "GPU 0: NVIDIA H200"'
expect_verdict $((4 + 64)) '^no device: libcublasLt.so.13 cannot be loaded$' --part 1

# The real gswbench must accept every job that gpu-check runs.
pretend_all
rm -f commands
expect_verdict 0 '^part 3' --part 3
expect_verdict 0 '^part 1' --part 1
grep -o -- '--config [lk].*' commands | sed -E 's/--emulate/--ranks/; s/ (--steps|--warmup|--out|-o) [^ ]+//g' |
    sort -u >distinct
[ "$(wc -l <distinct)" -ge 4 ] || complain "there are other jobs that it runs" distinct
while read -r job; do
    # shellcheck disable=SC2086
    run 0 "$GSWBENCH" check $job
done <distinct

# Whenever gpu-check is killed, the results up to then must be in the archive.
three_stages() { while [ "$(ended_stages)" -lt 3 ]; do sleep 0.05; done; }
for until in 'sleep '{0.3,0.6,0.9,1.2,1.5} three_stages; do
    kill_when TERM "$until" "${check[@]}" --part 2
    kill_when KILL "$until" "${check[@]}" --part 2
done
finish
