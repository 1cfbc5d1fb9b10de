"""Writes into views reach the memory that they show, also inside transforms: every view of the table, and one of our own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._core.arrays import operators
from retrograd._core.primitive import behind, linear, primitives
from retrograd.tensor._aliasing.views import view_op
from tests.ops.infos import DIFFERENTIABLE
from tests.ops.opinfo import Float, Op, Sample, arrays_of, leaves
from tests.oracle import assert_same_answer

REPEATED = "more than one element of the written-to tensor refers to a single memory location"


def views_of(op: Op, sample: Sample, base: Any, others: list[Any]) -> list[Any]:
    """Return the results of an operation that are views of its first input."""
    found = op.function(torch, sample, (base, *others))
    return [one for one in (found if isinstance(found, (tuple, list)) else (found,)) if one._base is base]


def makes_views(op: Op, sample: Sample) -> bool:
    first, *others = leaves(sample) or [None]
    if not isinstance(first, Float) or 0 in first.shape or any(isinstance(one, Float) for one in others):
        return False
    base, *rest = [torch.tensor(one) for one in arrays_of(op, sample)]
    try:
        views = views_of(op, sample, base, rest)
        for one in views:
            one.mul_(3)
    except RuntimeError as error:
        if REPEATED not in str(error):
            raise
        return False
    return any(one.numel() for one in views)


CASES = [(op, sample) for op in DIFFERENTIABLE if op.batching for sample in op.samples if makes_views(op, sample)]


def test_the_table_has_views() -> None:
    assert {"view", "permute", "diagonal", "unfold", "select", "split"} <= {op.name for op, _ in CASES}


@pytest.mark.parametrize(("op", "sample"), CASES, ids=[f"{op.name}{sample}" for op, sample in CASES])
def test_writes_into_views(op: Op, sample: Sample) -> None:
    rows = [arrays_of(op, sample, row=row)[0] for row in range(3)]
    others = [torch.tensor(one) for one in arrays_of(op, sample)[1:]]

    def written(x: Any) -> Any:
        base = x.clone()
        for one in views_of(op, sample, base, others):
            one.mul_(3)  # linear, and so is the view
        return base

    check_written(written, rows)


def check_written(written: Any, rows: list[np.ndarray]) -> None:
    """Compare a linear function that writes, in each row and on a tangent, with the function without transforms."""
    expected = [written(torch.tensor(row)).numpy() for row in rows]
    assert any(not np.array_equal(one, row) for one, row in zip(expected, rows, strict=True))
    np.testing.assert_array_equal(torch.func.vmap(written)(torch.tensor(np.stack(rows))).numpy(), np.stack(expected))
    primal, tangent = torch.func.jvp(written, (torch.tensor(rows[0]),), (torch.tensor(rows[1]),))
    np.testing.assert_array_equal(primal.numpy(), expected[0])
    np.testing.assert_array_equal(tangent.numpy(), expected[1])


# ---- an operation that the library does not know ----
def skipped(xp: Any, x: Any, *, axis: int) -> Any:
    """Show every second element along an axis."""
    return x[(slice(None),) * axis + (slice(None, None, 2),)]


@pytest.fixture
def declare() -> Iterator[Any]:
    yield lambda **options: linear(skipped, batch=behind, **options)
    primitives.pop("skipped", None)
    operators.pop("skipped", None)


def test_writes_into_a_view_by_a_new_operation(declare: Any) -> None:
    primitive = declare(view=True)

    def written(x: Any) -> Any:
        base = x.clone()
        view_op(base, primitive, {"axis": 1}, "SkippedBackward0").mul_(3)
        return base

    check_written(written, [np.arange(6.0).reshape(2, 3) + row for row in range(3)])


def test_an_operation_makes_views_only_if_its_declaration_says_so(declare: Any) -> None:
    primitive = declare()

    def view(x: Any) -> Any:
        return view_op(x, primitive, {"axis": 0}, "SkippedBackward0")

    for call in (view, torch.func.vmap(view)):
        with pytest.raises(TypeError, match="skipped makes a view, but its declaration does not say view=True"):
            call(torch.ones(2, 3))


def test_strides_of_an_empty_view_by_a_new_operation(declare: Any) -> None:
    primitive = declare(view=True)
    view = view_op(torch.ones(0, 6).t(), primitive, {"axis": 0}, "SkippedBackward0")
    assert view.stride() == torch.ones(0, 6).t()[::2].stride()
    assert view.shape == (3, 0)
    assert view.storage_offset() == 0


def test_an_overwritten_view_is_named_as_torch_names_it() -> None:
    base = torch.ones(4, 4, requires_grad=True) * 1
    squares = base.unfold(0, 2, 1) ** 2
    base.mul_(2)
    with pytest.raises(RuntimeError, match="which is output 0 of AsStrided, is at version 1; expected version 0"):
        squares.sum().backward()


NOT_COMPARED = {"pin_memory", "backward"}  # the first asks torch for a device that it was built without


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["int64", "float32", "bool", "complex64"])
def test_methods_give_the_memory_of_their_tensor_where_torchs_do(dtype: str) -> None:
    names = {name for name in dir(torch.Tensor) if not name.startswith("_") and not name.endswith("_")} - NOT_COMPARED

    def sharing(library: Any) -> dict[Any, tuple[bool, bool]]:
        found = {}
        for name in sorted(names):
            for args in ((), (0,), (1,)):
                x = library.ones(3, 3).to(getattr(library, dtype))
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        result = getattr(x, name)(*args)
                    memory = result.untyped_storage().data_ptr()
                except Exception:  # other arguments are wanted, or it is no tensor
                    continue
                found[name, args] = result is x, memory == x.untyped_storage().data_ptr()
        return found

    assert_same_answer(sharing)
