#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Wrong launches end on all ranks, with the same exit code and one message that names the place.
set -euo pipefail
command -v mpirun >/dev/null && "$GSWBENCH" run --help | grep -q ' mpi,' || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
tiny=("$GSWBENCH" --config tiny-llama --layers 1 --steps 2 --warmup 1)

expect() {    # expect CODE MESSAGE mpirun-arguments: that message and no other
    local code=$1 message=$2 got=0
    shift 2
    timeout 60 mpirun "$@" >out 2>err || got=$?
    if [ $got -ne "$code" ] || [ "$(grep -c '^gswbench: ' err)" -ne 1 ] || ! grep -qF "gswbench: $message" err; then
        echo "mpirun $*: exit code $got, not $code with: $message"
        cat err
        exit 1
    fi
}

expect 4 "--ranks 4 of a job that was launched with 2" -np 2 "${tiny[@]}" --ranks 4
expect 4 "rank 1 on $(hostname) has another configuration" -np 1 "${tiny[@]}" : -np 1 "${tiny[@]}" --set run.seed=5
expect 4 "rank 1 on $(hostname) has another configuration" -np 1 "${tiny[@]}" --weights-out weights : -np 1 "${tiny[@]}"

# An error of one rank alone is not lost.
expect 3 "rank 1: 1 configuration error" -np 1 "${tiny[@]}" : -np 1 "$GSWBENCH" --config missing
grep -qF "E-CONFIG missing: no such config" err
