"""Custom Functions let go of what they saved, without the garbage collector."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import retrograd as torch
from tests.autograd.test_lifetimes import _no_collector, _settled, frees, leaf

_ = _no_collector, _settled  # the fixtures, used by every test here


def save(what: str, ctx: Any, x: Any, mid: Any, out: Any) -> None:
    chosen = {"input": (x,), "output": (out,), "intermediate": (mid,), "all": (x, mid, out), "nothing": ()}[what]
    ctx.save_for_backward(*chosen)


def one_part(what: str) -> Any:
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mid = x.exp()
            out = mid * x
            save(what, ctx, x, mid, out)
            return out

        @staticmethod
        def backward(ctx, g):
            for one in ctx.saved_tensors:
                g = g * one
            return g

    return Made


def two_parts(what: str) -> Any:
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(x):
            mid = x.exp()
            return mid * x, mid

        @staticmethod
        def setup_context(ctx, inputs, output):
            save(what, ctx, inputs[0], output[1], output[0])

        @staticmethod
        def backward(ctx, g, g_mid):
            for one in ctx.saved_tensors:
                g = g * one
            return g + g_mid

    return Made


WHAT = ["input", "output", "intermediate", "all", "nothing"]


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("form", [one_part, two_parts])
def test_without_backward(form, what):
    made = form(what)
    frees(lambda: made.apply(leaf() * 2))


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("form", [one_part, two_parts])
def test_after_backward(form, what):
    made = form(what)

    def run() -> None:
        out = made.apply(leaf() * 2)
        (out[0] if isinstance(out, tuple) else out).sum().backward()

    frees(run)


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("form", [one_part, two_parts])
def test_double_backward(form, what):
    made = form(what)

    def run() -> None:
        x = leaf()
        out = made.apply(x * 2)
        (g,) = torch.autograd.grad((out[0] if isinstance(out, tuple) else out).sum(), x, create_graph=True)
        if g.requires_grad:
            torch.autograd.grad(g.sum(), x)

    frees(run)


def test_saved_value_dies_with_backward():
    x = leaf() * 2
    y = one_part("input").apply(x)
    seen = weakref.ref(x._array)
    del x
    assert seen() is not None
    y.sum().backward()
    assert seen() is None


def test_intermediate_dies_with_the_graph():
    seen = []

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mid = x.exp()
            seen.append(weakref.ref(mid._array))
            ctx.save_for_backward(mid)
            return mid * 2

        @staticmethod
        def backward(ctx, g):
            return g

    y = Made.apply(leaf())
    assert seen[0]() is not None
    del y
    assert seen[0]() is None


def test_nothing_is_kept_without_grad():
    seen = []

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(weakref.ref(ctx))
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    with torch.no_grad():
        y = Made.apply(leaf())
    assert seen[0]() is None
    assert not y.requires_grad


def test_mark_dirty():
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    def run() -> None:
        y = leaf() * 2
        Made.apply(y).sum().backward()
        z = leaf() * 2
        Made.apply(z[:2])

    frees(run)


def test_input_returned():
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    frees(lambda: Made.apply(leaf() * 2).sum().backward())


def test_mark_non_differentiable():
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            constant = x * 3
            ctx.mark_non_differentiable(constant)
            return x * 2, constant

        @staticmethod
        def backward(ctx, g, g_constant):
            return g

    frees(lambda: Made.apply(leaf())[0].sum().backward())


def test_jvp():
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(inputs[0], output)
            ctx.save_for_backward(inputs[0], output)

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, t):
            return t * 2 * ctx.saved_tensors[0]

    frees(lambda: torch.func.jvp(Made.apply, (leaf(),), (leaf(),)))


@pytest.mark.parametrize("what", ["input", "output", "all"])
def test_transforms(what):
    made = two_parts(what)
    made.generate_vmap_rule = True

    def run() -> None:
        x = torch.ones(3, dtype=torch.float64)
        torch.func.grad(lambda x: made.apply(x)[0].sum())(x)
        torch.func.vmap(torch.func.grad(lambda x: made.apply(x)[0].sum()))(x.reshape(3, 1))

    frees(run)


def test_error_in_backward():
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("from backward")

    def run() -> None:
        y = Made.apply(leaf() * 2).sum()
        with pytest.raises(ValueError, match="from backward"):
            y.backward()

    frees(run)


def test_function_class_itself_dies():
    made = one_part("all")
    made.apply(leaf()).sum().backward()
    seen = weakref.ref(made)
    del made
    gc.collect()  # a class is always a cycle
    assert seen() is None
