# SPDX-License-Identifier: MIT
"""Controls a headless Chromium through a pipe, to show pages at given sizes, on screen and in print.

As a program it saves pictures of a page to inspect: browser.py PAGE FOLDER
"""
import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (400, 1000, 1280, 1600)
PAPER_WIDTH, PAPER_HEIGHT = 718, 1047    # A4 without margins of 1 cm, in CSS pixels
START_SECONDS, ANSWER_SECONDS = 120, 60    # time limits, long enough for a busy machine
CHECK = pathlib.Path(__file__).with_name("page_check.js")


def find():
    """Returns the path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """Controls one page at a time. `troubles` lists errors, requests and policy violations since it was opened."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10) for pair in (os.pipe(), os.pipe()) for descriptor in pair]
        theirs = ours[0], ours[3]    # Chromium reads from descriptor 3, and writes to 4
        self.reader, self.writer = ours[2], ours[1]
        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=lambda: (os.dup2(theirs[0], 3), os.dup2(theirs[1], 4)))
        for descriptor in theirs:
            os.close(descriptor)
        self.unread, self.count, self.session, self.troubles, self.events = b"", 0, None, [], set()
        self.call("Browser.getVersion", seconds=START_SECONDS)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.writer)    # the browser exits when its pipe is closed
        os.close(self.reader)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def read(self, deadline):
        """Returns the next message."""
        while b"\0" not in self.unread:
            if not select.select([self.reader], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.reader, 1 << 20)
            if not part:
                raise ConnectionError("the browser has ended")
            self.unread += part
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def notice(self, event):
        """Adds errors, requests and policy violations of the page to `troubles`."""
        method, what = event.get("method", ""), event.get("params", {})
        self.events.add(method)
        if method == "Runtime.consoleAPICalled":
            self.troubles.append(f"console: {what['args']}")
        elif method == "Runtime.exceptionThrown":
            self.troubles.append(f"exception: {what['exceptionDetails']}")
        elif method == "Log.entryAdded":
            self.troubles.append(f"log: {what['entry']['text']}")
        elif method == "Audits.issueAdded":
            self.troubles.append(f"issue: {what['issue']['code']}")
        elif method == "Network.requestWillBeSent" and what["request"]["url"] not in (self.address, "about:blank"):
            self.troubles.append(f"request: {what['request']['url']}")

    address = "about:blank"

    def call(self, method, seconds=ANSWER_SECONDS, **parameters):
        """Calls a method of the DevTools protocol and returns the browser's answer."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + seconds
        while True:
            answer = self.read(deadline)
            if answer.get("id") != self.count:
                self.notice(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def open(self, path):
        """Opens a file and waits until it is loaded."""
        self.address = pathlib.Path(path).resolve().as_uri()
        self.troubles = []
        self.events.discard("Page.loadEventFired")
        self.call("Page.navigate", url=self.address)
        deadline = time.monotonic() + ANSWER_SECONDS
        while "Page.loadEventFired" not in self.events:
            self.notice(self.read(deadline))

    def show(self, width, scheme="light", medium="screen"):
        """Sets the width, the colour scheme, and the medium (screen or print)."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=medium,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression. The page itself may not run scripts."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def check(self):
        """Returns the problems with the visible texts of the page, and the number of texts."""
        return self.evaluate(CHECK.read_text())

    def picture(self, path, height=None):
        """Saves the whole page, or its upper part, as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))


def main(page, folder):
    """Saves pictures of a page at every width, light and dark, and in print."""
    with Browser() as browser:
        browser.open(page)
        for scheme in ("light", "dark"):
            for width in WIDTHS:
                browser.show(width, scheme)
                browser.picture(f"{folder}/{width}-{scheme}.png")
        browser.show(PAPER_WIDTH, medium="print")
        browser.picture(f"{folder}/print.png")
        data = browser.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]
        pathlib.Path(folder, "print.pdf").write_bytes(base64.b64decode(data))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
