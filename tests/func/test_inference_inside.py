"""Transforms under inference mode, on inference tensors; and results that nobody can ask for a derivative."""

from __future__ import annotations

from typing import Any

import retrograd
from tests.autograd.recording import Programs, caught

program = Programs("func_inference_inside")


def numbers(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0), dtype=torch.float64)


def inference_tensor(torch: Any) -> Any:
    with torch.inference_mode():
        return numbers(torch, 3.0, 5.0)


def square(x):
    return (x * x).sum()


def cubes(x):
    return x**3


def seen(tensor: Any) -> Any:
    return tensor, tensor.requires_grad, tensor.is_inference()


def sine(torch: Any) -> Any:
    class Sine(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].cos()

    return Sine.apply


# ---- inside inference mode ----
@program
def transforms_in_inference_mode(torch):
    f, x = torch.func, numbers(torch)
    with torch.inference_mode():
        made_inside = numbers(torch)
        return [
            (
                seen(f.grad(square)(at)),
                [seen(one) for one in f.grad_and_value(square)(at)],
                seen(f.vjp(torch.sin, at)[0]),
                seen(f.vjp(torch.sin, at)[1](at)[0]),
                seen(f.jacrev(cubes)(at)),
                [seen(one) for one in f.jvp(torch.sin, (at,), (at,))],
                seen(f.hessian(square)(at)),
                seen(f.jacrev(f.jacrev(cubes))(at)),
                seen(f.grad(f.grad(cubes))(at[0])),
                seen(torch.vmap(f.grad(cubes))(at)),
                seen(f.grad(lambda x: torch.vmap(cubes)(x).sum())(at)),
                seen(f.grad(lambda x: sine(torch)(x).sum())(at)),
                seen(f.grad(lambda x: square(x.clone().mul_(x)))(at)),
                seen(torch.vmap(torch.sin)(at)),
                seen(torch.vmap(lambda x: x[None])(at)),
            )
            for at in (x, made_inside)
        ]


@program
def modes_inside_a_transform(torch):
    x, shown = numbers(torch), []

    def look(y):
        shown.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled(), y.is_inference(), y.requires_grad))
        return square(y)

    with torch.inference_mode():
        torch.func.grad(look)(x)
        torch.func.jvp(look, (x,), (x,))
        torch.vmap(lambda y: look(y[None]))(numbers(torch))
        shown.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled()))
    return shown


@program
def a_pull_back_made_in_inference_mode(torch):
    x = numbers(torch)
    with torch.inference_mode():
        _, inside = torch.func.vjp(cubes, x)
    _, outside = torch.func.vjp(cubes, x)
    with torch.inference_mode():
        used_inside = outside(x)[0]
    return seen(inside(x)[0]), seen(used_inside)


@program
def parameters_in_inference_mode(torch):
    w = numbers(torch).requires_grad_()
    with torch.inference_mode():
        return (
            seen(torch.func.grad(lambda x: (x * w).sum())(numbers(torch))),
            seen(torch.func.grad(square)(w)),
            [seen(one) for one in torch.func.jvp(lambda x: x * w, (w,), (w,))],
        )


@program
def inference_mode_inside_the_function(torch):
    def made_inside(x):
        with torch.inference_mode():
            y = x * 2
        return (x * y).sum()

    return caught(torch.func.grad(made_inside), numbers(torch))


# ---- inference tensors outside ----
@program
def inference_tensors_as_inputs(torch):
    f, i, x = torch.func, inference_tensor(torch), numbers(torch)
    return (
        seen(f.grad(square)(i)),
        seen(f.jacrev(torch.sin)(i)),
        seen(f.jacfwd(torch.sin)(i)),
        seen(f.hessian(square)(i)),
        seen(f.vjp(torch.sin, i)[1](i)[0]),
        seen(f.vjp(torch.sin, x)[1](i)[0]),
        seen(torch.vmap(f.grad(cubes))(i)),
        seen(f.grad(lambda x: sine(torch)(x).sum())(i)),
        seen(f.grad(lambda x: (x[0] * x.view(2, 1)).sum())(i)),
        caught(f.grad(lambda x: square(x.add_(1))), i),
    )


@program
def captured_inference_tensors(torch):
    f, i, x = torch.func, inference_tensor(torch), numbers(torch)
    return (
        f.grad(lambda x: (x * i).sum())(x),
        f.grad(lambda x: (x * i.sin() * i).sum())(x),
        f.grad(lambda x: torch.stack([x, i]).prod())(x),
        f.grad(lambda x: torch.nn.functional.linear(x, i.view(1, 2)).prod())(x),
        f.grad(lambda x: x.clone().mul_(i).sum())(x),
        f.grad(lambda x: f.grad(lambda y: (y * y * x * i).sum())(i).sum())(x),
        caught(lambda: (i * x.clone().requires_grad_()).sum()),
    )


# ---- what is left of a graph ----
@program
def gradients_at_a_constant_point(torch):
    f, one, two = torch.func, torch.tensor(1.0), torch.tensor(2.0)
    newton = lambda a: 1.5 - f.grad(lambda y: y**3 * a)(torch.tensor(1.5)) / 9  # noqa: E731
    return [
        seen(result)
        for result in (
            f.grad(lambda a: f.grad(lambda y: y * y * a)(one))(two),
            f.grad(lambda a: f.grad(lambda y: y * y + a)(one))(two),
            f.grad(newton)(two),
            f.jacrev(lambda a: f.jacrev(lambda y: y * y * a)(one))(two),
            f.jacfwd(lambda a: f.grad(lambda y: y * y * a)(one))(two),
            f.grad(lambda a: f.vjp(lambda y: y * y * a, one)[1](a)[0])(two),
            f.grad(lambda a: f.jvp(lambda y: y * y * a, (one,), (one,))[1])(two),
            torch.vmap(f.grad(newton))(torch.tensor([1.0, 2.0])),
            f.grad_and_value(newton)(two)[1],
        )
    ]


@program
def only_what_depends_on_a_parameter_stays_in_its_graph(torch):
    w, x = numbers(torch).requires_grad_(), numbers(torch)
    gradient, (value, aux) = torch.func.grad_and_value(
        lambda x: ((x * x).sum() + w.sum(), (x * 2, w * 2)), has_aux=True
    )(x)
    outputs, pull_back = torch.func.vjp(lambda x: (x * x, x * w), x)
    first, second = pull_back((x, 0 * x))[0], pull_back((0 * x, x))[0]
    tangents = torch.func.jvp(lambda x: (w * 1, x * w), (x,), (x,))[1]
    parts = (gradient, value, *aux, *outputs, second, *tangents)
    return [part.requires_grad for part in parts], first, second


@program
def many_outputs_of_which_some_depend_on_a_parameter(torch):
    w, x = numbers(torch).requires_grad_(), numbers(torch)
    outputs, tangents = torch.func.jvp(lambda x: [x * (w if k % 3 == 0 else 2.0) for k in range(30)], (x,), (x,))
    gradients = torch.func.grad(lambda xs: sum((x * x * (w if k % 3 == 0 else 2.0)).sum() for k, x in enumerate(xs)))(
        [x + k for k in range(30)]
    )
    return [[one.requires_grad for one in many] for many in (outputs, tangents, gradients)]


@program
def leaves_made_inside(torch):
    f = torch.func

    def descend(rate):
        q = torch.tensor(1.0, requires_grad=True)
        for _ in range(3):
            (g,) = torch.autograd.grad(q**2, q, create_graph=True)
            q = q - rate * g
        return q**2

    rate = torch.tensor(0.1)
    return [seen(one(descend)(rate)) for one in (f.grad, f.jacrev, f.jacfwd, f.hessian)]


@program
def parameters_on_which_tangents_do_not_depend(torch):
    x, w, b = numbers(torch), numbers(torch).requires_grad_(), numbers(torch).requires_grad_()
    pushed = torch.vmap(lambda x: torch.func.jvp(lambda x: x * w + b, (x,), (x,))[1])(torch.stack([x, x]))
    pushed.sum().backward()
    again = torch.func.jvp(lambda x: x * w + b, (x,), (x,))[1].sum()
    return w.grad, b.grad, torch.autograd.grad(again, (w, b), allow_unused=True)


test_as_torch, test_recording_is_torchs = program.tests()


def test_linearize_leaves_no_graph():
    """torch's own leaves none; it answers with a Parameter here, and with zeros under inference mode."""
    x = retrograd.ones(2)
    output, push = retrograd.func.linearize(lambda x: x.sin() * x, x)
    assert not output.requires_grad
    assert not push(x).requires_grad
    with retrograd.inference_mode():
        _, push = retrograd.func.linearize(retrograd.sin, x)
        assert push(x).tolist() == x.cos().tolist()
