"""Exceptions in the middle of transforms: what comes after must be as clean as if nothing had happened.

Every row returns how many exceptions it caught, too, so that a program that fails to raise is seen.
"""

from __future__ import annotations

from tests.transforms.composition_row import add, data, leaf, row


class StopError(Exception):
    """What the programs raise."""


def afterwards(torch):
    """A composition of everything, and plain autograd, to be right after the exception."""
    d, func, fwd = data(torch), torch.func, torch.autograd.forward_ad
    w = leaf(d.w)
    out = func.vmap(func.grad(lambda x: func.jvp(lambda y: torch.sin(w @ y), (x,), (d.v,))[1].sum()))(d.batch)
    out.sum().backward()
    with fwd.dual_level():
        tangent = fwd.unpack_dual(torch.exp(fwd.make_dual(d.x, d.v))).tangent
        plain = fwd.unpack_dual(d.x * 2).tangent is None
    fresh = d.x * 2
    return out, w.grad, tangent, plain, fresh.requires_grad, tuple(fresh.shape), torch.is_grad_enabled()


def afterwards_jax(jax, jnp):
    d = data(jnp)

    def f(w):
        return jax.vmap(jax.grad(lambda x: jax.jvp(lambda y: jnp.sin(w @ y), (x,), (d.v,))[1].sum()))(d.batch)

    return f(d.w), jax.grad(lambda w: f(w).sum())(d.w), jnp.exp(d.x) * d.v, True, False, (3,), True


def catching(torch, *actions):
    """How many of the actions raised StopError."""
    caught = 0
    for action in actions:
        try:
            action()
        except StopError:
            caught += 1
    return caught


def add_state_row(program):
    """A row for a program that returns how many exceptions it caught (of one), followed by afterwards()."""

    def reference(jax, jnp):
        return 1, afterwards_jax(jax, jnp)

    add(program.__name__, lambda torch: (program(torch), afterwards(torch))).jax(reference)
    return program


def stop(*_):
    raise StopError


@add_state_row
def raise_inside_grad(torch):
    return catching(torch, lambda: torch.func.grad(stop)(data(torch).x))


@add_state_row
def raise_inside_vmap(torch):
    return catching(torch, lambda: torch.func.vmap(stop)(data(torch).x))


@add_state_row
def raise_inside_jvp(torch):
    d = data(torch)
    return catching(torch, lambda: torch.func.jvp(stop, (d.x,), (d.v,)))


@add_state_row
def raise_inside_vjp(torch):
    return catching(torch, lambda: torch.func.vjp(stop, data(torch).x))


@add_state_row
def raise_inside_jacobians(torch):
    d, func = data(torch), torch.func
    actions = [lambda t=t: t(stop)(d.x) for t in (func.jacrev, func.jacfwd, func.hessian)]
    return catching(torch, *actions) - 2


@add_state_row
def raise_three_levels_down(torch):
    d, func = data(torch), torch.func

    def f(x):
        inner = func.vmap(lambda s: func.jvp(lambda y: stop(y * s), (x,), (x,))[1])
        return inner(d.scales).sum()

    return catching(torch, lambda: func.grad(f)(d.x))


@add_state_row
def raise_under_no_grad_inside_grad(torch):
    def f(x):
        with torch.no_grad():
            stop(x)

    return catching(torch, lambda: torch.func.grad(f)(data(torch).x))


@add_state_row
def raise_inside_a_dual_level(torch):
    d, fwd = data(torch), torch.autograd.forward_ad

    def action():
        with fwd.dual_level():
            dual = fwd.make_dual(d.x, d.v)
            torch.func.vmap(lambda s: stop(dual * s))(d.scales)

    return catching(torch, action)


@add_state_row
def raise_in_the_backward_of_a_function(torch):
    class Broken(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            raise StopError

    d, func = data(torch), torch.func
    x = leaf(d.x)
    return (
        catching(
            torch,
            lambda: Broken.apply(x).sum().backward(),
            lambda: func.grad(lambda y: Broken.apply(y).sum())(d.x),
            lambda: func.vmap(func.grad(lambda y: Broken.apply(y).sum()))(d.batch),
        )
        - 2
    )


@add_state_row
def raise_by_a_wrong_shape_inside_vmap_of_grad(torch):
    d, func = data(torch), torch.func
    try:
        func.vmap(func.grad(lambda x: torch.dot(x, d.scales)))(d.batch)
    except RuntimeError:
        return 1
    return 0


@add_state_row
def raise_for_a_gradient_of_a_vector(torch):
    d, func = data(torch), torch.func
    try:
        func.vmap(func.grad(lambda x: x * 2))(d.batch)
    except RuntimeError:
        return 1
    return 0


# --- caught inside of an outer transform, which goes on ---------------------------------------------------


@row
def caught_inside_grad_which_goes_on(torch):
    d, func = data(torch), torch.func

    def f(x):
        caught = catching(
            torch,
            lambda: func.grad(lambda y: stop(y * x))(x),
            lambda: func.jvp(lambda y: stop(y * x), (x,), (d.v,)),
            lambda: func.vmap(lambda s: stop(x * s))(d.scales),
        )
        return (torch.sin(x) * func.grad(lambda y: (y**2 * x).sum())(x)).sum() * caught

    return func.grad(f)(d.x), func.vmap(func.grad(f))(d.batch)


@caught_inside_grad_which_goes_on.jax
def _(jax, jnp):
    d = data(jnp)
    gradient = jax.grad(lambda x: 6 * jnp.sum(jnp.sin(x) * x**2))
    return gradient(d.x), jax.vmap(gradient)(d.batch)


@row
def caught_inside_vmap_which_goes_on(torch):
    d, func = data(torch), torch.func

    def f(x):
        caught = catching(torch, lambda: func.vmap(func.grad(lambda s: stop(x * s)))(d.scales))
        return func.vmap(lambda s: x * s)(d.scales).sum(0) * caught

    return func.vmap(f, in_dims=1, out_dims=1)(d.batch.T)


@caught_inside_vmap_which_goes_on.jax
def _(jax, jnp):
    d = data(jnp)
    return (d.batch * d.scales.sum()).T


@row
def caught_inside_jvp_which_goes_on(torch):
    d, func = data(torch), torch.func

    def f(x):
        caught = catching(torch, lambda: func.jvp(lambda y: func.jvp(stop, (y,), (x,)), (x,), (x,)))
        return func.jvp(lambda y: torch.exp(y) * x, (x,), (d.y,))[1] * caught

    return func.jvp(f, (d.x,), (d.v,))


@caught_inside_jvp_which_goes_on.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.jvp(lambda x: jnp.exp(x) * x * d.y, (d.x,), (d.v,))


@row
def pullback_raises_then_is_called_again(torch):
    d, func = data(torch), torch.func
    armed = [True]

    class Once(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return torch.sin(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            if armed.pop():
                raise StopError
            return g * torch.cos(ctx.saved_tensors[0])

    _, pull = func.vjp(lambda x: Once.apply(x) * x, d.x)
    caught = catching(torch, lambda: pull(d.v))
    armed.extend([False] * 4)
    return caught, pull(d.v)[0], func.vmap(pull)(d.batch)[0]


@pullback_raises_then_is_called_again.jax
def _(jax, jnp):
    d = data(jnp)
    slope = jnp.cos(d.x) * d.x + jnp.sin(d.x)
    return 1, slope * d.v, slope * d.batch


@row
def outside_graph_survives_an_exception_inside(torch):
    d, func = data(torch), torch.func
    w = leaf(d.x)
    out = torch.exp(w) * w
    caught = catching(torch, lambda: func.vmap(func.grad(lambda x: stop((x * out).sum())))(d.batch))
    out.sum().backward()
    return caught, w.grad


@outside_graph_survives_an_exception_inside.jax
def _(jax, jnp):
    x = data(jnp).x
    return 1, jnp.exp(x) * (x + 1)
