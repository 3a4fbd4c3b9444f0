#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs jobs over MPI with the thread sanitizer. MPI libraries are not instrumented. Streams, watchdog, signals and
# journal must have no data race.
. "${BASH_SOURCE%/*}/../support/script.sh"
export TSAN_OPTIONS=ignore_noninstrumented_modules=1:exitcode=66

for axes in fsdp=2 pp=2 tp=2; do
    run 0 mpirun --allow-run-as-root --oversubscribe -np 2 "$GSWBENCH" run --config tiny-llama --layers 2 --backend host \
        --comm mpi --steps 4 --warmup 1 --set run.threads=2 --set "parallel.$axes" --out results
    expect '^RESULT DEGRADED'
    unexpected 'WARNING: ThreadSanitizer'
done

# Asks for the status by a signal, then ends the run.
mpirun --allow-run-as-root --oversubscribe -np 2 "$GSWBENCH" run --config tiny-llama --layers 2 --backend host --comm mpi \
    --steps 1000 --set parallel.fsdp=2 --out results >output 2>&1 &
until grep -q '^completed step: 2' output; do
    sleep 0.2
done
for signal in USR2 TERM; do
    pkill -$signal -f "^$GSWBENCH run" || true
    sleep 0.5
done
wait || true
expect '^partial: '
unexpected 'WARNING: ThreadSanitizer'
finish
