#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `gswbench init` must write a configuration for every model, for every published job and for this machine. `check` must
# accept each. A published job must stay the same job, and the comments must equal the help texts of the options.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs

# The job is checked with two microbatches instead of hundreds, because that is faster.
check() { run 0 "$GSWBENCH" check --config "$1" ${ranks:+--ranks "$ranks"} --set hardware.memory_gb=0 --set train.accumulation=2 --set train.global_batch=auto; }
facts() { grep -E '^(parameters|layout|batch|plan|verified|memory)' output; }
for path in "$GSWBENCH_CONFIGS"/*.ini "$GSWBENCH_CONFIGS"/models/*.ini; do
    name=$(basename "$path" .ini)
    [ ! -e "$name.ini" ] || continue    # a model and a job have this name; init then writes the job
    run 0 "$GSWBENCH" init "$name.ini" --model "$name"
    ranks=$(sed -n 's/^#   gswbench check .* --ranks //p' "$name.ini")
    check "./$name.ini"
    facts >written
    case $name in llama3.1-[78]*b | mixtral-8x7b | torchtitan-llama3-8b | tiny-*)
        check "$path"
        facts | diff - written >difference || complain "$name is another job" difference
        ;;
    esac
done

# The file has a layout for a number of ranks, so check works without --ranks.
grep -qx 'dp = 4' llama3.1-8b.ini || complain "no layout" llama3.1-8b.ini
run 0 "$GSWBENCH" check --set hardware.memory_gb=0 --config ./llama3.1-8b.ini
run 0 "$GSWBENCH" init sixteen.ini --model llama3.1-8b --ranks 16 --precision fp8
grep -qx 'compute = fp8' sixteen.ini || complain "not the precision" sixteen.ini
grep -qx 'global_batch = 256' sixteen.ini || complain "not the batch of that row" sixteen.ini

# Only values that differ from their default are set; other options are comments. Every option of these sections is
# listed with its help text.
sections='model|parallel|train|precision|run'
grep -qx 'layers = 32' llama3.1-8b.ini || complain "a value that is not set" llama3.1-8b.ini
grep -qx '; epsilon = 1e-08' tiny-llama.ini || complain "a default that is set" tiny-llama.ini
run 0 "$GSWBENCH" options
sed -nE "/^\[($sections)\]/,/^$/s/^  ([a-z0-9_]+) = .*/\1/p" output >expected
sed -nE "/^\[($sections)\]/,/^$/s/^(; )?([a-z0-9_]+) = .*/\2/p" tiny-llama.ini | diff expected - >difference ||
    complain "not all options, or others" difference
meaning=$(sed -nE '/^  micro_batch = /,/^  global_batch = /s/^ {6}//p' output | tr '\n' ' ' | sed 's/ $//')
sed -nE 's/^# //p' tiny-llama.ini | tr '\n' ' ' | grep -qF "$meaning (an integer in 1..4096, or auto)" ||
    complain "micro_batch has another meaning" tiny-llama.ini
! grep -qE '^(\[software\]|source =|variant =|step_seconds =|mfu_percent =|memory_gib =)' llama3.1-8b.ini || complain "published figures of another job" llama3.1-8b.ini

# The configuration written for this machine must run on it.
run 0 "$GSWBENCH" init here.ini
ranks=$(sed -n 's/^#   gswbench check .* --ranks //p' here.ini)
run 0 "$GSWBENCH" run --config here.ini ${ranks:+--ranks "$ranks"} --comm local --steps 2 --warmup 1
expect '^RESULT (VALID|DEGRADED)'

# Tests a user's model that is given by its path, and an output name with a terminal escape.
printf '[model]\nlayers = 2\nhidden = 64\nheads = 2\nkv_heads = 1\nhead_dim = 32\nffn = 64\nvocab = 99\n' >own.ini
run 0 "$GSWBENCH" init "$(printf 'a\033[31m.ini')" --model own.ini
grep -qx '# Written by gswbench init for own.ini. Next:' a*.ini || complain "no introduction"
grep -q '^#   gswbench predict --config a.*ini --ranks 8 --gpu h100-sxm$' a*.ini || complain "no prediction of the model"
! grep -q "$(printf '\033')" a*.ini || complain "what a terminal would obey"
finish
