#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# If a rank hangs, one message must name it, also if hosts have only IPv6 addresses, or if five of six interfaces
# connect nothing. Damage of a token count on another host must be reported, too. The script runs itself on hosts of
# tests/cluster/hosts.
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    failures=0
    for network in "--ipv 6" "--dead 5"; do
        code=0
        # shellcheck disable=SC2086
        GSWBENCH_NETWORK=$network "$GSWBENCH_SOURCE_DIR/tests/cluster/hosts" --hosts 4 --slots 2 $network bash "$0" || code=$?
        [ $code -ne 77 ] || exit 77
        failures=$((failures + (code != 0)))
    done
    exit $((failures > 0))
fi
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
# MPI must be told which interface connects the hosts. The program finds it alone for its own watchdog messages.
[ "$GSWBENCH_NETWORK" = "--ipv 6" ] || export OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_oob_tcp_if_include=eth0
job=(mpirun -np 8 --map-by ppr:2:node "$GSWBENCH" run --verbose --config tiny-llama --layers 1 --backend host --warmup 1 --comm mpi
    --steps 1000 --set trace.steps=0 --set train.micro_batch=1 --set train.global_batch=8 --set run.hang_seconds=3
    --set run.output=results --set fault.step=3)
for rank in 2 7; do
    for kind in stop spin; do
        run 7 "${job[@]}" --set parallel.fsdp=8 --set fault.kind=$kind --set fault.rank=$rank --set fault.at=adamw
        expect "^gswbench: hang: rank $rank \(h$((rank / 2 + 1)), pid [0-9]+, state .\): .* no progress for "
        [ "$(grep -c '^gswbench: ' output)" = 1 ] || complain "not one message"
    done
done
run 5 "${job[@]}" --set parallel.dp=8 --set parallel.ep=2 --set model.family=mixtral --set model.experts=4 --set model.top_k=2 \
    --set fault.kind=flip --set fault.rank=5 --set 'fault.at=token count exchange' --set fault.bit=30
expect '^invalid: damaged: step 3, rank 5: '
finish
