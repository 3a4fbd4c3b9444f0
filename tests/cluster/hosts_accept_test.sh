#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests `accept` on 8 hosts with 2 ranks each. accept tests each rank's compute and each link between two hosts before
# it runs the whole job. It must refuse, before the run, a rank that is 10 % slow or computes wrong results, a host that
# sends 30 % slower, and a pair of hosts whose link is 30 % slower, and must name the host. Without a fault, it must
# name no host and run the job. The answer is then CANNOT TELL, because the ranks share two cores. GSWBENCH_ACCEPTS is
# the number of cases of each fault, and GSWBENCH_SEED selects the ranks and hosts. The script runs itself on hosts of
# tests/cluster/hosts.
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    exec "$GSWBENCH_SOURCE_DIR/tests/cluster/hosts" --hosts 8 --slots 2 --rate 400mbit bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
on_host=$GSWBENCH_SOURCE_DIR/tests/cluster/on_host

places=('gemm "fc1"' 'gemm "qkv"' attention_forward 'gemm "head"')

row() {    # row NAME SECONDS: writes a configuration with a published step time of SECONDS
    printf '%s\n' '[model]' 'preset = tiny-llama' 'layers = 1' '[parallel]' 'dp = auto' '[train]' 'sequence = 128' \
        'micro_batch = 1' 'global_batch = 16' '[when ranks=16]' "published.step_seconds = $2" >"$1.ini"
}
accept() {    # accept CODE NAME ARGUMENT...: runs accept on all ranks and expects the exit code
    run "$1" mpirun -np 16 --map-by ppr:2:node "$GSWBENCH" accept --config "$folder/$2.ini" --backend host --comm mpi \
        --steps 20 --out "$folder/results" -o "$folder/$2" "${@:3}"
}
# expect_refusal NAME HOST OUTLIER: expects a refusal before any run that names only OUTLIER, and HOST as the host to
# drain.
expect_refusal() {
    expect '^REFUSE  outliers that the preflight found: [0-9]+$'
    expect "^drain: $2$"
    ! unwrap output | grep '^outlier: ' | grep -vE "^outlier: $3" || complain "something else is named than $3"
    unexpected '^RESULT'
    expect "\"drain\": \"$2\"," "$folder/$1/accept.json"
    expect '"run_id": "",' "$folder/$1/accept.json"
    expect '"name": "link between nodes",' "$folder/$1/accept.json"
}
limit() {    # limit HOST QDISC...: replaces the traffic control of what HOST sends
    "$on_host" "$1" "tc qdisc replace dev eth0 root ${*:2}" 2>/dev/null
}
restore() {
    "$on_host" "$1" "tc qdisc delete dev eth0 root"
    limit "$1" tbf rate 400mbit burst 1m latency 50ms
}

row published 100

RANDOM=${GSWBENCH_SEED:-5}
for ((i = 0; i < ${GSWBENCH_ACCEPTS:-1}; i++)); do
    rank=$((RANDOM % 16)) host=h$((rank / 2 + 1))
    accept 6 published --set fault.kind=slow --set fault.amount=10 --set fault.rank=$rank
    expect_refusal published $host "device $((rank % 2)) of host $host \(rank $rank\): "

    rank=$((RANDOM % 16)) host=h$((rank / 2 + 1))
    accept 6 published --set fault.kind=flip --set fault.rank=$rank --set "fault.at=${places[RANDOM % 4]}" \
        --set fault.element=$RANDOM --set fault.bit=$((RANDOM % 15))
    expect_refusal published $host "device $((rank % 2)) of host $host: rank $rank, isolated tests"

    host=h$((RANDOM % 8 + 1))
    limit $host tbf rate 280mbit burst 1m latency 50ms
    accept 6 published
    expect_refusal published $host "host $host: every link between nodes from it takes "
    restore $host

    from=$((RANDOM % 8)) to=$(((from + 1 + RANDOM % 7) % 8))
    limit h$((from + 1)) handle 1: htb default 1
    "$on_host" h$((from + 1)) "tc class add dev eth0 parent 1: classid 1:1 htb rate 400mbit burst 1m cburst 1m quantum 60000 &&
        tc class add dev eth0 parent 1: classid 1:2 htb rate 280mbit burst 1m cburst 1m quantum 60000 &&
        tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 10.0.0.$((to + 1)) flowid 1:2"
    accept 6 published
    expect_refusal published h$((to + 1)) "link h$((from + 1)) -> h$((to + 1)) "
    restore h$((from + 1))

    accept 15 published
    expect '^link between nodes: .*, 112 links(;|$)'
    expect '^RESULT DEGRADED'
    expect '^CANNOT TELL  the run is degraded: 16 threads of 16 ranks share [0-9]+ cores of h1'
    expect '^drain: none$'
    expect '"basis": "published",' "$folder/published/accept.json"
    expect '"name": "link between nodes",' "$folder/published/accept.json"
    expect '"outliers": \[\],' "$folder/published/accept.json"
done
finish
