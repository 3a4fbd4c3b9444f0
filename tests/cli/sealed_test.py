# SPDX-License-Identifier: MIT
"""Tests scripts/sealed, which stores a prediction once, before the measured time is published, and scores it
afterwards. This test uses rows that are already published."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"]) / "scripts/sealed"
JOBS = """# a comment
first | 8B on 24 ranks | llama3.1-8b --ranks 24
second | 70B on 192 | llama3.1-70b --ranks 192
"""


class Sealed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "jobs.txt").write_text(JOBS)
        (self.folder / "figures.csv").write_text("name,step_s,source,date\n")

    def call(self, word, code=0):
        done = subprocess.run([SCRIPT, "--folder", self.folder, word], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def predictions(self):
        return [json.loads(line) for line in (self.folder / "predictions.jsonl").read_text().splitlines()]

    def test_predicts_once_and_scores_later(self):
        self.call("add")
        first, second = self.predictions()
        self.assertEqual((first["name"], second["words"]), ("first", "llama3.1-70b --ranks 192"))
        self.assertEqual(self.call("add"), "")
        self.assertEqual(len(self.predictions()), 2)
        self.call("score")
        self.assertIn("None of the 2 awaited step times is published yet.", (self.folder / "README.md").read_text())

        # The published times are chosen so that the errors are +25 % and -20 %. Both are outside the range of the
        # predictions, which is a few percent.
        with open(self.folder / "figures.csv", "a") as file:
            file.write(f"first,{first['step_s'] / 1.25},https://example.org,2100-01-01\n")
            file.write(f"second,{second['step_s'] / 0.8},https://example.org,2100-01-01\n")
        self.call("score")
        page = (self.folder / "README.md").read_text()
        self.assertIn("2 of 2 step times are published: mean error 22.5 %, 0 inside the 80 % range.", page)
        self.assertIn("| +25.0 % |", page)
        self.assertIn("| -20.0 % |", page)

    def test_refuses_figures_that_are_older(self):
        (self.folder / "jobs.txt").write_text("row | published | llama3.1-8b --ranks 8\n")
        self.assertIn("row: its figure is published already", self.call("add", 1))
        self.call("score")
        (self.folder / "predictions.jsonl").write_text(json.dumps(
            {"name": "row", "awaited": "", "step_s": 12.0, "range_percent": 4.0, "tokens_per_s": 1, "date": "2026-11-28"}) + "\n")
        (self.folder / "figures.csv").write_text("name,step_s,source,date\nrow,12.27,x,2026-11-28\n")
        self.assertIn("the figure of 2026-11-28 is not younger", self.call("score", 1))


unittest.main()
