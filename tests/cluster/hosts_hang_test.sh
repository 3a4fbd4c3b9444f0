#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# If a rank hangs and stalls ranks on several hosts, one message must name it. The same holds for a host that stops
# answering. GSWBENCH_HANGS is the number of cases of each fault. The script runs itself on hosts of
# tests/cluster/hosts.
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    exec "$GSWBENCH_SOURCE_DIR/tests/cluster/hosts" --hosts 4 --slots 2 bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
RANDOM=3
job=(mpirun -np 8 --map-by ppr:2:node "$GSWBENCH" run --verbose --config tiny-llama --layers 2 --backend host --warmup 1 --comm mpi
    --steps 1000 --set trace.steps=0 --set train.micro_batch=1 --set train.global_batch=8 --set run.hang_seconds=3 --set run.output=results)
layouts=("--set parallel.fsdp=4 --set parallel.dp=2" "--set parallel.dp=1 --set parallel.fsdp=4 --set parallel.pp=2")
places=('gradient reduce-scatter' 'weight gather' adamw 'mlp norm')

expect_one() {    # expect_one PATTERN: expects a single message, which matches PATTERN
    expect "$1"
    [ "$(grep -c '^gswbench: ' output)" = 1 ] || complain "not one message"
}
for kind in stop spin skip; do
    for ((i = 0; i < ${GSWBENCH_HANGS:-2}; i++)); do
        rank=$((RANDOM % 8)) at=${places[RANDOM % 2]}
        [ $kind = skip ] || at=${places[RANDOM % 4]}
        # shellcheck disable=SC2086
        run 7 "${job[@]}" ${layouts[i % 2]} --set fault.kind=$kind --set fault.rank=$rank --set fault.step=3 \
            --set "fault.at=$at"
        expect_one "^gswbench: hang: rank $rank \(h$((rank / 2 + 1)), pid [0-9]+, state .\): .* no progress for [34]\.[0-9] s; last: "
    done
done

# Damages a token count that a rank on another host sends. That rank must tell rank 0, which ends the job with an
# INVALID result.
run 5 "${job[@]}" --layers 1 --set parallel.dp=8 --set train.micro_batch=1 --set parallel.ep=2 --set model.family=mixtral \
    --set model.experts=4 --set model.top_k=2 --set fault.kind=flip --set fault.rank=5 --set fault.step=3 \
    --set 'fault.at=token count exchange' --set fault.bit=30
expect '^invalid: damaged: step 3, rank 5: op [0-9]+ read_token_counts "read token counts", forward, layer 0, microbatch 0: [0-9]+ rows of owner 0 '

# Stops all ranks of one host with SIGSTOP.
for host in 3 1; do
    # shellcheck disable=SC2086
    "${job[@]}" ${layouts[0]} >output 2>&1 </dev/null &
    for _ in {1..600}; do
        ! grep -q "^completed step: 2" output || break
        sleep 0.1
    done
    stopped=0
    for pid in $(pgrep -f "^$GSWBENCH run"); do
        if grep -qzE "^OMPI_COMM_WORLD_RANK=($((2 * host - 2))|$((2 * host - 1)))$" "/proc/$pid/environ"; then
            kill -STOP "$pid"
            stopped=$((stopped + 1))
        fi
    done
    wait || true
    [ $stopped = 2 ] || complain "$stopped ranks of host $host were found"
    expect_one "^gswbench: hang: rank $((2 * host - 2)) \(h$host\): no rank of its host answers; "
done
finish
