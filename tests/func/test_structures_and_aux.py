"""grad, vjp, jvp, Jacobians, linearize and functional_call: structures, auxiliary values and what is refused."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("func_structures_and_aux")


def numbers(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64)


def cube(x):
    return (x**3).sum()


# ---- grad ----
@program
def grad_with_auxiliary_values(torch):
    x, f = numbers(torch), torch.func
    return (
        f.grad(lambda x: (cube(x), {"a": x * 2}), has_aux=True)(x),
        f.grad_and_value(lambda x: (cube(x), (x, x)), has_aux=True)(x),
        caught(f.grad(lambda x: cube(x), has_aux=True), x),
        caught(f.grad(lambda x: (cube(x), x, x), has_aux=True), x),
        caught(f.grad(lambda x: (cube(x), 3), has_aux=True), x),
        caught(f.grad(lambda x: [cube(x), x], has_aux=True), x),
    )


@program
def grad_with_argument_numbers(torch):
    x, y, grad = numbers(torch), numbers(torch, 4.0, 5.0, 6.0), torch.func.grad
    g = lambda x, y, z=1.0: (x * y * z).sum()  # noqa: E731
    return (
        grad(g, argnums=1)(x, y),
        grad(g, argnums=(0, 1))(x, y),
        grad(g, argnums=(1,))(x, y),
        grad(g, argnums=-1)(x, y),
        grad(g, argnums=(-1, 0))(x, y),
        grad(g)(x, y, z=2.0),
        caught(grad(g, argnums=2), x, y),
        caught(grad(g, argnums=-3), x, y),
        caught(grad(g, argnums=(0, 0)), x, y),
        caught(grad(g, argnums=(0, -2)), x, y),
        caught(grad(g, argnums="0"), x, y),
        caught(grad(g, argnums=()), x, y),
        caught(grad(g, argnums=[0]), x, y),
        caught(grad(g, argnums=0.5), x, y),
    )


@program
def grad_of_structures(torch):
    tree = {"a": numbers(torch), "b": (numbers(torch, 2.0), [numbers(torch, 5.0)])}
    f = lambda t: (t["a"] ** 2).sum() * t["b"][0].sum() + t["b"][1][0].sum()  # noqa: E731
    return torch.func.grad(f)(tree)


@program
def grad_of_odd_inputs(torch):
    grad = torch.func.grad
    return (
        caught(grad(lambda x: x * 2.0), 3.0),
        caught(grad(lambda x: x[0].sum()), [numbers(torch), 3]),
        caught(grad(lambda x: x.sum()), torch.ones(2, dtype=torch.int64)),
        caught(grad(lambda x: torch.tensor(1.0)), numbers(torch)),
        caught(grad(lambda x: x.sum().long()), numbers(torch)),
        caught(grad(lambda x: None), numbers(torch)),
        caught(grad(lambda x: (x.sum(), x.sum())), numbers(torch)),
        caught(grad(lambda x: {"a": x.sum()}), numbers(torch)),
        caught(grad(lambda x: x[:1]), numbers(torch)),
        caught(grad(lambda x: x.sum().reshape(1)), numbers(torch)),
    )


@program
def grad_inside_no_grad_and_outside(torch):
    x, grad = numbers(torch), torch.func.grad
    with torch.no_grad():
        outside = grad(cube)(x)

    def inside(x):
        with torch.no_grad():
            shift = x * 2
        return (x * shift).sum()

    return outside, grad(inside)(x)


@program
def grad_detach_and_leaves(torch):
    x = numbers(torch).requires_grad_()
    g = torch.func.grad(lambda t: (t * t.detach()).sum())(x)
    return g.requires_grad, g, torch.func.grad(cube)(x.detach()).requires_grad


@program
def backward_inside_grad_is_refused(torch):
    def f(x):
        y = (x * x).sum()
        y.backward()
        return y

    def g(x):
        y = (x * x).sum()
        (inner,) = torch.autograd.grad(y, x, create_graph=True)
        return inner.sum()

    return caught(torch.func.grad(f), numbers(torch)), caught(torch.func.grad(g), numbers(torch))


@program
def requires_grad_inside_is_refused(torch):
    grad = torch.func.grad
    return (caught(grad(lambda x: x.detach().requires_grad_().sum()), numbers(torch)),)


@program
def writes_inside_grad(torch):
    x = numbers(torch)

    def own(x):
        y = x.clone()
        y.mul_(x)
        return y.sum()

    return (
        torch.func.grad(own)(x),
        caught(torch.func.grad(lambda x: x.mul_(2).sum()), numbers(torch)),
    )


@program
def nested_grads(torch):
    x, grad = torch.tensor(2.0, dtype=torch.float64), torch.func.grad
    f = lambda x: x**5  # noqa: E731
    return grad(f)(x), grad(grad(f))(x), grad(grad(grad(f)))(x), torch.func.grad_and_value(grad(f))(x)


# ---- vjp ----
@program
def vjp_of_structures_with_auxiliary_values(torch):
    x, vjp = numbers(torch), torch.func.vjp
    out, pull, aux = vjp(lambda x: ({"a": x * 2, "b": (x.sum(),)}, x.shape and x * 9), x, has_aux=True)
    return out, pull({"a": x, "b": (torch.tensor(1.0, dtype=torch.float64),)}), aux


@program
def vjp_pulled_twice_and_wrongly(torch):
    x = numbers(torch)
    _, pull = torch.func.vjp(torch.sin, x)
    return (
        pull(x),
        pull(x * 2),
        caught(pull, torch.ones(2, dtype=torch.float64)),
        caught(pull, 1.0),
        caught(pull, (x,)),
        caught(pull, x.float()),
    )


@program
def vjp_of_odd_functions(torch):
    x, vjp = numbers(torch), torch.func.vjp
    return (
        caught(vjp, lambda x: 3, x),
        caught(vjp, lambda x: None, x),
        caught(vjp, lambda x: (x, 3), x),
        caught(vjp, torch.sin, 3.0),
        caught(vjp, lambda x: x, x, has_aux=True),
        [part if isinstance(part, Exception) else "made" for part in [caught(vjp, lambda x: torch.ones(2), x)]],
    )


@program
def vjp_of_several_inputs(torch):
    x, y = numbers(torch), numbers(torch, 4.0, 5.0, 6.0)
    out, pull = torch.func.vjp(lambda a, b: a * b, x, y)
    return out, pull(torch.ones(3, dtype=torch.float64))


# ---- jvp ----
@program
def jvp_of_structures_with_auxiliary_values(torch):
    x, jvp = numbers(torch), torch.func.jvp
    return (
        jvp(lambda x: {"a": x * x, "b": [x.sum()]}, (x,), (x,)),
        jvp(lambda x: (x * x, {"aux": x}), (x,), (x,), has_aux=True),
        jvp(lambda d: d["a"] * 2, ({"a": x},), ({"a": x},)),
        jvp(lambda a, b: a * b, (x, x), (x, x * 0)),
    )


@program
def jvp_of_odd_calls(torch):
    x, jvp = numbers(torch), torch.func.jvp
    return (
        caught(jvp, torch.sin, x, x),
        caught(jvp, torch.sin, (x,), x),
        caught(jvp, torch.sin, (x,), (x, x)),
        caught(jvp, torch.sin, (x,), (x[:2],)),
        caught(jvp, torch.sin, (), ()),
        caught(jvp, torch.sin, (3.0,), (1.0,)),
        caught(jvp, lambda x: 3, (x,), (x,)),
        caught(jvp, lambda x: None, (x,), (x,)),
        caught(jvp, lambda x: (x, 3), (x,), (x,)),
        caught(jvp, lambda x: x, (x,), (x,), has_aux=True),
        caught(jvp, lambda x: torch.ones(2), (x,), (x,)),
        caught(jvp, lambda x: torch.ones(2), (x,), (x,), strict=True),
        caught(jvp, lambda d: d["a"], ({"a": x},), ({"b": x},)),
    )


# ---- Jacobians ----
@program
def jacobians_of_structures(torch):
    x, y = numbers(torch, 1.0, 2.0), numbers(torch, 3.0)
    found = []
    for jac in (torch.func.jacrev, torch.func.jacfwd):
        found += [
            jac(lambda x: {"a": x * x, "b": (x.sum(),)})(x),
            jac(lambda d: d["x"] * d["y"].sum())({"x": x, "y": y}),
            jac(lambda a, b: a * b.sum(), argnums=(0, 1))(x, y),
            jac(lambda a, b: (a * b.sum(), b), argnums=1)(x, y),
            jac(lambda x: (x * x, {"aux": x}), has_aux=True)(x),
            jac(lambda a, b: (a * b.sum(), a), argnums=(1, 0), has_aux=True)(x, y),
        ]
    return found


@program
def jacobians_refused(torch):
    x = numbers(torch, 1.0, 2.0)
    found = []
    for jac in (torch.func.jacrev, torch.func.jacfwd):
        found += [
            caught(jac(lambda x: 3), x),
            caught(jac(lambda x: (x, 3)), x),
            caught(jac(lambda x: x, argnums=1), x),
            caught(jac(lambda x: x, argnums="0"), x),
            caught(jac(lambda x: x, has_aux=True), x),
            caught(jac(torch.sin), 3.0),
            caught(jac(torch.sin), x.long()),
            caught(jac(lambda x: None), x),
        ]
    return found


@program
def jacobians_in_parts(torch):
    x, f = numbers(torch), lambda x: x * x.sum()
    return (
        torch.func.jacrev(f, chunk_size=1)(x),
        torch.func.jacrev(f, chunk_size=2)(x),
        torch.func.jacfwd(f, randomness="same")(x),
        caught(torch.func.jacrev, f, chunk_size=0),
        caught(torch.func.jacrev, f, chunk_size=-1),
    )


@program
def jacobians_of_constants_and_empty(torch):
    x = numbers(torch, 1.0, 2.0)
    one = torch.ones(3, dtype=torch.float64)
    return (
        torch.func.jacrev(lambda x: one)(x),
        torch.func.jacfwd(lambda x: one)(x),
        torch.func.jacrev(lambda x: x[:0])(x),
        torch.func.jacrev(lambda x: x.sum())(x[:0]),
        torch.func.jacrev(lambda x: (x.sum(), x.long()) if False else x.sum())(x),
    )


@program
def random_numbers_in_jacobians(torch):
    x = numbers(torch, 1.0, 2.0)
    noisy = lambda x: x * torch.rand(2, dtype=torch.float64)  # noqa: E731
    return caught(torch.func.jacfwd(noisy), x) is not None, list(torch.func.jacrev(noisy)(x).shape)


@program
def hessians(torch):
    x, y = numbers(torch, 1.0, 2.0), numbers(torch, 3.0)
    f = lambda a, b: (a**3).sum() * b.sum()  # noqa: E731
    return (
        torch.func.hessian(f)(x, y),
        torch.func.hessian(f, argnums=(0, 1))(x, y),
        torch.func.hessian(lambda d: cube(d["a"]))({"a": x}),
    )


# ---- linearize ----
@program
def linearize_and_its_tangents(torch):
    x = numbers(torch)
    out, push = torch.func.linearize(lambda x: {"a": x.sin(), "b": x.sum()}, x)
    return out, push(x), push(x * 2)


@program
def linearize_refused(torch):
    x = numbers(torch)
    _, push = torch.func.linearize(torch.sin, x)
    return caught(push, x[:2]), caught(push, x, x), caught(push, 1.0)


# ---- functional_call ----
def net(torch: Any) -> Any:
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(2, 2, bias=False)
            self.second = torch.nn.Linear(2, 2, bias=False)
            self.second.weight = self.first.weight
            self.register_buffer("shift", torch.zeros(2))
            with torch.no_grad():
                self.first.weight.copy_(torch.eye(2))

        def forward(self, x, *, scale=1.0):
            return self.second(self.first(x)) * scale + self.shift

    return Tied()


@program
def call_with_tied_weights(torch):
    model, x, call = net(torch), torch.ones(1, 2), torch.func.functional_call
    new = {"first.weight": torch.eye(2) * 3}
    return (
        call(model, new, (x,)).detach(),
        call(model, new, (x,), tie_weights=False).detach(),
        call(model, {"second.weight": torch.eye(2) * 5}, x).detach(),
        call(
            model, {"first.weight": torch.eye(2) * 3, "second.weight": torch.eye(2) * 3}, (x,), tie_weights=False
        ).detach(),
        caught(call, model, {"first.weight": torch.eye(2), "second.weight": torch.eye(2) * 2}, (x,)),
        model(x).detach(),
    )


@program
def call_strictly(torch):
    model, x, call = net(torch), torch.ones(1, 2), torch.func.functional_call
    whole = {"first.weight": torch.eye(2), "shift": torch.ones(2)}
    return (
        caught(lambda: call(model, whole, (x,), strict=True).detach()),
        caught(call, model, {"first.weight": torch.eye(2)}, (x,), strict=True),
        caught(call, model, {**whole, "other": torch.ones(1)}, (x,), strict=True),
        caught(lambda: call(model, {**whole, "other": torch.ones(1)}, (x,)).detach()),
    )


@program
def call_with_arguments(torch):
    model, x, call = net(torch), torch.ones(1, 2), torch.func.functional_call
    new = {"shift": torch.ones(2)}
    return (
        call(model, new, x).detach(),
        call(model, new, (x,), {"scale": 3.0}).detach(),
        call(model, new, args=None, kwargs={"x": x}).detach(),
        call(model, (new, {"first.weight": torch.eye(2) * 2}), (x,)).detach(),
        caught(call, model, (new, new), (x,)),
        caught(call, model, [1], (x,)),
        caught(call, model, 3, (x,)),
        caught(call, model, {"shift": 3}, (x,)),
        caught(call, 3, new, (x,)),
    )


@program
def call_with_gradients(torch):
    model, x = net(torch), torch.ones(1, 2)
    weights = dict(model.named_parameters())
    f = lambda w: torch.func.functional_call(model, w, (x,)).sum()  # noqa: E731
    return torch.func.grad(f)({k: v.detach() for k, v in weights.items()}), model.first.weight.grad


@program
def call_that_writes_a_buffer(torch):
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count.add_(1)
            return x

    model, mine = Counting(), torch.zeros(1)
    torch.func.functional_call(model, {"count": mine}, (torch.ones(1),))
    return model.count, mine


@program
def stacked_states(torch):
    stack = torch.func.stack_module_state
    models = [torch.nn.Linear(2, 1) for _ in range(3)]
    params, buffers = stack(models)
    mixed = [torch.nn.Linear(2, 1).train(), torch.nn.Linear(2, 1).eval()]
    return (
        {name: [list(p.shape), p.requires_grad, p.is_leaf] for name, p in params.items()},
        buffers,
        caught(stack, []),
        caught(stack, mixed),
        caught(stack, [torch.nn.Linear(2, 1), torch.nn.ReLU()]),
        caught(stack, [torch.nn.Linear(2, 1), torch.nn.Linear(3, 1)]),
    )


# ---- rearrange ----
@program
def rearranged(torch):
    x, r = torch.arange(24.0).reshape(2, 3, 4), torch.func.rearrange
    return [
        [list(out.shape), list(out.stride()), out.reshape(-1)[:5]]
        for out in (
            r(x, "a b c -> c b a"),
            r(x, "a b c -> (a b) c"),
            r(x, "a b (c d) -> a b c d", c=2),
            r(x, "... c -> c ..."),
            r(x, "a ... c -> a (...) c"),
            r(x, "...->(...)"),
            r(x, "a b c -> 1 a (1 b) (1 1) c"),
            r(x, "(a 1) b c -> (c a) b"),
            r(x, "1 b c -> b c"),
            r([x, x], "n a b c -> (n a) (b c)"),
        )
    ]


@program
def rearrange_refused(torch):
    x, r = torch.arange(24.0).reshape(2, 3, 4), torch.func.rearrange
    return [
        caught(r, x, pattern, **lengths)
        for pattern, lengths in (
            ("a b c", {}),
            ("a b c -> a b", {}),
            ("a b -> a b", {}),
            ("a a c -> a c", {}),
            ("a (...) -> a", {}),
            ("a b c -> ... a b c", {}),
            ("a ... ... -> a", {}),
            ("a b .. -> a b", {}),
            ("a b c -> a (b (c))", {}),
            ("a b c) -> a b c", {}),
            ("(a b c -> a b c", {}),
            ("a b _ -> a b", {}),
            ("a b 2 -> a b", {}),
            ("a b 1c -> a b", {}),
            ("a b c! -> a b c!", {}),
            ("a b c -> a b c", {"e": 2}),
            ("a b (c d) -> a b c d", {}),
            ("a b (c d) -> a b c d", {"c": 3}),
            ("a b (c d) -> a b c d", {"c": 2, "d": 3}),
            ("a b (c d) -> a b c d", {"c": 5.0}),
            ("a b c -> a b c", {"a": 3}),
        )
    ]


@program
def rearrange_in_transforms(torch):
    f = lambda t: torch.func.rearrange(t, "a b -> (b a)")  # noqa: E731
    x = torch.arange(6.0).reshape(2, 3)
    return (
        torch.vmap(f)(torch.stack([x, x])),
        torch.func.jacrev(f)(x),
        torch.func.grad(lambda t: (f(t) * f(x)).sum())(x),
    )


test_as_torch, test_recording_is_torchs = program.tests()
