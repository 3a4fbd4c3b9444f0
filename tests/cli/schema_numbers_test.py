# SPDX-License-Identifier: MIT
"""The version of a JSON schema must change with its keys. schema_numbers.txt has the last version of each schema and a
hash of its keys."""
import hashlib
import json
import os
import pathlib
import subprocess
import unittest

PROGRAM = os.environ["GSWBENCH"]
NUMBERS = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"]) / "tests/cli/schema_numbers.txt"


def ask(*words):
    return subprocess.run([PROGRAM, "schema", *words], capture_output=True, text=True, check=True).stdout


def keys(schema, place=""):
    """Yields every key of the schema with its type. Values of enums are left out, so adding one does not need a new
    version."""
    kind = schema.get("type", "word")
    yield f"{place} {kind if isinstance(kind, str) else '|'.join(kind)}"
    for key, below in schema.get("properties", {}).items():
        yield from keys(below, f"{place}.{key}")
    for word in ("anyOf", "oneOf"):
        for below in schema.get(word, []):
            yield from keys(below, f"{place} {word}")
    if "items" in schema:
        yield from keys(schema["items"], f"{place}[]")


class SchemaNumbers(unittest.TestCase):
    def test_rise_with_every_change_of_keys(self):
        lines = dict(line.rsplit(" ", 1) for line in NUMBERS.read_text().splitlines() if not line.startswith("#"))
        documents = [line.split()[0] for line in ask().splitlines()]
        self.assertEqual(sorted(line.split("/")[0] for line in lines), sorted(documents))
        for name in documents:
            schema = json.loads(ask(name))
            number = schema["properties"]["schema"]["const"].rsplit("/", 1)[1]
            print_of = hashlib.sha256("\n".join(sorted(set(keys(schema)))).encode()).hexdigest()[:16]
            self.assertEqual(lines.get(f"{name}/{number}"), print_of,
                             f"the keys of {name} have changed, or its number: raise the number, unless that is done, and"
                             f" make the line of {NUMBERS.name} \"{name}/NUMBER {print_of}\"")


if __name__ == "__main__":
    unittest.main()
