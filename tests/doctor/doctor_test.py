# SPDX-License-Identifier: MIT
"""Tests `gswbench doctor` with fake driver and CUDA libraries. In each test, one library is missing, old or broken."""
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["GSWBENCH"]
HAS_CUDA = "CUDA" in subprocess.run([PROGRAM, "--version", "--verbose"], capture_output=True, text=True).stdout
CUDA = int(next((line.split()[-1] for line in subprocess.run(
    [PROGRAM, "--version", "--verbose"], capture_output=True, text=True).stdout.splitlines() if "CUDA" in line), "13"))

DRIVER = """
#include <stddef.h>
#include <string.h>
int cuInit(unsigned f) {{ (void)f; return {start}; }}
int cuDriverGetVersion(int *v) {{ *v = {version}; return 0; }}
int cuDeviceGetCount(int *n) {{ *n = {count}; return 0; }}
int cuDeviceGetName(char *t, int n, int d) {{ (void)n; (void)d; strcpy(t, "NVIDIA H100 80GB HBM3"); return 0; }}
int cuDeviceTotalMem_v2(size_t *b, int d) {{ (void)d; *b = 80ul << 30; return 0; }}
int cuDeviceGetAttribute(int *v, int a, int d) {{ *v = a == 75 ? (d == {old} ? 7 : 9) : a == 20 && d == {closed} ? 2 : 0; return 0; }}
int cuDeviceCanAccessPeer(int *v, int d, int p) {{ *v = d + p != {apart}; return 0; }}
"""
NVML = """
#include <string.h>
unsigned nvmlInit_v2(void) {{ return {start}; }}
unsigned nvmlSystemGetDriverVersion(char *t, unsigned n) {{ (void)n; strcpy(t, "580.65.06"); return 0; }}
const char *nvmlErrorString(unsigned c) {{ (void)c; return "Driver/library version mismatch"; }}
"""
RETURNED = "#include <stddef.h>\nsize_t {function}(void) {{ return {version}; }}\n"
STORED = "int {function}(int *v) {{ *v = {version}; return 0; }}\n"


def host(folder, **changes):
    """Compiles the libraries of a host with two H100. `changes` replaces values that they return; files in its list
    "broken" get invalid content."""
    driver = dict(start=0, version=CUDA * 1000, count=2, old=-1, closed=-1, apart=-1)
    parts = {
        "libcuda.so.1": DRIVER.format(**driver | (changes.get("driver") or {})),
        "libnvidia-ml.so.1": NVML.format(**dict(start=0) | (changes.get("nvml") or {})),
        f"libcublasLt.so.{CUDA}": RETURNED.format(function="cublasLtGetVersion", version=130002),
        "libnccl.so.2": STORED.format(function=changes.get("function", "ncclGetVersion"), version=changes.get("nccl", 22803)),
        "libcudnn.so.9": RETURNED.format(function="cudnnGetVersion", version=changes.get("cudnn", 91301)),
        f"libcupti.so.{CUDA}": STORED.format(function="cuptiGetVersion", version=28),
    }
    for name, code in parts.items():
        if name in changes.get("broken", ()):
            (folder / name).write_text("not a library\n")
        else:
            source = folder / (name + ".c")
            source.write_text(code)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / name, source], check=True)


def ask(folder, **environment):
    result = subprocess.run([PROGRAM, "doctor", "--json"], capture_output=True, text=True, timeout=120,
                            env=os.environ | {"LD_LIBRARY_PATH": str(folder)} | environment)
    return result.returncode, json.loads(result.stdout)


class Doctor(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def expect(self, code, name, state, found, remedy="", **changes):
        """Runs doctor on a host with these changes. Expects one line with this name and state that contains the texts,
        and the exit code."""
        host(self.folder, **changes)
        exit_code, answer = ask(self.folder)
        lines = [line for line in answer["checks"] if line["name"] == name and line["state"] == state]
        self.assertEqual(len(lines), 1, answer["checks"])
        self.assertIn(found, lines[0]["found"])
        self.assertIn(remedy, lines[0]["remedy"])
        self.assertNotIn("install ", lines[0]["found"])    # this advice belongs into the remedy
        if HAS_CUDA:
            self.assertEqual(exit_code, code, answer["checks"])

    def test_whole_host(self):
        host(self.folder)
        code, answer = ask(self.folder)
        found = {line["name"]: (line["state"], line["found"]) for line in answer["checks"]}
        self.assertEqual(answer["gpus"], 2)
        self.assertEqual(found["gpus"], ("ok", "2 x NVIDIA H100 80GB HBM3, 80.0 GiB, compute capability 9.0"))
        self.assertEqual(found["peers"], ("ok", "1 of 1 pairs of GPUs reach each other's memory"))
        self.assertEqual(found["nvml"], ("ok", "NVML of driver 580.65.06"))
        if HAS_CUDA:
            self.assertEqual(found["driver"], ("ok", f"supports CUDA {CUDA}.0"))
            self.assertEqual(found["nccl"], ("ok", "2.28.3"))
            self.assertEqual(found["cublaslt"], ("ok", "13.0.2"))
            self.assertEqual(found["cudnn"], ("ok", "9.13.1"))
            self.assertEqual(code, 0)
        else:
            self.assertEqual(found["driver"][0], "wrong")
            self.assertEqual(code, 4)

    @unittest.skipIf(os.path.exists("/proc/driver/nvidia"), "this machine has a driver")
    def test_no_driver(self):
        (self.folder / "libcuda.so.1").write_text("not a library\n")
        code, answer = ask(self.folder)
        driver = next(line for line in answer["checks"] if line["name"] == "driver")
        self.assertEqual((driver["state"], code), ("absent", 0))
        self.assertIn("no NVIDIA driver", driver["found"])

    def test_faults_of_the_driver(self):
        for row in (
                (4, "gpus", "wrong", "the driver shows no GPU", "--gres=gpu", {"start": 100}),
                (4, "gpus", "wrong", "NVSwitch fabric", "nvidia-fabricmanager", {"start": 802}),
                (4, "gpus", "wrong", "different versions", "reboot", {"start": 803}),
                (4, "gpus", "wrong", "GPU 1 has compute capability 7.0", "8.0", {"old": 1}),
                (4, "gpus", "wrong", "GPU 0 is in the compute mode PROHIBITED", "nvidia-smi -i 0 -c DEFAULT", {"closed": 0}),
                (0, "peers", "warning", "0 of 1 pairs of GPUs reach each other's memory, not 0 and 1", "nvidia-smi topo",
                 {"apart": 1})):
            with self.subTest(row[3]):
                self.expect(*row[:5], driver=row[5])

    def test_faults_of_nvml(self):
        self.expect(4, "nvml", "wrong", "Driver/library version mismatch", "reboot", nvml={"start": 18})
        self.expect(0, "nvml", "warning", "cannot be loaded", "NVIDIA_DRIVER_CAPABILITIES", broken=("libnvidia-ml.so.1",))

    @unittest.skipUnless(HAS_CUDA, "built without CUDA")
    def test_faults_of_cuda_libraries(self):
        self.expect(4, "driver", "wrong", f"supports CUDA {CUDA - 1}.0", "update the driver", driver={"version": (CUDA - 1) * 1000})
        self.expect(4, "nccl", "wrong", "version 2.16.5, 2.17.0 or newer is needed", "libnccl2", nccl=21605)
        self.expect(4, "nccl", "wrong", "libnccl.so.2 has no ncclGetVersion", "apt-get install libnccl2", function="other")
        for code, name, state, library, remedy in (
                (4, "nccl", "wrong", "libnccl.so.2", "apt-get install libnccl2"),
                (4, "cublaslt", "wrong", f"libcublasLt.so.{CUDA}", "LD_LIBRARY_PATH"),
                (0, "cudnn", "warning", "libcudnn.so.9", "slower kernels"),
                (0, "cupti", "warning", f"libcupti.so.{CUDA}", "CUDA graphs")):
            with self.subTest(library):
                self.expect(code, name, state, library, remedy, broken=(library,))

    def test_mpirun_of_another_version(self):
        (self.folder / "mpirun").write_text("#!/bin/sh\necho 'mpirun (Open MPI) 9.0.1'\n")
        (self.folder / "mpirun").chmod(0o755)
        _, answer = ask(self.folder, PATH=f"{self.folder}:{os.environ['PATH']}")
        lines = {line["name"]: line for line in answer["checks"]}
        if "mpirun" not in lines or not lines["mpi"]["found"].startswith("Open MPI"):
            self.skipTest("built without Open MPI")
        self.assertEqual(lines["mpirun"]["state"], "wrong")
        self.assertIn("9.0.1, but ranks load Open MPI", lines["mpirun"]["found"])

    @unittest.skipUnless(os.geteuid() == 0, "another user than root")
    def test_mpirun_refuses_root_without_both_variables(self):
        library = {line["name"]: line for line in ask(self.folder)[1]["checks"]}["mpi"]["found"]
        if not library.startswith("Open MPI v"):
            self.skipTest("no Open MPI")
        (self.folder / "mpirun").write_text(f"#!/bin/sh\necho 'mpirun (Open MPI) {library[10:]}'\n")
        (self.folder / "mpirun").chmod(0o755)
        path = f"{self.folder}:{os.environ['PATH']}"
        for confirmed, state in ((None, "warning"), ("1", "ok")):
            names = {"OMPI_ALLOW_RUN_AS_ROOT": "1"} | ({"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": confirmed} if confirmed else {})
            os.environ.pop("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", None)
            line = next(line for line in ask(self.folder, PATH=path, **names)[1]["checks"] if line["name"] == "mpirun")
            self.assertEqual(line["state"], state, line)

    def test_mpirun_that_does_not_end(self):
        """It may print for ever, or close its output and go on. doctor ends it after ten seconds."""
        for script in ("while :; do echo mpirun; done", "echo 'mpirun (Open MPI) 4.1.4'; exec sleep 60 >&- 2>&-"):
            (self.folder / "mpirun").write_text(f"#!/bin/sh\n{script}\n")
            (self.folder / "mpirun").chmod(0o755)
            began = time.monotonic()
            ask(self.folder, PATH=f"{self.folder}:{os.environ['PATH']}")
            self.assertLess(time.monotonic() - began, 40, script)

    def test_mpi_is_missing(self):
        if "MPI" not in {line["name"]: line for line in ask(self.folder)[1]["checks"]}["gswbench"]["found"]:
            self.skipTest("built without MPI")
        (self.folder / "libmpi.so.40").write_text("not a library\n")
        code, answer = ask(self.folder, PATH=str(self.folder))
        line = next(line for line in answer["checks"] if line["name"] == "mpi")
        self.assertNotIn("mpirun", [line["name"] for line in answer["checks"]])
        self.assertEqual((code, line["state"], line["found"]), (0, "absent", "no Open MPI 4 or 5 here"))
        self.assertIn("--comm local", line["remedy"])

    def test_mpirun_without_its_library(self):
        if "MPI" not in {line["name"]: line for line in ask(self.folder)[1]["checks"]}["gswbench"]["found"]:
            self.skipTest("built without MPI")
        (self.folder / "libmpi.so.40").write_text("not a library\n")
        (self.folder / "mpirun").write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n")
        (self.folder / "mpirun").chmod(0o755)
        code, answer = ask(self.folder, PATH=f"{self.folder}:/bin")
        line = next(line for line in answer["checks"] if line["name"] == "mpi")
        self.assertEqual((code, line["state"]), (4, "wrong"))
        self.assertIn("libmpi.so.40", line["found"])
        self.assertNotIn("install ", line["found"])

    def test_text_is_a_line_per_check(self):
        host(self.folder)
        environment = os.environ | {"LD_LIBRARY_PATH": str(self.folder)}
        text = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True, env=environment).stdout.splitlines()
        _, answer = ask(self.folder)
        self.assertEqual([line.split()[:2] for line in text[:-2]],
                         [[line["name"], line["state"]] for line in answer["checks"]])
        states = [line["state"] for line in answer["checks"]]
        if "wrong" not in states:
            warnings = states.count("warning")
            self.assertTrue(text[-1].startswith("nothing is wrong"), text[-1])
            self.assertEqual(f"{warnings} warning" in text[-1], warnings > 0, text[-1])


if __name__ == "__main__":
    unittest.main()
