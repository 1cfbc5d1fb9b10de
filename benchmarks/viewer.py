"""How long does the viewer take to open, and how long is a step of its slider? In Chromium, folded and unfolded.

    python benchmarks/viewer.py     (needs Playwright and an installed Chromium)

The two pages are a training step of examples/gpt.py and a loop of 10,000 operations. A slider step is what the page's script does
for it, drawing included; the median and the 95th percentile of 200 steps.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

EXAMPLE = Path(__file__).parents[1] / "examples" / "gpt.py"
LOOP = """
import torch
weight = (0.1 * torch.eye(4)).requires_grad_()
h = torch.ones(4, 4)
for step in range(2500):
    h = (h @ weight).tanh() + 0.5 * h
h.mean().backward()
"""
SLIDE = """() => {
    const count = viewer.recording.steps.length;
    const times = [];
    for (let i = 0; i < 200; i++) {
        const before = performance.now();
        viewer.slide(Math.floor((i * count) / 200));
        for (const id of ["front", "over"]) document.getElementById(id).getContext("2d").getImageData(0, 0, 1, 1); // until all is drawn
        times.push(performance.now() - before);
    }
    times.sort((a, b) => a - b);
    return [times[100], times[190]];
}"""


def main() -> None:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("no Chromium is installed")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        write(folder / "gpt.html", EXAMPLE, "--steps", "1", "--out", name)
        (folder / "loop.py").write_text(LOOP)
        write(folder / "loop.html", folder / "loop.py")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for file in ("gpt.html", "loop.html"):
            measure(browser, folder / file)
        browser.close()


def write(target: Path, script: Path, *arguments: str) -> None:
    """Record a script into a page."""
    command = [sys.executable, "-m", "retrograd", "view", "-o", target, script, *arguments]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


def measure(browser, file: Path) -> None:
    """Print the figures of one page."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    start = time.perf_counter()
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready]")
    opened = time.perf_counter() - start
    folded = page.evaluate(SLIDE)
    unfolding = page.evaluate(
        "async () => { const t = performance.now(); await viewer.openAll(true); return performance.now() - t; }"
    )
    unfolded = page.evaluate(SLIDE)
    count = page.evaluate("viewer.recording.operations.length")
    print(
        f"{file.stem}: {count} boxes, {file.stat().st_size / 1e6:.2f} MB, open {opened:.2f} s, unfold all {unfolding:.0f} ms; "
        f"slider step {folded[0]:.1f} ms (95 %: {folded[1]:.1f}), unfolded {unfolded[0]:.1f} ms (95 %: {unfolded[1]:.1f})"
    )
    page.close()


if __name__ == "__main__":
    main()
