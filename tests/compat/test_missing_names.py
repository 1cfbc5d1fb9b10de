"""What is said of a name that a module does not have."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from retrograd import as_torch

MODULES = "nn nn.functional nn.init optim optim.lr_scheduler backends backends.cudnn linalg utils.data amp"


@pytest.mark.parametrize("name", MODULES.split())
def test_a_missing_name_is_told_by_torchs_name_of_the_module(name: str) -> None:
    own = importlib.import_module(f"retrograd.{name}")
    with as_torch():
        module = importlib.import_module(f"torch.{name}")
        assert module is own
        text = rf"^module 'torch\.{name}' has no attribute 'nothere' \(torch does not have it either\)$"
        with pytest.raises(AttributeError, match=text):
            _ = module.nothere
        assert getattr(module, "nothere", 3) == 3
        assert not hasattr(module, "__path_of_nothing__")
    with pytest.raises(AttributeError, match=f"^module 'retrograd.{name}' has no attribute 'nothere'"):
        _ = own.nothere


def test_a_module_that_is_loaded_later_says_so_as_well() -> None:
    with as_torch():
        module = importlib.import_module("torch.utils.benchmark")
        with pytest.raises(AttributeError, match=r"^module 'torch\.utils\.benchmark' has no attribute 'nothere'"):
            _ = module.nothere


def test_a_name_that_torch_has_is_told_from_one_that_nobody_has() -> None:
    with as_torch():
        torch = importlib.import_module("torch")
        with pytest.raises(
            AttributeError, match=r"^module 'torch' has no attribute 'ThroughputBenchmark' \(torch has it; retro"
        ):
            _ = torch.ThroughputBenchmark
        with pytest.raises(AttributeError, match=r"has no attribute 'Liner' \(.*did you mean 'Linear'\?\)$"):
            _ = torch.nn.Liner
        with pytest.raises(
            ImportError, match=r"^No module named 'torch.nn.nothing' \(torch does not have it either\)$"
        ):
            importlib.import_module("torch.nn.nothing")


def test_asking_for_a_name_does_not_read_the_list_of_torchs_names() -> None:
    code = """
import retrograd
from retrograd import _missing
assert not hasattr(retrograd, "nothere")
assert _missing.torch_names.cache_info().currsize == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)
