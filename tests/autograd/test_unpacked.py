"""Hooks that give back other tensors than were packed, and those that cannot be hooks at all."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.nn import functional
from tests.oracle import Raised, before_the_hint, outcome

OPERATIONS = {
    "mul": lambda t, a: a * a,
    "mul_constant": lambda t, a: a * t.arange(3.0),
    "exp": lambda t, a: a.exp(),
    "sin": lambda t, a: a.sin(),
    "pow": lambda t, a: a.pow(2),
    "div": lambda t, a: a / (a + 1),
    "prod": lambda t, a: a.prod(),
    "index": lambda t, a: a[t.tensor([0, 1])],
    "assignment by a mask": lambda t, a: _assigned(t, a * 1),
    "assignment by a mask of more dimensions": lambda t, a: _assigned(t, a.expand(2, 3) * 1),
    "cosine_similarity": lambda t, a: t.cosine_similarity(a, t.tensor([0.25, 1.0, 2.0]), 0),
    "logsumexp": lambda t, a: a.logsumexp(0),
    "atan2": lambda t, a: t.atan2(a, a * 2),
}
GIVEN_BACK = {
    "double": lambda t, x: x.double() if x.is_floating_point() else x,
    "half": lambda t, x: x.half() if x.is_floating_point() else x,
    "int": lambda t, x: x.int(),
    "no mask": lambda t, x: x * 1,
    "five": lambda t, x: t.ones(5) if x.is_floating_point() else x,
    "one": lambda t, x: t.ones(1) if x.is_floating_point() else x,
    "wide": lambda t, x: t.ones(2, 3) if x.is_floating_point() else x,
}


def _assigned(t: Any, x: Any) -> Any:
    x[x > 0.75] = 0.25
    return x


def gradient(t: Any, operation: str, given_back: str) -> Any:
    a = t.tensor([0.5, 1.0, 2.0], requires_grad=True)

    def run() -> Any:
        with t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: GIVEN_BACK[given_back](t, x)):
            y = OPERATIONS[operation](t, a)
        y.sum().backward()
        return str(a.grad.dtype).rpartition(".")[2], a.grad.numpy()

    return outcome(run, words=before_the_hint, kinds=RuntimeError, ignore_warnings=False)


@pytest.mark.oracle
@pytest.mark.parametrize("given_back", GIVEN_BACK)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_gradients_are_torchs(operation: str, given_back: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (gradient(t, operation, given_back) for t in (retrograd, torch))
    if isinstance(theirs, Raised):
        assert ours == theirs
        return
    assert ours[0] == theirs[0]
    # differences of numbers in half precision have no more digits than these; torch's depend on the processor
    close_to_zero = 2e-3 * np.abs(theirs[1]).max() if given_back == "half" else 0
    np.testing.assert_allclose(ours[1], theirs[1], rtol=2e-3, atol=close_to_zero)


@pytest.mark.parametrize("graph", [False, True])
def test_a_gradient_has_the_dtype_of_its_leaf(graph: bool) -> None:
    a = retrograd.ones(3, requires_grad=True)
    with saved_tensors_hooks(lambda x: x.double(), lambda x: x):
        y = (a * a).sum()
    (grad,) = retrograd.autograd.grad(y, a, create_graph=graph)
    assert grad.dtype is retrograd.float32


@pytest.mark.parametrize("graph", [False, True])
def test_hooks_on_a_saved_tensor_may_change_its_dtype(graph: bool) -> None:
    a = retrograd.ones(3, requires_grad=True)
    y = a.sin()
    y.grad_fn._raw_saved_self.register_hooks(lambda x: x.double(), lambda x: x)
    (grad,) = retrograd.autograd.grad(y.sum(), a, create_graph=graph)
    assert grad.dtype is retrograd.float32


def test_fused_layers_settle_dtypes() -> None:
    a = retrograd.ones(2, 3, requires_grad=True)
    weight = retrograd.ones(3, requires_grad=True)
    with saved_tensors_hooks(lambda x: x.double(), lambda x: x):
        y = functional.layer_norm(a, (3,), weight)
    y.sum().backward()
    assert a.grad.dtype is weight.grad.dtype is retrograd.float32


def test_what_no_rule_can_use_is_said() -> None:
    a = retrograd.ones(2, 3, requires_grad=True)
    with saved_tensors_hooks(lambda x: x, lambda x: retrograd.ones(7)):
        y = a @ a.T
    with pytest.raises(RuntimeError, match="MmBackward0 cannot use what the unpack hooks returned"):
        y.sum().backward()


def test_an_error_of_the_hook_is_its_own() -> None:
    def unpack(x: Any) -> Any:
        raise ValueError("operands could not be broadcast together with shapes (3,) (5,)")

    a = retrograd.ones(3, requires_grad=True)
    with saved_tensors_hooks(lambda x: x, unpack):
        y = a * a
    with pytest.raises(ValueError, match="broadcast together"):
        y.sum().backward()


# ---- hooks that are none ----
@pytest.mark.parametrize(("pack", "unpack"), [(3, len), (len, 3), (None, None)])
def test_hooks_must_be_callable(pack: Any, unpack: Any) -> None:
    with (
        pytest.raises(TypeError, match=r"_push_saved_tensors_default_hooks\(\): incompatible function arguments"),
        saved_tensors_hooks(pack, unpack),
    ):
        pass
    y = retrograd.ones(3, requires_grad=True).sin()
    raw = y.grad_fn._raw_saved_self
    with pytest.raises(TypeError, match=re.escape("register_hooks(): incompatible function arguments")):
        raw.register_hooks(pack, unpack)
    raw.register_hooks(lambda x: x, lambda x: x)  # the attempt does not count
    y.sum().backward()


# ---- a leaf that hooks have given back ----
def leaf_given_back(t: Any) -> Any:
    a = t.ones(3, requires_grad=True)
    y = a.pow(2)
    y.grad_fn._raw_saved_self.register_hooks(lambda x: x * 2, lambda x: x)
    s = y.grad_fn._saved_self
    (s * 3).sum().backward()
    node = (s * 2).grad_fn.next_functions[0][0]
    return (
        str(s.detach()),
        s.is_leaf,
        s.grad_fn,
        s.requires_grad,
        s is a,
        node.name(),
        node.variable is a,
        a.grad.tolist(),
    )


@pytest.mark.oracle
def test_a_leaf_given_back_is_a_leaf() -> None:
    torch = pytest.importorskip("torch")
    assert leaf_given_back(retrograd) == leaf_given_back(torch)


def test_a_leaf_given_back_prints_as_a_leaf() -> None:
    a = retrograd.ones(2, requires_grad=True)
    with saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
        y = a.pow(2)
    assert repr(y.grad_fn._saved_self) == "tensor([1., 1.], requires_grad=True)"
