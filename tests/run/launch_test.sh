#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Wrong launches end on all ranks, with the same exit code and one message that names the place.
command -v mpirun >/dev/null && "$GSWBENCH" run --help | grep -q ' mpi,' || exit 77
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
tiny='--config tiny-llama --layers 1 --steps 2 --warmup 1'

refuses() {    # refuses CODE MESSAGE mpirun-arguments: that message and no other
    local code=$1 message=$2
    shift 2
    run "$code" mpirun "$@"
    expect_text "gswbench: $message"
    [ "$(grep -c '^gswbench: ' output)" -eq 1 ] || complain "more than one message"
}

# What the two ranks of `apart` run. mpirun's own way to say it, -np 1 A : -np 1 B, crashes Open MPI 5 as Debian builds it
# (open-mpi/ompi issue 13303).
apart=(-np 2 sh -c '. ./rank$OMPI_COMM_WORLD_RANK')
ranks_run() {    # ranks_run ARGUMENTS_OF_RANK_0 ARGUMENTS_OF_RANK_1
    echo "exec $GSWBENCH $1" >rank0
    echo "exec $GSWBENCH $2" >rank1
}

# shellcheck disable=SC2086
refuses 4 "--ranks 4 of a job that was launched with 2" -np 2 "$GSWBENCH" $tiny --ranks 4
ranks_run "$tiny" "$tiny --set run.seed=5"
refuses 4 "rank 1 on $(hostname) has another configuration" "${apart[@]}"
ranks_run "$tiny --weights-out weights" "$tiny"
refuses 4 "rank 1 on $(hostname) has another configuration" "${apart[@]}"

# An error of one rank alone is not lost.
ranks_run "$tiny" "--config missing"
refuses 3 "rank 1: 1 configuration error" "${apart[@]}"
expect_text 'E-CONFIG missing: no such config'
finish
