#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `preflight` of 8 hosts with 4 ranks each must name a rank that is 10 % slow or computes wrong results, a host that
# sends 30 % slower, and a pair of hosts whose link is 30 % slower. Each fault is tested alone. Without a fault, it must
# name no host. GSWBENCH_PREFLIGHTS is the number of cases of each fault. The script runs itself on hosts of
# tests/cluster/hosts.
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    exec "$GSWBENCH_SOURCE_DIR/tests/cluster/hosts" --hosts 8 --slots 4 --rate 400mbit bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
on_host=$GSWBENCH_SOURCE_DIR/tests/cluster/on_host
RANDOM=${GSWBENCH_SEED:-5}
preflight=(mpirun -np 32 --map-by ppr:4:node "$GSWBENCH" preflight --config tiny-llama --layers 1 --backend host --comm mpi
    --set train.micro_batch=1 --set train.global_batch=32)
places=('gemm "fc1"' 'gemm "qkv"' attention_forward 'gemm "head"')

# expect_outliers PATTERN HOST: expects that all outliers match PATTERN, and that HOST is the only host to drain.
expect_outliers() {
    grep -q '^outlier: ' output || complain "nothing is named, not $1"
    ! unwrap output | grep '^outlier: ' | grep -vE "^outlier: $1" || complain "something else is named than $1"
    grep -qE "^drain: $2$" output || complain "not drained: $2"
}
limit() {    # limit HOST QDISC...: replaces the traffic control of what HOST sends
    "$on_host" "$1" "tc qdisc replace dev eth0 root ${*:2}" 2>/dev/null
}
restore() {
    "$on_host" "$1" "tc qdisc delete dev eth0 root"
    limit "$1" tbf rate 400mbit burst 1m latency 50ms
}

printf '%s\n' 'about = one job' '[rows]' \
    'first = tiny-llama run.layers=1 train.micro_batch=1 train.global_batch=32 run.steps=12' >one.ini

for ((i = 0; i < ${GSWBENCH_PREFLIGHTS:-1}; i++)); do
    run 0 "${preflight[@]}"
    grep -q '^drain: none$' output || complain "something is named on hosts that are alike"

    rank=$((RANDOM % 32)) host=h$((rank / 4 + 1))
    run 6 "${preflight[@]}" --set fault.kind=slow --set fault.amount=10 --set fault.rank=$rank
    expect_outliers "device $((rank % 4)) of host $host \(rank $rank\): " "$host"

    rank=$((RANDOM % 32)) host=h$((rank / 4 + 1))
    run 5 "${preflight[@]}" --set fault.kind=flip --set fault.rank=$rank --set "fault.at=${places[i % 4]}" \
        --set fault.element=$RANDOM --set fault.bit=$((RANDOM % 15))
    expect_outliers "device $((rank % 4)) of host $host: rank $rank, isolated tests" "$host"

    host=h$((RANDOM % 8 + 1))
    limit $host tbf rate 280mbit burst 1m latency 50ms
    run 6 "${preflight[@]}"
    expect_outliers "host $host: every link between nodes from it takes " "$host"

    # `suite` must refuse the machine because of the slow host, before it runs its first job.
    rm -rf suite
    run 6 mpirun -np 32 --map-by ppr:4:node "$GSWBENCH" suite ./one.ini --backend host --comm mpi -o suite
    expect_outliers "host $host: every link between nodes from it takes " "$host"
    expect '^first +not run '
    expect '^REFUSE  0 of 1 rows accepted, 0 refused$'
    restore $host

    from=$((RANDOM % 8)) to=$(((from + 1 + RANDOM % 7) % 8))
    limit h$((from + 1)) handle 1: htb default 1
    "$on_host" h$((from + 1)) "tc class add dev eth0 parent 1: classid 1:1 htb rate 400mbit burst 1m cburst 1m quantum 60000 &&
        tc class add dev eth0 parent 1: classid 1:2 htb rate 280mbit burst 1m cburst 1m quantum 60000 &&
        tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 10.0.0.$((to + 1)) flowid 1:2"
    run 6 "${preflight[@]}"
    expect_outliers "link h$((from + 1)) -> h$((to + 1)) " "h$((to + 1))"
    restore h$((from + 1))
done
finish
