#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs 64 ranks with an emulated GPU each on this machine. Within a minute, they must connect, choose GEMM algorithms by
# timing (the cache is empty), train, and get correct results. The job allows threads to share cores, and a note must
# say that they do.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs FAKE_NCCL_FOLDER=$PWD
job=(run --verbose --config tiny-llama --backend cuda --layers 1 --steps 3 --warmup 1 --set parallel.fsdp=4 --set parallel.dp=16
    --set train.global_batch=64 --set train.micro_batch=1 "${small[@]}" --set run.threads_per_core=64)
on_device() { FAKE_DEVICE=$OMPI_COMM_WORLD_RANK exec "$GSWBENCH" "$@"; }
export -f on_device
run 0 timeout 60 mpirun -np 64 bash -c 'on_device "$@"' launch "${job[@]}"
expect '^RESULT (VALID|DEGRADED)'
expect '^note: oversubscribed: 64 threads of 64 ranks share [0-9]+ cores of '
expect '^# layout ranks 64  fsdp 4  dp 16'
finish
