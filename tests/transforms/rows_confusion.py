"""Perturbation confusion: the classics, where one level must not take another's derivative for its own."""

from __future__ import annotations

from tests.transforms.composition_row import data, leaf, row


@row
def confusion_grad_in_grad(torch):
    d, grad = data(torch), torch.func.grad
    return grad(lambda x: x * grad(lambda y: x + y)(d.two))(d.three)


@confusion_grad_in_grad.jax
def _(jax, jnp):
    return jnp.array(1.0)


@row
def confusion_jvp_in_jvp(torch):
    d, one = data(torch), torch.ones((), dtype=torch.float64)

    def derivative(f, x):
        return torch.func.jvp(f, (x,), (one,))[1]

    return derivative(lambda x: x * derivative(lambda y: x + y, d.two), d.three)


@confusion_jvp_in_jvp.jax
def _(jax, jnp):
    return jnp.array(1.0)


@row
def confusion_jvp_in_grad(torch):
    d, one = data(torch), torch.ones((), dtype=torch.float64)
    return torch.func.grad(lambda x: x * torch.func.jvp(lambda y: x * y, (x,), (one,))[1])(d.three)


@confusion_jvp_in_grad.jax
def _(jax, jnp):
    return jnp.array(6.0)


@row
def confusion_grad_in_jvp(torch):
    d, one = data(torch), torch.ones((), dtype=torch.float64)
    return torch.func.jvp(lambda x: x * torch.func.grad(lambda y: x * y)(x), (d.three,), (one,))


@confusion_grad_in_jvp.jax
def _(jax, jnp):
    return jnp.array(9.0), jnp.array(6.0)


@row
def confusion_same_variable_at_three_levels(torch):
    d, grad = data(torch), torch.func.grad
    return grad(lambda x: x * grad(lambda y: y * x * grad(lambda z: x * y * z**2)(y))(x))(d.s)


@confusion_same_variable_at_three_levels.jax
def _(jax, jnp):
    return jnp.array(6 * 5 * 0.7**4)  # inner 2xy^2, middle 2x^2y^3 -> 6x^2y^2, at y = x: 6x^5


@row
def confusion_tangent_is_the_outer_variable(torch):
    d, jvp = data(torch), torch.func.jvp

    def inner(x):
        return jvp(lambda y: torch.sin(x * y), (x,), (x,))[1]

    return jvp(inner, (d.x,), (d.v,))


@confusion_tangent_is_the_outer_variable.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.jvp(lambda x: x**2 * jnp.cos(x**2), (d.x,), (d.v,))


@row
def confusion_across_vmap(torch):
    d, func = data(torch), torch.func
    return func.grad(lambda x: func.vmap(lambda s: s * func.grad(lambda y: x * y**2 * s)(x))(d.scales).sum())(d.three)


@confusion_across_vmap.jax
def _(jax, jnp):
    d = data(jnp)
    return jnp.sum(d.scales**2) * 4 * d.three


@row
def confusion_leaf_and_its_copy(torch):
    w = leaf(data(torch).x)
    inner = torch.func.grad(lambda y: (w * y**2).sum())(w)  # 2 w y at y = w, by both paths
    return torch.autograd.grad(inner.sum(), w)


@confusion_leaf_and_its_copy.jax
def _(jax, jnp):
    return (4 * data(jnp).x,)
