# SPDX-License-Identifier: MIT
"""Tests gswbench report --trace. Writes traces from lists of kernels, so that the sums are known, in the formats of the
PyTorch profiler and of Chakra. The same sums for the trace of a prediction must agree with its waterfall."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
# Name, begin and end in microseconds, stream. The all-to-all is exposed for 20, the all-reduce for 60; 40 are idle.
KERNELS = (("sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x128x64_cublas", 0, 100, 7),
           ("void dpsk::ep::internode::dispatch<false, 8>(int4*)", 50, 140, 27),
           ("void cutlass::device_kernel<flash::FlashAttnBwd<2> >", 120, 180, 7),
           ("void cuda::per_token_cast_to_fp8_with_channels<__nv_bfloat16, 128>", 180, 200, 7),
           ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 190, 260, 31),
           ("void cutlass::device_kernel<GemmKernel>", 300, 310, 7), ("rotary_kernel", 300, 310, 8))
SUMS = {"gemm": (2, 110, 105), "attention": (1, 60, 60), "cast": (1, 20, 20), "memory": (1, 10, 5), "all-to-all": (1, 90, 20),
        "collective": (1, 70, 60), "optimizer": (0, 0, 0), "other": (0, 0, 0)}
NAMES = {
    "nvjet_sm100_qqtst_128x256_64x6_2x1_2cta_h_bz_TNT": "gemm", "Cijk_Alik_Bljk_SB_MT64x16x32_MI16x16x1": "gemm",
    "void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_ptp128c::GemmKernel>": "gemm",
    "void dpsk::grouped_gemm::cuda::utils::transpose<512, 128, 4, 4>(unsigned char const*)": "cast",
    "void cuda::per_channel_cast_and_transpose<256, 128, true>(void const*)": "cast",
    "void transformer_engine::quantize_mxfp8_kernel<true>": "cast",
    "cudnn_generated_fort_native_sdpa_sm100_flash_fprop_f16": "attention",
    "void pytorch_flash::flash_bwd_kernel<Flash_bwd_kernel_traits>": "attention",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": "collective",
    "void deep_ep::internode::combine<__nv_bfloat16>": "all-to-all", "moe_all_to_all_kernel": "all-to-all",
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float> >": "optimizer",
    "void layer_norm::ln_fwd_kernel<layer_norm::Kernel_traits<__nv_bfloat16> >": "memory",
    "void cuda::swiglu_forward_with_weight_and_per_token_cast_to_fp8_impl<__nv_bfloat16>": "memory",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >": "memory",
    "Memcpy DtoD (Device -> Device)": "memory", "at::cuda::spin_kernel(long)": "other"}


def profile(kernels, **more):
    host = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python3"}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 900, "pid": 1, "tid": 1, "args": {"nodes": [1]}},
            {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 3, "ts": 1.5}]
    events = [{"ph": "X", "cat": "gpu_memcpy" if name.startswith("Memcpy") else "kernel", "name": name, "pid": 0, "tid": stream,
               "ts": 1740461679471346 + begin, "dur": end - begin, "args": {"device": 0, "stream": stream, **more}}
              for name, begin, end, stream in kernels]
    return {"schemaVersion": 1, "traceName": "\"traceEvents\" of x", "traceEvents": host + events}


def graph(kernels):
    """Returns a trace in the format of Chakra's feeder, which has durations but no start times."""
    nodes = [{"Id": i, "Name": name, "NodeType": 4, "runtime": end - begin, "data_deps": [], "is_cpu_op": False}
             for i, (name, begin, end, _) in enumerate(kernels)]
    return {"workload_graph": [{"Id": 99, "Name": "aten::mm", "runtime": 500, "is_cpu_op": True}] + nodes}


def nodes(kernels):
    """Returns a trace in the format of chakra_jsonizer: a sequence of objects, with 64-bit integers as strings."""
    host = {"id": "98", "name": "aten::mm", "durationMicros": "500", "attr": [{"name": "is_cpu_op", "boolVal": True}]}
    found = [{"version": "0.0.4"}, host] + [
        {"id": str(i), "name": name, "type": "COMP_NODE", "startTimeMicros": str(1000 + begin), "durationMicros": str(end - begin),
         "attr": [{"name": "scope", "int64Val": "7"}, {"name": "is_cpu_op", "boolVal": False}]}
        for i, (name, begin, end, _) in enumerate(kernels)]
    return "".join(json.dumps(node, indent=2) for node in found)


class Traces(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def report(self, content, *words):
        if content is not None:
            content = json.dumps(content) if isinstance(content, (dict, list)) else content
            (self.folder / "trace").write_bytes(content if isinstance(content, bytes) else content.encode())
        return subprocess.run([PROGRAM, "report", "--trace", "trace", *words], cwd=self.folder, capture_output=True, text=True)

    def read(self, content, *words):
        done = self.report(content, "--json", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def check(self, found, has_line, streams=0):
        self.assertEqual((found["kernels"], found["streams"]), (7, streams))
        for part in found["parts"]:
            count, busy, line = SUMS[part["part"]]
            self.assertEqual(part["kernels"], count, part)
            self.assertAlmostEqual(part["kernel_s"], busy / 1e6, 9)
            if has_line:
                self.assertAlmostEqual(part["line_s"], line / 1e6, 9, part["part"])
            else:
                self.assertIsNone(part["line_s"])
        self.assertEqual([found[key] and round(1e6 * found[key], 3) for key in ("idle_s", "span_s")],
                         [40, 310] if has_line else [None, None])

    def test_every_form_gives_the_sums_that_it_was_made_of(self):
        self.check(self.read(profile(KERNELS)), True, 4)
        self.check(self.read(profile(KERNELS)["traceEvents"]), True, 4)
        self.check(self.read(profile(KERNELS[::-1])), True, 4)
        self.check(self.read(graph(KERNELS)), False)
        self.check(self.read(nodes(KERNELS)), True)

    def test_the_name_of_a_kernel_decides_its_part(self):
        for name, part in NAMES.items():
            found = self.read(profile([(name, 0, 5, 7)]))
            self.assertEqual([one["part"] for one in found["parts"] if one["kernels"] == 1], [part], name)
            self.assertEqual(found["longest_other"], name if part == "other" else "")

    def test_text_has_the_same_numbers(self):
        text = self.report(profile(KERNELS)).stdout
        for line in (r"gemm +0\.110 +0\.105", r"all-to-all +0\.090 +0\.020", r"idle +- +0\.040", r"together +- +0\.310"):
            self.assertRegex(text, rf"(?m)^{line}$")
        self.assertNotIn("optimizer", text)
        self.assertIn("durations only", self.report(graph(KERNELS)).stdout)

    def test_a_prediction_has_the_parts_of_its_waterfall(self):
        words = ("--config", "megatron-bridge-moonlight-16b", "--ranks")
        rows = json.loads(subprocess.run([PROGRAM, "configs", "--json"], capture_output=True).stdout)["configs"]
        ranks = next(row["ranks"] for one in rows if one["name"] == words[1] for row in one["rows"])
        found = self.read(profile(KERNELS), *words, str(ranks))
        predicted = json.loads(subprocess.run([PROGRAM, "predict", *words, str(ranks), "--json", "--no-range"],
                                              capture_output=True).stdout)["rows"][0]["predicted"]
        parts, line = predicted["parts_s"], {part["part"]: part["predicted_line_s"] for part in found["parts"]}
        self.assertAlmostEqual(sum(line.values()) + found["predicted_idle_s"], found["predicted_span_s"], 6)
        computed = sum(line[part] for part in ("gemm", "attention", "memory", "cast", "optimizer", "other"))
        waterfall = sum(parts[part] for part in ("ideal", "gemm", "attention", "memory", "cast", "optimizer", "recompute",
                                                 "contention"))
        self.assertAlmostEqual(computed / waterfall, 1, 2)
        self.assertLessEqual(found["predicted_span_s"], predicted["step_s"] * 1.000001)
        self.assertGreater(line["all-to-all"], 0)
        again = self.read(None, *words, str(ranks), "--set", "train.recompute=full")
        gemm = [next(part for part in one["parts"] if part["part"] == "gemm")["predicted_kernel_s"] for one in (found, again)]
        self.assertTrue(1.2 < gemm[1] / gemm[0] < 1.34, "a repeated forward pass is a third of the GEMMs of layers")

    def test_bad_files_have_one_error(self):
        whole = json.dumps(profile(KERNELS))
        for content, error in (
                (b"", "is not JSON"), (b"\x0a\x05\x0a\x030.4", "is not JSON; write a Chakra trace in protobuf as JSON"),
                (b"\x1f\x8b\x08\x00", "is compressed"), (whole[:-40], "event 10 is not JSON"),
                (whole[:whole.index("rotary")], "event 10 is not JSON"), ('{"a": 1}', "has no kernels"),
                (json.dumps(graph(())), "has only ops of the host"),
                (json.dumps(profile([("x" * 5000000, 0, 1, 7)])), "event 4 is not JSON or longer than 4 MiB"),
                (whole.replace('"dur": 60', '"dur": -1', 1), "event 6, a kernel, has no name or no duration"),
                (whole.replace('"device": 0', '"device": 1', 1), "kernels of several devices"), ("[[3]]", "event 1 is not an object")):
            done = self.report(content)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1), done.stderr)
            self.assertIn(f"gswbench: trace: {error}", done.stderr)
        self.assertIn("--mlperf and --trace exclude each other", self.report(whole, "--mlperf").stderr)
        self.assertIn("give --ranks", self.report(whole, "--config", "llama3.1-8b").stderr)
        self.assertIn("give --config", self.report(whole, "--ranks", "8").stderr)


if __name__ == "__main__":
    unittest.main()
