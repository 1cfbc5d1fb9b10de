"""Take the pictures of the viewer in docs/pictures, in an installed Chromium: python tools/viewer_pictures.py"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
SIZE = {"width": 1440, "height": 900}
LOOP = """import torch

weight = (0.4 * torch.randn(4, 4)).requires_grad_()


def cell(h, step):
    mixed = torch.tanh(h @ weight)
    if step % 7 == 0:
        mixed = mixed + torch.sigmoid(h)
    return mixed + 0.5 * h


h = torch.ones(4, 4)
for step in range(2400):
    h = cell(h, step)
h.mean().backward()
"""
FAILING = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(16, 4)  # should be 8, 4

    def forward(self, x):
        x = self.norm(x + self.encoder(x))
        return self.head(x)


model = Net()
loss = model(torch.randn(32, 8)).square().mean()
loss.backward()
"""
NAMES = ("chromium", "chromium-browser", "google-chrome")
# name, page, colours, what to do before the picture
SHOTS = [
    (
        "viewer",
        "gpt",
        "light",
        """() => {
            const { operations, steps } = viewer.recording;
            const attention = operations.filter((box) => box.name === "scaled_dot_product_attention");
            viewer.select(attention[1].id);
            viewer.slide(steps.findIndex((one) => one.kind === "backward" && one.operation === attention[1].id));
        }""",
    ),
    (
        "viewer_lines",
        "gpt",
        "dark",
        """() => {
            viewer.regroup("line");
            const { lines } = viewer.recording;
            viewer.chooseLine([lines.find((one) => viewer.recording.textOf(one).startsWith("return x + self.feed_forward")).id]);
        }""",
    ),
    ("viewer_loop", "loop", "light", "async () => { await viewer.openAll(true); viewer.slide(15000); }"),
    ("viewer_error", "failing", "light", "() => {}"),
]


def main() -> None:
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None:
        sys.exit("no Chromium is installed")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        (folder / "loop.py").write_text(LOOP)
        (folder / "train.py").write_text(FAILING)
        view(folder / "gpt.html", ROOT / "examples" / "gpt.py", "--steps", "1", "--out", name)
        view(folder / "loop.html", folder / "loop.py")
        view(folder / "failing.html", folder / "train.py", fails=True)
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for picture, page_name, colours, action in SHOTS:
            page = browser.new_page(viewport=SIZE, color_scheme=colours)
            page.goto((folder / f"{page_name}.html").as_uri())
            page.wait_for_selector("body[data-ready]")
            page.evaluate(action)
            page.screenshot(path=PICTURES / f"{picture}.png")
            page.close()
        browser.close()


def view(target: Path, script: Path, *arguments: str, fails: bool = False) -> None:
    """Record a script into a page."""
    command = [sys.executable, "-m", "retrograd", "view", "-o", target, script, *arguments]
    subprocess.run(list(map(str, command)), check=not fails, capture_output=True, cwd=script.parent)


if __name__ == "__main__":
    main()
