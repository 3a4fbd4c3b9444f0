# SPDX-License-Identifier: MIT
"""SuperBench micro-benchmark: a training step by gswbench. Copy it to superbench/benchmarks/micro_benchmarks, import it in
the __init__.py there, and add to the configuration, in a mode that starts one process for each GPU:

    gswbench-step: {modes: [{name: mpi, proc_num: 8}], parameters: {config: llama3.1-8b}}
"""
import json

from superbench.benchmarks import BenchmarkRegistry, ReturnCode
from superbench.benchmarks.micro_benchmarks.micro_base import MicroBenchmarkWithInvoke


class GswbenchStep(MicroBenchmarkWithInvoke):
    def __init__(self, name, parameters=""):
        super().__init__(name, parameters)
        self._bin_name = "gswbench"

    def add_parser_arguments(self):
        super().add_parser_arguments()
        self._parser.add_argument("--config", default="llama3.1-8b", help="NAME or FILE of gswbench run")
        self._parser.add_argument("--flags", default="", help="more flags of gswbench run")

    def _preprocess(self):
        if not super()._preprocess() or not self._set_binary_path():
            return False
        self._commands.append(f"{self._args.bin_dir}/gswbench run {self._args.config} --json {self._args.flags}".rstrip())
        return True

    def _process_raw_result(self, cmd_idx, raw_output):
        self._result.add_raw_data(f"raw_output_{cmd_idx}", raw_output, self._args.log_raw_data)
        if not raw_output.strip():    # rank 0 prints the result
            return True
        result = json.loads(raw_output[raw_output.index("{"):])
        if result["status"] not in ("valid", "degraded"):
            self._result.set_return_code(ReturnCode.MICROBENCHMARK_RESULT_PARSING_FAILURE)
            return False
        self._result.add_result("step_time", result["result"]["step_time_s"]["median"])
        self._result.add_result("throughput", result["result"]["tokens_per_s"])
        return True


BenchmarkRegistry.register_benchmark("gswbench-step", GswbenchStep)
