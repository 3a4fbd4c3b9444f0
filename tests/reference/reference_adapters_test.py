# SPDX-License-Identifier: MIT
"""Compares ten training steps of adapters (LoRA) in gswbench with PyTorch, from the same weights and tokens. The reference
computes with W + alpha / rank B A instead of a frozen matrix W."""
import math
import pathlib
import tempfile
import unittest

from program import Run, gswbench, relative

import golden    # skips without NumPy
import safetensors

try:
    import torch
except ModuleNotFoundError:
    print("skipped: PyTorch is not installed (python3-torch)")
    raise SystemExit(77) from None

import train

STEPS = 10
COMMON = {"train.learning_rate": "2e-3", "train.sequence": 64, "precision.compute": "fp32", "adapters.rank": 3,
          "adapters.alpha": 8}
# For each target: the prefix of its matrices in a layer, and for each matrix with its own B the name of the A that it
# uses.
TARGETS = {"qkv": ("self_attn.", {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj"}),
           "projection": ("self_attn.", {"o_proj": "o_proj"}),
           "fc1": ("mlp.", {"gate_proj": "gate_up_proj", "up_proj": "gate_up_proj"}),
           "fc2": ("mlp.", {"down_proj": "down_proj"})}


def is_adapter(name):
    return ".lora_" in name


def pairs(weights, config):
    """Yields the name of each adapted matrix, and the names of its A and B."""
    for layer in range(config.model.layers):
        for target in config.adapters.targets.split(", "):
            folder, matrices = TARGETS[target]
            for matrix, shared in matrices.items():
                name = f"model.layers.{layer}.{folder}"
                if f"{name}{matrix}.weight" in weights:
                    yield f"{name}{matrix}.weight", f"{name}{shared}.lora_A.weight", f"{name}{matrix}.lora_B.weight"


def merged(weights, config):
    """Returns the weights of the model without adapters that computes the same."""
    plain = {name: weight for name, weight in weights.items() if not is_adapter(name)}
    for name, a, b in pairs(weights, config):
        plain[name] = weights[name] + config.adapters.alpha / config.adapters.rank * (weights[b] @ weights[a])
    return plain


def train_adapters(config, weights, tokens):
    """Updates the adapters, and yields (loss, gradient norm) of each step."""
    settings, angles = config.train, train.rope_angles(config.model, config.train.sequence)
    trained = [weight.requires_grad_() for name, weight in sorted(weights.items()) if is_adapter(name)]
    optimizer = torch.optim.AdamW(trained, lr=settings.learning_rate, eps=settings.epsilon,
                                  betas=(settings.beta1, settings.beta2), weight_decay=settings.weight_decay)
    count = tokens.shape[1] * settings.sequence
    for batch in tokens:
        optimizer.zero_grad()
        loss = 0
        for microbatch in batch.split(settings.micro_batch):
            entropy, _, auxiliary = train.loss_sums(merged(weights, config), microbatch, config, angles, train.Balance())
            ((entropy + auxiliary) / count).backward()
            loss += entropy.item() / count
        norm = torch.nn.utils.clip_grad_norm_(trained, settings.clip if settings.clip > 0 else math.inf)
        optimizer.step()
        yield loss, norm.item()


class Adapters(unittest.TestCase):
    def compare(self, config, overrides, *layouts):
        overrides = COMMON | overrides
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            runs = [Run(folder / f"run{number}", config, STEPS, "--weights-out", folder / f"trained{number}", *arguments,
                        overrides=overrides) for number, arguments in enumerate(((), *layouts))]
            gswbench("weights", "--config", config, "-o", folder / "initial", overrides=overrides)
            gswbench("data", "--config", config, "--steps", STEPS, "-o", folder / "tokens", overrides=overrides)
            settings = train.read_config(runs[0].merged)
            initial = train.to_parameters(safetensors.read_folder(folder / "initial"), torch.float64)
            weights = {name: weight.detach().clone() for name, weight in initial.items()}
            tokens = train.to_torch(safetensors.read(folder / "tokens")["tokens"]).long()
            steps = list(train_adapters(settings, weights, tokens))
            for number, run in enumerate(runs):
                trained = train.to_parameters(safetensors.read_folder(folder / f"trained{number}"), torch.float64)
                self.check(f"{config} {layouts[number - 1] if number else ''}", run, steps, (initial, weights, trained))

    def check(self, title, run, steps, states):
        initial, expected, trained = states
        loss = relative(run.losses, [step[0] for step in steps])
        norm = relative(run.norms, [step[1] for step in steps])
        worst = 0
        for name in trained:
            if not is_adapter(name):
                self.assertTrue(torch.equal(trained[name], initial[name]), f"{title}: {name} is not frozen")
                continue
            change = (expected[name] - initial[name]).norm()
            self.assertGreater(change, 0, f"{title}: {name} is not trained")
            worst = max(worst, ((trained[name] - expected[name]).norm() / change).item())
        print(f"{title}: loss {loss:.1e}, gradient norm {norm:.1e}, changes of adapters {worst:.1e}")
        self.assertLess(loss, 1e-5, title)
        self.assertLess(norm, 1e-4, title)
        self.assertLess(worst, 1e-2, title)
        self.assertLess(steps[-1][0], steps[0][0] - 0.01, "the data can be learnt")

    def test_attention(self):
        """Tests adapters on attention, as in MLPerf, with tp, and with pp and fsdp."""
        self.compare("tiny-llama", {"adapters.targets": "qkv, projection"},
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.tp=2"),
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.pp=2", "--set", "parallel.fsdp=2"))

    def test_every_matrix(self):
        """Tests adapters on all matrices, with tp without sequence parallelism, and with cp, ZeRO-1 and full recompute."""
        self.compare("tiny-llama", {"adapters.targets": "qkv, projection, fc1, fc2"},
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.tp=2",
                      "--set", "parallel.sequence_parallel=no"),
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.cp=2", "--set", "parallel.zero=1",
                      "--set", "train.recompute=full"))

    def test_layer_norms_and_a_plain_mlp(self):
        """Tests an fc1 without a gate, and frozen norms with biases."""
        self.compare("tiny-nemotron", {"adapters.targets": "fc1, fc2"},
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.tp=2"))


if __name__ == "__main__":
    unittest.main()
