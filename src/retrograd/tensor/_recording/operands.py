"""What may stand beside a Tensor in arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _base
from .._base import wrap


def is_operand(value: Any) -> bool:
    """Tell whether a value can stand in arithmetic with a Tensor."""
    return isinstance(value, (_base.Tensor, bool, int, float, complex, np.generic, np.ndarray))


def plain_scalar(value: Any) -> Any:
    """Turn a NumPy scalar into the Python number torch treats it as, and a NumPy array into a Tensor."""
    if isinstance(value, np.ndarray):
        return wrap(value)
    return value.item() if isinstance(value, np.generic) else value


def not_a_tensor(name: str, position: int, value: Any, argument: str) -> str:
    """Write torch's complaint about an argument that is no Tensor."""
    from ..._signatures import tensor_hint, type_name

    got = f"{type_name(value)}{tensor_hint(value)}"
    return f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {got}"
