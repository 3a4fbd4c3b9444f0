# SPDX-License-Identifier: MIT
"""Tests pages of runs, a prediction, a sweep and a comparison in a browser. They must be readable at every width, in
light, dark and print; colour-blind readers can tell colours apart; pages load nothing and run no script; numbers equal
the JSON documents. Skipped without Chromium."""
import base64
import csv
import json
import math
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
# Four ranks run as threads with steps of milliseconds. A fictional machine profile gives them an expected step time.
MODEL = ("--config tiny-llama --layers 2 --ranks 4"
         " --set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16 --set model.ffn=32"
         " --set model.vocab=64 --set train.sequence=16 --set hardware.profile=h100-sxm --set hardware.cores=2"
         " --set hardware.peak_bf16=2e11 --set hardware.memory_bandwidth=1e10").split()
JOB = ["run", *MODEL, *"--comm local --backend host --quiet --steps 12 --warmup 2".split()]
PIPELINE = ["--set", "parallel.pp=2"]
MADE_UP = ("published", "many", "invalid", "emulated")

FIGURES = """[...document.querySelectorAll(".figure")].map(figure => [...figure.children].map(part => part.innerText))"""
TABLE = """[...document.querySelectorAll("%s tr")].map(row => [...row.children].map(cell => cell.innerText))"""
LINKS = """[...document.querySelectorAll(".list a")].map(link => link.getAttribute("href"))"""
BARS = """[...document.querySelectorAll("svg[aria-label='Pipeline schedule'] rect")].map(bar => bar.textContent)"""
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

# Matrices in linear RGB that simulate colour blindness, from Machado, Oliveira and Fernandes 2009.
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
    """Returns CIE L*a*b* of a colour like "rgb(1, 2, 3)", as a reader with this colour blindness sees it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    seen = [min(max(part, 0), 1) for part in multiply(BLINDNESS[blindness], linear)]
    x, y, z = ((value / white) ** (1 / 3) if value / white > 0.008856 else 7.787 * value / white + 16 / 116
               for value, white in zip(multiply(TO_XYZ, seen), D65))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one, other, blindness):
    """Returns the distance of two colours. Side by side, readers just notice a distance of about 2."""
    return sum((a - b) ** 2 for a, b in zip(lab(one, blindness), lab(other, blindness))) ** 0.5


def decimals_of(value):
    """Returns the decimals that give a time four digits."""
    return min(max(3 - math.floor(math.log10(value)), 0), 9)


def seconds(value):
    """Formats seconds like the page."""
    return f"{value:.{decimals_of(value)}f} s"


the_browser = None    # one for all tests


def setUpModule():
    global the_browser
    the_browser = unittest.enterModuleContext(browser.Browser())


class Page(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.browser = the_browser
        subprocess.run([PAGES, cls.folder], check=True)
        cls.made = cls.command(*JOB)
        cls.predicted = cls.command("predict", *MODEL, *PIPELINE, "-o", "predictions")
        cls.sweep = cls.command("predict", *MODEL, "--sweep", "-o", "sweep")
        cls.comparison = cls.folder / "comparison.html"
        sides = [cls.predicted, cls.sweep.parent / "latest", cls.made]
        cls.command("compare", *sides, "-o", cls.comparison, "--force")    # load of other programs may degrade a run
        cls.compared = json.loads(cls.command("compare", *sides, "--json", "--force"))
        ranks = [*MODEL, "--comm", "local", "--backend", "host", "--seconds", "1"]
        for words in (["preflight", *ranks, "-o", "preflight"],
                      ["accept", *ranks, "--steps", "6", "--set", "hardware.device=other", "-o", "accept"]):
            subprocess.run([PROGRAM, *words], cwd=cls.folder, capture_output=True, check=False)    # fails if load of other programs is refused
        for name, words in (("table", ""), ("history", "--history")):
            (cls.folder / f"{name}.html").write_text(cls.command(*f"table results --force --format html {words}".split()))
        cls.grids = [cls.folder / name for name in ("table.html", "history.html", "preflight/preflight.html",
                                                    "accept/accept.html")]
        cls.pages = [cls.made / "report.html", cls.predicted / "report.html", cls.sweep, cls.comparison, *cls.grids,
                     *(cls.folder / f"{name}.html" for name in MADE_UP)]

    @classmethod
    def command(cls, *words):
        """Runs a command and returns the folder of files that it reports, or else its output."""
        done = subprocess.run([PROGRAM, *words], cwd=cls.folder, capture_output=True, text=True, check=True)
        files = re.search("^files:? +(.*)", done.stdout, re.MULTILINE)
        return cls.folder / files.group(1) if files else done.stdout

    def expect_readable(self, page, width, scheme, medium="screen"):
        with self.subTest(page=page.name, width=width, scheme=scheme, medium=medium):
            self.browser.show(width, scheme, medium)
            found = self.browser.check()
            self.assertGreater(found["count"], 10 if page in self.grids else 80)
            self.assertEqual([], found["wrong"])

    def test_texts_are_readable_at_every_width(self):
        for page in self.pages:
            self.browser.open(page)
            self.browser.evaluate(OPEN_DETAILS)
            for width in browser.WIDTHS:
                self.expect_readable(page, width, "light")
            self.expect_readable(page, 1000, "dark")    # only colours are checked: they do not depend on the width

    def test_texts_are_readable_on_paper(self):
        for page in self.pages:
            self.browser.open(page)
            self.expect_readable(page, browser.PAPER_HEIGHT, "light", "print")    # landscape
            self.browser.evaluate("document.querySelectorAll('.devices').forEach(devices => devices.remove())")
            self.expect_readable(page, browser.PAPER_WIDTH, "dark", "print")    # print is always light

    def test_nothing_is_loaded_or_run_or_reported(self):
        for page in self.pages:
            with self.subTest(page=page.name):
                self.browser.open(page)
                self.browser.show(1280)
                self.assertEqual(self.browser.troubles, [])

    def test_its_policy_refuses_what_would_load_or_run(self):
        for page in (self.pages[0], self.comparison):
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

    def figures_of(self, page):
        """Returns the boxes at the top of the page by name."""
        self.browser.open(page)
        self.browser.show(1280)
        return {figure[0]: figure[1:] for figure in self.browser.evaluate(FIGURES)}

    def expect_rates(self, boxes, figures):
        """Checks that the boxes at the top equal the result."""
        self.assertEqual(boxes["Throughput"][0].split()[0], "%.*f" % (figures["tokens_per_s"] < 1e4, figures["tokens_per_s"]))
        self.assertEqual(boxes["Per device"][0].split()[0], "%.4g" % figures["tflops_per_device"])
        utilization = figures["mfu"][figures["flop_convention"]]
        self.assertEqual(boxes["Model FLOPs utilization"][0].strip(),
                         "–" if utilization is None else f"{100 * utilization:.2f} %")

    def expect_figures(self, page, result):
        """Checks the boxes of a run, including its expected step."""
        boxes = self.figures_of(page)
        median = result["result"]["step_time_s"]["median"]
        self.assertEqual(boxes["Step time, median"][0], seconds(median))
        self.expect_rates(boxes, result["result"])
        expected = result["expected"]["step_s"]
        self.assertEqual(boxes["Ratio to expected"][0], f"{100 * (median / expected - 1):+.1f} %")
        self.assertTrue(boxes["Ratio to expected"][1].startswith(seconds(expected)))

    def expect_parts(self, result):
        """Checks that the measured and expected parts of the step equal the result."""
        rows = {row[0]: row[2:] for row in self.browser.evaluate(PARTS)[1:]}
        taken, expected = result["waterfall"]["parts_s"], result["expected"]["parts_s"]
        decimals = decimals_of(result["waterfall"]["step_s"])
        shown = 0
        for key, value in taken.items():
            part = key.replace("_", "-")
            if part in rows:
                shown += 1
                self.assertEqual(rows[part], [f"{value:.{decimals}f} s", f"{100 * value / result['waterfall']['step_s']:.1f} %",
                                              f"{expected[key]:.{decimals}f} s", f"{value - expected[key]:+.{decimals}f} s"])
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

    def test_figures_of_a_prediction_are_those_of_its_result(self):
        result = json.loads((self.predicted / "result.json").read_text())
        figures, turns = result["predicted"], result["waterfall"]["turns"]
        boxes = self.figures_of(self.predicted / "report.html")
        self.assertEqual(boxes["Step time"], [seconds(figures["step_time_s"]["median"]),
                                              f"predicted, +-{result['expected']['percent']:.1f} %"])
        self.expect_rates(boxes, figures)
        bars = self.browser.evaluate(BARS)
        self.assertEqual(len(bars), len(turns))
        for bar, turn in zip(bars, turns):
            self.assertTrue(bar.startswith(f"stage {turn['stage']}, {turn['phase']}"), bar)
            self.assertTrue(bar.endswith(f"{turn['begin_s']:.6g} to {turn['end_s']:.6g} s"), bar)
        self.assertEqual({turn["stage"] for turn in turns}, {0, 1})
        self.browser.show(360)    # the waterfall needs no scrolling
        self.assertTrue(self.browser.evaluate("(box => box.scrollWidth <= box.clientWidth)"
                                              "(document.querySelector('.parts').parentElement)"))
        rows = {row[0]: row[2:] for row in self.browser.evaluate(TABLE % ".roofline")[1:]}
        gemms = [ops for ops in result["waterfall"]["op_times"] if ops["kind"] == "gemm"]
        rate = sum(ops["flops"] for ops in gemms) / sum(ops["time_s"] for ops in gemms)
        self.assertEqual(rows["gemm"][1], f"{rate / 1e12:.4g} TFLOP/s")

    def test_rows_of_a_sweep_are_those_of_its_predictions(self):
        self.browser.open(self.sweep)
        self.browser.show(1280)
        rows, links = self.browser.evaluate(TABLE % ".list")[1:], self.browser.evaluate(LINKS)
        self.assertEqual(len(rows), len(links))
        self.assertGreater(len(rows), 3)
        self.assertRegex(self.browser.evaluate("document.querySelector('.card p').innerText"),
                         r"^The fastest layout takes [\d.]+ s per step, as predicted; 1 to \d+ are equal within the "
                         r"prediction error of \d+\.\d %$")
        self.assertRegex(rows[0][5], r"^[\d.]+ [KMG]iB\n\d+ % of device$")
        last = 0
        for row, link in zip(rows, links):
            figures = json.loads((self.sweep.parent / link).with_name("result.json").read_text())["predicted"]
            median = figures["step_time_s"]["median"]
            self.assertEqual(row[2:4], [seconds(median), f"{figures['tokens_per_s_per_device']:.1f}"])
            self.assertTrue(median >= last or row[0].startswith("own"))
            last = median

    def test_figures_of_a_comparison_are_those_of_its_json(self):
        speedups = [1.0, *(one["step_time"]["speedup"] for one in self.compared["comparisons"])]
        self.browser.open(self.comparison)
        self.browser.show(1280)
        rows = self.browser.evaluate(TABLE % ".list")[1:]
        self.assertEqual([row[-1] for row in rows], [f"{speedup:.3f} ×" for speedup in speedups])
        changes = {row[0]: row[-1] for row in self.browser.evaluate(TABLE % ".changes")[::-1]}    # first of each name
        parts = self.compared["comparisons"][0]["parts"]
        decimals = decimals_of(sum(part["first_s"] for part in parts))
        for part in parts:
            if part["first_s"] or part["second_s"]:
                change = part["second_s"] - part["first_s"]
                self.assertEqual(changes[part["name"]],
                                 f"{change:+.{decimals}f} s" if abs(change) >= 0.5 * 10**-decimals else "0")

    def test_a_comparison_begins_with_its_answer(self):
        one = self.command("predict", *MODEL, "--set", "train.micro_batch=2", "-o", "larger")
        self.command("compare", self.predicted, one, "-o", "answer.html", "--force")
        change = json.loads(self.command("compare", self.predicted, one, "--json", "--force"))["step_time"]
        self.browser.open(self.folder / "answer.html")
        card = self.browser.evaluate("document.querySelector('.card').innerText")
        percent = abs(100 * (1 / change["speedup"] - 1))
        word = "less time" if change["speedup"] > 1 else "longer"
        self.assertTrue(card.startswith(f"The second takes {percent:.1f} % {word}"), card)
        self.assertIn("Both are predictions, with errors of", card)

    def test_rows_of_tables_are_those_of_csv(self):
        for name, words in (("table", ""), ("history", "--history")):
            with self.subTest(name=name):
                lines = list(csv.reader(self.command(*f"table results --force --format csv {words}".split()).splitlines()))
                known = [column for column in range(len(lines[0])) if any(line[column] not in ("", "-") for line in lines[1:])]
                self.browser.open(self.folder / f"{name}.html")
                self.browser.show(1280)
                rows = self.browser.evaluate(TABLE % ".grid")[1:]
                self.assertEqual(rows, [[line[column] or "-" for column in known] for line in lines[1:]])
                self.browser.show(400)    # rows become lists of named cells
                self.assertEqual(self.browser.evaluate("getComputedStyle(document.querySelector('.grid td'), '::before').content"),
                                 '"config"')

    def test_preflight_and_acceptance_begin_with_their_answer(self):
        for page, name in zip(self.grids[2:], ("preflight", "accept")):
            with self.subTest(page=page.name):
                self.browser.open(page)
                found = json.loads((page.parent / f"{name}.json").read_text())
                card = self.browser.evaluate("document.querySelector('.card').textContent")
                flight = found if name == "preflight" else found["preflight"]
                outliers, classes = len(flight["outliers"]), flight["classes"]
                answer = (f"{outliers or 'No'} outlier{'s' * (outliers > 1)} among 4 ranks: "
                          f"{sum(one['limit_percent'] > 0 for one in classes)} of {len(classes)} measurements have a limit")
                self.assertTrue(card.startswith(answer if name == "preflight" else found["reason"]), card)
                self.assertIn("Hosts to drain:", card)

    def test_pages_print_on_few_sheets(self):
        for page in (self.made / "report.html", self.predicted / "report.html", self.sweep, *self.grids):
            with self.subTest(page=page.name):
                self.browser.open(page)
                self.browser.show(browser.PAPER_WIDTH, medium="print")
                data = self.browser.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]
                sheets = len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(data)))
                self.assertIn(sheets, range(1, 5))

    def test_the_command_of_a_page_repeats_its_job(self):
        self.browser.open(self.predicted / "report.html")
        words = self.browser.evaluate("document.querySelector('h2 ~ p > code').innerText").split()
        self.assertEqual(words, "gswbench predict --config config.merged.ini --ranks 4".split())
        again = json.loads(subprocess.run([PROGRAM, *words[1:], "--json"], cwd=self.predicted, capture_output=True,
                                          check=True).stdout)
        result = json.loads((self.predicted / "result.json").read_text())
        self.assertAlmostEqual(again["rows"][0]["predicted"]["step_s"], result["predicted"]["step_time_s"]["median"], 9)
        options = self.browser.evaluate("document.querySelector('.options').innerText")
        self.assertIn("parallel.pp = 2", options)
        self.assertNotIn("parallel.tp =", options)


class Check(unittest.TestCase):
    """Checks that page_check.js detects each problem."""

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
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            for what, body in self.CASES.items():
                with self.subTest(what=what):
                    page.write_text(f"<!doctype html><meta charset=utf-8><body>{body}")
                    the_browser.open(page)
                    the_browser.show(400)
                    found = the_browser.check()["wrong"]
                    self.assertTrue(found and found[0].startswith(what), found)
            page.write_text("<!doctype html><body><p>fine<div style='overflow-x:auto;width:50px;white-space:nowrap'>"
                            "a text to scroll to</div><p>fine")
            the_browser.open(page)
            self.assertEqual(the_browser.check(), {"count": 3, "wrong": []})

    def test_what_a_page_does_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            for kind, body in (("console", "<script>console.log(1)</script>"), ("exception", "<script>throw 1</script>"),
                               ("request", "<img src='http://127.0.0.1:9/x'>"), ("request", "<img src=x.png>"),
                               ("issue", "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">"
                                         "<script>1</script>")):
                with self.subTest(kind=kind):
                    page.write_text(f"<!doctype html><meta charset=utf-8>{body}")
                    the_browser.open(page)
                    self.assertTrue(any(trouble.startswith(kind) for trouble in the_browser.troubles), the_browser.troubles)


if __name__ == "__main__":
    if browser.find() is None:
        print("skipped: there is no Chromium")
        sys.exit(SKIPPED)
    unittest.main()
