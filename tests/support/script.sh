# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# Functions for test scripts, which source this file first. A script works in a temporary folder, runs commands and
# checks their output. A failed check is printed and the script goes on; `finish` ends it with the exit code.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"; [ -n "$is_finished" ] || { echo "FAILED: the script has not come to its end"; exit 1; }' EXIT
cd "$folder"
export XDG_CACHE_HOME=$folder/remembered    # hides measured times that earlier runs cached
# With Open MPI 4, launchers that run at the same time and share a session folder remove each other's files.
export TMPDIR=$folder

# A model as small as kernels allow, for --config tiny-llama.
small=(--set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16 --set model.ffn=32
    --set model.vocab=64 --set train.sequence=16)

failures=0 is_finished=
complain() {    # complain TEXT [FILE]: reports a failure and prints the file, or the latest output
    echo "FAILED: $1"
    cat "${2:-output}" || true
    failures=$((failures + 1))
}
run() {    # run EXIT_CODE COMMAND...: writes what it prints to the file output, with wrapped lines of the header joined
    local expected=$1 code=0
    shift
    timeout 400 "$@" >output 2>&1 </dev/null || code=$?
    sed -i -z 's/\n#   / /g' output
    [ $code -eq "$expected" ] || complain "exit code $code, not $expected: $*"
}
unwrap() { sed -zE 's/\n(#   |    )([^ ])/ \2/g' "$1"; }    # joins the lines of wrapped lines
expect() {    # expect PATTERN [FILE]: expects a line that matches, perhaps a wrapped one
    grep -qE -- "$1" "${2:-output}" || grep -qE -- "$1" <(unwrap "${2:-output}") || complain "no line like: $1" "${2:-output}"
}
expect_text() {    # expect_text TEXT: expects a line that contains TEXT
    grep -qF -- "$1" output || grep -qF -- "$1" <(unwrap output) || complain "no line with: $1"
}
unexpected() {    # unexpected PATTERN: expects no line that matches
    ! grep -qE -- "$1" output || complain "a line like: $1"
}
result() { echo "$(sed -n 's/^files: //p' output)$1"; }    # result FILE: prints its path in the latest run
finish() {
    is_finished=yes
    exit $((failures > 0))
}
