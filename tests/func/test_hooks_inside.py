"""A hook on a value inside a transform meets the gradients of that transform, and none of an outer one, as on torch's wrappers."""

from __future__ import annotations

import retrograd as torch


def doubled_cube(x):
    if x.requires_grad:  # torch says no inside vmap and jvp, and refuses hooks there
        x.register_hook(lambda g: g * 2)
    return (x**3).sum()


def test_a_hook_on_the_variable_of_grad_runs_once():
    x = torch.tensor([0.5], requires_grad=True)
    slope = torch.func.grad(doubled_cube)(x)
    assert slope.tolist() == [1.5]  # twice 3 x^2
    slope.sum().backward()
    assert x.grad.tolist() == [6.0]  # twice 6 x


def test_a_hook_on_a_value_inside_grad_runs_once():
    def f(x):
        y = x * x
        y.register_hook(lambda g: g * 2)
        return (y * x).sum()  # x^3, of which x * x has a share of two thirds

    x = torch.tensor([0.5], requires_grad=True)
    slope = torch.func.grad(f)(x)
    assert slope.tolist() == [1.25]  # 2 * 2 x^2 + x^2
    slope.sum().backward()
    assert x.grad.tolist() == [5.0]  # 10 x


def test_a_hook_inside_vmap_or_jvp_meets_no_outer_gradient():
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    torch.vmap(doubled_cube)(x.unsqueeze(1)).sum().backward()
    assert x.grad.tolist() == [0.75, 3.0]
    x = torch.tensor([0.5], requires_grad=True)
    value, _ = torch.func.jvp(doubled_cube, (x,), (torch.ones(1),))
    value.backward()
    assert x.grad.tolist() == [0.75]


def test_a_hook_on_a_captured_leaf_meets_the_outer_gradient():
    w, x = torch.tensor([3.0], requires_grad=True), torch.tensor([0.5])

    def f(x):
        w.register_hook(lambda g: g * 2)
        return (w * x * x).sum()

    torch.func.grad(f)(x).sum().backward()
    assert w.grad.tolist() == [2.0]  # twice 2 x


def test_the_hook_of_vjp_runs_at_every_call_of_the_pull_back():
    seen = []

    def f(x):
        x.register_hook(lambda g: seen.append(g.tolist()))
        return x * x

    _, pull_back = torch.func.vjp(f, torch.tensor([3.0]))
    pull_back(torch.ones(1))
    pull_back(torch.ones(1) * 2)
    assert seen == [[6.0], [12.0]]
