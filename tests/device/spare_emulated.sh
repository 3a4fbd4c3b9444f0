#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Choice of the SM margin by timing a few ways to share the device, on its clock. With FAKE_SHARING the emulated GEMM
# needs a second wave if it counts on SMs that channels occupy, and a transfer is slower with fewer SMs.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
arguments=(--config tiny-llama --backend cuda --comm nccl --layers 2 --steps 2 --warmup 0 --set trace.steps=0 --set run.verify=light
    --set parallel.fsdp=2 --set run.ranks_per_device=2 --set run.cache=cache --set model.hidden=128 --set model.heads=2
    --set model.kv_heads=1 --set model.head_dim=64 --set model.ffn=1024 --set model.vocab=2048 --set train.sequence=16
    --set train.micro_batch=1 --set train.global_batch=2)
run_as_a_host() { NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec "$GSWBENCH" run "$@"; }
export -f run_as_a_host
launch() {    # launch EXIT_CODE ARGUMENT...
    run "$1" mpirun -np 2 bash -c 'run_as_a_host "$@"' launch "${arguments[@]}" "${@:2}"
}
shared() { sed -En 's/^ *"(ctas|CTAs)_and_(sm|SM)_margin": "(.*)",*$/\3/p' "$(result result.json)"; }
expect_shared() {    # expect_shared PATTERN
    [[ "$(shared)" =~ $1 ]] || complain "'$(shared)' is not $1"
}

# If all ways take the same time, the margin is zero.
launch 0
expect '^RESULT (VALID|DEGRADED)'
expect_shared '^default, no SM margin: 16/16 [+-]0\.0 %, 8/0 [+-]0\.0 %, 8/8 '

# Short transfers get few channels, and GEMMs leave that many SMs.
FAKE_SHARING=0.01 launch 0
expect '^RESULT (VALID|DEGRADED)'
expect_shared '^4 CTAs, SM margin 4: .*, 4/4 -[0-9.]+ %$'
# The algorithms of the job are those for the remaining SMs.
grep -q ', processors 128, ' cache/gemm.txt || complain "GEMMs use all" cache/gemm.txt
# Long transfers get the maximum that a plan allows.
FAKE_SHARING=3 launch 0
expect_shared '^16 CTAs, SM margin 16: 16/16 -'

# A given margin, or --deterministic, disables the choice.
FAKE_SHARING=0.01 launch 0 --set run.spared_processors=0
[ -z "$(shared)" ] || complain "chosen: $(shared)"
FAKE_SHARING=0.01 launch 0 --deterministic
[ -z "$(shared)" ] || complain "chosen: $(shared)"
finish
