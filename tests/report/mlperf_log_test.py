# SPDX-License-Identifier: MIT
"""Tests gswbench report --mlperf. Writes MLPerf logs in the forms of different submitters from lists of step times, so
that median, spread and slow phases are known. The test has its own formulas and order statistics."""
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
PREFIX = {"each": "0: ", "tenth": "", "blocks": "node7:3 ", "late": "", "index": "[1,0]<stdout>"}
SYSTEM = ':::SYSJSON {"system_name":"x","number_of_nodes":"64","accelerators_per_node":"8"}'


class Log:
    """An MLPerf log. form says how it logs progress: "each": tokens after each step; "tenth": samples after ten steps;
    "blocks": tokens of blocks of steps; "late": tokens of a block in the line after the block's end; "index": samples
    and step numbers, and evaluations without a start."""

    def __init__(self, form, benchmark, batch, sequence, first=1700000000000):
        self.form, self.batch, self.sequence, self.time, self.lines, self.steps = form, batch, sequence, first, [], 0
        self.say("cache_clear", True)
        self.lines += ["some other line {", SYSTEM] if form == "each" else []
        for key, value in (("submission_benchmark", benchmark), ("submission_org", "Someone"), ("submission_platform", "8xGPU"),
                           ("global_batch_size", batch), ("gradient_accumulation_steps", 4.0), ("max_sequence_length", sequence)):
            if value is not None:
                self.say(key, value)

    def say(self, key, value=None, **metadata):
        entry = {"namespace": "", "time_ms": self.time, "event_type": "X", "key": key, "value": value, "metadata": metadata}
        self.lines.append(f"{PREFIX[self.form]}:::MLLOG {json.dumps(entry)}")

    def block(self, steps, evaluation):
        tokens, form = self.batch * (self.sequence or 0), self.form
        begin = self.steps
        if form == "index":
            self.say("block_start", samples_count=999999, step=0)
        elif form != "late" or begin:
            self.say("block_start", first_epoch_num=begin * tokens, epoch_count=len(steps) * tokens)
        for number, seconds in enumerate(steps):
            self.time += round(1000 * seconds)
            self.steps += 1
            if form == "each":
                self.say("tracked_stats", {"train_step_timing": seconds}, step=self.steps * tokens)
            elif form == "index":
                self.say("tracked_stats", {"train_step_time": seconds, "reduced_train_loss": 7.1}, step=self.steps - 1.0,
                         samples_count=float(self.steps * self.batch))
            elif form == "tenth" and number % 10 == 9:
                self.say("train_loss", 1.5, samples_count=self.steps * self.batch, lr=1e-4)
        if form in ("each", "blocks"):
            self.say("block_stop", first_epoch_num=begin * tokens, epoch_count=len(steps) * tokens)
            self.say("eval_start", epoch_num=self.steps * tokens)
        if form == "tenth":
            self.say("tracked_stats", {"throughput": 5.4, "train_step_time": 1.4}, step=0)
            self.say("block_stop", samples_count=begin * self.batch)
            self.say("eval_start", samples_count=self.steps * self.batch)
        self.time += round(1000 * evaluation)
        if form == "index":
            self.say("tracked_stats", {"validation_step_time": evaluation}, step=1, samples_count=1e9)
        if form == "late":
            self.say("block_stop", first_epoch_num=begin * tokens)
        self.say("eval_accuracy", 2.7, **({"samples_count": self.steps * self.batch} if form in ("tenth", "index") else
                                         {"epoch_num": self.steps * tokens}))
        if form != "late":
            self.say("eval_stop")

    def text(self, blocks, evaluation=7.0, status="success"):
        self.time += 60000
        self.say("init_stop")
        self.say("run_start")
        for steps in blocks:
            self.block(steps, evaluation)
        self.say("run_stop", None, status=status)
        return "\n".join(self.lines) + "\n"


def blocks_of(count=5, length=20, slow=1.5, seconds=2.0):
    """Returns `count` blocks of `length` steps of `seconds` plus up to 0.1 s. The first step of a block is slow."""
    return [[slow * seconds if number == 0 else seconds + 0.001 * ((37 * (number + 20 * block) % 101)) for number in range(length)]
            for block in range(count)]


class Logs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def report(self, *words):
        return subprocess.run([PROGRAM, "report", "--mlperf", *words], cwd=self.folder, capture_output=True, text=True)

    def write(self, name, text):
        (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    def read(self, *words):
        done = self.report("--json", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def fails(self, code, text, *words):
        done = self.report(*words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, text)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def check(self, found, intervals, each):
        run, ordered = found["runs"][0], sorted(intervals)
        median = statistics.median(ordered)
        spread = ordered[math.ceil(0.95 * len(ordered)) - 1] / median if len(ordered) >= 20 else None
        self.assertEqual((run["intervals"], run["steps_per_interval"], run["steps"]), (len(intervals), each, 100))
        self.assertAlmostEqual(run["step_s"], median, 9)
        (self.assertIsNone if spread is None else lambda one: self.assertAlmostEqual(one, spread, 9))(run["p95_over_median"])
        self.assertEqual((run["status"], found["global_batch"], found["accumulation"]), ("success", 2048, 4))
        self.assertAlmostEqual(found["samples_per_s"], 2048 / median, 6)
        self.assertAlmostEqual(run["run_s"], sum(map(sum, blocks_of())) + 5 * 7, 6)

    def test_every_form_gives_the_steps_that_it_was_made_of(self):
        blocks = blocks_of()
        every = [step for block in blocks for step in block]
        tenths = [sum(block[at:at + 10]) / 10 for block in blocks for at in (0, 10)]
        means = [statistics.mean(block) for block in blocks]
        for form, intervals, each in (("each", every, 1), ("index", every, 1), ("tenth", tenths, 10), ("blocks", means, 20),
                                      ("late", [mean + 7 / 20 for mean in means], 20)):
            with self.subTest(form):
                found = self.read(self.write("log", Log(form, "gpt3", 2048, 2048).text(blocks)))
                self.check(found, intervals, each)
                self.assertEqual(found["runs"][0]["has_evaluations"], form == "late")
                self.assertEqual(found["accelerators"], 512 if form == "each" else 0)

    def test_slow_phases_follow_starts_or_do_not(self):
        blocks = blocks_of()
        blocks[2][10] = blocks[2][11] = blocks[3][-1] = 5.0
        run = self.read(self.write("log", Log("each", "gpt3", 2048, 2048).text(blocks)))["runs"][0]
        self.assertEqual([run[key] for key in ("slow_phases", "slow_after_starts", "slow_steps")], [7, 5, 8])
        self.assertAlmostEqual(run["slow_s"], 5 * (3 - run["step_s"]) + 3 * (5 - run["step_s"]), 6)

    def test_flops_and_throughput_of_known_models(self):
        log = self.write("log", Log("each", "gpt3", 2048, 2048).text(blocks_of()))
        found, layers, hidden, length = self.read(log), 96, 12288, 2048
        flops = 6 * length * (12 * layers * hidden ** 2 + 51200 * hidden) + 12 * layers * hidden * length ** 2
        self.assertAlmostEqual(found["sequence_flops"] / flops, 1, 3)
        self.assertAlmostEqual(found["teraflops_per_accelerator"],
                               found["sequence_flops"] * 2048 / found["step_s"] / 512 / 1e12, 6)
        lora = self.read(self.write("lora", Log("tenth", "llama2_70b_lora", 8, None).text(blocks_of())))
        self.assertEqual((lora["sequence"], lora["teraflops_per_accelerator"]), (8192, None))
        # Forward and input gradients take 2 + 2 FLOPs per frozen weight and token; attention is added, adapters take below 1 %
        flops = 4 * 8192 * (68.977e9 - 32000 * 8192) + 12 * 80 * 8192 * 8192 ** 2
        self.assertTrue(1 < lora["sequence_flops"] / flops < 1.01, lora["sequence_flops"] / flops)
        self.assertRegex(self.report("lora").stdout, r"\nstep +2\.\d+ s, median of 1 run\nthroughput ")
        other = self.read(self.write("other", Log("tenth", "other", 8, 512).text(blocks_of())))
        self.assertEqual((other["sequence_flops"], other["sequence"]), (None, 512))

    def test_runs_of_a_submission_have_a_line_each_and_a_median(self):
        names = [self.write(f"result_{i}.txt", Log("each", "gpt3", 2048, 2048).text(blocks_of(seconds=seconds)))
                 for i, seconds in enumerate((2.0, 2.2, 2.1))]
        found = self.read(*names)
        steps = [run["step_s"] for run in found["runs"]]
        self.assertEqual([run["file"] for run in found["runs"]], names)
        self.assertAlmostEqual(found["step_s"], steps[2], 9)
        self.assertAlmostEqual(found["runs_percent"], 100 * (steps[1] - steps[0]) / steps[2], 6)
        text = self.report(*names).stdout
        self.assertIn(f"step           {steps[2]:.4f} s, median of 3 runs", text)
        self.assertEqual(text.count("success"), 3)
        self.assertRegex(text, r"p95 over median 1\.\d+ \(runs of this size: mostly 1\.0060, at most 1\.0104\); the runs differ by")
        other = self.write("other", Log("each", "gpt3", 1024, 2048).text(blocks_of()))
        self.fails(13, "result_0.txt and other are not runs of one submission", names[0], other)

    def test_a_prediction_and_a_published_step_stand_next_to_it(self):
        log = self.write("log", Log("tenth", "llama31_8b", 16, 8192).text(blocks_of(seconds=0.4)))
        words = ("--config", "mlperf-llama3.1-8b-nvfp4", "--ranks", "8")
        found = self.read(log, *words)
        predicted = json.loads(subprocess.run([PROGRAM, "predict", *words, "--json"], capture_output=True).stdout)["rows"][0]
        self.assertEqual(found["predicted"]["step_s"], predicted["predicted"]["step_s"])
        self.assertEqual(found["predicted"]["published_step_s"], 0.4056)
        self.assertAlmostEqual(found["predicted_percent"], 100 * (found["predicted"]["step_s"] / found["step_s"] - 1), 6)
        self.assertAlmostEqual(found["published_percent"], 100 * (0.4056 / found["step_s"] - 1), 6)
        self.fails(2, "give --ranks", log, *words[:2])
        self.fails(13, "--set train.global_batch=16$", log, *words, "--set", "train.global_batch=32")
        gpt = self.write("gpt", Log("each", "gpt3", 16, 8192).text(blocks_of()))
        self.fails(13, "--ranks 8: gpt states 512", gpt, *words)

    def test_bad_files_have_one_error_with_its_place(self):
        whole = Log("each", "gpt3", 2048, 2048).text(blocks_of())
        lines = whole.split("\n")
        cut = whole.index("metadata", len(whole) // 2)
        turned = Log("each", "gpt3", 2048, 2048)
        turned.time = 1700000000000
        for name, text, error in (
                ("empty", b"", "empty: has no line with :::MLLOG"),
                ("binary", pathlib.Path(PROGRAM).read_bytes()[:1 << 20], "not a log of MLPerf Training|:[0-9]+: not JSON"),
                ("cut", whole[:cut], f"cut:{whole[:cut].count(chr(10)) + 1}: not JSON"),
                ("short", "\n".join(lines[:60]) + "\n", "short: ends at line 60 without run_stop: the log is cut off"),
                ("headless", "\n".join(line for line in lines if "run_start" not in line), "headless: has no run_start"),
                ("stepless", "\n".join(line for line in lines if "step" not in line and "epoch" not in line), "has no steps"),
                ("batchless", "\n".join(line for line in lines if "global_batch" not in line), "without a global_batch_size"),
                ("long", whole.replace('"X"', '"' + "X" * 70000 + '"', 1), "long:1: longer than 64 KiB"),
                ("back", turned.text([[2.0, -1.0, 2.0]]), "back:[0-9]+: its steps took no time"),
                ("size", whole.replace('"value": 2048', '"value": 20.48', 1), "size:[0-9]+: a size must be a whole number")):
            with self.subTest(name):
                self.fails(3, error, self.write(name, text))
        self.fails(3, "is a directory", ".")
        self.fails(3, "absent: cannot be opened", "absent")
        self.fails(2, "--mlperf needs a file")
        done = subprocess.run([PROGRAM, "report", "x", "--ranks", "8"], capture_output=True, text=True)
        self.assertEqual((done.returncode, "belong to --mlperf and --trace" in done.stderr), (2, True))

    def test_memory_does_not_grow_with_the_file(self):
        with open(self.folder / "huge", "wb") as file:
            file.truncate(1 << 28)    # a sparse file
            file.seek(0, os.SEEK_END)
            for _ in range(1 << 10):
                file.write(b"y" * (1 << 16))
            file.write(b"\n" + Log("each", "gpt3", 2048, 2048).text(blocks_of()).encode())
        self.write("small", Log("each", "gpt3", 2048, 2048).text(blocks_of()))
        peaks = []
        for name in ("small", "huge"):
            child = subprocess.Popen([PROGRAM, "report", "--mlperf", name], cwd=self.folder, stdout=subprocess.DEVNULL)
            _, code, usage = os.wait4(child.pid, 0)
            child.returncode = code
            self.assertEqual(code, 0)
            peaks.append(usage.ru_maxrss)
        self.assertLess(peaks[1] - peaks[0], 64 * 1024)


if __name__ == "__main__":
    unittest.main()
