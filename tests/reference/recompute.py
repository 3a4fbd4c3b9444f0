# SPDX-License-Identifier: MIT
"""Computes with PyTorch, in double precision, the results that golden/*.json stores."""
import sys

try:
    import torch
except ModuleNotFoundError:
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

import golden
import train

torch.set_num_threads(1)    # the matrices are tiny, and other tests run beside this one


class Recorded:
    """A section of the configuration that records which of its values are read."""

    def __init__(self, section, values, read):
        self.section, self.values, self.read = section, values, read

    def __getattr__(self, key):
        self.read.add(f"{self.section}.{key}")
        return getattr(self.values, key)


class Training:
    """Training from the initial weights, one step after another. read: "section.key" of each value that was read."""

    def __init__(self, merged, initial, tokens):
        self.read, self.initial, self.losses, self.norms = set(), initial, [], []
        self.config = train.read_config(merged)
        for section in ("model", "train"):
            setattr(self.config, section, Recorded(section, getattr(self.config, section), self.read))
        self.parameters = train.to_parameters(initial, torch.float64)
        self.tokens = train.to_torch(tokens).long()
        self.steps = train.train(self.config, self.parameters, self.tokens)

    def run(self, count):
        for _ in range(count):
            loss, norm = next(self.steps)
            self.losses.append(loss)
            self.norms.append(norm)

    def trained(self):
        """Flat arrays by name."""
        return {name: value.detach().flatten().numpy().copy() for name, value in self.parameters.items()}

    def results(self):
        return {"losses": self.losses, "gradient_norms": self.norms,
                "changes": golden.sketch_changes(self.initial, self.trained())}

    def logits(self, step, tie):
        """The logits [tokens, vocabulary] of a step's tokens with the present weights, and which tokens [tokens] have a router
        whose lowest chosen and highest other logit differ by less than tie."""
        tokens, balance = self.tokens[step, :, :-1], train.Balance()
        angles = train.rope_angles(self.config.model, tokens.shape[1])
        with torch.no_grad():
            logits, _ = train.forward(self.parameters, tokens, self.config, angles, balance)
        ties = torch.zeros(tokens.numel(), dtype=torch.bool)
        if balance.margins:
            ties = torch.stack(balance.margins).view(self.config.model.layers, -1).amin(0) < tie
        return logits.flatten(0, 1).numpy(), ties.numpy()
