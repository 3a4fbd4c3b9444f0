#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Trains a reduced version of each published layout on 8 ranks of this machine: as threads and, if the program has MPI,
# as processes.
set -euo pipefail
launcher=()
if command -v mpirun >/dev/null && "$GSWBENCH" run --help | grep -q ' mpi,'; then
    launcher=(mpirun -np 8)
fi
exec "$GSWBENCH_SOURCE_DIR/tests/training/train_published_layouts" 8 8 "${launcher[@]}"
