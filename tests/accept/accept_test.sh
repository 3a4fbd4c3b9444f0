#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Accepting this machine: a wrong rank is refused before the run, with its host; a job of which nothing is known cannot be
# told after it; where a row says something, the run, its report and accept.json have one verdict.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
accept=("$GSWBENCH" accept --config tiny-llama --layers 1 --backend host --set train.micro_batch=1 --set train.global_batch=16
    --ranks 16 --steps 20)

run 6 "${accept[@]}" --set fault.kind=flip --set fault.at=attention_forward --set fault.rank=5 --set fault.bit=14 -o wrong
expect '^outlier: device 5 of host .*rank 5, given numbers'
expect '^REFUSE  the preflight named 1$'
expect "^drain: $(hostname)$"
unexpected '^RESULT'
expect '"verdict": "refuse",' wrong/accept.json
expect "\"drain\": \"$(hostname)\"," wrong/accept.json
expect '"blame": "numbers",' wrong/accept.json

run 15 "${accept[@]}" --set hardware.device=other --out results
expect '^RESULT '
expect '^CANNOT TELL  '
expect '"verdict": "cannot tell",' accept/accept.json
expect '"basis": "nothing",' accept/accept.json
expect "\"run_id\": \"$(basename "$(result '')")\"," accept/accept.json
expect '<h2>Acceptance ' "$(result report.html)"
run 0 "$GSWBENCH" report --format json "$(result '')"
expect '"acceptance": \{'
finish
