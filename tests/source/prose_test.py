# SPDX-License-Identifier: MIT
"""Counts phrases that are hard to read (MARKERS) in comments and documents, per 1,000 words. libuv has 0.6; readers
have to read a text with many of them twice."""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"])
LIMIT = 1.0
MARKERS = re.compile(r"\b(?:" + "|".join([
    r"behind", r"alike", r"likewise", r"besides", r"thereof", r"nobody", r"somebody", r"whoever", r"whom", r"for ever",
    r"so (?:many|much|often|long as)", r"as (?:many|much|long|often) as(?! possible)", r"of (?:which|their own|its own|all)",
    r"stands?", r"(?:those|that) of", r"the (?:most|least) (?:that|of|there)", r"the begin", r"the (?:former|latter|rest)",
    r"which is so", r"in turn", r"by turns", r"to its end", r"but for", r"be it", r"is (?:not )?there", r"no (?:less|more) than",
    r"from here on", r"has (?:to|come)", r"one another", r"than another", r"without a word", r"nothing (?:is|but|else)",
    r"what (?:it|its|an?|the|is|was|were|are|has|have|had|they|no|one|this|that|those|does|did|do|comes|came|goes|went|needs?"
    r"|holds?|we|you|remains|runs|ran|follows|belongs|may|must|can|could|would|will|else|there|each|every|all|any|some"
    r"|ranks?|others?)"]) + r")\b", re.IGNORECASE)

# Words that identifiers of this program must not contain, since the field has other names for them. In kernels and on
# the host, "lane" means a SIMD lane.
NOT_OURS = {"tally", "tallies", "tallied", "quantum", "quanta", "narrow", "course", "deal", "dealt", "pauses", "likeness", "kin",
            "spared", "board", "station", "party", "parties", "meeting", "gathering", "transfer", "transfers", "price", "priced",
            "exam", "voice", "speaker", "lane", "lanes"}
SIMD = ("kernels", "src/backend/host")


def comments(text):
    found = re.findall(r"//[^\n]*|/\*.*?\*/", text, re.DOTALL)
    return " ".join(re.sub(r"^\s*(//+|/?\*+/?)", "", comment, flags=re.MULTILINE) for comment in found)


def hash_comments(text):
    """Returns the comments and doc strings of a script, a CMake file or a configuration."""
    return "\n".join(re.findall(r"^\s*#(?!!)(.*)", text, re.MULTILINE) + re.findall(r'"""(.*?)"""', text, re.DOTALL))


def prose(text):
    """Returns a page without its code."""
    return re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)


def rate(texts):
    """Returns how many markers per 1,000 words a dictionary of texts has, and the files with the most markers."""
    words = sum(len(re.findall(r"[A-Za-z][A-Za-z'-]*", text)) for text in texts.values())
    hits = {name: [hit.group(0) for hit in MARKERS.finditer(text)] for name, text in texts.items()}
    worst = sorted(((len(found), name, found[:5]) for name, found in hits.items() if found), reverse=True)[:8]
    return 1000 * sum(map(len, hits.values())) / max(words, 1), worst


class Prose(unittest.TestCase):
    def check(self, texts):
        found, worst = rate(texts)
        print(f"{found:.2f} markers per 1,000 words")
        self.assertLessEqual(found, LIMIT, "\n".join(map(str, worst)))

    def test_comments(self):
        texts = {str(path.relative_to(ROOT)): comments(path.read_text()) for top in ("src", "include", "kernels")
                 for path in sorted((ROOT / top).glob("**/*")) if path.suffix in (".c", ".h", ".cu", ".cuh")}
        self.assertGreater(len(texts), 400)
        self.check(texts)

    def test_comments_of_tests_scripts_and_configs(self):
        for top in ("tests", "scripts", "bench", "cmake", "configs"):
            texts = {}
            for path in sorted(path for path in (ROOT / top).glob("**/*") if path.is_file() and "results" not in path.parts):
                if path.suffix in (".c", ".h", ".cu", ".cuh"):
                    texts[str(path)] = comments(path.read_text())
                elif path.suffix in (".py", ".sh", ".cmake", ".ini", ".txt", ""):
                    texts[str(path)] = hash_comments(path.read_text(errors="replace"))
            self.assertGreater(len(texts), 10, top)
            self.check(texts)

    def test_identifiers(self):
        found = []
        for top in ("src", "include", "kernels"):
            for path in sorted((ROOT / top).glob("**/*")):
                name = str(path.relative_to(ROOT))
                if path.suffix in (".c", ".h", ".cu", ".cuh"):
                    code = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', "", path.read_text(), flags=re.DOTALL)
                    found += [f"{name}: {word}" for word in sorted(set(re.findall(r"[A-Za-z_]\w*", code)))
                              if NOT_OURS & set(word.lower().split("_")) - ({"lane", "lanes"} if name.startswith(SIMD) else set())]
        self.assertEqual(found, [])

    def test_documents(self):
        generated = ("atlas.md", "options.md")
        texts = {str(path.relative_to(ROOT)): prose(path.read_text()) for pattern in ("*.md", "docs/*.md")
                 for path in sorted(ROOT.glob(pattern)) if path.name not in generated}
        self.assertGreater(len(texts), 15)
        self.check(texts)
        for name, text in texts.items():
            self.assertLessEqual(rate({name: text})[0], LIMIT, name)

    def test_markers_are_found(self):
        found, _ = rate({"a": "What it was given, and those of all ranks that stand behind it."})
        self.assertGreater(found, 300)
        self.assertEqual(rate({"b": "Maps a file. Returns its address."}), (0.0, []))


if __name__ == "__main__":
    unittest.main()
