"""Train the same small problem in two libraries and compare where the parameters go."""

from __future__ import annotations

from typing import Any

import numpy as np

SHAPES = ((4, 3), (4,), (2, 4), ())
TOLERANCES = {"float32": 2e-5, "float64": 1e-6, "bfloat16": 5e-2, "float16": 5e-3, "complex64": 2e-5}


def start(library: Any, dtype: str = "float32", shapes: Any = SHAPES) -> list[Any]:
    """Return parameters with the same numbers in every library."""
    made = np.random.default_rng(3)
    found = []
    for shape in shapes:
        values = made.standard_normal(shape)
        if dtype.startswith("complex"):
            values = values + 1j * made.standard_normal(shape)
        tensor = library.tensor(values.tolist(), dtype=getattr(library, dtype))
        found.append(library.nn.Parameter(tensor))
    return found


def gradients(params: list[Any], step: int, library: Any) -> None:
    """Set gradients that depend on the parameters and on the step: of a bent bowl that moves."""
    with library.no_grad():
        for k, p in enumerate(params):
            push = np.sin(step + k) + (1j * np.cos(step) if p.is_complex() else 0)
            p.grad = (p.detach() - 0.3 * k) * 0.5 + 0.1 * push.item()


def train(
    library: Any, name: str, options: dict[str, Any], steps: int = 100, dtype: str = "float32", **more: Any
) -> Any:
    """Return the parameters after some steps, and the optimizer."""
    params = start(library, dtype, **more)
    optimizer = getattr(library.optim, name)(params, **options)
    for step in range(steps):
        gradients(params, step, library)
        optimizer.step()
    return params, optimizer


def numbers(tensor: Any) -> np.ndarray:
    """Return a tensor's numbers."""
    values = tensor.detach()
    if "float16" in str(values.dtype):
        values = values.float()
    return np.asarray(values.tolist())


def assert_alike(ours: list[Any], theirs: list[Any], dtype: str = "float32") -> None:
    for mine, other in zip(ours, theirs, strict=True):
        assert str(mine.dtype).split(".")[-1] == str(other.dtype).split(".")[-1]
        tolerance = TOLERANCES[dtype]
        np.testing.assert_allclose(numbers(mine), numbers(other), rtol=tolerance, atol=tolerance)


def assert_state_alike(mine: Any, other: Any, dtype: str = "float32") -> None:
    """Compare two state_dicts: names, order, types and numbers."""
    if hasattr(other, "dtype"):
        assert tuple(mine.shape) == tuple(other.shape)
        assert_alike([mine], [other], dtype if other.ndim else "float32")
    elif isinstance(other, dict):
        assert list(mine) == list(other)
        for name in other:
            assert_state_alike(mine[name], other[name], dtype)
    elif isinstance(other, (list, tuple)):
        assert type(mine) is type(other)
        for one, two in zip(mine, other, strict=True):
            assert_state_alike(one, two, dtype)
    else:
        assert mine == other
