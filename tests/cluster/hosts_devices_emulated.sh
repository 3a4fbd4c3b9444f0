#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests eight hosts with four emulated GPUs each. A job must complete. If a rank never joins an NCCL communicator, the
# job must end with few messages, from the ranks that notice this first, and not with a message from each rank. The
# script runs itself on hosts of tests/cluster/hosts.
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    exec "$GSWBENCH_SOURCE_DIR/tests/cluster/hosts" --hosts 8 --slots 4 bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs FAKE_NCCL_FOLDER=$PWD
job=(run --verbose --config tiny-llama --backend cuda --layers 1 --steps 3 --warmup 1 --set trace.steps=0 --set parallel.fsdp=4
    --set parallel.dp=8 --set train.global_batch=32 --set train.micro_batch=1 "${small[@]}")
on_device() { FAKE_DEVICE=$OMPI_COMM_WORLD_RANK exec "$GSWBENCH" "$@"; }
export -f on_device
launch() {    # launch EXIT_CODE FAULT [ARGUMENT...]: runs the job with this fault in the emulated NCCL
    run "$1" mpirun -np 32 --map-by ppr:4:node -x GSWBENCH -x GSWBENCH_CONFIGS -x FAKE_NCCL_FOLDER -x FAKE_NCCL="$2" \
        -x BASH_FUNC_on_device%% bash -c 'on_device "$@"' launch "${job[@]}" "${@:3}"
}

launch 0 ''
expect '^RESULT (VALID|DEGRADED)'    # DEGRADED, since ranks share cores
expect '^# system nccl communicator'
expect '^before the steps: .*devices connected in '
# On several nodes, the run times warm-up steps with and without a CUDA graph, and uses the faster way.
launch 0 '' --steps 11 --warmup 8
expect '^note: graphs-timed: on 8 nodes, a step takes [0-9.e-]+ s as a CUDA graph and [0-9.e-]+ s op by op \(medians of 3 warm-up steps each\): steps run (as a CUDA graph|op by op)$'
python3 - "$(result result.json)" <<'END' || complain "other times than those of the steps"
import json, statistics, sys
result = json.load(open(sys.argv[1]))
times = [step["time_s"] for step in result["steps"]]
found = (result["preparation"]["eager_step_s"], result["preparation"]["captured_step_s"])
expected = (statistics.median(times[1:4]), statistics.median(times[5:8]))
sys.exit(found != expected and f"{found}, not {expected}")
END
launch 8 absent=9 --set run.connect_seconds=20
expect "^gswbench: rank [0-9]+ on h[1-8]: NCCL did not connect the [a-z-]+ stream of [0-9]+ ranks "
[ "$(grep -c 'NCCL did not connect' output)" -le 8 ] || complain "a message from each rank"
finish
