# SPDX-License-Identifier: MIT
"""Whether a source file is short enough to be read: the budgets of CONTRIBUTING.md."""
import os
import pathlib
import unittest

ROOT = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"])
BUDGETS = {".c": 600, ".h": 300, ".cu": 400, ".cuh": 400, ".cpp": 600}


def lengths(root):
    """Of every source file, by its path."""
    found = {}
    for top in ("bench", "include", "kernels", "src", "tests"):
        for path in sorted(root.glob(f"{top}/**/*")):
            if path.suffix in BUDGETS and path.is_file():
                found[str(path.relative_to(root))] = len(path.read_text().split("\n")) - 1
    return found


def findings(found):
    """What is too long."""
    wrong = []
    for path, lines in found.items():
        budget = BUDGETS[pathlib.Path(path).suffix]
        if lines > budget:
            wrong.append(f"{path} has {lines} lines, and may have {budget}: move one of its ideas into another file")
    return wrong


class Budget(unittest.TestCase):
    def test_files_are_within_their_budgets(self):
        found = lengths(ROOT)
        self.assertGreater(len(found), 200)
        self.assertEqual(findings(found), [])

    def test_what_is_too_long_is_found(self):
        found = {"a.c": 600, "b.c": 601, "c.h": 300, "d.h": 301, "e.cu": 400, "f.cuh": 401, "g.cpp": 601}
        self.assertEqual([line.split(" has ")[0] for line in findings(found)], ["b.c", "d.h", "f.cuh", "g.cpp"])


if __name__ == "__main__":
    unittest.main()
