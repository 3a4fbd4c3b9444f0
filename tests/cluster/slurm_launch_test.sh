#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests errors in launching a job under Slurm, and their messages. The script runs itself on hosts of
# tests/cluster/slurm.
set -euo pipefail
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    exec "$GSWBENCH_SOURCE_DIR/tests/cluster/slurm" --hosts 4 --slots 2 bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/cluster/kill_rank.sh"
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
job=("$GSWBENCH" run --verbose --config tiny-llama --set parallel.tp=2 --set parallel.dp=auto --set train.global_batch=auto
    --layers 1 --warmup 1)

# Without PMIx, each process would run its own job of one rank, or its MPI would abort. There must be a single message,
# whether or not srun ends the step at the first error.
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

# If ranks are distributed cyclically over the nodes, tp groups span nodes, and a note must say so.
srun --quiet --mpi=pmix -N 4 -n 8 --distribution=cyclic "${job[@]}" --steps 2 >log 2>&1
grep -q '^note: ranks-apart: 4 of 4 tp groups span nodes, .*--ntasks-per-node=2 --distribution=block' log

# Tests the command line of docs/cluster.md.
srun --quiet --mpi=pmix --cpus-per-task=1 --cpu-bind=none -K1 -N 4 --ntasks-per-node=2 "${job[@]}" --steps 2 >log 2>&1
grep -Eq '^RESULT (VALID|DEGRADED)' log && ! grep -Eq 'ranks-apart|local-rank' log

# Tests mpirun inside an allocation.
salloc --quiet -N 4 -n 8 mpirun "${job[@]}" --steps 2 >log 2>&1
grep -Eq '^RESULT (VALID|DEGRADED)' log    # DEGRADED, since ranks share cores

# A rank is killed during the run. The job must end on all hosts, and Slurm must name the rank and the host.
kill_rank SLURM_PROCID=5 8 'h3: task 5: Killed' srun --quiet --mpi=pmix --kill-on-bad-exit=1 -N 4 -n 8 "${job[@]}"
