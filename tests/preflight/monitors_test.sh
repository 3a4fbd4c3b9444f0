#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the scripts in share/gswbench/monitors: the check of one host, Slurm's prolog, the rule for
# node-problem-detector, and the ReFrame test if ReFrame is installed. SuperBench is replaced by classes that record
# their arguments.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs GSWBENCH_RANKS=2
monitors=$GSWBENCH_SOURCE_DIR/scripts/monitors
export PATH=$folder:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
ln -s "$GSWBENCH" gswbench
flip=(tiny-llama --backend host "${small[@]}" --set fault.kind=flip --set fault.at=attention_forward --set fault.rank=1 --set fault.bit=14)

if command -v mpirun >/dev/null; then
    GSWBENCH_RANKS=4 run 1 "$monitors/check_node" "${flip[@]}"
    expect '^gswbench: outlier: device 1 of host '
    [ "$(wc -l <output)" = 1 ] || complain "more than one line"
    run 2 "$monitors/check_node" tiny-nothing
    expect '^gswbench: not known: exit code 3: .*tiny-nothing'
fi
# A fake gswbench exits with each code of a preflight. The monitors must tell these codes apart.
program() { printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod +x "$1"; }
rm gswbench
program mpirun 'shift 2; exec "$@"'
program gswbench 'echo "$@" >arguments
    printf "%s\n" "0 failed" "gswbench: hang: rank 1 (h4): last: numbers" "outlier: device 1 of host h4 (rank 13): gemm takes" "    10 % longer"
    exit $CODE'
for pair in 0:0 5:1 6:1 4:2 130:2 7:2; do
    CODE=${pair%:*} run "${pair#*:}" "$monitors/check_node" --gpu h200
done
expect '^gswbench: not known: exit code 7: hang: rank 1 \(h4\): last: numbers$'
expect '^preflight --seconds 20 --set run.hang_seconds=10 --gpu h200$' arguments
CODE=0 run 0 "$monitors/check_node"
expect '^gswbench: healthy: 2 devices agree$'
expect '^preflight .*llama3.1-8b$' arguments
program nvidia-smi 'exit 9'
GSWBENCH_RANKS='' run 2 "$monitors/check_node"
expect '^gswbench: not known: nvidia-smi names no GPU$'

program scontrol 'printf "%s\n" "$@" >told'
CODE=4 run 0 "$monitors/slurm_prolog"
[ ! -e told ] || complain "drained for an unknown state" told
SLURMD_NODENAME=h4 CODE=6 run 1 "$monitors/slurm_prolog"
expect '^nodename=h4$' told
expect '^reason=gswbench: outlier: device 1 of host h4 \(rank 13\): gemm takes 10 % longer$' told

run 0 python3 -c '
import json, os, sys
rule = json.load(open(sys.argv[1]))
assert rule["plugin"] == "custom" and set(rule["pluginConfig"]) <= {"invoke_interval", "timeout", "max_output_length", "concurrency"}
(one,) = rule["rules"]
assert one["condition"] in [condition["type"] for condition in rule["conditions"]], rule
assert os.path.basename(one["path"]) == "check_node" and one["type"] == "permanent", one' "$monitors/node_problem.json"

# SuperBench's executor builds the command and reads the figures of a result. Only the first process prints figures.
mkdir -p superbench/benchmarks/micro_benchmarks
cat >superbench/benchmarks/__init__.py <<'EOF'
class ReturnCode: MICROBENCHMARK_RESULT_PARSING_FAILURE = 33
class BenchmarkRegistry:
    @staticmethod
    def register_benchmark(name, kind): BenchmarkRegistry.kinds = {name: kind}
EOF
cat >superbench/benchmarks/micro_benchmarks/micro_base.py <<'EOF'
import argparse
class Result(dict):
    add_result = dict.__setitem__
    def add_raw_data(self, *data): pass
    def set_return_code(self, code): self["code"] = code
class MicroBenchmarkWithInvoke:
    def __init__(self, name, parameters): self.parameters, self._commands, self._result = parameters, [], Result()
    def add_parser_arguments(self): self._parser = argparse.ArgumentParser()
    def _preprocess(self):
        self.add_parser_arguments()
        self._args = self._parser.parse_args(self.parameters.split())
        self._args.bin_dir, self._args.log_raw_data = "/opt", False
        return True
    def _set_binary_path(self): return True
EOF
touch superbench/__init__.py superbench/benchmarks/micro_benchmarks/__init__.py
run 0 "$GSWBENCH" run tiny-llama --ranks 2 --comm local --backend host "${small[@]}" --steps 12 --json
mv output result.json
PYTHONPATH=$folder:$monitors run 0 python3 -c '
import json, superbench_executor
from superbench.benchmarks import BenchmarkRegistry
ours = BenchmarkRegistry.kinds["gswbench-step"]("gswbench-step", "--config tiny-llama")
assert ours._preprocess() and ours._commands == ["/opt/gswbench run tiny-llama --json"], ours._commands
text = open("result.json").read()
figures = json.loads(text)["result"]
assert ours._process_raw_result(0, "") and not ours._result
assert ours._process_raw_result(0, text)
assert ours._result == {"step_time": figures["step_time_s"]["median"], "throughput": figures["tokens_per_s"]}, ours._result
assert not ours._process_raw_result(0, json.dumps({"status": "invalid"})) and ours._result["code"] == 33'

if command -v reframe >/dev/null; then
    program gswbench 'mkdir accept && echo "{\"verdict\": \"$VERDICT\", \"reason\": \"11 % slower\", \"measured\": {\"step_s\": 2.5}}" >accept/accept.json'
    VERDICT=accept run 0 reframe --prefix reframe -c "$monitors/reframe_test.py" -S ranks=1 -r --performance-report
    expect 'step.*2.5'
    VERDICT=refuse run 1 reframe --prefix reframe -c "$monitors/reframe_test.py" -S ranks=1 -r
    expect 'refuse: 11 % slower'
fi
finish
