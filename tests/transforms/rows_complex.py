"""Complex numbers: holomorphic functions, real functions of complex variables, complex inside of real ones.

The conventions differ: for a real f the gradient of torch is the conjugate of JAX's, and the vjp of torch
multiplies by the conjugate transpose of the Jacobian where JAX's multiplies by the transpose.
"""

from __future__ import annotations

from tests.transforms.composition_row import data, leaf, row


def torch_grad(jax, jnp, f, argnums=0):
    """torch's gradient out of JAX's (real leaves are their own conjugates)."""
    return lambda *args: jax.tree.map(jnp.conj, jax.grad(f, argnums)(*args))


def torch_vjp(jax, jnp, f, *args):
    """torch's vjp out of JAX's."""
    out, pull = jax.vjp(f, *args)
    return out, lambda v: jax.tree.map(jnp.conj, pull(jnp.conj(v)))


def torch_potential(torch, w, z):
    """A real function of complex variables that is neither holomorphic nor quadratic."""
    out = torch.exp(w @ z) / (2 + z * z.conj())
    return torch.log(1 + out.abs() ** 2).sum() + (out * torch.sin(z)).imag.sum() + (z**3).real.sum()


def jax_potential(jnp, w, z):
    out = jnp.exp(w @ z) / (2 + z * jnp.conj(z))
    return jnp.log(1 + jnp.abs(out) ** 2).sum() + (out * jnp.sin(z)).imag.sum() + (z**3).real.sum()


# --- real functions of complex variables -----------------------------------------------------------------


@row
def complex_grad(torch):
    d = data(torch)
    return torch.func.grad_and_value(lambda w, z: torch_potential(torch, w, z), argnums=(0, 1))(d.zw, d.z)


@complex_grad.jax
def _(jax, jnp):
    d = data(jnp)
    value, gradients = jax.value_and_grad(lambda w, z: jax_potential(jnp, w, z), argnums=(0, 1))(d.zw, d.z)
    return jax.tree.map(jnp.conj, gradients), value


@row
def complex_grad_of_abs_squared_is_twice_the_point(torch):
    d = data(torch)
    return (
        torch.func.grad(lambda z: (z.real**2 + z.imag**2).sum())(d.z),
        torch.func.grad(lambda z: (z * z.conj()).real.sum())(d.z),
        torch.func.grad(lambda z: (torch.abs(z) ** 2).sum())(d.z),
    )


@complex_grad_of_abs_squared_is_twice_the_point.jax
def _(jax, jnp):
    z = data(jnp).z
    return 2 * z, 2 * z, 2 * z


@row
def complex_leaf_backward(torch):
    d = data(torch)
    w, z = leaf(d.zw), leaf(d.z)
    torch_potential(torch, w, z).backward()
    return w.grad, z.grad


@complex_leaf_backward.jax
def _(jax, jnp):
    d = data(jnp)
    return torch_grad(jax, jnp, lambda w, z: jax_potential(jnp, w, z), (0, 1))(d.zw, d.z)


@row
def complex_vmap_of_grad(torch):
    d, func = data(torch), torch.func
    per_sample = func.grad(lambda w, z: torch_potential(torch, w, z), argnums=(0, 1))
    return func.vmap(per_sample, in_dims=(None, 1), out_dims=(-1, 0))(d.zw, d.zbatch.T)


@complex_vmap_of_grad.jax
def _(jax, jnp):
    d = data(jnp)
    per_sample = torch_grad(jax, jnp, lambda w, z: jax_potential(jnp, w, z), (0, 1))
    return jax.vmap(per_sample, in_axes=(None, 0), out_axes=(-1, 0))(d.zw, d.zbatch)


@row
def complex_grad_of_grad(torch):
    d, grad = data(torch), torch.func.grad
    inner = grad(lambda z: torch_potential(torch, d.zw, z))
    return grad(lambda z: (inner(z) * d.u.conj()).real.sum())(d.z)


@complex_grad_of_grad.jax
def _(jax, jnp):
    d = data(jnp)
    inner = torch_grad(jax, jnp, lambda z: jax_potential(jnp, d.zw, z))
    return torch_grad(jax, jnp, lambda z: (inner(z) * jnp.conj(d.u)).real.sum())(d.z)


@row
def complex_jvp_of_grad(torch):
    d, func = data(torch), torch.func
    return func.jvp(func.grad(lambda z: torch_potential(torch, d.zw, z)), (d.z,), (d.u,))


@complex_jvp_of_grad.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.jvp(torch_grad(jax, jnp, lambda z: jax_potential(jnp, d.zw, z)), (d.z,), (d.u,))


@row
def complex_grad_of_jvp(torch):
    d, func = data(torch), torch.func
    return func.grad(lambda z: func.jvp(lambda y: torch_potential(torch, d.zw, y), (z,), (d.u,))[1])(d.z)


@complex_grad_of_jvp.jax
def _(jax, jnp):
    d = data(jnp)  # by symmetry of second derivatives
    return jax.jvp(torch_grad(jax, jnp, lambda z: jax_potential(jnp, d.zw, z)), (d.z,), (d.u,))[1]


@row
def complex_grad_of_grad_of_grad(torch):
    d, grad = data(torch), torch.func.grad

    def down(f):
        return lambda z: (grad(f)(z) * d.u.conj()).real.sum()

    return grad(down(down(lambda z: torch_potential(torch, d.zw, z))))(d.z)


@complex_grad_of_grad_of_grad.jax
def _(jax, jnp):
    d = data(jnp)

    def down(f):
        return lambda z: jax.jvp(f, (z,), (d.u,))[1]

    return torch_grad(jax, jnp, down(down(lambda z: jax_potential(jnp, d.zw, z))))(d.z)


@row
def complex_leaf_captured_in_grad_of_vmap_of_jvp(torch):
    d, func = data(torch), torch.func
    w = leaf(d.zw)

    def total(z):
        potential = lambda y: torch_potential(torch, w, y)  # noqa: E731
        return func.vmap(lambda v: func.jvp(potential, (z,), (v * z,))[1])(d.zbatch).sum()

    out = func.grad(total)(d.z)
    (out * d.u).real.sum().backward()
    return out, w.grad


@complex_leaf_captured_in_grad_of_vmap_of_jvp.jax
def _(jax, jnp):
    d = data(jnp)

    def f(w):
        def total(z):
            return jax.vmap(lambda v: jax.jvp(lambda y: jax_potential(jnp, w, y), (z,), (v * z,))[1])(d.zbatch).sum()

        return torch_grad(jax, jnp, total)(d.z)

    return f(d.zw), torch_grad(jax, jnp, lambda w: (f(w) * d.u).real.sum())(d.zw)


@row
def complex_jacobian_by_parts(torch):
    d, func = data(torch), torch.func

    def f(parts):  # R^(3x2) -> R^3, complex in between
        z = parts[:, 0] + 1j * parts[:, 1]
        return (torch.tanh(d.zw @ z) * z).abs()

    parts = torch.stack([d.z.real, d.z.imag], dim=-1)
    return func.jacrev(f)(parts), func.jacfwd(f)(parts), func.hessian(lambda p: f(p).sum())(parts)


@complex_jacobian_by_parts.jax
def _(jax, jnp):
    d = data(jnp)

    def f(parts):
        z = parts[:, 0] + 1j * parts[:, 1]
        return jnp.abs(jnp.tanh(d.zw @ z) * z)

    parts = jnp.stack([d.z.real, d.z.imag], -1)
    return jax.jacrev(f)(parts), jax.jacfwd(f)(parts), jax.hessian(lambda p: f(p).sum())(parts)


@row
def complex_inside_of_a_real_gradient(torch):
    d, func = data(torch), torch.func

    def f(x):
        return (torch.exp(1j * x) * d.u).real.sum() * (d.z * x).abs().sum()

    return func.grad(f)(d.x), func.hessian(f)(d.x), func.vmap(func.grad(f))(d.batch)


@complex_inside_of_a_real_gradient.jax
def _(jax, jnp):
    d = data(jnp)

    def f(x):
        return (jnp.exp(1j * x) * d.u).real.sum() * jnp.abs(d.z * x).sum()

    return jax.grad(f)(d.x), jax.hessian(f)(d.x), jax.vmap(jax.grad(f))(d.batch)


@row
def complex_and_real_argnums_together(torch):
    d, func = data(torch), torch.func

    def f(x, z, s):
        return (x * z * torch.sqrt(z + 3) * s).real.sum() + (z.imag * x).sum() ** 2

    per_sample = func.grad(f, argnums=(0, 1, 2))
    return per_sample(d.x, d.z, d.s), func.vmap(per_sample, in_dims=(None, None, 0))(d.x, d.z, d.scales)


@complex_and_real_argnums_together.jax
def _(jax, jnp):
    d = data(jnp)

    def f(x, z, s):
        return (x * z * jnp.sqrt(z + 3) * s).real.sum() + (z.imag * x).sum() ** 2

    per_sample = torch_grad(jax, jnp, f, (0, 1, 2))
    return per_sample(d.x, d.z, d.s), jax.vmap(per_sample, in_axes=(None, None, 0))(d.x, d.z, d.scales)


# --- holomorphic functions -------------------------------------------------------------------------------


def torch_holomorphic(torch, w, z):
    return torch.exp(w @ z) * torch.log(z + 3) / (z + 2j) + torch.sqrt(z + 4) * torch.cos(z) ** 2 - z.cumsum(0)


def jax_holomorphic(jnp, w, z):
    return jnp.exp(w @ z) * jnp.log(z + 3) / (z + 2j) + jnp.sqrt(z + 4) * jnp.cos(z) ** 2 - jnp.cumsum(z)


@row
def holomorphic_jvp(torch):
    d = data(torch)
    return torch.func.jvp(lambda z: torch_holomorphic(torch, d.zw, z), (d.z,), (d.u,))


@holomorphic_jvp.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.jvp(lambda z: jax_holomorphic(jnp, d.zw, z), (d.z,), (d.u,))


@row
def holomorphic_vjp(torch):
    d = data(torch)
    out, pull = torch.func.vjp(lambda w, z: torch_holomorphic(torch, w, z), d.zw, d.z)
    return out, pull(d.u)


@holomorphic_vjp.jax
def _(jax, jnp):
    d = data(jnp)
    out, pull = torch_vjp(jax, jnp, lambda w, z: jax_holomorphic(jnp, w, z), d.zw, d.z)
    return out, pull(d.u)


@row
def holomorphic_jacobians_by_vmap(torch):
    d, func = data(torch), torch.func
    eye = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=torch.complex128)

    def f(z):
        return torch_holomorphic(torch, d.zw, z)

    forward = func.vmap(lambda v: func.jvp(f, (d.z,), (v,))[1], out_dims=-1)(eye)
    return forward, func.vmap(func.vjp(f, d.z)[1])(eye)[0].conj()


@holomorphic_jacobians_by_vmap.jax
def _(jax, jnp):
    d = data(jnp)
    jacobian = jax.jacfwd(lambda z: jax_holomorphic(jnp, d.zw, z), holomorphic=True)(d.z)
    return jacobian, jacobian


@row
def holomorphic_second_derivative(torch):
    d, func = data(torch), torch.func

    def slope(z):
        return func.jvp(lambda y: torch_holomorphic(torch, d.zw, y), (z,), (d.u,))[1]

    return func.jvp(slope, (d.z,), (d.u,))[1], func.vjp(slope, d.z)[1](d.u)[0]


@holomorphic_second_derivative.jax
def _(jax, jnp):
    d = data(jnp)

    def slope(z):
        return jax.jvp(lambda y: jax_holomorphic(jnp, d.zw, y), (z,), (d.u,))[1]

    return jax.jvp(slope, (d.z,), (d.u,))[1], torch_vjp(jax, jnp, slope, d.z)[1](d.u)[0]


@row
def holomorphic_vjp_of_vjp(torch):
    d, func = data(torch), torch.func

    def pulled(z, v):
        return func.vjp(lambda y: torch_holomorphic(torch, d.zw, y), z)[1](v)[0]

    return func.vjp(pulled, d.z, d.u)[1](d.z)


@holomorphic_vjp_of_vjp.jax
def _(jax, jnp):
    d = data(jnp)

    def pulled(z, v):
        return torch_vjp(jax, jnp, lambda y: jax_holomorphic(jnp, d.zw, y), z)[1](v)[0]

    return torch_vjp(jax, jnp, pulled, d.z, d.u)[1](d.z)


@row
def holomorphic_vmap_of_jvp_of_vjp(torch):
    d, func = data(torch), torch.func

    def pulled(z):
        return func.vjp(lambda y: torch_holomorphic(torch, d.zw, y), z)[1](d.u)[0]

    return func.vmap(lambda z, v: func.jvp(pulled, (z,), (v,))[1], in_dims=(0, None))(d.zbatch, d.z)


@holomorphic_vmap_of_jvp_of_vjp.jax
def _(jax, jnp):
    d = data(jnp)

    def pulled(z):
        return torch_vjp(jax, jnp, lambda y: jax_holomorphic(jnp, d.zw, y), z)[1](d.u)[0]

    return jax.vmap(lambda z: jax.jvp(pulled, (z,), (d.z,))[1])(d.zbatch)


@row
def holomorphic_create_graph(torch):
    d = data(torch)
    z = leaf(d.z)
    out = torch_holomorphic(torch, d.zw, z)
    (first,) = torch.autograd.grad(out, z, d.u, create_graph=True)
    return first, torch.autograd.grad(first, z, d.z)[0]


@holomorphic_create_graph.jax
def _(jax, jnp):
    d = data(jnp)

    def first(z):
        return torch_vjp(jax, jnp, lambda y: jax_holomorphic(jnp, d.zw, y), z)[1](d.u)[0]

    return first(d.z), torch_vjp(jax, jnp, first, d.z)[1](d.z)[0]


@row
def complex_dual_around_grad(torch):
    d, fwd = data(torch), torch.autograd.forward_ad
    with fwd.dual_level():
        w = fwd.make_dual(d.zw, d.zw.T.clone())
        out = torch.func.grad(lambda z: torch_potential(torch, w, z))(d.z)
        return tuple(fwd.unpack_dual(out))


@complex_dual_around_grad.jax
def _(jax, jnp):
    d = data(jnp)

    def f(w):
        return torch_grad(jax, jnp, lambda z: jax_potential(jnp, w, z))(d.z)

    return jax.jvp(f, (d.zw,), (d.zw.T,))


@row
def complex_views_written_in_place(torch):
    d, func = data(torch), torch.func

    def f(z):
        out = z.clone()
        out[1:] *= z[0].conj()
        out[0] = z[1] * z[2]
        return (out.real * out.imag).sum()

    return func.grad(f)(d.z), func.vmap(func.grad(f))(d.zbatch)


@complex_views_written_in_place.jax
def _(jax, jnp):
    d = data(jnp)

    def f(z):
        tail = z[1:] * jnp.conj(z[0])
        out = jnp.concatenate([z[1:2] * z[2], tail])
        return jnp.sum(out.real * out.imag)

    return torch_grad(jax, jnp, f)(d.z), jax.vmap(torch_grad(jax, jnp, f))(d.zbatch)
