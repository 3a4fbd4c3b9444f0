# SPDX-License-Identifier: MIT
"""Whether a source file is short enough to be read: the budgets of CONTRIBUTING.md."""
import os
import pathlib
import unittest

ROOT = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"])
BUDGETS = {".c": 350, ".h": 150, ".cu": 300, ".cuh": 300, ".cpp": 350}


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
            wrong.append(f"{path} has {lines} lines, and may have {budget}: give a part of it a file of its own")
    return wrong


class Budget(unittest.TestCase):
    def test_files_are_within_their_budgets(self):
        found = lengths(ROOT)
        self.assertGreater(len(found), 200)
        self.assertEqual(findings(found), [])

    def test_what_is_too_long_is_found(self):
        found = {"a.c": 350, "b.c": 351, "c.h": 150, "d.h": 151, "e.cu": 300, "f.cuh": 301, "g.cpp": 351}
        self.assertEqual([line.split(" has ")[0] for line in findings(found)], ["b.c", "d.h", "f.cuh", "g.cpp"])


if __name__ == "__main__":
    unittest.main()
