#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A save or a load that takes long is no hang as long as bytes move, on whichever rank; one that stands still is, and its
# file is named. After a signal a save has the seconds of checkpoint.grace.
# shellcheck source=tests/support/script.sh
. "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
command -v mpirun >/dev/null || exit 77
disk=$GSWBENCH_BINARY_DIR/tests/libfaulty_disk.so
[ -f "$disk" ] || exit 77

job=(mpirun --allow-run-as-root -np 2 "$GSWBENCH" run --config tiny-llama --layers 1 --backend host --warmup 0 --comm mpi
    --set trace.steps=0 --set parallel.fsdp=2 --set run.output=results --set run.hang_seconds=1)
save=(--steps 1 --set "checkpoint.save=$folder/saved")
load=(--steps 1 --set "checkpoint.load=$folder/saved")

# The shard of rank 1 has some fifty slices: each takes a while, all of them longer than hang_seconds.
run 0 env LD_PRELOAD="$disk" FAULTY_NAME=rank-00001-of FAULTY_SECONDS=0.15 "${job[@]}" "${save[@]}"
expect '^RESULT VALID'
took=$(sed -n 's/.*Save duration: \([0-9]*\).*/\1/p' output)
[ "${took:-0}" -ge 2 ] || complain "the disk was not slow"
run 0 env LD_PRELOAD="$disk" FAULTY_NAME=rank-00001-of FAULTY_SECONDS=0.15 "${job[@]}" "${load[@]}"
expect '^RESULT VALID'

# A slice that takes for ever.
run 7 env LD_PRELOAD="$disk" FAULTY_NAME=rank-00001-of FAULTY_SECONDS=60 FAULTY_CALL=9 "${job[@]}" "${load[@]}"
expect '^gswbench: hang: rank 1 \(.*: the others wait for it; nothing has moved for [12]\.[0-9] s; last: at file .*rank-00001-of-00002.safetensors; 1 other wait$'
rm -r saved
run 7 env LD_PRELOAD="$disk" FAULTY_NAME=rank-00001-of FAULTY_SECONDS=60 FAULTY_CALL=9 "${job[@]}" "${save[@]}"
expect '^gswbench: hang: rank 1 \(.*: the others wait for it; nothing has moved for [12]\.[0-9] s; last: at file .*rank-00001-of-00002.safetensors; 1 other wait$'

# Told to end in its steps, a run with grace saves, and one without is gone before.
ended() {    # ended GRACE: whether a whole checkpoint is left of a run that gets SIGTERM
    rm -rf saved
    LD_PRELOAD=$disk FAULTY_NAME=rank-0000 FAULTY_SECONDS=0.03 "$GSWBENCH" run --config tiny-llama --layers 1 --backend host \
        --ranks 2 --comm local --steps 100000 --set trace.steps=0 --set parallel.fsdp=2 --set run.output=results \
        --set "checkpoint.save=$folder/saved" --set "checkpoint.grace=$1" >output 2>&1 </dev/null &
    local process=$! code=0
    while kill -0 $process && ! grep -qs '^completed step: ' output; do
        sleep 0.1
    done
    kill -TERM $process || true
    wait $process || code=$?
    [ $code -eq 12 ] || complain "exit code $code, not 12"
    expect '^RESULT PARTIAL'
    ls saved/step-*/manifest.json >/dev/null 2>&1
}
ended 30 || complain "with grace, nothing was saved"
! ended 0 || complain "without grace there was time to save"
finish
