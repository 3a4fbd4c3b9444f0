# SPDX-License-Identifier: MIT
"""Compares ten steps of training in gswbench with the reference (train.py), from the same exported weights and tokens.
golden.py describes the stored results of the reference."""
import os
import pathlib
import statistics
import tempfile
import unittest
import zlib

import golden
import numpy as np
import safetensors
from program import Run, gswbench, relative

if golden.RECOMPUTES:
    import recompute

STEPS = 10
# With this learning rate training is stable. If it were unstable, it would amplify every rounding error.
COMMON = {"train.learning_rate": "1e-3", "train.sequence": 64}


def train(folder, config, overrides, *arguments):
    """Returns a run with its trained weights as flat arrays."""
    folder.mkdir()
    run = Run(folder / "results", config, STEPS, "--weights-out", folder / "trained", *arguments, overrides=overrides)
    run.trained = {name: golden.flat(tensor) for name, tensor in safetensors.read_folder(folder / "trained").items()}
    return run


class Reference:
    """The same training by the reference, computed or from stored results. case: an entry of the stored results."""

    def __init__(self, folder, config, overrides, merged, case):
        gswbench("weights", "--config", config, "-o", folder / "initial", overrides=overrides)
        gswbench("data", "--config", config, "--steps", STEPS, "-o", folder / "tokens", overrides=overrides)
        self.initial = safetensors.read_folder(folder / "initial")
        tokens = safetensors.read(folder / "tokens")["tokens"]
        inputs = merged, self.initial, tokens
        self.trained = None
        if golden.RECOMPUTES:
            training = recompute.Training(*inputs)
            training.run(STEPS)
            results, self.trained = training.results(), training.trained()
            if golden.WRITES:
                case.write(training.read, results, *inputs)
            case.check(results, *inputs)
        else:
            results = case.read(*inputs)
        self.losses, self.norms, self.changes = results["losses"], results["gradient_norms"], np.array(results["changes"])

    def weight_differences(self, trained):
        """Returns the difference of the changes by training, relative to the reference's change, of each tensor by name:
        the norm of the difference, or with stored results the largest difference of the norms and inner products."""
        changes = golden.sketch_changes(self.initial, trained)
        shares = np.abs(changes - self.changes).max(-1) / self.changes[:, 0]
        if self.trained is not None:
            shares = [np.linalg.norm(trained[name] - self.trained[name]) / change[0]
                      for name, change in zip(sorted(trained), self.changes, strict=True)]
        return dict(zip(sorted(trained), np.nan_to_num(shares, nan=np.inf), strict=True))


class TrainingTest(unittest.TestCase):
    def compare(self, config, overrides, *layouts):
        """Compares one rank in fp32 and BF16, and the layouts in fp32. Each layout is a list of arguments for run.
        Unless GSWBENCH_ROWS=all, the commit selects one test in three, which also runs its first layout; other tests
        run none, since layout_test compares layouts with one rank. The names of class and test select the stored
        results."""
        if os.environ.get("GSWBENCH_ROWS") != "all":
            drawn = (zlib.crc32(self._testMethodName.encode()) + int(os.environ.get("GSWBENCH_DRAW", 0))) % 3 == 0
            layouts = layouts[:1] if drawn else ()
        overrides = COMMON | overrides
        exact, rounded = overrides | {"precision.compute": "fp32"}, overrides | {"precision.compute": "bf16"}
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            single = train(folder / "single", config, exact)
            case = golden.Case(type(self).__name__.lower(), self._testMethodName)
            reference = Reference(folder, config, exact, single.merged, case)
            self.check_exact(f"{config} fp32", single, reference)
            for number, arguments in enumerate(layouts):
                run = train(folder / str(number), config, exact, *arguments)
                self.check_exact(f"{config} fp32 {' '.join(arguments)}", run, reference)
            run = train(folder / "bf16", config, rounded)
            differences = [abs(a - b) for a, b in zip(run.losses, reference.losses, strict=True)]
            middle, most = statistics.median(differences), max(differences)
            print(f"{config} bf16: loss {middle:.1e}, at most {most:.1e}")
            # Rounding may change the expert of a token whose scores are nearly equal, which affects single steps. Over
            # eight seeds, AVX2 and AVX-512 kernels differed by at most 1.6e-2, and in at least half of the steps of
            # each run by less than 1.3e-3.
            self.assertLess(middle, 3e-3)
            self.assertLess(most, 5e-2)

    def check_exact(self, title, run, reference):
        loss, norm = relative(run.losses, reference.losses), relative(run.norms, reference.norms)
        shares = reference.weight_differences(run.trained)
        worst = max(shares, key=shares.get)
        print(f"{title}: loss {loss:.1e}, gradient norm {norm:.1e}, weights {shares[worst]:.1e} in {worst}")
        self.assertLess(loss, 1e-5, title)
        self.assertLess(norm, 1e-4, title)
        self.assertLess(shares[worst], 1e-2, f"{title}: {worst}")
        self.assertLess(run.losses[-1], run.losses[0] - 0.5, "the data can be learnt")
