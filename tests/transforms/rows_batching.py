"""vmap: in_dims and out_dims of every sort, nested; trees in and out; ops whose dims move under a batch."""

from __future__ import annotations

from tests.transforms.composition_row import data, leaf, row, torch_fails

# --- in_dims, out_dims -----------------------------------------------------------------------------------


@row
def pairwise_by_two_vmaps(torch):
    d, vmap = data(torch), torch.func.vmap
    pairwise = vmap(vmap(lambda x, y: ((x - y) ** 2).sum(), in_dims=(None, 0)), in_dims=(0, None))
    return pairwise(d.batch, d.w)


@pairwise_by_two_vmaps.jax
def _(jax, jnp):
    d = data(jnp)
    return jnp.sum((d.batch[:, None] - d.w[None]) ** 2, -1)


@row
def nested_vmap_with_negative_dims(torch):
    d, vmap = data(torch), torch.func.vmap
    inner = vmap(lambda x, y: torch.sin(x) * y.sum(), in_dims=(-1, 0), out_dims=-1)
    return vmap(inner, in_dims=(-1, -1), out_dims=1)(torch.outer(d.x, d.y).unsqueeze(-1).expand(3, 3, 4), d.batch.T)


@nested_vmap_with_negative_dims.jax
def _(jax, jnp):
    d = data(jnp)
    outer = jnp.broadcast_to(jnp.outer(d.x, d.y)[..., None], (3, 3, 4))
    inner = jax.vmap(lambda x, y: jnp.sin(x) * jnp.sum(y), in_axes=(-1, 0), out_axes=-1)
    return jax.vmap(inner, in_axes=(-1, -1), out_axes=1)(outer, d.batch.T)


@row
def three_vmaps_place_three_axes(torch):
    d, vmap = data(torch), torch.func.vmap

    def f(a, b, c):
        return torch.stack([a * b, b * c, a + c])

    over_a = vmap(f, in_dims=(0, None, None), out_dims=0)
    over_b = vmap(over_a, in_dims=(None, 0, None), out_dims=-1)
    over_c = vmap(over_b, in_dims=(None, None, 0), out_dims=-2)
    return over_c(d.x, d.scales, d.v[:2])


@three_vmaps_place_three_axes.jax
def _(jax, jnp):
    d = data(jnp)
    a, b, c = jnp.meshgrid(d.x, d.scales, d.v[:2], indexing="ij")
    stacked = jnp.stack([a * b, b * c, a + c])  # (out, a, b, c) -> (a, out, c, b)
    return jnp.transpose(stacked, (1, 0, 3, 2))


@row
def outputs_on_different_dims(torch):
    d = data(torch)

    def f(x, w):
        return w @ x, torch.outer(x, x), x.sum()

    return torch.func.vmap(f, in_dims=(0, None), out_dims=(1, -1, 0))(d.batch, d.w)


@outputs_on_different_dims.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(lambda x: (d.w @ x, jnp.outer(x, x), x.sum()), out_axes=(1, 2, 0))(d.batch)


@row
def unbatched_outputs_are_expanded(torch):
    d = data(torch)
    return torch.func.vmap(lambda x: (x * 2, d.v, d.w), out_dims=(1, 0, 0))(d.batch)


@unbatched_outputs_are_expanded.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(lambda x: (x * 2, d.v, d.w), out_axes=(1, 0, 0))(d.batch)


@torch_fails("an unbatched output goes to dim 0 or nowhere: expand() raises")
def unbatched_outputs_on_other_dims(torch):
    d = data(torch)
    return torch.func.vmap(lambda x: (d.v, d.w), out_dims=(1, -1))(d.batch)


@unbatched_outputs_on_other_dims.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(lambda x: (d.v, d.w), out_axes=(1, -1))(d.batch)


@row
def trees_with_none_leaves(torch):
    d = data(torch)

    def f(p, pair, s):
        return {"out": torch.tanh(p["w"] @ pair[0] + p["b"]) * s, "parts": (pair[1] * s, [p["b"].sum()])}

    dims = ({"w": None, "b": 1}, (0, None), 0)
    return torch.func.vmap(f, in_dims=dims)({"w": d.w, "b": d.batch.T}, (d.batch, d.v), d.scales)


@trees_with_none_leaves.jax
def _(jax, jnp):
    d = data(jnp)

    def f(p, pair, s):
        return {"out": jnp.tanh(p["w"] @ pair[0] + p["b"]) * s, "parts": (pair[1] * s, [p["b"].sum()])}

    dims = ({"w": None, "b": 1}, (0, None), 0)
    return jax.vmap(f, in_axes=dims)({"w": d.w, "b": d.batch.T}, (d.batch, d.v), d.scales)


@row
def tree_of_out_dims(torch):
    d = data(torch)
    return torch.func.vmap(lambda x: (d.w * x, [x, x.sum()]), out_dims=(2, [1, 0]))(d.batch)


@tree_of_out_dims.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(lambda x: (d.w * x, [x, x.sum()]), out_axes=(2, [1, 0]))(d.batch)


@row
def none_for_a_python_number(torch):
    d = data(torch)
    return torch.func.vmap(lambda x, n: x**n, in_dims=(0, None))(d.batch, 3)


@none_for_a_python_number.jax
def _(jax, jnp):
    return data(jnp).batch ** 3


@row
def vmap_in_chunks(torch):
    d, func = data(torch), torch.func
    return func.vmap(func.grad(lambda x: torch.logsumexp(d.w @ x, 0)), chunk_size=3)(d.batch)


@vmap_in_chunks.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(jax.grad(lambda x: jax.nn.logsumexp(d.w @ x)))(d.batch)


@row
def broadcasting_of_batched_tensors_of_different_rank(torch):
    d = data(torch)

    def f(s, x, m):
        return s * x + m * x - torch.maximum(m, s)  # logical ranks 0, 1, 2

    return torch.func.vmap(f, in_dims=(0, 1, -1))(d.scales, d.batch.T, d.w.unsqueeze(-1) * d.scales)


@broadcasting_of_batched_tensors_of_different_rank.jax
def _(jax, jnp):
    d = data(jnp)

    def f(s, x, m):
        return s * x + m * x - jnp.maximum(m, s)

    return jax.vmap(f, in_axes=(0, 0, -1))(d.scales, d.batch, d.w[..., None] * d.scales)


@row
def products_of_batched_and_unbatched(torch):
    d, vmap = data(torch), torch.func.vmap
    mats = d.w.unsqueeze(0) * d.scales.reshape(4, 1, 1)
    return (
        vmap(lambda x: d.w @ x)(d.batch),
        vmap(lambda x: x @ d.w)(d.batch),
        vmap(lambda m: m @ d.x)(mats),
        vmap(lambda m: d.w @ m @ m)(mats),
        vmap(lambda m, x: m @ x)(mats, d.batch),
        vmap(lambda x: torch.dot(x, d.v))(d.batch),
        vmap(lambda x, y: torch.outer(x, y), in_dims=(0, None))(d.batch, d.y),
        vmap(vmap(lambda x, y: torch.dot(x, y), in_dims=(0, None)), in_dims=(None, 0))(d.batch, d.w),
    )


@products_of_batched_and_unbatched.jax
def _(jax, jnp):
    d = data(jnp)
    mats = d.w[None] * d.scales[:, None, None]
    return (
        d.batch @ d.w.T,
        d.batch @ d.w,
        mats @ d.x,
        d.w @ mats @ mats,
        jnp.sum(mats * d.batch[:, None], -1),
        d.batch @ d.v,
        d.batch[:, :, None] * d.y,
        d.w @ d.batch.T,
    )


# --- gradients through the dims of ops -------------------------------------------------------------------


def torch_shapes(torch, x, w):
    """Ops that name dims: a wrong dim under a batch shows here."""
    m = w * x
    m = m.transpose(0, 1).reshape(9).view(3, 3).permute(1, 0)
    m = torch.cat([m, x.unsqueeze(0).expand(2, 3)], dim=0)
    m = torch.stack([m, m.cumsum(-1)], dim=-1)
    m = torch.softmax(m, dim=1) + torch.logsumexp(m, dim=0, keepdim=True) * m.amax(dim=-1, keepdim=True)
    return (m.squeeze(0).mean(-2) ** 2).sum(dim=-1)


def jax_shapes(jax, jnp, x, w):
    m = jnp.transpose((w * x).T.reshape(9).reshape(3, 3))
    m = jnp.concatenate([m, jnp.stack([x, x])], 0)
    m = jnp.stack([m, jnp.cumsum(m, -1)], -1)
    m = jax.nn.softmax(m, 1) + jax.nn.logsumexp(m, 0, keepdims=True) * jnp.max(m, -1, keepdims=True)
    return jnp.sum(jnp.mean(m, -2) ** 2, -1)


@row
def dims_of_ops_under_vmap(torch):
    d, func = data(torch), torch.func
    return func.vmap(lambda x: torch_shapes(torch, x, d.w))(d.batch)


@dims_of_ops_under_vmap.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.vmap(lambda x: jax_shapes(jax, jnp, x, d.w))(d.batch)


@row
def dims_of_ops_under_vmap_of_jacobians(torch):
    d, func = data(torch), torch.func

    def f(x, w):
        return torch_shapes(torch, x, w)

    reverse = func.vmap(func.jacrev(f, argnums=(0, 1)), in_dims=(0, None))(d.batch, d.w)
    return reverse, func.vmap(func.jacfwd(f), in_dims=(0, None), out_dims=-1)(d.batch, d.w)


@dims_of_ops_under_vmap_of_jacobians.jax
def _(jax, jnp):
    d = data(jnp)

    def f(x, w):
        return jax_shapes(jax, jnp, x, w)

    reverse = jax.vmap(jax.jacrev(f, argnums=(0, 1)), in_axes=(0, None))(d.batch, d.w)
    return reverse, jax.vmap(jax.jacfwd(f), in_axes=(0, None), out_axes=-1)(d.batch, d.w)


@row
def dims_of_ops_under_two_vmaps_and_hessian(torch):
    d, func = data(torch), torch.func

    def f(x, s):
        return torch_shapes(torch, x * s, d.w).sum()

    rows = func.vmap(func.vmap(func.hessian(f), in_dims=(0, None)), in_dims=(None, 0), out_dims=1)
    return rows(d.batch, d.scales[:2])


@dims_of_ops_under_two_vmaps_and_hessian.jax
def _(jax, jnp):
    d = data(jnp)
    h = jax.hessian(lambda x, s: jnp.sum(jax_shapes(jax, jnp, x * s, d.w)))
    return jax.vmap(jax.vmap(h, in_axes=(0, None)), in_axes=(None, 0), out_axes=1)(d.batch, d.scales[:2])


@row
def sort_under_vmap_of_jacobian(torch):
    d, func = data(torch), torch.func
    weights = torch.arange(1, 4, dtype=torch.float64)

    def f(x):
        values, order = torch.sort(torch.sin(d.w @ x), dim=-1, descending=True)
        return values * weights * x[order]

    return func.vmap(f)(d.batch), func.vmap(func.jacrev(f))(d.batch), func.vmap(func.jacfwd(f))(d.batch)


@sort_under_vmap_of_jacobian.jax
def _(jax, jnp):
    d = data(jnp)

    def f(x):
        out = jnp.sin(d.w @ x)
        order = jnp.argsort(-out)
        return out[order] * jnp.arange(1.0, 4.0) * x[order]

    return jax.vmap(f)(d.batch), jax.vmap(jax.jacrev(f))(d.batch), jax.vmap(jax.jacfwd(f))(d.batch)


@row
def max_under_vmap_of_grad(torch):
    d, func = data(torch), torch.func

    def f(w, x):
        m = w * x
        return m.max() * m.max(dim=0).values.sum() + torch.amax(m, dim=(0, 1)) + m.max(dim=-1)[0][0]

    return func.vmap(func.grad(f, argnums=(0, 1)), in_dims=(None, 0))(d.w, d.batch)


@max_under_vmap_of_grad.jax
def _(jax, jnp):
    d = data(jnp)

    def f(w, x):
        m = w * x
        return m.max() * m.max(0).sum() + m.max() + m.max(-1)[0]

    return jax.vmap(jax.grad(f, argnums=(0, 1)), in_axes=(None, 0))(d.w, d.batch)


@row
def where_and_relu_under_vmap_of_grad(torch):
    d, func = data(torch), torch.func

    def f(x, y):
        safe = torch.where(x > 0, x, torch.ones_like(x))
        picked = torch.where(x > 0, torch.log(safe) * y, torch.relu(y) - torch.abs(x))
        return (picked * torch.minimum(x, y)).sum()

    return func.vmap(func.grad(f, argnums=(0, 1)), in_dims=(0, None))(d.batch, d.y)


@where_and_relu_under_vmap_of_grad.jax
def _(jax, jnp):
    d = data(jnp)

    def f(x, y):
        safe = jnp.where(x > 0, x, 1.0)
        picked = jnp.where(x > 0, jnp.log(safe) * y, jax.nn.relu(y) - jnp.abs(x))
        return jnp.sum(picked * jnp.minimum(x, y))

    return jax.vmap(jax.grad(f, argnums=(0, 1)), in_axes=(0, None))(d.batch, d.y)


# --- indexing --------------------------------------------------------------------------------------------


@row
def batched_index_into_an_unbatched_table(torch):
    d, func = data(torch), torch.func
    rows, columns = torch.tensor([0, 2, 2, 1]), torch.tensor([1, 1, 0, 2])

    def total(table):
        return (func.vmap(lambda i, j: table[i] * table[i, j])(rows, columns) ** 2).sum()

    return func.grad(total)(d.w)


@batched_index_into_an_unbatched_table.jax
def _(jax, jnp):
    d = data(jnp)
    rows, columns = jnp.array([0, 2, 2, 1]), jnp.array([1, 1, 0, 2])
    return jax.grad(lambda w: jnp.sum((w[rows] * w[rows, columns][:, None]) ** 2))(d.w)


@row
def batched_index_into_a_batched_table(torch):
    d, func = data(torch), torch.func
    index = torch.tensor([[0, 0], [2, 1], [1, 2], [2, 2]])
    return func.vmap(func.grad(lambda x, i: (x[i] ** 3).sum() + x[1:].sum() * x[-1]))(d.batch, index)


@batched_index_into_a_batched_table.jax
def _(jax, jnp):
    d = data(jnp)
    index = jnp.array([[0, 0], [2, 1], [1, 2], [2, 2]])
    return jax.vmap(jax.grad(lambda x, i: jnp.sum(x[i] ** 3) + x[1:].sum() * x[-1]))(d.batch, index)


@row
def gather_under_vmap_of_jvp(torch):
    d, func = data(torch), torch.func
    index = torch.tensor([[0, 1, 1], [2, 0, 2]])

    def f(w):
        return torch.gather(torch.exp(w), 0, index) * torch.gather(w, 1, index)

    mats = d.w.unsqueeze(0) * d.scales.reshape(4, 1, 1)
    return func.vmap(lambda m: func.jvp(f, (m,), (d.w,)))(mats), func.vmap(func.jacrev(f))(mats).sum(0)


@gather_under_vmap_of_jvp.jax
def _(jax, jnp):
    d = data(jnp)
    index = jnp.array([[0, 1, 1], [2, 0, 2]])

    def f(w):
        first = jnp.take_along_axis(jnp.exp(w), index, axis=0)
        return first * jnp.take_along_axis(w[:2], index, axis=1)

    mats = d.w[None] * d.scales[:, None, None]
    return jax.vmap(lambda m: jax.jvp(f, (m,), (d.w,)))(mats), jax.vmap(jax.jacrev(f))(mats).sum(0)


@row
def batched_gather_from_a_captured_leaf(torch):
    d, func = data(torch), torch.func
    w = leaf(d.x)
    index = torch.tensor([[0, 2], [1, 1], [2, 0]])
    out = func.vmap(lambda i: func.grad(lambda y: (y * torch.gather(w, 0, i)).sum() ** 2)(w[:2]))(index)
    return out, torch.autograd.grad(out.sum(), w)[0]


@batched_gather_from_a_captured_leaf.jax
def _(jax, jnp):
    d = data(jnp)
    index = jnp.array([[0, 2], [1, 1], [2, 0]])

    def f(w):
        return jax.vmap(lambda i: jax.grad(lambda y: jnp.sum(y * w[i]) ** 2)(w[:2]))(index)

    return f(d.x), jax.grad(lambda w: jnp.sum(f(w)))(d.x)


# --- whole programs --------------------------------------------------------------------------------------


@row
def python_branch_on_unbatched_data_only(torch):
    d, func = data(torch), torch.func

    def f(x):
        return x * 2 if d.s.item() > 0.5 else x  # allowed: d.s is not batched

    return func.vmap(func.grad(lambda x: f(x).sum() * d.s.item()))(d.batch)


@python_branch_on_unbatched_data_only.jax
def _(jax, jnp):
    d = data(jnp)
    return jnp.full((4, 3), 2 * d.s)


@row
def attention_over_batch_and_heads(torch):
    d, func = data(torch), torch.func

    def attend(q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / 3**0.5, dim=-1) @ v

    def loss(w):
        queries = (d.batch @ w).unsqueeze(0) * d.scales[:2].reshape(2, 1, 1)  # heads, tokens, features
        return (func.vmap(attend, in_dims=(0, None, None))(queries, d.batch, d.batch @ w) ** 2).sum()

    return func.grad(loss)(d.w), func.jvp(func.grad(loss), (d.w,), (d.w.T,))[1]


@attention_over_batch_and_heads.jax
def _(jax, jnp):
    d = data(jnp)

    def loss(w):
        q = (d.batch @ w)[None] * d.scales[:2, None, None]
        scores = jax.nn.softmax(q @ d.batch.T / 3**0.5, -1)
        return jnp.sum((scores @ (d.batch @ w)) ** 2)

    return jax.grad(loss)(d.w), jax.jvp(jax.grad(loss), (d.w,), (d.w.T,))[1]
