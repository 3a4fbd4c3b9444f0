# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Used by tests on emulated hosts, where pgrep sees the processes on every host.

# kill_rank VARIABLE=NUMBER RANKS MESSAGE COMMAND...: starts a job of RANKS ranks, and during the steps kills the rank
# that has this environment variable. The job must end with an error that contains MESSAGE, and must leave no process on
# any host.
kill_rank() {
    local variable=$1 ranks=$2 message=$3 launcher victim tries code=0
    shift 3
    : >steps    # the loop below must not see the steps of the job before
    "$@" --steps 1000000 >steps 2>log </dev/null &
    launcher=$!
    until grep -q '^completed step: 2,' steps; do sleep 0.1; done
    if [ "$(pgrep --count --exact gswbench)" -ne "$ranks" ]; then
        echo "there are not $ranks ranks:"
        ps -ef
        return 1
    fi
    victim=$(grep -lz "^$variable$" $(pgrep --exact gswbench | sed 's|.*|/proc/&/environ|'))
    kill -KILL "$(echo "$victim" | cut -d/ -f3)"
    wait $launcher || code=$?
    if [ $code -eq 0 ] || ! tr '\n' ' ' <log | grep -q "$message"; then
        echo "a killed rank ends the job with code $code and without '$message':"
        cat log
        return 1
    fi
    for ((tries = 0; $(pgrep --count --exact gswbench || true) > 0; tries++)); do
        if [ $tries -eq 50 ]; then
            echo "processes are left:"
            ps -ef
            return 1
        fi
        sleep 0.1
    done
}
