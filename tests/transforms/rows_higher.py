"""Higher orders: Hessians and Hessian-vector products by every route, third order, derivatives of solvers."""

from __future__ import annotations

from functools import partial

from tests.transforms.composition_row import add, data, leaf, row

# --- Hessian-vector products -----------------------------------------------------------------------------


def torch_energy(torch, w):
    return lambda x: torch.logsumexp(torch.sin(w @ x) * x, 0) + torch.exp(x * 0.5).sum() * x[0]


def jax_energy(jax, jnp, w):
    return lambda x: jax.nn.logsumexp(jnp.sin(w @ x) * x) + jnp.exp(x * 0.5).sum() * x[0]


def hvp_program(route, torch_fails=""):
    def program(torch):
        d = data(torch)
        w = leaf(d.w)
        out = route(torch, torch_energy(torch, w), d.x, d.v)
        return out, torch.autograd.grad(out.sum(), w)[0]

    def reference(jax, jnp):
        d = data(jnp)

        def hvp(w):
            return jax.jvp(jax.grad(jax_energy(jax, jnp, w)), (d.x,), (d.v,))[1]

        return hvp(d.w), jax.grad(lambda w: jnp.sum(hvp(w)))(d.w)

    add(f"hvp_{route.__name__}", program, torch_fails).jax(reference)
    return route


@hvp_program
def forward_over_reverse(torch, f, x, v):
    return torch.func.jvp(torch.func.grad(f), (x,), (v,))[1]


@hvp_program
def reverse_over_forward(torch, f, x, v):
    return torch.func.grad(lambda y: torch.func.jvp(f, (y,), (v,))[1])(x)


@hvp_program
def reverse_over_reverse(torch, f, x, v):
    return torch.func.grad(lambda y: (torch.func.grad(f)(y) * v).sum())(x)


@hvp_program
def vjp_of_grad(torch, f, x, v):
    return torch.func.vjp(torch.func.grad(f), x)[1](v)[0]


@hvp_program
def hessian_times_vector(torch, f, x, v):
    return torch.func.hessian(f)(x) @ v


@hvp_program
def jacrev_of_jacfwd(torch, f, x, v):
    return v @ torch.func.jacrev(torch.func.jacfwd(f))(x)


@hvp_program
def jacrev_of_grad(torch, f, x, v):
    return torch.func.jacrev(torch.func.grad(f))(x) @ v


@hvp_program
def jacfwd_of_jacfwd(torch, f, x, v):
    return torch.func.jacfwd(torch.func.jacfwd(f))(x) @ v


@hvp_program
def double_backward(torch, f, x, v):
    y = leaf(x)
    (gradient,) = torch.autograd.grad(f(y), y, create_graph=True)
    return torch.autograd.grad(gradient, y, v, create_graph=True)[0]


@partial(hvp_program, torch_fails="a tangent formula of logsumexp writes over what backward saved")
def dual_over_func_grad(torch, f, x, v):
    fwd = torch.autograd.forward_ad
    with fwd.dual_level():
        return fwd.unpack_dual(torch.func.grad(f)(fwd.make_dual(x, v))).tangent


@partial(hvp_program, torch_fails="a tangent formula of logsumexp writes over what backward saved")
def dual_over_backward(torch, f, x, v):
    fwd, y = torch.autograd.forward_ad, leaf(x)
    with fwd.dual_level():
        dual = fwd.make_dual(y, v)
        (gradient,) = torch.autograd.grad(f(dual), dual, create_graph=True)
        return fwd.unpack_dual(gradient).tangent


@hvp_program
def backward_over_func_jvp(torch, f, x, v):
    y = leaf(x)
    return torch.autograd.grad(torch.func.jvp(f, (y,), (v,))[1], y, create_graph=True)[0]


# --- Hessians --------------------------------------------------------------------------------------------


@row
def hessian_of_a_tree(torch):
    d = data(torch)
    return torch.func.hessian(lambda p: torch.tanh(p["w"] @ p["x"]).sum() * p["x"][0])({"w": d.w, "x": d.x})


@hessian_of_a_tree.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.hessian(lambda p: jnp.tanh(p["w"] @ p["x"]).sum() * p["x"][0])({"w": d.w, "x": d.x})


@row
def hessian_with_two_argnums(torch):
    d = data(torch)
    return torch.func.hessian(lambda w, s, x: torch.sin(w * s).sum() * x.sum(), argnums=(0, 1))(d.w, d.s, d.x)


@hessian_with_two_argnums.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.hessian(lambda w, s, x: jnp.sin(w * s).sum() * x.sum(), argnums=(0, 1))(d.w, d.s, d.x)


@row
def hessian_of_a_vector_valued_function(torch):
    d = data(torch)
    return torch.func.hessian(lambda x: torch.sigmoid(d.w @ x) * x)(d.x)


@hessian_of_a_vector_valued_function.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.hessian(lambda x: jax.nn.sigmoid(d.w @ x) * x)(d.x)


@row
def per_sample_hessians_of_weights(torch):
    d, func = data(torch), torch.func
    per_sample = func.hessian(lambda v, x, t: (torch.tanh(torch.dot(v, x)) - t) ** 2)
    return func.vmap(per_sample, in_dims=(None, 0, 0), out_dims=-1)(d.v, d.batch, d.targets)


@per_sample_hessians_of_weights.jax
def _(jax, jnp):
    d = data(jnp)
    per_sample = jax.hessian(lambda v, x, t: (jnp.tanh(v @ x) - t) ** 2)
    return jax.vmap(per_sample, in_axes=(None, 0, 0), out_axes=-1)(d.v, d.batch, d.targets)


@row
def mixed_partials_in_both_orders(torch):
    d, func = data(torch), torch.func

    def f(x, w):
        return (torch.exp(w @ x) * x).sum()

    xw = func.jacfwd(func.grad(f, argnums=0), argnums=1)(d.x, d.w)
    wx = func.jacrev(func.grad(f, argnums=1), argnums=0)(d.x, d.w)
    return xw, wx, xw - wx.permute(2, 0, 1)


@mixed_partials_in_both_orders.jax
def _(jax, jnp):
    d = data(jnp)
    xw = jax.jacfwd(jax.grad(lambda x, w: jnp.sum(jnp.exp(w @ x) * x)), argnums=1)(d.x, d.w)
    return xw, jnp.transpose(xw, (1, 2, 0)), jnp.zeros((3, 3, 3))


@row
def gauss_newton_product(torch):
    d, func = data(torch), torch.func

    def f(w):
        return torch.tanh(d.batch @ w)

    def product(v):
        pushed = func.jvp(f, (d.x,), (v,))[1]
        return func.vjp(f, d.x)[1](pushed * (1 + d.targets**2))[0]

    return func.vmap(product)(d.w), func.jacrev(product)(d.v)


@gauss_newton_product.jax
def _(jax, jnp):
    d = data(jnp)
    j = jax.jacobian(lambda w: jnp.tanh(d.batch @ w))(d.x)
    gauss_newton = j.T @ jnp.diag(1 + d.targets**2) @ j
    return d.w @ gauss_newton, gauss_newton


@row
def laplacian_by_vmap_of_hvps(torch):
    d, func = data(torch), torch.func
    eye = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=torch.float64)

    def laplacian(x):
        gradient = func.grad(torch_energy(torch, d.w))
        return func.vmap(lambda e: torch.dot(func.jvp(gradient, (x,), (e,))[1], e))(eye).sum()

    return func.vmap(laplacian)(d.batch), func.vmap(func.grad(laplacian))(d.batch)


@laplacian_by_vmap_of_hvps.jax
def _(jax, jnp):
    d = data(jnp)

    def laplacian(x):
        return jnp.trace(jax.hessian(jax_energy(jax, jnp, d.w))(x))

    return jax.vmap(laplacian)(d.batch), jax.vmap(jax.grad(laplacian))(d.batch)


# --- third order and beyond ------------------------------------------------------------------------------


@row
def grad_of_grad_of_grad_scalar(torch):
    d, grad = data(torch), torch.func.grad

    def f(x):
        return torch.sin(x) * torch.exp(x * x)

    return [
        f(d.s),
        grad(f)(d.s),
        grad(grad(f))(d.s),
        grad(grad(grad(f)))(d.s),
        grad(grad(grad(grad(f))))(d.s),
    ]


@grad_of_grad_of_grad_scalar.jax
def _(jax, jnp):
    d = data(jnp)

    def f(x):
        return jnp.sin(x) * jnp.exp(x * x)

    orders = [f]
    for _ in range(4):
        orders.append(jax.jacfwd(orders[-1]))
    return [g(d.s) for g in orders]


@row
def taylor_coefficients_by_nested_jvp(torch):
    d = data(torch)
    one = torch.ones((), dtype=torch.float64)

    def derivative(f):
        return lambda t: torch.func.jvp(f, (t,), (one,))[1]

    f = lambda t: torch.tanh(d.w @ (d.x + t * d.v)).sum()  # noqa: E731
    zero, out = torch.zeros((), dtype=torch.float64), []
    for _ in range(5):
        out.append(f(zero))
        f = derivative(f)
    return torch.stack(out)


@taylor_coefficients_by_nested_jvp.jax
def _(jax, jnp):
    d = data(jnp)
    orders = [lambda t: jnp.tanh(d.w @ (d.x + t * d.v)).sum()]
    for _ in range(4):
        orders.append(jax.grad(orders[-1]))
    return jnp.stack([g(0.0) for g in orders])


@row
def jvp_of_hessian_of_an_energy(torch):
    d, func = data(torch), torch.func
    return func.jvp(func.hessian(torch_energy(torch, d.w)), (d.x,), (d.v,))


@jvp_of_hessian_of_an_energy.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.jvp(jax.hessian(jax_energy(jax, jnp, d.w)), (d.x,), (d.v,))


@row
def third_derivative_tensor_by_mixed_modes(torch):
    d, func = data(torch), torch.func
    f = torch_energy(torch, d.w)
    forward = func.jacfwd(func.jacfwd(func.jacfwd(f)))(d.x)
    reverse = func.jacrev(func.jacrev(func.jacrev(f)))(d.x)
    return forward, reverse, func.jacrev(func.jacfwd(func.grad(f)))(d.x)


@third_derivative_tensor_by_mixed_modes.jax
def _(jax, jnp):
    d = data(jnp)
    third = jax.jacfwd(jax.hessian(jax_energy(jax, jnp, d.w)))(d.x)
    return third, third, third


@row
def per_sample_third_order(torch):
    d, func = data(torch), torch.func

    def f(x):
        return (func.jvp(func.grad(torch_energy(torch, d.w)), (x,), (d.v,))[1] * d.v).sum()

    return func.vmap(func.grad(f), in_dims=1, out_dims=1)(d.batch.T)


@per_sample_third_order.jax
def _(jax, jnp):
    d = data(jnp)
    third = jax.vmap(jax.jacfwd(jax.hessian(jax_energy(jax, jnp, d.w))))(d.batch)
    return jnp.transpose(third @ d.v @ d.v)


@row
def grad_of_trace_of_hessian_of_a_leaf(torch):
    d, func = data(torch), torch.func
    w = leaf(d.w)
    hessian = func.hessian(torch_energy(torch, w))(d.x)
    trace = sum(hessian[i, i] for i in range(3))
    trace.backward()
    return trace, w.grad


@grad_of_trace_of_hessian_of_a_leaf.jax
def _(jax, jnp):
    d = data(jnp)
    return jax.value_and_grad(lambda w: jnp.trace(jax.hessian(jax_energy(jax, jnp, w))(d.x)))(d.w)


# --- derivatives of algorithms ---------------------------------------------------------------------------


@row
def maml_over_tasks(torch):
    d, func = data(torch), torch.func

    def inner(p, x, t):
        return (torch.dot(p["v"], torch.tanh(p["w"] @ x)) - t) ** 2

    def adapted(p, x, t):
        steps = func.grad(inner)(p, x, t)
        return inner({k: p[k] - 0.1 * steps[k] for k in p}, x * 0.5, t)

    def outer(p):
        return func.vmap(adapted, in_dims=(None, 0, 0))(p, d.batch, d.targets).mean()

    return func.grad_and_value(outer)({"w": d.w, "v": d.v})


@maml_over_tasks.jax
def _(jax, jnp):
    d = data(jnp)

    def inner(p, x, t):
        return (p["v"] @ jnp.tanh(p["w"] @ x) - t) ** 2

    def adapted(p, x, t):
        steps = jax.grad(inner)(p, x, t)
        return inner({k: p[k] - 0.1 * steps[k] for k in p}, x * 0.5, t)

    def outer(p):
        return jnp.mean(jax.vmap(adapted, in_axes=(None, 0, 0))(p, d.batch, d.targets))

    value, gradient = jax.value_and_grad(outer)({"w": d.w, "v": d.v})
    return gradient, value


@row
def derivative_of_newtons_method(torch):
    d, func = data(torch), torch.func

    def solve(a):
        x = torch.ones_like(a)
        for _ in range(6):
            slope, value = func.grad_and_value(lambda y: y**3 + y - a)(x)
            x = x - value / slope
        return x

    return func.vmap(solve)(d.targets), func.vmap(func.grad(func.grad(solve)))(d.targets)


@derivative_of_newtons_method.jax
def _(jax, jnp):
    d = data(jnp)

    def solve(a):
        x = jnp.ones_like(a)
        for _ in range(6):
            x = x - (x**3 + x - a) / (3 * x**2 + 1)
        return x

    return jax.vmap(solve)(d.targets), jax.vmap(jax.grad(jax.grad(solve)))(d.targets)


@row
def residual_of_a_differential_equation(torch):
    d, func = data(torch), torch.func
    w, b, v = leaf(d.w[0]), leaf(d.b), leaf(d.v)

    def u(t):
        return torch.dot(v, torch.tanh(w * t + b))

    def residual(t):
        return func.grad(func.grad(u))(t) + t * func.grad(u)(t) - torch.sin(u(t))

    loss = (func.vmap(residual)(d.scales) ** 2).mean()
    loss.backward()
    return loss, w.grad, b.grad, v.grad


@residual_of_a_differential_equation.jax
def _(jax, jnp):
    d = data(jnp)

    def loss(w, b, v):
        def u(t):
            return v @ jnp.tanh(w * t + b)

        def residual(t):
            return jax.grad(jax.grad(u))(t) + t * jax.grad(u)(t) - jnp.sin(u(t))

        return jnp.mean(jax.vmap(residual)(d.scales) ** 2)

    value, gradients = jax.value_and_grad(loss, argnums=(0, 1, 2))(d.w[0], d.b, d.v)
    return value, *gradients


@row
def hamiltonian_steps(torch):
    d, func = data(torch), torch.func

    def energy(q, p):
        return (p**2).sum() / 2 + torch.cos(d.w @ q).sum()

    def flow(q):
        p = d.v
        for _ in range(3):
            p = p - 0.1 * func.grad(energy, argnums=0)(q, p)
            q = q + 0.1 * func.grad(energy, argnums=1)(q, p)
        return q, p

    return func.jacrev(flow)(d.x), func.vmap(lambda v: func.jvp(flow, (d.x,), (v,))[1])(d.w)


@hamiltonian_steps.jax
def _(jax, jnp):
    d = data(jnp)

    def flow(q):
        p = d.v
        for _ in range(3):
            p = p + 0.1 * d.w.T @ jnp.sin(d.w @ q)
            q = q + 0.1 * p
        return q, p

    jacobians = jax.jacfwd(flow)(d.x)
    return jacobians, tuple(d.w @ j.T for j in jacobians)


@row
def hypergradient_through_plain_autograd_steps(torch):
    d = data(torch)
    rate = leaf(d.s)
    w = leaf(d.x)
    current = w
    for _ in range(3):
        (step,) = torch.autograd.grad((torch.sin(d.w @ current) ** 2).sum(), current, create_graph=True)
        current = current - rate * step
    return torch.autograd.grad((current**2).sum(), (rate, w))


@hypergradient_through_plain_autograd_steps.jax
def _(jax, jnp):
    d = data(jnp)

    def f(rate, w):
        for _ in range(3):
            w = w - rate * jax.grad(lambda u: jnp.sum(jnp.sin(d.w @ u) ** 2))(w)
        return jnp.sum(w**2)

    return jax.grad(f, argnums=(0, 1))(d.s, d.x)
