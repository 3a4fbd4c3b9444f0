#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Log parsers written for other frameworks can read gswbench's step lines in the style of that framework: every one of
# 50 lines matches the regular expressions of such scripts.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
job=(--config tiny-llama --ranks 2 --comm local --backend host --steps 50 --set trace.steps=0 --set run.verify=light --layers 1
    --set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16 --set model.ffn=32 --set model.vocab=64
    --set train.sequence=16)
for style in gswbench maxtext nemo torchtitan megatron; do
    run 0 "$GSWBENCH" "${job[@]}" --log-style $style --out $style
    mv output $style.log
done
python3 - <<'END' || complain "a log is not read"
import json, os, re, sys

NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
ITERATION = r"iteration\s+(\d+)\s*/\s*(\d+)"


def steps_of(style):
    with open(os.path.join(style, "latest", "result.json")) as file:
        return json.load(file)["steps"]


def found(style, *expressions):
    """Returns the matches of each line of the log that matches all expressions."""
    rows = []
    with open(style + ".log") as file:
        for line in file:
            matches = [re.search(expression, line) for expression in expressions]
            if all(matches):
                rows.append([group for match in matches for group in match.groups()])
    return rows


def expect(style, rows, first, seconds_of, places):
    steps = steps_of(style)
    assert len(rows) == len(steps) == 50, (style, len(rows))
    for row, step in zip(rows, steps):
        assert int(row[0]) == step["i"] + first, (style, row)
        assert abs(seconds_of(row) - step["time_s"]) <= places, (style, row, step["time_s"])


STEP = rf"completed step: (\d+), seconds: {NUMBER}, TFLOP/s/device: {NUMBER}, "
for style, figures in ("gswbench", ""), ("maxtext", rf"Tokens/s/device: {NUMBER}, total_weights: (\d+), "):
    rows = found(style, STEP + figures + rf"loss: {NUMBER}")
    expect(style, rows, 0, lambda row: float(row[1]), 6e-4)
rows = found("nemo", ITERATION, rf"train_step_timing in s:\s*{NUMBER}", rf"TFLOPS_per_GPU:\s*{NUMBER}",
             r"global_step: (\d+).*?train_step_timing in s: ([\d.]+)")
expect("nemo", rows, 0, lambda row: float(row[2]), 1e-3)
assert all(row[1] == "49" and row[0] == row[4] for row in rows)
rows = found("megatron", ITERATION, rf"elapsed time per iteration \(ms\):\s*{NUMBER}",
             rf"lm loss: {NUMBER}", r"grad norm: ([\d.]+)", r"throughput per GPU \(TFLOP/s/GPU\): ([\d.]+)")
expect("megatron", rows, 1, lambda row: float(row[2]) / 1e3, 6e-5)
assert len(found("megatron", rf"{NUMBER}\s*(?:MODEL_TFLOP/s/GPU|TFLOP/s/GPU)", rf"Step Time : {NUMBER}s")) == 50
rows = found("torchtitan", r"step:\s*(\d+)", r"loss:\s*([\d.]+)", r"memory:\s*([\d.]+)GiB\(([\d.]+)%\)",
             r"tps:\s*([\d,]+)", r"tflops:\s*([\d.]+)", r"mfu:\s*([\d.]+)%")
assert len(rows) == 50
with open("torchtitan/latest/result.json") as file:
    layout = json.load(file)["config"]["layout"]
for row, step in zip(rows, steps_of("torchtitan")):
    tokens = layout["sequence"] * layout["global_batch"] / 2 / step["time_s"]
    assert int(row[0]) == step["i"] + 1 and abs(int(row[4].replace(",", "")) - tokens) <= 1, (row, tokens)
END
run 3 "$GSWBENCH" "${job[@]}" --log-style nemotron
expect '--log-style nemotron: expected'
finish
