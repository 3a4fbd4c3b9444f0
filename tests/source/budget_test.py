# SPDX-License-Identifier: MIT
"""Whether a source file is short enough to be read: the budgets of CONTRIBUTING.md."""
import os
import pathlib
import unittest

ROOT = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"])
BUDGETS = {".c": 350, ".h": 150, ".cu": 300, ".cuh": 300, ".cpp": 350}

# Files that are longer today, and by no line longer than this. The list only becomes shorter.
LONGER = {
    "tests/checkpoint/checkpoint_test.c": 399,
    "tests/plan/plan_test.c": 371,
    "tests/run/run_test.c": 475,
}


def lengths(root):
    """Of every source file, by its path."""
    found = {}
    for top in ("bench", "include", "kernels", "src", "tests"):
        for path in sorted(root.glob(f"{top}/**/*")):
            if path.suffix in BUDGETS and path.is_file():
                found[str(path.relative_to(root))] = len(path.read_text().split("\n")) - 1
    return found


def findings(found, longer):
    """What is too long, and what need not be listed any more."""
    wrong = []
    for path, lines in found.items():
        budget = longer.get(path, BUDGETS[pathlib.Path(path).suffix])
        if lines > budget:
            wrong.append(f"{path} has {lines} lines, and may have {budget}: give a part of it a file of its own")
    for path in longer:
        budget = BUDGETS[pathlib.Path(path).suffix]
        if path not in found:
            wrong.append(f"{path} is listed, and does not exist")
        elif found[path] <= budget:
            wrong.append(f"{path} is listed, and has no more than {budget} lines: take it off the list")
    return wrong


class Budget(unittest.TestCase):
    def test_files_are_within_their_budgets(self):
        found = lengths(ROOT)
        self.assertGreater(len(found), 200)
        self.assertEqual(findings(found, LONGER), [])

    def test_what_is_too_long_or_listed_for_nothing_is_found(self):
        found = {"a.c": 350, "b.c": 351, "c.h": 151, "d.cu": 300, "e.cuh": 301, "f.h": 150, "g.h": 159, "h.h": 170}
        longer = {"f.h": 160, "g.h": 160, "h.h": 169, "i.h": 160}
        self.assertEqual([line.split(":")[0] for line in findings(found, longer)], [
            "b.c has 351 lines, and may have 350",
            "c.h has 151 lines, and may have 150",
            "e.cuh has 301 lines, and may have 300",
            "h.h has 170 lines, and may have 169",
            "f.h is listed, and has no more than 150 lines",
            "i.h is listed, and does not exist"])


if __name__ == "__main__":
    unittest.main()
