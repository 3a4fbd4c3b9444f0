# SPDX-License-Identifier: MIT
"""Edits results. The journal or the signature must detect each edit, even if the numbers stay consistent."""
import copy
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
EDITS = 40


def ask(*words, cwd):
    done = subprocess.run([PROGRAM, *words], cwd=cwd, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def leaves(value, place=()):
    """Yields every number and text of a document with its path."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(below, (dict, list)):
            yield from leaves(below, (*place, key))
        else:
            yield (*place, key)


def change(document, place):
    for key in place[:-1]:
        document = document[key]
    value = document[place[-1]]
    document[place[-1]] = (not value if isinstance(value, bool) else value + 1 if isinstance(value, (int, float))
                           else 1.0 if value is None else value + "x")


class Tampered(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.top = pathlib.Path(cls.folder.name)
        key = shutil.which("ssh-keygen") and ["--sign", "key"]
        if key:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"], cwd=cls.top, check=True)
            (cls.top / "signers").write_text("somebody " + (cls.top / "key.pub").read_text())
        code, said = ask("run", "tiny-llama", "--ranks", "1", "--comm", "local", "--steps", "12", "--warmup", "1", "--out", "runs",
                         *(key or []), cwd=cls.top)
        assert code == 0, said
        cls.is_signed = bool(key)
        cls.run_folder = (cls.top / "runs/latest").resolve()
        cls.text = (cls.run_folder / "result.json").read_text()
        cls.document = json.loads(cls.text)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def report(self, text, journal=True, signature=False, arguments=()):
        folder = self.top / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "result.json").write_text(text)
        if journal:
            shutil.copy(self.run_folder / "run.jsonl", folder)
        if signature:
            shutil.copy(self.run_folder / "result.json.sig", folder)
        return ask("report", str(folder), *arguments, cwd=self.top)

    def forge(self):
        """Halves every time and updates each derived number, so that the document is consistent."""
        forged = copy.deepcopy(self.document)
        for step in forged["steps"]:
            for key in ("time_s", "rank0_time_s", "device_time_s"):
                step[key] = step[key] and step[key] / 2
        times = forged["result"]["step_time_s"]
        times["ci95"] = [bound / 2 for bound in times["ci95"]]
        text = json.dumps(forged)
        for _ in range(100):
            code, said = self.report(text, journal=False)
            wrong = re.search(r"(\w+) is (\S+), but the steps of the file give (\S+)", said)
            if code == 0 or not wrong:
                return text if code == 0 else None
            key, was, new = wrong.groups()
            number = re.compile(f'"{key}": ({re.escape(was[:6])}[^,}}]*)')
            if not number.search(text):
                return None
            text = number.sub(f'"{key}": {new}', text)
        return None

    def test_what_its_run_wrote_is_told_to_agree(self):
        code, said = self.report(self.text)
        self.assertEqual(code, 0, said)
        self.assertIn("source: its journal agrees; not signed", said)

    def test_each_edit_is_told_by_the_journal(self):
        places = sorted(leaves(self.document), key=str)
        for place in random.Random(37).sample(places, EDITS):
            edited = copy.deepcopy(self.document)
            change(edited, place)
            code, said = self.report(json.dumps(edited, indent=2))
            self.assertNotEqual(code, 0, f"{place}: {said[-300:]}")

    def test_a_consistent_forgery_is_told_by_its_steps(self):
        text = self.forge()
        if text is None:
            self.skipTest("the reader found something else wrong with the forgery")
        code, said = self.report(text)
        self.assertNotEqual(code, 0)
        self.assertIn("step 0 differs from the journal", said)
        code, said = self.report(text, journal=False)
        self.assertIn("source: not checked: there is no run.jsonl beside it; not signed", said)

    def test_a_signature_tells_edits_without_a_journal(self):
        if not self.is_signed:
            self.skipTest("no ssh-keygen here")
        code, said = self.report(self.text, signature=True, arguments=("--signers", "signers"))
        self.assertEqual(code, 0, said)
        self.assertIn("source: its journal agrees; signed by somebody", said)
        edited = self.text.replace('"verify": "quick"', '"verify": "full"')
        self.assertNotEqual(edited, self.text)
        code, said = self.report(edited, journal=False, signature=True)
        self.assertEqual(code, 13, said)
        self.assertIn("is no signature of this file", said)
        code, said = self.report(self.text, arguments=("--signers", "signers"))
        self.assertEqual(code, 13, said)
        self.assertIn("is not signed", said)


if __name__ == "__main__":
    unittest.main()
