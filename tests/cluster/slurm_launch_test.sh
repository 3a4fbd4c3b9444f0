#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Launch errors under Slurm, and their messages. Runs itself on hosts of tests/cluster/slurm.
set -euo pipefail
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    exec "$GSWBENCH_SOURCE_DIR/tests/cluster/slurm" --hosts 4 --slots 2 bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/cluster/kill_rank.sh"
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
job=("$GSWBENCH" run --verbose --config tiny-llama --set parallel.tp=2 --set parallel.dp=auto --set train.global_batch=auto
    --layers 1 --warmup 1)

# Without PMIx, each process would be a separate job, or its MPI would abort. There is one message, whether or not the
# first error ends the step.
for launch in 'none 0 without PMIx' 'none 1 without PMIx' 'pmi2 1 with PMI-2'; do
    read -r plugin keep what <<<"$launch"
    code=0
    timeout 100 srun --quiet --mpi="$plugin" --kill-on-bad-exit="$keep" -N 4 -n 8 "${job[@]}" --steps 2 >log 2>&1 || code=$?
    if [ $code -eq 0 ] || [ "$(grep -c '^gswbench: ' log)" -ne 1 ] ||
        ! grep -q "^gswbench: srun started 8 processes $what.* use srun --mpi=pmix" log; then
        echo "srun --mpi=$plugin: exit code $code"
        cat log
        exit 1
    fi
done

# Ranks distributed cyclically over the nodes get a note.
srun --quiet --mpi=pmix -N 4 -n 8 --distribution=cyclic "${job[@]}" --steps 2 >log 2>&1
grep -q '^note: ranks-apart: 4 of 4 tp groups span nodes, .*--ntasks-per-node=2 --distribution=block' log

# The command line of docs/cluster.md.
srun --quiet --mpi=pmix --cpus-per-task=1 --cpu-bind=none -K1 -N 4 --ntasks-per-node=2 "${job[@]}" --steps 2 >log 2>&1
grep -Eq '^RESULT (VALID|DEGRADED)' log && ! grep -Eq 'ranks-apart|local-rank' log

# mpirun works inside an allocation.
salloc --quiet -N 4 -n 8 mpirun "${job[@]}" --steps 2 >log 2>&1
grep -Eq '^RESULT (VALID|DEGRADED)' log    # ranks share cores

# A rank dies in the middle: the job ends on all hosts, and Slurm names rank and host.
kill_rank SLURM_PROCID=5 8 'h3: task 5: Killed' srun --quiet --mpi=pmix --kill-on-bad-exit=1 -N 4 -n 8 "${job[@]}"
