# SPDX-License-Identifier: MIT
"""Compares ten steps of training in gswbench with PyTorch in double precision, without stored results. Importing this
module without PyTorch ends the test as skipped."""
import pathlib
import sys
import tempfile
import unittest

try:
    import torch
except ModuleNotFoundError:
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

import compared_training
import safetensors
import train
from program import gswbench, relative

torch.set_num_threads(1)    # the matrices are tiny, and other tests run beside this one


class TorchTest(unittest.TestCase):
    common = {}
    share = 1e-2    # of the change of a tensor

    def read_parameters(self, folder, _):
        return train.to_parameters(safetensors.read_folder(folder), torch.float64)

    def compare(self, overrides, *layouts):
        overrides = self.common | overrides
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            gswbench("weights", "--config", "tiny-llama", "-o", folder / "initial", overrides=overrides)
            gswbench("data", "--config", "tiny-llama", "--steps", compared_training.STEPS, "-o", folder / "tokens",
                     overrides=overrides)
            parameters = self.read_parameters(folder / "initial", overrides)
            initial = {name: value.detach().clone() for name, value in parameters.items()}
            tokens = train.to_torch(safetensors.read(folder / "tokens")["tokens"]).long()
            reference = None
            for number, arguments in enumerate(((), *layouts)):
                run = compared_training.train(folder / str(number), "tiny-llama", overrides, *arguments)
                if reference is None:
                    reference = list(train.train(train.read_config(run.merged), parameters, tokens))
                self.check(" ".join(arguments), run, reference, initial, parameters)

    def check(self, title, run, reference, initial, parameters):
        losses, norms = zip(*reference, strict=True)
        loss, norm = relative(run.losses, losses), relative(run.norms, norms)
        shares = {}
        for name, value in parameters.items():
            change = (value.detach() - initial[name]).flatten()
            found = torch.tensor(run.trained[name]) - initial[name].flatten()
            shares[name] = float((found - change).norm() / change.norm())
        worst = max(shares, key=shares.get)
        print(f"{title}: loss {loss:.1e}, gradient norm {norm:.1e}, weights {shares[worst]:.1e} in {worst}")
        self.assertLess(loss, 1e-5, title)
        self.assertLess(norm, 1e-4, title)
        self.assertLess(shares[worst], self.share, f"{title}: {worst}")
        self.assertLess(losses[-1], losses[0] - 0.5, "the data can be learnt")
