# SPDX-License-Identifier: MIT
"""On a CPU that lacks instructions of the build, the program must exit with a message instead of SIGILL. The test
patches a copy of the program to require every instruction set that it knows; no CPU has all of them."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(os.environ["GSWBENCH"])
MARK = b"gswbench processor:".ljust(24, b"\0")
FEATURES = 35

with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder) / "gswbench"
    program = PROGRAM.read_bytes()
    assert program.count(MARK) == 1, program.count(MARK)
    place = program.index(MARK) + len(MARK)
    copy.write_bytes(program[:place] + struct.pack("<Q", (1 << FEATURES) - 1) + program[place + 8:])
    shutil.copymode(PROGRAM, copy)
    for words in (["--version"], ["run", "tiny-llama", "--backend", "host"], ["plan", "tiny-llama"]):
        done = subprocess.run([copy, *words], capture_output=True, text=True, check=False, timeout=60)
        if done.returncode == 0 and words == ["--version"]:
            print("this processor has all instructions that the program knows of")
            sys.exit(77)
        assert done.returncode == 4, (words, done)
        assert done.stdout == "", done.stdout
        lines = done.stderr.splitlines()
        assert len(lines) == 1, lines
        assert lines[0].startswith("gswbench: this gswbench was compiled for a processor with instructions that this one lacks ("), lines
        assert lines[0].endswith("): build it on this kind of host, or for any with cmake -D GSWBENCH_NATIVE=OFF"), lines
