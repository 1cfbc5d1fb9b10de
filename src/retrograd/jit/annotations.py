"""torch.jit.annotations: names of types in the signatures of scripted functions."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 - the names are what programs import

from .._absent import finder

_internal: Any = import_module("retrograd._jit_internal")  # it lies in `_compat/`
BroadcastingList1, BroadcastingList2 = _internal.BroadcastingList1, _internal.BroadcastingList2
BroadcastingList3 = _internal.BroadcastingList3

__getattr__ = finder("torch.jit.annotations")
__all__ = [
    "Any",
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "List",
    "Optional",
    "Tuple",
    "Union",
]
