"""Fused operations: equal to their decompositions, and whole nodes of the graph. See Note [Fused operations]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._core.fused import fused
from retrograd.tensor._recording.fused import FusedNode, decomposed
from retrograd.tensor._recording.record import record
from tests.ops.infos import DIFFERENTIABLE
from tests.ops.opinfo import Op, Sample, arrays_of, is_float
from tests.ops.test_all import on_all_samples


@fused("ScaledTanhBackward0")
def scaled_tanh(xp: Any, x: Any, weight: Any, *, factor: float) -> Any:
    """tanh(x) * weight * factor."""
    t = xp.module.tanh(x)
    return t * factor if weight is None else t * weight * factor, (t,)


@scaled_tanh.backward
def scaled_tanh_back(xp: Any, g: Any, needed: Any, residuals: Any, x: Any, weight: Any, *, factor: float) -> Any:
    (t,) = residuals
    dx = g * factor * (1 - t * t)
    return dx if weight is None else dx * weight, g * t * factor if needed[1] else None


@scaled_tanh.decomposition
def scaled_tanh_parts(xp: Any, x: Any, weight: Any, *, factor: float) -> Any:
    t = xp.tanh(x)
    return t * factor if weight is None else t * weight * factor


def call(x: Any, weight: Any = None) -> Any:
    return record(scaled_tanh, (x, weight), {"factor": 3.0})


@pytest.fixture
def x() -> Any:
    return torch.tensor([0.3, -1.2, 0.7], dtype=torch.float64, requires_grad=True)


@pytest.fixture
def weight() -> Any:
    return torch.tensor([2.0, -0.5, 1.5], dtype=torch.float64, requires_grad=True)


def test_every_order_and_mode(x: Any, weight: Any) -> None:
    assert torch.autograd.gradcheck(call, (x, weight), check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(call, (x, weight), check_batched_grad=True)
    assert torch.autograd.gradgradcheck(call, (x,))


def test_one_tensor_as_two_inputs(x: Any) -> None:
    assert torch.autograd.gradcheck(lambda t: call(t, t), (x,))
    assert torch.autograd.gradgradcheck(lambda t: call(t, t), (x,))


def test_it_is_one_node_with_its_name(x: Any, weight: Any) -> None:
    out = call(x, weight)
    assert out.grad_fn.name() == "ScaledTanhBackward0"
    assert len(out.grad_fn.next_functions) == 2


def test_half_precision_is_rounded_once(x: Any, weight: Any) -> None:
    narrow, wide = x.detach().bfloat16(), weight.detach().bfloat16()
    exact = call(narrow.float(), wide.float()).bfloat16()
    assert torch.equal(call(narrow, wide), exact)
    with decomposed():
        assert torch.equal(call(narrow, wide), exact)


def test_hooks_see_inputs_and_residuals(x: Any, weight: Any) -> None:
    packed, unpacked = [], []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: (packed.append(t), t)[1], lambda t: (unpacked.append(t), t)[1]
    ):
        out = call(x, weight)
    out.sum().backward()
    assert len(packed) == len(unpacked) == 3
    assert torch.allclose(x.grad, (3 * (1 - x.tanh() ** 2) * weight).detach())


def test_an_overwritten_input_is_noticed(x: Any, weight: Any) -> None:
    out = call(x, weight)
    with torch.no_grad():
        weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_second_backward_is_refused(x: Any, weight: Any) -> None:
    out = call(x, weight).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_checkpoint_gives_the_same_bits(x: Any, weight: Any) -> None:
    from retrograd.utils.checkpoint import checkpoint

    call(x, weight).sum().backward()
    plain, x.grad = x.grad, None
    checkpoint(call, x, weight, use_reentrant=False).sum().backward()
    assert torch.equal(x.grad, plain)


# ---- every operation of the table that has a fused node: as it is, and by its parts ----
def outputs(op: Op, sample: Sample, dtype: str) -> tuple[list[Any], list[Any]]:
    """Return the inputs and the results of an operation."""
    inputs = [torch.from_numpy(a).clone() for a in arrays_of(op, sample)]
    inputs = [x.to(getattr(torch, dtype)) if x.is_floating_point() else x for x in inputs]
    for tensor, differentiable in zip(inputs, is_float(sample), strict=True):
        tensor.requires_grad_(differentiable)
    torch.manual_seed(0)
    outs = op.function(torch, sample, inputs)
    return inputs, list(outs) if isinstance(outs, (tuple, list)) else [outs]


def with_gradients(inputs: list[Any], outs: list[Any]) -> list[np.ndarray]:
    """Return results, and the gradients of the inputs, as arrays."""
    total: Any = 0
    for out in outs:
        if out.requires_grad:
            total = total + (out * torch.arange(out.numel(), dtype=out.dtype).reshape(out.shape).cos()).sum()
    if isinstance(total, torch.Tensor):
        total.backward()
    gradients = [torch.zeros_like(t) if t.grad is None else t.grad for t in inputs if t.requires_grad]  # none is zero
    return [t.detach().numpy() for t in (*outs, *gradients)]


def has_fused_node(out: Any) -> bool:
    """Tell whether a result comes from a fused operation."""
    nodes, seen = [out.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        if isinstance(node, FusedNode):
            return True
        seen.add(node)
        nodes += [parent for parent, _ in node.next_functions]
    return False


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=[op.name for op in DIFFERENTIABLE])
def test_an_operation_equals_its_parts(op: Op, dtype: str) -> None:
    def check(sample: Sample) -> None:
        inputs, outs = outputs(op, sample, dtype)
        if not any(map(has_fused_node, outs)):
            return
        whole = with_gradients(inputs, outs)
        with decomposed():
            parts = with_gradients(*outputs(op, sample, dtype))
        tolerance = 1e-10 if dtype == "float64" else 2e-4
        for one, other in zip(whole, parts, strict=True):
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)

    on_all_samples(op, check)
