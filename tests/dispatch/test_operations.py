"""Every operation of our table under a mode: the results and gradients that it has without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.utils._python_dispatch import BaseTorchDispatchMode
from tests.ops.infos import DIFFERENTIABLE
from tests.ops.opinfo import Op, arrays_of, is_float

torch: Any = retrograd


def run(op: Op, sample: Any, seen: bool) -> tuple[list[Any], list[Any]]:
    """Return results and gradients."""
    torch.manual_seed(0)
    floats = is_float(sample)
    arrays = arrays_of(op, sample, "float64")
    tensors = [torch.tensor(a, requires_grad=f and op.differentiable) for a, f in zip(arrays, floats, strict=True)]
    if seen:
        with BaseTorchDispatchMode():
            results = pulled(op, sample, tensors)
    else:
        results = pulled(op, sample, tensors)
    return results, [None if one.grad is None else one.grad.numpy() for one in tensors]


def pulled(op: Op, sample: Any, tensors: list[Any]) -> list[Any]:
    out = op.function(torch, sample, tensors)
    outs = [one for one in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(one, torch.Tensor)]
    tracked = [one for one in outs if one.requires_grad]
    if tracked:
        torch.autograd.backward(tracked, [torch.ones(one.shape, dtype=one.dtype) for one in tracked])
    return [one.detach().resolve_conj().numpy() for one in outs]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_results_and_gradients_are_those_without_a_mode(op: Op) -> None:
    for sample in op.samples[:3]:
        (plain, grads), (seen, seen_grads) = run(op, sample, False), run(op, sample, True)
        assert len(plain) == len(seen)
        for one, other in zip((*plain, *grads), (*seen, *seen_grads), strict=True):
            if one is None or other is None:
                assert one is None or not np.any(one)
                assert other is None or not np.any(other)
            else:
                assert one.dtype == other.dtype
                np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)
