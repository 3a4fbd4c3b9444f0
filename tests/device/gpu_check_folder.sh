# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# Functions for tests of scripts/gpu-check, which writes to the folder `out`. A test must source tests/support/script.sh
# before this file.

# count PATTERN FILE: prints the number of matching lines; 0 if the file is missing.
count() { cat "$2" 2>/dev/null | grep -c "$1" || true; }
ended_stages() { count ' s  ' out/table.txt; }

# Expects that the archive of each part can be read, and that every line of JSON in the folder and in the archives is
# complete.
expect_packed() {
    local file
    for file in out/part-*.tar.gz; do
        rm -rf unpacked
        mkdir unpacked
        tar -C unpacked -xzf "$file" || complain "$file cannot be read"
        [ "$(stat -c %s "$file")" -le $((14 << 20)) ] || complain "$file has more than 14 MiB"
    done
    cat out/records.jsonl unpacked/*.jsonl |
        python3 -c "import json, sys; [json.loads(line) for line in sys.stdin]" || complain "a line of JSON is broken"
}

# unpack_apart: packs the programs of this build, and unpacks them where the sources and the build folder are hidden.
# The array `check` then runs gpu-check of the package there.
unpack_apart() {
    "$GSWBENCH_SOURCE_DIR/scripts/gpu-pack" pack.tar.gz --built "$GSWBENCH_BINARY_DIR" >output 2>&1 || complain "not packed"
    mkdir pack
    tar -C pack -xzf pack.tar.gz
    apart=(unshare --mount)
    [ "$(id -u)" -eq 0 ] || apart=(unshare --map-root-user --mount)
    # shellcheck disable=SC2016
    apart+=(bash -c 'for hidden in "$GSWBENCH_SOURCE_DIR" "$GSWBENCH_BINARY_DIR"; do
            [ ! -d "$hidden" ] || mount -t tmpfs none "$hidden" || exit 125
        done
        cd /
        exec env -u GSWBENCH_SOURCE_DIR -u GSWBENCH_BINARY_DIR "$@"' apart)
    "${apart[@]}" true 2>/dev/null || { echo "skipped: this user may not mount"; is_finished=yes; exit 77; }
    check=("${apart[@]}" "$PWD/pack/scripts/gpu-check" --out "$PWD/out")
}

# kill_when SIGNAL UNTIL COMMAND...: starts COMMAND, and sends it SIGNAL when the command UNTIL has ended. All results
# up to then must be in an archive. After KILL, the latest finished stage may be missing.
kill_when() {
    local signal=$1 until=$2 session rows figures late=0
    shift 2
    rm -rf out
    setsid "$@" >output 2>&1 </dev/null &
    session=$!
    $until
    rows=$(ended_stages) figures=$(count '^{' out/records.jsonl)
    {
        kill -"$signal" $session
        [ "$signal" = KILL ] || wait $session
        pkill -KILL -s $session
        wait $session
    } 2>/dev/null || true
    [ "$signal" != KILL ] || { late=1 figures=0; }
    [ "$rows" -gt $late ] || return 0
    expect_packed
    if [ "$(count '^{' unpacked/stages.jsonl)" -lt $((rows - late)) ] ||
        [ "$(find unpacked/logs -name '*.txt' | wc -l)" -lt $((rows - late)) ] ||
        [ "$(count '^{' unpacked/records.jsonl)" -lt "$figures" ]; then
        complain "$signal after '$until', $rows stages and $figures figures: not all of them are packed" unpacked/stages.jsonl
    fi
}
