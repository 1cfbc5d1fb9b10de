"""torch.autograd.Function under transforms: setup_context, backward, jvp, vmap and generate_vmap_rule."""

from __future__ import annotations

from tests.transforms.composition_row import add, data, leaf, row

# The Function below is sin(w @ x) * x with every rule right.  Rows named "_with_own_vmap" write their vmap
# rule, the others have it generated.


def sine_product(torch, own_vmap):
    class SineProduct(torch.autograd.Function):
        generate_vmap_rule = not own_vmap

        @staticmethod
        def forward(w, x):
            return torch.sin(w @ x) * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            w, x = ctx.saved_tensors
            inner = torch.cos(w @ x) * x * g
            return torch.outer(inner, x), inner @ w + torch.sin(w @ x) * g

        @staticmethod
        def jvp(ctx, dw, dx):
            w, x = ctx.saved_tensors
            return torch.cos(w @ x) * (dw @ x + w @ dx) * x + torch.sin(w @ x) * dx

    if not own_vmap:
        return SineProduct

    class WithVmap(SineProduct):
        @staticmethod
        def vmap(info, in_dims, w, x):
            parts = []
            for i in range(info.batch_size):
                one = w if in_dims[0] is None else w.transpose(0, in_dims[0])[i]
                other = x if in_dims[1] is None else x.transpose(0, in_dims[1])[i]
                parts.append(WithVmap.apply(one, other))
            return torch.stack(parts), 0

    return WithVmap


USES = {
    "grad": (
        lambda t, f, d: t.func.grad(lambda w, x: (f(w, x) ** 2).sum(), argnums=(0, 1))(d.w, d.x),
        lambda j, f, d: j.grad(lambda w, x: (f(w, x) ** 2).sum(), argnums=(0, 1))(d.w, d.x),
    ),
    "jvp": (
        lambda t, f, d: t.func.jvp(f, (d.w, d.x), (d.w.T, d.v)),
        lambda j, f, d: j.jvp(f, (d.w, d.x), (d.w.T, d.v)),
    ),
    "vmap": (
        lambda t, f, d: t.func.vmap(f, in_dims=(None, 1))(d.w, d.batch.T),
        lambda j, f, d: j.vmap(f, in_axes=(None, 1))(d.w, d.batch.T),
    ),
    "vmap_of_grad": (
        lambda t, f, d: t.func.vmap(t.func.grad(lambda w, x: f(w, x).sum()), in_dims=(None, 0))(d.w, d.batch),
        lambda j, f, d: j.vmap(j.grad(lambda w, x: f(w, x).sum()), in_axes=(None, 0))(d.w, d.batch),
    ),
    "grad_of_vmap": (
        lambda t, f, d: t.func.grad(lambda w: (t.func.vmap(f, (None, 0))(w, d.batch) ** 2).sum())(d.w),
        lambda j, f, d: j.grad(lambda w: (j.vmap(f, (None, 0))(w, d.batch) ** 2).sum())(d.w),
    ),
    "jacrev": (
        lambda t, f, d: t.func.jacrev(f, argnums=(0, 1))(d.w, d.x),
        lambda j, f, d: j.jacrev(f, argnums=(0, 1))(d.w, d.x),
    ),
    "jvp_of_grad": (
        lambda t, f, d: t.func.jvp(t.func.grad(lambda x: f(d.w, x).sum()), (d.x,), (d.v,)),
        lambda j, f, d: j.jvp(j.grad(lambda x: f(d.w, x).sum()), (d.x,), (d.v,)),
    ),
    "grad_of_grad": (
        lambda t, f, d: t.func.grad(lambda x: (t.func.grad(lambda y: f(d.w, y).sum())(x) ** 2).sum())(d.x),
        lambda j, f, d: j.grad(lambda x: (j.grad(lambda y: f(d.w, y).sum())(x) ** 2).sum())(d.x),
    ),
    "vmap_of_jvp": (
        lambda t, f, d: t.func.vmap(lambda x: t.func.jvp(lambda y: f(d.w, y), (x,), (d.v,)))(d.batch),
        lambda j, f, d: j.vmap(lambda x: j.jvp(lambda y: f(d.w, y), (x,), (d.v,)))(d.batch),
    ),
    "jacfwd": (
        lambda t, f, d: t.func.jacfwd(lambda x: f(d.w, x))(d.x),
        lambda j, f, d: j.jacfwd(lambda x: f(d.w, x))(d.x),
    ),
    "hessian": (
        lambda t, f, d: t.func.hessian(lambda x: f(d.w, x).sum())(d.x),
        lambda j, f, d: j.hessian(lambda x: f(d.w, x).sum())(d.x),
    ),
}


def add_function_row(use, own_vmap):
    def program(torch):
        return USES[use][0](torch, sine_product(torch, own_vmap).apply, data(torch))

    def reference(jax, jnp):
        return USES[use][1](jax, lambda w, x: jnp.sin(w @ x) * x, data(jnp))

    add(f"function_under_{use}" + ("_with_own_vmap" if own_vmap else ""), program).jax(reference)


for name in USES:
    add_function_row(name, own_vmap=False)
    add_function_row(name, own_vmap=True)


# --- rules that are not the derivative, to see that they are the ones used --------------------------------


@row
def function_with_a_scaled_backward(torch):
    d, func = data(torch), torch.func

    class Scale(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, factor):
            return x.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    def f(x):
        return (torch.sin(Scale.apply(x, 10.0)) * x).sum()

    return func.grad(f)(d.x), func.vmap(func.grad(f))(d.batch)


@function_with_a_scaled_backward.jax
def _(jax, jnp):
    d = data(jnp)
    return tuple(10 * jnp.cos(x) * x + jnp.sin(x) for x in (d.x, d.batch))


@row
def function_with_two_outputs_and_an_integer_one(torch):
    d, func = data(torch), torch.func

    class SortPair(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            values, order = torch.sort(x)
            return values, values * 2, order

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output[2])
            ctx.mark_non_differentiable(output[2])

        @staticmethod
        def backward(ctx, g, g2, _):
            (order,) = ctx.saved_tensors
            _, inverse = torch.sort(order)
            return torch.gather(g + 2 * g2, 0, inverse)

    def f(x):
        values, doubled, order = SortPair.apply(x)
        return (values * d.y).sum() + (doubled * x[order]).sum()

    return func.grad(f)(d.x), func.vmap(func.grad(f))(d.batch)


@function_with_two_outputs_and_an_integer_one.jax
def _(jax, jnp):
    d = data(jnp)
    gradient = jax.grad(lambda x: jnp.sum(jnp.sort(x) * d.y) + 2 * jnp.sum(x * x))
    return gradient(d.x), jax.vmap(gradient)(d.batch)


@row
def function_captures_a_leaf_through_its_argument(torch):
    d, func = data(torch), torch.func
    apply, w = sine_product(torch, own_vmap=False).apply, leaf(d.w)
    out = func.vmap(func.grad(lambda x: apply(w, x).sum()))(d.batch)
    out.sum().backward()
    return out, w.grad


@function_captures_a_leaf_through_its_argument.jax
def _(jax, jnp):
    d = data(jnp)

    def f(w):
        return jax.vmap(jax.grad(lambda x: jnp.sum(jnp.sin(w @ x) * x)))(d.batch)

    return f(d.w), jax.grad(lambda w: f(w).sum())(d.w)


@row
def function_whose_backward_calls_another_function(torch):
    d, grad = data(torch), torch.func.grad

    class Cosine(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return torch.cos(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return -g * Sine.apply(ctx.saved_tensors[0])

    class Sine(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return torch.sin(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return g * Cosine.apply(ctx.saved_tensors[0])

    third = grad(grad(grad(Sine.apply)))
    return grad(Sine.apply)(d.s), grad(grad(Sine.apply))(d.s), third(d.s), torch.func.vmap(third)(d.scales)


@function_whose_backward_calls_another_function.jax
def _(jax, jnp):
    d = data(jnp)
    return jnp.cos(d.s), -jnp.sin(d.s), -jnp.cos(d.s), -jnp.cos(d.scales)
