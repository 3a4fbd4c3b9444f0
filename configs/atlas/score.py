#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Scores predicted step times of published training runs: score.py PREDICTIONS.jsonl [ROWS.jsonl]

A line of ROWS (default: rows.jsonl beside this file; rows.schema.json has its form) is a published run: id, source, ranks,
gpu, precision, software, layout, settings (model, layout, batch, precision, as options of gswbench) and published_step_s. A
line of PREDICTIONS has the id of a row and the predicted step_s. Prints mean, median, 90th percentile and worst absolute
error in percent, and the bias, by kind and GPU; rows without a prediction are counted. --of-gswbench FILE scores `gswbench
atlas --json`."""
import json
import pathlib
import statistics
import sys

KEYS = ("config", "variant", "ranks", "gpu", "precision")


def read_lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def read_predictions(words):
    if words[0] == "--of-gswbench":
        with open(words[1]) as file:
            rows = json.load(file)["rows"]
        return {"/".join(str(row[key]) for key in KEYS): row["predicted_step_s"] for row in rows}, words[2:]
    predictions = {}
    for line in read_lines(words[0]):
        if line["id"] in predictions or not line["step_s"] > 0:
            sys.exit(f"{words[0]}: {line['id']}: predicted twice, or no step_s above 0")
        predictions[line["id"]] = line["step_s"]
    return predictions, words[1:]


def print_line(name, rows, predictions):
    errors = [100 * (predictions[row["id"]] / row["published_step_s"] - 1) for row in rows if row["id"] in predictions]
    text = f"{name:24}{len(rows):6}{len(rows) - len(errors):9}"
    if errors:
        sizes = sorted(map(abs, errors))
        text += (f"{statistics.mean(sizes):8.1f}{statistics.median(sizes):8.1f}{sizes[-(-9 * len(sizes) // 10) - 1]:8.1f}"
                 f"{sizes[-1]:8.1f}{statistics.mean(errors):+8.1f}")
    print(text)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    predictions, others = read_predictions(sys.argv[1:])
    rows = read_lines(others[0] if others else pathlib.Path(__file__).with_name("rows.jsonl"))
    unknown = sorted(set(predictions) - {row["id"] for row in rows})
    if unknown:
        sys.exit(f"no such row: {unknown[0]}" + (f", and {len(unknown) - 1} more" if len(unknown) > 1 else ""))
    print(f"{'absolute error in %':24}{'rows':>6}{'missing':>9}{'mean':>8}{'median':>8}{'90 %':>8}{'worst':>8}{'bias':>8}")
    for kind in (False, True):
        own = [row for row in rows if row["has_experts"] == kind]
        for gpu in sorted({row["gpu"] for row in own}):
            print_line(f"{'experts' if kind else 'dense'}, {gpu}", [row for row in own if row["gpu"] == gpu], predictions)
        print_line("experts" if kind else "dense", own, predictions)
    print_line("all", rows, predictions)


main()
