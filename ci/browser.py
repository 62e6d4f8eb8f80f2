"""A headless Chromium, asked over its debugging pipe: what page_test.py looks at pages with. Standard library only."""
import json
import os
import shutil
import subprocess
import tempfile
import time

# Of every element that shows text of its own: its colour, what it stands on, its size. Text in drawings is filled.
CONTRAST = """(() => {
  const rgb = text => { const m = text.match(/[\\d.]+/g); return m ? m.map(Number) : [0, 0, 0, 0]; };
  const light = c => { const f = c.slice(0, 3).map(v => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); });
    return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const bad = []; let seen = 0;
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || e.closest('script,style') || !e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const a = light(rgb(e instanceof SVGElement ? style.fill : style.color)), b = light(ground(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    seen++;
    if (contrast < 4.5 && e.id !== 'tip') bad.push(e.tagName + '.' + e.getAttribute('class') + ' ' +
      contrast.toFixed(2) + ' ' + e.textContent.trim().slice(0, 40));
  }
  return [seen, bad.slice(0, 5)];
})()"""

# Labels over a column of strips that lie on each other, or beyond their column.
OVERLAPS = """(() => {
  const axes = [...document.querySelectorAll('.axis')].filter(a => a.getClientRects().length);
  return axes.length == 0 ? ['no labels'] : axes.flatMap(a => {
    const own = a.getBoundingClientRect(), all = [...a.children].map(e => e.getBoundingClientRect());
    return all.filter((r, n) => r.left < own.left - 1 || r.right > own.right + 1 || (n && r.left < all[n - 1].right))
              .map(() => a.innerText); });
})()"""


def program():
    """Its path, or None where it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One window. Every event that it tells is kept in `events`."""

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory()
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def as_three_and_four():
            # Both numbers are made free first: a pipe may have been given one of them.
            first, second = os.dup(to_browser), os.dup(from_browser)
            high_first, high_second = os.dup2(first, 100), os.dup2(second, 101)
            os.dup2(high_first, 3)
            os.dup2(high_second, 4)

        self.process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir=" + self.profile.name],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=as_three_and_four, close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        time.sleep(0.2)  # its children let go of the profile
        shutil.rmtree(self.profile.name, ignore_errors=True)

    def message(self):
        while b"\0" not in self.buffer:
            more = os.read(self.read_end, 1 << 20)
            if not more:
                raise RuntimeError("the browser ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **parameters):
        self.number += 1
        call = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.write_end, json.dumps(call).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(self, path, width=1280, height=900, dark=False, script=True):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 500)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.ask("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.ask("Page.navigate", url="file://" + path)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def run(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def of(self, method):
        return [event["params"] for event in self.events if event.get("method") == method]
