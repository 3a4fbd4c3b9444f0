#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# If NCCL fails, the job must end in bounded time with a message that names the failure and the documented exit code.
# Two ranks share the emulated GPU, and the emulated NCCL injects the failures.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"

job=(--config tiny-llama --layers 1 "${small[@]}")
arguments=("${job[@]}" --verbose --backend cuda --comm nccl --steps 2 --warmup 0 --set run.ranks_per_device=2
    --set run.connect_seconds=2 --set trace.steps=0)
run_as_a_host() { NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec "$GSWBENCH" "$@"; }
export -f run_as_a_host

launch() {    # launch FAULT EXIT_CODE PATTERN [ARGUMENT...]: runs the job with this fault
    local fault=$1 expected=$2 pattern=$3
    shift 3
    FAKE_NCCL=$fault run "$expected" mpirun -np 2 bash -c 'run_as_a_host "$@"' run "${arguments[@]}" "$@"
    expect "$pattern"
}

launch '' 0 '^RESULT (VALID|DEGRADED)'
# As the real NCCL, the emulated one allocates memory when a connection is first used, which must be before the steps: 1
# MiB for each possible channel.
expect '^before the steps: algorithms chosen in [0-9.]+ s, devices connected in [0-9.]+ s \([0-9.]+ MiB\), step captured in '
channels=$("$GSWBENCH" plan "${job[@]}" --ranks 2 --json |
    python3 -c 'import json, sys; print(sum(one["ctas"] for one in json.load(sys.stdin)["connections"]))')
expect "\"connection_bytes\": $((channels << 20))\b" "$(result result.json)"

# NCCL's log must not be mixed with the output of the program.
NCCL_DEBUG=INFO timeout 120 mpirun -np 2 bash -c 'run_as_a_host "$@"' run "${arguments[@]}" --json >result.json 2>log ||
    complain "exit code $?" log
python3 -c 'import json; json.load(open("result.json"))' || complain "more than a result" result.json
expect '^NCCL INFO a communicator of 2 ranks$' log
# With NCCL_LAUNCH_ORDER_IMPLICIT = 1 and a driver older than CUDA 12.9, NCCL would serialize captured collectives, so
# the step must not be captured.
for graphs in auto on; do
    code=0 pattern='^note: graphs-off: .*NCCL_LAUNCH_ORDER_IMPLICIT = 1 with a driver for CUDA 12\.8, older than 12\.9'
    [ $graphs = auto ] || code=4 pattern='\[run\] graphs = on: .*NCCL_LAUNCH_ORDER_IMPLICIT = 1 with a driver'
    NCCL_LAUNCH_ORDER_IMPLICIT=1 FAKE_DRIVER=12080 launch '' $code "$pattern" --set run.graphs=$graphs
done
NCCL_LAUNCH_ORDER_IMPLICIT=1 launch '' 0 '^RESULT (VALID|DEGRADED)' --set run.graphs=on
# Only the thread that enqueues NCCL calls uses MPI, so an MPI without support for several threads must be sufficient.
FAKE_NCCL='' run 0 mpirun -np 2 env LD_PRELOAD="$GSWBENCH_BINARY_DIR/tests/libmpi_with_faults.so" bash -c 'run_as_a_host "$@"' run "${arguments[@]}"
expect '^RESULT (VALID|DEGRADED)'
launch version=1:22800 4 'rank 1 on .* has NCCL 2\.28\.0, rank 0 on .* 2\.28\.9: install one version'
# Only rank 0 creates unique ids, so this fault on rank 1 has no effect.
launch refuse=1:ncclGetUniqueId 0 '^RESULT (VALID|DEGRADED)'
launch refuse=0:ncclCommInitRankConfig 8 'rank 0 on .*ncclCommInitRankConfig.*was refused on command'
launch refuse=1:ncclAllReduce 8 'rank 1 on .*ncclAllReduce.*was refused on command'
launch '' 7 '^gswbench: hang: rank 1 \(.*\): the others wait for it; .*"mlp norm"' --set run.graphs=off --set run.hang_seconds=3 \
    --set fault.kind=spin --set fault.rank=1 --set fault.step=1 --set 'fault.at=mlp norm'
touch began
launch absent=1 8 'NCCL did not connect the [a-z-]+ stream of 2 ranks from 0 to 1 in 2 s: a rank is missing'
left=$(find /dev/shm -name 'gswbench-nccl-*' -newer began)    # the job is killed while it connects
[ -z "$left" ] || complain "shared memory is left: $left"
for graphs in on off; do
    launch lose=1:7 8 'rank 1 on .*NCCL lost the [a-z-]+ stream of 2 ranks from 0 to 1: .*lost on command' \
        --set run.graphs=$graphs
done

# If ranks have separate GPUs, the job must use NCCL, unless the user chooses another communicator.
auto=(mpirun -np 2 bash -c 'FAKE_DEVICE=$OMPI_COMM_WORLD_RANK run_as_a_host "$@"' run "${arguments[@]}" --comm)
FAKE_NCCL=version=1:21605 run 4 "${auto[@]}" auto
expect 'communicator = auto: rank 1 on .* has its own device, but cannot use NCCL: NCCL 2\.16\.5 is too old: 2\.17\.0 or newer'
expect '; or use --comm mpi, which is slower'
FAKE_NCCL=version=1:21605 run 0 "${auto[@]}" mpi
expect '^RESULT (VALID|DEGRADED)'
mkdir broken
touch broken/libnccl.so.2
auto[5]='[ $OMPI_COMM_WORLD_RANK != 1 ] || export LD_LIBRARY_PATH=$PWD/broken; '${auto[5]}
run 4 "${auto[@]}" auto
expect 'communicator = auto: rank 1 on .* has its own device, but cannot use NCCL: libnccl\.so\.2 cannot be loaded'
finish
