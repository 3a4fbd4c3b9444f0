# SPDX-License-Identifier: MIT
"""Runs each row of inputs.txt, which has command lines that people type. Checks the exit code, and the texts that the
answer must contain or must not contain."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
TABLE = pathlib.Path(__file__).parent / "inputs.txt"
FILES = {
    "crlf.ini": "[model]\r\npreset = tiny-llama\r\n[train]\r\nsequence = 128\r\n",
    "bom.ini": "\ufeff[model]\npreset = tiny-llama\n[train]\nsequence = 128\n",
    "empty.ini": "",
    "binary.ini": "\0\1\2\3",
    "job.yaml": "model:\n  layers: 4\ntrain:\n  sequence: 128\n",
    "config.json": '{"model_type": "llama", "hidden_act": "silu", "hidden_size": 256, "intermediate_size": 512,\n'
                   ' "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 512}\n',
    "job.toml": '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 8192\n',
    "megatron.sh": "#!/bin/bash\ntorchrun pretrain_gpt.py --num-layers 2 --hidden-size 256\n",
    "file.txt": "text\n",
    "word.ini": "[model]\nlayers = many\n",
    "comment.ini": "[model]\nlayers = 4 # four\n",
    "section.ini": "[modle]\nlayers = 4\n",
    "key.ini": "[model]\nlayer = 4\n",
    "none.ini": "layers = 4\n",
    "equals.ini": "[model]\nlayers 4\n",
    "three.ini": "[model]\npreset = llama3.1-8b\nkv_heads = 3\n",
    "empty.json": "{}\n",
    "large.ini": "[model]\npreset = llama3.1-8b\n[hardware]\nprofile = h100-sxm\n",
}


def rows():
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            code, words, texts = (part.strip() for part in line.split("|", 2))
            yield number, int(code), words, [text for text in re.split(r" / ", texts) if text]


def answer(words, folder):
    environment = {**os.environ, "COLUMNS": "80", "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    result = subprocess.run([PROGRAM, *shlex.split(words)], cwd=folder, capture_output=True, timeout=300, env=environment,
                            stdin=subprocess.DEVNULL)
    errors = [line for line in result.stderr.splitlines() if not line.startswith(b"E-CONFIG ")]
    return result.returncode, (result.stdout + result.stderr).decode(errors="replace"), len(errors)


def code_of_json(words, folder):
    """Returns the exit code of a check or predict with --json; None for other commands, which have other files to write
    or no --json."""
    is_read = re.match("(check|predict) ", words) and not re.search("--(json|all|values|trace)| -o", words)
    return answer(words.replace(" ", " --json ", 1), folder)[0] if is_read else None


class Inputs(unittest.TestCase):
    def test_inputs(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "folder").mkdir()
            for file, text in FILES.items():
                (folder / file).write_bytes(text.encode())
            (folder / "utf16.ini").write_bytes("[model]\npreset = tiny-llama\n".encode("utf-16"))
            wrong = []
            for number, code, words, texts in rows():
                found, text, errors = answer(words, folder)
                flat = " ".join(text.split())
                problems = [f"exit code {found}, not {code}"] if found != code else []
                problems += [f"{errors} errors"] if code in (2, 3, 4) and errors > 2 else []
                problems += [f"no {t!r}" for t in texts if not t.startswith("!") and " ".join(t.split()) not in flat]
                problems += [f"has {t[1:]!r}" for t in texts if t.startswith("!") and t[1:] in text]
                problems += ["another exit code with --json"] if code_of_json(words, folder) not in (None, code) else []
                # Errors must be whole lines without control characters.
                problems += ["is garbled"] if re.search(r"\?  |[\0-\x08\x0b-\x1f]", text) else []
                if problems:
                    wrong.append(f"inputs.txt:{number}: gswbench {words}: {'; '.join(problems)}\n    {flat[:300]}")
            self.assertEqual(wrong, [], f"{len(wrong)} answers differ:\n" + "\n".join(wrong))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
