#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Watchdogs of two hosts reach each other over IPv6 alone, and over the last of six networks if the five others do not
# connect the hosts. The hosts are network namespaces; without them the test is skipped.
if [ "${GSWBENCH_NETWORKS:-}" != inside ]; then
    own=(unshare --net --mount --pid --fork --kill-child --mount-proc)
    [ "$(id -u)" -eq 0 ] || own+=(--user --map-root-user)
    for tool in unshare nsenter ip; do
        command -v $tool >/dev/null || exit 77
    done
    for kind in bridge "veth peer name eth1"; do
        # shellcheck disable=SC2086
        if ! reason=$("${own[@]}" ip link add eth0 type $kind 2>&1); then
            echo "no namespaces or networks: $reason"
            exit 77
        fi
    done
    GSWBENCH_NETWORKS=inside exec "${own[@]}" bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"

hosts=()
for host in 1 2; do
    unshare --net sleep infinity &
    hosts+=($!)
    until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
done
on() {    # on HOST COMMAND...: runs a command on host 0 or 1
    nsenter --net="/proc/${hosts[$1]}/ns/net" "${@:2}"
}
check() {    # check EXIT_CODE: expects this exit code of two watchdogs that send datagrams to each other
    run "$1" "$GSWBENCH_BINARY_DIR/tests/channel_hosts" "/proc/${hosts[0]}/ns/net" "/proc/${hosts[1]}/ns/net"
}

for host in 0 1; do
    for i in 1 2 3 4; do
        on $host ip link add "ib$i" type bridge
        on $host ip address add "10.$((10 * i + host)).0.1/24" dev "ib$i"
        on $host ip link set "ib$i" up
    done
    on $host ip link add docker0 type bridge
    on $host ip address add 172.17.0.1/16 dev docker0
    on $host ip link set docker0 up
done
ip link add eth0 netns "${hosts[0]}" type veth peer name eth0 netns "${hosts[1]}"    # connects the hosts
for host in 0 1; do
    on $host ip address add "10.0.0.$((host + 1))/24" dev eth0
    on $host ip link set eth0 up
done
check 0    # they reach each other over the sixth network

for host in 0 1; do
    for name in ib1 ib2 ib3 ib4 docker0 eth0; do
        on $host ip address flush dev $name
    done
    on $host ip link set lo up
    on $host ip address flush dev lo
    on $host ip address add "fd00::$((host + 1))/64" dev eth0 nodad
done
check 0    # they reach each other over IPv6

for host in 0 1; do
    on $host ip address flush dev eth0
done
check 1    # no network connects them
expect "^host 0: no datagram$"
expect "^host 1: no datagram$"
kill "${hosts[@]}"
finish
