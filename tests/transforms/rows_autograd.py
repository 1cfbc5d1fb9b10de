"""Duals, tangents that require grad, autograd.grad and the closures of vjp, in and around transforms."""

from __future__ import annotations

from tests.transforms.composition_row import data, leaf, row, torch_fails

# --- tangents that require grad, duals -------------------------------------------------------------------


@row
def jvp_with_a_tangent_that_requires_grad(torch):
    d = data(torch)
    x, v = leaf(d.x), leaf(d.v)
    _, tangent = torch.func.jvp(lambda y: torch.sin(y) * y, (x,), (v,))
    return torch.autograd.grad((tangent**2).sum(), (x, v))


@jvp_with_a_tangent_that_requires_grad.jax
def _(jax, jnp):
    d = data(jnp)

    def f(x, v):
        return jnp.sum(jax.jvp(lambda y: jnp.sin(y) * y, (x,), (v,))[1] ** 2)

    return jax.grad(f, argnums=(0, 1))(d.x, d.v)


@row
def make_dual_with_a_tangent_that_requires_grad(torch):
    d, fwd = data(torch), torch.autograd.forward_ad
    x, v = leaf(d.x), leaf(d.v)
    with fwd.dual_level():
        tangent = fwd.unpack_dual(torch.sin(fwd.make_dual(x, v)) * x).tangent
        return torch.autograd.grad((tangent**2).sum(), (x, v))


@make_dual_with_a_tangent_that_requires_grad.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.grad(lambda x, v: jnp.sum((jnp.cos(x) * v * x) ** 2), argnums=(0, 1))(d.x, d.v)


@row
def dual_as_argument_of_func_grad(torch):
    d, fwd = data(torch), torch.autograd.forward_ad
    with fwd.dual_level():
        out = torch.func.grad(lambda x: torch.logsumexp(d.w @ x, 0))(fwd.make_dual(d.x, d.v))
        return tuple(fwd.unpack_dual(out))


@dual_as_argument_of_func_grad.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.jvp(jax.grad(lambda x: jax.nn.logsumexp(d.w @ x)), (d.x,), (d.v,))


@row
def dual_captured_in_vmap_of_grad(torch):
    d, fwd, func = data(torch), torch.autograd.forward_ad, torch.func
    with fwd.dual_level():
        w = fwd.make_dual(d.w, d.w.T.clone())
        out = func.vmap(func.grad(lambda x: torch.tanh(w @ x).sum()))(d.batch)
        return tuple(fwd.unpack_dual(out))


@dual_captured_in_vmap_of_grad.jax
def _(jax, jnp):
    d = data(jnp)

    def f(w):
        return jax.vmap(jax.grad(lambda x: jnp.tanh(w @ x).sum()))(d.batch)

    return jax.jvp(f, (d.w,), (d.w.T,))


@torch_fails("make_dual inside vmap")
def dual_level_inside_vmap(torch):
    d, fwd = data(torch), torch.autograd.forward_ad

    def f(x, v):
        with fwd.dual_level():
            return fwd.unpack_dual(torch.sin(d.w @ fwd.make_dual(x, v))).tangent

    return torch.func.vmap(f, in_dims=(0, None))(d.batch, d.v)


@dual_level_inside_vmap.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(lambda x: jax.jvp(lambda y: jnp.sin(d.w @ y), (x,), (d.v,))[1])(d.batch)


@row
def dual_level_inside_grad(torch):
    d, fwd = data(torch), torch.autograd.forward_ad

    def f(x):
        with fwd.dual_level():
            return fwd.unpack_dual(torch.sin(d.w @ fwd.make_dual(x, d.v))).tangent.sum()

    return torch.func.grad(f)(d.x)


@dual_level_inside_grad.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.grad(lambda x: jax.jvp(lambda y: jnp.sin(d.w @ y), (x,), (d.v,))[1].sum())(d.x)


@torch_fails("func.jvp inside a dual_level")
def dual_captured_and_differentiated_again(torch):
    d, fwd = data(torch), torch.autograd.forward_ad
    with fwd.dual_level():
        w = fwd.make_dual(d.x, d.v)
        out = torch.func.jvp(lambda y: torch.sin(w * y), (w,), (w,))[1]  # the same dual, three times
        return tuple(fwd.unpack_dual(out))


@dual_captured_and_differentiated_again.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.jvp(lambda x: x**2 * jnp.cos(x**2), (d.x,), (d.v,))


# --- autograd.grad and closures of vjp inside transforms --------------------------------------------------


@row
def autograd_grad_vmapped_over_cotangents(torch):
    d = data(torch)
    x = leaf(d.x)
    out = torch.tanh(d.w @ x) * x
    eye = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=torch.float64)
    return torch.func.vmap(lambda v: torch.autograd.grad(out, x, v, retain_graph=True)[0])(eye)


@autograd_grad_vmapped_over_cotangents.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.jacrev(lambda x: jnp.tanh(d.w @ x) * x)(d.x)


@row
def autograd_grad_with_batched_grads(torch):
    d = data(torch)
    x = leaf(d.x)
    out = torch.softmax(d.w @ x, 0)
    return torch.autograd.grad(out, x, d.batch, is_grads_batched=True)


@autograd_grad_with_batched_grads.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(jax.vjp(lambda x: jax.nn.softmax(d.w @ x), d.x)[1])(d.batch)


@torch_fails("requires_grad_() inside vmap")
def autograd_grad_inside_vmap(torch):
    d = data(torch)

    def f(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(torch.tanh(d.w @ x).sum(), x)[0]

    return torch.func.vmap(f)(d.batch)


@autograd_grad_inside_vmap.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(jax.grad(lambda x: jnp.tanh(d.w @ x).sum()))(d.batch)


@torch_fails("inside vmap nothing requires grad")
def autograd_grad_of_a_captured_leaf_inside_vmap(torch):
    d = data(torch)
    w = leaf(d.w)
    return torch.func.vmap(lambda x: torch.autograd.grad(torch.tanh(w @ x).sum(), w)[0])(d.batch)


@autograd_grad_of_a_captured_leaf_inside_vmap.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(lambda x: jax.grad(lambda w: jnp.tanh(w @ x).sum())(d.w))(d.batch)


@row
def vmap_of_cotangents_of_a_vmapped_function(torch):
    d, func = data(torch), torch.func
    out, pull = func.vjp(func.vmap(lambda x: torch.sin(d.w @ x)), d.batch)
    cotangents = torch.stack([d.batch, out, d.batch * out])
    return func.vmap(pull)(cotangents), func.vmap(pull, in_dims=2, out_dims=-1)(cotangents.permute(1, 2, 0))


@vmap_of_cotangents_of_a_vmapped_function.jax
def _(jax, jnp):
    d = data(jnp)
    out, pull = jax.vjp(jax.vmap(lambda x: jnp.sin(d.w @ x)), d.batch)
    (rows,) = jax.vmap(pull)(jnp.stack([d.batch, out, d.batch * out]))
    return (rows,), (jnp.moveaxis(rows, 0, -1),)


@row
def vjp_function_under_grad_of_its_cotangent(torch):
    d, func = data(torch), torch.func
    _, pull = func.vjp(lambda x: torch.exp(d.w @ x), d.x)
    return func.grad(lambda v: (pull(v)[0] ** 2).sum())(d.v), func.jacrev(lambda v: pull(v)[0])(d.v)


@vjp_function_under_grad_of_its_cotangent.jax
def _(jax, jnp):
    d = data(jnp)
    _, pull = jax.vjp(lambda x: jnp.exp(d.w @ x), d.x)
    return jax.grad(lambda v: jnp.sum(pull(v)[0] ** 2))(d.v), jax.jacrev(lambda v: pull(v)[0])(d.v)


@row
def vjp_function_with_a_cotangent_that_requires_grad(torch):
    d = data(torch)
    x, v = leaf(d.x), leaf(d.v)
    _, pull = torch.func.vjp(lambda y: torch.exp(d.w @ y), x)
    return torch.autograd.grad((pull(v)[0] ** 2).sum(), (x, v))


@vjp_function_with_a_cotangent_that_requires_grad.jax
def _(jax, jnp):
    d = data(jnp)

    def f(x, v):
        return jnp.sum(jax.vjp(lambda y: jnp.exp(d.w @ y), x)[1](v)[0] ** 2)

    return jax.grad(f, argnums=(0, 1))(d.x, d.v)


@row
def vjp_closed_over_by_grad(torch):
    d, func = data(torch), torch.func

    def f(w):
        out, pull = func.vjp(lambda x: torch.tanh(w @ x), d.x)
        return (pull(out)[0] * pull(d.v)[0]).sum()  # the closure twice

    return func.grad(f)(d.w)


@vjp_closed_over_by_grad.jax
def _(jax, jnp):
    d = data(jnp)

    def f(w):
        out, pull = jax.vjp(lambda x: jnp.tanh(w @ x), d.x)
        return jnp.sum(pull(out)[0] * pull(d.v)[0])

    return jax.grad(f)(d.w)


@row
def linear_maps_transposed_agree(torch):
    d, func = data(torch), torch.func

    def f(x):
        return torch.softmax(d.w @ x, 0) * x

    pushed = func.vmap(lambda v: func.jvp(f, (d.x,), (v,))[1])(d.w)
    pulled = func.vmap(lambda v: func.vjp(f, d.x)[1](v)[0])(d.w)
    return pushed @ d.w.T - (pulled @ d.w.T).T


@linear_maps_transposed_agree.jax
def _(jax, jnp):
    return jnp.zeros((3, 3))
