# SPDX-License-Identifier: MIT
"""Runs the program under test."""
import json
import os
import subprocess


def gswbench(command, *arguments, overrides):
    words = [os.environ["GSWBENCH"], command, *map(str, arguments)]
    for key, value in overrides.items():
        words += ["--set", f"{key}={value}"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}"
    return done.stdout


class Run:
    """A run on the host backend, with loss and gradient norm of each step, and the path of the merged configuration.
    results: a folder that does not exist yet."""

    def __init__(self, results, config, steps, *arguments, overrides):
        output = gswbench("run", "--config", config, "--steps", steps, "--warmup", 0, "--backend", "host", "--json",
                          "--out", results, *arguments, overrides=overrides)
        records = json.loads(output)["steps"]
        self.losses = [step["loss"] for step in records]
        self.norms = [step["grad_norm"] for step in records]
        (self.merged,) = results.rglob("config.merged.ini")


def relative(a, b):
    """Returns the largest relative difference of two sequences of numbers."""
    return max(abs(x / y - 1) for x, y in zip(a, b, strict=True))
