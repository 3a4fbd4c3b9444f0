# SPDX-License-Identifier: MIT
"""scripts/atlas: its tables and its plot of three rows."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"]) / "scripts/atlas"


def row(gpu, published, predicted, memory=None, **others):
    return {"config": "pair", "variant": "", "ranks": 2, "gpu": gpu, "precision": "bf16", "software": "nemo",
            "published_step_s": published, "predicted_step_s": predicted, "fitted": False, "has_experts": False,
            "error_percent": 100 * (predicted / published - 1), "memory_error_percent": memory, **others}


class AtlasPage(unittest.TestCase):
    def setUp(self):
        rows = [row("h100", 1.0, 1.2, -4.0), row("h100", 1.0, 0.9), row("b200<", 2.0, 2.0, has_experts=True),
                row("b200", 4.0, 5.0, fitted=True)]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name)
        (path / "atlas").mkdir()
        (path / "atlas/left-out.txt").write_text("# none\n3 | others | too new\n")
        (path / "rows.json").write_text(json.dumps({"rows": rows}))
        (path / "program").write_text(f"#!/bin/sh\n[ \"$*\" = 'atlas --json' ] && cat {path}/rows.json\n")
        (path / "program").chmod(0o755)
        environment = {**os.environ, "GSWBENCH": str(path / "program"), "GSWBENCH_CONFIGS": str(path)}
        subprocess.run([SCRIPT, path], check=True, env=environment)
        self.page, self.plot = (path / "atlas.md").read_text(), (path / "atlas.svg").read_text()

    def test_sums_errors_by_common_values(self):
        unfitted, fitted = self.page.split("## Rows with fitted values")
        self.assertIn("| family | pair | 3 | +3.3 % | 10.0 % | 20.0 % | 2 |\n", unfitted)
        self.assertIn("| GPU | h100 | 2 | +5.0 % | 15.0 % | 20.0 % | 1 |\n", unfitted)
        self.assertIn("| GPU | b200 | 1 | +25.0 % | 25.0 % | 25.0 % | 0 |\n", fitted)
        self.assertIn("| all |  | 1 | -4.0 % | 4.0 % | 4.0 % | 1 |\n", fitted)
        self.assertIn("| 3 | others | too new |\n", self.page)
        self.assertNotIn("none", self.page)

    def test_plots_every_row(self):
        """Both axes span 0.5 s to 10 s: ln 2 / ln 20 of 560 points is 129.6."""
        self.assertIn('<circle class="dense" cx="193.6" cy="436.3" r="3"><title>pair, 2 h100, bf16: published 1 s, '
                      'predicted 1.2 s, +20.0 %</title>', self.plot)
        self.assertIn('<circle class="experts" cx="323.1" cy="340.9" r="3"><title>pair, 2 b200&lt;, bf16', self.plot)
        self.assertIn(">3 rows without experts<", self.plot)
        self.assertIn(">1 with experts<", self.plot)


if __name__ == "__main__":
    unittest.main()
