# SPDX-License-Identifier: MIT
"""Tests every output with hostile texts in all fields that come from outside the program. Strict parsers must recover
the texts exactly, no terminal escape may be printed, and texts may add no element or attribute to pages."""
import csv
import html.parser
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unicodedata
import unittest

PROGRAM = os.environ["GSWBENCH"]
WRITER = pathlib.Path(os.environ["GSWBENCH_BINARY_DIR"]) / "tests/report_pages"
HOSTILE = (
    b"</script><script>alert(1)</script>", b"<img src=x onerror=alert(1)>", b"\"><b>", b"' onmouseover='x",
    b"&lt;b&gt; &amp;#60;",
    b"]]> --> <!--", b"a\nRESULT VALID  50 steps", b"a\r\nstatus: valid", b"\ttab", b"\x1b[2J\x1b[31mred", b"\x1b]0;title\x07", b"\x08\x08\x08",
    b"a\x7fb", b"\xc2\x9b31m", b"line\xe2\x80\xa8end\xe2\x80\xa9", b"\xe2\x80\xaedilav", b"\xe2\x81\xa6x\xe2\x81\xa9\xd8\x9c", b"\xff\xfe\x80", b"cut\xc3",
    b"\xed\xa0\x80\xc0\xaf\xf5", b"\xef\xbb\xbfbom", b"=cmd(\"x\")", b"+1", b"-1+1", b"@sum(a1)", b"a,b;\"c\",\"\"", b"\\\" \\n \\", b"%s%n%1000000d",
    b"../../etc/passwd", b"{label=\"1\"} 2", b"# HELP x\\", b"| a | b |", b"\xf0\x9f\x92\xa5 \xe6\xbc\xa2", b"x" * 4000)
FORBIDDEN = {"a", "base", "button", "embed", "form", "frame", "iframe", "img", "input", "link", "object", "script", "video"}
SIGNS = "\u200e\u200f\u061c" + "".join(map(chr, [*range(0x202a, 0x202f), *range(0x2066, 0x206a)]))


def shown(raw):
    """Returns a text as outputs show it: each control character and each byte that is not UTF-8 is a question mark."""
    return "".join("?" if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or sign in SIGNS else sign
                   for sign in raw.decode("utf-8", "surrogateescape"))


def cell(text):
    """Returns the text of a spreadsheet cell: an apostrophe precedes a text that would be a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.texts, self.elements, self.attributes = [], [], set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    handle_pi = unknown_decl = handle_comment


class Hostile(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.harmless = cls.write(b"abc")
        cls.outputs = [(shown(raw), cls.write(raw)) for raw in HOSTILE]
        # Lines of texts are wrapped, so harmless texts have words of the same lengths.
        cls.wrapped = [cls.write(re.sub(rb"[^ ]", b"x", text.encode("utf-8", "surrogateescape"))) for text, _ in cls.outputs]

    @classmethod
    def write(cls, raw):
        folder = pathlib.Path(tempfile.mkdtemp(dir=cls.folder))
        subprocess.run([os.fsencode(WRITER), os.fsencode(folder), raw], check=True)
        return {path.name: path.read_bytes().decode("utf-8") for path in folder.iterdir()}

    def expect(self, found, text):
        """Checks a field, which may be truncated to its size. The remaining text must be exact."""
        self.assertEqual(found, text if len(text) < 4000 else text[:len(found)])
        self.assertGreater(len(found), min(len(text), 30) - 1)

    def test_lines_are_those_of_a_harmless_text_without_what_a_terminal_obeys(self):
        for (text, output), wrapped in zip(self.outputs, self.wrapped):
            for name in ("text", "header", "table.text", "table.markdown", "csv", "csv_ranks", "table.csv"):
                harmless = wrapped if name in ("text", "header") else self.harmless
                self.assertEqual(output[name].count("\n"), harmless[name].count("\n"), f"{name} of {text}")
                for sign in output[name]:
                    self.assertTrue(sign == "\n" or unicodedata.category(sign) not in ("Cc", "Zl", "Zp") and sign not in SIGNS,
                                    f"{name}: {sign!r}")
            for name in ("text", "header", "table.text"):
                self.assertIn(text[:30], output[name])

    def test_json_has_the_text(self):
        for text, output in self.outputs:
            result = json.loads(output["json"])
            for found in (result["config"]["name"], result["ranks"][0]["host"], result["device"]["device"],
                          result["config"]["published"]["source"], result["reasons"][-1]["message"]):
                self.expect(found, text)
            merged, kernel = result["config"]["merged"]["model"]["preset"], result["environment"]["kernel"]
            if not isinstance(merged, (int, float)):
                self.expect(merged, text)
                self.expect(kernel, text)
            self.expect(json.loads(output["table.json"])["rows"][0]["config"], text)

    def test_csv_has_the_text_and_no_formula(self):
        for text, output in self.outputs:
            for name, column in (("csv_ranks", "host"), ("table.csv", "config")):
                rows = list(csv.reader(io.StringIO(output[name], newline=""), strict=True))
                self.assertEqual({len(row) for row in rows}, {len(rows[0])}, name)
                self.expect(rows[1][rows[0].index(column)], cell(text))

    def test_markdown_has_as_many_cells(self):
        for text, output in self.outputs:
            cells = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in output["table.markdown"].splitlines()]
            self.assertEqual(len(set(cells)), 1, f"{text}: {cells}")

    def test_pages_have_the_text_and_nothing_else(self):
        for name, allowed in (("html", set()), ("comparison", set()), ("list", {"a", "href"})):
            harmless = Page(self.harmless[name])
            for text, output in self.outputs:
                page = Page(output[name])
                self.assertEqual(page.elements, harmless.elements, text)
                self.assertEqual(page.attributes, harmless.attributes, text)
                self.assertFalse(set(page.elements) & FORBIDDEN - allowed)
                self.assertFalse([key for key in page.attributes - allowed if key.startswith("on") or key in ("href", "src", "action")])
                self.assertTrue(any(text[:30] in one for one in page.texts), text)

    def run_program(self, folder, *words):
        done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True)
        for stream in (done.stdout, done.stderr):
            text = stream.decode("utf-8")
            self.assertFalse([sign for sign in text if sign != "\n" and (unicodedata.category(sign) in ("Cc", "Zl", "Zp") or sign in SIGNS)],
                             f"{words}: {text}")
        return done

    def test_names_and_settings_of_the_user_are_no_more_than_text(self):
        names = [raw for raw in HOSTILE if b"/" not in raw and len(raw) < 200]
        self.assertGreater(len(names), 25)
        for index, raw in enumerate(names):
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            file = b"./" + raw + b".ini"
            (folder / os.fsdecode(file)).write_bytes(b"[model]\npreset = tiny-llama\n[parallel]\ndp = auto\n[train]\nsequence = 16\n")
            done = self.run_program(folder, "check", "--config", file, "--ranks", "1", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["config"], shown(file))
            done = self.run_program(folder, "plan", "--config", file, "--ranks", "1", "--json")
            self.assertEqual(json.loads(done.stdout)["config"], shown(raw))
            self.run_program(folder, "check", "--config", file, "--ranks", "1")
            self.run_program(folder, "configs", file)
            places = (["predict", "--config", file, "--ranks", "1", "--gpu", "h200", "--no-range", "-o", raw], ["--config", raw],
                      ["check", "--config", file, "--set", b"published.source=" + raw], [raw], ["--" + raw.hex(), raw],
                      ["report", raw], ["table", raw], ["compare", raw, raw], ["schema", raw], ["report", ".", "--format", raw],
                      ["check", "--config", file, "--set", raw], ["help", raw])
            for words in places[index % 3::3]:
                self.assertNotEqual(self.run_program(folder, *words).returncode, -11)

    def test_a_run_of_a_hostile_name_leaves_files_that_strict_readers_take(self):
        for raw in (b"\x1b[31m</script>\"'&,\\".replace(b"/", b"|"), b"=1+1\xff\xe2\x80\xae\n%n", b"..\"}"):
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            file = b"./" + raw + b".ini"
            (folder / os.fsdecode(file)).write_bytes(b"[model]\npreset = tiny-llama\n[parallel]\ndp = auto\n[train]\nsequence = 16\nmicro_batch = 1\n"
                                        b"global_batch = 2\n")
            done = self.run_program(folder, "run", "--config", file, "--ranks", "2", "--comm", "local", "--backend", "host", "--layers", "1",
                                    "--steps", "4", "--warmup", "1", "--out", "results", "--trace", "all")
            self.assertEqual(done.returncode, 0, done.stderr)
            (path,) = folder.glob("results/*/*/*/*/result.json")
            self.assertEqual(json.loads(path.read_text())["config"]["name"], shown(raw))
            json.loads((path.parent / "trace.json").read_text())
            self.assertFalse(set(Page((path.parent / "report.html").read_text()).elements) & FORBIDDEN)
            for line in (path.parent / "run.jsonl").read_text().splitlines():
                json.loads(line)
            for words in (["report", path.parent], ["table", "results", "--force"], ["compare", path, path, "--force"]):
                self.assertEqual(self.run_program(folder, *words).returncode, 0)


if __name__ == "__main__":
    unittest.main()
