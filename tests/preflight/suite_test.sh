#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests gswbench suite, which runs several configurations (rows) in one launch. It tells in advance which rows can run,
# resumes where it was stopped, does not repeat finished rows, and refuses a machine with a wrong rank before the first
# row.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs

run 0 "$GSWBENCH" suite
expect '^exemplar-h100$'
expect '^node$'
run 2 "$GSWBENCH" suite exemplar --dry-run
expect 'suite exemplar: no such suite in '

# Without a GPU, --dry-run lists the published and predicted times of an installed suite.
run 0 "$GSWBENCH" suite node --ranks 8 --dry-run
expect '^llama3.1-8b-bf16 +not run +12.27 +3.5 +published +12.27 '
expect '^3 of 3 rows can run on 8 ranks, in about 10 minutes$'
unexpected 'measured s|\$ per M tokens'
# A100 has no FP8.
run 0 "$GSWBENCH" suite node --ranks 8 --dry-run --gpu a100-80gb
expect '^llama3.1-8b-fp8 +cannot run +- +- +- +- +dp 4 cp 2 zero 1 +\[hardware\] peak_fp8 is unknown: a100-80gb has no fp8'
expect '^2 of 3 rows can run on 8 ranks'
# 8 GPUs at $2.1 per hour for 12.27 s, divided by 128 x 8192 tokens.
run 0 "$GSWBENCH" suite node --ranks 8 --dry-run --price 2.1
expect '^row .* \$ per M tokens '
expect '^llama3.1-8b-bf16 .* 0.05461 '
run 0 "$GSWBENCH" suite node --ranks 7 --dry-run --json
expect '"problem": ".*llama3.1-8b.ini: .*"'

# A row that does not fit the GPU, or has no expected time, must not be counted among the rows that can run.
run 0 "$GSWBENCH" suite node --ranks 2 --dry-run
expect '^qwen3-30b-a3b-bf16 .* its memory does not fit h100-sxm: '
expect '^0 of 3 rows can run on 2 ranks$'

cat >small.ini <<'EOF'
# A comment.
about = two small models
[rows]
first = tiny-llama run.steps=12
second = tiny-nemotron run.steps=150
third = tiny-llama run.steps=12 precision.compute=fp8
EOF
suite=("$GSWBENCH" suite ./small.ini --ranks 4 --backend host --comm local --seconds 2 --set train.sequence=32
    --set train.global_batch=4 --set train.micro_batch=1 --set hardware.device=other -o out)

sed 's/^second/first/' small.ini >twice.ini
run 3 "$GSWBENCH" suite ./twice.ini --ranks 2 --dry-run
expect 'twice.ini:5: first is there twice'
sed 's/tiny-nemotron/tiny-nothing/' small.ini >unknown.ini
run 3 "$GSWBENCH" suite ./unknown.ini --ranks 2 --dry-run
expect 'unknown.ini:5: second: no config named tiny-nothing'
printf 'title = x\n' >key.ini
run 3 "$GSWBENCH" suite ./key.ini --ranks 2 --dry-run
expect 'key.ini:1: unknown: title'
sed "s/^second .*/& $(printf 'run.seed=1 %.0s' {1..65})/" small.ini >long.ini
run 3 "$GSWBENCH" suite ./long.ini --ranks 2 --dry-run
expect 'long.ini:5: second: too many settings'

# A first row that does not fit this memory stops neither the preflight nor the other rows.
printf '[rows]\nlarge = tiny-llama model.layers=640 model.ffn=1048576\nsmall = tiny-llama run.steps=12\n' >large.ini
run 0 "$GSWBENCH" suite ./large.ini --ranks 4 --dry-run
expect '^2 of 2 rows can run on 4 ranks$'
run 15 "${suite[@]/.\/small.ini/.\/large.ini}" -o large
expect '^# preflight of tiny-llama: 4 ranks, '
expect '^large +cannot tell .*; the plan does not fit: '
expect '^small +cannot tell +[0-9.]+  dp 4  '

# A rank with wrong numbers is refused before the first row.
run 6 "${suite[@]}" --set fault.kind=flip --set fault.at=attention_forward --set fault.rank=1 --set fault.bit=14
expect '^outlier: device 1 of host '
expect '^first +not run '
expect '^REFUSE  0 of 3 rows accepted, 0 refused$'
expect "^drain: $(hostname)$"
[ ! -e out/first ] || complain "a row ran on a machine with outliers" out

# The suite is stopped in its second row. Finished rows are kept, and a second call runs only the others.
stop_in() {    # stop_in ROW: sends SIGTERM to the suite after the first step of this row
    "${suite[@]}" >said 2>&1 &
    local suite_pid=$!
    while kill -0 $suite_pid 2>/dev/null; do
        if sed -n "/^== $1/,\$p" said | grep -q '^completed step: 0'; then
            kill -TERM $suite_pid
            break
        fi
        sleep 0.05
    done
    wait $suite_pid || code=$?
    [ "${code:-0}" -eq 12 ] || complain "exit code ${code:-0}, not 12" said
}
stop_in second
grep -q '"run_id"' out/first/accept.json || complain "the first row has no accept.json" said
first=$(md5sum <out/first/accept.json)
run 15 "${suite[@]}"
unexpected '^== first'
expect '^== second'
expect '^== third'
expect '^CANNOT TELL  0 of 3 rows accepted, 0 refused$'
[ "$first" = "$(md5sum <out/first/accept.json)" ] || complain "the first row ran again" output
run 0 python3 -c '
import json
rows = {row["name"]: row for row in json.load(open("out/suite.json"))["rows"]}
assert [rows[name]["measured"]["by_an_earlier_call"] for name in ("first", "second", "third")] == [True, False, False], rows
assert all(row["measured"]["step_s"] > 0.0 and row["verdict"] == "cannot tell" for row in rows.values()), rows'
expect_file() { grep -Eq "$1" "$2" || complain "$2 has no $1" "$2"; }
expect_file '<h1>Suite small|Suite ./small.ini' out/suite.html

# All rows are finished, so nothing runs. Results of another configuration are not mixed with them.
run 15 "${suite[@]}"
unexpected '^== '
run 3 "${suite[@]}" --steps 13
expect 'out/first has a run of another configuration: choose another folder with -o, or remove it'
finish
