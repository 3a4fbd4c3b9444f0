# SPDX-License-Identifier: MIT
"""Compares ten training steps of hybrid models with Mamba-2 in gswbench with PyTorch in double precision. In PyTorch, the
scan is a recurrence over positions. Skipped without PyTorch."""
import unittest

import compared_in_torch
import compared_training
import torch
import torch.nn.functional as F
import train

HYBRID = compared_training.COMMON | {
    "model.family": "gswbench", "model.activation": "relu2", "model.positions": "none", "model.mamba_heads": 8,
    "model.mamba_head_dim": 12, "model.mamba_state": 20, "model.mamba_groups": 4, "model.mamba_chunk": 24,
    "train.learning_rate": "2e-3", "precision.compute": "fp32"}
EXPERTS = {"model.experts": 4, "model.expert_ffn": 48, "model.shared_ffn": 48, "model.top_k": 2,
           "model.router_score": "sigmoid", "model.router_scale": 2.5, "train.capacity_scope": "sequence"}


def convolve(x, weight, bias):
    """Returns the causal convolution. x: [batch, sequence, channels]. The last tap belongs to the current position."""
    taps = weight.shape[1]
    padded = F.pad(x, (0, 0, taps - 1, 0))
    return F.silu(bias + sum(weight[:, tap] * padded[:, tap:tap + x.shape[1]] for tap in range(taps)))


def scan(x, b, c, dt, weights, name):
    """Returns the outputs of the scan. x: [batch, sequence, heads, head_dim], b and c: [batch, sequence, heads, state],
    dt: [batch, sequence, heads]."""
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


def mix_projected(x, weights, name, model, balance):
    """Returns the output of experts between projections to and from their width (LatentMoE), plus shared experts.
    x: [tokens, hidden]."""
    experts = name + "block_sparse_moe."
    logits = train.linear(x, weights, experts + "gate")
    scores = logits.sigmoid()
    chosen, gates, _ = train.choose_experts(scores, scores.detach(), balance.bias_of(experts), model)
    balance.add(experts, chosen, model.experts)
    inner = F.linear(x, weights[name + "mlp.fc1_latent_proj.weight"])
    out = torch.zeros_like(inner)
    for expert in range(model.experts):
        gate = (gates * (chosen == expert)).sum(-1, keepdim=True)
        first, second = (weights[f"{experts}experts.{expert}.{part}.weight"] for part in ("w3", "w2"))
        out = out + gate * F.linear(F.relu(F.linear(inner, first)).square(), second)
    shared = (f"{name}mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down"))
    return F.linear(out, weights[name + "mlp.fc2_latent_proj.weight"]) + train.feed_forward(x, weights, model, *shared)


class Repeated(dict):
    """Weights of a model in which all MTP modules use the weights of the first one."""

    def __init__(self, weights, layers):
        super().__init__(weights)
        self.layers = layers

    def first(self, name):
        parts = name.split(".")
        if parts[:2] == ["model", "layers"]:
            parts[2] = str(min(int(parts[2]), self.layers))
        return ".".join(parts)

    def __getitem__(self, name):
        return super().__getitem__(self.first(name))

    def __contains__(self, name):
        return super().__contains__(self.first(name))


def run_layer(x, weights, layer, config, angles, balance):
    """Runs a layer, which is one sublayer, or the sublayers of an MTP module."""
    auxiliary, (letters, *modules) = 0, config.model.pattern.split("/")
    for letter in letters[layer] if layer < config.model.layers else modules[0]:
        x, own = run_sublayer(x, weights, layer, letter, config, angles, balance)
        auxiliary = auxiliary + own
    return x, auxiliary


def run_sublayer(x, weights, layer, letter, config, angles, balance):
    model, name = config.model, f"model.layers.{layer}."
    if letter == "M":
        rows = train.normalise(x, weights, name + "mixer_layernorm", model)
        return x + mamba(rows, weights, name + "mixer.", model), 0
    if letter == "*":
        rows = train.normalise(x, weights, name + "input_layernorm", model)
        return x + train.attend(rows, weights, name + "self_attn.", model, angles, 0), 0
    rows = train.normalise(x, weights, name + "post_attention_layernorm", model)
    if letter == "E" and model.expert_hidden > 0:
        mixed = [mix_projected(group, weights, name, model, balance) for group in rows]
        return x + torch.stack(mixed), 0
    mixed, own = train.mix(rows, weights, name, config, balance)
    return x + mixed, own


train.run_layer = run_layer


class Hybrid(compared_in_torch.TorchTest):
    common = HYBRID

    def read_parameters(self, folder, overrides):
        parameters = super().read_parameters(folder, overrides)
        repeats = overrides.get("model.repeat_prediction") == "yes"
        return Repeated(parameters, overrides["model.layers"]) if repeats else parameters

    def test_attention_and_mlp(self):
        """Tests a model like Nemotron-H. The last chunk of a sequence is shorter."""
        self.compare({"model.layers": 5, "model.pattern": "M-M*-"},
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.tp=2", "--set", "train.recompute=full"))

    def test_experts(self):
        """Tests a model like Nemotron 3 Nano. Norms have a large epsilon."""
        self.compare(EXPERTS | {"model.layers": 4, "model.pattern": "MEM*", "model.norm_epsilon": 1e-3,
                                "model.mamba_conv": 3},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.tp=2"))

    def test_projected_experts(self):
        """Tests a model like Nemotron 3 Super."""
        self.compare(EXPERTS | {"model.layers": 4, "model.pattern": "MEM*", "model.expert_hidden": 32},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.tp=2"),
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.ep=2", "--set", "train.recompute=full"))

    def test_repeated_modules(self):
        """Tests two MTP modules with the same weights. Each has two sublayers."""
        self.compare(EXPERTS | {"model.layers": 4, "model.pattern": "MEM*/*E/*E", "model.expert_hidden": 32,
                                "model.predicted_tokens": 2, "model.repeat_prediction": "yes",
                                "train.prediction_weight": 0.5, "run.seed": 3},
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.fsdp=2", "--set", "parallel.ep=2"),
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.pp=2", "--set", "parallel.tp=2"))


if __name__ == "__main__":
    unittest.main()
