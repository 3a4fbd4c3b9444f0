#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each distinct op runs once before the first step. In these two layouts, an earlier op has left FP8 block scales in the
# memory where the first combine gradient reads indices: 1.0 has the bits 1065353216. The op must not use them as
# indices: on the emulated GPU, a kernel that accesses memory out of bounds ends the program.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
arguments=(--config tiny-llama --backend cuda --comm nccl --deterministic --layers 2 --steps 1 --warmup 0 --set run.verify=light
    --set trace.steps=0 --set parallel.dp=2 --set parallel.ep=2 --set model.family=mixtral --set model.experts=8
    --set model.top_k=2 --set model.heads=4 --set model.kv_heads=4 --set model.vocab=256 --set train.sequence=32
    --set precision.compute=fp8 --set precision.recipe=block)
run_on_own_device() {
    FAKE_DEVICE=$OMPI_COMM_WORLD_RANK NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec "$GSWBENCH" "$@"
}
export -f run_on_own_device
launch() {    # launch [ARGUMENT...]: runs the job on two ranks
    run 0 mpirun -np 2 bash -c 'run_on_own_device "$@"' run "${arguments[@]}" "$@"
    expect '^RESULT (VALID|DEGRADED)'
}
launch --set train.micro_batch=1 --set train.global_batch=2 --set model.ffn=256 --set model.hidden=256 \
    --set model.head_dim=64 --set model.capacity_factor=1
launch --set train.micro_batch=2 --set train.global_batch=4 --set model.ffn=512 --set model.hidden=64 --set model.head_dim=16
finish
