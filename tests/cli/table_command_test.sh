#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `gswbench table` must find the runs below a folder, merge repeats into one row, name the runs that it leaves out, and
# refuse a folder without runs.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
job=(--config tiny-llama --comm local --backend host --quiet --steps 2 --warmup 0 --set trace.steps=0 --set run.verify=light --layers 1
    --set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16 --set model.ffn=32 --set model.vocab=64
    --set train.sequence=16)
for ranks in 1 2 2; do
    run 0 "$GSWBENCH" "${job[@]}" --ranks $ranks
done
# The link results/latest must lead to the last run.
[ "$(readlink results/latest)" = "tiny-llama/bf16/2/$(basename "$(readlink results/latest)")" ] || complain "latest is elsewhere"
run 0 "$GSWBENCH" report results/latest
expect "^# gswbench .* run $(basename "$(readlink results/latest)")$"

# A run of two steps is too short to be VALID, so table leaves it out without --force.
run 13 "$GSWBENCH" table results
expect '^gswbench: left out: results/.*: degraded \(--force includes it\)'
run 0 "$GSWBENCH" table results --force
[ "$(wc -l <output)" = 3 ] || complain "not a title and two rows"
expect '^tiny-llama, proxy of 1 layer +1  bf16  one rank .* degraded +1  '
expect '^tiny-llama, proxy of 1 layer +2  bf16  dp 2 .* 2  '
run 0 "$GSWBENCH" table results --history --force
[ "$(wc -l <output)" = 4 ] || complain "not a title and three runs"
expect '^tiny-llama +1 .* first$'
[ "$(grep -cE '^tiny-llama +2 .* first$' output)" = 1 ] || complain "not one first run of 2 ranks"
expect '^tiny-llama +2 .* degraded +[0-9.]+ +[+-][0-9.]+ .* (same|faster|slower|ambiguous)$'
run 0 "$GSWBENCH" table results --history --force --format csv
expect '^"tiny-llama",2,"bf16",.*,[0-9.]+,[+-][0-9.]+(,[+-][0-9.]+,[+-][0-9.]+|,,),"(same|faster|slower|ambiguous)"'
run 0 "$GSWBENCH" table results/latest --force --format csv
expect '^"tiny-llama, proxy of 1 layer",2,"bf16","dp 2",.*,1,[0-9.]+,,'

# --repeat runs a job twice in one launch, each in its own folder, and then prints the table of both runs.
run 6 "$GSWBENCH" "${job[@]}" --ranks 2 --repeat 2 --out repeated --fail-above step=1e-9 --force
[ "$(grep -c '^RESULT DEGRADED' output)" = 2 ] || complain "not two runs"
expect '^tiny-llama, proxy of 1 layer +2  bf16  dp 2 .* 2  '
[ "$(ls -d repeated/tiny-llama/bf16/2/* | wc -l)" = 2 ] || complain "not two folders"
run 2 "$GSWBENCH" "${job[@]}" --ranks 2 --repeat 2 --json
expect 'leave --json out'

# Runs that cannot be compared or read must be left out and named.
run 5 "$GSWBENCH" "${job[@]}" --ranks 1 --backend null --out other
cp -r results/tiny-llama/bf16/1 other/broken
echo '{' >"$(echo other/broken/*/result.json)"
run 13 "$GSWBENCH" table other
expect '^gswbench: left out: other/broken/.*result\.json:2:0: not a result'
expect '^gswbench: left out: other/tiny-llama/.*: unverified'
expect 'no result that can be compared'
run 0 "$GSWBENCH" table results other --force
mkdir empty
run 2 "$GSWBENCH" table empty
expect 'empty: contains no result: name the folder'
run 2 "$GSWBENCH" table
run 2 "$GSWBENCH" table results --format pdf
expect '\-\-format pdf: expected text, markdown, csv, html or json'

# If a user's folder is called "latest", it must not be replaced by a link.
rm results/latest && mkdir results/latest
run 0 "$GSWBENCH" "${job[@]}" --ranks 1
expect '^gswbench: latest is not this run: results/latest: is not a symbolic link'
finish
