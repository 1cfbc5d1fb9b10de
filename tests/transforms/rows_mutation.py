"""In-place writes and views inside transforms; no_grad and detach inside and outside of them."""

from __future__ import annotations

from tests.transforms.composition_row import add, data, leaf, row, torch_fails

# --- one mutating function under every transform ---------------------------------------------------------


def add_under_every_transform(name, torch_function, jax_function, torch_fails=None):
    """Rows for a function R^3 -> R^3 of (x, w), `w` captured: the same function under eight transforms."""
    uses = {
        "grad": (
            lambda t, f, d: t.func.grad(lambda x: (f(x, d.w) ** 2).sum())(d.x),
            lambda j, f, d: j.grad(lambda x: (f(x, d.w) ** 2).sum())(d.x),
        ),
        "jvp": (
            lambda t, f, d: t.func.jvp(lambda x: f(x, d.w), (d.x,), (d.v,)),
            lambda j, f, d: j.jvp(lambda x: f(x, d.w), (d.x,), (d.v,)),
        ),
        "vmap": (
            lambda t, f, d: t.func.vmap(f, in_dims=(1, None), out_dims=-1)(d.batch.T, d.w),
            lambda j, f, d: j.vmap(f, in_axes=(0, None), out_axes=-1)(d.batch, d.w),
        ),
        "vmap_of_grad": (
            lambda t, f, d: t.func.vmap(t.func.grad(lambda x: (f(x, d.w) ** 2).sum()))(d.batch),
            lambda j, f, d: j.vmap(j.grad(lambda x: (f(x, d.w) ** 2).sum()))(d.batch),
        ),
        "grad_of_vmap": (
            lambda t, f, d: t.func.grad(lambda w: (t.func.vmap(f, (0, None))(d.batch, w) ** 2).sum())(d.w),
            lambda j, f, d: j.grad(lambda w: (j.vmap(f, (0, None))(d.batch, w) ** 2).sum())(d.w),
        ),
        "jacrev": (
            lambda t, f, d: t.func.jacrev(f, argnums=(0, 1))(d.x, d.w),
            lambda j, f, d: j.jacrev(f, argnums=(0, 1))(d.x, d.w),
        ),
        "jacfwd": (
            lambda t, f, d: t.func.jacfwd(f, argnums=(0, 1))(d.x, d.w),
            lambda j, f, d: j.jacfwd(f, argnums=(0, 1))(d.x, d.w),
        ),
        "hessian": (
            lambda t, f, d: t.func.hessian(lambda x: (f(x, d.w) ** 2).sum())(d.x),
            lambda j, f, d: j.hessian(lambda x: (f(x, d.w) ** 2).sum())(d.x),
        ),
    }
    for transform, (torch_use, jax_use) in uses.items():

        def program(torch, use=torch_use):
            return use(torch, lambda x, w: torch_function(torch, x, w), data(torch))

        def reference(jax, jnp, use=jax_use):
            return use(jax, lambda x, w: jax_function(jnp, x, w), data(jnp))

        add(f"{name}_under_{transform}", program, (torch_fails or {}).get(transform, "")).jax(reference)


def write_an_element(torch, x, w):
    out = x.clone()
    out[0] = x[1] * 2 + (w @ x)[2]
    return out * x


add_under_every_transform(
    "write_an_element",
    write_an_element,
    lambda jnp, x, w: x.at[0].set(x[1] * 2 + (w @ x)[2]) * x,
)


def arithmetic_in_place(torch, x, w):
    out = w @ x
    out.mul_(2).add_(x * 0.5)
    out.sub_(w[0] * x).div_(x + 3)
    out += x[0]
    return out


add_under_every_transform(
    "arithmetic_in_place",
    arithmetic_in_place,
    lambda jnp, x, w: (2 * (w @ x) + 0.5 * x - w[0] * x) / (x + 3) + x[0],
)


def write_through_views(torch, x, w):
    base = x.unsqueeze(0) * w
    column = base.transpose(0, 1)[1]
    column.mul_(x[2])
    base.view(9)[::4] = x * x  # the diagonal
    base[1:].reshape(2, 3)[:, 0].add_(x[1:])
    return base.sum(0) * column


def write_through_views_jax(jnp, x, w):
    base = x[None] * w
    base = base.at[:, 1].multiply(x[2])
    base = base.at[jnp.arange(3), jnp.arange(3)].set(x * x)
    base = base.at[1:, 0].add(x[1:])
    return base.sum(0) * base[:, 1]


add_under_every_transform("write_through_views", write_through_views, write_through_views_jax)


def write_by_index_arrays(torch, x, w):
    out = (w * x).clone()
    out[torch.tensor([2, 0]), torch.tensor([1, 1])] = x[:2] * x[2]
    out[:, torch.tensor([0, 2])] *= 3
    return out[torch.tensor([1, 1, 0])].sum(0) + out[2]


def write_by_index_arrays_jax(jnp, x, w):
    out = (w * x).at[jnp.array([2, 0]), jnp.array([1, 1])].set(x[:2] * x[2])
    out = out.at[:, jnp.array([0, 2])].multiply(3)
    return out[jnp.array([1, 1, 0])].sum(0) + out[2]


add_under_every_transform("write_by_index_arrays", write_by_index_arrays, write_by_index_arrays_jax)


def fill_a_fresh_buffer(torch, x, w):
    out = torch.zeros(3, dtype=torch.float64)  # knows nothing of the levels it will be written from
    for i in range(3):
        out[i] = torch.sin(w[i] @ x) * x[i] if i == 0 else out[i - 1].clone() * x[i]
    return out


def fill_a_fresh_buffer_jax(jnp, x, w):
    first = jnp.sin(w[0] @ x) * x[0]
    return jnp.stack([first, first * x[1], first * x[1] * x[2]])


NOT_BATCHED = "vmap: a batched value is written into an unbatched tensor"
add_under_every_transform(
    "fill_a_fresh_buffer",
    fill_a_fresh_buffer,
    fill_a_fresh_buffer_jax,
    {name: NOT_BATCHED for name in ("vmap", "vmap_of_grad", "grad_of_vmap")},
)


# --- views -----------------------------------------------------------------------------------------------


@row
def view_sees_a_later_write_to_its_base(torch):
    d = data(torch)

    def f(x):
        base = x * 2
        view = base[:2]
        base.mul_(x)
        base[1] = x[0]
        return (view * view).sum()

    return torch.func.grad(f)(d.x), torch.func.vmap(torch.func.grad(f))(d.batch)


@view_sees_a_later_write_to_its_base.jax
def _(jax, jnp):
    d = data(jnp)
    gradient = jax.grad(lambda x: (2 * x[0] ** 2) ** 2 + x[0] ** 2)
    return gradient(d.x), jax.vmap(gradient)(d.batch)


@row
def copy_into_a_view_of_a_view(torch):
    d, func = data(torch), torch.func

    def f(x, y):
        base = torch.outer(x, y).clone()
        base[1:].transpose(0, 1)[:2].copy_(torch.outer(y[:2], x[:2]) * x[2])
        return base

    def total(x, y):
        return (f(x, y) ** 3).sum()

    return func.grad(total, argnums=(0, 1))(d.x, d.y), func.jvp(f, (d.x, d.y), (d.v, d.x))


@copy_into_a_view_of_a_view.jax
def _(jax, jnp):
    d = data(jnp)

    def f(x, y):
        return jnp.outer(x, y).at[1:, :2].set(jnp.outer(x[:2], y[:2]) * x[2])

    return jax.grad(lambda x, y: (f(x, y) ** 3).sum(), (0, 1))(d.x, d.y), jax.jvp(f, (d.x, d.y), (d.v, d.x))


@row
def expanded_view_then_write_to_its_clone(torch):
    d, func = data(torch), torch.func

    def f(x):
        grid = x.unsqueeze(-1).expand(3, 2).clone()
        grid[:, 0].mul_(x)
        grid[0].zero_()
        return grid.permute(1, 0).reshape(-1)

    return func.jacrev(f)(d.x), func.vmap(func.jacfwd(f))(d.batch)


@expanded_view_then_write_to_its_clone.jax
def _(jax, jnp):
    d = data(jnp)
    jacobian = jax.jacfwd(lambda x: jnp.concatenate([(x * x).at[0].set(0.0), x.at[0].set(0.0)]))
    return jacobian(d.x), jax.vmap(jacobian)(d.batch)


@row
def overwritten_value_gets_no_gradient(torch):
    d, func = data(torch), torch.func

    def f(x):
        out = torch.exp(x) * 1
        out[:] = d.v
        out[1:] *= x[0]
        return out.sum()

    return func.grad(f)(d.x), func.jvp(f, (d.x,), (d.v,))


@overwritten_value_gets_no_gradient.jax
def _(jax, jnp):
    v, x = data(jnp).v, data(jnp).x
    slope = v[1] + v[2]
    return jnp.array([slope, 0, 0]), (v[0] + slope * x[0], slope * v[0])


@row
def in_place_with_a_captured_leaf(torch):
    d, func = data(torch), torch.func
    w = leaf(d.y)

    def f(x):
        out = x.clone()
        out.mul_(w)
        out[0] = w[1] * x[2]
        return (out**2).sum()

    out = func.vmap(func.grad(f))(d.batch)
    out.sum().backward()
    return out, w.grad


@in_place_with_a_captured_leaf.jax
def _(jax, jnp):
    d = data(jnp)

    def f(w):
        gradient = jax.grad(lambda x: ((x * w).at[0].set(w[1] * x[2]) ** 2).sum())
        return jax.vmap(gradient)(d.batch)

    return f(d.y), jax.grad(lambda w: f(w).sum())(d.y)


@row
def clone_of_a_captured_leaf_written_from_inside(torch):
    d, func = data(torch), torch.func
    w = leaf(d.y)

    def f(x):
        out = w * x.sum() + torch.zeros_like(x)
        out[2] = x[0] * w[2]
        return torch.sin(out).sum()

    out = func.grad(f)(d.x)
    return out, torch.autograd.grad(out.sum(), w)[0]


@clone_of_a_captured_leaf_written_from_inside.jax
def _(jax, jnp):
    d = data(jnp)

    def f(w):
        return jax.grad(lambda x: jnp.sin((w * x.sum()).at[2].set(x[0] * w[2])).sum())(d.x)

    return f(d.y), jax.grad(lambda w: f(w).sum())(d.y)


@torch_fails(NOT_BATCHED)
def batched_write_into_an_unbatched_clone(torch):
    d, func = data(torch), torch.func

    def f(x, s):
        out = d.y.clone()
        out[1] = s
        out.mul_(x)
        return out

    return func.vmap(f)(d.batch, d.scales)


@batched_write_into_an_unbatched_clone.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(lambda x, s: d.y.at[1].set(s) * x)(d.batch, d.scales)


@torch_fails(NOT_BATCHED)
def inner_batch_written_into_an_outer_batch(torch):
    d, func = data(torch), torch.func

    def outer(x):
        return func.vmap(lambda s: x.clone().mul_(s))(d.scales)

    return func.vmap(outer)(d.batch)


@inner_batch_written_into_an_outer_batch.jax
def _(jax, jnp):
    d = data(jnp)
    return d.batch[:, None] * d.scales[:, None]


@row
def write_seen_by_the_caller_outside_of_the_levels(torch):
    d = data(torch)
    x = leaf(d.x)
    buffer = x * 1
    view = buffer[1:]
    view.mul_(x[:2])
    inner = torch.func.grad(lambda y: (buffer * y**2).sum())(d.y)
    return inner, torch.autograd.grad(inner.sum(), x)[0]


@write_seen_by_the_caller_outside_of_the_levels.jax
def _(jax, jnp):
    d = data(jnp)

    def f(x):
        return 2 * d.y * x.at[1:].multiply(x[:2])

    return f(d.x), jax.grad(lambda x: f(x).sum())(d.x)


# --- no_grad, detach -------------------------------------------------------------------------------------


@row
def detach_inside_grad(torch):
    d, grad = data(torch), torch.func.grad

    def f(x):
        return (x * torch.sin(x.detach()) * x).sum()

    return grad(f)(d.x), grad(lambda x: (grad(f)(x) ** 2).sum())(d.x)


@detach_inside_grad.jax
def _(jax, jnp):
    x = data(jnp).x
    return 2 * x * jnp.sin(x), 8 * x * jnp.sin(x) ** 2


@row
def detach_inside_vmap_of_jvp(torch):
    d, func = data(torch), torch.func
    return func.vmap(lambda x: func.jvp(lambda y: y * torch.exp(y.detach()), (x,), (d.v,)))(d.batch)


@detach_inside_vmap_of_jvp.jax
def _(jax, jnp):
    d = data(jnp)
    return d.batch * jnp.exp(d.batch), d.v * jnp.exp(d.batch)


@row
def detach_of_the_outer_variable_inside_the_inner_level(torch):
    d, grad = data(torch), torch.func.grad
    return grad(lambda x: (x * grad(lambda y: (y**2 * x.detach() * x).sum())(x)).sum())(d.x)


@detach_of_the_outer_variable_inside_the_inner_level.jax
def _(jax, jnp):
    x = data(jnp).x
    return 6 * x**3  # inner 2 y c x, so x * (2 x c x) with c constant: 6 c x^2


@row
def no_grad_inside_grad(torch):
    d, grad = data(torch), torch.func.grad

    def f(x):
        with torch.no_grad():
            constant = torch.exp(x)
        return (x**2 * constant).sum()

    return grad(f)(d.x), grad(lambda x: (grad(f)(x) ** 2).sum())(d.x), torch.func.vmap(grad(f))(d.batch)


@no_grad_inside_grad.jax
def _(jax, jnp):
    d = data(jnp)
    return 2 * d.x * jnp.exp(d.x), 8 * d.x * jnp.exp(2 * d.x), 2 * d.batch * jnp.exp(d.batch)


@row
def no_grad_around_an_inner_grad(torch):
    d, grad = data(torch), torch.func.grad

    def f(x):
        with torch.no_grad():
            inner = grad(lambda y: (torch.sin(y) * y).sum())(x)  # computed, but constant for the outer grad
        return (x * inner).sum()

    return grad(f)(d.x)


@no_grad_around_an_inner_grad.jax
def _(jax, jnp):
    x = data(jnp).x
    return jnp.cos(x) * x + jnp.sin(x)


@row
def no_grad_outside_of_grad(torch):
    d = data(torch)
    w = leaf(d.y)
    with torch.no_grad():
        out = torch.func.vmap(torch.func.grad(lambda x: (torch.sin(x) * w).sum()))(d.batch)
    return out, out.requires_grad


@no_grad_outside_of_grad.jax
def _(jax, jnp):
    d = data(jnp)
    return jnp.cos(d.batch) * d.y, False


@row
def enable_grad_inside_no_grad_inside_grad(torch):
    d = data(torch)

    def f(x):
        with torch.no_grad():
            constant = torch.sin(x)
            with torch.enable_grad():
                live = x**2
        return (constant * live).sum()

    return torch.func.grad(f)(d.x)


@enable_grad_inside_no_grad_inside_grad.jax
def _(jax, jnp):
    x = data(jnp).x
    return 2 * x * jnp.sin(x)


@row
def no_grad_leaves_tangents_alone(torch):
    d = data(torch)

    def f(x):
        with torch.no_grad():
            return torch.exp(x) * x

    return torch.func.jvp(f, (d.x,), (d.v,))


@no_grad_leaves_tangents_alone.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.jvp(lambda x: jnp.exp(x) * x, (d.x,), (d.v,))


@row
def straight_through(torch):
    d, func = data(torch), torch.func

    def f(x):
        hard = torch.where(x > 0, torch.ones_like(x), -torch.ones_like(x))
        soft = torch.tanh(x)
        return ((hard - soft).detach() + soft) * d.y

    return func.vmap(f)(d.batch), func.vmap(func.grad(lambda x: f(x).sum()))(d.batch)


@straight_through.jax
def _(jax, jnp):
    d = data(jnp)
    return jnp.sign(d.batch) * d.y, (1 - jnp.tanh(d.batch) ** 2) * d.y


@row
def in_place_under_no_grad_inside_grad(torch):
    d = data(torch)

    def f(x):
        out = torch.sin(x)
        with torch.no_grad():
            statistics = out.clone()
            statistics.mul_(2).add_(1)
        return (out * statistics).sum()

    return torch.func.grad(f)(d.x)


@in_place_under_no_grad_inside_grad.jax
def _(jax, jnp):
    x = data(jnp).x
    return jnp.cos(x) * (2 * jnp.sin(x) + 1)
