#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests how a job chooses GEMM algorithms by timing. Rank 0 times the candidates and writes the fastest one to the
# cache, once; the other ranks use it. FAKE_CUBLASLT=late makes the first algorithm slow on a rank, so this rank alone
# would choose the second. FAKE_CUBLASLT=second makes a rank's library refuse the first algorithm, which rank 0 chooses.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
arguments=(--verbose --config tiny-llama --backend cuda --comm mpi --layers 2 --steps 2 --warmup 0 --set trace.steps=0
    --set run.verify=light --set run.cache=cache "${small[@]}" --set train.micro_batch=1 --set train.global_batch=4)
rank() {    # rank NUMBER=FAULT ARGUMENT...: sets FAULT on rank NUMBER, none on rank 0, and "late" on the others
    local doing=late
    [ $OMPI_COMM_WORLD_RANK != 0 ] || doing=
    [ $OMPI_COMM_WORLD_RANK != "${1%=*}" ] || doing=${1#*=}
    FAKE_DEVICE=$OMPI_COMM_WORLD_RANK FAKE_CUBLASLT=$doing exec "$GSWBENCH" run "${@:2}"
}
export -f rank
launch() {    # launch EXIT_CODE NUMBER=FAULT ARGUMENT...: runs the job on four ranks
    run "$1" mpirun -np 4 bash -c 'rank "$@"' launch "$2" "${arguments[@]}" "${@:3}"
}
algorithms() { sed -n 's/^ *"algorithms_of_all_ranks": "\(.*\)",*$/\1/p' "$(result result.json)"; }
lines() { grep -c "$1" cache/gemm.txt; }

# Rank 0 times each GEMM once. On rank 0 the first algorithm is the fastest.
launch 0 0=
expect '^RESULT (VALID|DEGRADED)'
unexpected algorithms-differ
problems=$(lines ' x ')
[ "$problems" -gt 5 ] || complain "only $problems problems" cache/gemm.txt
[ "$(algorithms)" = "$problems timed, 0 from the cache, $((3 * problems)) from other ranks" ] || complain "$(algorithms)"
expect "$problems GEMMs timed, 0 remembered"
[ "$(lines '^[0-9a-f]* 0000000000000001 ')" = "$problems" ] || complain "another algorithm" cache/gemm.txt
[ "$(wc -l <cache/gemm_times.txt)" = "$problems" ] || complain "timed again" cache/gemm_times.txt

# The run can expect a step time only with a hardware profile that names this GPU.
expect '^expected: unknown \(no hardware profile for this device: write one with gswbench calibrate, and set hardware\.profile\)$'
launch 0 0= --set hardware.profile=h100-sxm --set 'hardware.device=emulated GPU'
expect '^expected: 0\.0[0-9]+ s \+- [0-9.]+ % \(h100-sxm\), measured [0-9.]+ s: \+[0-9.]+ %$'
before=$("$GSWBENCH" predict --config tiny-llama --ranks 4 --layers 2 --set hardware.profile=h100-sxm --set software.profile=gswbench \
    --no-range "${arguments[@]:13}" | sed -n 's/^predicted *\([0-9.]*\) s.*/\1/p')
expect "^expected: ${before}[0-9]* s "

# A second run must read the cache file and must not write it again.
before=$(stat -c %i cache/gemm.txt)
launch 0 0=
[ "$(algorithms)" = "0 timed, $((4 * problems)) from the cache, 0 from other ranks" ] || complain "$(algorithms)"
[ "$(stat -c %i cache/gemm.txt)" = "$before" ] || complain "written again"

# Each pipeline stage has its own GEMMs, which the first rank of the stage times. The file must have the GEMMs of every
# stage.
rm -r cache
launch 0 0= --set parallel.pp=2 --set parallel.dp=2
expect '^RESULT (VALID|DEGRADED)'
unexpected algorithms-differ
all=$(lines ' x ')
[ "$all" -gt 5 ] && [[ "$(algorithms)" == "$all timed, 0 from the cache, "* ]] || complain "$(algorithms)" cache/gemm.txt

# The library of rank 2 refuses the algorithm of rank 0.
rm -r cache
launch 0 2=second
expect "^note: algorithms-differ: rank 2 on .* refuses rank 0's algorithm for [0-9]+ x [0-9]+ x [0-9]+ "
rm -r cache
launch 4 2=second --set run.conditions=error
expect '\[run\] conditions = error: algorithms-differ: rank 2 on '

# The cache file cannot be written.
launch 0 0= --set run.cache=/proc/none
expect 'algorithms are not kept: cannot create /proc/none'
finish
