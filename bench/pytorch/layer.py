#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the blocks of bench_device_layer in compiled PyTorch on the same GPU, forward and backward.

    bench/pytorch/layer.py --list | [--rehearse] RECORDS [CASE]

Appends its records to the file RECORDS, like bench_device_layer. If RECORDS has a time of bench_device_layer for the same
block, also prints the ratio. Both programs warm up for 10 seconds, and take the median of 25 runs, timed by device events.
PyTorch runs in its fastest form: cuDNN attention and FlashAttention as separate cases, one matrix for all weights that read
the same input, and new BF16 weight gradients instead of accumulation. FP8 uses current per-tensor scaling: E4M3 forward, E5M2
gradients, and attention in BF16. --rehearse runs a small block on the CPU, to test the script. Exit code 77: no PyTorch, or
no GPU for it."""
import argparse
import dataclasses
import json
import math
import pathlib
import statistics
import sys
import time

SKIPPED = 77
RUNS, WARM_UP_SECONDS = 25, 10.0


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    sequence: int
    batch: int
    head_dim: int = 128

    def forward_flops(self):
        """Returns the FLOPs of the GEMMs, and of attention without masked pairs."""
        tokens = self.batch * self.sequence
        weights = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads) + 3 * self.hidden * self.ffn
        pairs = self.sequence * (self.sequence + 1) // 2
        return 2 * tokens * weights + 4 * self.batch * self.heads * self.head_dim * pairs


SHAPES = {
    "llama3-8b": Shape("Llama 3 8B block, 1 x 8192 tokens", 4096, 32, 8, 14336, 8192, 1),
    "llama2-70b": Shape("Llama 2 70B block, 2 x 4096 tokens", 8192, 64, 8, 28672, 4096, 2),
}
REHEARSAL = Shape("a small block", 64, 4, 2, 160, 32, 2, 16)
RECIPES = {"bf16": "BF16", "fp8-current": "FP8 by current values"}    # as bench_device_layer names them
CASES = [f"{shape}/{recipe}/{attention}" for recipe in RECIPES for shape in SHAPES for attention in ("cudnn", "flash")]


def find_torch():
    try:
        import torch
    except ImportError:
        skip("no PyTorch")
    return torch


def make_linear(torch, is_fp8):
    """Returns a function that multiplies input rows by a weight [output, input]."""
    functional = torch.nn.functional
    if not is_fp8:
        return functional.linear

    def quantize(x, dtype):
        scale = x.abs().amax().float().clamp(min=1e-12) / torch.finfo(dtype).max
        return (x.float() / scale).to(dtype), scale

    class Fp8Linear(torch.autograd.Function):
        @staticmethod
        def forward(context, x, weight):
            narrow, scale = quantize(x, torch.float8_e4m3fn)
            narrow_weight, weight_scale = quantize(weight, torch.float8_e4m3fn)
            context.save_for_backward(narrow, scale, narrow_weight, weight_scale)
            return torch._scaled_mm(narrow, narrow_weight.t(), scale, weight_scale, out_dtype=x.dtype,
                                    use_fast_accum=True)

        @staticmethod
        def backward(context, gradient):
            narrow, scale, narrow_weight, weight_scale = context.saved_tensors
            slope, slope_scale = quantize(gradient, torch.float8_e5m2)
            # The second operand must be column-major.
            by_input = torch._scaled_mm(slope, narrow_weight.t().contiguous().t(), slope_scale, weight_scale,
                                        out_dtype=gradient.dtype, use_fast_accum=False)
            by_weight = torch._scaled_mm(slope.t().contiguous(), narrow.t().contiguous().t(), slope_scale, scale,
                                         out_dtype=gradient.dtype, use_fast_accum=False)
            return by_input, by_weight

    return Fp8Linear.apply


class Block:
    def __init__(self, torch, shape, is_fp8, device):
        self.torch, self.shape, self.linear = torch, shape, make_linear(torch, is_fp8)
        generator = torch.Generator(device).manual_seed(1)

        def normal(*sizes, deviation=1.0):
            values = torch.randn(*sizes, generator=generator, device=device) * deviation
            return values.to(torch.bfloat16).requires_grad_()

        width, kv_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        ones = torch.ones(shape.hidden, device=device, dtype=torch.bfloat16)
        self.norms = [ones.clone().requires_grad_(), ones.clone().requires_grad_()]
        self.qkv = normal(width + 2 * kv_width, shape.hidden, deviation=0.02)
        self.projection = normal(shape.hidden, width, deviation=0.02)
        self.gate_up = normal(2 * shape.ffn, shape.hidden, deviation=0.02)
        self.down = normal(shape.hidden, shape.ffn, deviation=0.02)
        self.weights = [*self.norms, self.qkv, self.projection, self.gate_up, self.down]
        self.input = normal(shape.batch * shape.sequence, shape.hidden)
        self.slope = normal(shape.batch * shape.sequence, shape.hidden).detach()
        turns = torch.arange(0, shape.head_dim, 2, device=device).float() / shape.head_dim
        angles = torch.outer(torch.arange(shape.sequence, device=device).float(), 5e5 ** -turns)
        self.cos, self.sin = angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)

    def rotate(self, x):
        a, b = x.chunk(2, dim=-1)
        return self.torch.cat((a * self.cos - b * self.sin, b * self.cos + a * self.sin), dim=-1)

    def attend(self, packed):
        shape, functional = self.shape, self.torch.nn.functional
        heads = packed.view(shape.batch, shape.sequence, -1, shape.head_dim).transpose(1, 2)
        query, key, value = heads.split((shape.heads, shape.kv_heads, shape.kv_heads), dim=1)
        out = functional.scaled_dot_product_attention(self.rotate(query), self.rotate(key), value, is_causal=True,
                                                      enable_gqa=True)
        return out.transpose(1, 2).reshape(shape.batch * shape.sequence, -1)

    def forward(self, x):
        functional, width = self.torch.nn.functional, (self.shape.hidden,)
        attention = self.attend(self.linear(functional.rms_norm(x, width, self.norms[0], 1e-5), self.qkv))
        x = x + self.linear(attention, self.projection)
        gate, up = self.linear(functional.rms_norm(x, width, self.norms[1], 1e-5), self.gate_up).chunk(2, dim=-1)
        return x + self.linear(functional.silu(gate) * up, self.down)

    def forget(self):
        self.input.grad = None
        for weight in self.weights:
            weight.grad = None


class GpuClock:
    def __init__(self, torch):
        self.torch = torch

    def mark(self):
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin, end):
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3


class HostClock:
    def mark(self):
        return time.perf_counter()

    def seconds(self, begin, end):
        return end - begin


def run_once(block, forward, clock):
    """Runs forward and backward pass. Returns time marks before, between and after them."""
    block.forget()
    begin = clock.mark()
    out = forward(block.input)
    middle = clock.mark()
    out.backward(block.slope)
    return begin, middle, clock.mark()


def run_for(block, forward, clock, seconds):
    """Repeats the block. Enqueues each run before the previous one ends, so the device does not wait for Python."""
    start, last = time.perf_counter(), run_once(block, forward, clock)
    while time.perf_counter() - start < seconds:
        begin, _, end = last
        last = run_once(block, forward, clock)
        clock.seconds(begin, end)


def check_numbers(block, out):
    for tensor in (out, block.input.grad, *(weight.grad for weight in block.weights)):
        norm = float(tensor.detach().float().norm())
        if not math.isfinite(norm) or norm == 0:
            sys.exit("PyTorch's block has an output or a gradient that is zero or not finite")


def own_seconds(records, bench):
    """Returns the seconds of the block in the last record of bench_device_layer, or None."""
    found = None
    for line in records.read_text().splitlines() if records.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:    # the last line of a program that was killed
            continue
        if (record.get("bench"), record.get("name")) == (bench, "the block"):
            found = record["seconds"]
    return found


def measure(torch, case, records, is_rehearsal):
    shape_name, recipe, attention = case.split("/")
    shape = REHEARSAL if is_rehearsal else SHAPES[shape_name]
    device = "cpu" if is_rehearsal else "cuda"
    backends = torch.nn.attention.SDPBackend
    backend = {"cudnn": backends.CUDNN_ATTENTION, "flash": backends.FLASH_ATTENTION}[attention]
    block = Block(torch, shape, recipe != "bf16", device)
    clock = HostClock() if is_rehearsal else GpuClock(torch)
    forward = block.forward if is_rehearsal else torch.compile(block.forward)
    with torch.nn.attention.sdpa_kernel(backends.MATH if is_rehearsal else backend):
        start = time.perf_counter()
        run_once(block, forward, clock)    # compiles
        compile_seconds = time.perf_counter() - start
        check_numbers(block, forward(block.input))
        run_for(block, forward, clock, 0.1 if is_rehearsal else WARM_UP_SECONDS)
        marks = [run_once(block, forward, clock) for _ in range(RUNS)]
    forwards = [clock.seconds(begin, middle) for begin, middle, _ in marks]
    backwards = [clock.seconds(middle, end) for _, middle, end in marks]

    bench, flops = f"{shape.name}, {RECIPES[recipe]}", 3 * shape.forward_flops()
    what = (f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}, "
            f"cuDNN {torch.backends.cudnn.version()}, {attention} attention" if not is_rehearsal else
            f"a processor, PyTorch {torch.__version__}")
    print(f"{bench}\n{what}, compiled in {compile_seconds:.0f} s")
    medians = {"forward": statistics.median(forwards), "backward": statistics.median(backwards)}
    medians["whole"] = medians["forward"] + medians["backward"]
    with records.open("a") as file:
        for part, seconds in medians.items():
            name = "the block" if part == "whole" else f"the block, {part}"
            print(f"{f'PyTorch: {name}':44} {1e3 * seconds:9.3f} ms" +
                  (f"  {flops / seconds / 1e12:6.1f} TFLOP/s" if part == "whole" else ""))
            record = {"bench": bench, "name": f"PyTorch, {attention}: {name}", "seconds": seconds, "device": what}
            file.write(json.dumps(record | ({"flops": flops} if part == "whole" else {})) + "\n")
    own = own_seconds(records, bench)
    if own is not None:
        print(f"gswbench's block is {medians['whole'] / own:.3f} times as fast")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--rehearse", action="store_true", help="run a small block on the CPU")
    parser.add_argument("records", nargs="?", type=pathlib.Path)
    parser.add_argument("case", nargs="?", choices=CASES, metavar="CASE")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(CASES))
        return
    if arguments.records is None:
        parser.error("RECORDS is missing: a file that records are appended to")
    torch = find_torch()
    if not arguments.rehearse and not torch.cuda.is_available():
        skip("PyTorch sees no GPU")
    for case in [arguments.case] if arguments.case else CASES:
        measure(torch, case, arguments.records, arguments.rehearse)


if __name__ == "__main__":
    main()
