"""Names that stand in another module here than in torch."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings

import pytest

import retrograd
from retrograd import _elsewhere

NAMES = [
    (home, name)
    for home, places in _elsewhere.table().items()
    for name in places
    if name != "*" and not home.startswith("torch._")
]


@pytest.mark.parametrize(("home", "name"), NAMES)
def test_a_name_is_found_in_torchs_module(home: str, name: str) -> None:
    module = importlib.import_module("retrograd" + home.removeprefix("torch"))
    assert getattr(module, name) is not None


@pytest.mark.oracle
@pytest.mark.parametrize(("home", "name"), NAMES)
def test_torch_has_a_name_there(home: str, name: str) -> None:
    pytest.importorskip("torch")
    with warnings.catch_warnings(action="ignore"):
        assert hasattr(importlib.import_module(home), name)


def test_a_module_that_has_no_file_is_imported_under_torchs_name() -> None:
    program = """
import retrograd; retrograd.as_torch()
import torch.signal.windows.windows as windows
from torch.accelerator.memory import memory_stats
from torch.cuda.amp.autocast_mode import autocast
print(windows.hann(3).tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[0.0, 1.0, 0.0]\n", done.stderr


def test_import_reads_no_list_of_names() -> None:
    program = "import retrograd, sys; print('retrograd._elsewhere' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_a_name_that_nobody_has_is_refused() -> None:
    windows = importlib.import_module("retrograd.signal.windows.windows")
    with pytest.raises(AttributeError, match="has no attribute 'haan'"):
        _ = windows.haan
    with pytest.raises(AttributeError, match="has no attribute"):
        _ = retrograd.accelerator.no_such_thing
