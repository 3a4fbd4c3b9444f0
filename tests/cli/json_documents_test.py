# SPDX-License-Identifier: MIT
"""Validates every JSON document that the program prints against its schema. Also checks that jq accepts the keys
without quotes, and runs the jq commands of docs/json.md."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
DOCS = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"]) / "docs/json.md"
SMALL = ("--layers 1 --set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16"
         " --set model.ffn=32 --set model.vocab=64 --set train.sequence=16")
RANKS = f"--config tiny-llama --comm local --backend host {SMALL} --ranks 2"
MACHINE = "--set hardware.profile=h100-sxm --set hardware.peak_bf16=2e11 --set hardware.memory_bandwidth=1e10"
# Each row has a document, its schema, the command that prints it, and the allowed exit codes. Commands that measure may
# exit with several codes, since other processes on this machine disturb them.
DOCUMENTS = (
    ("result", "run", f"run {RANKS} --steps 12 --warmup 2 --json --out results {MACHINE} --set hardware.cores=2", {0}),
    ("check", "check", "check --config tiny-llama --ranks 2 --json", {0}),
    ("plan", "plan", f"plan --config tiny-llama {SMALL} --ranks 2 --json", {0}),
    ("predict", "predict", "predict --config llama3.1-8b --layers 2 --ranks 8 --json --no-range", {0}),
    ("refused", "predict", f"predict --config tiny-llama {SMALL} --ranks 2 --json --no-range", {3}),
    ("sweep", "sweep", "predict --sweep --config llama3.1-8b --layers 1 --ranks 2 --set train.global_batch=2 --json", {0}),
    ("configs", "configs", "configs --json", {0}),
    ("doctor", "doctor", "doctor --json", {0, 4}),
    ("atlas", "atlas", "atlas --model nemotron4-15b --ranges --json", {0}),
    ("compare", "compare", "compare --force --json result.json result.json", {0}),
    ("several", "compare-several", "compare --force --json result.json result.json result.json", {0}),
    ("table", "table", "table --force --format json result.json", {0}),
    ("history", "history", "table --history --force --format json result.json", {0}),
    ("calibrate", "calibrate", f"calibrate {RANKS} --json -o machine.ini", {0}),
    ("preflight", "preflight", f"preflight {RANKS} --seconds 1 --json", {0, 6}),
    ("accept", "accept", f"accept {RANKS} --seconds 1 --steps 6 --out results --json --set hardware.device=other", {6, 15}),
    ("suite", "suite", "suite node --ranks 8 --dry-run --json", {0}),
    ("trace", "trace", "report --trace trace --json --config llama3.1-8b --ranks 8 --set run.layers=2", {0}),
    ("mlperf", "mlperf", "report --mlperf log --json --config mlperf-llama3.1-8b-nvfp4 --ranks 8", {0}),
)
LOG = "".join(":::MLLOG " + json.dumps({"time_ms": time, "key": key, "value": value, "metadata": more}) + "\n" for time, key, value, more in (
    (0, "submission_benchmark", "llama31_8b", {}), (0, "global_batch_size", 16, {}), (0, "run_start", None, {}),
    (400, "train_loss", 7.0, {"samples_count": 16}), (900, "train_loss", 7.0, {"samples_count": 32}),
    (900, "run_stop", None, {"status": "success"})))
KINDS = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
         "null": type(None)}


def is_of(kind, value):
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def complaints(schema, value, place="$"):
    """Yields the differences of a value from its schema. A schema keyword that this validator does not implement counts
    as one."""
    known = {"$schema", "title", "type", "enum", "const", "properties", "required", "additionalProperties", "items",
             "minItems", "maxItems", "anyOf", "oneOf"}
    if set(schema) - known:
        yield f"{place}: the schema has {set(schema) - known}"
    kinds = schema.get("type", [])
    if kinds and not any(is_of(kind, value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{place}: {value!r} is not {kinds}"
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{place}: {value!r} is not one of {schema}"
    for word, most in (("anyOf", len(schema.get("anyOf", []))), ("oneOf", 1)):
        fits = sum(not list(complaints(one, value, place)) for one in schema.get(word, []))
        if word in schema and not 1 <= fits <= most:
            yield f"{place}: {fits} of {word} fit {value!r}"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{place}: has {len(value)} elements"
        for index, one in enumerate(value):
            yield from complaints(schema.get("items", {}), one, f"{place}[{index}]")
    if isinstance(value, dict):
        rest = schema.get("additionalProperties", True)
        yield from (f"{place}: {key} is missing" for key in schema.get("required", []) if key not in value)
        for key, one in value.items():
            if key in schema.get("properties", {}):
                yield from complaints(schema["properties"][key], one, f"{place}.{key}")
            elif rest is False:
                yield f"{place}: {key} is not declared"
            elif rest is not True:
                yield from complaints(rest, one, f"{place}.{key}")


def members(value, place=""):
    """Yields the path, key and value of every member of a document, at all levels."""
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(value, dict):
            yield f"{place}.{key}", key, one
        yield from members(one, f"{place}.{key}")


def names(schema):
    for key, one in schema.get("properties", {}).items():
        yield key
        yield from names(one)
    for one in schema.get("anyOf", []) + [schema[word] for word in ("items",) if word in schema]:
        yield from names(one)


class Documents(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.documents = {}
        (cls.folder / "log").write_text(LOG)
        (cls.folder / "trace").write_text(json.dumps([{"cat": "kernel", "name": "gemm", "ts": 1, "dur": 2}]))
        for name, kind, words, codes in DOCUMENTS:
            done = subprocess.run([PROGRAM, *words.split()], cwd=cls.folder, capture_output=True, text=True)
            assert done.returncode in codes, f"{words}: {done.returncode}: {done.stderr}"
            (cls.folder / f"{name}.json").write_text(done.stdout)
            cls.documents[name] = (kind, json.loads(done.stdout))
        listed = subprocess.run([PROGRAM, "schema"], capture_output=True, text=True, check=True).stdout
        cls.schemas = {}
        for name in (line.split()[0] for line in listed.splitlines()):
            done = subprocess.run([PROGRAM, "schema", name], capture_output=True, text=True, check=True)
            cls.schemas[name] = json.loads(done.stdout)

    def test_every_document_is_as_its_schema_says(self):
        self.assertEqual(set(self.schemas), {kind for kind, _ in self.documents.values()})
        for name, (kind, document) in self.documents.items():
            self.assertEqual(list(complaints(self.schemas[kind], document))[:9], [], name)

    def test_a_schema_refuses_what_is_not_its_document(self):
        schema, (_, result) = self.schemas["run"], self.documents["result"]
        for edit in (lambda one: one.pop("run_id"), lambda one: one.update(more=1), lambda one: one.update(exit_code="0"),
                     lambda one: one["steps"][0].update(phase="rest"), lambda one: one.update(emulated=one["result"]),
                     lambda one: one["result"]["step_time_s"]["ci95"].append(1), lambda one: one.update(schema="x/1")):
            copy = json.loads(json.dumps(result))
            edit(copy)
            self.assertNotEqual(list(complaints(schema, copy)), [])

    def test_published_rows_are_as_their_schema_says(self):
        folder = DOCS.parent.parent / "configs/atlas"
        schema = json.loads((folder / "rows.schema.json").read_text())
        rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
        self.assertEqual([list(complaints(schema, row, row["id"])) for row in rows if list(complaints(schema, row))], [])
        self.assertEqual(len({row["id"] for row in rows}), len(rows))
        self.assertEqual(len(list(complaints(schema, dict(rows[0], gpu=8, precision="int8", more=1)))), 3)

    def test_keys_need_no_quotes_and_numbers_are_numbers(self):
        for name, (_, document) in self.documents.items():
            for place, key, value in members(document):
                self.assertRegex(key, r"^[A-Za-z_][A-Za-z0-9_]*$", f"{name}{place}")
                self.assertFalse(isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?", value),
                                 f"{name}{place} is {value!r}")

    def test_one_word_stands_for_seconds_and_one_for_mfu(self):
        for name, schema in self.schemas.items():
            for key in names(schema):
                self.assertNotRegex(key, r"seconds|_sec$|_ms$|_us$|utili[sz]ation$|mfu_|percentage", name)

    def test_options_come_back_as_numbers_texts_and_words(self):
        merged = self.documents["result"][1]["config"]["merged"]
        self.assertEqual((merged["model"]["layers"], merged["model"]["norm_epsilon"], merged["train"]["recompute"]),
                         (1, 1e-5, "none"))

    def test_lines_of_the_manual_find_something(self):
        lines = re.findall(r"^    (jq .*)$", DOCS.read_text(), re.MULTILINE)
        self.assertEqual(len(lines), 8)
        if shutil.which("jq") is None:
            self.skipTest("no jq")
        for line in lines:
            self.assertNotRegex(line, r'\."|\["')
            done = subprocess.run(line, shell=True, cwd=self.folder, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
            self.assertNotIn(done.stdout.strip(), ("", "null", "[]", "{}"), line)
            self.assertNotIn("null", re.sub(r"\tnull|null\t", "", done.stdout), line)

    def test_a_document_that_there_is_not_is_named(self):
        done = subprocess.run([PROGRAM, "schema", "prefligt"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "gswbench: prefligt: no such document: did you mean preflight?\n"))


if __name__ == "__main__":
    unittest.main()
