# SPDX-License-Identifier: MIT
"""Compares gswbench data and gswbench weights with a second implementation of the documented generator."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import generator
import safetensors

PLACES = {"q_proj": 6, "k_proj": 7, "v_proj": 8, "o_proj": 9, "gate_proj": 12, "up_proj": 13, "down_proj": 14}
EXPERT_PLACES = {"w1": 0, "w3": 1, "w2": 2}


def gswbench(*arguments):
    subprocess.run([os.environ["GSWBENCH"], *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


class Generator(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def tokens(self, *arguments):
        file = self.folder / "tokens.safetensors"
        gswbench("data", "--config", "tiny-llama", "-o", file, *arguments)
        return safetensors.read(file)["tokens"]

    def test_tokens_are_the_documented_ones(self):
        for kind in ("uniform", "markov"):
            tokens = self.tokens("--steps", 2, "--set", f"run.data={kind}", "--set", "run.seed=9")

            self.assertEqual(tokens.shape, [2, 8, 129])
            for number in (0, 7, 15):
                expected = generator.sample(kind, 9, 512, 128, number)
                self.assertEqual(list(tokens.values[number * 129:(number + 1) * 129]), expected, f"{kind} {number}")

    def test_tokens_do_not_depend_on_the_layout(self):
        one = self.tokens("--steps", 1)
        four = self.tokens("--steps", 1, "--ranks", 4)

        self.assertEqual(one, four)

    def test_weights_are_the_documented_ones(self):
        gswbench("weights", "--config", "tiny-llama", "-o", self.folder / "weights")

        weights = safetensors.read_folder(self.folder / "weights")
        self.assertEqual(len(weights), 3 + 4 * 9)
        for name, tensor in weights.items():
            parts = name.split(".")
            layer = int(parts[2]) if "layers" in parts else -1
            last = math.prod(tensor.shape) - 1
            self.assertEqual(len(tensor.values), last + 1)
            if "norm" in name:
                self.assertEqual(set(tensor.values), {1.0}, name)
                continue
            place = PLACES[parts[-2]] if layer >= 0 else {"embed_tokens": 0, "lm_head": 3}[parts[-2]]
            narrow = parts[-2] in ("o_proj", "down_proj")
            for index in (0, 77, last):
                stream = generator.stream(layer, place)
                expected = generator.weight(1, stream, 0.02 / math.sqrt(8) if narrow else 0.02, index)
                self.assertEqual(tensor.values[index], expected, f"{name} {index}")

    def test_experts_are_those_of_a_mixtral(self):
        gswbench("weights", "--config", "tiny-llama", "-o", self.folder / "weights", "--set", "model.family=mixtral",
                 "--set", "model.experts=4", "--set", "model.top_k=2")

        weights = safetensors.read_folder(self.folder / "weights")
        self.assertEqual(len(weights), 3 + 4 * (6 + 1 + 4 * 3))
        router = weights["model.layers.3.block_sparse_moe.gate.weight"]
        self.assertEqual(router.shape, [4, 128])
        self.assertEqual(router.values[77], generator.weight(1, generator.stream(3, 15), 0.02, 77))
        for name, place in EXPERT_PLACES.items():
            for expert in range(4):
                tensor = weights[f"model.layers.3.block_sparse_moe.experts.{expert}.{name}.weight"]
                self.assertEqual(tensor.shape, [128, 352] if name == "w2" else [352, 128])
                deviation = 0.02 / math.sqrt(8) if name == "w2" else 0.02
                expected = generator.weight(1, generator.expert_stream(3, expert, place), deviation, 77)
                self.assertEqual(tensor.values[77], expected, f"{name} {expert}")

    def test_shapes_are_those_of_hugging_face(self):
        gswbench("weights", "--config", "tiny-llama", "-o", self.folder / "weights")

        weights = safetensors.read_folder(self.folder / "weights")
        block = "model.layers.3."
        self.assertEqual(weights["model.embed_tokens.weight"].shape, [512, 128])
        self.assertEqual(weights["lm_head.weight"].shape, [512, 128])
        self.assertEqual(weights[block + "self_attn.k_proj.weight"].shape, [64, 128])
        self.assertEqual(weights[block + "mlp.down_proj.weight"].shape, [128, 352])
        self.assertEqual(weights[block + "input_layernorm.weight"].shape, [128])
        config = json.loads((self.folder / "weights" / "config.json").read_text())
        self.assertEqual(config["architectures"], ["LlamaForCausalLM"])
        self.assertEqual(config["rms_norm_eps"], 1e-5)

    def test_tied_models_have_no_head(self):
        gswbench("weights", "--config", "tiny-geglu", "-o", self.folder / "weights")

        weights = safetensors.read_folder(self.folder / "weights")
        self.assertNotIn("lm_head.weight", weights)
        self.assertIn("model.embed_tokens.weight", weights)


if __name__ == "__main__":
    unittest.main()
