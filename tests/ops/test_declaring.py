"""Declarations of operations that cannot work fail at once, with a sentence that says what to write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._core.arrays import operators
from retrograd._core.primitive import behind, elementwise, linear, primitives, unmoved


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Forget the operations that a test declares."""
    known = set(primitives)
    yield
    for name in set(primitives) - known:
        del primitives[name], operators[name]


def doubled_in_place_of(xp: Any, x: Any, *, dim: int) -> Any:
    return 2 * x


def reversed_along(xp: Any, x: Any, *, axis: Any) -> Any:
    return xp.flip(x, axis=axis)


def test_behind_says_which_parameters_it_moves() -> None:
    with pytest.raises(TypeError, match=r"doubled_in_place_of: batch=behind moves .* axis, axes, .*, and finds dim: "):
        linear(doubled_in_place_of, batch=behind)
    assert "doubled_in_place_of" not in primitives


def test_unmoved_takes_any_parameters() -> None:
    linear(doubled_in_place_of, batch=unmoved)
    found = torch.func.vmap(lambda x: primitives["doubled_in_place_of"](x, dim=0))(torch.ones(2, 3))
    assert found.tolist() == [[2, 2, 2], [2, 2, 2]]


@pytest.mark.parametrize("axis", [-1, (-1,), (0, -1)])
def test_behind_refuses_axes_that_count_from_the_end(axis: Any) -> None:
    primitive = linear(reversed_along, batch=behind)
    with pytest.raises(ValueError, match=r"reversed_along: axis=.* counts from the end"):
        torch.func.vmap(lambda x: primitive(x, axis=axis))(torch.ones(2, 3, 4))


def test_behind_takes_no_axes_at_all() -> None:
    primitive = linear(reversed_along, batch=behind)
    x = np.arange(6.0).reshape(2, 3)
    assert torch.func.vmap(lambda row: primitive(row, axis=()))(torch.tensor(x)).tolist() == x.tolist()
    assert torch.func.vmap(lambda row: primitive(row, axis=(0,)))(torch.tensor(x)).tolist() == x[:, ::-1].tolist()


def test_an_elementwise_operation_that_numpy_lacks_needs_an_implementation() -> None:
    with pytest.raises(TypeError, match="softcube: NumPy has no function of this name; give the operation an impl"):
        elementwise("softcube", dx=lambda xp, g, x: 2 * g * x)
    assert "softcube" not in primitives
