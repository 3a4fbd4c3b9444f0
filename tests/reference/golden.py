# SPDX-License-Identifier: MIT
"""Stored results of the reference (train.py), so that the default tests need NumPy but not PyTorch.

golden/NAME.json holds the cases of reference_NAME_test.py, each with its inputs:
- sources: hashes of the reference's files. A hash is the first 16 digits of a SHA-256.
- configuration: every value that the reference read from config.merged.ini.
- weights, tokens: hashes of the exported tensors, which have the same bits on every machine (docs/numerics.md).
and with its results:
- losses, gradient_norms: one number per step.
- changes: three numbers for each tensor, sorted by name: the norm of its change by training (trained minus initial), and the
  inner products of the change with two vectors of +1 and -1 (`signs`). An error of norm e in a change shifts an inner
  product by about e.
- additional fields of some tests.

A test fails if an input differs from the stored one, and names the input. In the environment,
- GSWBENCH_ROWS=all computes the results with PyTorch and compares both the program and the stored results with them;
- GSWBENCH_GOLDEN=write computes them with PyTorch and stores them:

      GSWBENCH_GOLDEN=write ctest --test-dir build/release -R 'reference_(training|latent|prediction|checkpoint)_test'
"""
import functools
import hashlib
import json
import os
import pathlib
import sys

try:
    import numpy as np
except ModuleNotFoundError:
    print("skipped: NumPy is not installed (python3-numpy)")
    sys.exit(77)

import configuration

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ("train.py", "recompute.py")
WRITES = os.environ.get("GSWBENCH_GOLDEN") == "write"
RECOMPUTES = WRITES or os.environ.get("GSWBENCH_ROWS") == "all"
DIRECTIONS = 2
# Number of stored digits, and limits of the difference between stored and recomputed results, relative to the largest
# number of a list. PyTorch computes in double precision, but its last bits depend on the machine.
DIGITS, LIMIT = 10, 1e-7
LONG_FIELDS = {"changes", "logits"}
LONG_DIGITS, LONG_LIMIT = 6, 1e-4


@functools.cache
def signs(count):
    """Returns [DIRECTIONS, count] of +1 and -1. Element i of vector k is -1 if bit k of output i of SplitMix64 with seed 0
    is set (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). Outputs count from 0."""
    words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return np.stack([1.0 - 2.0 * (words >> np.uint64(k) & np.uint64(1)) for k in range(DIRECTIONS)])


def flat(tensor):
    return np.asarray(tensor.values, dtype=np.float64)


def sketch_changes(initial, trained):
    """Returns `changes` as described above: [tensors, 1 + DIRECTIONS], sorted by name. trained: flat arrays by name."""
    assert initial.keys() == trained.keys()
    every = signs(max(len(values) for values in trained.values()))
    rows = []
    for name in sorted(trained):
        change = trained[name] - flat(initial[name])
        rows.append([np.linalg.norm(change), *(every[:, :len(change)] @ change)])
    return np.array(rows)


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def digest_tensors(tensors):
    """Returns a hash of names, types, shapes and little-endian values."""
    text = b""
    for name, tensor in sorted(tensors.items()):
        values = tensor.values[:]
        if sys.byteorder == "big":
            values.byteswap()
        text += f"{name} {values.typecode} {list(tensor.shape)}\n".encode() + values.tobytes()
    return digest(text)


def inputs_of(keys, merged, weights, tokens):
    """Returns the inputs of a case. keys: "section.key" of each value that the reference reads."""
    config = configuration.read_config(merged)
    values = {}
    for key in sorted(keys):
        section, name = key.split(".")
        values[key] = getattr(getattr(config, section), name, None)
    return {"sources": {name: digest((HERE / name).read_bytes()) for name in SOURCES}, "configuration": values,
            "weights": digest_tensors(weights), "tokens": digest_tensors({"tokens": tokens})}


def flatten(inputs):
    """Returns a flat dictionary of the inputs."""
    flat_inputs = {key: inputs[key] for key in ("weights", "tokens")}
    return flat_inputs | inputs["sources"] | inputs["configuration"]


def to_digits(values, digits):
    """Rounds nested lists of numbers to significant digits."""
    if isinstance(values, (list, tuple, np.ndarray)):
        return [to_digits(value, digits) for value in values]
    return float(f"{values:.{digits}g}")


def difference(stored, computed):
    """Returns the largest difference of two lists, or of the rows of two tables, relative to the largest number of the
    list or row."""
    stored, computed = (np.atleast_2d(np.array(values, dtype=np.float64)) for values in (stored, computed))
    assert stored.shape == computed.shape, f"{stored.shape} stored, {computed.shape} computed"
    if stored.size == 0:
        return 0.0
    return float((np.abs(stored - computed).max(-1) / np.abs(computed).max(-1)).max())


class Case:
    """An entry of golden/NAME.json."""

    def __init__(self, name, case):
        self.path, self.case = HERE / "golden" / f"{name}.json", case
        self.advice = ("If this is intended, recompute on a machine with PyTorch: "
                       f"GSWBENCH_GOLDEN=write ctest --test-dir BUILD_FOLDER -R reference_{name}_test")

    def entries(self):
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def read(self, *inputs):
        """Returns the stored results. Fails if an input differs from the stored one. inputs: the path of the merged
        configuration, the initial weights, the tokens."""
        entries = self.entries()
        assert self.case in entries, f"{self.path.name} has no results of {self.case}. {self.advice}"
        entry = entries[self.case]
        stored, now = flatten(entry["inputs"]), flatten(inputs_of(entry["inputs"]["configuration"], *inputs))
        changed = [f"{key}: stored {stored.get(key)}, now {now.get(key)}" for key in sorted(stored.keys() | now.keys())
                   if stored.get(key) != now.get(key)]
        assert not changed, (f"{self.path.name}, {self.case}: the stored results were computed from other inputs.\n  "
                             + "\n  ".join(changed) + f"\n{self.advice}")
        return entry["results"]

    def check(self, results, *inputs):
        """Compares recomputed results with the stored ones."""
        stored = self.read(*inputs)
        assert stored.keys() == results.keys(), f"{self.path.name}, {self.case}: other fields. {self.advice}"
        for field, values in results.items():
            most, limit = difference(stored[field], values), LONG_LIMIT if field in LONG_FIELDS else LIMIT
            print(f"{self.path.name}, {self.case}: {field} differ from PyTorch by {most:.1e}")
            assert most < limit, f"{self.path.name}, {self.case}: stored {field} differ by {most:.1e}. {self.advice}"

    def write(self, keys, results, *inputs):
        """Stores the results of one case and keeps the other cases of the file."""
        entries = self.entries()
        entries[self.case] = {"inputs": inputs_of(keys, *inputs), "results": {
            field: to_digits(values, LONG_DIGITS if field in LONG_FIELDS else DIGITS) for field, values in results.items()}}
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(to_text({case: entries[case] for case in sorted(entries)}) + "\n")


def to_text(value, depth=3, indent=""):
    """Returns JSON in which lists, and objects below the given depth, have one line."""
    if depth == 0 or not isinstance(value, dict):
        return json.dumps(value)
    rows = [f"{indent} {json.dumps(key)}: {to_text(inner, depth - 1, indent + ' ')}" for key, inner in value.items()]
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
