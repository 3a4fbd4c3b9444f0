#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests features that only newer NCCL versions have. Each must be reported, optional, and unused with an older library.
# NCCL is emulated, and ends a rank that breaks the rules of these functions.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"

arguments=(--verbose --config tiny-llama --layers 2 "${small[@]}" --set model.kv_heads=2 --backend cuda --comm nccl --steps 2
    --warmup 0 --set run.ranks_per_device=8 --deterministic)
run_as_a_host() {
    [ "$OMPI_COMM_WORLD_RANK" != "${DEBUG_RANK:-}" ] || export NCCL_DEBUG=WARN
    NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec "$GSWBENCH" "$@"
}
export -f run_as_a_host
old=$GSWBENCH_BINARY_DIR/tests/device/emulated/nccl_old${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

launch() {    # launch RANKS EXIT_CODE [ARGUMENT...]: runs the job on RANKS ranks and expects the exit code
    local ranks=$1 expected=$2
    shift 2
    run "$expected" mpirun -np "$ranks" bash -c 'run_as_a_host "$@"' run "${arguments[@]}" "$@"
}
figures() { grep -oE 'loss: [0-9.]+, grad_norm: [0-9.]+' output; }
connections() {    # connections KEY=VALUE...: expects these values in the result's report of connections
    python3 - "$(result result.json)" "$@" <<'END' || complain "other connections than $*"
import json, sys
found = json.load(open(sys.argv[1]))["connections"]
for key, value in (word.split("=") for word in sys.argv[2:]):
    if found[key] != json.loads(value):
        sys.exit(f"{key} is {found[key]}, not {value}")
END
}

# Each group has symmetric memory in windows, one for each stream. Results must equal the results without windows.
launch 2 0 --set parallel.fsdp=2
expect "^connections with: memory of NCCL's, 4 symmetric windows, 2\.00 MiB of the device by NCCL's own count$"
connections library_memory=true windows=4 registered=0 refused=0
with=$(figures)
launch 2 0 --set parallel.fsdp=2 --set run.registered_buffers=no
expect '^connections with: 2\.00 MiB of the device by NCCL.s own count$'
connections library_memory=false windows=0 library_bytes=2097152
[ -n "$with" ] && [ "$with" = "$(figures)" ] || complain "other numbers than $with"

# Pipeline stages register their activation buffers, once for each direction and neighbour. Loss and norm are reduced in
# a window.
launch 4 0 --set parallel.pp=2 --set parallel.fsdp=2 --set train.accumulation=2 --set run.registered_buffers=yes
connections library_memory=true windows=4 registered=2 refused=0

# NCCL registers no memory on either rank. Windows are optional, so the first run has none. registered_buffers = yes
# requires registration, so the second run must end with an error.
export FAKE_NCCL='unknown=0 unknown=1'
launch 2 0 --set parallel.fsdp=2
connections library_memory=true windows=0 refused=4
launch 2 4 --set parallel.fsdp=2 --set run.registered_buffers=yes
expect 'registered_buffers or zero_cta = yes: NCCL did not register memory for the [a-z-]+ stream of 2 ranks from 0 to 1: it needs a driver'
unset FAKE_NCCL

# Each all-to-all must be a single NCCL call, by copy engines where possible. An older library gets sends and receives.
experts=(--set model.family=mixtral --set model.capacity_factor=1 --set model.pattern=experts,experts --set model.experts=4 --set model.top_k=2 --set model.expert_ffn=16 --set parallel.fsdp=2
    --set parallel.ep=2)
launch 2 0 "${experts[@]}"
connections all_to_all=true zero_cta=0
one_call=$(figures)
launch 2 0 "${experts[@]}" --set run.zero_cta=yes
expect ', 3 connections with zero CTAs, ncclAlltoAll,'
connections all_to_all=true zero_cta=3
[ -n "$one_call" ] && [ "$one_call" = "$(figures)" ] || complain "other numbers than $one_call"
LD_LIBRARY_PATH=$old launch 2 0 "${experts[@]}"
connections all_to_all=false
[ "$one_call" = "$(figures)" ] || complain "other numbers than $one_call"
launch 2 4 --set parallel.fsdp=2 --set run.zero_cta=yes --set run.registered_buffers=no
expect 'zero_cta = yes: it needs registered buffers, but registered_buffers = no'
FAKE_NCCL='version=0:22703 version=1:22703' launch 2 4 --set parallel.fsdp=2 --set run.zero_cta=yes
expect 'zero_cta = yes: it needs NCCL 2\.28 or newer'

# Ring steps use sends and receives. With copy engines they use puts into the receiver, which has these rows at another
# offset than the sender. Both are tested with and without a CUDA graph.
ring=(--set model.heads=4 --set model.kv_heads=4 --set parallel.tp=4 --set parallel.sequence_parallel=yes
    --set parallel.tp_overlap=yes)
for graphs in on off; do
    launch 4 0 "${ring[@]}" --set run.graphs=$graphs
    connections one_sided_rings=0
    sent=$(figures)
    launch 4 0 "${ring[@]}" --set run.zero_cta=yes --set run.graphs=$graphs
    expect ', 1 of them with rings of one-sided puts'
    connections one_sided_rings=1
    [ -n "$sent" ] && [ "$sent" = "$(figures)" ] || complain "other numbers than $sent"
done
launch 2 0 --set parallel.cp=2 --set parallel.context=ring
sent=$(figures)
launch 2 0 --set parallel.cp=2 --set parallel.context=ring --set run.zero_cta=yes
connections one_sided_rings=1
[ -n "$sent" ] && [ "$sent" = "$(figures)" ] || complain "other numbers than $sent"

LD_LIBRARY_PATH=$old launch 2 0 --set parallel.fsdp=2
expect '^connections with: plain calls alone$'
[ "$with" = "$(figures)" ] || complain "other numbers than $with"
LD_LIBRARY_PATH=$old launch 2 4 --set parallel.fsdp=2 --set run.registered_buffers=yes
expect 'registered_buffers or zero_cta = yes: NCCL 2\.17\.1 has no ncclMemAlloc or ncclCommRegister: 2\.19 or newer has them'
run 4 mpirun -np 2 "$GSWBENCH" "${arguments[@]}" --comm mpi --set parallel.fsdp=2 --set run.registered_buffers=yes
expect 'registered_buffers = yes: communicator mpi does not support it: leave it out'

# A large group must be connected with several unique ids, or with one if the library supports only one.
launch 4 0 --set parallel.fsdp=4 --set run.ranks_per_id=2
expect ', 2 connections opened by several ids, '
connections by_several_ids=2 library_bytes=2097152
launch 4 0 --set parallel.fsdp=4 --set run.ranks_per_id=3
connections by_several_ids=0
LD_LIBRARY_PATH=$old launch 4 0 --set parallel.fsdp=4 --set run.ranks_per_id=2
connections by_several_ids=0 library_bytes=null

# Loading a kernel during a step can hang, because it may wait for a collective that is running. The emulator ends the
# run then. Isolated tests of ops would load all kernels before, so they are disabled.
launch 2 0 "${experts[@]}" --set run.verify=light --set run.graphs=off
expect '^RESULT (VALID|DEGRADED)'
[ "$one_call" = "$(figures)" ] || complain "other numbers than $one_call"

# The algorithm and protocol of each collective are parsed from NCCL's log, in the formats of several versions.
by() {    # by KIND ALGORITHM PROTOCOL CHANNELS: expects these for all ops of this kind
    python3 - "$(result result.json)" "$@" <<'END' || complain "a $1 is not by $2 $3 with $4 channels"
import csv, json, sys
kind, *expected = sys.argv[2:]
rows = [row for row in json.load(open(sys.argv[1]))["transfer_times"] if row["kind"] == kind]
rows += [line for line in csv.DictReader(open(sys.argv[1].replace("result.json", "transfers/1.csv"))) if line["kind"] == kind]
found = {(row["algorithm"], row["protocol"], str(row["channels"])) for row in rows}
sys.exit(found != {tuple(expected)} and f"{found}")
END
}
launch 2 0 --set parallel.fsdp=2 --set run.communication_algorithms=yes
expect '^    by AllGather_LD symmetric x 1$'
by all_gather AllGather_LD symmetric 1
by all_reduce AllReduce_LD symmetric 1
launch 2 0 --set parallel.fsdp=2 --set run.communication_algorithms=yes --set run.registered_buffers=no
by reduce_scatter RING LL 1
launch 2 0 "${experts[@]}" --set run.communication_algorithms=yes --set run.zero_cta=yes
by all_gather 'copy engine' '' 0
by all_to_all 'copy engine' '' 0
by reduce_scatter ReduceScatter_LD symmetric 1
LD_LIBRARY_PATH=$old launch 2 0 "${experts[@]}" --set run.communication_algorithms=yes
by all_gather RING SIMPLE 0
by all_to_all '' '' 0
NCCL_DEBUG=WARN launch 2 4 --set parallel.fsdp=2 --set run.communication_algorithms=yes
expect "communication_algorithms = yes needs NCCL's log for itself"
DEBUG_RANK=1 launch 2 4 --set parallel.fsdp=2 --set run.communication_algorithms=yes
expect "rank 1.*communication_algorithms = yes needs NCCL's log for itself"

# The GPU has so few SMs that collectives could occupy all of them.
FAKE_PROCESSORS=2 launch 2 0 --set parallel.fsdp=2
expect '^note: ctas: rank 0 on .* \(as 2 of 2 ranks\): collectives may use 2 SMs at a time, and the device has 2: none is left to compute$'
FAKE_PROCESSORS=2 launch 2 4 --set parallel.fsdp=2 --set run.conditions=error
expect 'conditions = error: ctas: rank 0'
launch 2 0 --set parallel.fsdp=2
unexpected '^note: ctas'
finish
