#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A slow save or load is no hang while some rank still moves bytes. A stalled save, load or journal is a hang, and the
# message names the file. After a signal, a save has checkpoint.grace seconds.
# shellcheck source=tests/support/script.sh
. "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
command -v mpirun >/dev/null || exit 77
disk=$GSWBENCH_BINARY_DIR/tests/libfaulty_disk.so
[ -f "$disk" ] || exit 77

job=(mpirun --allow-run-as-root -np 2 "$GSWBENCH" run --config tiny-llama --layers 1 --backend host --warmup 0 --comm mpi
    --set trace.steps=0 --set parallel.fsdp=2 --set run.hang_seconds=1 --steps 1)

# During file access, a hang is reported after ten times hang_seconds. The shard of rank 1 has about twenty slow slices,
# which together take longer. Another job runs at the same time, and one of its slices never ends.
both() {    # both SETTING_OF_SLOW SETTING_OF_STALLED: runs both jobs
    mkdir -p session    # session folder of the second launcher, which runs at the same time
    TMPDIR=$folder/session timeout 120 env LD_PRELOAD="$disk" FAULTY_NAME=rank-00001-of FAULTY_SECONDS=60 FAULTY_CALL=9 "${job[@]}" \
        --set run.output=stopped-results --set "$2" >stopped 2>&1 </dev/null &
    local process=$! code=0
    run 0 env LD_PRELOAD="$disk" FAULTY_NAME=rank-00001-of FAULTY_SECONDS=0.6 "${job[@]}" \
        --set run.output=results --set "$1"
    expect '^RESULT DEGRADED'
    took=$(sed -n 's/.*\(Save duration\|Time spent in load_checkpoint\): \([0-9]*\).*/\2/p' output)
    [ "${took:-0}" -ge 12 ] || complain "the disk was not slow"
    wait $process || code=$?
    [ $code -eq 7 ] || complain "exit code $code, not 7" stopped
    expect '^gswbench: hang: rank 1 \(.*: the others wait for it; no progress for 1[0-3]\.[0-9] s; last: at file .*rank-00001-of-00002.safetensors; 1 other waits$' stopped
}
both "checkpoint.save=$folder/saved" "checkpoint.save=$folder/stopped-saved"
both "checkpoint.load=$folder/saved" "checkpoint.load=$folder/saved"
rm -r saved

# Rank 0 stalls in a write of the journal. After the time limit for files, this is a hang of rank 0, for which others wait.
run 7 env LD_PRELOAD="$disk" FAULTY_NAME=run.jsonl FAULTY_SECONDS=60 FAULTY_CALL=4 "${job[@]}" --steps 20 --set run.output=results
expect '^gswbench: hang: rank 0 \(.*: the others wait for it; no progress for 1[0-9]\.[0-9] s; last: at file .*/run.jsonl; 1 other waits$'

# On a slow disk, writing weights takes longer than this time limit, which is no hang.
run 0 env LD_PRELOAD="$disk" FAULTY_NAME=model.safetensors FAULTY_SECONDS=0.9 "${job[@]}" --set run.output=results --weights-out weights
expect '^RESULT DEGRADED'
[ -f weights/config.json ] || complain "the weights are not whole"

# A signal arrives while steps run. With grace the run saves a checkpoint; without it the run ends before it can.
ended() {    # ended GRACE: returns whether a run that gets SIGTERM leaves a complete checkpoint
    rm -rf saved output    # the run must not read steps from an older output
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
