#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/gpu-check with the real programs on the emulated device, killed at ten moments of its parts, which are drawn at
# random: tests/device/gpu_check_killed.sh [SEED]
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
source "$GSWBENCH_SOURCE_DIR/tests/device/gpu_check_folder.sh"
check=(env "TMPDIR=$PWD" "$GSWBENCH_SOURCE_DIR/scripts/gpu-check" --built "$GSWBENCH_BINARY_DIR" --out "$PWD/out")

seed=${1:-$(date +%s)}
echo "seed $seed"
RANDOM=$seed
lasts=([1]=50 [2]=40 [3]=12)    # seconds that a part takes on two cores, and a little less
for moment in {1..10}; do
    part=$((moment % 3 + 1))
    seconds=$((RANDOM % lasts[part])).$((RANDOM % 10))
    kill_when "sleep $seconds" "${check[@]}" --part $part
    echo "part $part, killed after $seconds s: $(ended_stages) stages have ended"
done
finish
