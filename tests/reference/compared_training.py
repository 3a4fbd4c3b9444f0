# SPDX-License-Identifier: MIT
"""Compares ten steps of training in gswbench and in PyTorch, from the same exported weights and tokens. Skips the
test without PyTorch."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ModuleNotFoundError:
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

import safetensors
import train

torch.set_num_threads(1)    # the matrices are tiny, and other tests run beside this one
STEPS = 10
# The learning rate keeps training stable; an unstable run amplifies every rounding error.
COMMON = {"train.learning_rate": "1e-3", "train.sequence": 64}


def gswbench(command, *arguments, overrides):
    words = [os.environ["GSWBENCH"], command, *map(str, arguments)]
    for key, value in overrides.items():
        words += ["--set", f"{key}={value}"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}"
    return done.stdout


class Run:
    """A run of gswbench: loss and gradient norm of each step, the trained weights, and the merged configuration."""

    def __init__(self, folder, config, overrides, *arguments):
        folder.mkdir()
        output = gswbench("run", "--config", config, "--steps", STEPS, "--warmup", 0, "--backend", "host", "--json",
                          "--out", folder / "results", "--weights-out", folder / "trained", *arguments,
                          overrides=overrides)
        steps = json.loads(output)["steps"]
        self.losses = [step["loss"] for step in steps]
        self.norms = [step["grad_norm"] for step in steps]
        self.weights = safetensors.read_folder(folder / "trained")
        (self.merged,) = (folder / "results").rglob("config.merged.ini")


class Reference:
    """The same training in PyTorch, in double precision."""

    def __init__(self, folder, config, overrides, merged):
        gswbench("weights", "--config", config, "-o", folder / "initial", overrides=overrides)
        gswbench("data", "--config", config, "--steps", STEPS, "-o", folder / "tokens", overrides=overrides)
        self.initial = train.to_parameters(safetensors.read_folder(folder / "initial"), torch.float64)
        self.trained = {name: value.detach().clone().requires_grad_() for name, value in self.initial.items()}
        tokens = train.to_torch(safetensors.read(folder / "tokens")["tokens"]).long()
        steps = list(train.train(train.read_config(merged), self.trained, tokens))
        self.losses, self.norms = zip(*steps)


def relative(a, b):
    return max(abs(x / y - 1) for x, y in zip(a, b, strict=True))


class TrainingTest(unittest.TestCase):
    def compare(self, config, overrides, *layouts):
        """Compares one rank in fp32 and BF16, and the layouts in fp32. Each layout is a list of arguments for run.
        Uses only the first layout unless GSWBENCH_ROWS=all."""
        layouts = layouts if os.environ.get("GSWBENCH_ROWS") == "all" else layouts[:1]
        overrides = COMMON | overrides
        exact, rounded = overrides | {"precision.compute": "fp32"}, overrides | {"precision.compute": "bf16"}
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            single = Run(folder / "single", config, exact)
            reference = Reference(folder, config, exact, single.merged)
            self.check_exact(f"{config} fp32", single, reference)
            for number, arguments in enumerate(layouts):
                run = Run(folder / str(number), config, exact, *arguments)
                self.check_exact(f"{config} fp32 {' '.join(arguments)}", run, reference)
            run = Run(folder / "bf16", config, rounded)
            differences = [abs(a - b) for a, b in zip(run.losses, reference.losses, strict=True)]
            middle, most = statistics.median(differences), max(differences)
            print(f"{config} bf16: loss {middle:.1e}, at most {most:.1e}")
            # A token with nearly equal expert scores may be routed differently after rounding, which affects single
            # steps. Over eight seeds, AVX2 and AVX-512 kernels showed at most 1.6e-2, and at least half of a run's
            # steps were below 1.3e-3.
            self.assertLess(middle, 3e-3)
            self.assertLess(most, 5e-2)

    def check_exact(self, title, run, reference):
        loss, norm = relative(run.losses, reference.losses), relative(run.norms, reference.norms)
        self.assertEqual(run.weights.keys(), reference.trained.keys())
        weights = max(self.weight_difference(name, run, reference) for name in run.weights)
        print(f"{title}: loss {loss:.1e}, gradient norm {norm:.1e}, weights {weights:.1e}")
        self.assertLess(loss, 1e-5, title)
        self.assertLess(norm, 1e-4, title)
        self.assertLess(weights, 1e-2, title)
        self.assertLess(run.losses[-1], run.losses[0] - 0.5, "the data can be learnt")

    @staticmethod
    def weight_difference(name, run, reference):
        """Difference between the two, relative to the change by training."""
        initial, trained = reference.initial[name].detach(), reference.trained[name].detach()
        return float((train.to_torch(run.weights[name]) - trained).norm() / (trained - initial).norm())
