#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every published system's layout, shrunk, trains on 8 ranks of this machine: as threads and, where MPI is built in, as
# processes.
set -euo pipefail
launcher=()
if command -v mpirun >/dev/null && "$GSWBENCH" run --help | grep -q ' mpi,'; then
    launcher=(mpirun -np 8)
fi
exec "$GSWBENCH_SOURCE_DIR/tests/training/train_published_layouts" 8 8 "${launcher[@]}"
