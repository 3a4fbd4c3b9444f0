# SPDX-License-Identifier: MIT
"""Tests input files that are built to exhaust memory or time. The program must refuse each within a minute, with a peak
memory of at most 16 times the file size plus 256 MiB."""
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ["GSWBENCH"]
XXH3 = pathlib.Path(os.environ["GSWBENCH_BINARY_DIR"]) / "tests/xxh3"
SECONDS, TIMES, MORE_BYTES = 60, 16, 256 << 20
TINY = ["run", "tiny-llama", "--layers", "1", "--backend", "host", "--comm", "local", "--warmup", "0", "--steps", "1", "--quiet",
        "--trace", "0", "--set", "train.sequence=16", "--set", "run.verify=light", "--set", "model.vocab=64", "--set",
        "model.hidden=32", "--set", "model.ffn=48", "--set", "model.head_dim=8", "--set", "model.heads=4", "--set",
        "model.kv_heads=2"]


# Runs a program and prints its exit code and peak memory. The kernel counts the memory of the forking process in the
# child's peak, so a small process must fork. The address space limit protects the machine if a file does exhaust
# memory.
PROBE = f"""import resource, subprocess, sys
limit = int(sys.argv[1])
try:
    code = subprocess.run(sys.argv[2:], stdout=2, timeout={SECONDS}, check=False, preexec_fn=lambda:
                          resource.setrlimit(resource.RLIMIT_AS, (limit, limit))).returncode
except subprocess.TimeoutExpired:
    code = -9
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)
"""
IS_SANITIZED = any(name in os.environ for name in ("ASAN_OPTIONS", "TSAN_OPTIONS"))


def peak_of(words):
    """Runs gswbench. Returns its exit code, error output, peak memory in bytes, and seconds."""
    begin = time.monotonic()
    limit = resource.RLIM_INFINITY if IS_SANITIZED else 6 << 30
    probe = subprocess.run([sys.executable, "-c", PROBE, str(limit), PROGRAM, *words], capture_output=True, text=True, check=True)
    code, peak = map(int, probe.stdout.split())
    return code, probe.stderr, peak, time.monotonic() - begin


def xxh3(data):
    return subprocess.run([XXH3], input=data, capture_output=True, check=True).stdout.decode().strip()


def write_shard(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def vector(names, columns):
    """Returns a safetensors header and zero data for fp32 tensors with these names, one row each, stored one after
    another."""
    header, begin = {}, 0
    for name in names:
        header[name] = {"dtype": "F32", "shape": [1, columns], "data_offsets": [begin, begin + 4 * columns]}
        begin += 4 * columns
    return header, bytes(begin)


class Bombs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="gswbench-bombs-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        subprocess.run([PROGRAM, *TINY, "--out", cls.place / "results", "--set", f"checkpoint.save={cls.place / 'saved'}"],
                       check=True, stdout=subprocess.DEVNULL)
        cls.whole = next((cls.place / "results").glob("*/result.json")).parent
        cls.saved = next((cls.place / "saved").glob("step-*"))
        cls.weights = cls.place / "weights"
        cls.weights.mkdir()
        shutil.copy(cls.saved / "config.json", cls.weights)

    def check(self, words, files, said, expected=None):
        total = sum(file.stat().st_size for file in files)
        code, output, peak, seconds = peak_of(words)
        print(f"{self.id().split('.')[-1]:60} {total >> 10:7} KiB, {peak >> 20:5} MiB, {seconds:5.1f} s", flush=True)
        self.assertNotIn(code, (0, -9) if expected is None else (), output[:500])
        self.assertIn(said, output)
        self.assertLess(seconds, SECONDS)
        if not IS_SANITIZED:
            self.assertLessEqual(peak, TIMES * total + MORE_BYTES, f"{peak >> 20} MiB of {total >> 10} KiB")

    def journal(self, value):
        path = self.place / "journal"
        path.mkdir(exist_ok=True)
        (path / "run.jsonl").write_bytes(b'{"xxh3":"0000000000000000","run":[' + value + b"]}\n")
        return ["report", "--recover", path], [path / "run.jsonl"]

    def test_lists_in_the_first_line_of_a_journal(self):
        self.check(*self.journal(b"[]," * 30_000_000 + b"[]"), "run.jsonl")

    def test_a_short_line_of_objects_in_a_journal(self):
        self.check(*self.journal(b"{}," * 2_000_000 + b"{}"), "run.jsonl")

    def test_steps_that_a_journal_announces(self):
        lines = (self.whole / "run.jsonl").read_text().splitlines()
        path = self.place / "many"
        path.mkdir(exist_ok=True)
        (path / "run.jsonl").write_text(lines[0] + "\n" + (lines[1] + "\n") * 100_000)
        self.check(["report", "--recover", path], [path / "run.jsonl"], "", expected=0)

    def result(self, text):
        path = self.place / "result.json"
        path.write_bytes(text)
        return ["report", path], [path]

    def test_objects_in_a_result(self):
        self.check(*self.result(b"[" + b"{}," * 10_000_000 + b"{}]"), "more values")

    def test_numbers_in_a_result(self):
        self.check(*self.result(b"[" + b"1," * 15_000_000 + b"1]"), "more values")

    def test_settings_in_a_result(self):
        document = json.loads((self.whole / "result.json").read_text())
        document["config"] = {f"a.{i}": 1 for i in range(1_000_000)}
        self.check(*self.result(json.dumps(document, separators=(",", ":")).encode()), "result.json")

    def test_nested_lists_in_a_result(self):
        self.check(*self.result(b"[" * 16_000_000 + b"]" * 16_000_000), "result.json")

    def verify(self, header, said, data=b""):
        path = self.weights / "model.safetensors"
        write_shard(path, header, data)
        self.check(["verify", self.weights], [path], said)

    def test_lists_in_the_header_of_weights(self):
        self.verify(b'{"a":[' + b"[]," * 30_000_000 + b"[]]}", "more values")

    def test_metadata_in_the_header_of_weights(self):
        self.verify({"__metadata__": {str(i): "" for i in range(1_500_000)}}, "model.safetensors")

    def test_names_in_the_index_of_weights(self):
        path = self.weights / "model.safetensors.index.json"
        path.write_bytes(b'{"weight_map":{' + b",".join(b'"%d":"x"' % i for i in range(1_000_000)) + b"}}")
        self.addCleanup(path.unlink)
        self.check(["verify", self.weights], [path], "")

    def own(self, shard=None, copies=1):
        """Copies a checkpoint of gswbench. Replaces one rank's file by `shard` if given, lists each file `copies` times
        in the manifest, and corrects sizes and checksums."""
        path = self.place / "own"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.saved, path)
        manifest = json.loads((self.saved / "manifest.json").read_text())
        if shard is not None:
            file = next(path.glob("rank-*"))
            write_shard(file, *shard)
            entry = next(entry for entry in manifest["files"] if entry["name"] == file.name)
            # A shard without a checksum in its header counts as checksum 0.
            entry.update(bytes=file.stat().st_size, checksum="0" * 16)
        manifest.update(files=manifest["files"] * copies, xxh3="0" * 16)
        text = json.dumps(manifest, separators=(",", ":"))
        (path / "manifest.json").write_text(text.replace("0" * 16, xxh3(text.encode()), 1))
        return path

    def test_a_file_that_a_manifest_lists_300000_times(self):
        path = self.own(copies=150_000)
        self.check(["verify", path], list(path.iterdir()), "twice")

    def test_a_row_that_is_cut_into_200000_slices(self):
        header, data = vector([f"lm_head.weight[0:1,{i}:{i + 1}]" for i in range(200_000)], 1)
        path = self.own((header, data))
        self.check(["verify", path], list(path.iterdir()), "the checkpoint does not")


if __name__ == "__main__":
    unittest.main()
