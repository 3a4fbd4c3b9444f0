#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests commands with a stack of 256 KiB (ulimit -s). Threads get stacks of this size, too.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
small() {    # small ARGUMENT...: runs gswbench with this stack, and expects exit code 0, or 6 or 15 of accept
    local code=0
    (ulimit -s 256 && exec "$GSWBENCH" "$@") >output 2>&1 </dev/null || code=$?
    [ $code -eq 0 ] || [[ $1 = accept && ($code = 6 || $code = 15) ]] || complain "exit code $code: $*"
}
small predict --config llama2-70b-fsdp
small predict llama2-70b-fsdp --ranks 64 --values
small predict llama3.1-8b --ranks 8 --sweep --json -o sweep
small predict llama2-70b-fsdp --ranks 8 --sweep
small check llama2-70b-fsdp
small check llama3.1-8b --ranks 8 --json
small plan llama3.1-8b --ranks 8
small configs --json
small init job.ini --model llama3.1-8b
small atlas --gpu h100-sxm --model grok1
small run tiny-llama --ranks 2 --comm local --backend host --precision fp8 --steps 12 --out results
small report results/latest
small compare results/latest results/latest --force
small suite node --ranks 8 --dry-run
small accept tiny-llama --ranks 2 --comm local --backend host --seconds 1 --steps 12 --set hardware.device=other --json
finish
