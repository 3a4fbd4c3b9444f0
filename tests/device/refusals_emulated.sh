#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One refusal does not end the rest, and says what was refused and what to do. Libraries of our own refuse on command.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
tests=$GSWBENCH_BINARY_DIR/tests

failures=0
run() {    # run EXIT_CODE COMMAND...: its lines are in output
    local expected=$1 code=0
    shift
    timeout 120 "$@" >output 2>&1 || code=$?
    if [ $code -ne "$expected" ]; then
        echo "FAILED: exit code $code, not $expected: $*"
        cat output
        failures=$((failures + 1))
    fi
}
expect() {    # expect PATTERN: a line of it
    if ! grep -qE -- "$1" output; then
        echo "FAILED: no line like: $1"
        cat output
        failures=$((failures + 1))
    fi
}

# Cases of one op: one that the library refuses, one that ends its process.
FAKE_CUBLASLT=refuse run 1 "$tests/ops_device" 'gemm 16 x 16 x 16 in fp8' 'gemm 1 x 1 x 1' 'by runs, added' clear
expect '^FAIL gemm 16 x 16 x 16 in fp8, added and rounded: refused: .*cuBLASLt has no algorithm for 16 x 16 x 16 nt e4m3 e4m3 bf16 add fast, align .* \(it answers: not supported\): take \[precision\] compute = bf16$'
expect '^FAIL gemm 144 x 64 x 256 in fp8 by runs, added: refused: .* e5m2 e4m3 f32 add runs runs, .* fp8_recipe = current or delayed, or compute = bf16$'
expect '^ok   gemm 1 x 1 x 1, nn: '
expect '^ok   clear: '
expect '^5 cases, 2 failed, 0 skipped$'
FAKE_CUBLASLT=abort run 1 "$tests/ops_device" 'gemm 16 x 16 x 16 in fp8' 'gemm 1 x 1 x 1' clear
expect '^FAIL gemm 16 x 16 x 16 in fp8, added and rounded: its process ended by signal 6 '
expect '^ok   clear \(one multiprocessor\): '
expect '^4 cases, 1 failed, 0 skipped$'
run 0 "$tests/ops_device" --list 'attention, head 128'
[ "$(cat output)" = "attention, head 128
attention, head 128 (one multiprocessor)
attention, head 128 (cuDNN)" ] || { echo "FAILED: the list is another:"; cat output; failures=$((failures + 1)); }
exit $((failures > 0))
