#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# If the launcher does not bind a rank to cores, gswbench must bind it to the cores next to its GPU. A rank that is
# bound elsewhere must get a note. The machine is imitated by files mounted over /sys: two NUMA nodes with cores, and
# the GPU on the second.
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    own=(unshare --mount)
    [ "$(id -u)" -eq 0 ] || own+=(--user --map-root-user)
    "${own[@]}" mount -t tmpfs tmpfs /sys/bus/pci/devices 2>/dev/null || exit 77
    GSWBENCH_HOSTS=inside exec "${own[@]}" bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
mapfile -t cores < <(for ((core = 0; core < $(nproc --all); core++)); do taskset -c $core true 2>/dev/null && echo $core; done)
[ ${#cores[@]} -ge 2 ] || exit 77
first=${cores[0]} last=${cores[-1]}

mount -t tmpfs tmpfs /sys/devices/system/node
mkdir /sys/devices/system/node/node{0,1}
echo "$first" >/sys/devices/system/node/node0/cpulist
echo "$last" >/sys/devices/system/node/node1/cpulist
mount -t tmpfs tmpfs /sys/bus/pci/devices
mkdir /sys/bus/pci/devices/ffff:00:00.0
echo 1 >/sys/bus/pci/devices/ffff:00:00.0/numa_node

job=("$GSWBENCH" run --verbose --config tiny-llama --backend cuda --layers 1 --steps 2 --warmup 0 --set trace.steps=0
    "${small[@]}" --set run.output=out)
run 0 taskset -c "$first,$last" "${job[@]}"
expect '^RESULT (VALID|DEGRADED)'
unexpected bound-elsewhere
expect '"processors": 1,' "$(result result.json)"
expect '"cores": "1 of NUMA node 1, the node of the device, bound by gswbench"' "$(result result.json)"
run 0 taskset -c "$first" "${job[@]}"
expect '^note: bound-elsewhere: rank 0 on .*: the launcher bound it to NUMA node 0, but its device FFFF:00:00.0 is on node 1: use mpirun'
run 4 taskset -c "$first" "${job[@]}" --set run.conditions=error
expect '\[run\] conditions = error: bound-elsewhere: rank 0 on '
finish
