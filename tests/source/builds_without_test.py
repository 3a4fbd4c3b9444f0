#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The build without each optional library alone, and without all of them: tests/source/builds_without_test.py [ROOT]

Every variant is configured with the library hidden. Then each C file of src that the library could touch is compiled:
no file may read a hidden header, even where this machine has it, and no file may need a function that only a left-out
file defines. The variant without all of them is compiled and linked as a whole, with its tests."""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
# Library: what hides it, and its headers.
PARTS = {
    "MPI": ({"GSWBENCH_MPI": "OFF"}, r"mpi\.h"),
    "CUDA": ({"GSWBENCH_CUDA": "OFF"}, r"(cuda|cublas|driver_types|nccl|cudnn|cupti).*\.h"),
    "NCCL": ({"CMAKE_DISABLE_FIND_PACKAGE_NCCL": "ON"}, r"nccl.*\.h"),
    "cuDNN": ({"CMAKE_DISABLE_FIND_PACKAGE_CUDNN": "ON"}, r"cudnn.*\.h"),
    "NVTX": ({"GSWBENCH_NVTX": "OFF"}, r"nvToolsExt.*\.h"),
    "NVML": ({"NVML_INCLUDE_DIR": "OFF"}, r"nvml\.h"),
    "CUPTI": ({"CUPTI_INCLUDE_DIR": "OFF"}, r"cupti.*\.h"),
}
MACROS = re.compile(rb"GSWBENCH_(MPI|CUDA|NCCL)\b|__has_include")
findings = []


def run(command, folder):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Variant:
    def __init__(self, name, hidden, folder):
        self.name, self.folder = name, os.path.join(folder, name.replace(" ", "_"))
        self.hidden = re.compile("|".join(f"({PARTS[part][1]})" for part in hidden)) if hidden else None
        options = {"CMAKE_BUILD_TYPE": "Debug", "CMAKE_C_FLAGS_DEBUG": "-O0", "GSWBENCH_WERROR": "ON",
                   "GSWBENCH_CUDA_ARCHITECTURES": "90a-real"}
        for part in hidden:
            options.update(PARTS[part][0])
        self.configured = run(["cmake", "-S", ROOT, "-B", self.folder, "-G", "Ninja", "--no-warn-unused-cli",
                               *(f"-D{key}={value}" for key, value in options.items())], folder)
        if self.configured.returncode:
            findings.append(f"without {name}: cmake fails\n{self.configured.stdout[-2000:]}")
        self.commands, self.known = {}, {}
        if not self.configured.returncode:
            with open(os.path.join(self.folder, "compile_commands.json")) as file:
                for entry in json.load(file):
                    path = os.path.relpath(entry["file"], ROOT)
                    if path.startswith(("src/", "tests/", "bench/")) and path.endswith(".c"):
                        self.commands[path] = entry["command"]

    def compile(self, path, is_object):
        """Returns what the file reads; None where it does not compile."""
        name = os.path.join(self.folder, path.replace("/", "-"))
        command = shlex.split(self.commands[path])
        at = command.index("-o")
        del command[at:at + 2]
        command += ["-MD", "-MF", name + ".d", *(["-o", name + ".o"] if is_object else ["-fsyntax-only"])]
        made = run(command, self.folder)
        if made.returncode:
            findings.append(f"without {self.name}: {path} does not compile\n{made.stdout[:2000]}")
            return None
        with open(name + ".d") as file:
            reads = file.read().replace("\\\n", " ").split()[1:]
        reads = [os.path.normpath(os.path.join(self.folder, header)) for header in reads]
        for header in reads:
            if self.hidden and self.hidden.fullmatch(os.path.basename(header)) and not header.startswith(ROOT + "/"):
                findings.append(f"without {self.name}: {path} reads {header}")
        return reads

    def symbols(self, path):
        """Returns the functions and objects that the compiled file defines, and those that it needs."""
        if path in self.known:
            return self.known[path]
        lines = run(["nm", "-P", os.path.join(self.folder, path.replace("/", "-")) + ".o"], self.folder).stdout
        names = [line.split()[:2] for line in lines.splitlines()]
        self.known[path] = ({name for name, kind in names if kind in "TDBRC"},
                            {name for name, kind in names if kind == "U"})
        return self.known[path]


def main():
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        hidden = {"everything optional": list(PARTS), **{part: [part] for part in PARTS}, "nothing": []}
        variants = list(pool.map(lambda name: Variant(name, hidden[name], folder), hidden))
        bare, whole = variants[0], variants[-1]
        if findings:
            return

        # Files outside the folders of libraries are compiled once, for the build without any of them.
        paths = [path for path in bare.commands if path.startswith("src/")]
        reads = dict(zip(paths, pool.map(lambda path: bare.compile(path, True), paths)))
        others = [path for path in bare.commands if not path.startswith("src/")]
        list(pool.map(lambda path: bare.compile(path, False), others))
        texts = {}

        def depends(path):    # on which libraries there are
            for file in reads.get(path) or []:
                if file not in texts:
                    with open(file, "rb") as content:
                        texts[file] = file.startswith(ROOT) and bool(MACROS.search(content.read()))
                if texts[file]:
                    return True
            return False

        compiled = {}    # (variant, path): its symbols
        for variant in variants:
            own = [path for path in variant.commands if path.startswith("src/")
                   and (path not in bare.commands or depends(path))]
            if variant is not bare:
                list(pool.map(lambda path: variant.compile(path, True), own))
            if findings:
                return
            for path in variant.commands:
                if path.startswith("src/"):
                    compiled[variant, path] = (variant if path in own else bare).symbols(path)
        defined = {name: path for path in whole.commands if path.startswith("src/")
                   for name in compiled[whole, path][0]}
        for variant in variants:
            # The module of MPI and main are linked by themselves and find all of this in the program.
            here = set().union(*(symbols[0] for (of, _), symbols in compiled.items() if of is variant))
            for (of, path), (_, needed) in compiled.items():
                for name in needed - here if of is variant else ():
                    if name in defined:
                        findings.append(f"without {variant.name}: {path} needs {name} of {defined[name]}, left out")
            absent = len([path for path in whole.commands if path not in variant.commands])
            print(f"without {variant.name}: {absent} files left out")
        linked = run(["cmake", "--build", bare.folder, "--target", "gswbench"], folder)
        if linked.returncode:
            findings.append(f"without {bare.name}: the program does not link\n{linked.stdout[-2000:]}")


main()
for finding in findings:
    print(finding)
sys.exit(1 if findings else 0)
