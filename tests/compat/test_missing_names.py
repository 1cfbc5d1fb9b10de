"""What is said of a name that a module does not have."""

from __future__ import annotations

import importlib

import pytest

from retrograd import as_torch

MODULES = "nn nn.functional nn.init optim optim.lr_scheduler backends backends.cudnn linalg utils.data amp"


@pytest.mark.parametrize("name", MODULES.split())
def test_a_missing_name_is_told_by_torchs_name_of_the_module(name: str) -> None:
    own = importlib.import_module(f"retrograd.{name}")
    with as_torch():
        module = importlib.import_module(f"torch.{name}")
        assert module is own
        text = rf"^module 'torch\.{name}' has no attribute 'nothere' \(retrograd does not have it\)$"
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
