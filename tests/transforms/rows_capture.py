"""Tensors captured from outside: per-sample gradients of weights, leaves that require grad."""

from __future__ import annotations

from tests.transforms.composition_row import data, leaf, row

# --- per-sample gradients --------------------------------------------------------------------------------


def torch_loss(torch, w, x, target):
    return (torch.tanh(w @ x).sum() - target) ** 2


def jax_loss(jnp, w, x, target):
    return (jnp.tanh(w @ x).sum() - target) ** 2


@row
def per_sample_gradients(torch):
    d = data(torch)
    per_sample = torch.func.grad(lambda w, x, t: torch_loss(torch, w, x, t))
    return torch.func.vmap(per_sample, in_dims=(None, 0, 0))(d.w, d.batch, d.targets)


@per_sample_gradients.jax
def _(jax, jnp):
    d = data(jnp)
    per_sample = jax.grad(lambda w, x, t: jax_loss(jnp, w, x, t))
    return jax.vmap(per_sample, in_axes=(None, 0, 0))(d.w, d.batch, d.targets)


@row
def per_sample_gradients_of_both_arguments(torch):
    d = data(torch)
    per_sample = torch.func.grad_and_value(lambda w, x, t: torch_loss(torch, w, x, t), argnums=(0, 1))
    return torch.func.vmap(per_sample, in_dims=(None, -1, 0))(d.w, d.batch.T, d.targets)


@per_sample_gradients_of_both_arguments.jax
def _(jax, jnp):
    d = data(jnp)
    per_sample = jax.value_and_grad(lambda w, x, t: jax_loss(jnp, w, x, t), argnums=(0, 1))
    value, gradients = jax.vmap(per_sample, in_axes=(None, 0, 0))(d.w, d.batch, d.targets)
    return gradients, value


@row
def per_sample_gradients_with_closure_weights(torch):
    d, func = data(torch), torch.func
    return func.vmap(lambda x, t: func.grad(lambda w: torch_loss(torch, w, x, t))(d.w))(d.batch, d.targets)


@per_sample_gradients_with_closure_weights.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(lambda x, t: jax.grad(lambda w: jax_loss(jnp, w, x, t))(d.w))(d.batch, d.targets)


@row
def per_sample_gradients_of_a_tree(torch):
    d, func = data(torch), torch.func

    def loss(p, x, t):
        hidden = torch.tanh(p["first"]["w"] @ x + p["first"]["b"])
        return (torch.dot(p["second"], hidden) - t) ** 2

    p = {"first": {"w": d.w, "b": d.b}, "second": d.y}
    return func.vmap(func.grad(loss), in_dims=(None, 0, 0))(p, d.batch, d.targets)


@per_sample_gradients_of_a_tree.jax
def _(jax, jnp):
    d = data(jnp)

    def loss(p, x, t):
        return (p["second"] @ jnp.tanh(p["first"]["w"] @ x + p["first"]["b"]) - t) ** 2

    p = {"first": {"w": d.w, "b": d.b}, "second": d.y}
    return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(p, d.batch, d.targets)


@row
def derivative_of_per_sample_gradients(torch):
    d, func = data(torch), torch.func

    def per_sample(w):
        gradient = func.grad(lambda u, x, t: torch_loss(torch, u, x, t))
        return func.vmap(gradient, in_dims=(None, 0, 0))(w, d.batch, d.targets)

    return func.jvp(per_sample, (d.w,), (d.w.T,))[1], func.grad(lambda w: (per_sample(w) ** 2).sum())(d.w)


@derivative_of_per_sample_gradients.jax
def _(jax, jnp):
    d = data(jnp)

    def per_sample(w):
        gradient = jax.grad(lambda u, x, t: jax_loss(jnp, u, x, t))
        return jax.vmap(gradient, in_axes=(None, 0, 0))(w, d.batch, d.targets)

    return jax.jvp(per_sample, (d.w,), (d.w.T,))[1], jax.grad(lambda w: jnp.sum(per_sample(w) ** 2))(d.w)


@row
def jacobian_of_per_sample_gradients(torch):
    d, func = data(torch), torch.func
    gradient = func.grad(lambda w, x: torch.tanh(x @ w).sum() * (w**2).sum())
    per_sample = func.vmap(gradient, in_dims=(None, 0))
    return func.jacrev(per_sample)(d.y, d.batch), func.jacfwd(per_sample, argnums=1)(d.y, d.batch)


@jacobian_of_per_sample_gradients.jax
def _(jax, jnp):
    d = data(jnp)
    gradient = jax.grad(lambda w, x: jnp.tanh(x @ w) * jnp.sum(w**2))
    per_sample = jax.vmap(gradient, in_axes=(None, 0))
    return jax.jacrev(per_sample)(d.y, d.batch), jax.jacfwd(per_sample, argnums=1)(d.y, d.batch)


@row
def backward_through_per_sample_gradients(torch):
    d, func = data(torch), torch.func
    w = leaf(d.w)
    gradient = func.grad(lambda u, x, t: torch_loss(torch, u * w, x, t))  # w both argument and captured
    per_sample = func.vmap(gradient, in_dims=(None, 0, 0))(w, d.batch, d.targets)
    (per_sample**2).sum().backward()
    return per_sample, w.grad


@backward_through_per_sample_gradients.jax
def _(jax, jnp):
    d = data(jnp)

    def per_sample(w):
        gradient = jax.grad(lambda u, x, t: jax_loss(jnp, u * w, x, t))
        return jax.vmap(gradient, in_axes=(None, 0, 0))(w, d.batch, d.targets)

    return per_sample(d.w), jax.grad(lambda w: jnp.sum(per_sample(w) ** 2))(d.w)


@row
def gradient_penalty(torch):
    d, func = data(torch), torch.func

    def penalty(p):
        slope = func.vmap(func.grad(lambda x: torch.tanh(p["w"] @ x + p["b"]).sum()))(d.batch)
        return ((torch.sqrt((slope**2).sum(-1)) - 1) ** 2).mean()

    return func.grad(penalty)({"w": d.w, "b": d.b})


@gradient_penalty.jax
def _(jax, jnp):
    d = data(jnp)

    def penalty(p):
        slope = jax.vmap(jax.grad(lambda x: jnp.tanh(p["w"] @ x + p["b"]).sum()))(d.batch)
        return jnp.mean((jnp.sqrt((slope**2).sum(-1)) - 1) ** 2)

    return jax.grad(penalty)({"w": d.w, "b": d.b})


# --- leaves that require grad, captured ------------------------------------------------------------------


@row
def leaf_captured_in_jvp_in_vmap(torch):
    d, func = data(torch), torch.func
    w = leaf(d.w)
    out = func.vmap(lambda x: func.jvp(lambda y: torch.tanh(w @ y), (x,), (d.v,))[1])(d.batch)
    out.sum().backward()
    return out, w.grad


@leaf_captured_in_jvp_in_vmap.jax
def _(jax, jnp):
    d = data(jnp)

    def f(w):
        return jax.vmap(lambda x: jax.jvp(lambda y: jnp.tanh(w @ y), (x,), (d.v,))[1])(d.batch)

    return f(d.w), jax.grad(lambda w: jnp.sum(f(w)))(d.w)


@row
def different_leaf_at_every_level(torch):
    d, func = data(torch), torch.func
    a, b, c = leaf(d.w), leaf(d.b), leaf(d.scales)

    def inner(x, s):
        return (b * func.jvp(lambda y: torch.sin(a @ y) * s, (x,), (b * x,))[1]).sum()

    def middle(x):
        return func.vmap(inner, in_dims=(None, 0))(x, c) @ c

    return torch.autograd.grad((func.grad(middle)(d.x) ** 2).sum(), (a, b, c))


@different_leaf_at_every_level.jax
def _(jax, jnp):
    d = data(jnp)

    def f(a, b, c):
        def inner(x, s):
            return jnp.sum(b * jax.jvp(lambda y: jnp.sin(a @ y) * s, (x,), (b * x,))[1])

        return jnp.sum(jax.grad(lambda x: jax.vmap(inner, (None, 0))(x, c) @ c)(d.x) ** 2)

    return jax.grad(f, argnums=(0, 1, 2))(d.w, d.b, d.scales)


@row
def leaf_argument_of_every_transform(torch):
    d, func = data(torch), torch.func
    x = leaf(d.x)

    def f(y):
        return (torch.exp(y) * torch.sin(y)).cumsum(0)

    outputs = (
        func.grad(lambda y: f(y).sum())(x),
        func.vjp(f, x)[1](d.v)[0],
        func.jvp(f, (x,), (d.v,))[1],
        func.jacrev(f)(x) @ d.v,
        func.jacfwd(f)(x) @ d.v,
        func.hessian(lambda y: f(y).sum())(x) @ d.v,
        func.vmap(lambda s: f(x * s))(d.scales).sum(0),
    )
    return [torch.autograd.grad(out, x, d.y)[0] for out in outputs]


@leaf_argument_of_every_transform.jax
def _(jax, jnp):
    d = data(jnp)

    def f(y):
        return jnp.cumsum(jnp.exp(y) * jnp.sin(y))

    programs = (
        jax.grad(lambda y: f(y).sum()),
        lambda x: jax.vjp(f, x)[1](d.v)[0],
        lambda x: jax.jvp(f, (x,), (d.v,))[1],
        lambda x: jax.jacrev(f)(x) @ d.v,
        lambda x: jax.jacfwd(f)(x) @ d.v,
        lambda x: jax.hessian(lambda y: f(y).sum())(x) @ d.v,
        lambda x: jax.vmap(lambda s: f(x * s))(d.scales).sum(0),
    )
    return [jax.vjp(program, d.x)[1](d.y)[0] for program in programs]


@row
def double_backward_through_func_grad(torch):
    d = data(torch)
    w = leaf(d.w)
    inner = torch.func.grad(lambda x: torch.logsumexp(w @ x, 0))(d.x)
    (first,) = torch.autograd.grad((inner**2).sum(), w, create_graph=True)
    return first, torch.autograd.grad((first * d.w).sum(), w)[0]


@double_backward_through_func_grad.jax
def _(jax, jnp):
    d = data(jnp)
    first = jax.grad(lambda w: jnp.sum(jax.grad(lambda x: jax.nn.logsumexp(w @ x))(d.x) ** 2))
    return first(d.w), jax.grad(lambda w: jnp.sum(first(w) * d.w))(d.w)


@row
def nonleaf_captured_in_vmap_of_grad(torch):
    d, func = data(torch), torch.func
    s = leaf(d.s)
    w = d.w * torch.exp(s)  # a graph that starts outside
    out = func.vmap(func.grad(lambda x: torch.sin(w @ x).sum()))(d.batch)
    out.sum().backward()
    return out, s.grad


@nonleaf_captured_in_vmap_of_grad.jax
def _(jax, jnp):
    d = data(jnp)

    def f(s):
        return jax.vmap(jax.grad(lambda x: jnp.sin(d.w * jnp.exp(s) @ x).sum()))(d.batch)

    return f(d.s), jax.grad(lambda s: jnp.sum(f(s)))(d.s)


@row
def only_the_captured_leaf_depends(torch):
    d = data(torch)
    w = leaf(d.x)
    out = torch.func.grad(lambda y: (y * torch.sin(w)).sum())(d.y)  # does not depend on y
    return out, torch.autograd.grad(out.sum(), w)[0]


@only_the_captured_leaf_depends.jax
def _(jax, jnp):
    d = data(jnp)
    return jnp.sin(d.x), jnp.cos(d.x)
