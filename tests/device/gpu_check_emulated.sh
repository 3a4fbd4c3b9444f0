#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs scripts/gpu-check from its package on the emulated GPU, where the sources are hidden: all of part 3, and part 2,
# which is killed after 30 measured values. Then runs two of the packed tests, and checks the lower bounds that
# bench_device_ops prints for several GPU names. gpu_check_killed.sh is the long version of this test.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
source "$GSWBENCH_SOURCE_DIR/tests/device/gpu_check_folder.sh"
unpack_apart

run 0 "${check[@]}" --part 3
expect_packed
for log in layer-again-llama3-8b-bf16:'of the speed of light at its own shapes' emulate-8B-on-8-devices:'^RESULT '; do
    expect "${log#*:}" unpacked/logs/*-"${log%:*}".txt
done
expect '"name": "qkv, alone"' out/records.jsonl
expect '^RESULT (VALID|DEGRADED)' out/table.txt
[ -s unpacked/gswbench/gemm.txt ] || complain "what was timed is not packed"
figures() { while [ "$(count '^{' out/records.jsonl)" -lt 30 ]; do sleep 0.1; done; }
kill_when TERM figures "${check[@]}" --part 2
kill_when KILL figures "${check[@]}" --part 2

export LD_LIBRARY_PATH=$PWD/pack/lib
run 0 "${apart[@]}" "$PWD/pack/tests/run_device"
run 0 "${apart[@]}" "$PWD/pack/tests/profile_device"

ops() { run 0 env FAKE_NAME="$1" pack/bench/bench_device_ops records "$2"; }
ops 'NVIDIA H100 80GB HBM3' copy
expect '^bounds of NVIDIA H100 80GB HBM3: 2.65 of 3.35 TB/s, 790 of 989 TFLOP/s in BF16, 1350 and 1200 of 1979 in FP8$'
ops 'NVIDIA H200' copy
expect '^bounds of NVIDIA H200: 3.80 of 4.80 TB/s'
expect '^copy .* bound '
ops 'NVIDIA H200' attention/2048
expect '^attention/2048, forward .* bound '
ops 'NVIDIA H100 80GB HBM3' attention/2048
unexpected '^attention/2048.* bound '
ops 'a GPU of tomorrow' copy
expect '^no bounds: no hardware profile has the device a GPU of tomorrow$'
unexpected ' bound '
finish
