# SPDX-License-Identifier: MIT
"""Tests the scorer of planted faults. It counts faults that are found, faults whose host is drained, other drained
hosts, and drained hosts of healthy machines."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"])
PROGRAM = pathlib.Path(os.environ["GSWBENCH_BINARY_DIR"]) / "tests/planted_faults"


def case(number, fault, counts, *hosts):
    ranks = [{"host": f"h{rank // 2}"} for rank in range(8)]
    return {"case": number, "fault": fault, "counts": counts, "hosts": hosts, "preflight": {"ranks": ranks}}


class Scorer(unittest.TestCase):
    def score(self, cases, verdicts):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("cases", "verdicts")]
            for path, rows in zip(paths, (cases, verdicts)):
                path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            return subprocess.run([SOURCE / "tests/preflight/score_faults", *paths], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout

    def test_counts_hosts(self):
        text = self.score([case(0, "GPU 5 % slow", True, "h1"), case(1, "GPU 5 % slow", True, "h2"),
                           case(2, "link", True, "h0", "h3"), case(3, "GPU 2 % slow", False, "h0"), case(4, "none", False)],
                          [{"case": 0, "drain": ["h1"]}, {"case": 1, "drain": ["h0", "h3"]}, {"case": 2, "drain": ["h3"]},
                           {"case": 3, "drain": []}, {"case": 4, "drain": ["h2"]}])
        for line in ("| GPU 5 % slow | 2 | 100.0 % | 50.0 % | 2 |", "| link | 1 | 100.0 % | 100.0 % | 0 |",
                     "| GPU 2 % slow | 1 | 0.0 % | 0.0 % | 0 |", "| **5 % and more** | 3 | 100.0 % | 66.7 % | 2 |",
                     "4 healthy hosts: 1 drained."):
            self.assertIn(line + "\n", text)

    def test_reads_what_the_program_writes(self):
        """The first cases have a device that is 2 % slow. In a later case it is 10 % slow, by far the slowest."""
        with subprocess.Popen([PROGRAM, "--write"], stdout=subprocess.PIPE, text=True) as program:
            rows = [json.loads(next(program.stdout)) for _ in range(401)]
            program.kill()
        self.assertEqual((rows[0]["fault"], rows[0]["counts"], rows[400]["fault"]), ("GPU 2 % slow", False, "GPU 10 % slow"))
        values = rows[400]["preflight"]["classes"][0]["values"]
        slowest = min(values, key=lambda value: value["value"])
        self.assertEqual(rows[400]["hosts"], [rows[400]["preflight"]["ranks"][slowest["first"]]["host"]])


if __name__ == "__main__":
    unittest.main()
