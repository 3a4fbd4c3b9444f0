#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests shell completion of commands, flags, configurations, --set options and their values, and the manual pages. The
# program generates all of them from the tables of its commands and options.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs

# Completes a command line as bash does when a user presses tab. bash splits words at = as well.
"$GSWBENCH" options --completion bash >completion
ask() {    # ask LINE: stores in the file `replies` what completion offers for the last word of LINE, one offer a line
    bash --norc -c 'source completion
        COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
        read -ra COMP_WORDS <<<"${1//=/ = }"
        [[ $1 != *[[:space:]=] ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        spec=$(complete -p gswbench) && function=${spec##*-F } && "${function%% *}" gswbench "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
        printf "%s\n" "${COMPREPLY[@]}"' bash "$1" >replies
}
offers() {    # offers LINE WORD...: expects exactly these offers
    local line=$1
    shift
    ask "$line"
    printf '%s\n' "$@" | sort | diff - <(sort -u replies) >difference || complain "other words for '$line'" difference
}
has() {    # has LINE WORD...: expects these offers, and allows more
    local line=$1
    shift
    ask "$line"
    for word in "$@"; do grep -qxF -- "$word" replies || complain "no $word for '$line'" replies; done
}

has "$GSWBENCH " run check init options help tiny-llama
offers "$GSWBENCH pre" predict preflight
offers "$GSWBENCH llama2" llama2-70b-fsdp
offers "$GSWBENCH help pl" plan
offers "$GSWBENCH run tiny-llama --pre" --precision
has "$GSWBENCH --" --config --set --steps
has "$GSWBENCH tiny-llama --" --config --set --steps --help
offers "$GSWBENCH check --steps" ''
has "$GSWBENCH run --config tiny-" tiny-llama tiny-geglu
has "$GSWBENCH init job.ini --model llama2" llama2-70b llama2-70b-fsdp
offers "$GSWBENCH check --set parallel.se" parallel.sequence_parallel=
offers "$GSWBENCH check --set parallel.sequence_parallel=" no yes
offers "$GSWBENCH check --set model.preset=mix" mixtral-8x22b mixtral-8x7b
offers "$GSWBENCH check --set=precision.comp" precision.compute=
offers "$GSWBENCH check --precision=fp" fp32 fp8 fp4
offers "$GSWBENCH check --set train.glo" train.global_batch=
offers "$GSWBENCH check --set train.global_batch=" auto
offers "$GSWBENCH predict --gpu a" a100-40gb a100-80gb
offers "$GSWBENCH table --format m" markdown
offers "$GSWBENCH check --set no.such=" ''
offers "$GSWBENCH compare " ''    # no offer, so bash completes file names
offers "$GSWBENCH report " ''
has "$GSWBENCH configs tiny-" tiny-llama tiny-geglu
run 0 env GSWBENCH_CONFIGS=/nowhere "$GSWBENCH" complete check --config ''
[ ! -s output ] || complain "words without configurations"

# The manual pages must list every flag and option, and groff must print them without warnings.
for page in 1 5; do
    run 0 "$GSWBENCH" options --man $page
    cp output "page$page"
    ! command -v groff >/dev/null || groff -man -Tutf8 -ww page$page 2>warnings >/dev/null
    [ ! -s warnings ] || complain "groff warns of page $page" warnings
done
for command in $("$GSWBENCH" --help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
    for flag in $("$GSWBENCH" "$command" --help | sed -nE 's/^  (-[-a-z]+) .*/\1/p'); do
        sed -n "/^\.SS $command\$/,/^\.S[SH] /p" page1 | grep -qF "\\fB${flag//-/\\-}\\fR" || complain "no $flag of $command" page1
    done
done
"$GSWBENCH" options | sed -nE 's/^  ([a-z0-9_]+) = .*/\1/p' | while read -r key; do
    grep -qF "\\fB$key\\fR = " page5 || echo "$key"
done >lacking
[ ! -s lacking ] || complain "options without a place in the manual" lacking
run 2 "$GSWBENCH" options --completion fish
expect_text '--completion fish: allowed are bash, zsh'
run 2 "$GSWBENCH" options --man 7
expect_text '--man 7: allowed are 1, 5'
finish
