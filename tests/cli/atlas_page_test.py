# SPDX-License-Identifier: MIT
"""Tests scripts/atlas and configs/atlas/score.py with five rows: the tables and the plot of predictions."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"])
SCRIPT, SCORE = SOURCE / "scripts/atlas", SOURCE / "configs/atlas/score.py"


def row(gpu, published, predicted, memory=None, **others):
    return {"config": "pair", "variant": "", "ranks": 2, "gpu": gpu, "precision": "bf16", "software": "nemo",
            "published_step_s": published, "predicted_step_s": predicted, "fitted": False, "has_experts": False,
            "source": "nobody, a table", "layout": "dp 2", "ideal_s": 0.4, "settings": [],
            "published_memory_gib": 0.0, "memory_is_reserved": False,
            "error_percent": 100 * (predicted / published - 1), "memory_error_percent": memory, **others}


class AtlasPage(unittest.TestCase):
    def setUp(self):
        rows = [row("h100", 1.0, 1.2, -4.0, variant="release-1 tp2", settings=["parallel.tp = 2", "parallel.dp = 1", "software.nvls = no"]),
                row("h100", 0.8, 0.9, variant="release-1 tp1", settings=["parallel.dp = 2", "software.nvls = no"]),
                row("h100", 0.6, 0.9, variant="release-2 tp1", settings=["parallel.dp = 2", "software.nvls = no"]),
                row("b200<", 2.0, 2.0, has_experts=True), row("b200", 4.0, 5.0, fitted=True)]
        errors = "config,variant,ranks,gpu,precision,kind,status,program_left_out,machine_left_out,range\n" + "".join(
            f"{one['config']},{one['variant']},{one['ranks']},{one['gpu']},{one['precision']},dense,fitted,+3.00,-9.00,5.00\n"
            for one in rows)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name)
        (path / "atlas").mkdir()
        (path / "atlas/errors.csv").write_text(errors)
        (path / "atlas/left-out.txt").write_text("# none\n3 | others | too new\n")
        (path / "rows.json").write_text(json.dumps({"rows": rows, "pair_error_percent": 6.4}))
        (path / "program").write_text(f"#!/bin/sh\n[ \"$*\" = 'atlas --json' ] && cat {path}/rows.json\n")
        (path / "program").chmod(0o755)
        environment = {**os.environ, "GSWBENCH": str(path / "program"), "GSWBENCH_CONFIGS": str(path)}
        subprocess.run([SCRIPT, path], check=True, env=environment)
        self.folder = path
        self.page, self.plot = (path / "atlas.md").read_text(), (path / "atlas.svg").read_text()

    def test_sums_errors_by_common_values(self):
        """The three rows on h100 have errors of 20, 12.5 and 50 %. Their MFU (ideal over published time) is 0.4, 0.5
        and 0.667. Predicting each row by the mean MFU of the other two gives 0.686, 0.75 and 0.889 s, with errors of
        31.4, 6.2 and 48.1 %."""
        unfitted, fitted = self.page.split("## Fitted rows")
        self.assertIn("| GPU | h100 | 3 | +27.5 % | 27.5 % | 50.0 % | 0 | 3.0 % | 9.0 % | 28.6 % | 28.6 % |\n", unfitted)
        self.assertIn("| GPU | b200 | 1 | +25.0 % | 25.0 % | 25.0 % | 0 | 3.0 % | 9.0 % | - | - |\n", fitted)
        self.assertIn("| all |  | 1 | -4.0 % | 4.0 % | 4.0 % | 1 |\n", fitted)
        self.assertIn("| 3 | others | too new |\n", self.page)
        self.assertNotIn("none", self.page)

    def score(self, *words):
        return subprocess.run([SCORE, *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_scores_predictions_of_others(self):
        """The exported rows must have the settings of the job without settings of the cost model (software.*), and no
        prediction. Another predictor's file has errors of 25 and -50 %, and no prediction for one row."""
        rows = [json.loads(line) for line in (self.folder / "rows.jsonl").read_text().splitlines()]
        self.assertEqual(rows[0]["settings"], {"parallel.tp": "2", "parallel.dp": "1"})
        self.assertNotIn("predicted_step_s", rows[0])
        self.assertEqual(rows[1]["id"], "pair/release-1 tp1/2/h100/bf16")
        theirs = self.folder / "theirs.jsonl"
        theirs.write_text(json.dumps({"id": rows[0]["id"], "step_s": 1.25}) + "\n"
                          + json.dumps({"id": rows[1]["id"], "step_s": 0.4}) + "\n")
        text = self.score("theirs.jsonl", "rows.jsonl").stdout
        self.assertRegex(text, r"dense, h100 +3 +1 +37\.5 +37\.5 +50\.0 +50\.0 +-12\.5\n")
        self.assertRegex(text, r"all +5 +3 +37\.5 ")
        theirs.write_text(json.dumps({"id": "nothing", "step_s": 1}) + "\n")
        self.assertIn("no such row: nothing", self.score("theirs.jsonl", "rows.jsonl").stdout)
        self.assertRegex(self.score("--of-gswbench", "rows.json", "rows.jsonl").stdout,
                         r"dense, h100 +3 +0 +27\.5 +20\.0 +50\.0 +50\.0 +\+27\.5\n")

    def test_counts_left_out_errors_inside_the_range(self):
        """The range is 5 %. An error of 3 % is inside 1.2816 x 5 %, an error of 9 % is not."""
        self.assertIn("| without experts | h100 | 3 | 3 | 0 | 50 % |\n", self.page)

    def test_pairs_rows_of_a_release_that_differ_by_one_option(self):
        """Only the first two rows are of one release and differ by one option. Published, tp 1 takes ln 0.8 = 22.3 %
        less; predicted, ln 0.75 = 28.8 % less."""
        self.assertIn("| tp | 1 | 1 | 0 | 0 | 1 | 22.3 % | 6.5 % |\n", self.page)
        self.assertNotIn("| vp |", self.page)

    def test_plots_every_row(self):
        """Both axes are logarithmic, from 0.5 s to 10 s over 560 points. A published time of 1 s is ln 2 / ln 20 x 560
        = 129.6 points from the left end, which is at 64."""
        self.assertIn('<circle class="dense" cx="193.6" cy="436.3" r="3"><title>pair, 2 h100, bf16 release-1 tp2: '
                      'published 1 s, predicted 1.2 s, +20.0 % never fitted</title>', self.plot)
        self.assertIn('<circle class="experts" cx="323.1" cy="340.9" r="3"><title>pair, 2 b200&lt;, bf16', self.plot)
        self.assertIn(">4 rows without experts<", self.plot)
        self.assertIn(">1 with experts<", self.plot)


if __name__ == "__main__":
    unittest.main()
