"""Forward mode by dual tensors: levels, unpacking, views and writes, as in torch."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.autograd.recording import Programs, caught

program = Programs("forward_ad")


def values(torch: Any, *numbers: float) -> Any:
    return torch.tensor(numbers or (1.0, 2.0, 3.0), dtype=torch.float64)


def level(torch: Any) -> Any:
    return torch.autograd.forward_ad.dual_level()


def dual(torch: Any, primal: Any = None, tangent: Any = None) -> Any:
    primal = values(torch) if primal is None else primal
    tangent = values(torch, 10.0, 20.0, 30.0) if tangent is None else tangent
    return torch.autograd.forward_ad.make_dual(primal, tangent)


def parts(torch: Any, tensor: Any) -> Any:
    return list(torch.autograd.forward_ad.unpack_dual(tensor))


@program
def unpack_what_was_made(torch):
    with level(torch):
        return parts(torch, dual(torch))


@program
def unpack_plain(torch):
    with level(torch):
        return parts(torch, values(torch))


@program
def unpack_outside(torch):
    return parts(torch, values(torch))


@program
def fields_of_the_result(torch):
    with level(torch):
        found = torch.autograd.forward_ad.unpack_dual(dual(torch))
        return type(found).__name__, list(found._fields), found.primal.requires_grad


@program
def product_rule(torch):
    with level(torch):
        x = dual(torch)
        return parts(torch, x * x.exp() + 1)


@program
def constants_have_no_tangent(torch):
    with level(torch):
        x = dual(torch)
        return parts(torch, values(torch) * 2)[1], parts(torch, x * values(torch))[1]


@program
def independent_result(torch):
    with level(torch):
        return parts(torch, dual(torch).sign()), parts(torch, dual(torch) > 2)


@program
def tangent_is_gone_after_the_level(torch):
    with level(torch):
        y = dual(torch) * 2
    with level(torch):
        return parts(torch, y)


@program
def dual_used_after_the_level(torch):
    with level(torch):
        y = dual(torch) * 2
    return y * 3, parts(torch, y * 3)


@program
def nested_levels_are_refused(torch):
    with level(torch):
        error = caught(torch.autograd.forward_ad.enter_dual_level)
        return error, parts(torch, dual(torch) * 2)


@program
def level_ends_with_an_error(torch):
    def fail():
        with level(torch):
            raise ValueError("inside")

    error = caught(fail)
    with level(torch):
        return error, parts(torch, dual(torch))


@program
def enter_and_exit(torch):
    fwd = torch.autograd.forward_ad
    number = fwd.enter_dual_level()
    result = parts(torch, dual(torch))
    fwd.exit_dual_level(level=number)
    return number, result


@program
def exit_of_another_level(torch):
    fwd = torch.autograd.forward_ad
    with level(torch):
        return caught(fwd.exit_dual_level, level=3)


@program
def detach_drops_the_tangent(torch):
    with level(torch):
        return parts(torch, dual(torch).detach())


@program
def views_of_duals(torch):
    with level(torch):
        x = dual(torch)
        return [parts(torch, v) for v in (x[1:], x.view(3, 1), x.unsqueeze(0), x.unbind(0)[1], x.expand(2, 3))]


@program
def view_of_primal_and_tangent_share_memory(torch):
    p, t = values(torch), values(torch, 10.0, 20.0, 30.0)
    with level(torch):
        x = dual(torch, p, t)
        v = x[:2]
        v.mul_(2)
        return parts(torch, x), p


@program
def in_place_on_dual(torch):
    with level(torch):
        x = dual(torch).clone()
        x.mul_(3)
        return parts(torch, x)


@program
def in_place_with_dual_argument(torch):
    with level(torch):
        x, y = values(torch), dual(torch)
        x.mul_(y)
        return parts(torch, x)


@program
def copy_dual_into_plain(torch):
    with level(torch):
        x = values(torch)
        x.copy_(dual(torch))
        return parts(torch, x)


@program
def copy_plain_into_dual(torch):
    with level(torch):
        x = dual(torch) * 1
        x.copy_(values(torch, 7.0, 8.0, 9.0))
        return parts(torch, x)


@program
def set_item_of_plain_by_dual(torch):
    with level(torch):
        x = torch.zeros(5, dtype=torch.float64)
        x[1:4] = dual(torch)
        return parts(torch, x)


@program
def set_item_of_dual_by_number(torch):
    with level(torch):
        x = dual(torch) * 1
        x[0] = 5.0
        return parts(torch, x)


@program
def zero_a_dual(torch):
    with level(torch):
        x = dual(torch) * 1
        x.zero_()
        return parts(torch, x)


@program
def version_of_dual_and_primal(torch):
    p = values(torch)
    with level(torch):
        x = dual(torch, p)
        x.add_(1)
        return p, p._version, x._version


@program
def no_grad_does_not_stop_forward_mode(torch):
    with level(torch), torch.no_grad():
        return parts(torch, dual(torch) * 2)


@program
def reverse_over_forward(torch):
    x = values(torch).requires_grad_()
    with level(torch):
        y = dual(torch, x)
        tangent = parts(torch, (y * y * y).sum())[1]
        return torch.autograd.grad(tangent, x)


@program
def reverse_to_the_tangent(torch):
    t = values(torch).requires_grad_()
    with level(torch):
        y = dual(torch, values(torch), t)
        tangent = parts(torch, (y * y).sum())[1]
        return torch.autograd.grad(tangent, t)


@program
def backward_inside_a_level(torch):
    x = values(torch).requires_grad_()
    with level(torch):
        y = dual(torch, x)
        (y * y).sum().backward()
    return x.grad


@program
def requires_grad_of_dual(torch):
    x = values(torch).requires_grad_()
    with level(torch):
        y = dual(torch, x)
        return y.requires_grad, y.is_leaf, parts(torch, y)[0].requires_grad, parts(torch, y)[1].requires_grad


@program
def complex_dual(torch):
    p = torch.tensor([1 + 2j], dtype=torch.complex128)
    with level(torch):
        x = dual(torch, p, p * 1j)
        return parts(torch, x * x.conj()), parts(torch, x.abs())


@program
def zero_dimensional_dual(torch):
    with level(torch):
        x = dual(torch, values(torch)[1], values(torch)[2])
        return parts(torch, x * x), parts(torch, x.add(1).exp())


@program
def vmap_inside_a_dual_level(torch):
    with level(torch):
        return parts(torch, torch.func.vmap(lambda v: v * v)(dual(torch)))


@program
def grad_inside_a_dual_level(torch):
    with level(torch):
        return parts(torch, torch.func.grad(lambda v: (v * v * v).sum())(dual(torch)))


@program
def matrix_product(torch):
    m = torch.arange(9, dtype=torch.float64).reshape(3, 3)
    with level(torch):
        x = dual(torch)
        return parts(torch, m @ x), parts(torch, x @ x)


@program
def reductions_and_joining(torch):
    with level(torch):
        x = dual(torch)
        return [
            parts(torch, y)
            for y in (x.sum(), x.prod(), x.max(), x.logsumexp(0), torch.cat([x, values(torch)]), x.cumsum(0))
        ]


@program
def make_dual_of_a_view(torch):
    m = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    with level(torch):
        x = dual(torch, m[0], m[1])
        return parts(torch, x * 2)


@program
def same_tensor_as_primal_and_tangent(torch):
    p = values(torch)
    with level(torch):
        x = dual(torch, p, p)
        x.mul_(2)
        return parts(torch, x), p


@program
def forward_over_reverse_to_the_dual(torch):
    with level(torch):
        x = dual(torch, values(torch).requires_grad_())
        return parts(torch, torch.autograd.grad((x * x * x).sum(), x)[0])


@program
def forward_over_reverse_to_the_primal(torch):
    x = values(torch).requires_grad_()
    with level(torch):
        y = dual(torch, x)
        return parts(torch, torch.autograd.grad((y * y * y).sum(), x)[0])


@program
def forward_over_reverse_with_dual_seed(torch):
    x = values(torch).requires_grad_()
    with level(torch):
        y = dual(torch, x)
        return parts(torch, torch.autograd.grad(y * y, x, dual(torch))[0])


def test_jvp_inside_a_dual_level():
    """torch refuses; here levels nest, so the answer is the second derivative along both directions."""
    with level(retrograd):
        x = dual(retrograd)
        shown = parts(retrograd, retrograd.func.jvp(lambda v: v * v, (x,), (values(retrograd),))[1])
    assert [one.tolist() for one in shown] == [[2.0, 8.0, 18.0], [20.0, 80.0, 180.0]]


@pytest.fixture(autouse=True)
def _no_level():
    yield
    fwd = retrograd.autograd.forward_ad
    if fwd._current_level >= 0:
        fwd.exit_dual_level()


test_as_torch, test_recording_is_torchs = program.tests()
