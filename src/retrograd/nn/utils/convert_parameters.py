"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import _settings
from ..._tracebacks import guarded
from ...tensor._functions.joining import cat
from ...tensor._tensor import Tensor


@guarded
def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Join parameters into one vector."""
    return cat([one.view(-1) for one in _on_one_device(parameters)])


@guarded
def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Let parameters share the memory of a vector, piece by piece."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {_settings.typename(vec)}")
    whole: Any = vec
    start = 0
    for one in _on_one_device(parameters):
        count = one.numel()
        one.data = whole[start : start + count].view_as(one).data
        start += count


def _on_one_device(parameters: Iterable[Any]) -> list[Any]:
    given = list(parameters)
    if len({one.get_device() for one in given}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return given
