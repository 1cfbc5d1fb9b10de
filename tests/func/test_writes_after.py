"""Writes into what a transform has returned: gradients stay as they were, or backward says that a saved value was modified."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd import func
from retrograd.autograd import forward_ad
from tests.ops.infos import DIFFERENTIABLE
from tests.ops.opinfo import Op, Sample, arrays_of, is_float
from tests.oracle import Raised, outcome, whole

MODIFIED = "modified by an inplace operation"
REFUSALS = f"{MODIFIED}|more than one element of the written-to tensor|is a view and its base or another view"
KEEPING = frozenset(["exp", "tanh", "sigmoid", "sqrt", "softmax", "amax", "cumprod", "linalg_inv", "linalg_solve"])


def results(value: Any) -> list[Any]:
    """Return the tensors of a result that have a derivative."""
    parts = list(value) if isinstance(value, (tuple, list)) else [value]
    return [one for one in parts if one.dtype.is_floating_point or one.dtype.is_complex]


def total(tensors: list[Any]) -> Any:
    """Return a real number in which every element counts."""
    terms = [one.real.sum() + 2 * one.imag.sum() if one.is_complex() else one.sum() for one in tensors]
    return sum((k + 1) * term for k, term in enumerate(terms))


class Given:
    """The inputs of a sample: leaves, what a function of the differentiated ones sees, and ones like them."""

    def __init__(self, op: Op, sample: Sample, rows: int) -> None:
        self.floats = is_float(sample)
        arrays = [arrays_of(op, sample, row=row) for row in range(rows or 1)]
        stacked = [np.stack(one) if rows else one[0] for one in zip(*arrays, strict=True)]
        self.tensors = [torch.from_numpy(np.array(one)) for one in stacked]
        self.leaves = [one.requires_grad_() for one, used in zip(self.tensors, self.floats, strict=True) if used]
        self.ones = [torch.ones_like(one).detach() for one in self.leaves]
        self.op, self.sample = op, sample

    def call(self, *chosen: Any) -> tuple[Any, ...]:
        left = iter(chosen)
        tensors = [next(left) if used else one for one, used in zip(self.tensors, self.floats, strict=True)]
        return tuple(results(self.op.function(torch, self.sample, tensors)))


def by_vmap(given: Given) -> list[Any]:
    return list(func.vmap(lambda *all_: tuple(results(given.op.function(torch, given.sample, all_))))(*given.tensors))


def by_jvp(given: Given) -> list[Any]:
    plain, tangents = func.jvp(given.call, tuple(given.leaves), tuple(given.ones))
    return [*plain, *tangents]


def by_vjp(given: Given) -> list[Any]:
    output, pull_back = func.vjp(given.call, *given.leaves)
    return [*output, *pull_back(tuple(torch.ones_like(one) for one in output))]


def by_grad(given: Given) -> list[Any]:
    def scalar(*chosen: Any) -> Any:
        out = given.call(*chosen)
        return total(list(out)), out

    grads, (_, out) = func.grad_and_value(scalar, tuple(range(len(given.leaves))), has_aux=True)(*given.leaves)
    return [*grads, *out]


def by_unpacking(given: Given) -> list[Any]:
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(one, t) for one, t in zip(given.leaves, given.ones, strict=True)]
        parts = [forward_ad.unpack_dual(one) for one in given.call(*duals)]
        return [one.primal for one in parts] + [one.tangent for one in parts if one.tangent is not None]


def by_rows(given: Given) -> list[Any]:
    jacobian, out = func.jacrev(lambda x: (given.call(x, *given.leaves[1:])[0],) * 2, has_aux=True)(given.leaves[0])
    return [jacobian, out]


def by_columns(given: Given) -> list[Any]:
    jacobian, out = func.jacfwd(lambda x: (given.call(x, *given.leaves[1:])[0],) * 2, has_aux=True)(given.leaves[0])
    return [jacobian, out]


def by_function(given: Given) -> list[Any]:
    class Whole(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *chosen: Any) -> Any:
            with torch.enable_grad():
                inside = [one.detach().requires_grad_() for one in chosen]
                ctx.out = given.call(*inside)
            ctx.inside = inside
            return tuple(one.detach() for one in ctx.out)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return torch.autograd.grad(ctx.out, ctx.inside, grads, retain_graph=True, allow_unused=True)

    return list(Whole.apply(*given.leaves))


WAYS: dict[str, tuple[Callable[[Given], list[Any]], int]] = {
    "vmap": (by_vmap, 2),
    "jvp": (by_jvp, 0),
    "vjp": (by_vjp, 0),
    "Function": (by_function, 0),
    "grad": (by_grad, 0),
    "unpack_dual": (by_unpacking, 0),
    "jacrev": (by_rows, 0),
    "jacfwd": (by_columns, 0),
}
WHOLE_TABLE = ["vmap", "jvp"]  # these have rules for every operation; the others know borders alone


def gradients(op: Op, sample: Sample, way: str, written: int | None) -> tuple[int, list[Any]]:
    """Return how many results there are and the gradients of the inputs, after a write into the memory of one result."""
    run, rows = WAYS[way]
    given = Given(op, sample, rows)
    found = run(given)
    followed = [one for one in found if one.requires_grad]
    if written is not None:
        followed[written].detach().mul_(1.5).add_(0.25)
    if not followed:
        return 0, []
    grads = torch.autograd.grad(total(followed), given.leaves, allow_unused=True)
    return len(followed), [None if one is None else one.numpy().copy() for one in grads]


def chosen(op: Op) -> Sample | None:
    """Return the first sample that has elements in every input, of more than one dimension if there is such a one."""
    full = [s for s in op.samples if all(one.size for one in arrays_of(op, s))]
    return max(full, key=lambda s: min(2, max(one.ndim for one in arrays_of(op, s))), default=None) if full else None


def after_write(op: Op, sample: Sample, way: str, written: int) -> Any:
    """Return the gradients after a write, or an error."""
    return outcome(
        lambda: gradients(op, sample, way, written)[1], words=whole, kinds=RuntimeError, ignore_warnings=False
    )


def check(op: Op, way: str) -> None:
    """Write into each result in turn."""
    sample = chosen(op)
    if sample is None or (way == "vmap" and not op.batching):
        return
    count, wanted = gradients(op, sample, way, None)
    for k in range(count):
        what = f"{op.name}{sample} by {way}, result {k}"
        got = after_write(op, sample, way, k)
        if isinstance(got, Raised):
            assert re.search(REFUSALS, got.words), f"{what}: {got}"
            continue
        for one, other in zip(got, wanted, strict=True):
            assert (one is None) == (other is None), what
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=what)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore")
def test_a_write_into_a_result_is_harmless_or_refused(op: Op) -> None:
    for way in WHOLE_TABLE:
        check(op, way)


@pytest.mark.parametrize("way", [way for way in WAYS if way not in WHOLE_TABLE])
@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if op.name in KEEPING], ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore")
def test_a_write_into_what_is_made_of_them_is_harmless_or_refused(op: Op, way: str) -> None:
    check(op, way)


def test_every_operation_that_keeps_its_result_refuses_it_outside_of_vmap() -> None:
    names = [op.name for op in DIFFERENTIABLE if op.name in KEEPING]
    assert len(names) == len(KEEPING)
    for op in DIFFERENTIABLE:
        if op.name in KEEPING:
            with pytest.raises(RuntimeError, match=MODIFIED):
                gradients(op, chosen(op), "vmap", 0)
