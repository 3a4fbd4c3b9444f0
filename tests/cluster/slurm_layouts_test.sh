#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Trains a scaled-down job with the layout of every published system, on 8 nodes with 1 rank and then with 2 ranks each,
# started by srun.
set -euo pipefail
cd "$GSWBENCH_SOURCE_DIR/tests"
for ranks in 1 2; do
    cluster/slurm --hosts 8 --slots "$ranks" training/train_published_layouts $((8 * ranks)) "$ranks" \
        srun --quiet --mpi=pmix --kill-on-bad-exit=1 --nodes=8 --ntasks-per-node="$ranks"
done
