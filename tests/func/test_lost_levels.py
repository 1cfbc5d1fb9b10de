"""Duals of which only one part is a batch, or a dual of another level: the gradient of the other part is a sum."""

from __future__ import annotations

import pytest

import retrograd as torch
from retrograd.func import grad, jacfwd, jvp, vmap

x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
rows = torch.eye(3, dtype=torch.float64)


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_primal_of_a_dual_with_a_batched_tangent():
    def f(x):
        return vmap(lambda t: jvp(torch.sin, (x,), (t,))[0])(rows).sum()

    same(grad(f)(x), 3 * x.cos())


def test_tangent_of_a_dual_with_a_batched_primal():
    batch = torch.ones(4, 3, dtype=torch.float64)
    same(
        grad(lambda t: vmap(lambda y: jvp(lambda z: 3 * z, (y,), (t,))[1])(batch).sum())(x),
        torch.full_like(x, 12),
    )


@pytest.mark.parametrize("part", [0, 1])
def test_primal_of_a_dual_with_a_dual_tangent(part):
    one = torch.ones_like(x)

    def f(x):
        return jvp(lambda a: jvp(torch.sin, (x,), (a,))[0] * a, (x,), (one,))[part].sum()

    same(grad(f)(x), x.cos() * x + x.sin() if part == 0 else x.cos())


def test_values_and_jacobian_in_one_pass():
    def f(x):
        jacobian, value = jacfwd(lambda y: (y.sin(), y.sin()), has_aux=True)(x)
        return (jacobian.sum(0) * value).sum()

    same(grad(f)(x), x.cos() ** 2 - x.sin() ** 2)


def test_samples_in_batches_of_a_kept_level():
    """Inside vmap, a gradient of each sample stays one."""
    batch = torch.stack([x, 2 * x])
    found = vmap(lambda y: grad(lambda z: jvp(torch.sin, (z,), (x,))[0].sum())(y))(batch)
    same(found, batch.cos())
    found = vmap(lambda t: grad(lambda z: jvp(torch.sin, (z,), (t,))[0].sum())(x))(rows)
    same(found, x.cos().expand(3, 3))
