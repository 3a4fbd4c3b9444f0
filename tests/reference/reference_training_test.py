# SPDX-License-Identifier: MIT
"""Ten steps of training in gswbench against the same steps in PyTorch, from the same exported weights and tokens."""
import json
import os
import pathlib
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
# Small enough a rate that training is stable: an unstable run multiplies every rounding error.
COMMON = {"train.learning_rate": "1e-3", "train.sequence": 64}

# heads = kv_heads; no two of the widths are alike.
LATENT = {"model.family": "gswbench", "model.kv_heads": 4, "model.head_dim": 24, "model.rope_dim": 12, "model.kv_rank": 36}


def gswbench(command, *arguments, overrides):
    words = [os.environ["GSWBENCH"], command, *map(str, arguments)]
    for key, value in overrides.items():
        words += ["--set", f"{key}={value}"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}"
    return done.stdout


class Run:
    """A run of gswbench: loss and gradient norm of each step, the trained weights, the merged configuration."""

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


class Training(unittest.TestCase):
    def compare(self, config, overrides, *layouts):
        """One rank in fp32 and in BF16, and the given layouts in fp32, each an argument list of run."""
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
            difference = max(abs(a - b) for a, b in zip(run.losses, reference.losses, strict=True))
            print(f"{config} bf16: loss {difference:.1e}")
            self.assertLess(difference, 1e-2)

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
        """Of what training changed in a tensor, the share in which the two differ."""
        initial, trained = reference.initial[name].detach(), reference.trained[name].detach()
        return float((train.to_torch(run.weights[name]) - trained).norm() / (trained - initial).norm())

    def test_llama(self):
        """Grouped queries, SwiGLU, RMSNorm; rope scaling and padded vocabulary; accumulation, and replicas."""
        self.compare("tiny-llama", {"model.rope_scaling": 8, "model.vocab": 500, "model.vocab_multiple": 64},
                     ("--ranks", "2", "--comm", "local"))

    def test_nemotron(self):
        """LayerNorm-1p, squared ReLU, partial rope."""
        self.compare("tiny-nemotron", {})

    def test_geglu(self):
        """Tied embedding with padding, GeGLU; no clipping."""
        self.compare("tiny-geglu", {"model.vocab": 500, "model.vocab_multiple": 64, "train.clip": 0})

    def test_mixtral(self):
        """Two of four experts, dropping within each sequence; the experts shared out, each with tp or whole."""
        # With some seeds two tokens are so nearly equal that rounding decides which of them is dropped.
        self.compare("tiny-llama", {"model.family": "mixtral", "model.experts": 4, "model.top_k": 2,
                                    "model.capacity_factor": 1, "model.auxiliary_loss": 0.01,
                                    "train.capacity_scope": "sequence", "run.seed": 2},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.tp=2"),
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=4", "--set", "parallel.tp=2", "--set",
                      "parallel.etp=1"))

    def test_qwen3(self):
        """Heads of queries and keys are normalised, on ranks that share them out, too, with or without rows of their own."""
        self.compare("tiny-llama", {"model.family": "qwen3", "model.qk_norm": "yes"},
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.tp=2"),
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.tp=2",
                      "--set", "parallel.sequence_parallel=no"))

    def test_qwen3_moe(self):
        """The same with experts."""
        self.compare("tiny-llama", {"model.family": "qwen3_moe", "model.qk_norm": "yes", "model.experts": 4,
                                    "model.expert_ffn": 64, "model.top_k": 2, "model.auxiliary_loss": 0.01,
                                    "train.capacity_scope": "sequence", "run.seed": 2},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.cp=2"))

    def test_gpt_oss(self):
        """Windows in every second layer, sinks, and biases of attention, experts and router, on ranks of all kinds."""
        self.compare("tiny-llama", {"model.family": "gswbench", "model.pattern": "(window_attention + experts, experts)",
                                    "model.window": 9, "model.attention_sinks": "yes", "model.attention_bias": "yes",
                                    "model.mlp_bias": "yes", "model.router_offset": "yes", "model.experts": 4,
                                    "model.expert_ffn": 64, "model.top_k": 2, "model.auxiliary_loss": 0.01,
                                    "train.capacity_scope": "sequence", "run.seed": 2},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.tp=2"),
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.tp=2",
                      "--set", "parallel.sequence_parallel=no"),
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.cp=2",
                      "--set", "parallel.context=gather"))

    def test_latent_attention(self):
        """Queries compressed, too; on ranks that share out heads, or positions with keys gathered or passed round."""
        self.compare("tiny-llama", LATENT | {"model.q_rank": 40, "model.value_dim": 20},
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.tp=2"),
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.tp=2", "--set", "parallel.cp=2",
                      "--set", "parallel.context=gather"),
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.cp=2", "--set", "parallel.context=ring",
                      "--set", "train.recompute=selective", "--set", "train.recompute_save=latent"))

    def test_latent_attention_of_queries_that_are_not_compressed(self):
        """Values wider than what does not rotate of keys; experts as those of Moonlight beside a dense layer."""
        self.compare("tiny-llama", LATENT | {"model.value_dim": 48, "model.pattern": "dense, experts",
                                             "model.experts": 4, "model.expert_ffn": 48, "model.shared_ffn": 48,
                                             "model.top_k": 2, "model.router_score": "sigmoid",
                                             "model.router_scale": 2.5, "model.auxiliary_loss": 0.01,
                                             "train.capacity_scope": "sequence", "run.seed": 3},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.tp=2"))

    def test_grok(self):
        """GeGLU experts, two of eight, dropping within each microbatch."""
        self.compare("tiny-geglu", {"model.experts": 8, "model.top_k": 2, "model.capacity_factor": 1.25,
                                    "model.auxiliary_loss": 0.05})

    def test_dense_layers_among_layers_with_experts(self):
        """Experts that are narrower than the MLP; each on a rank of its own, and stages that begin with either."""
        self.compare("tiny-llama", {"model.family": "gswbench", "model.pattern": "dense, experts, dense, experts",
                                    "model.experts": 4, "model.expert_ffn": 64, "model.top_k": 2,
                                    "model.auxiliary_loss": 0.01, "train.capacity_scope": "sequence", "run.seed": 2},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.pp=2"))

    def test_shared_experts(self):
        """Beside the experts that are chosen, on ranks that share out both."""
        self.compare("tiny-llama", {"model.family": "gswbench", "model.pattern": "dense, experts",
                                    "model.experts": 4, "model.expert_ffn": 64, "model.shared_ffn": 96, "model.top_k": 2,
                                    "model.auxiliary_loss": 0.01, "train.capacity_scope": "sequence", "run.seed": 2},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.tp=2"))

    def test_sigmoids_groups_and_biases(self):
        """A router as that of DeepSeek-V3, with biases that move each step."""
        self.compare("tiny-llama", {"model.family": "gswbench", "model.pattern": "dense, experts",
                                    "model.experts": 8, "model.expert_ffn": 48, "model.shared_ffn": 48, "model.top_k": 3,
                                    "model.router_score": "sigmoid", "model.router_scale": 2.5,
                                    "model.router_groups": 4, "model.router_top_groups": 2,
                                    "model.router_bias_rate": 0.01, "model.auxiliary_loss": 0.01,
                                    "train.capacity_scope": "sequence", "run.seed": 2},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=4", "--set", "parallel.tp=2",
                      "--set", "parallel.etp=1"))

    def test_softmax_of_all_experts(self):
        """Gates that do not add up to one, and groups by the sum of two probabilities."""
        self.compare("tiny-llama", {"model.family": "gswbench", "model.experts": 8, "model.expert_ffn": 48,
                                    "model.top_k": 2, "model.router_normalise": "no", "model.router_scale": 3,
                                    "model.router_groups": 2, "model.router_top_groups": 1, "run.seed": 3})

    def test_gelu_with_layer_norm(self):
        self.compare("tiny-nemotron", {"model.activation": "gelu", "model.norm": "layernorm", "model.rope_fraction": 0,
                                       "run.seed": 5, "train.weight_decay": 0.5})


if __name__ == "__main__":
    unittest.main()
