# SPDX-License-Identifier: MIT
"""Tests transfers/RANK.csv. It must list every collective, send and receive of the rank's plan with its bytes, the
members of its group, its times in the timeline, and the bus bandwidth as nccl-tests defines it. The sums by axis in the
report must equal result.json."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
SMALL = ("--set model.hidden=32 --set model.heads=2 --set model.kv_heads=2 --set model.head_dim=16 --set model.ffn=32"
         " --set model.vocab=64 --set train.sequence=16 --set train.global_batch=8 --set train.micro_batch=1")
JOBS = {"local": (4, f"--config tiny-llama --ranks 4 --set parallel.tp=2 --set parallel.pp=2 {SMALL}"),
        "mpi": (2, f"--config tiny-llama --ranks 2 --set parallel.dp=1 --set parallel.fsdp=2 --layers 1 {SMALL}")}
BYTES = {"bf16": 2, "f32": 4, "fp32": 4, "i32": 4, "i64": 8}


def bus_bytes(kind, ranks):
    """Bytes on the bus per byte of the message (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md)."""
    if kind.startswith("all_reduce"):
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if kind in ("all_gather", "reduce_scatter", "all_to_all") else 1


class Files(unittest.TestCase):
    def run_job(self, communicator):
        ranks, job = JOBS[communicator]
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        launch = ["mpirun", "-np", str(ranks)] if communicator == "mpi" else []
        words = f"run --verbose {job} --comm {communicator} --backend host --steps 4 --warmup 1 --out results --trace all".split()
        done = subprocess.run([*launch, PROGRAM, *words], cwd=folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (result,) = folder.glob("results/*/*/*/*/result.json")
        self.assertEqual({path.name for path in (result.parent / "transfers").iterdir()},
                         {f"{rank}.csv" for rank in range(ranks)})
        plans = [json.loads(subprocess.run([PROGRAM, "plan", *job.split(), "--rank", str(rank), "--json"], check=True,
                                           capture_output=True, text=True).stdout) for rank in range(ranks)]
        lines = [list(csv.DictReader(io.StringIO((result.parent / f"transfers/{rank}.csv").read_text()), strict=True))
                 for rank in range(ranks)]
        return done.stdout, result.parent, plans, lines

    def check(self, communicator):
        text, folder, plans, lines = self.run_job(communicator)
        slices = {(event["pid"], event["args"]["op"]): event
                  for event in json.loads((folder / "trace.json").read_text())["traceEvents"] if event["ph"] == "X"}
        for rank, (plan, own) in enumerate(zip(plans, lines)):
            transfers = [index for index, op in enumerate(plan["ops"]) if op["lane"] != "compute"]
            self.assertEqual([int(line["op"]) for line in own], transfers)
            self.assertGreater(len(own), 3)
            for line in own:
                self.check_line(line, plan, slices[rank, int(line["op"])])
        self.check_sums(text, json.loads((folder / "result.json").read_text())["transfer_times"])

    def check_line(self, line, plan, drawn):
        op = plan["ops"][int(line["op"])]
        for key in ("kind", "lane", "role", "phase"):
            self.assertEqual(line[key], op[key])
        for key in ("layer", "microbatch"):
            self.assertEqual(line[key], str(op[key]) if op[key] >= 0 else "")
        members = plan["groups"][op["shape"]["group"]]["ranks"]
        self.assertEqual((int(line["first_rank"]), int(line["ranks"])), (members[0], len(members)))
        tensors = [plan["tensors"][one["tensor"]] for one in op["operands"] if one["tensor"] is not None]
        self.assertIn(line["dtype"], {tensor["dtype"] for tensor in tensors})
        self.assertEqual(int(line["elements"]), op["shape"]["elements"])
        self.assertEqual(int(line["bytes"]), BYTES[line["dtype"]] * op["shape"]["elements"])
        self.assertAlmostEqual(float(line["begin_s"]), 1e-6 * drawn["ts"], delta=1.01e-9)
        self.assertAlmostEqual(float(line["time_s"]), 1e-6 * drawn["dur"], delta=1.51e-9)
        if float(line["time_s"]) > 1e-6:
            bandwidth = bus_bytes(line["kind"], len(members)) * int(line["bytes"]) / float(line["time_s"])
            self.assertLess(abs(float(line["bus_bytes_per_s"]) / bandwidth - 1), 1e-3)

    def check_sums(self, text, rows):
        said = re.findall(r"^  all over +(\S+(?: x \S+)*) +(\d+) ", text, re.MULTILINE)
        counts = {}
        for row in rows:
            counts[row["axes"]] = counts.get(row["axes"], 0) + row["count"]
        self.assertEqual({axes: int(count) for axes, count in said}, counts)

    def test_of_threads(self):
        self.check("local")

    @unittest.skipIf(shutil.which("mpirun") is None, "no MPI")
    def test_of_processes(self):
        self.check("mpi")

    def test_are_of_ranks_that_are_asked_for(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        words = f"run {JOBS['mpi'][1]} --comm local --backend host --steps 3 --warmup 1 --quiet".split()
        for value, names in (("1", ["1.csv"]), ("", [])):
            done = subprocess.run([PROGRAM, *words, "--out", f"of{value}", "--set", f"trace.communications={value}"], cwd=folder,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual([path.name for path in folder.glob(f"of{value}/**/transfers/*")], names)
        done = subprocess.run([PROGRAM, *words, "--set", "trace.communications=2"], cwd=folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("[trace] communications = 2: expected all, or ranks from 0 to 1, such as 0,8-15", done.stderr)


if __name__ == "__main__":
    unittest.main()
