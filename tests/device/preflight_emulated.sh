#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A preflight of two devices that NCCL connects, emulated: every class is measured, and a device that computes wrongly is
# named. Times of an emulated device mean nothing, so that nothing is said of outliers.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
preflight=(mpirun -np 2 bash -c 'NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec "$GSWBENCH" "$@"' preflight preflight
    --config tiny-llama --layers 1 --set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16
    --set model.ffn=32 --set model.vocab=64 --set train.sequence=16 --backend cuda --comm nccl --set run.ranks_per_device=2 --seconds 4)
export GSWBENCH

code=0
"${preflight[@]}" >output 2>&1 || code=$?
[ $code -eq 0 ] || [ $code -eq 6 ] || complain "exit code $code, neither 0 nor 6"
expect '^# preflight of tiny-llama: 2 ranks, cuda backend, nccl communicator'
expect '^gemm bf16,bf16,bf16 .*FLOP/s, 2 devices$'
expect '^copy in the device.s memory: .*B/s, 2 devices$'
expect '^link within a node: .*B/s, 2 links$'
expect '^drain: '

run 5 "${preflight[@]}" --set fault.kind=flip --set 'fault.at=gemm "qkv"' --set fault.rank=1 --set fault.bit=14
expect '^outlier: device 1 of host .*: rank 1, given numbers before the steps: .*qkv'
finish
