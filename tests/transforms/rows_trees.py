"""Trees, aux, keywords, argnums and chunks: the calling conventions of the transforms."""

from __future__ import annotations

from tests.transforms.composition_row import data, row


@row
def jacobians_of_trees(torch):
    d, func = data(torch), torch.func

    def f(p, x):
        return {"a": torch.tanh(p["w"] @ x), "b": [p["s"] * x, (p["s"] ** 2,)]}

    p = {"w": d.w, "s": d.s}
    return func.jacrev(f)(p, d.x), func.jacfwd(f, argnums=(0, 1))(p, d.x)


@jacobians_of_trees.jax
def _(jax, jnp):
    d = data(jnp)

    def f(p, x):
        return {"a": jnp.tanh(p["w"] @ x), "b": [p["s"] * x, (p["s"] ** 2,)]}

    p = {"w": d.w, "s": d.s}
    return jax.jacrev(f)(p, d.x), jax.jacfwd(f, argnums=(0, 1))(p, d.x)


@row
def vjp_and_jvp_of_trees(torch):
    d, func = data(torch), torch.func

    def f(p, x):
        return {"a": torch.tanh(p["w"] @ x), "b": [p["s"] * x, (p["s"] ** 2,)]}

    p, dp = {"w": d.w, "s": d.s}, {"w": d.w.T, "s": d.two}
    out, pull = func.vjp(f, p, d.x)
    pushed = func.jvp(f, (p, d.x), (dp, d.v))[1]
    return pull(pushed), pushed, func.vmap(lambda v: pull({"a": v, "b": [out["a"], (d.s,)]}))(d.batch)


@vjp_and_jvp_of_trees.jax
def _(jax, jnp):
    d = data(jnp)

    def f(p, x):
        return {"a": jnp.tanh(p["w"] @ x), "b": [p["s"] * x, (p["s"] ** 2,)]}

    p, dp = {"w": d.w, "s": d.s}, {"w": d.w.T, "s": d.two}
    out, pull = jax.vjp(f, p, d.x)
    pushed = jax.jvp(f, (p, d.x), (dp, d.v))[1]
    return pull(pushed), pushed, jax.vmap(lambda v: pull({"a": v, "b": [out["a"], (d.s,)]}))(d.batch)


@row
def keyword_arguments_and_negative_argnums(torch):
    d, func = data(torch), torch.func

    def f(x, y, *, power, w):
        return ((w @ x) ** power * y).sum()

    gradient = func.grad(f, argnums=-1)(d.x, d.y, power=3, w=d.w)
    per_sample = func.vmap(func.grad(f, argnums=(1, 0)), in_dims=(0, None))
    return gradient, per_sample(d.batch, d.y, power=2, w=d.w)  # keywords are not mapped


@keyword_arguments_and_negative_argnums.jax
def _(jax, jnp):
    d = data(jnp)
    gradient = jax.grad(lambda x, y: jnp.sum((d.w @ x) ** 2 * y), argnums=(1, 0))
    return (d.w @ d.x) ** 3, jax.vmap(gradient, in_axes=(0, None))(d.batch, d.y)


@row
def jacrev_in_chunks(torch):
    d, func = data(torch), torch.func
    return func.jacrev(lambda x: torch.sin(d.w @ x) * x, chunk_size=2)(d.x)


@jacrev_in_chunks.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.jacfwd(lambda x: jnp.sin(d.w @ x) * x)(d.x)


@row
def aux_of_every_transform(torch):
    d, func = data(torch), torch.func

    def f(x):
        out = torch.sin(d.w @ x)
        return out, {"aux": out * x}

    def loss(x):
        out, aux = f(x)
        return out.sum(), (aux["aux"], [x * 2])

    gradient, (value, aux) = func.grad_and_value(loss, has_aux=True)(d.x)
    out, pull, vjp_aux = func.vjp(f, d.x, has_aux=True)
    return {
        "grad": func.vmap(func.grad(loss, has_aux=True))(d.batch),
        "grad_and_value": (gradient, value, aux),
        "vjp": (out, pull(d.v), vjp_aux),
        "jvp": func.jvp(f, (d.x,), (d.v,), has_aux=True),
        "jacrev": func.jacrev(f, has_aux=True)(d.x),
        "jacfwd": func.vmap(func.jacfwd(f, has_aux=True))(d.batch),
    }


@aux_of_every_transform.jax
def _(jax, jnp):
    d = data(jnp)

    def out(x):
        return jnp.sin(d.w @ x)

    def aux(x):
        return {"aux": out(x) * x}

    def loss(x):
        return jnp.sum(out(x))

    def loss_aux(x):
        return aux(x)["aux"], [x * 2]

    primal, tangent = jax.jvp(out, (d.x,), (d.v,))
    return {
        "grad": jax.vmap(lambda x: (jax.grad(loss)(x), loss_aux(x)))(d.batch),
        "grad_and_value": (jax.grad(loss)(d.x), loss(d.x), loss_aux(d.x)),
        "vjp": (primal, jax.vjp(out, d.x)[1](d.v), aux(d.x)),
        "jvp": (primal, tangent, aux(d.x)),
        "jacrev": (jax.jacrev(out)(d.x), aux(d.x)),
        "jacfwd": jax.vmap(lambda x: (jax.jacfwd(out)(x), aux(x)))(d.batch),
    }
