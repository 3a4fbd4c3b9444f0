#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs every gswbench command of README.md and docs/tutorial.md. If the command computes (check, plan, predict, configs),
# it must print every line that the page shows, in this order; "..." means omitted lines. For compare, which uses
# measurements, numbers, the verdict and the list of causes may differ. A block that begins with "# NAME.ini" is a
# configuration that commands find under that name.
set -euo pipefail
PATH=$(dirname "$GSWBENCH"):$PATH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Writes one file per command: the command in the first line, then its expected output.
awk '/^```/ { inside = !inside; command = file = ""; next }
     inside && /^# [a-z-]+\.ini/ { file = substr($2, 1, length($2) - ($2 ~ /:$/)) }
     inside && file { print > file; next }
     inside && /^\$ / { command = sprintf("%03d.shown", ++count); print substr($0, 3) > command; next }
     inside && command { print > command }' "$GSWBENCH_SOURCE_DIR"/{README.md,docs/tutorial.md}

# Removes text that varies between measurements.
mask() { sed -Ei 's/ run [^ ]+/ run #/; s/[-+]?[0-9][0-9.]*%?/#/g; s/^[A-Z]+  speed/# speed/; s/(step time #);.*/\1/; s/ +/ /g; /^ #/d' "$@"; }

failures=0
for shown in *.shown; do
    read -r command <"$shown"
    case $command in
    gswbench\ *) ;;
    *) continue ;;
    esac
    case $command in
    "gswbench compare "*) command+=" --force" ;;    # tests share cores, which makes runs DEGRADED
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
