# SPDX-License-Identifier: MIT
"""Compares the sm_90a SASS of the kernels that take most time with kernel_sass.txt: width of stores, accesses to local
memory, bytes in flight per thread, and instructions per element. --record rewrites the file. docs/performance.md lists
kernels that are limited by instructions. The test is skipped without a disassembler."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("GSWBENCH_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("GSWBENCH_BINARY_DIR", ROOT / "build/release"))
TABLE = ROOT / "tests/device/kernel_sass.txt"
LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*(.*?)\s*;")
# Thread instructions per second of H100 and H200: 132 SMs with 128 lanes at 1.755 GHz, the boost clock of the data
# sheet. The bandwidth of a copy is 90 % of 3.35 and of 4.8 TB/s.
ISSUED = 132 * 128 * 1.755e9
COPIES = (0.9 * 3.35e12, 0.9 * 4.8e12)


def find_tool(name):
    """Finds a tool on PATH, in a CUDA toolkit, or in a Python package that contains it."""
    places = [os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin"]
    for package, folder in (("triton", "backends/nvidia/bin"), ("nvidia", "cu13/bin")):
        found = importlib.util.find_spec(package)
        for location in found.submodule_search_locations or [] if found else []:
            places.append(f"{location}/{folder}")
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *places]))


def parse(text):
    """Returns the instructions of every function: (address, whether it is conditional, operation, operands)."""
    functions, code = {}, []
    for line in text.split("\n"):
        if "Function : " in line:
            code = functions.setdefault(line.split("Function : ")[1].strip(), [])
        elif found := LINE.search(line):
            code.append((int(found[1], 16), bool(found[2]), found[3], found[4]))
    return functions


def width(operation):
    """Returns how many bytes an access to global memory moves."""
    found = re.search(r"\.[US]?(128|64|16|8)\b", operation)
    return int(found[1]) // 8 if found else 4


def accesses(code, operation):
    return [width(op) for _, _, op, _ in code if op.split(".")[0] == operation]


def hot_loop(code):
    """Returns the innermost loop that stores most. If loops store equally much, or nothing, returns the one that loads
    most."""
    loops = []
    for address, _, operation, operands in code:
        target = re.search(r"0x([0-9a-f]+)", operands)
        if operation.startswith("BRA") and target and int(target[1], 16) < address:
            loops.append([line for line in code if int(target[1], 16) <= line[0] <= address])
    moving = [loop for loop in loops if accesses(loop, "LDG")]
    inner = [loop for loop in moving if not any(set(other) < set(loop) for other in moving)]
    return max(inner, key=lambda loop: (sum(accesses(loop, "STG")), sum(accesses(loop, "LDG"))), default=[])


def in_flight(loop):
    """Returns how many bytes a thread has in flight at most, in two iterations of a loop in which no branch is
    taken."""
    waited, most = {}, 0
    for address, conditional, operation, operands in loop + loop:
        parts = operands.split(",")
        stores = operation.startswith(("ST", "RED", "ATOM", "BRA", "ISETP", "FSETP"))
        for register in re.findall(r"\bR(\d+)", operands if stores else ",".join(parts[1:])):
            waited = {at: load for at, load in waited.items() if int(register) not in load}
        if operation.startswith("LDG"):
            first = int(re.match(r"R(\d+)", parts[0])[1]) if parts[0].startswith("R") and parts[0] != "RZ" else 0
            waited[address] = range(first, first + max(1, width(operation) // 4))
        if operation == "BRA" and not conditional and "P" not in operands:
            waited = {}
        most = max(most, sum(4 * len(load) for load in waited.values()))
    return most


def measure(code, elements):
    """Returns, for the loop that moves most data: instructions per element, the widest store, the number of stores
    below 16 bytes, and bytes in flight. The last value is the number of local memory accesses in the whole kernel."""
    loop = hot_loop(code)
    stores = accesses(loop, "STG")
    local = sum(op.split(".")[0] in ("LDL", "STL", "LD", "ST") for _, _, op, _ in code)
    return [round(len(loop) / elements, 1), max(stores, default=0), sum(bytes < 16 for bytes in stores),
            in_flight(loop), local]


def read_table():
    """Yields the rows of the table: label, file, kernel, elements per thread and iteration, bytes per element, measured
    values."""
    for line in TABLE.read_text().split("\n"):
        if line and not line.startswith("#"):
            label, file, kernel, *numbers = [part.strip() for part in line.split(" | ")]
            yield label, file, kernel, int(numbers[0]), float(numbers[1]), [float(number) for number in numbers[2:]]


def kernels_of(tool, file):
    objects = BUILD / f"kernels/CMakeFiles/gswbench_kernels.dir/{file}.cu.o"
    text = subprocess.run([tool, "-sass", "-arch", "sm_90a", objects], check=True, text=True, stdout=subprocess.PIPE).stdout
    functions = parse(text)
    names = subprocess.run(["c++filt"], input="\n".join(functions), check=True, text=True, stdout=subprocess.PIPE).stdout
    plain = [re.sub(r"^void ", "", re.sub(r"\([a-z_]*_args.*", "", name.replace("(anonymous namespace)::", "")))
             for name in names.split("\n")]
    return dict(zip(plain, functions.values()))


def measure_all(tool):
    files, found = {}, {}
    for label, file, kernel, elements, _, _ in read_table():
        files[file] = files.get(file) or kernels_of(tool, file)
        found[label] = measure(files[file][kernel], elements)
    return found


def worse(now, before):
    """Describes the values that are worse than recorded. The limits allow for differences between compiler versions."""
    names = ("instructions an element", "bytes of the widest store", "narrower stores", "bytes in flight", "local accesses")
    limits = (now[0] > 1.1 * before[0], now[1] < before[1], now[2] > before[2], now[3] < 0.8 * before[3], now[4] > before[4])
    return [f"{now[i]:g} {names[i]}, recorded are {before[i]:g}" for i in range(len(names)) if limits[i]]


def page_rows():
    """Yields the rows of the table in docs/performance.md: kernels that may not reach the bandwidth of a copy, because
    they need too many instructions."""
    for label, _, _, _, moved, (instructions, *_) in read_table():
        busy = [instructions * copy / moved / ISSUED for copy in COPIES]
        shares = [min(0.92, 0.75 / part) for part in busy]
        if min(shares) < 0.92:
            yield (f"| {label} | {moved:g} | {instructions:g} | {busy[0]:.0%} | {busy[1]:.0%} | {shares[0]:.0%} | "
                   f"{shares[1]:.0%} |")


EXAMPLE = """
        Function : example
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/                   LDG.E.64 R8, desc[UR4][R2.64+0x10] ;
        /*0030*/                   FADD R10, R9, 1 ;
        /*0040*/                   FADD R11, R5, 1 ;
        /*0050*/                   STG.E.64 desc[UR4][R2.64], R10 ;
        /*0060*/              @!P0 BRA 0x10 ;
        /*0070*/                   STL [R1], R4 ;
        /*0080*/                   EXIT ;
"""


class Reading(unittest.TestCase):
    def test_a_loop_is_measured(self):
        code = parse(EXAMPLE)["example"]
        self.assertEqual(measure(code, 2), [3.0, 8, 1, 24, 1])

    def test_what_is_worse_is_named(self):
        before = [10.0, 16, 0, 128, 0]
        self.assertEqual(worse([10.9, 16, 0, 112, 0], before), [])
        self.assertEqual(len(worse([11.1, 4, 32, 48, 5], before)), 5)

    def test_the_page_has_the_table(self):
        rows = list(page_rows())
        self.assertGreater(len(rows), 0)
        self.assertIn("|\n" + "\n".join(rows) + "\n\n", (ROOT / "docs/performance.md").read_text())


def main():
    tool = find_tool("cuobjdump")
    if not (BUILD / "kernels/CMakeFiles/gswbench_kernels.dir/norm.cu.o.report").exists() or not tool:
        print("skipped: " + ("this build has no CUDA" if tool else "there is no cuobjdump"))
        return 77
    found = measure_all(tool)
    if "--record" in sys.argv:
        kept = [line for line in TABLE.read_text().split("\n") if line.startswith("#")]
        for label, file, kernel, elements, moved, _ in read_table():
            kept.append(" | ".join([label, file, kernel, str(elements), f"{moved:g}", *(f"{n:g}" for n in found[label])]))
        TABLE.write_text("\n".join(kept) + "\n")
        print("\n".join(page_rows()))
        return 0
    wrong = [f"{label}: {text}" for label, _, _, _, _, before in read_table() for text in worse(found[label], before)]
    print("\n".join(wrong) or f"{len(found)} kernels as recorded")
    return 1 if wrong else 0


if __name__ == "__main__":
    tested = unittest.main(argv=sys.argv[:1], exit=False).result if "--record" not in sys.argv else None
    sys.exit(1 if tested and not tested.wasSuccessful() else main())
