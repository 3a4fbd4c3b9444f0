# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# For tests of scripts/gpu-check, which works in the folder out: what is there whenever it ended. After tests/support/script.sh.

expect_lines() {    # every line of JSON is whole
    { cat out/*.jsonl 2>/dev/null || true; } | python3 -c "import json, sys; [json.loads(line) for line in sys.stdin]" ||
        complain "a file of the folder has a broken line"
}

count() { cat "$2" 2>/dev/null | grep -c "$1" || true; }    # count PATTERN FILE: lines; 0 where the file is not there
ended_stages() { count ' s  ' out/table.txt; }

# kill_when UNTIL COMMAND...: kills the command, with all of its session, when what UNTIL runs has ended. Each stage that ended by
# then is in the table, as a record, and has what it printed; the table may lack the last one.
kill_when() {
    local until=$1 session rows records logs
    shift
    rm -rf out
    setsid "$@" >output 2>&1 </dev/null &
    session=$!
    $until
    pkill -KILL -s $session || true
    { wait $session; } 2>/dev/null || true
    expect_lines
    rows=$(ended_stages) records=$(count '^{' out/stages.jsonl) logs=$(find . -path './out/logs/*.txt' | wc -l)
    if [ "$rows" -gt "$records" ] || [ "$records" -gt $((rows + 1)) ] || [ "$logs" -lt "$records" ]; then
        complain "killed after '$until', it has $rows rows of its table, $records records and $logs logs"
    fi
}
