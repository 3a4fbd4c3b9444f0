#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With a limit on address space or on file sizes, a run ends with a message before its first step. No library may wait
# for memory that it cannot get.
. "${BASH_SOURCE%/*}/../support/script.sh"

limited() {    # limited KIBIBYTES: runs with this limit of address space
    (ulimit -v "$1" && exec "$GSWBENCH" run --config tiny-llama --backend host --comm local --ranks 2 --steps 3 \
        --set run.warmup=1 --set run.verify=light --set precision.compute=fp32 --out results)
}
export -f limited

for kibibytes in 180000 260000 360000; do
    run 11 bash -c "limited $kibibytes"
    expect 'gswbench: .*out of (address space|host memory)'
    unexpected '^(completed step|RESULT)'
done
run 0 bash -c "limited 4000000"
expect '^RESULT DEGRADED'

# A repeated run uses the buffers that OpenBLAS mapped for the first run.
repeated() {
    (ulimit -v 950000 && exec "$GSWBENCH" run --config tiny-llama --backend host --comm local --ranks 2 --steps 2 --repeat 2 \
        --set run.warmup=1 --set run.threads=2 --set run.verify=light --set precision.compute=fp32 --out results)
}
export -f repeated
run 0 bash -c repeated

# Shared memory is a file as well. The message must name the limit of file sizes and not /dev/shm.
small_files() { (ulimit -f 0 && exec "$GSWBENCH" run --config tiny-llama --backend host --comm local --ranks 2 --out results); }
export -f small_files
run 4 bash -c "small_files 2>&1 | cat; exit \${PIPESTATUS[0]}"
expect 'gswbench: .*the limit on the size of files \(ulimit -f\) is 0 bytes, .* ranks needs [0-9]+: raise the limit; '
unexpected '/dev/shm'
full=(unshare --mount --map-root-user sh -c 'mount -t tmpfs -o size=4k tmpfs /dev/shm && echo >/dev/shm/full && exec "$@"' full)
if "${full[@]}" true 2>/dev/null; then
    run 4 "${full[@]}" "$GSWBENCH" run --config tiny-llama --backend host --comm local --ranks 2 --out results
    expect '^gswbench: cannot create the shared memory /dev/shm/gswbench-[^ ]+: No space left on device; run.hang_seconds = 0 disables'
fi

# Under a limit, the program executes itself again. It must keep the whole environment, in which GSWBENCH_CONFIGS comes
# after 5,000 other variables.
mkdir -p configs/models
cp "$GSWBENCH_SOURCE_DIR/configs/tiny-llama.ini" configs/the-only-one.ini
cp "$GSWBENCH_SOURCE_DIR/configs/models/tiny-llama.ini" configs/models
mapfile -t variables < <(for i in {1..5000}; do echo "V$i=1"; done)
many() {
    ulimit -v 4000000
    env -i PATH="$PATH" "${variables[@]}" GSWBENCH_CONFIGS="$PWD/configs" timeout 20 "$GSWBENCH" configs
}
many >output 2>&1 || complain "configs with 5,000 variables"
expect "^the-only-one$"
finish
