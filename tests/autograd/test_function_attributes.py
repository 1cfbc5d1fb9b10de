"""Attributes that users give a ctx never meet those of the node that it is."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch
from retrograd import func
from retrograd.autograd import _function_node as node
from retrograd.autograd._function_attributes import READ_ONLY, SETTABLE
from retrograd.debug import saved_bytes

OF_NODES = {name for name in (*dir(node.FunctionNode), *vars(node.FunctionNode())) if not name.startswith("__")}
THEIRS = sorted(OF_NODES - READ_ONLY - SETTABLE)


def keeping(name: str, value: Any) -> Any:
    """Make a Function that keeps a value under a name and multiplies by 3."""

    class Keeping(torch.autograd.Function):
        seen: list[Any] = []  # noqa: RUF012 - of this class alone

        @staticmethod
        def forward(x):
            return x * 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            setattr(ctx, name, value)
            if name != "save_for_backward":
                ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            Keeping.seen.append(getattr(ctx, name))
            return g * 3

        @staticmethod
        def jvp(ctx, t):
            Keeping.seen.append(getattr(ctx, name))
            return t * 3

    return Keeping


@pytest.mark.parametrize("name", THEIRS)
def test_any_name_of_a_node_can_be_an_attribute(name: str) -> None:
    value = object()
    cls = keeping(name, value)
    x = torch.ones(2, requires_grad=True)
    y = cls.apply(x)
    assert getattr(y.grad_fn, name) is value
    (gradient,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    assert gradient.tolist() == [18.0, 18.0]
    assert torch.autograd.grad(gradient.sum(), x)[0].tolist() == [18.0, 18.0]
    assert {id(one) for one in cls.seen} == {id(value)}


@pytest.mark.parametrize("name", ["name", "count", "meta", "extra", "join"])
def test_such_attributes_in_forward_mode(name: str) -> None:
    value = object()
    cls = keeping(name, value)
    x = torch.ones(2)
    assert func.jvp(cls.apply, (x,), (x,))[1].tolist() == [3.0, 3.0]
    assert func.jvp(func.grad(lambda x: cls.apply(x).sum()), (x,), (x,))[1].tolist() == [0.0, 0.0]
    assert {id(one) for one in cls.seen} == {id(value)}


def test_deleting_an_attribute_uncovers_what_was_there() -> None:
    ctx = keeping("name", "x").apply(torch.ones(2, requires_grad=True)).grad_fn
    assert ctx.name == "x"
    del ctx.name
    assert ctx.name() == "KeepingBackward"
    with pytest.raises(AttributeError, match="name"):
        del ctx.name
    ctx.name = "y"
    assert ctx.name == "y"
    ctx.own = 1
    del ctx.own
    assert not hasattr(ctx, "own")


@pytest.mark.parametrize("name", sorted(READ_ONLY))
def test_names_that_torch_does_not_let_be_set(name: str) -> None:
    ctx = torch.autograd.Function._backward_cls()
    with pytest.raises(AttributeError, match=f"attribute '{name}' of 'torch._C._FunctionBase' objects is not writable"):
        setattr(ctx, name, 1)
    with pytest.raises(AttributeError, match=f"attribute '{name}' of 'torch._C._FunctionBase' objects is not writable"):
        delattr(ctx, name)


def test_what_is_kept_under_such_a_name_is_counted() -> None:
    value = torch.ones(1000)
    x = torch.ones(2, requires_grad=True)
    sizes = [saved_bytes(keeping(name, value).apply(x)).total for name in ("own", "meta")]
    assert sizes[0] == sizes[1] >= value.numel() * 4
