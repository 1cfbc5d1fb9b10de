"""A real browser for tests: an installed Chromium, driven by Playwright. Where there is none, tests are skipped and say why."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def chromium() -> str | None:
    """Return the path of an installed Chromium."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


@contextmanager
def running_browser() -> Iterator[Any]:
    """Start a browser; skip the test where none can be started."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the viewer is tested with Playwright: pip install playwright"
    )
    path = chromium()
    if path is None:
        pytest.skip("the viewer is tested in Chromium, and none is installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])  # which root needs
        try:
            yield browser
        finally:
            browser.close()


def opened(browser: Any, file: Path, problems: list[str], **options: Any) -> Any:
    """Open a page offline; what its console complains of is added to `problems`."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True, **options)
    page = context.new_page()
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    return page
