# SPDX-License-Identifier: MIT
"""report.html in a browser: readable at every width, light, dark and in print; colours that the colour-blind tell apart;
nothing loaded, nothing run; and its figures are those of result.json. Skipped without Chromium."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser

SKIPPED = 77
PROGRAM = os.environ["GSWBENCH"]
PAGES = pathlib.Path(os.environ["GSWBENCH_BINARY_DIR"]) / "tests/report_pages"
# 4 ranks as threads, a step of milliseconds, and a profile of a machine that nobody has: something is expected.
JOB = ("run --config tiny-llama --ranks 4 --comm local --backend host --quiet --steps 12 --warmup 2 --layers 1"
       " --set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16 --set model.ffn=32"
       " --set model.vocab=64 --set train.sequence=16 --set hardware.profile=h100-sxm --set hardware.cores=2"
       " --set hardware.peak_bf16=2e11 --set hardware.memory_bandwidth=1e10").split()
MADE_UP = ("published", "many", "invalid", "emulated")

FIGURES = """[...document.querySelectorAll(".figure")].map(figure => [...figure.children].map(part => part.innerText))"""
PARTS = """[...document.querySelectorAll(".parts tr")].map(row => [...row.children].map(cell => cell.innerText))"""
COLOURS = """(selector => {
    const element = document.querySelector(selector), style = getComputedStyle(element);
    return element.closest("svg") ? style.fill : style.backgroundColor;
})("%s")"""
INTRUDE = """
    const script = document.createElement("script");
    script.textContent = "window.hasRun = true";
    const image = document.createElement("img");
    image.src = "http://127.0.0.1:9/x";
    document.body.append(script, image);"""
OPEN_DETAILS = "document.querySelectorAll('details').forEach(details => { details.open = true; })"

# What is left of a colour, linear RGB, for those without one kind of cone: Machado, Oliveira and Fernandes 2009.
BLINDNESS = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
D65 = (0.95047, 1.0, 1.08883)
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))


def multiply(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def lab(colour, blindness="none"):
    """CIE L*a*b* of "rgb(1, 2, 3)", as somebody sees it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    seen = [min(max(part, 0), 1) for part in multiply(BLINDNESS[blindness], linear)]
    x, y, z = ((value / white) ** (1 / 3) if value / white > 0.008856 else 7.787 * value / white + 16 / 116
               for value, white in zip(multiply(TO_XYZ, seen), D65))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one, other, blindness):
    """Between two colours: about 2 is just noticed side by side."""
    return sum((a - b) ** 2 for a, b in zip(lab(one, blindness), lab(other, blindness))) ** 0.5


def seconds(value):
    """As the page writes them."""
    return f"{value:.6f} s" if value < 1 else f"{value:.3f} s"


class Page(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.browser = cls.enterClassContext(browser.Browser())
        subprocess.run([PAGES, cls.folder], check=True)
        done = subprocess.run([PROGRAM, *JOB], cwd=cls.folder, capture_output=True, text=True, check=False)
        cls.made = cls.folder / re.search("^files: (.*)", done.stdout + done.stderr, re.MULTILINE).group(1)
        cls.pages = [cls.made / "report.html", *(cls.folder / f"{name}.html" for name in MADE_UP)]

    def expect_readable(self, page, width, scheme, medium="screen"):
        with self.subTest(page=page.name, width=width, scheme=scheme, medium=medium):
            self.browser.show(width, scheme, medium)
            found = self.browser.check()
            self.assertGreater(found["count"], 150)
            self.assertEqual([], found["wrong"])

    def test_texts_are_readable_at_every_width(self):
        for page in self.pages:
            self.browser.open(page)
            self.browser.evaluate(OPEN_DETAILS)
            for width in browser.WIDTHS:
                for scheme in ("light", "dark"):
                    self.expect_readable(page, width, scheme)

    def test_texts_are_readable_on_paper(self):
        for page in self.pages:
            self.browser.open(page)
            self.expect_readable(page, browser.PAPER_HEIGHT, "light", "print")    # turned sideways
            self.browser.evaluate("document.querySelectorAll('.devices').forEach(devices => devices.remove())")
            for scheme in ("light", "dark"):
                self.expect_readable(page, browser.PAPER_WIDTH, scheme, "print")

    def test_nothing_is_loaded_or_run_or_reported(self):
        for page in self.pages:
            with self.subTest(page=page.name):
                self.browser.open(page)
                self.browser.show(1280)
                self.assertEqual(self.browser.troubles, [])

    def test_its_policy_refuses_what_would_load_or_run(self):
        for page in self.pages:
            with self.subTest(page=page.name):
                self.browser.open(page)
                self.browser.evaluate(INTRUDE)
                self.assertEqual(self.browser.troubles.count("issue: ContentSecurityPolicyIssue"), 2, self.browser.troubles)
                self.assertEqual(self.browser.evaluate("window.hasRun"), None)

    def test_heat_maps_grow_lighter_or_darker_with_what_they_show(self):
        self.browser.open(self.folder / "many.html")
        for scheme in ("light", "dark"):
            with self.subTest(scheme=scheme):
                self.browser.show(1280, scheme)
                lightness = [lab(self.browser.evaluate(COLOURS % f"rect.h{shade}"))[0] for shade in range(4)]
                steps = [later - former for former, later in zip(lightness, lightness[1:])]
                self.assertTrue(all(step < -12 for step in steps) or all(step > 12 for step in steps), lightness)

    def test_colours_of_bars_are_told_apart_by_the_colour_blind(self):
        self.browser.open(self.folder / "published.html")
        for scheme in ("light", "dark"):
            self.browser.show(1280, scheme)
            colours = [self.browser.evaluate(COLOURS % f".key.b{bar}") for bar in range(4)]
            for blindness in BLINDNESS:
                for i, one in enumerate(colours):
                    for other in colours[:i]:
                        with self.subTest(scheme=scheme, blindness=blindness, colours=(one, other)):
                            self.assertGreater(distance(one, other, blindness), 20)

    def expect_figures(self, page, result):
        """That the boxes at the top say what the result does."""
        self.browser.open(page)
        self.browser.show(1280)
        shown = {figure[0]: figure[1:] for figure in self.browser.evaluate(FIGURES)}
        figures = result["result"]
        median = figures["step_time_s"]["median"]
        self.assertEqual(shown["Step time, median"][0], seconds(median))
        self.assertEqual(shown["Throughput"][0].split()[0], "%.*f" % (figures["tokens_per_s"] < 1e4, figures["tokens_per_s"]))
        self.assertEqual(shown["Per device"][0].split()[0], "%.4g" % figures["tflops_per_device"])
        utilization = figures["mfu"][figures["flop_convention"]]
        self.assertEqual(shown["Model FLOPs utilization"][0].strip(),
                         "–" if utilization is None else f"{100 * utilization:.2f} %")
        expected = result["expected"]["step_s"]
        self.assertEqual(shown["To what is expected"][0], f"{100 * (median / expected - 1):+.1f} %")
        self.assertTrue(shown["To what is expected"][1].startswith(seconds(expected)))

    def expect_parts(self, result):
        """That the parts of the step are the result's, as taken and as expected."""
        rows = {row[0]: row[2:] for row in self.browser.evaluate(PARTS)[1:]}
        taken, expected = result["waterfall"]["parts_s"], result["expected"]["parts_s"]
        decimals = 6 if result["waterfall"]["step_s"] < 1 else 3
        shown = 0
        for part, value in taken.items():
            if part in rows:
                shown += 1
                self.assertEqual(rows[part], [f"{value:.{decimals}f} s", f"{100 * value / result['waterfall']['step_s']:.1f} %",
                                              f"{expected[part]:.{decimals}f} s", f"{value - expected[part]:+.{decimals}f} s"])
            else:
                self.assertLess(abs(value), 0.001 * result["waterfall"]["step_s"], part)
        self.assertGreaterEqual(shown, 4)

    def test_figures_are_those_of_the_result(self):
        for page in (self.made / "report.html", self.folder / "published.html"):
            with self.subTest(page=page.name):
                name = "result.json" if page.parent == self.made else "published.json"
                result = json.loads((page.parent / name).read_text())
                self.expect_figures(page, result)
                self.expect_parts(result)


class Check(unittest.TestCase):
    """That the check sees what it is there for."""

    CASES = {
        "10.0 px high": "<p style='font-size:10px'>small",
        "4.4 px high": "<svg viewBox='0 0 1000 100' width=400><text y=50 font-size=11>small",
        "contrast 1.": "<p style='color:#ddd'>faint",
        '"pieces" in pieces': "<p style='width:30px;overflow-wrap:anywhere'>pieces",
        "outside of its box": "<div style='width:40px;overflow:hidden;white-space:nowrap'>a text that is cut off",
        "beyond the edge of the page": "<div style='position:absolute;left:350px;width:200px'>a text that nobody can come to see",
        "one upon another": "<p>below<p style='margin-top:-34px'>above",
        "the page is 2000 px wide": "<style>body{margin:0}</style><div style='width:2000px'>x",
    }

    def test_each_kind_of_mistake_is_found(self):
        with browser.Browser() as shown, tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            for what, body in self.CASES.items():
                with self.subTest(what=what):
                    page.write_text(f"<!doctype html><meta charset=utf-8><body>{body}")
                    shown.open(page)
                    shown.show(400)
                    found = shown.check()["wrong"]
                    self.assertTrue(found and found[0].startswith(what), found)
            page.write_text("<!doctype html><body><p>fine<div style='overflow-x:auto;width:50px;white-space:nowrap'>"
                            "a text to scroll to</div><p>fine")
            shown.open(page)
            self.assertEqual(shown.check(), {"count": 3, "wrong": []})

    def test_what_a_page_does_is_noticed(self):
        with browser.Browser() as shown, tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            for kind, body in (("console", "<script>console.log(1)</script>"), ("exception", "<script>throw 1</script>"),
                               ("request", "<img src='http://127.0.0.1:9/x'>"), ("request", "<img src=x.png>"),
                               ("issue", "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">"
                                         "<script>1</script>")):
                with self.subTest(kind=kind):
                    page.write_text(f"<!doctype html><meta charset=utf-8>{body}")
                    shown.open(page)
                    self.assertTrue(any(trouble.startswith(kind) for trouble in shown.troubles), shown.troubles)


if __name__ == "__main__":
    if browser.find() is None:
        print("skipped: there is no Chromium")
        sys.exit(SKIPPED)
    unittest.main()
