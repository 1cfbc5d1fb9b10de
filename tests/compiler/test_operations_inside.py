"""Every operation of the table, compiled, inside vmap, jvp and vmap of grad: numbers and errors are eager's, also in later calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.func import grad, jvp, vmap
from tests.compiler.test_inside import every
from tests.compiler.test_operations import trusted
from tests.ops.infos import OPS
from tests.ops.opinfo import Op, arrays_of, is_float
from tests.ops.test_all import each

__all__ = ["trusted"]  # it holds for the tests of this file, too
pytestmark = pytest.mark.slow
ROWS = (0, 1, 0)  # the first call records, the others run the record


def tensors_of(result: Any) -> tuple[Any, ...]:
    return tuple(one for one in (result if isinstance(result, (tuple, list)) else [result]) if torch.is_tensor(one))


def samples(function: Any, tensors: list[Any], floats: list[int]) -> Any:
    return vmap(lambda *row: tensors_of(function(*row)), randomness="same")(
        *[torch.stack([one, one]) for one in tensors]
    )


def tangents(function: Any, tensors: list[Any], floats: list[int]) -> Any:
    def of_floats(*chosen: Any) -> Any:
        return tuple(one for one in tensors_of(function(*beside(tensors, floats, chosen))) if one.is_floating_point())

    chosen = tuple(tensors[k] for k in floats)
    return jvp(of_floats, chosen, tuple(one * 0.5 + 0.1 for one in chosen))


def gradients(function: Any, tensors: list[Any], floats: list[int]) -> Any:
    def of_sample(*row: Any) -> Any:
        def loss(*chosen: Any) -> Any:
            outs = tensors_of(function(*beside(row, floats, chosen)))
            return sum((one.square().sum() for one in outs if one.is_floating_point()), torch.zeros(()))

        return grad(loss, tuple(range(len(floats))))(*[row[k] for k in floats])

    return vmap(of_sample, randomness="same")(*[torch.stack([one, one]) for one in tensors])


def beside(tensors: Any, places: list[int], chosen: Any) -> list[Any]:
    return [chosen[places.index(k)] if k in places else one for k, one in enumerate(tensors)]


def outcome(way: Any, function: Any, arrays: list[np.ndarray], floats: list[int]) -> Any:
    torch.manual_seed(3)
    try:
        found = way(function, [torch.from_numpy(one.copy()) for one in arrays], floats)
    except Exception as error:
        return type(error), str(error).partition("\n")[0]
    leaves = torch.utils._pytree.tree_leaves(found)
    return [one.detach().resolve_conj().resolve_neg().numpy() for one in leaves]


@each(OPS)
def test_compiled_inside(op: Op) -> None:
    sample = op.samples[0]
    kind = "int64" if "bitwise" in op.name else "float64"
    eager = lambda *tensors: op.function(torch, sample, tensors)  # noqa: E731
    compiled = torch.compile(eager)
    for way in (samples, tangents, gradients):
        for row in ROWS:
            arrays = arrays_of(op, sample, kind, row)
            floats = [k for k, one in enumerate(arrays) if is_float(sample)[k] and one.dtype.kind == "f"]
            made, expected = (outcome(way, function, arrays, floats) for function in (compiled, eager))
            if isinstance(expected, tuple):
                assert made == expected
                continue
            assert len(made) == len(expected)
            for one, other in zip(made, expected, strict=True):
                assert (one.dtype, one.shape) == (other.dtype, other.shape)
                np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7, equal_nan=True)
    for one in every(compiled._compiled):
        assert not any("differs" in reason and "strides" not in reason for reason in one.reasons), one.reasons
