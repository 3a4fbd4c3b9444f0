# SPDX-License-Identifier: MIT
"""Ten training steps of hybrid models with Mamba-2 in gswbench against PyTorch in double precision, where the scan is the
recurrence, one position after the other. Skipped without PyTorch."""
import pathlib
import sys
import tempfile
import unittest

try:
    import torch
except ModuleNotFoundError:
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

import torch.nn.functional as F

import compared_training
import safetensors
import train
from program import gswbench, relative

torch.set_num_threads(1)    # the matrices are tiny, and other tests run beside this one
HYBRID = compared_training.COMMON | {
    "model.family": "gswbench", "model.activation": "relu2", "model.positions": "none", "model.mamba_heads": 8,
    "model.mamba_head_dim": 12, "model.mamba_state": 20, "model.mamba_groups": 4, "model.mamba_chunk": 24,
    "train.learning_rate": "2e-3", "precision.compute": "fp32"}
EXPERTS = {"model.experts": 4, "model.expert_ffn": 48, "model.shared_ffn": 48, "model.top_k": 2,
           "model.router_score": "sigmoid", "model.router_scale": 2.5, "train.capacity_scope": "sequence"}


def convolve(x, weight, bias):
    """x: [batch, sequence, channels]. The last tap is that of the current position."""
    taps = weight.shape[1]
    padded = F.pad(x, (0, 0, taps - 1, 0))
    return F.silu(bias + sum(weight[:, tap] * padded[:, tap:tap + x.shape[1]] for tap in range(taps)))


def scan(x, b, c, dt, weights, name):
    """x: [batch, sequence, heads, head_dim], b and c: [batch, sequence, heads, state], dt: [batch, sequence, heads]."""
    rate, outputs = -weights[name + "A_log"].exp(), []
    state = torch.zeros(x.shape[0], *x.shape[2:], b.shape[-1], dtype=x.dtype)
    for position in range(x.shape[1]):
        step = dt[:, position].unsqueeze(-1).unsqueeze(-1)
        added = x[:, position].unsqueeze(-1) * b[:, position].unsqueeze(-2)
        state = (step * rate.view(-1, 1, 1)).exp() * state + step * added
        outputs.append((state * c[:, position].unsqueeze(-2)).sum(-1))
    return torch.stack(outputs, dim=1) + weights[name + "D"].view(-1, 1) * x


def mamba(rows, weights, name, model):
    """Mamba-2 (Dao and Gu, "Transformers are SSMs", 2024, section 7) with grouped, gated RMS norm. rows: [batch,
    sequence, hidden]."""
    batch, sequence, _ = rows.shape
    z, x, b, c, dt = (F.linear(rows, weights[f"{name}{part}_proj.weight"]) for part in ("z", "x", "b", "c", "dt"))
    x, b, c = (convolve(value, weights[f"{name}conv_{part}.weight"], weights[f"{name}conv_{part}.bias"])
               for value, part in ((x, "x"), (b, "b"), (c, "c")))
    each = model.mamba_heads // model.mamba_groups
    b, c = (value.view(batch, sequence, model.mamba_groups, -1).repeat_interleave(each, dim=2) for value in (b, c))
    y = scan(x.view(batch, sequence, model.mamba_heads, -1), b, c, F.softplus(dt + weights[name + "dt_bias"]), weights,
             name)
    gated = (y.flatten(2) * F.silu(z)).view(batch, sequence, model.mamba_groups, -1)
    gated = gated * torch.rsqrt(gated.pow(2).mean(-1, keepdim=True) + model.norm_epsilon)
    return F.linear(gated.flatten(2) * weights[name + "norm.weight"], weights[name + "out_proj.weight"])


def run_layer(x, weights, layer, config, angles, balance):
    """One sublayer, by its letter."""
    model, name = config.model, f"model.layers.{layer}."
    letter = model.pattern[layer]
    if letter == "M":
        rows = train.normalise(x, weights, name + "mixer_layernorm", model)
        return x + mamba(rows, weights, name + "mixer.", model), 0
    if letter == "*":
        rows = train.normalise(x, weights, name + "input_layernorm", model)
        return x + train.attend(rows, weights, name + "self_attn.", model, angles, 0), 0
    rows = train.normalise(x, weights, name + "post_attention_layernorm", model)
    mixed, own = train.mix(rows, weights, name, config, balance)
    return x + mixed, own


train.run_layer = run_layer


class Hybrid(unittest.TestCase):
    def compare(self, overrides, *layouts):
        overrides = HYBRID | overrides
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            gswbench("weights", "--config", "tiny-llama", "-o", folder / "initial", overrides=overrides)
            gswbench("data", "--config", "tiny-llama", "--steps", compared_training.STEPS, "-o", folder / "tokens",
                     overrides=overrides)
            parameters = train.to_parameters(safetensors.read_folder(folder / "initial"), torch.float64)
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
        self.assertLess(shares[worst], 1e-2, f"{title}: {worst}")
        self.assertLess(losses[-1], losses[0] - 0.5, "the data can be learnt")

    def test_attention_and_mlp(self):
        """As in Nemotron-H; the last chunk of a sequence is shorter."""
        self.compare({"model.layers": 5, "model.pattern": "M-M*-"},
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.tp=2", "--set", "train.recompute=full"))

    def test_experts(self):
        """As in Nemotron 3 Nano; norms have a large epsilon."""
        self.compare(EXPERTS | {"model.layers": 4, "model.pattern": "MEM*", "model.norm_epsilon": 1e-3,
                                "model.mamba_conv": 3},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.tp=2"))


if __name__ == "__main__":
    unittest.main()
