#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs scripts/gpu-check from its package on the emulated GPU, where the sources are hidden:
# tests/device/gpu_check_killed.sh [SEED]
# All parts must pass within their estimated times. Killed at ten random times, gpu-check must leave archives with its
# results.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
source "$GSWBENCH_SOURCE_DIR/tests/device/gpu_check_folder.sh"
unpack_apart

lasts=()    # seconds that each part takes here
for part in 1 2 3; do
    begin=$SECONDS code=0
    timeout 575 "${check[@]}" --part $part >output 2>&1 || code=$?
    lasts[part]=$((SECONDS - begin))
    estimate=$(sed -n "s/^part $part: \([0-9]*\) s .*/\1/p" output)
    echo "part $part: ${lasts[part]} s, $estimate s by its estimates"
    [ $code -eq 0 ] || complain "part $part: exit code $code"
    [ "${lasts[part]}" -le "$estimate" ] || complain "part $part takes longer than its estimates"
    expect_packed
done

seed=${1:-$(date +%s)}
echo "seed $seed"
RANDOM=$seed
for moment in {1..10}; do
    part=$((moment % 3 + 1))
    seconds=$((RANDOM % lasts[part])).$((RANDOM % 10))
    signal=$([ $((moment % 2)) -eq 0 ] && echo TERM || echo KILL)
    kill_when "$signal" "sleep $seconds" "${check[@]}" --part $part
    echo "part $part, $signal after $seconds s: $(ended_stages) stages, $(count '^{' out/records.jsonl) figures"
done
finish
