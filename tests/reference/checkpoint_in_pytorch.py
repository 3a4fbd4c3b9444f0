# SPDX-License-Identifier: MIT
"""Checkpoints between gswbench and PyTorch: saved weights have the same logits and loss in PyTorch, and weights
trained in PyTorch can be trained further in gswbench. reference_checkpoint_test.py compares with stored results."""
import array
import math
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
from program import Run, gswbench, relative

torch.set_num_threads(1)    # the matrices are tiny, and other tests run beside this one
STEPS, MORE = 2, 3
TIE = 2**-8    # between a router's logits, which are about one: as far as BF16 may round each
TWO_RANKS = "--ranks", 2, "--comm", "local"
LOGITS = pathlib.Path(os.environ["GSWBENCH_BINARY_DIR"]) / "tests" / "logits"
EXPERTS = {"model.experts": 4, "model.top_k": 2, "model.auxiliary_loss": 0.01, "train.capacity_scope": "sequence",
           "run.seed": 2}
MODELS = {
    "llama": {"model.rope_scaling": 8, "model.vocab": 500, "model.vocab_multiple": 64},
    "qwen3_moe": EXPERTS | {"model.family": "qwen3_moe", "model.qk_norm": "yes", "model.expert_ffn": 64},
    "qwen3": {"model.family": "qwen3", "model.qk_norm": "yes", "model.tied": "yes"},
    "mixtral": EXPERTS | {"model.family": "mixtral"},
}


def run(results, steps, overrides, *arguments):
    return Run(results, "tiny-llama", steps, *arguments, overrides=overrides)


class Checkpoints(unittest.TestCase):
    def begin(self, folder, model):
        """Returns the options and the tokens of all steps."""
        overrides = {"precision.compute": "fp32", "train.learning_rate": "1e-3", "train.sequence": 32,
                     "run.layers": 2} | MODELS[model]
        gswbench("data", "tiny-llama", "--steps", STEPS + MORE, "-o", folder / "tokens", overrides=overrides)
        tokens = train.to_torch(safetensors.read(folder / "tokens")["tokens"]).long()
        return overrides, tokens

    def save(self, folder, model, compute):
        """Saves and exports a run of two ranks. Returns the merged configuration of a run on one rank, and the
        tokens of the next step."""
        overrides, tokens = self.begin(folder, model)
        overrides["precision.compute"] = compute
        run(folder / "first", STEPS, overrides | {"checkpoint.save": folder / "saved", "parallel.fsdp": 2}, *TWO_RANKS)
        gswbench("checkpoint", "export", folder / "saved", folder / "plain", overrides={})
        return run(folder / "single", 1, overrides).merged, tokens[STEPS]

    def logits(self, model, compute):
        """Returns the logits of both programs for the same tokens and weights, and a mask [tokens] of tokens that
        rounding may route differently."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            merged, tokens = self.save(folder, model, compute)
            subprocess.run([LOGITS, merged, folder / "saved", folder / "logits"], check=True)
            here = torch.frombuffer(bytearray((folder / "logits").read_bytes()), dtype=torch.float32)
            weights = train.to_parameters(safetensors.read_folder(folder / "plain"), torch.float32)
            config = train.read_config(merged)
            angles = train.rope_angles(config.model, tokens.shape[1] - 1)
            balance = train.Balance()
            with torch.no_grad():
                there, _ = train.forward(weights, tokens[:, :-1], config, angles, balance)
            ties = torch.zeros(there.shape[:-1], dtype=torch.bool).flatten()
            if compute == "bf16" and balance.margins:
                ties = torch.stack(balance.margins).view(config.model.layers, -1).amin(0) < TIE
            return here.view_as(there), there, ties

    def test_logits_are_the_same_there(self):
        for model in MODELS:
            for compute, most in ("fp32", 1e-4), ("bf16", 2e-2):
                here, there, ties = self.logits(model, compute)
                tokens = (here - there).abs().amax(-1).flatten() / there.abs().max()
                print(f"{model}, {compute}: logits of {len(tokens)} tokens differ by at most {tokens[~ties].max():.1e} of "
                      f"the largest, with {int(ties.sum())} between two experts by at most {tokens.max():.1e}")
                self.assertLess(float(tokens[~ties].max()), most)
                self.assertLess(int(ties.sum()), len(tokens) / 10)

    def test_what_a_run_saved_has_the_same_loss_there(self):
        for model in MODELS:
            with tempfile.TemporaryDirectory() as temporary:
                folder = pathlib.Path(temporary)
                overrides, tokens = self.begin(folder, model)
                saved = overrides | {"checkpoint.save": folder / "saved", "parallel.fsdp": 2}
                run(folder / "first", STEPS, saved, *TWO_RANKS)
                gswbench("checkpoint", "export", folder / "saved", folder / "plain", overrides={})
                here = run(folder / "next", 1, overrides | {"checkpoint.load": folder / "saved"})
                config = train.read_config(here.merged)
                weights = train.to_parameters(safetensors.read_folder(folder / "plain"), torch.float32)
                ((loss, norm),) = train.train(config, weights, tokens[STEPS:STEPS + 1])
                print(f"{model}: loss {here.losses[0]:.7g}, in PyTorch {loss:.7g}")
                self.assertLess(relative(here.losses + here.norms, [loss, norm]), 1e-4)

    def test_what_was_trained_there_goes_on_here(self):
        for model in MODELS:
            with tempfile.TemporaryDirectory() as temporary:
                folder = pathlib.Path(temporary)
                overrides, tokens = self.begin(folder, model)
                gswbench("weights", "tiny-llama", "-o", folder / "weights", overrides=overrides)
                config = train.read_config(run(folder / "single", 1, overrides).merged)
                weights = train.to_parameters(safetensors.read_folder(folder / "weights"), torch.float32)
                list(train.train(config, weights, tokens[:STEPS]))
                safetensors.write(folder / "weights/model.safetensors", {
                    name: safetensors.Tensor(list(value.shape), array.array("f", value.detach().flatten().tolist()))
                    for name, value in weights.items()})
                # Both programs start with a new optimizer and with the first tokens.
                here = run(folder / "here", MORE, overrides | {"checkpoint.load": folder / "weights", "parallel.tp": 2},
                           *TWO_RANKS)
                difference = relative(here.losses, [loss for loss, _ in train.train(config, weights, tokens[:MORE])])
                print(f"{model}: losses differ by {difference:.1e}")
                self.assertLess(difference, 1e-4)
                self.assertTrue(all(math.isfinite(loss) for loss in here.losses))


if __name__ == "__main__":
    unittest.main()
