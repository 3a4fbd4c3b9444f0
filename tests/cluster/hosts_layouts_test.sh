#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Trains a scaled-down job with the layout of every published system, on 4 hosts with 4 ranks each, started by mpirun.
set -euo pipefail
cd "$GSWBENCH_SOURCE_DIR/tests"
exec cluster/hosts --hosts 4 --slots 4 training/train_published_layouts 16 4 mpirun -np 16
