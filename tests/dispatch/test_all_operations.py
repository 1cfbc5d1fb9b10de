"""Every operation of the table under a mode: values, gradients and second derivatives are those that it has without one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.utils._python_dispatch import BaseTorchDispatchMode
from tests.ops.checks import array, close, weights
from tests.ops.infos import OPS
from tests.ops.opinfo import Op, Sample, arrays_of, is_float, leaves
from tests.ops.test_all import dtype_for

torch: Any = retrograd


def as_it_is(x: Any) -> Any:
    return x


def written(x: Any) -> Any:
    """Return a copy, a part of which was written through a view."""
    y = x.clone()
    if y.is_floating_point() or y.is_complex():
        y[(..., slice(0, 1)) if y.dim() else ...] *= 0.5
    return y


def tensors_of(result: Any) -> list[Any]:
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [one for part in parts for one in (part if isinstance(part, (tuple, list)) else [part])]


Seen = tuple[bool, bool, bool]
PLAIN, SEEN = (False,) * 3, (True,) * 3
SEEN_IN_PART = ((True, False, False), (False, True, False), (False, False, True))


def mode(is_seen: bool) -> Any:
    return BaseTorchDispatchMode() if is_seen else nullcontext()


def derivatives(op: Op, sample: Sample, prepare: Callable[[Any], Any], dtype: str, seen: Seen) -> list[Any]:
    """Return the values of an operation, its gradients, and the gradients of these; `seen` says which of them a mode sees."""
    torch.manual_seed(0)
    wanted = [one and op.differentiable for one in is_float(sample)]
    given = [torch.tensor(a) for a in arrays_of(op, sample, dtype)]
    given = [one.requires_grad_() if is_wanted else one for one, is_wanted in zip(given, wanted, strict=True)]
    inputs = [one for one in given if one.requires_grad]
    with mode(seen[0]):
        result = op.function(torch, sample, [prepare(one) for one in given])
    outs = [one for one in tensors_of(result) if isinstance(one, torch.Tensor)]
    found = [array(one).copy() for one in outs] + [np.array([one.requires_grad for one in outs])]
    for order in (1, 2):
        sources = [(k, one) for k, one in enumerate(outs) if one is not None and one.requires_grad]
        if not sources or not inputs:
            break
        seeds = [torch.tensor(weights([array(one)], 9 * order + k)[0]) for k, one in sources]
        roots = [one for _, one in sources]
        with mode(seen[order]):
            outs = torch.autograd.grad(roots, inputs, seeds, create_graph=order == 1, allow_unused=True)
        found += [None if one is None else array(one).copy() for one in outs]
    return found


def same(plain: list[Any], seen: list[Any]) -> None:
    seen += [None] * (len(plain) - len(seen))  # a second derivative of zero may be recorded or not
    plain += [None] * (len(seen) - len(plain))
    for one, other in zip(plain, seen, strict=True):
        if one is None or other is None:
            assert one is None or not np.any(one)
            assert other is None or not np.any(other)
        else:
            assert (other.dtype, other.shape) == (one.dtype, one.shape)
            close(other, one, "under a mode", rtol=1e-9, atol=1e-9)


def compare(op: Op, sample: Sample, prepare: Callable[[Any], Any], dtype: str, *seen: Seen) -> None:
    plain = derivatives(op, sample, prepare, dtype, PLAIN)
    for one in seen:
        same(list(plain), derivatives(op, sample, prepare, dtype, one))


def chosen(op: Op, count: int) -> list[Sample]:
    """Return a few samples, first those with the most dimensions."""
    full = [one for one in op.samples if all(0 not in x.shape for x in leaves(one) if hasattr(x, "shape"))]
    return (full[-1:] + full[:1] if len(full) > 1 else list(full or op.samples[:1]))[:count]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_derivatives_are_those_without_a_mode(op: Op) -> None:
    for sample in chosen(op, 2):
        compare(op, sample, as_it_is, dtype_for(op), SEEN)
    if op.complex:
        compare(op, chosen(op, 1)[0], as_it_is, "complex128", SEEN, *SEEN_IN_PART)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_write_through_a_view_reaches_the_derivatives_wherever_they_are_computed(op: Op) -> None:
    compare(op, chosen(op, 1)[0], written, dtype_for(op), SEEN, *SEEN_IN_PART[:2])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x / (1 + 2j),
        lambda x, y: x * (1 + 2j),
        lambda x, y: (1 + 2j) / x,
        lambda x, y: torch.add(x, y, alpha=1 + 2j),
        lambda x, y: torch.sub(x, y, alpha=1 + 2j),
        lambda x, y: torch.rsub(x, y, alpha=1 + 2j),
        lambda x, y: x @ y,
        lambda x, y: torch.nn.functional.linear(x, y),
        lambda x, y: torch.bmm(x[None], y[None]),
        lambda x, y: torch.addmm(x, x, y, beta=1 - 1j, alpha=2j),
        lambda x, y: torch.baddbmm(x[None], x[None], y[None], beta=1 - 1j, alpha=2j),
    ],
)
@pytest.mark.parametrize("seen", [SEEN, *SEEN_IN_PART])
def test_gradients_of_complex_numbers_beside_numbers_and_in_products(function: Any, seen: Seen) -> None:
    def run(seen: Seen) -> list[Any]:
        torch.manual_seed(0)
        x, y = (torch.randn(3, 3, dtype=torch.complex128).requires_grad_() for _ in range(2))
        with mode(seen[0]):
            out = function(x, y)
        found = [out]
        for order in (1, 2):
            with mode(seen[order]):
                loss = sum(one.abs().pow(2).sum() for one in found[-2:] if one is not None)
                found += torch.autograd.grad(loss, (x, y), create_graph=order == 1, allow_unused=True)
        return found

    for one, other in zip(run(PLAIN), run(seen), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-9)
