"""A pytest plugin: test files that import torch run on retrograd.

    pytest -p retrograd.pytest_torch tests/

It works from the moment it is imported, since a conftest.py may import torch before pytest calls any hook.
"""

from __future__ import annotations

import os
import sys

import pytest

from retrograd import _as_torch

if "torch" in sys.modules and not _as_torch.is_in_force():
    raise pytest.UsageError(
        f"{__name__}: torch was imported before this plugin, so the tests would run on both. Name the plugin on the "
        f"command line (pytest -p {__name__}), ahead of any plugin that imports torch"
    )
_as_torch.as_torch()


def pytest_report_header() -> str:
    """Say at the top of the report what the tests ran on."""
    return f"torch: retrograd, as torch {_as_torch.TORCH_VERSION}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Let workers load this plugin before their conftest files: those that `-p` names they load after them."""
    named = os.environ.get("PYTEST_PLUGINS", "").split(",")
    if __name__ not in named:
        os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, [__name__, *named]))
