#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# After an error at launch, all ranks end within seconds (longer on a busy machine), with the same exit code and one
# message that names the cause.
command -v mpirun >/dev/null && "$GSWBENCH" run --help | grep -q ' mpi,' || exit 77
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
tiny='run --verbose --config tiny-llama --layers 1 --steps 2 --warmup 1'

# A launch is a folder with a file `all`, or rank0, rank1, ..., of arguments for ranks. Ranks must not report errors to
# the launcher, which would kill the others, so each rank writes its exit code to a file.
rank() {
    local number=$OMPI_COMM_WORLD_RANK code=0
    set -f
    # shellcheck disable=SC2046
    env $(cat "environment$number" 2>/dev/null) $(cat "program$number" 2>/dev/null || echo "$GSWBENCH") \
        $(cat "rank$number" 2>/dev/null || cat all) || code=$?
    echo $code >"code$number"
}
export -f rank
launch() {    # launch FOLDER RANKS ARGUMENTS [ARGUMENTS_OF_RANK_1]: starts a job by mpirun in FOLDER
    mkdir -p "$1"
    echo "$3" >"$1/all"
    [ $# -lt 4 ] || echo "$4" >"$1/rank1"
    (cd "$1" && TMPDIR=$PWD timeout 60 mpirun -np "$2" bash -c rank >output 2>&1 </dev/null || echo "launcher: $?" >>output) &
}
alone() {    # alone FOLDER RANK_VARIABLE SIZE: starts ranks 0 and 1 of SIZE without a launcher
    mkdir "$1"
    for number in 0 1; do
        # shellcheck disable=SC2086
        (cd "$1" && code=0 &&
            { timeout 60 env "$2=$number" "$3" "$GSWBENCH" $tiny >>output 2>&1 </dev/null || code=$?; } &&
            echo $code >code$number) &
    done
}
refused() {    # refused FOLDER CODE MESSAGE: expects this exit code of each rank, and exactly this message
    [ "$(cat "$1"/code* | sort -u)" = "$2" ] || complain "$1: exit codes $(cat "$1"/code* | tr '\n' ' ')" "$1/output"
    grep -qF -- "gswbench: $3" "$1/output" || complain "$1: no line with: gswbench: $3" "$1/output"
    [ "$(grep -c 'gswbench: ' "$1/output")" -eq 1 ] || complain "$1: more than one message" "$1/output"
    ! grep -q '^launcher: ' "$1/output" || complain "$1: the launcher does not come back" "$1/output"
}

four="$tiny --set parallel.dp=4"
for ranks in 1 3 5; do
    launch of$ranks $ranks "$four"
done
launch asked 2 "$tiny --ranks 4"
launch threads 2 "$tiny" "$tiny --comm local"
launch emulated 2 'run --config tiny-llama --emulate 2'
wait
refused of1 4 '1 rank was launched, but [parallel] needs 4: launch that many'
refused of3 4 '3 ranks were launched, but [parallel] needs 4: launch that many'
refused of5 4 '5 ranks were launched, but [parallel] needs 4: launch that many'
refused asked 4 '--ranks 4, but 2 ranks were launched'
refused threads 4 'rank 1: 2 processes were launched, but communicator local runs all ranks in one'
refused emulated 4 '--emulate needs one process'

launch seed 2 "$tiny" "$tiny --set run.seed=5"
launch weights 2 "$tiny" "$tiny --weights-out weights"
launch missing 2 "$tiny" 'run --config missing'
launch both 2 'run --config missing'
launch flag 2 "$tiny" "$tiny --frobnicate"
launch calibrated 2 'calibrate --config tiny-llama' 'calibrate --config tiny-llama -o file'
wait
host=$(hostname)
refused seed 4 "rank 1 on $host has run.seed = 5, 1 of 2 ranks, such as 0 on $host, 1: give every rank the same files"
refused weights 4 "rank 1 on $host has --weights-out given, 1 of 2 ranks, such as 0 on $host, none: give every rank"
refused missing 3 'rank 1: 1 configuration error'
refused both 3 '1 configuration error'
refused flag 2 'rank 1: unknown flag --frobnicate'
refused calibrated 2 '-o is missing'
for folder in missing both; do
    [ "$(grep -c 'E-CONFIG missing: no config with this name' $folder/output)" -eq 1 ] || complain "$folder: its line" $folder/output
done

# One of four ranks has another environment variable, or runs another program. The error must name this rank.
mkdir -p variable program/bin
ln -s "$(dirname "$GSWBENCH")"/../lib program/lib
echo NCCL_ALGO=Ring >variable/environment1
objcopy --remove-section .note.gnu.build-id "$GSWBENCH" program/bin/other
echo bin/other >program/program0
launch variable 4 "$tiny"
launch program 4 "$tiny"
wait
refused variable 4 "rank 1 on $host has NCCL_ALGO = Ring, 3 of 4 ranks, such as 0 on $host, none: give every rank the same"
version=$("$GSWBENCH" --version | sed -n 's/^gswbench //p') build=$("$GSWBENCH" --version | sed -n 's/^build //p')
refused program 4 "rank 0 on $host has gswbench $version, build code "
grep -qF ", 3 of 4 ranks, such as 1 on $host, $version, build $build: install the same program" program/output ||
    complain "program: what the others are" program/output

# Other differences between ranks get a note, or are only recorded if ranks may choose them.
mkdir unlike
echo UCX_RNDV_THRESH=8k NCCL_IB_HCA=mlx5_1 >unlike/environment1
launch unlike 2 "$tiny"
wait
grep -q "^note: ranks-unlike: rank 1 on $host has UCX_RNDV_THRESH = 8k, 1 of 2 ranks, such as 0 on $host, none$" unlike/output ||
    complain "unlike: no note" unlike/output
! grep -q 'NCCL_IB_HCA' unlike/output || complain "unlike: a note of what is a rank's own" unlike/output
grep -A1 '"name": "NCCL_IB_HCA"' unlike/results/*/*/*/*/result.json | grep -q '"value": "mlx5_1"' ||
    complain "unlike: not recorded" unlike/results/*/*/*/*/result.json

# Each process would become a separate job of one rank.
alone pmi PMI_RANK PMI_SIZE=4
alone ompi OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE=4
alone slurm SLURM_PROCID SLURM_STEP_NUM_TASKS=4
wait
refused pmi 4 'MPI has 1 rank, the job 4: it was started by mpirun of MPICH or Intel MPI, or srun --mpi=pmi2 (PMI_SIZE is set), but Open MPI v'
refused ompi 4 "MPI has 1 rank, the job 4: it was started by Open MPI's mpirun (OMPI_COMM_WORLD_SIZE is set), but"
refused slurm 4 'srun started 4 processes without PMIx'

# The launcher also returns the exit code.
run 4 mpirun -np 3 "$GSWBENCH" $four
finish
