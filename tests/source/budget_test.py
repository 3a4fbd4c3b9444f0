# SPDX-License-Identifier: MIT
"""Checks the budgets of CONTRIBUTING.md: lines per file, lines per function, and the number of very small files."""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"])
BUDGETS = {".c": 600, ".h": 300, ".cu": 400, ".cuh": 400, ".cpp": 600}
FUNCTION = 60
# A kernel keeps the registers of its tile loop in one function, so these kernels may be longer.
LONGER = {"key_kernel": 100, "query_kernel": 80, "forward_kernel": 75}
# A file of less than 40 lines is rarely worth being separate. This number of small files may only fall.
SMALL, SMALL_FILES = 40, 34


def lengths(root):
    """Returns the lines of every source file by its path."""
    found = {}
    for top in ("bench", "include", "kernels", "src", "tests"):
        for path in sorted(root.glob(f"{top}/**/*")):
            if path.suffix in BUDGETS and path.is_file():
                found[str(path.relative_to(root))] = len(path.read_text().split("\n")) - 1
    return found


def findings(found):
    """Returns a line per file that is too long."""
    wrong = []
    for path, lines in found.items():
        budget = BUDGETS[pathlib.Path(path).suffix]
        if lines > budget:
            wrong.append(f"{path} has {lines} lines, and may have {budget}: move one of its ideas into another file")
    return wrong


def functions(root):
    """Returns the path, the name and the number of body lines of every function of the program."""
    found = []
    for top in ("include", "kernels", "src"):
        for path in sorted(root.glob(f"{top}/**/*")):
            if path.suffix in BUDGETS and path.is_file():
                lines, start = path.read_text().split("\n"), None
                for number, line in enumerate(lines):
                    if line == "{":
                        start = number
                    elif line.startswith("}") and start is not None:
                        head = " ".join(lines[max(0, start - 4):start])
                        names = re.findall(r"(\w+)\(", re.sub(r"__launch_bounds__\([^)]*\)", "", head))
                        found.append((str(path.relative_to(root)), names[-1] if names else "", number - start - 1))
                        start = None
    return found


def long_functions(found):
    return [f"{path}: {name} has {lines} lines, {LONGER.get(name, FUNCTION)} are allowed: split it"
            for path, name, lines in found if lines > LONGER.get(name, FUNCTION)]


class Budget(unittest.TestCase):
    def test_files_are_within_their_budgets(self):
        found = lengths(ROOT)
        self.assertGreater(len(found), 200)
        self.assertEqual(findings(found), [])

    def test_functions_are_within_their_budget(self):
        found = functions(ROOT)
        self.assertGreater(len(found), 2000)
        self.assertEqual(long_functions(found), [])
        self.assertEqual(len(long_functions([("a.c", "read", 60), ("b.c", "write", 61)])), 1)

    def test_small_files_become_fewer(self):
        small = [path for path, lines in lengths(ROOT).items()
                 if lines < SMALL and path.split("/")[0] in ("include", "kernels", "src")]
        self.assertLessEqual(len(small), SMALL_FILES, "join one of the new small files with the file that uses it")

    def test_what_is_too_long_is_found(self):
        found = {"a.c": 600, "b.c": 601, "c.h": 300, "d.h": 301, "e.cu": 400, "f.cuh": 401, "g.cpp": 601}
        self.assertEqual([line.split(" has ")[0] for line in findings(found)], ["b.c", "d.h", "f.cuh", "g.cpp"])


if __name__ == "__main__":
    unittest.main()
