# SPDX-License-Identifier: MIT
"""Compares ten training steps with Muon in gswbench with PyTorch in double precision. In PyTorch, Newton-Schulz iterations
are polynomials of the singular values. Skipped without PyTorch."""
import re
import unittest
import unittest.mock

import compared_in_torch
import compared_training
import torch
import train

POLYNOMIALS = ((4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037),
               (2.8769, -3.1427, 1.2046), (2.8366, -3.0525, 1.2012))
AdamW = torch.optim.AdamW


def orthogonalize(matrix):
    left, values, right = torch.linalg.svd(matrix / matrix.norm(), full_matrices=False)
    for a, b, c in POLYNOMIALS:
        values = a * values + b * values**3 + c * values**5
    return left @ torch.diag(values) @ right


class Muon:
    """Moving average of gradients with Nesterov's step, orthogonalized, times the square root of the larger side;
    weight decay is decoupled. parameters: lists of matrices that are orthogonalized together, one above the other."""

    def __init__(self, settings, parameters):
        self.settings, self.parameters = settings, parameters
        self.momenta = [torch.zeros_like(torch.cat(matrices)) for matrices in parameters]

    def step(self):
        settings, decay = self.settings, self.settings.muon_momentum
        for matrices, momentum in zip(self.parameters, self.momenta, strict=True):
            gradient = torch.cat([matrix.grad for matrix in matrices])
            momentum.mul_(decay).add_(gradient, alpha=1 - decay)
            update = orthogonalize(decay * momentum + (1 - decay) * gradient)
            factor = settings.muon_scale * max(update.shape)**0.5
            for matrix, part in zip(matrices, update.split([len(matrix) for matrix in matrices]), strict=True):
                matrix.data.sub_(settings.learning_rate * (settings.weight_decay * matrix.data + factor * part))


class Optimizer:
    """Muon for the matrices of layers, AdamW for all other parameters."""

    def __init__(self, settings, parameters):
        matrices = {name: value for name, value in parameters.items()
                    if value.dim() == 2 and re.match(r"model[.]layers[.]\d+[.]", name)}
        joint = {}
        for name, value in matrices.items():
            key = re.sub(r"(gate_proj|up_proj|w1|w3)[.]weight", "fc1", name) if settings.muon_split == "qkv" else name
            joint.setdefault(key, []).append(value)
        others = {name: value for name, value in parameters.items() if name not in matrices}
        self.all = list(parameters.values())
        self.parts = (Muon(settings, list(joint.values())),
                      AdamW(others.values(), lr=settings.learning_rate, eps=settings.epsilon,
                            betas=(settings.beta1, settings.beta2), weight_decay=settings.weight_decay))

    def zero_grad(self):
        for parameter in self.all:
            parameter.grad = None

    def step(self):
        for part in self.parts:
            part.step()


def train_with_muon(config, parameters, tokens):
    def make(trained, **_):
        names = {id(value): name for name, value in parameters.items()}
        return Optimizer(config.train, {names[id(value)]: value for value in trained})

    with unittest.mock.patch.object(torch.optim, "AdamW", make):
        yield from train_with_adamw(config, parameters, tokens)


train_with_adamw, train.train = train.train, train_with_muon


class MuonTest(compared_in_torch.TorchTest):
    common = compared_training.COMMON | {"model.layers": 2, "train.optimizer": "muon", "precision.compute": "fp32"}
    share = 5e-4

    def test_dense(self):
        """Tests stronger decay of weights and momentum than by default. Matrices are tall, wide and square."""
        self.compare({"train.weight_decay": 0.5, "train.muon_momentum": 0.8, "train.muon_scale": 0.3},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.tp=2", "--set", "parallel.zero=1"))

    def test_latent_experts(self):
        """Tests a model like Kimi K2, in which gate and up are orthogonalized together."""
        self.compare({"model.family": "gswbench", "model.kv_heads": 4, "model.head_dim": 24, "model.rope_dim": 12,
                      "model.kv_rank": 36, "model.q_rank": 40, "model.value_dim": 20, "model.pattern": "dense, experts",
                      "model.experts": 4, "model.expert_ffn": 48, "model.shared_ffn": 48, "model.top_k": 2,
                      "model.router_score": "sigmoid", "model.router_scale": 2.5, "train.capacity_scope": "sequence",
                      "train.muon_split": "qkv"},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.tp=2",
                      "--set", "parallel.zero=1"))


if __name__ == "__main__":
    unittest.main()
