#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One of two ranks shares its core with two busy loops. It must be named, although the steps of both ranks take equally
# long because they wait for each other. The rank also has a lower priority, so that other load on this machine matters
# less. If stalls counted as compute time, both ranks would have nearly the same compute time.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"

mapfile -t cores < <(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done)
if [ ${#cores[@]} -lt 2 ]; then
    echo "there is one core only"
    is_finished=yes
    exit 77
fi
loops=()
for _ in 1 2; do
    taskset -c "${cores[1]}" bash -c 'while :; do :; done' &
    loops+=($!)
done

export FIRST=${cores[0]} SECOND=${cores[1]}
run_on_own_core() {
    if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then
        exec taskset -c "$FIRST" "$GSWBENCH" "$@"
    fi
    exec taskset -c "$SECOND" nice -n 10 "$GSWBENCH" "$@"
}
export -f run_on_own_core
run 0 mpirun -np 2 bash -c 'run_on_own_core "$@"' run --verbose --config tiny-llama --set parallel.dp=2 --layers 1 --steps 12 \
    --set run.verify=light --set trace.steps=0
kill "${loops[@]}"

expect '^RESULT DEGRADED'
expect '^degraded: slow-rank: rank 1 \(.*\) computes [0-9]{3,}\.[0-9] % longer than the median of the 2 ranks with the same work'
expect '^ranks: slowest [01] \(.*\) \+[0-9]+\.[0-9]% to the fastest  computes longest: rank 1 \('
[ "$(grep -c 'slow-rank:' output)" -eq 1 ] || complain 'not one rank is named'
finish
