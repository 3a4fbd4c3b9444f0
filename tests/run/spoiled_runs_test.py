# SPDX-License-Identifier: MIT
"""Spoils runs in many ways. No verdict may be VALID, and results that were edited or measure nothing are refused
without --force."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
JOB = ["run", "--config", "tiny-llama", "--layers", "1", "--steps", "20", "--warmup", "2", "--backend", "host", "--comm", "local",
       "--quiet", "--ranks", "2", "--set", "trace.steps=0", "--set", "model.hidden=32", "--set", "model.heads=2", "--set",
       "model.kv_heads=1", "--set", "model.head_dim=16", "--set", "model.ffn=32", "--set", "model.vocab=64", "--set",
       "train.sequence=16", "--set", "train.micro_batch=1", "--set", "train.global_batch=2", "--set", "parallel.dp=2"]
FACTORED = ["parallel.dp=1", "parallel.fsdp=2"]
EXPERTS = ["parallel.ep=2", "model.family=mixtral", "model.experts=4", "model.top_k=2"]


def fault(kind, at, step, *more):
    return [f"fault.kind={kind}", f"fault.at={at}", f"fault.step={step}", "fault.rank=1", *(f"fault.{word}" for word in more)]


# Description, settings, arguments and variables; expected exit code, verdict and name of the reason.
SPOILED = [
    ("nothing is verified", ["run.verify=off"], [], {}, 5, "unverified", "verify-off"),
    ("the null backend computes nothing", [], ["--backend", "null"], {}, 5, "unverified", "not-computed"),
    ("a rank sleeps in a step", fault("delay", "fc1", 9, "amount=0.05"), [], {}, 0, "degraded", "faulted"),
    ("a rank takes five times as long", ["fault.kind=slow", "fault.amount=400"], [], {}, 0, "degraded", "faulted"),
    ("a profiler watches", [], [], {"NSYS_PROFILING_SESSION_ID": "1"}, 0, "degraded", "profiled"),
    ("each op is waited for", ["run.check=ops"], [], {}, 0, "degraded", "checked"),
    ("three steps are measured", [], ["--steps", "5"], {}, 0, "degraded", "few-steps"),
    ("nine steps are measured", [], ["--steps", "11"], {}, 0, "degraded", "few-steps"),
    ("ranks share cores", ["parallel.dp=16", "train.global_batch=16"], ["--ranks", "16", "--set", "run.conditions=note"], {}, 0,
     "degraded", "oversubscribed"),
    ("AdamW is left out", fault("skip", "adamw", 9), [], {}, 5, "invalid", "ops-left-out"),
    ("... each time", fault("skip", "adamw", 9, "repeats=yes"), [], {}, 5, "invalid", "ops-left-out"),
    ("... in a step that is run twice", fault("skip", "adamw", 19, "repeats=yes"), [], {}, 5, "invalid", "ops-left-out"),
    ("attention is left out", fault("skip", "attention gradient", 3), [], {}, 5, "invalid", "ops-left-out"),
    ("a gradient is left out", fault("skip", "fc2 weight gradient", 7), [], {}, 5, "invalid", "ops-left-out"),
    ("the norm of gradients is left out", fault("skip", "gradient norm", 7), [], {}, 5, "invalid", "ops-left-out"),
    ("the loss is no number", fault("nan", "loss", 5), [], {}, 5, "invalid", "not-finite"),
    ("a weight is no number", fault("nan", "tensor weights, layer 0", 5), [], {}, 5, "invalid", "not-finite"),
    ("an activation is no number", fault("nan", "fc1", 0, "repeats=yes"), [], {}, 5, "invalid", "not-finite"),
    ("a clip scale is no number", [*FACTORED, *fault("nan", "\"clip\"", 9, "element=1")], [], {}, 5, "invalid",
     "scale-not-finite"),
    ("a bit flips in the first step", fault("flip", "fc1", 0, "bit=14"), [], {}, 5, "invalid", "repeat-differs"),
    ("a bit flips in the last step", fault("flip", "fc1", 19, "bit=14"), [], {}, 5, "invalid", "repeat-differs"),
    ("a bit flips in the last step's AdamW", [*FACTORED, *fault("flip", "adamw", 19, "bit=14")], [], {}, 5, "invalid",
     "optimizer-differs"),
    ("a replica's AdamW errs", fault("flip", "adamw", 9, "bit=20"), [], {}, 5, "invalid", "replicas-differ"),
    ("a transfer brings something else", fault("flip", "gradient reduce", -1, "bit=14"), [], {}, 5, "invalid", "transfer-wrong"),
    ("a GEMM is always wrong", fault("flip", "fc2 weight gradient", -1, "bit=12"), [], {}, 5, "invalid", "gemm-wrong"),
    ("an op is always wrong", ["parallel.dp=3", "train.global_batch=3", *fault("flip", "norm", -1, "bit=12")], ["--ranks", "3"],
     {}, 5, "invalid", "device-differs"),
    ("time runs out", [], ["--steps", "1000000", "--time-limit", "1"], {}, 12, "partial", "stopped"),
    ("... within a step", fault("delay", "fc1", 3, "amount=60"), ["--time-limit", "3"], {}, 12, "partial", "died"),
    ("the last of a tensor's FP4 codes flips", ["precision.compute=fp4", *fault("flip", "quantize", 0, "bit=2", "element=511")],
     [], {}, 5, "invalid", "repeat-differs"),
    ("a weight's bit flips in the first step", fault("flip", "tensor weights, layer 0", 0, "bit=5", "element=7"), [], {}, 5,
     "invalid", "repeat-differs"),
    ("a transfer brings no number", fault("nan", "gradient reduce", 5), [], {}, 5, "invalid", "not-finite"),
    ("a gradient is no number", fault("nan", "fc2 weight gradient", 7), [], {}, 5, "invalid", "not-finite"),
    ("a count of tokens is wrong", [*EXPERTS, *fault("flip", "\"route\"", 9, "element=140", "bit=30")], [], {}, 5, "invalid",
     "damaged"),
    ("... by one", [*EXPERTS, *fault("flip", "\"route\"", 9, "element=140", "bit=0")], [], {}, 5, "invalid", "damaged"),
    ("... where it arrives", [*EXPERTS, *fault("flip", "token count exchange", 9, "element=1", "bit=30")], [], {}, 5, "invalid",
     "damaged"),
    ("... by one there", [*EXPERTS, *fault("flip", "token count exchange", 9, "element=1", "bit=0")], [], {}, 5, "invalid", "damaged"),
]

# A fault at this op, element and bit makes a token count wrong. The last part is the text of the reason after step and
# rank. The fault of the last row is noticed only by the rank that sends the rows.
COUNTS = [
    ("\"route\"", 140, 30, 'op 12 read_token_counts "read token counts", forward, layer 0, microbatch 0: experts have '),
    ("\"route\"", 140, 0, 'op 12 read_token_counts "read token counts", forward, layer 0, microbatch 0: experts have '),
    ("token count exchange", 1, 30, 'op 12 read_token_counts "read token counts", forward, layer 0, microbatch 0: '),
    ("token count exchange", 2, 31, 'op 12 read_token_counts "read token counts", forward, layer 0, microbatch 0: -'),
    ("token count exchange", 1, 0, 'all_to_all "dispatch exchange", layer 0: this rank expects '),
]


ROWS = 36    # number of rows that must be run, so that none is skipped unnoticed


def ask(folder, *words, **variables):
    return subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=120,
                          env={**os.environ, **variables})


def result_of(folder):
    """Returns the folder of the only run in `folder`. A run that ends within a step has no link `latest`."""
    return next(folder.glob("*/*/*/2*/result.json")).parent


class Spoiled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])    # so that 16 ranks share cores on any machine
        cls.held = tempfile.TemporaryDirectory()
        cls.top = pathlib.Path(cls.held.name)

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def run_job(self, name, settings, words, variables):
        changes = [word for setting in settings for word in ("--set", setting)]
        done = ask(self.top, *JOB, *words, *changes, "--out", name, **variables)
        return done, json.loads((result_of(self.top / name) / "result.json").read_text())

    def test_a_wrong_count_of_tokens_ends_with_step_rank_and_op(self):
        launch = shutil.which("mpirun")
        processes = ["mpirun", "-np", "2"] if launch else []
        for number, (at, element, bit, what) in enumerate(COUNTS * 2):
            rank, step = number // 5, 3 + number // 5
            settings = [*EXPERTS, "fault.kind=flip", f"fault.at={at}", f"fault.element={element}", f"fault.bit={bit}",
                        f"fault.rank={rank}", f"fault.step={step}"]
            for ranks in ([], processes) if number < 5 else ([],):
                with self.subTest(at=at, bit=bit, rank=rank, step=step, ranks=ranks):
                    changes = [word for setting in settings for word in ("--set", setting)]
                    comm = ["--comm", "mpi"] if ranks else []
                    name = f"counts-{number}-{len(ranks)}"
                    done = subprocess.run([*ranks, PROGRAM, *JOB, *changes, *comm, "--out", name], cwd=self.top, timeout=120,
                                          capture_output=True, text=True, check=False)
                    document = json.loads((result_of(self.top / name) / "result.json").read_text())
                    self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
                    self.assertEqual(document["status"], "invalid")
                    reason = next(each for each in document["reasons"] if each["id"] == "damaged")
                    self.assertEqual((reason["rank"], reason["step"]), (rank, step))
                    self.assertTrue(reason["message"].startswith(f"step {step}, rank {rank}: {what}"), reason["message"])
                    self.assertEqual(len(document["steps"]), step)

    def test_none_is_valid(self):
        count = 0
        for number, (what, settings, words, variables, code, verdict, reason) in enumerate(SPOILED):
            with self.subTest(what):
                done, document = self.run_job(str(number), settings, words, variables)
                said = done.stdout + done.stderr
                self.assertEqual(done.returncode, code, said)
                self.assertEqual(document["status"], verdict, said)
                self.assertIn(reason, [each["id"] for each in document["reasons"]], said)
                self.assertIn(f"RESULT {verdict.upper()} ", done.stdout)
                again = ask(self.top, "report", str(result_of(self.top / str(number))))
                self.assertIn(f"RESULT {verdict.upper()} ", again.stdout, again.stderr)
                count += 1
        self.assertEqual((count, len(SPOILED)), (ROWS, ROWS))

    def test_readers_take_none_without_force(self):
        self.run_job("few", [], ["--steps", "5"], {})
        self.run_job("off", ["run.verify=off"], [], {})
        for name in ("few", "off"):
            path = str(self.top / name / "latest/result.json")
            self.assertEqual(ask(self.top, "compare", path, path).returncode, 13)
            self.assertEqual(ask(self.top, "compare", path, path, "--force").returncode, 0)
            self.assertEqual(ask(self.top, "table", path).returncode, 13)
            self.assertIn(json.loads(pathlib.Path(path).read_text())["status"], ask(self.top, "table", path, "--force").stdout.lower())
        done = ask(self.top, *JOB, "--steps", "5", "--fail-above", "step=10", "--out", "gate")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(ask(self.top, *JOB, "--steps", "5", "--fail-above", "step=10", "--force", "--out", "gate").returncode, 0)

    def test_what_is_changed_afterwards_is_told(self):
        self.run_job("clean", [], ["--steps", "5"], {})
        clean = (self.top / "clean/latest").resolve()    # DEGRADED, so it has a reason that can be removed
        for name, change in (
                ("half", lambda result: [step.update(time_s=step["time_s"] / 2) for step in result["steps"]]),
                ("excused", lambda result: result.update(reasons=[], status="valid")),
                ("proven", lambda result: result["validation"].update(repeated_steps=20, repeated_steps_equal=20))):
            shutil.copytree(clean, self.top / name)
            result = json.loads((clean / "result.json").read_text())
            change(result)
            (self.top / name / "result.json").write_text(json.dumps(result))
            done = ask(self.top, "report", name)
            self.assertNotEqual(json.loads((clean / "result.json").read_text()), result, name)
            self.assertIn(done.returncode, (3, 13), name + done.stdout)


if __name__ == "__main__":
    unittest.main()
