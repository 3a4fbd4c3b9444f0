#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Plans, checks and predicts the largest published jobs within 20 s and 2 GB per command: GPT-3 175B on 11,616 H100
# (MLPerf Training 4.0), for which nodes do not divide the 363 replicas evenly, and Llama 3 405B on 8,192 and 16,384.
. "$(dirname "$0")/../support/script.sh"
export OPENBLAS_NUM_THREADS=1
ulimit -v 2097152 -t 20

gpt3=(--config b200-gpt3-175b --ranks 11616 --set hardware.profile=h100-sxm --set software.profile=nemo-25.02
    --set parallel.pp=8 --set parallel.vp=12 --set train.micro_batch=1 --set train.accumulation=8)
run 0 "$GSWBENCH" plan "${gpt3[@]}"
expect_text "dp 363 tp 4 pp 8"
run 0 "$GSWBENCH" check --set hardware.memory_gb=0 "${gpt3[@]}"
expect "verified +11616 ranks"
run 0 "$GSWBENCH" predict --set hardware.memory_gb=0 "${gpt3[@]}"
expect "predicted +(0\.9|1\.[01])[0-9]+ s/step \+-"

# Meta published 430 and 400 TFLOP/s per GPU (arXiv 2407.21783, table 4) for 16 Mi tokens of 2.53e12 FLOPs. That is 12.1
# and 6.5 s/step, a ratio of 0.54. Only the ratio is compared, since gswbench is faster than Meta's framework.
declare -A seconds
for ranks in 8192 16384; do
    llama3=(--config llama3.1-405b --ranks "$ranks" --set software.profile=gswbench --set parallel.cp=1
        --set parallel.pp=16 --set parallel.tp_overlap=no --set train.accumulation=auto --set train.global_batch=2048)
    run 0 "$GSWBENCH" check --set hardware.memory_gb=0 "${llama3[@]}"
    expect "verified +$ranks ranks"
    run 0 "$GSWBENCH" predict --set hardware.memory_gb=0 "${llama3[@]}" --no-range
    seconds[$ranks]=$(sed -nE 's/^predicted +([0-9.]+) s.*/\1/p' output)
done
awk -v eight="${seconds[8192]}" -v sixteen="${seconds[16384]}" \
    'BEGIN { exit !(eight > 9.8 && eight < 13.0 && sixteen / eight > 0.515 && sixteen / eight < 0.565) }' ||
    complain "${seconds[8192]} and ${seconds[16384]} s"
finish
