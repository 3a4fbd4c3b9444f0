#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks builds without each optional library, and without all of them: builds_without_test.py [ROOT]

Each variant is configured with the library hidden. Without all of them, the program is built and linked. In the
other variants, each C file of src that the library can affect is compiled. No file may read a hidden header, even if
this machine has it, and no file may need a function that only an omitted file defines."""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
# For each library, the CMake settings that hide it, and a pattern of its headers.
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
                   "GSWBENCH_CUDA_ARCHITECTURES": "90a-real", "GSWBENCH_TESTS": "OFF"}
        for part in hidden:
            options.update(PARTS[part][0])
        self.configured = run(["cmake", "-S", ROOT, "-B", self.folder, "-G", "Ninja", "--no-warn-unused-cli",
                               *(f"-D{key}={value}" for key, value in options.items())], folder)
        if self.configured.returncode:
            findings.append(f"without {name}: cmake fails\n{self.configured.stdout[-2000:]}")
        self.commands, self.objects, self.reads = {}, {}, {}
        if not self.configured.returncode:
            with open(os.path.join(self.folder, "compile_commands.json")) as file:
                for entry in json.load(file):
                    path = os.path.relpath(entry["file"], ROOT)
                    if path.startswith("src/") and path.endswith(".c"):
                        self.commands[path] = entry["command"]

    def compile(self, path):
        """Compiles a file and returns it with the headers that it reads."""
        name = os.path.join(self.folder, path.replace("/", "-"))
        command = shlex.split(self.commands[path])
        at = command.index("-o")
        command[at + 1] = name + ".o"
        made = run(command + ["-MD", "-MF", name + ".d"], self.folder)
        if made.returncode:
            findings.append(f"without {self.name}: {path} does not compile\n{made.stdout[:2000]}")
            return
        with open(name + ".d") as file:
            self.check(path, file.read().replace("\\\n", " ").split()[1:])
        self.objects[path] = name + ".o"

    def build(self):
        """Builds and links the program."""
        made = run(["cmake", "--build", self.folder, "--target", "gswbench"], self.folder)
        if made.returncode:
            findings.append(f"without {self.name}: the program does not build\n{made.stdout[-2000:]}")
            return
        for block in run(["ninja", "-t", "deps"], self.folder).stdout.split("\n\n"):
            target, *reads = block.splitlines() or [""]
            path = re.sub(r"CMakeFiles/\w+\.dir/|\.o: .*", "", target)
            if path in self.commands:
                self.objects[path] = os.path.join(self.folder, target.split(":")[0])
                self.check(path, [line.strip() for line in reads])

    def check(self, path, reads):
        self.reads[path] = [os.path.normpath(os.path.join(self.folder, header)) for header in reads]
        for header in self.reads[path]:
            if self.hidden and self.hidden.fullmatch(os.path.basename(header)) and not header.startswith(ROOT + "/"):
                findings.append(f"without {self.name}: {path} reads {header}")

    def symbols(self):
        """Returns the symbols that every object defines and needs."""
        paths = {self.objects[path]: path for path in self.commands if path in self.objects}
        found = {path: (set(), set()) for path in paths.values()}
        for line in run(["nm", "-P", "-A", *paths], self.folder).stdout.splitlines():
            file, name, kind = line.split()[:3]
            if kind in "TDBRCU":
                found[paths[file[:-1]]][kind == "U"].add(name)
        return found


def depends(reads, texts):
    """Returns whether one of these project files tests for optional libraries."""
    for file in reads:
        if file not in texts:
            with open(file, "rb") as content:
                texts[file] = file.startswith(ROOT) and bool(MACROS.search(content.read()))
        if texts[file]:
            return True
    return False


def main():
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        hidden = {"everything optional": list(PARTS), **{part: [part] for part in PARTS}, "nothing": []}
        variants = list(pool.map(lambda name: Variant(name, hidden[name], folder), hidden))
        bare, whole = variants[0], variants[-1]
        if not findings:
            bare.build()
        texts, jobs = {}, []
        for variant in variants[1:]:
            for path in variant.commands:
                if path in bare.objects and not depends(bare.reads[path], texts):
                    variant.objects[path] = bare.objects[path]
                else:
                    jobs.append((variant, path))
        if not findings:
            list(pool.map(lambda job: job[0].compile(job[1]), jobs))
        if findings:
            return
        symbols = {variant: variant.symbols() for variant in variants}
        home = {name: path for path, (defined, _) in symbols[whole].items() for name in defined}
        for variant in variants:
            here = set().union(*(defined for defined, _ in symbols[variant].values()))
            for path, (_, needed) in symbols[variant].items():
                for name in needed - here:
                    if name in home:
                        findings.append(f"without {variant.name}: {path} needs {name} of {home[name]}, left out")
            print(f"without {variant.name}: {len(whole.commands) - len(variant.commands)} files left out")


main()
for finding in findings:
    print(finding)
sys.exit(1 if findings else 0)
