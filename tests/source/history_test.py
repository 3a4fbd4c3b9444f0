# SPDX-License-Identifier: MIT
"""Checks that commit messages have the form of CONTRIBUTING.md: `area: imperative`, and a body that says why."""
import os
import re
import subprocess
import sys
import unittest

ROOT = os.environ["GSWBENCH_SOURCE_DIR"]
BASE = "aab4bd43"    # the first commit under this rule
SUBJECT = re.compile(r"[A-Za-z0-9_./-]+(, [A-Za-z0-9_./-]+)*: [a-z`].*")


def findings(commits):
    """Returns the faults of a list of commits (hash, subject, body), one line each."""
    wrong = []
    for name, subject, body in commits:
        if len(subject) > 60:
            wrong.append(f"{name}: the subject has {len(subject)} characters, at most 60 are allowed: {subject}")
        if not SUBJECT.fullmatch(subject):
            wrong.append(f"{name}: the subject is not `area: imperative`: {subject}")
        if not body.strip():
            wrong.append(f"{name}: the message has no body that says why: {subject}")
    return wrong


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


class History(unittest.TestCase):
    def test_messages_have_the_form(self):
        if git("merge-base", "--is-ancestor", BASE, "HEAD").returncode:
            print("skipped: this is no clone with the history of the project")
            sys.exit(77)
        log = git("log", "--no-merges", "--format=%h%x00%s%x00%b%x01", f"{BASE}..HEAD").stdout
        commits = [entry.strip("\n").split("\0") for entry in log.split("\1") if entry.strip("\n")]
        self.assertEqual(findings(commits), [])

    def test_faults_are_found(self):
        self.assertEqual(findings([("a", "comm: build NCCL by folder", "It failed.")]), [])
        self.assertIn("at most 60", findings([("b", "comm: " + "x" * 55, "Why.")])[0])
        self.assertIn("not `area", findings([("c", "The atlas by today's prices", "Why.")])[0])
        self.assertIn("no body", findings([("d", "comm: build NCCL by folder", "\n")])[0])


if __name__ == "__main__":
    unittest.main()
