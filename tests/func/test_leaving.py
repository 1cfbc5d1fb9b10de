"""What a transform returns shows the memory of what was inside: the tensor that was given, a view of it, or a saved result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import func
from retrograd.autograd import forward_ad
from tests.oracle import assert_same_answer, before_the_hint, outcome

MODIFIED = "modified by an inplace operation"
START = {"x": "torch.tensor([0.3, 0.5], requires_grad=True)", "b": "x * 1", "v": "torch.ones(2)"}

# what is made, what is written into it, and what is asked for then
ALIASES = {
    "vmap returns a leaf": ("torch.vmap(lambda a: a)(x)", "y.mul_(3)", "y"),
    "vmap returns its argument": ("torch.vmap(lambda a: a)(b)", "y.mul_(3)", "b"),
    "vmap returns a view of its argument": ("torch.vmap(lambda a: a[None])(b)", "y.mul_(3)", "b"),
    "vmap returns a view of a result": ("torch.vmap(lambda a: (lambda c: (c, c[None]))(a * 1))(x)", "y[1].mul_(3)", "y[0]"),
    "vmap returns a transposed argument": (
        "torch.vmap(lambda a: a, in_dims=1, out_dims=0)(b.view(1, 2))", "y.mul_(3)", "b",
    ),
    "vmap returns a captured tensor": ("torch.vmap(lambda a: b)(v[:1])", "y.mul_(3)", "b"),
    "vmap of vmap": ("torch.vmap(torch.vmap(lambda a: a[None]))(b.view(1, 2))", "y.mul_(3)", "b"),
    "vmap splits": ("torch.vmap(lambda a: a.split(1))(b.view(1, 2))", "y[0].detach().mul_(3)", "b"),
    "vmap of what is saved": ("torch.vmap(lambda a: a[None])(b.exp())", "y.mul_(3)", "y"),
    "vmap to another dimension": ("torch.vmap(lambda a: a.exp(), out_dims=1)(b.view(2, 1))", "y.mul_(3)", "y"),
    "vmap without gradients": ("(lambda: torch.vmap(lambda a: a)(b))()", "y.detach().mul_(3)", "b"),
    "jvp returns its argument": ("torch.func.jvp(lambda a: a, (b,), (v,))", "y[0].mul_(3)", "b"),
    "jvp returns a view": ("torch.func.jvp(lambda a: a[:1], (b,), (v,))", "y[0].mul_(3)", "b"),
    "the tangent that was given": ("torch.func.jvp(lambda a: a, (b,), (v,))", "y[1].mul_(3)", "v"),
    "the tangent of a result": ("torch.func.jvp(torch.exp, (x,), (v,))", "y[1].mul_(3)", "y[1]"),
    "the primal of a result": ("torch.func.jvp(torch.exp, (x,), (v,))", "y[0].mul_(3)", "y[1]"),
    "a tangent that is saved": ("torch.func.jvp(lambda a: x * a, (torch.ones(2),), (v,))", "v.mul_(3)", "y[1]"),
    "vjp returns a leaf": ("torch.func.vjp(lambda a: a, x)[0]", "y.mul_(3)", "y"),
    "vjp returns its argument": ("torch.func.vjp(lambda a: a, b)[0]", "y.mul_(3)", "b"),
    "vjp returns a view": ("torch.func.vjp(lambda a: a[:1], b)[0]", "y.mul_(3)", "b"),
    "vjp of what is saved": ("torch.func.vjp(torch.exp, x)[0]", "y.mul_(3)", "y"),
    "grad has its argument beside": ("torch.func.grad(lambda a: (a.sum(), a), has_aux=True)(b)[1]", "y.mul_(3)", "b"),
}  # fmt: skip


def beginning(error: BaseException) -> str:
    """Return the words before what differs: places, and the names of nodes."""
    return before_the_hint(error).split(": ")[0].split(". ")[0]


def after(library: Any, make: str, write: str, asked: str) -> Any:
    """Return what is asked for after a write, and its gradient; or the error."""
    scope: dict[str, Any] = {"torch": library}
    for name, text in START.items():
        scope[name] = eval(text, scope)

    def run() -> Any:
        scope["y"] = eval(make, scope)
        eval(write, scope)
        found = eval(asked, scope)
        if not found.requires_grad:
            return found.tolist()
        weights = library.tensor([1.0, 10.0])[: found.shape[-1]]
        grad = library.autograd.grad((found * weights).sum(), scope["x"])[0]
        return np.round(found.tolist(), 5).tolist(), np.round(grad.tolist(), 5).tolist()

    return outcome(run, words=beginning, kinds=RuntimeError, ignore_warnings=False)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ALIASES)
def test_a_write_into_a_result_is_one_into_what_it_shows(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (after(one, *ALIASES[name]) for one in (retrograd, torch))
    assert ours == theirs


def test_a_write_into_the_result_of_linearize_leaves_the_derivative() -> None:
    output, push = func.linearize(retrograd.exp, retrograd.tensor([0.3, 0.5]))
    output.mul_(3)
    np.testing.assert_allclose(push(retrograd.ones(2)).numpy(), np.exp([0.3, 0.5]), rtol=1e-6)


def test_what_goes_through_comes_out_as_itself() -> None:
    x = retrograd.tensor([[1.0, 2.0]], requires_grad=True)
    assert func.vmap(lambda a: a)(x) is x
    assert func.vmap(lambda a: a, in_dims=1, out_dims=1)(x) is x
    assert func.vmap(lambda a: a, in_dims=1, out_dims=0)(x)._base is x
    assert func.vmap(lambda a: a[0])(x)._base is x
    assert func.vjp(lambda a: a, x)[0] is x
    tangent = retrograd.ones(1, 2)
    assert func.jvp(lambda a: a, (x,), (tangent,))[1] is tangent


@pytest.mark.parametrize("rule", ["generated", "own"])
def test_a_function_that_saves_its_result_notices_a_write_outside_of_vmap(rule: str) -> None:
    class Exp(retrograd.autograd.Function):
        generate_vmap_rule = rule == "generated"

        @staticmethod
        def forward(a: Any) -> Any:
            return a.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    if rule == "own":
        Exp.vmap = staticmethod(lambda info, dims, a: (Exp.apply(a), 0))  # type: ignore[method-assign]
    x = retrograd.tensor([0.3, 0.5], requires_grad=True)
    y = func.vmap(Exp.apply)(x)
    y.mul_(3)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_a_write_into_an_unpacked_primal_is_noticed() -> None:
    x = retrograd.tensor([0.3, 0.5], requires_grad=True)
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, retrograd.ones(2)).exp())
        primal.mul_(3)
        with pytest.raises(RuntimeError, match=MODIFIED):
            tangent.sum().backward()


# what is made inside a level of forward mode, what is written into, and what is asked for then
WRITTEN_OUTSIDE = {
    "the tensor given to make_dual": ("fw.make_dual(b, v)", "b.mul_(3)"),
    "the base of a view given to make_dual": ("fw.make_dual(b[:], v)", "b.mul_(3)"),
    "the tangent given to make_dual": ("fw.make_dual(b, u)", "u.mul_(3)"),
    "an unpacked primal": ("fw.make_dual(x, v) * 2", "fw.unpack_dual(d).primal.mul_(3)"),
    "a view of an unpacked primal": ("fw.make_dual(x, v) * 2", "fw.unpack_dual(d).primal[:1].mul_(3)"),
    "an unpacked tangent": ("fw.make_dual(x, v) * 2", "fw.unpack_dual(d).tangent.mul_(3)"),
    "an unpacked tangent, twice": ("fw.make_dual(x, v) * 2", "(fw.unpack_dual(d).tangent.mul_(3), fw.unpack_dual(d).tangent.mul_(w))"),
    "a tangent and a primal": ("fw.make_dual(x, v) * 2", "(fw.unpack_dual(d).tangent.mul_(3), fw.unpack_dual(d).primal.mul_(w))"),
    "the dual": ("fw.make_dual(b, u)", "d.mul_(w)"),
    "the dual that was unpacked": ("fw.make_dual(x, v) * 2", "(fw.unpack_dual(d), d.mul_(w))"),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", WRITTEN_OUTSIDE)
def test_a_write_into_a_part_of_a_dual_is_one_into_the_dual(name: str) -> None:
    make, write = WRITTEN_OUTSIDE[name]

    def parts_and_gradients(library: Any) -> Any:
        fw = library.autograd.forward_ad
        x = library.tensor([0.3, 0.5], requires_grad=True)
        w = library.tensor(5.0, requires_grad=True)
        scope = {"fw": fw, "x": x, "w": w, "b": x * 1, "v": library.ones(2), "u": x * 7}
        with fw.dual_level():
            scope["d"] = eval(make, scope)
            eval(write, scope)
            parts = [*fw.unpack_dual(scope["d"] * scope["d"]), *fw.unpack_dual(scope["d"])]
            total = sum((k + 1) * part.sum() for k, part in enumerate(parts))
            grads = library.autograd.grad(total, (x, w), allow_unused=True)
        return [None if one is None else np.round(one.tolist(), 3).tolist() for one in (*parts, *grads)]

    assert_same_answer(parts_and_gradients)


@pytest.mark.oracle
def test_a_write_into_what_vmap_was_given_is_one_into_its_samples() -> None:
    def result_and_gradient(library: Any) -> Any:
        x = library.tensor([0.3, 0.5], requires_grad=True)
        b = x * 1
        y = library.vmap(lambda a: (b.mul_(3), a * a)[1])(b)
        return np.round(y.tolist(), 4).tolist(), np.round(library.autograd.grad(y.sum(), x)[0].tolist(), 4).tolist()

    assert_same_answer(result_and_gradient)


@pytest.mark.oracle
@pytest.mark.parametrize("given", ["x", "x.view_as(x)", "x[:1]", "(x * 1).view_as(x)", "(x * 1)[:1]"])
def test_a_function_may_not_write_into_a_view_of_a_leaf(given: str) -> None:
    def gradient(library: Any) -> Any:
        class Twice(library.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, a: Any) -> Any:
                ctx.mark_dirty(a)
                return a.mul_(2)

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad * 2

        x = library.tensor([0.3, 0.5], requires_grad=True)
        run = lambda: Twice.apply(eval(given, {"x": x})).sum().backward()  # noqa: E731
        found = outcome(run, words=before_the_hint, kinds=RuntimeError, ignore_warnings=False)
        return found, None if x.grad is None else x.grad.tolist(), x.is_leaf

    assert_same_answer(gradient)
