# SPDX-License-Identifier: MIT
"""Checks every Markdown page: links to files and headings, and paths in the text, exist; tables are whole; no line is there
twice."""
import os
import pathlib
import re
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"])
FOLDERS = "bench|cmake|configs|docs|include|kernels|scripts|src|tests"


def pages(root):
    """Returns all Markdown pages, except in build folders and in the faulty trees of tests/source/planted."""
    found = [*root.glob("*.md"), *(path for top in FOLDERS.split("|") for path in root.glob(f"{top}/**/*.md"))]
    return sorted(path for path in found if "planted" not in path.relative_to(root).parts)


def prose(page):
    """Yields the numbered lines of a page without its code blocks."""
    is_code = False
    for number, line in enumerate(page.read_text().split("\n"), 1):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("    "):
            yield number, line


def anchors(page):
    """Returns GitHub's anchors for headings: letters, digits and hyphens; a repeated name gets -1."""
    found = []
    for _, line in prose(page):
        if re.match(r"#{1,6} ", line):
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return found


def broken_link(page, target):
    """Returns the problem with a link, or None if it is correct or a network address."""
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = urllib.parse.unquote(target).partition("#")
    linked = (page.parent / name).resolve() if name else page
    if not linked.exists():
        return f"{target} does not exist"
    if anchor and (linked.suffix != ".md" or anchor not in anchors(linked)):
        return f"{target} is no heading"
    return None


def broken(root):
    """Returns "page:line: problem" for all pages."""
    found = []
    for page in pages(root):
        for number, line in prose(page):
            links = re.findall(r"\[[^]]*\]\(([^)\s]+)\)", line)
            wrong = [broken_link(page, target) for target in links]
            # Finds paths such as `src/plan/plan.c`, but neither `tests/NAME_test.c` nor patterns.
            paths = re.findall(rf"`((?:{FOLDERS})/[a-z0-9_./-]+)`", line)
            wrong += [f"{path} does not exist" for path in paths if not (root / path).exists()]
            found += [f"{page.relative_to(root)}:{number}: {text}" for text in wrong if text]
    return found


def cells(line):
    return len(re.sub(r"`[^`]*`|\\[|]", "", line).strip().strip("|").split("|"))


def torn(root):
    """Returns "page:line: problem" for lines that occur twice, as a bad merge leaves them, and for tables without a header
    or a blank line around them, or with a wrong number of cells."""
    found = []
    for page in pages(root):
        before, seen, columns = "", {}, 0
        for number, line in prose(page):
            is_row, is_separator = line.startswith("|"), re.fullmatch(r"\|[-:| ]+\|", line)
            wrong = []
            is_header = is_row and not before
            if len(line) >= 60 and line in seen and not is_header:    # tables may have the same header
                wrong.append(f"the same as line {seen[line]}")
            if is_row and not before.startswith("|"):
                columns = cells(line)
                wrong += ["a table without a header"] if is_separator else []
            if line and before and is_row != before.startswith("|"):
                wrong.append("no blank line around a table")
            if is_row and cells(line) != columns:
                wrong.append(f"{cells(line)} cells, but the header has {columns}")
            found += [f"{page.relative_to(root)}:{number}: {text}" for text in wrong]
            seen.setdefault(line, number)
            before = line
    return found


class Markdown(unittest.TestCase):
    def test_tables_are_whole_and_no_line_is_there_twice(self):
        self.assertEqual(torn(ROOT), [])

    def test_torn_tables_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root, row = pathlib.Path(folder), "| a row of a table that is long enough to be there only once | b |"
            (root / "README.md").write_text(f"Text\n| a | b |\n|---|---|\n{row}\n{row}\n| one `|` two |\n\n|---|\n")
            self.assertEqual(torn(root), ["README.md:2: no blank line around a table", "README.md:5: the same as line 4",
                                          "README.md:6: 1 cells, but the header has 2", "README.md:8: a table without a header"])

    def test_links_of_all_pages_lead_somewhere(self):
        self.assertGreater(len(pages(ROOT)), 5)
        self.assertEqual(broken(ROOT), [])

    def test_broken_links_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs" / "page.md").write_text(
                "# A page: of `code`\n## Twice\n## Twice\n[up](../README.md#the-start) [here](#twice-1)\n"
                "[gone](gone.md) [network](https://example.org/gone.md)\n    [code](gone.md)\n"
                "[no heading](#thrice) `docs/page.md` `docs/gone.c` `tests/NAME_test.c`\n")
            (root / "README.md").write_text("# The start\n[page](docs/page.md#a-page-of-code)\n[page](docs/page.md#page)\n")

            self.assertEqual(broken(root), ["README.md:3: docs/page.md#page is no heading",
                                            "docs/page.md:5: gone.md does not exist",
                                            "docs/page.md:7: #thrice is no heading",
                                            "docs/page.md:7: docs/gone.c does not exist"])


if __name__ == "__main__":
    unittest.main()
