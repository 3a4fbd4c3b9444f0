# SPDX-License-Identifier: MIT
"""Times the step of a Llama on a CPU in the fastest form for PyTorch 1.13: one matrix for all weights that read the same
input, causal attention in blocks of queries that skip masked keys, RMS norm with its own backward pass, and an optimizer over
lists of tensors. With BF16, the master weights are fp32, and the BF16 weights are copied from them after each update."""
import argparse
import json
import math
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "reference"))
import safetensors
import train

QUERY_BLOCK = 256    # the fastest of 64, 128, 256 and 512 for a sequence of 512


class RmsNorm(torch.autograd.Function):
    """RMS norm with three forward passes over the data instead of five. It saves one scalar per row for the backward pass."""

    @staticmethod
    def forward(context, x, weight, epsilon):
        inverse = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        inverse = inverse.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_().to(x.dtype)
        normal = x * inverse
        context.save_for_backward(normal, inverse, weight)
        return normal * weight

    @staticmethod
    def backward(context, gradient):
        normal, inverse, weight = context.saved_tensors
        product = gradient * normal
        weighted = gradient * weight
        shared = (product @ weight).unsqueeze(-1).div_(normal.shape[-1])
        return weighted.addcmul_(normal, shared, value=-1).mul_(inverse), product.sum(0), None


def rotate(x, cos, sin):
    """x: [batch, heads, sequence, head_dim]."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Model:
    def __init__(self, config, weights, dtype):
        self.shape, self.dtype = config.model, dtype
        angles = train.rope_angles(config.model, config.train.sequence)
        self.cos, self.sin = angles.cos().to(dtype), angles.sin().to(dtype)
        self.mask = torch.full((QUERY_BLOCK, QUERY_BLOCK), -math.inf, dtype=dtype).triu(1)
        self.masters = [train.to_torch(weights["model.embed_tokens.weight"])]
        for layer in range(self.shape.layers):
            def load(*names):
                return torch.cat([train.to_torch(weights[f"model.layers.{layer}.{name}.weight"]) for name in names])
            self.masters += [load("input_layernorm"), load(*(f"self_attn.{name}_proj" for name in "qkv")),
                             load("self_attn.o_proj"), load("post_attention_layernorm"),
                             load("mlp.gate_proj", "mlp.up_proj"), load("mlp.down_proj")]
        self.masters += [train.to_torch(weights["model.norm.weight"]), train.to_torch(weights["lm_head.weight"])]
        self.weights = self.masters if dtype == torch.float32 else [master.to(dtype) for master in self.masters]
        for weight in self.weights:
            weight.requires_grad_()

    def attend(self, packed, batch):
        shape, sequence = self.shape, packed.shape[0] // batch
        heads = packed.view(batch, sequence, -1, shape.head_dim).transpose(1, 2)
        query, key, value = heads.split((shape.heads, shape.kv_heads, shape.kv_heads), dim=1)
        query, key = rotate(query, self.cos, self.sin), rotate(key, self.cos, self.sin)
        group = shape.heads // shape.kv_heads
        if group > 1:
            key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
        query, key, value = (x.reshape(-1, sequence, shape.head_dim) for x in (query, key, value))
        out = []
        for begin in range(0, sequence, QUERY_BLOCK):
            end = min(begin + QUERY_BLOCK, sequence)
            mask = F.pad(self.mask[:end - begin, :end - begin], (begin, 0))
            scores = torch.baddbmm(mask, query[:, begin:end], key[:, :end].transpose(1, 2),
                                   alpha=1 / math.sqrt(shape.head_dim))
            out.append(torch.bmm(scores.softmax(-1), value[:, :end]))
        out = torch.cat(out, dim=1).view(batch, shape.heads, sequence, shape.head_dim)
        return out.transpose(1, 2).reshape(batch * sequence, -1)

    def loss(self, tokens):
        """tokens: [batch, sequence + 1]. Activations are [tokens, columns]."""
        embedding, *blocks, final_norm, head = self.weights
        epsilon = self.shape.norm_epsilon
        x = F.embedding(tokens[:, :-1].flatten(), embedding)
        for i in range(0, len(blocks), 6):
            norm1, qkv, projection, norm2, gate_up, down = blocks[i:i + 6]
            packed = F.linear(RmsNorm.apply(x, norm1, epsilon), qkv)
            x = x + F.linear(self.attend(packed, len(tokens)), projection)
            gate, up = F.linear(RmsNorm.apply(x, norm2, epsilon), gate_up).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, down)
        logits = F.linear(RmsNorm.apply(x, final_norm, epsilon), head)
        return F.cross_entropy(logits.float(), tokens[:, 1:].flatten())


class AdamW:
    def __init__(self, settings, model):
        self.settings, self.model, self.step = settings, model, 0
        self.first = [torch.zeros_like(master) for master in model.masters]
        self.second = [torch.zeros_like(master) for master in model.masters]

    @torch.no_grad()
    def update(self):
        """Returns the gradient norm."""
        settings, model = self.settings, self.model
        self.step += 1
        gradients = [weight.grad.float() for weight in model.weights]
        norm = torch.stack(torch._foreach_norm(gradients)).norm()
        if settings.clip > 0:
            torch._foreach_mul_(gradients, min(1.0, settings.clip / (float(norm) + 1e-6)))
        torch._foreach_mul_(model.masters, 1 - settings.learning_rate * settings.weight_decay)
        torch._foreach_mul_(self.first, settings.beta1)
        torch._foreach_add_(self.first, gradients, alpha=1 - settings.beta1)
        torch._foreach_mul_(self.second, settings.beta2)
        torch._foreach_addcmul_(self.second, gradients, gradients, 1 - settings.beta2)
        roots = torch._foreach_sqrt(self.second)
        torch._foreach_div_(roots, math.sqrt(1 - settings.beta2 ** self.step))
        torch._foreach_add_(roots, settings.epsilon)
        torch._foreach_addcdiv_(model.masters, self.first, roots,
                                -settings.learning_rate / (1 - settings.beta1 ** self.step))
        for weight, master in zip(model.weights, model.masters):
            weight.grad = None
            if weight is not master:
                weight.copy_(master)
        return float(norm)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="config.merged.ini of a run")
    parser.add_argument("--weights", required=True, help="folder that gswbench weights wrote")
    parser.add_argument("--tokens", required=True, help="file that gswbench data wrote")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)
    config = train.read_config(arguments.config)
    model = Model(config, safetensors.read_folder(arguments.weights), getattr(torch, arguments.dtype))
    optimizer = AdamW(config.train, model)
    steps = []
    for batch in train.to_torch(safetensors.read(arguments.tokens)["tokens"]).long():
        start = time.perf_counter()
        loss = model.loss(batch)
        loss.backward()
        norm = optimizer.update()
        steps.append({"seconds": time.perf_counter() - start, "loss": loss.item(), "gradient_norm": norm})
    print(json.dumps(steps))


if __name__ == "__main__":
    main()
