"""Fused operations as steps of a program: functions of arrays alone, one for each set of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.fused import Fused, _half_of
from .._core.numpy_namespace import numpy_namespace


def forward_of(operation: Fused, params: dict[str, Any]) -> Callable[..., tuple[Any, ...]]:
    """Return the forward: its results, and behind them what the backward reads."""
    several, takes_halves, implementation = operation.outputs != 1, operation.takes_halves, operation.implementation

    def forward(*arrays: Any) -> tuple[Any, ...]:
        if takes_halves or _half_of(arrays) is None:
            out, residuals = implementation(numpy_namespace, *arrays, **params)
        else:
            out, residuals = operation.run(arrays, params)
        return (*out, residuals) if several else (out, residuals)

    return forward


def backward_of(operation: Fused, needed: tuple[bool, ...], params: dict[str, Any]) -> Callable[..., tuple[Any, ...]]:
    """Return the backward: a gradient for each array, None where none is needed."""

    def backward(g: Any, residuals: Any, *arrays: Any) -> tuple[Any, ...]:
        return tuple(operation.pull_back(g, needed, residuals, arrays, params))

    return backward
