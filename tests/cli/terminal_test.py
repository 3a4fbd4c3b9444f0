# SPDX-License-Identifier: MIT
"""Tests the progress output, which is printed only if the output is a terminal."""
import json
import os
import pathlib
import pty
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
FOLDER = tempfile.TemporaryDirectory()
TRAINING = ("run --config tiny-llama --ranks 2 --comm local --backend host --steps 12 --warmup 2 --layers 1"
            " --set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16 --set model.ffn=32"
            f" --set model.vocab=64 --set train.sequence=16 --out {FOLDER.name}").split()
SWEEP = "predict --config llama3.1-8b --ranks 8 --sweep".split()


def on_terminal(arguments, press_when=None, **variables):
    """Runs the program on a terminal. Returns its output and exit code. If press_when is given, presses Ctrl-C once
    this text appears."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update({"TERM": "xterm", **variables})
        os.execv(PROGRAM, [PROGRAM, *arguments])
    text = ""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:    # Linux reports an error when the last process has closed the terminal
            break
        text += part.decode()
        if press_when is not None and press_when in text:
            os.write(terminal, b"\x03")
            press_when = None
    return text, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Terminal(unittest.TestCase):
    def test_a_sweep_shows_how_far_it_is_and_the_best_so_far_and_takes_the_line_away(self):
        text, code = on_terminal(SWEEP)
        self.assertEqual(code, 0)
        self.assertRegex(text, "\r\033\\[Klayouts predicted: [0-9]+; best so far [0-9.]+ s: [a-z]+ ")
        self.assertRegex(text, "\r\033\\[Kconfig +llama3.1-8b at 8 ranks")

    def test_a_sweep_that_is_interrupted_lists_the_best_so_far(self):
        text, code = on_terminal(SWEEP, press_when="best so far")
        self.assertEqual(code, 12)
        self.assertRegex(text, "\n1 +[0-9]+ +[0-9]+ +[a-z]+ +[0-9.]+ s +[0-9]+ +[0-9.]+ %")
        self.assertIn("stopped, others may be faster", " ".join(text.split()))
        self.assertIn("gswbench: stopped by SIGINT: the list has the best of the ", text)

    def test_a_sweep_that_is_interrupted_early_says_that_nothing_is_known(self):
        text, code = on_terminal(SWEEP, press_when="layouts predicted: 0")
        self.assertEqual(code, 12)
        self.assertIn("gswbench: stopped by SIGINT before any layout was predicted", text)
        self.assertNotIn("config ", text)

    def test_rows_are_counted_down_and_each_is_printed_on_a_line_of_its_own(self):
        rows = pathlib.Path(FOLDER.name) / "rows.ini"
        rows.write_text("[model]\npreset = tiny-llama\n[hardware]\nprofile = h100-sxm\n[parallel]\ndp = auto\n"
                        "[when ranks=1]\npublished.step_seconds = 1\n[when ranks=2]\npublished.step_seconds = 1\n")
        text, code = on_terminal(["predict", "--config", str(rows), "--no-range"])
        self.assertEqual(code, 0)
        self.assertRegex(text, "\r\033\\[Krows: 1 of 2, [0-9]+ s left; rows\r\033\\[K +2  bf16 ")

    def test_the_verdict_is_coloured_on_a_terminal(self):
        text, _ = on_terminal(TRAINING)
        self.assertRegex(text, "RESULT \033\\[1;(32mVALID|33mDEGRADED)\033\\[0m +PROXY of 1 layer, 12 steps")

    def test_no_color_and_a_dumb_terminal_get_plain_words(self):
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            text, _ = on_terminal(TRAINING, **variables)
            self.assertRegex(text, "RESULT (VALID|DEGRADED) +PROXY")
            self.assertNotIn("\033[1", text)

    def test_a_pipe_gets_neither_colours_nor_a_live_line(self):
        for arguments in (SWEEP, TRAINING, [*TRAINING, "--quiet"]):
            run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env={**os.environ, "TERM": "xterm"})
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertNotIn("\033", run.stdout)
            self.assertNotIn("\r", run.stdout)

    def test_what_a_launcher_started_has_no_terminal_of_its_own(self):
        text, _ = on_terminal(SWEEP, OMPI_COMM_WORLD_SIZE="1", OMPI_COMM_WORLD_RANK="0")
        self.assertRegex(text, "^config +llama3.1-8b at 8 ranks")
        self.assertNotIn("\033", text)

    def test_steps_count_down_on_standard_error_where_they_are_not_printed(self):
        text, code = on_terminal([*TRAINING, "--json"])
        self.assertEqual(code, 0)
        self.assertRegex(text, "steps: [0-9]+ of 12, [0-9]+ s left; [0-9.]+ s/step\r\033\\[K")
        json.loads(text[text.rindex("\033[K") + 3:])


if __name__ == "__main__":
    unittest.main()
