#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs every gswbench command of README.md and docs/tutorial.md. Commands that only compute (check, plan, predict,
# configs) must print every line that the page shows, in this order; "..." means omitted lines. `compare` depends on
# measurements, so its numbers, verdict and list of causes may differ from the page. A block that starts with "#
# NAME.ini" is a configuration, which is written under that name before the commands run.
set -euo pipefail
PATH=$(dirname "$GSWBENCH"):$PATH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Splits the pages into one file per command. The first line of a file is the command, and the expected output follows.
awk '/^```/ { inside = !inside; command = file = ""; next }
     inside && /^# [a-z-]+\.ini/ { file = substr($2, 1, length($2) - ($2 ~ /:$/)) }
     inside && file { print > file; next }
     inside && /^\$ / { command = sprintf("%03d.shown", ++count); print substr($0, 3) > command; next }
     inside && command { print > command }' "$GSWBENCH_SOURCE_DIR"/{README.md,docs/tutorial.md}

# Replaces text that varies between measurements by #, on the page and in the output.
mask() { sed -Ei 's/ run [^ ]+/ run #/; s/[-+]?[0-9][0-9.]*%?/#/g; s/^[A-Z]+  speed/# speed/; s/(step time #);.*/\1/; s/ +/ /g; /^ #/d' "$@"; }

failures=0
for shown in *.shown; do
    read -r command <"$shown"
    case $command in
    gswbench\ *) ;;
    *) continue ;;
    esac
    case $command in
    # Tests share cores, which makes runs DEGRADED, and compare needs --force for them.
    "gswbench compare "*) command+=" --force" ;;
    esac
    if ! bash -c "$command" >output 2>errors; then
        echo "FAILED: $command"
        cat errors
        failures=$((failures + 1))
        continue
    fi
    case $command in
    "gswbench compare "*) mask "$shown" output ;;
    esac
    case $command in
    "gswbench compare "* | "gswbench check "* | "gswbench plan "* | "gswbench predict "* | "gswbench configs"*)
        if ! awk 'NR == FNR { if (FNR > 1 && $0 != "...") want[++n] = $0; next }
                  at < n && $0 == want[at + 1] { at++ }
                  END { if (at < n) print "not printed: " want[at + 1]; exit at < n }' "$shown" output; then
            echo "CHANGED: $command"
            failures=$((failures + 1))
        fi
        ;;
    esac
done
exit $((failures > 0))
