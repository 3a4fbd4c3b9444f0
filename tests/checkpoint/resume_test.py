# SPDX-License-Identifier: MIT
"""Saves, resumes and converts checkpoints with the command line, as a user does. The test reads the files with Python's
standard library only, so it does not share code with the program."""
import json
import os
import pathlib
import re
import shutil
import resource
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
MODEL = ["tiny-llama", "--layers", "2", "--set", "train.sequence=16", "--set", "model.vocab=64", "--set",
         "model.hidden=32", "--set", "model.ffn=48", "--set", "model.head_dim=8", "--set", "model.heads=4", "--set",
         "model.kv_heads=2"]
TINY = ["run", *MODEL, "--backend", "host", "--comm", "local", "--warmup", "0", "--trace", "0"]
OUTPUT, CHECKPOINT = 9, 10
BYTES = {"F32": 4, "BF16": 2}


class Run:
    """Output and result of a training with this number of steps and ranks."""

    def __init__(self, place, steps, ranks, settings, *words, code=0, limit=None):
        settings = [word for setting in settings.split() for word in ("--set", setting)]
        cut = None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        done = subprocess.run([PROGRAM, *TINY, "--steps", str(steps), "--ranks", str(ranks), *settings, *words], cwd=place,
                              text=True, timeout=120, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=cut)
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        self.error, self.text = done.stderr, done.stdout
        if "--json" in words:
            self.result = json.loads(done.stdout)
            self.losses = [(step["loss"], step["grad_norm"]) for step in self.result["steps"]]


def read_tensors(path):
    """Yields the name, header entry and bytes of each tensor in a file."""
    raw = path.read_bytes()
    length, = struct.unpack("<Q", raw[:8])
    for name, entry in json.loads(raw[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            yield name, entry, raw[begin:end]


def read_slices(folder):
    """Assembles the tensors of a checkpoint from the slices in its files. Returns (type, rows, columns, bytes) by
    name."""
    slices = {}
    for path in sorted(folder.glob("rank-*.safetensors")):
        for name, entry, data in read_tensors(path):
            tensor, runs = re.fullmatch(r"(.*)\[([0-9:,]*)\]", name).groups()
            runs = [tuple(map(int, run.split(":"))) for run in runs.split(",")]
            assert entry["shape"] == [end - first for first, end in runs], name
            slices.setdefault(tensor, []).append((entry["dtype"], ([(0, 1)] + runs)[-2:], data))
    return {tensor: assemble(of) for tensor, of in slices.items()}


def assemble(slices):
    size = BYTES[slices[0][0]]
    rows, columns = (max(run[axis][1] for _, run, _ in slices) for axis in (0, 1))
    whole = bytearray(rows * columns * size)
    written = 0
    for _, ((first_row, end_row), (first, end)), data in slices:
        width = (end - first) * size
        for row in range(first_row, end_row):
            place = (row * columns + first) * size
            whole[place:place + width] = data[(row - first_row) * width:(row - first_row + 1) * width]
        written += len(data)
    assert written == len(whole)
    return slices[0][0], rows, columns, bytes(whole)


class Resume(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.place = pathlib.Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def run_(self, *arguments, **how):
        return Run(self.place, *arguments, **how)

    def program(self, *words):
        return subprocess.run([PROGRAM, *words], cwd=self.place, text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def saved(self):
        """Returns the steps of the checkpoints in the folder "saved"."""
        return sorted(int(re.fullmatch(r"step-(\d{8})", path.name)[1]) for path in (self.place / "saved").iterdir())

    def test_a_run_goes_on_bit_by_bit(self):
        whole = self.run_(7, 2, "parallel.fsdp=2", "--json")
        first = self.run_(3, 2, "parallel.fsdp=2 checkpoint.save=saved", "--json")
        second = self.run_(4, 2, "parallel.fsdp=2 checkpoint.load=saved checkpoint.save=saved", "--json")
        self.assertEqual(first.losses + second.losses, whole.losses)
        checkpoint = second.result["checkpoint"]
        self.assertEqual((checkpoint["first_step"], checkpoint["saves"]), (3, 1))
        self.assertGreater(checkpoint["load_s"], 0)
        self.assertAlmostEqual(checkpoint["save_bytes_per_s"] * checkpoint["save_s"] / checkpoint["save_bytes"], 1)
        self.assertEqual(checkpoint["load_bytes"], checkpoint["save_bytes"])
        self.assertEqual(sum(rank["checkpoint_save_bytes"] for rank in second.result["ranks"]), checkpoint["save_bytes"])
        self.assertEqual(checkpoint["save_bytes"], 14 * second.result["config"]["model"]["parameters"])

    def test_threads_write_beside_steps_what_was_there_before_them(self):
        whole = self.run_(9, 2, "parallel.fsdp=2", "--json")
        saving = self.run_(9, 2, "parallel.fsdp=2 checkpoint.save=saved checkpoint.every=2 checkpoint.asynchronous=yes",
                           "--json")
        self.assertEqual(saving.losses, whole.losses)
        checkpoint = saving.result["checkpoint"]
        self.assertEqual(checkpoint["saves"], 5)
        self.assertGreater(checkpoint["steps_beside"], 0)
        self.assertLessEqual(checkpoint["stall_s"], checkpoint["save_s"])
        self.assertEqual(self.saved(), [2, 4, 6, 8, 9])
        for step in (2, 4, 6, 8):
            resumed = self.run_(9 - step, 2, f"parallel.fsdp=2 checkpoint.load=saved/step-{step:08}", "--json")
            self.assertEqual(resumed.losses, whole.losses[step:])

    def test_steps_are_counted_over_all_runs(self):
        self.run_(2, 1, "checkpoint.save=saved")
        text = self.run_(2, 1, "checkpoint.load=saved checkpoint.save=saved checkpoint.every=1 checkpoint.keep=1").text
        self.assertRegex(text, r"Global Checkpoint Load : Rank : 0 : Start time : [0-9.]+s : "
                               r"Time spent in load_checkpoint: [0-9.]+s : ")
        self.assertRegex(text, r"(?s)completed step: 2,.*Global Checkpoint Save : Rank: 0 : Iteration: 3 : Start time: "
                               r"[0-9.]+s : Save duration: [0-9.]+s.*completed step: 3,.*Iteration: 4 ")
        self.assertEqual(self.saved(), [4])

    def test_an_independent_reader_finds_the_weights_that_are_exported(self):
        self.run_(2, 4, "parallel.tp=2 parallel.fsdp=2 checkpoint.save=saved")
        done = self.program("checkpoint", "export", "saved", "plain")
        self.assertEqual(done.returncode, 0, done.stderr)
        tensors, plain = read_slices(self.place / "saved/step-00000002"), {
            name: data for name, _, data in read_tensors(self.place / "plain/model.safetensors")}
        self.assertEqual({name for name in tensors if name.split(".")[0] in ("model", "lm_head")}, set(plain))
        for name, data in plain.items():
            self.assertEqual(tensors[name][3], data, name)
            for prefix in ("master.", "first_moment.", "second_moment."):
                self.assertEqual(tensors[prefix + name][:3], ("F32", *tensors[name][1:3]), name)

    def test_weights_of_another_program_begin_a_run(self):
        drawn = self.run_(3, 1, "run.seed=5", "--json")
        done = self.program("weights", *MODEL, "--set", "run.seed=5", "-o", "weights")
        self.assertEqual(done.returncode, 0, done.stderr)
        loaded = self.run_(3, 1, "run.seed=5 checkpoint.load=weights", "--json")
        self.assertEqual(loaded.losses, drawn.losses)

    def test_what_was_just_saved_stays_where_another_run_came_further(self):
        self.run_(3, 1, "checkpoint.save=saved checkpoint.every=1")
        shutil.rmtree(self.place / "saved/step-00000002")
        self.run_(2, 1, "checkpoint.save=saved checkpoint.every=2 checkpoint.keep=1")
        self.assertEqual(self.saved(), [2, 3])

    def test_only_the_own_older_checkpoints_go(self):
        self.run_(2, 1, "checkpoint.save=saved checkpoint.every=1 run.seed=1")
        self.run_(5, 1, "checkpoint.save=saved checkpoint.every=3 checkpoint.keep=1 run.seed=2")
        self.assertEqual(self.saved(), [1, 2, 5])
        self.run_(8, 1, "checkpoint.save=saved checkpoint.every=4 checkpoint.keep=1 run.seed=1")
        self.assertEqual(self.saved(), [5, 8])

    def test_two_runs_at_once_keep_one_checkpoint_each(self):
        """Runs two jobs at once that save to the same folder, one every 9 and one every 10 steps. Each must keep only
        its own last checkpoint."""
        runs = [subprocess.Popen([PROGRAM, *TINY, "--steps", str(steps), "--ranks", "2", "--set", "parallel.fsdp=2", "--set",
                                  "checkpoint.save=saved", "--set", f"checkpoint.every={every}", "--set", "checkpoint.keep=1",
                                  "--set", f"run.seed={steps}"],
                                 cwd=self.place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                for steps, every in ((27, 9), (80, 10))]
        for run in runs:
            said, _ = run.communicate(timeout=120)
            self.assertEqual(run.returncode, 0, said)
        self.assertEqual(self.saved(), [27, 80])
        for path in (self.place / "saved").iterdir():
            self.assertEqual(self.program("verify", path).returncode, 0)

    def test_a_whole_checkpoint_is_never_written_over(self):
        self.run_(2, 1, "checkpoint.save=saved")
        run = self.run_(2, 1, "checkpoint.save=saved", code=OUTPUT)
        self.assertIn("step-00000002: is a complete checkpoint and is not overwritten", run.error)
        self.assertNotIn("completed step", run.text)

    def test_a_checkpoint_of_any_step_that_may_be_the_last_is_found_before_the_first_step(self):
        self.run_(7, 1, "checkpoint.save=saved")
        run = self.run_(2, 1, "checkpoint.save=saved run.until=0.01%", code=OUTPUT)
        self.assertIn("step-00000007: is a complete checkpoint and is not overwritten", run.error)
        self.assertNotIn("completed step", run.text)

    def test_a_folder_that_cannot_be_written_is_found_before_the_first_step(self):
        (self.place / "file").write_text("")
        run = self.run_(2, 1, "checkpoint.save=file/saved", code=OUTPUT)
        self.assertIn("cannot create file/saved: Not a directory", run.error)
        self.assertNotIn("completed step", run.text)

    def test_a_disk_without_room_leaves_the_older_checkpoint(self):
        self.run_(1, 1, "checkpoint.save=saved")
        run = self.run_(1, 1, "checkpoint.load=saved checkpoint.save=saved run.output=/tmp", code=OUTPUT, limit=200000)
        self.assertIn("saved/step-00000002", run.error)
        self.assertIn("File too large", run.error)
        self.assertRegex(self.program("checkpoint", "verify", "saved").stdout, "saved: step 1, .*: whole")

    def test_what_is_asked_for_in_vain_is_said(self):
        for settings, code, text in (
                ("checkpoint.every=5", 3, "set save to a folder"),
                ("checkpoint.save=saved checkpoint.at_end=no", 3, "every = 0 and at_end = no save nothing"),
                ("checkpoint.load=none", CHECKPOINT, "none: has neither the manifest.json of a complete checkpoint"),
                ("checkpoint.save=/proc/saved", OUTPUT, "cannot create /proc/saved")):
            self.assertIn(text, self.run_(1, 1, settings, code=code).error)

    def test_runs_that_train_nothing_or_again_have_no_checkpoint(self):
        for words in (("--emulate", "2"), ("--repeat", "2")):
            done = self.program(*TINY, *words, "--set", "checkpoint.save=saved")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("leave [checkpoint] save and load out", done.stderr)

    def test_numbers_that_are_wrong_are_not_saved(self):
        self.run_(4, 1, "checkpoint.save=saved checkpoint.every=1 checkpoint.keep=1 fault.kind=nan fault.step=2", code=5)
        self.assertEqual(self.saved(), [2])

    def test_other_data_are_noted(self):
        self.run_(2, 1, "checkpoint.save=saved")
        run = self.run_(2, 1, "checkpoint.load=saved run.seed=9", "--json")
        self.assertIn("other-data", [reason["id"] for reason in run.result["reasons"]])


if __name__ == "__main__":
    unittest.main()
