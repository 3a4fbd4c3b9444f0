#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A limit on address space ends a run before its first step and says so: no library waits for room that never comes.
. "${BASH_SOURCE%/*}/../support/script.sh"

limited() {    # limited KIBIBYTES
    (ulimit -v "$1" && exec "$GSWBENCH" run --config tiny-llama --backend host --comm local --ranks 2 --steps 3 \
        --set run.warmup=1 --set run.verify=light --set precision.compute=fp32 --out results)
}
export -f limited

for kibibytes in 180000 260000 360000; do
    run 11 bash -c "limited $kibibytes"
    expect 'gswbench: .*out of (address space|host memory)'
    unexpected '^(completed step|RESULT)'
done
run 0 bash -c "limited 4000000"
expect '^RESULT DEGRADED'
finish
