"""torch.utils."""

from __future__ import annotations

from typing import Any

from .._absent import finder

__getattr__ = finder(
    "torch.utils",
    by_torchs_name=True,
    modules="""backcompat checkpoint collect_env data debug_log deterministic dlpack file_baton hooks model_zoo module_tracker
    serialization show_pickle""",
)


def set_module(obj: Any, mod: str) -> None:
    """Say that an object belongs to a module, for how it is printed."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange class, attributes, memory, gradient and history of two tensors; whoever holds one sees the other."""
    from ._swapping import swap_tensors as swap

    swap(t1, t2)
