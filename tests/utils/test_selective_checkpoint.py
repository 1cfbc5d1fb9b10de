"""Selective checkpointing: which operations a policy sees, what is kept, what is computed again."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)
from tests.oracle import Raised, before_the_hint, outcome

aten = retrograd.ops.aten


def block(x: Any, w: Any) -> Any:
    return ((x @ w).tanh() @ w).sum(0) * 2 - 1


def contexts(policy: Any, **options: Any) -> Any:
    return functools.partial(create_selective_checkpoint_contexts, policy, **options)


def inputs() -> tuple[Any, Any]:
    retrograd.manual_seed(0)
    return tuple(retrograd.randn(4, 4, requires_grad=True) for _ in range(2))


def plain_gradients() -> tuple[Any, Any]:
    x, w = inputs()
    block(x, w).sum().backward()
    return x.grad, w.grad


@pytest.mark.parametrize("kept", [[], [aten.mm.default], [aten.mm.default, aten.tanh.default, aten.mul.Tensor]])
def test_gradients_are_bitwise_equal_whatever_is_kept(kept: list[Any]) -> None:
    x, w = inputs()
    checkpoint(block, x, w, use_reentrant=False, context_fn=contexts(kept)).sum().backward()
    for found, expected in zip((x.grad, w.grad), plain_gradients(), strict=True):
        assert retrograd.equal(found, expected)


def test_kept_results_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd._core.primitive import Primitive

    ran: list[str] = []
    bind = Primitive.bind
    monkeypatch.setattr(Primitive, "bind", lambda self, *args: (ran.append(self.name), bind(self, *args))[1])
    x, w = inputs()
    out = checkpoint(block, x, w, use_reentrant=False, context_fn=contexts([aten.mm.default]))
    assert ran.count("matmul") == 2
    ran.clear()
    out.sum().backward()
    assert ran.count("tanh") == 1
    assert ran.count("matmul") == 0


def test_a_policy_sees_each_operation_once() -> None:
    seen: list[tuple[str, bool, Any]] = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        seen.append((str(op), ctx.is_recompute, ctx.op_output.shape))
        return CheckpointPolicy.PREFER_RECOMPUTE

    x, w = inputs()
    checkpoint(block, x, w, use_reentrant=False, context_fn=contexts(policy)).sum().backward()
    assert [name for name, _, _ in seen] == [
        "aten.mm.default", "aten.tanh.default", "aten.mm.default", "aten.sum.dim_IntList", "aten.mul.Tensor",
        "aten.sub.Tensor",
    ]  # fmt: skip
    assert not any(again for _, again, _ in seen)
    assert seen[0][2] == (4, 4)


def test_a_second_backward_is_refused() -> None:
    x, w = inputs()
    out = checkpoint(block, x, w, use_reentrant=False, context_fn=contexts([aten.mm.default])).sum()
    out.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        out.backward()


def test_a_function_that_changes_is_noticed() -> None:
    calls = iter([lambda t: t.tanh(), lambda t: t.sin()])
    x, _ = inputs()
    out = checkpoint(lambda t: next(calls)(t), x, use_reentrant=False, context_fn=contexts([aten.mm.default]))
    with pytest.raises(RuntimeError, match=r"aten\.sin\.default encountered during backward but not found in storage"):
        out.sum().backward()


def test_policies_may_be_booleans() -> None:
    x, w = inputs()
    policy = contexts(lambda ctx, op, *args, **kwargs: op is aten.mm.default)
    checkpoint(block, x, w, use_reentrant=False, context_fn=policy).sum().backward()
    assert retrograd.equal(x.grad, plain_gradients()[0])


@pytest.mark.parametrize(
    ("policy", "error", "text"),
    [
        (3, TypeError, "policy_fn_or_list must be either a function or a list of ops."),
        ([aten.mm], ValueError, "Please update the OpOverloadPacket to a specific OpOverload"),
        (["mm"], ValueError, "Expected op in `op_list` to be an OpOverload but got: mm of type <class 'str'>"),
    ],
)
def test_bad_policies(policy: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text.replace("(", r"\(")):
        create_selective_checkpoint_contexts(policy)


def test_operations_have_identities() -> None:
    assert aten.add.Tensor is retrograd.ops.aten.add.Tensor
    assert aten.add.Tensor is not aten.add.Scalar
    assert (str(aten.add.Tensor), aten.add.Tensor.name(), aten.mm.default.name()) == (
        "aten.add.Tensor",
        "aten::add.Tensor",
        "aten::mm",
    )
    assert repr(aten.mm.default) == "<OpOverload(op='aten.mm', overload='default')>"
    x, w = inputs()
    assert retrograd.equal(aten.mm.default(x, w), x @ w)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_operation'"):
        _ = aten.no_such_operation


OPERATIONS = {
    "mm": lambda lib, x: x @ x,
    "addmm": lambda lib, x: lib.addmm(x, x, x),
    "numbers": lambda lib, x: 1 - (x * 2 + 1) / 3,
    "sums": lambda lib, x: x.sum() + x.sum(0).mean() + x.mean(0).prod(),
    "powers": lambda lib, x: (x**2) ** x,
    "extrema": lambda lib, x: x.max() + x.max(0).values + x.amax(0) + lib.maximum(x, x),
    "where": lambda lib, x: lib.where(x > 0, x, x.exp()),
    "softmax": lambda lib, x: x.softmax(0).log_softmax(1),
    "cat": lambda lib, x: lib.cat([x, x]).cumsum(0),
    "spread": lambda lib, x: x.std(0) + x.var(),
    "layer norm": lambda lib, x: lib.nn.functional.layer_norm(x, (4,)),
    "linear": lambda lib, x: lib.nn.functional.relu(lib.nn.functional.linear(x, x)),
    "activations": lambda lib, x: lib.nn.functional.gelu(lib.nn.functional.silu(x)),
    "attention": lambda lib, x: lib.nn.functional.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None]
    ),
    "convolution": lambda lib, x: lib.nn.functional.max_pool2d(
        lib.nn.functional.conv2d(x[None, None], x[None, None, :2, :2]), 2
    ),
}
UNSEEN = {
    "select",
    "unsqueeze",
    "slice",
    "t",
    "view",
    "expand",
    "transpose",
    "lift_fresh",
    "detach",
    "alias",
}  # they compute nothing


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_names_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.utils.checkpoint")
    answers = []
    for library, module in ((retrograd, retrograd.utils.checkpoint), (torch, theirs)):
        seen: list[str] = []

        def policy(ctx: Any, op: Any, *args: Any, seen: list[str] = seen, **kwargs: Any) -> Any:
            seen.append(str(op))
            return False

        fn = functools.partial(module.create_selective_checkpoint_contexts, policy)
        x = library.ones(4, 4, requires_grad=True)
        module.checkpoint(
            lambda t, library=library: OPERATIONS[name](library, t), x, use_reentrant=False, context_fn=fn
        )
        answers.append([op for op in seen if op.split(".")[1] not in UNSEEN])
    assert answers[0] == answers[1]


# ---- results that are written into ----
def _written_inside(t: Any, x: Any) -> Any:
    y = t.mm(x, x)
    y.add_(1)
    return y.exp()


def _read_and_written(t: Any, x: Any) -> Any:
    y = t.mm(x, x)
    z = y.sin()
    y.add_(1)
    return z.exp()


def _written_outside(t: Any, x: Any) -> Any:
    return t.mm(x, x)  # the last operation, whose result no rule reads, need not run again


def _kept_output_written_outside(t: Any, x: Any) -> Any:
    return x.exp()


def _fused_written_outside(t: Any, x: Any) -> Any:
    return t.nn.functional.layer_norm(x, (2,))


def _convolution_written_outside(t: Any, x: Any) -> Any:
    return t.nn.functional.conv1d(x.reshape(1, 2, 2), x.reshape(2, 2, 1))


def _number_written(t: Any, x: Any) -> Any:
    y = x.sum()
    y.mul_(2)
    return y.exp()


def _view_written(t: Any, x: Any) -> Any:
    y = t.mm(x, x)
    y[0].mul_(2)
    return y.exp()


def _second_output_written(t: Any, x: Any) -> Any:
    values, indices = x.sort(dim=1)
    indices.zero_()
    return values.exp()


MUTATIONS = [
    (_written_inside, "mm.default"),
    (_read_and_written, "mm.default"),
    (_written_outside, "mm.default"),
    (_kept_output_written_outside, "exp.default"),
    (_fused_written_outside, "native_layer_norm.default"),
    (_convolution_written_outside, "convolution.default"),
    (_number_written, "sum.default"),
    (_view_written, "mm.default"),
    (_second_output_written, "sort.default"),
]


def after_mutation(library: Any, function: Any, kept: str, allowed: bool) -> Any:
    """Write into a kept result; the error, or the gradient."""
    module = importlib.import_module(f"{library.__name__}.utils.checkpoint")
    packet, overload = kept.split(".")
    op = getattr(getattr(library.ops.aten, packet), overload)
    made = functools.partial(module.create_selective_checkpoint_contexts, [op], allow_cache_entry_mutation=allowed)
    x = library.tensor([[0.1, 0.2], [0.4, 0.3]], dtype=library.float64, requires_grad=True)
    y = module.checkpoint(lambda x: function(library, x), x, use_reentrant=False, context_fn=made)
    if "outside" in function.__name__:
        y.mul_(3)
    run = outcome(y.sum().backward, words=before_the_hint, kinds=RuntimeError, ignore_warnings=False)
    return run if isinstance(run, Raised) else x.grad.numpy()


@pytest.mark.oracle
@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize(("function", "kept"), MUTATIONS)
def test_kept_results_that_are_written_into(function: Any, kept: str, allowed: bool) -> None:
    theirs = after_mutation(pytest.importorskip("torch"), function, kept, allowed)
    ours = after_mutation(retrograd, function, kept, allowed)
    if isinstance(theirs, Raised) or isinstance(ours, Raised):
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_a_write_into_a_kept_result_is_refused() -> None:
    found = after_mutation(retrograd, _written_inside, "mm.default", allowed=False)
    assert found.words == "Tensor cached during selective activation checkpoint has been mutated"
