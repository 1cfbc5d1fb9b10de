"""Custom Functions under compositions of transforms: against built-in functions, and against torch.

Every derivative of a Function written by hand must be that of the built-in function it imitates, whatever the order of reverse
mode, forward mode and vmap. A Function whose `backward` and `jvp` do not belong together shows which of the two is asked:
torch's answers to that are recorded.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

import retrograd
from tests.autograd.recording import Programs

program = Programs("function_compositions")


def transforms(torch: Any) -> dict[str, Callable[[Any], Any]]:
    """Transforms of functions of one tensor, by short names."""
    func = torch.func

    def weights(x: Any) -> Any:
        return torch.tensor([1.0, 2.0], dtype=torch.float64).reshape(2, *[1] * x.ndim)

    return {
        "jacrev": func.jacrev,
        "jacfwd": func.jacfwd,
        "grad": lambda f: func.grad(lambda x: f(x).sum()),
        "jvp": lambda f: lambda x: func.jvp(f, (x,), (torch.ones_like(x),))[1],
        "vmap": lambda f: lambda x: func.vmap(f)(x.expand(2, *x.shape) * weights(x)),
        "captured": lambda f: lambda x: func.vmap(lambda s: f(x) * s)(torch.tensor([1.0, 2.0], dtype=torch.float64)),
        "linear": lambda f: lambda x: func.linearize(f, x)[1](torch.ones_like(x)),
    }


def composed(torch: Any, names: tuple[str, ...], f: Any) -> Any:
    known = transforms(torch)
    for name in names:
        f = known[name](f)
    return f


def functions(torch: Any) -> dict[str, tuple[Any, Any]]:
    """Custom Functions, each with the built-in operations it stands for."""

    class Exp(torch.autograd.Function):  # derivatives from the output
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0]

    class ExpOfBatches(Exp):  # with a vmap of its own
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x):
            return ExpOfBatches.apply(x.movedim(in_dims[0], 0)), 0

    class Product(torch.autograd.Function):  # two inputs, two outputs, and rules that call the Function itself
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y, x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return Product.apply(g, y)[0] + h, Product.apply(g, x)[0] + h

        @staticmethod
        def jvp(ctx, s, t):
            x, y = ctx.saved_tensors
            return Product.apply(s, y)[0] + Product.apply(x, t)[0], s + t

    def product(x):
        first, second = Product.apply(x.sin(), x)
        return first * second

    return {
        "exp": (Exp.apply, torch.exp),
        "exp_of_batches": (ExpOfBatches.apply, torch.exp),
        "exp_twice": (lambda x: Exp.apply(Exp.apply(-x) * x), lambda x: (torch.exp(-x) * x).exp()),
        "product": (product, lambda x: x.sin() * x * (x.sin() + x)),
    }


NAMES = tuple(transforms(retrograd))
DEPTH_2 = [names for depth in (1, 2) for names in itertools.product(NAMES, repeat=depth)]
DEPTH_3 = random.Random(0).sample(list(itertools.product(NAMES, repeat=3)), 60)


@pytest.mark.parametrize("name", ["exp", "exp_of_batches", "exp_twice", "product"])
@pytest.mark.parametrize("names", DEPTH_2 + DEPTH_3, ids=".".join)
def test_as_built_in(names, name):
    custom, built_in = functions(retrograd)[name]
    x = retrograd.tensor([0.5, 1.25], dtype=retrograd.float64)
    found, expected = composed(retrograd, names, custom)(x), composed(retrograd, names, built_in)(x)
    retrograd.testing.assert_close(found.detach(), expected.detach(), rtol=1e-10, atol=1e-10)


# ---- which of the rules is asked ----
def contrary(torch: Any) -> Any:
    """A Function whose `backward` and `jvp` are derivatives of different functions."""

    class Contrary(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output)
            ctx.save_for_forward(inputs[0], output)

        @staticmethod
        def backward(ctx, g):
            x, out = ctx.saved_tensors
            return g * x.exp() * out

        @staticmethod
        def jvp(ctx, t):
            x, out = ctx.saved_tensors
            return t * x**4 * out

    return Contrary


def straight_through(torch: Any) -> Any:
    class Round(contrary(torch)):  # type: ignore[misc]
        @staticmethod
        def forward(x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g * 1

        @staticmethod
        def jvp(ctx, t):
            return t * 1

    return Round


def shown(torch: Any, f: Any, depth: int) -> dict[str, Any]:
    """Return the values of f's compositions; of forward mode in forward mode torch has no derivative of a Function."""
    x = torch.tensor([1.2, 2.0], dtype=torch.float64)
    found = {}
    for names in itertools.product(("jacrev", "jacfwd", "grad", "jvp", "vmap", "captured"), repeat=depth):
        if sum(name in ("jacfwd", "jvp") for name in names) < 2:
            found[".".join(names)] = composed(torch, names, f)(x).detach().flatten().tolist()
    return found


@program
def contrary_rules(torch):
    return [shown(torch, contrary(torch).apply, depth) for depth in (1, 2, 3)]


@program
def straight_through_estimator(torch):
    f = straight_through(torch)
    return [shown(torch, lambda x: f.apply(x * x) * x, depth) for depth in (1, 2)]


@program
def contrary_vmap(torch):
    class Mapped(contrary(torch)):  # type: ignore[misc]
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x):
            return (x.movedim(in_dims[0], -1) ** 3).sin(), -1

    return [shown(torch, Mapped.apply, depth) for depth in (1, 2)]


@program
def vmap_that_applies_the_function(torch):
    class Mapped(contrary(torch)):  # type: ignore[misc]
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x):
            return Mapped.apply(x.movedim(in_dims[0], -1)) * 2, -1

    return [shown(torch, lambda x: Mapped.apply(x * x) * x, depth) for depth in (1, 2)]


@program
def vmap_without_backward(torch):
    class Mapped(contrary(torch)):  # type: ignore[misc]
        generate_vmap_rule = False
        backward = torch.autograd.Function.backward

        @staticmethod
        def vmap(info, in_dims, x):
            return x.sin(), in_dims[0]

    x = torch.ones(3, 2, dtype=torch.float64)
    return torch.func.grad(lambda x: torch.func.vmap(Mapped.apply)(x).sum())(x)


@program
def calls_of_backward(torch):
    seen: list[Any] = []

    class Seen(contrary(torch)):  # type: ignore[misc]
        generate_vmap_rule = False

        @staticmethod
        def backward(ctx, g):
            seen.append(tuple(g.shape))
            return g * ctx.saved_tensors[0]

        @staticmethod
        def vmap(info, in_dims, x):
            return Seen.apply(x.movedim(in_dims[0], 0)), 0

    found = []
    for names in (
        ("grad",),
        ("jvp", "grad"),
        ("grad", "jvp"),
        ("vmap", "grad"),
        ("grad", "vmap"),
        ("jvp", "vmap", "grad"),
    ):
        composed(torch, names, Seen.apply)(torch.ones(2, dtype=torch.float64))
        found.append(list(seen))
        seen.clear()
    return found


def old_style(torch: Any) -> Any:
    """The sine, with ctx in forward, which is for forward_ad alone."""

    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.sin()
            ctx.save_for_backward(x, out)
            ctx.save_for_forward(x)
            ctx.factor = 1.0
            return out

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].cos() * ctx.factor

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0].cos() * ctx.factor

    return Sine


@program
def two_backwards_in_a_dual_level(torch):
    fwd, grad = torch.autograd.forward_ad, torch.autograd.grad
    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    with fwd.dual_level():
        dual = fwd.make_dual(x, torch.ones_like(x))
        (first,) = grad(old_style(torch).apply(dual), dual, create_graph=True)
        (second,) = grad(first, dual, create_graph=True)
        return [list(fwd.unpack_dual(one)) for one in (first, second)]


@program
def node_in_a_dual_level(torch):
    fwd = torch.autograd.forward_ad
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with fwd.dual_level():
        y = old_style(torch).apply(fwd.make_dual(x, torch.ones_like(x)))
        return y.grad_fn.name(), len(y.grad_fn.next_functions), y.grad_fn.factor


@program
def backward_from_primal_and_tangent(torch):
    fwd = torch.autograd.forward_ad
    found = []
    for which in (0, 1):
        x = torch.tensor([0.7, 1.1], dtype=torch.float64, requires_grad=True)
        with fwd.dual_level():
            parts = fwd.unpack_dual(old_style(torch).apply(fwd.make_dual(x, torch.ones_like(x))))
        parts[which].sum().backward()
        found.append(x.grad)
    return found


@program
def jvp_without_backward(torch):
    f = contrary(torch)
    del f.backward
    x = torch.tensor([0.7, 1.1], dtype=torch.float64, requires_grad=True)
    torch.func.jvp(f.apply, (x,), (torch.ones_like(x),))[1].sum().backward()
    return x.grad


test_as_torch, test_recording_is_torchs = program.tests()


# ---- where torch has no answer ----
def test_forward_mode_in_forward_mode_asks_jvp():
    f = straight_through(retrograd).apply
    x = retrograd.tensor([1.2, 2.0], dtype=retrograd.float64)
    twice = composed(retrograd, ("jvp", "jvp"), lambda x: f(x) * x)(x)
    retrograd.testing.assert_close(twice, retrograd.full_like(x, 2.0))
    mapped = composed(retrograd, ("vmap", "jvp"), f)(x)
    assert mapped.tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_a_dual_whose_level_has_ended_is_its_primal():
    fwd = retrograd.autograd.forward_ad
    x = retrograd.tensor([0.7, 1.1], requires_grad=True)
    with fwd.dual_level():
        dual = fwd.make_dual(x, retrograd.ones(2))
    old_style(retrograd).apply(dual).sum().backward()
    retrograd.testing.assert_close(x.grad, x.detach().cos())
