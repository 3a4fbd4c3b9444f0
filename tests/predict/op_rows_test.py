#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares costs of single ops with tables of measured times, and fails if an error exceeds its limit.

    tests/predict/op_rows_test.py [--rows FILE] [--fit GPU FORMAT]

A family is a pair (n, k). Values of [hardware] were fitted to half of the families. For each GPU and table, the test
prints the median and the 90th percentile of the error in percent, for fitted and for other families. The ratios of
predicted to measured time in tables of short bursts are first divided by their median, which is printed as `bias`.
--fit prints the values with the smallest mean error on the fitted families in all tables of a format. If there are
several tables, those of bursts are divided by their median, so that only sustained tables determine the level. --rows
reads another file in the format of op_rows.csv.

Costs are for sustained GEMMs, so the test models how tables were timed. A burst starts at a higher clock, which falls
within LIMITED seconds. An FP8 GEMM was timed together with the cast of its input. The cast was also timed alone, and is
subtracted: alone it reads its input from L2, but next to a GEMM from memory. It draws less power than a GEMM, so in a
sustained pair the GEMM may draw more. fp8* has the rows in which the cast is predicted to take at most 30 % of the
time."""
import hashlib
import math
import os
import statistics
import subprocess
import sys

SOURCE = os.environ.get("GSWBENCH_SOURCE_DIR", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PROGRAM = os.path.join(os.environ.get("GSWBENCH_BINARY_DIR", SOURCE + "/build/release"), "bench/bench_op_costs")
PROFILES = {"a100": "a100-80gb", "h100": "h100-sxm"}
FORMATS = {"bf16": "bf16", "fp8": "e4m3", "fp8*": "e4m3", "nvfp4": "e2m1"}
CAST_SHARE, FEWEST = 0.3, 20
KNOWN_FP4 = "quantize bf16,e2m1,-,f32,-,f32 {m}x{k}"
KNOWN, FOUND = "quantize bf16,e4m3,-,f32,-,f32 {m}x{k}", "quantize bf16,e4m3,-,f32 {m}x{k}"

# On B300 and GB300 the libraries in the tables use MMA instructions with k = 64 in NVFP4. The profiles have the rate of
# the faster instructions with k = 96.
OF_LIBRARIES = {("b300", "nvfp4"): [("gemm_efficiency_fp4", 0.404)], ("gb300", "nvfp4"): [("gemm_efficiency_fp4", 0.408)]}
# Casts in the tables are TensorRT-LLM's: cast_efficiency and scale_efficiency. Profiles have the values of faster kernels.
CASTS = {"h100": (0.9, 0.36), "h200": (0.86, 0.26), "b200": (0.58, 0.335), "b300": (0.57, 0.33), "gb200": (0.58, 0.335),
         "gb300": (0.59, 0.34)}
# A GEMM with k = 96 on GB300, and its measured seconds (HazyResearch/ThunderKittens, kernels/gemm/nvfp4_b300/HANDOFF.md, 18e205c8).
ULTRA = "gemm e2m1,e2m1,bf16 8192x8192x33024x0x1", 533e-6

# BOOST: fraction of its time that a short burst saves (fitted). LIMITED: seconds after which half of it is left
# (fitted). CAST_POWER: power of a cast relative to the power limit (watts of pairs that mostly cast). L2: bytes (data
# sheets).
BOOST = {"a100": 0.13, "h100": 0.15, "h200": 0.12}
BLACKWELL_BOOST, LIMITED, CAST_POWER = 0.18, 3e-3, 0.5
L2 = {"a100": 40e6, "h100": 50e6, "h200": 50e6}
BLACKWELL_L2 = 126e6

# Limits of the median and the 90th percentile of errors in percent, for families to which no value was fitted.
LIMITS = {
    ("a100", "burst", "bf16"): (3.0, 13.0),
    ("b200", "burst", "bf16"): (4.5, 10.5),
    ("b200", "burst", "cast"): (2.0, 31.5),
    ("b200", "burst", "fp8"): (6.0, 16.5),
    ("b200", "burst", "fp8*"): (7.5, 16.5),
    ("b200", "burst", "nvfp4"): (8.0, 17.5),
    ("b200", "burst", "scale"): (3.5, 21.5),
    ("b200", "sustained", "bf16"): (2.5, 12.5),
    ("b200", "sustained", "fp8"): (5.0, 12.0),
    ("b300", "burst", "bf16"): (6.5, 13.0),
    ("b300", "burst", "cast"): (1.5, 30.0),
    ("b300", "burst", "fp8"): (5.0, 13.5),
    ("b300", "burst", "fp8*"): (5.5, 11.0),
    ("b300", "burst", "nvfp4"): (6.0, 21.0),
    ("b300", "burst", "scale"): (6.5, 17.5),
    ("gb200", "burst", "bf16"): (5.0, 12.0),
    ("gb200", "burst", "cast"): (2.0, 19.5),
    ("gb200", "burst", "fp8"): (6.0, 14.0),
    ("gb200", "burst", "fp8*"): (6.0, 14.5),
    ("gb200", "burst", "nvfp4"): (6.5, 17.5),
    ("gb200", "burst", "scale"): (5.0, 14.5),
    ("gb200", "sustained", "bf16"): (3.5, 9.5),
    ("gb200", "sustained", "fp8"): (5.0, 12.0),
    ("gb200", "sustained", "fp8*"): (5.0, 11.0),
    ("gb300", "burst", "bf16"): (4.0, 10.5),
    ("gb300", "burst", "cast"): (3.0, 4.0),
    ("gb300", "burst", "fp8"): (4.5, 10.5),
    ("gb300", "burst", "fp8*"): (4.5, 10.0),
    ("gb300", "burst", "nvfp4"): (6.5, 15.5),
    ("gb300", "burst", "scale"): (5.5, 16.0),
    ("h100", "burst", "bf16"): (3.5, 11.0),
    ("h100", "burst", "cast"): (1.0, 1.5),
    ("h100", "burst", "fp8"): (4.0, 12.5),
    ("h100", "burst", "fp8*"): (4.0, 10.0),
    ("h100", "burst", "scale"): (5.0, 7.0),
    ("h200", "burst", "bf16"): (5.0, 10.5),
    ("h200", "burst", "cast"): (2.0, 2.5),
    ("h200", "burst", "fp8"): (4.0, 11.0),
    ("h200", "burst", "fp8*"): (3.5, 8.5),
    ("h200", "burst", "scale"): (5.0, 9.0),
    ("h200", "sustained", "bf16"): (3.0, 9.5),
}


def read(path):
    """Returns tables by (gpu, run, format). A table is a list of (is fitted, n, k, m, seconds)."""
    tables = {}
    with open(path) as file:
        lines = [line.rstrip("\n").split(",") for line in file if line[0] != "#"]
    for gpu, run, form, n, k, rows in lines[1:]:
        fitted = int(hashlib.sha256(f"gswbench,{gpu},{form},{n},{k}".encode()).hexdigest()[:8], 16) % 2 == 0
        for row in rows.split():
            m, us = row.split(":")
            tables.setdefault((gpu, run, form), []).append((fitted, int(n), int(k), int(m), float(us) * 1e-6))
    return tables


def costs(gpu, keys, values=()):
    values = [*zip(("cast_efficiency", "scale_efficiency"), CASTS.get(gpu, ())), *values]
    words = [f"hardware.profile={PROFILES.get(gpu, gpu)}", *(f"hardware.{key}={value}" for key, value in values)]
    text = subprocess.run([PROGRAM, *words], input="\n".join(keys), stdout=subprocess.PIPE, text=True, check=True,
                          env=dict(os.environ, GSWBENCH_CONFIGS=SOURCE + "/configs")).stdout
    return [float(word) for word in text.split()]


def timed(table, rows, found, values):
    """Returns the seconds that the loop of the table measures for GEMMs that take `found` at the sustained clock."""
    gpu, run, form = table
    boost = BOOST.get(gpu, BLACKWELL_BOOST)
    if run == "burst":
        found = [seconds * (1 - boost * LIMITED / (seconds + LIMITED)) for seconds in found]
    if form not in ("fp8", "fp8*"):
        return found
    casts = costs(gpu, [FOUND.format(m=m, k=k) for _, _, k, m, _ in rows], values)
    gap, *reads = costs(gpu, ["cast bf16,f32 1"] + [f"cast bf16,f32 {m * k // 3}" for _, _, k, m, _ in rows], values)
    if run == "sustained":
        limits = [1 + (1 - CAST_POWER) * cast / seconds for seconds, cast in zip(found, casts)]
        found = [seconds / min(((limit - 0.2) / 0.8) ** (1 / 3), 1 / (1 - boost)) for seconds, limit in zip(found, limits)]
    cache = L2.get(gpu, BLACKWELL_L2)
    return [seconds + (read - gap) * max(1 - 2 * m * k / cache, 0) for seconds, read, (_, _, k, m, _) in zip(found, reads, rows)]


def errors(table, rows, values=()):
    """Returns logarithms of predicted over measured seconds. In NVFP4 both include the cast of an input."""
    gpu, _, form = table
    if form in FORMATS:
        key = "gemm {f},{f},bf16 {m}x{n}x{k}x0x1"
        found = costs(gpu, [key.format(f=FORMATS[form], m=m, n=n, k=k) for _, n, k, m, _ in rows], values)
        if form == "nvfp4":
            casts = costs(gpu, [KNOWN_FP4.format(m=m, k=k) for _, _, k, m, _ in rows], values)
            found = [product + cast for product, cast in zip(found, casts)]
        else:
            found = timed(table, rows, found, values)
    else:
        found = costs(gpu, [KNOWN.format(m=m, k=k) for _, _, k, m, _ in rows], values)
        if form == "scale":
            both = costs(gpu, [FOUND.format(m=m, k=k) for _, _, k, m, _ in rows], values)
            found = [second - first for first, second in zip(found, both)]
    return [math.log(cost / row[4]) for cost, row in zip(found, rows)]


def add_products(tables):
    """Adds fp8* for each FP8 table: the rows whose cast is short. Leaves it out if there are too few."""
    for (gpu, run, form), rows in list(tables.items()):
        if form == "fp8":
            casts = costs(gpu, [FOUND.format(m=m, k=k) for _, _, k, m, _ in rows])
            found = [row for row, cast in zip(rows, casts) if cast <= CAST_SHARE * (cast + row[4])]
            if len(found) >= FEWEST:
                tables[gpu, run, "fp8*"] = found


def sizes(found):
    """Returns the median and the 90th percentile of the errors in percent."""
    ordered = sorted(100 * abs(math.expm1(error)) for error in found)
    return statistics.median(ordered), ordered[int(0.9 * (len(ordered) - 1))]


def fit(tables, gpu, form):
    """Finds the values with the smallest mean error on the fitted families by coordinate search."""
    tables = {table: [row for row in rows if row[0]] for table, rows in tables.items() if table[::2] == (gpu, form)}
    suffix = {"bf16": "", "fp8": "_fp8", "nvfp4": "_fp4"}[form]
    efficiency = "gemm_efficiency" + suffix
    steps = {efficiency: (0.7, 0.1), "gemm_prologue" + suffix: (200.0, 80.0)}
    if form != "nvfp4":    # NVFP4 uses the smoothing and the gap of FP8
        steps["gemm_smoothing" + suffix] = (0.8, 0.2)
    if form == "fp8":
        steps["gemm_gap_fp8"] = (2e-6, 2e-6)
    if form == "bf16":    # other formats use the value of BF16
        steps["gemm_memory_exposed"] = (0.3, 0.2)
    at, steps = {key: start for key, (start, _) in steps.items()}, {key: step for key, (_, step) in steps.items()}

    def loss(values):
        found = {table: errors(table, rows, values.items()) for table, rows in tables.items()}
        level = {table: statistics.median(found[table]) if len(found) > 1 and table[1] == "burst" else 0 for table in found}
        return statistics.mean(statistics.mean(abs(error - level[table]) for error in found[table]) for table in found)

    best = loss(at)
    while steps[efficiency] > 1e-3:
        before = best
        for key, step in steps.items():
            for new in (at[key] + step, at[key] - step):
                trial = dict(at, **{key: min(max(new, 0.0), 65536.0 if "prologue" in key else 1.0)})
                value = loss(trial) if trial[efficiency] >= 0.01 else math.inf
                if value < best:
                    best, at = value, trial
        if best > before - 1e-5:
            steps = {key: step / 2 for key, step in steps.items()}
    print(*(f"{key} = {value:.3g}" for key, value in at.items()), sep="\n")


def main():
    words = sys.argv[1:]
    tables = read(words[1] if words[:1] == ["--rows"] else os.path.join(SOURCE, "tests/predict/op_rows.csv"))
    words = words[2:] if words[:1] == ["--rows"] else words
    if words[:1] == ["--fit"]:
        return fit(tables, *words[1:3])
    add_products(tables)
    failures = 0
    print(f"{'':24}{'rows':>5} {'bias':>6} | fitted: median, p90 | left out: median, p90 | limits")
    for table, rows in sorted(tables.items()):
        found = errors(table, rows, OF_LIBRARIES.get((table[0], table[2]), ()))
        bias = statistics.median(found)
        found = [error - (bias if table[1] == "burst" else 0.0) for error in found]
        fitted, left = ([error for error, row in zip(found, rows) if row[0] == own] for own in (True, False))
        limits = LIMITS.get(table, (math.inf, math.inf))
        fails = any(size > limit for size, limit in zip(sizes(left), limits))
        print("{:24}{:5} {:+6.1f} | {:13.1f} {:5.1f} | {:15.1f} {:5.1f} | {} {} {}".format(
            " ".join(table), len(rows), 100 * math.expm1(bias), *sizes(fitted), *sizes(left), *limits,
            "FAILS" if fails else ""))
        failures += fails
    ultra = costs("gb300", [ULTRA[0]])[0] / ULTRA[1] - 1
    print(f"gb300, {ULTRA[0]}: {100 * ultra:+.1f} %")
    return failures + (abs(ultra) > 0.02)


if __name__ == "__main__":
    sys.exit(main())
