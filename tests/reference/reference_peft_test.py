# SPDX-License-Identifier: MIT
"""Compares the formulas of adapters in src/shard/adapter.c with the LoRA layer of peft."""
import math
import pathlib
import sys
import unittest

# safetensors.py in this folder would hide the package that peft imports.
sys.path = [folder for folder in sys.path if pathlib.Path(folder).resolve() != pathlib.Path(__file__).resolve().parent]
try:
    import peft
    import torch
except ModuleNotFoundError:
    print("skipped: peft is not installed")
    sys.exit(77)


class Peft(unittest.TestCase):
    def test_a_layer(self):
        """Expects the output and the gradients of peft's LoRA layer, and the standard deviation of its initial A."""
        torch.manual_seed(1)
        base = torch.nn.Linear(96, 40, bias=False, dtype=torch.float64)
        settings = peft.LoraConfig(r=3, lora_alpha=8, lora_dropout=0, target_modules=["0"])
        model = peft.get_peft_model(torch.nn.Sequential(base), settings).double()
        by_name = {name.split(".")[-3]: weight for name, weight in model.named_parameters() if "lora_" in name}
        a, b = by_name["lora_A"], by_name["lora_B"]
        self.assertAlmostEqual(a.std().item() * math.sqrt(3 * 96), 1, delta=0.1)
        self.assertEqual(b.abs().max().item(), 0)
        with torch.no_grad():
            b.normal_()
        x, dy = torch.randn(7, 96, dtype=torch.float64), torch.randn(7, 40, dtype=torch.float64)
        y = model(x)
        y.backward(dy)
        # The formulas of src/shard/adapter.c.
        scale = 8 / 3
        t, dt = scale * x @ a.detach().T, scale * dy @ b.detach()
        self.assertTrue(torch.allclose(y, x @ base.weight.T + t @ b.T))
        self.assertTrue(torch.allclose(b.grad, dy.T @ t))
        self.assertTrue(torch.allclose(a.grad, dt.T @ x))
        self.assertIsNone(base.weight.grad)


if __name__ == "__main__":
    unittest.main()
