# SPDX-License-Identifier: MIT
"""Exports checkpoints that Hugging Face transformers can load, and compares the loss with gswbench. Skipped without
transformers."""
import json
import pathlib
import sys
import tempfile
import unittest

from program import gswbench

sys.path.pop(0)    # safetensors.py in this folder would hide the package that transformers imports
try:
    import torch
    import transformers
    from safetensors.torch import load_file
except ImportError:
    print("skipped: transformers is not installed (pip install transformers torch)")
    sys.exit(77)

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
STEPS = 2
EXPERTS = {"model.experts": 8, "model.top_k": 2, "model.expert_ffn": 48}
# Latent norms have their own epsilon. The router bias changes enough to change chosen experts.
DEEPSEEK = EXPERTS | {"model.family": "deepseek_v3", "model.pattern": "dense, experts", "model.kv_heads": 4,
                      "model.head_dim": 24, "model.rope_dim": 12, "model.value_dim": 20, "model.kv_rank": 36,
                      "model.shared_ffn": 96, "model.router_score": "sigmoid", "model.router_scale": 2.5,
                      "model.router_bias_rate": 0.05, "model.norm_epsilon": 1e-3}
MODELS = {
    "LlamaForCausalLM": {"model.rope_scaling": 8},
    "MixtralForCausalLM": EXPERTS | {"model.family": "mixtral"},
    "Qwen3ForCausalLM": {"model.family": "qwen3", "model.qk_norm": "yes", "model.tied": "yes"},
    "Qwen3MoeForCausalLM": EXPERTS | {"model.family": "qwen3_moe", "model.qk_norm": "yes"},
    "DeepseekV3ForCausalLM": DEEPSEEK | {"model.q_rank": 40, "model.router_groups": 4, "model.router_top_groups": 2},
    "DeepseekV3ForCausalLM, as Moonlight and Kimi K2": DEEPSEEK | {"model.q_rank": 0},
}


class Transformers(unittest.TestCase):
    def losses(self, folder, overrides):
        """Returns the loss of the step after a saved checkpoint in gswbench and in transformers, and the loaded
        model."""
        overrides = {"precision.compute": "fp32", "train.sequence": 32, "train.learning_rate": "1e-2", "run.layers": 2,
                     "parallel.dp": 1} | overrides

        def run(steps, more):
            output = gswbench("run", "tiny-llama", "--steps", steps, "--warmup", 0, "--backend", "host", "--json", "--out",
                              folder / "results", overrides=overrides | more)
            return json.loads(output)["steps"][0]["loss"]

        run(STEPS, {"checkpoint.save": folder / "saved"})
        gswbench("checkpoint", "export", folder / "saved", folder / "plain", overrides={})
        gswbench("data", "tiny-llama", "--steps", STEPS + 1, "-o", folder / "tokens", overrides=overrides)
        here = run(1, {"checkpoint.load": folder / "saved"})
        tokens = load_file(folder / "tokens")["tokens"][STEPS].long()
        model, report = transformers.AutoModelForCausalLM.from_pretrained(folder / "plain", dtype=torch.float32,
                                                                          output_loading_info=True)
        self.assertFalse(report["missing_keys"] or report["unexpected_keys"] or report["mismatched_keys"], report)
        with torch.no_grad():
            logits = model(tokens[:, :-1]).logits
        there = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()
        return here, there, model

    def test_losses_are_the_same(self):
        for name, overrides in MODELS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as temporary:
                here, there, model = self.losses(pathlib.Path(temporary), overrides)
                print(f"{name}: loss {here:.7f}, in transformers {there:.7f}")
                self.assertEqual(type(model).__name__, name.split(",")[0])
                self.assertLess(abs(here / there - 1), 1e-5)
                biases = [value for key, value in model.named_buffers() if "e_score_correction_bias" in key]
                self.assertEqual(len(biases) > 0 and any(bool(bias.any()) for bias in biases), "Deepseek" in name)

    def test_own_weights_of_deepseek_are_refused(self):
        """DeepSeek's weights interleave rotary pairs, and their config.json has no rope_interleave."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            overrides = DEEPSEEK | {"run.layers": 2}
            gswbench("weights", "tiny-llama", "-o", folder / "plain", overrides=overrides)
            config = json.loads((folder / "plain/config.json").read_text())
            del config["rope_interleave"]
            (folder / "plain/config.json").write_text(json.dumps(config))
            with self.assertRaisesRegex(AssertionError, "rope_interleave is true, but the job's model has false"):
                gswbench("run", "tiny-llama", "--steps", 1, "--warmup", 0, "--out", folder / "results",
                         overrides=overrides | {"checkpoint.load": folder / "plain"})


if __name__ == "__main__":
    unittest.main()
