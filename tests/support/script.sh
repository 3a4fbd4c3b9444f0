# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# Common functions of test scripts, which source this file first. A script works in a temporary folder, runs commands
# and checks their output. Failed checks are printed and the script continues; finish ends it with its exit code.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"; [ -n "$is_finished" ] || { echo "FAILED: the script has not come to its end"; exit 1; }' EXIT
cd "$folder"
export XDG_CACHE_HOME=$folder/remembered    # no test knows what was timed before it
# Open MPI 4: launchers that share a session folder and overlap in time would remove each other's files.
export TMPDIR=$folder

# A model as small as kernels allow, for --config tiny-llama.
small=(--set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16 --set model.ffn=32
    --set model.vocab=64 --set train.sequence=16)

failures=0 is_finished=
complain() {    # complain TEXT [FILE]: with what is in the file, else what was printed last
    echo "FAILED: $1"
    cat "${2:-output}" || true
    failures=$((failures + 1))
}
run() {    # run EXIT_CODE COMMAND...: its lines are in output
    local expected=$1 code=0
    shift
    timeout 120 "$@" >output 2>&1 </dev/null || code=$?
    [ $code -eq "$expected" ] || complain "exit code $code, not $expected: $*"
}
expect() {    # expect PATTERN [FILE]: a line of it
    grep -qE -- "$1" "${2:-output}" || complain "no line like: $1" "${2:-output}"
}
expect_text() {    # expect_text TEXT: a line has it
    grep -qF -- "$1" output || complain "no line with: $1"
}
unexpected() {    # unexpected PATTERN
    ! grep -qE -- "$1" output || complain "a line like: $1"
}
result() { echo "$(sed -n 's/^files: //p' output)$1"; }    # result FILE: its path, of the run that was the last
finish() {
    is_finished=yes
    exit $((failures > 0))
}
