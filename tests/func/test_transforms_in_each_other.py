"""Transforms in each other, over indices, modules, duals and autograd.functional."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("func_transforms_in_each_other")


def numbers(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64)


@program
def writing_into_a_clone_of_a_captured_tensor(torch):
    c = numbers(torch)
    return torch.func.grad(lambda x: (c.clone().mul_(x)).sum())(numbers(torch))


@program
def vmap_of_grad_with_aux(torch):
    return torch.vmap(torch.func.grad(lambda x: (x.sin().sum(), x * 2), has_aux=True))(numbers(torch).expand(2, 3))


@program
def grad_of_vmap(torch):
    return torch.func.grad(lambda x: torch.vmap(lambda a: a.sin())(x).sum())(numbers(torch))


@program
def jacrev_of_jacfwd_of_a_structure(torch):
    return torch.func.jacrev(torch.func.jacfwd(lambda d: d["a"] ** 3))({"a": numbers(torch, 1.0, 2.0)})


@program
def per_sample_grads_of_linear(torch):
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 1).double()
    params = {k: v.detach() for k, v in m.named_parameters()}
    for q in params:
        params[q] = torch.ones_like(params[q])

    def f(w, x, y):
        return ((torch.func.functional_call(m, w, (x,)) - y) ** 2).mean()

    return torch.vmap(torch.func.grad(f), in_dims=(None, 0, 0))(
        params, numbers(torch).reshape(3, 1).expand(3, 2), numbers(torch).reshape(3, 1)
    )


@program
def an_ensemble_of_layers(torch):
    ms = [torch.nn.Linear(2, 1).double() for _ in range(2)]
    for i, m in enumerate(ms):
        for q in m.parameters():
            q.data.fill_(i + 1.0)
    ps, bs = torch.func.stack_module_state(ms)
    base = torch.nn.Linear(2, 1).double()
    return torch.vmap(lambda w, b, x: torch.func.functional_call(base, (w, b), (x,)), in_dims=(0, 0, None))(
        ps, bs, numbers(torch, 1.0, 2.0).reshape(1, 2)
    ).detach()


@program
def gradients_are_plain_tensors(torch):
    g = torch.func.grad(lambda x: x.sum())(numbers(torch))
    return g.requires_grad, g.grad_fn


@program
def batches_are_printed_with_their_depth(torch):
    seen = []
    show = lambda x: seen.append(repr(x)) or x  # noqa: E731
    torch.vmap(show)(numbers(torch))
    torch.vmap(torch.vmap(show))(numbers(torch).reshape(3, 1))
    return seen


@program
def item_inside_grad(torch):
    return torch.func.grad(lambda x: x.sum() * x.sum().item())(numbers(torch))


@program
def branches_inside_grad(torch):
    return torch.func.grad(lambda x: x.sum() * 2 if x.sum() > 0 else x.sum())(numbers(torch))


@program
def detach_inside_vmap_of_grad(torch):
    return torch.vmap(torch.func.grad(lambda x: (x * x.detach()).sum()))(numbers(torch).expand(2, 3))


@program
def grad_mode_inside_transforms(torch):
    s = []
    torch.func.grad(lambda x: s.append(torch.is_grad_enabled()) or x.sum())(numbers(torch))
    with torch.no_grad():
        torch.func.grad(lambda x: s.append(torch.is_grad_enabled()) or x.sum())(numbers(torch))
    torch.func.jvp(lambda x: s.append(torch.is_grad_enabled()) or x, (numbers(torch),), (numbers(torch),))
    return s


@program
def masks_under_vmap(torch):
    return torch.vmap(lambda x: torch.where(x > 1, x, -x))(numbers(torch)), torch.vmap(
        lambda x: x.masked_fill(x > 1, 0.0)
    )(numbers(torch).reshape(3, 1))


@program
def indices_under_vmap(torch):
    a = numbers(torch).expand(2, 3)
    return (
        torch.vmap(lambda x, i: x[i])(a, torch.tensor([0, 2])),
        torch.vmap(lambda x: x[[0, 2]])(a),
        torch.vmap(lambda x: x[..., None])(a),
        torch.vmap(lambda x, i: x.index_select(0, i))(a, torch.tensor([[0], [2]])),
        torch.vmap(lambda x, i: torch.take_along_dim(x, i, 0))(a, torch.tensor([[0], [2]])),
    )


@program
def linear_algebra_under_vmap(torch):
    return (
        torch.vmap(torch.linalg.inv)(torch.eye(2).expand(3, 2, 2)),
        torch.vmap(torch.linalg.det)(torch.eye(2).expand(3, 2, 2)),
        torch.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3)),
        torch.vmap(torch.mv, in_dims=(None, 0))(torch.ones(2, 3), torch.ones(4, 3)),
    )


@program
def new_tensors_under_vmap(torch):
    return (
        torch.vmap(lambda x: torch.zeros(2) + x)(numbers(torch).float()),
        torch.vmap(lambda x: x.new_zeros(2))(numbers(torch)),
        torch.vmap(lambda x: torch.ones_like(x))(numbers(torch)),
        torch.vmap(lambda x: torch.arange(2) + x)(numbers(torch).float()),
    )


@program
def writing_into_new_zeros_under_vmap(torch):
    def f(x):
        y = x.new_zeros(2)
        y[0] = x
        return y

    return torch.vmap(f)(numbers(torch))


@program
def jvp_of_jvp(torch):
    return torch.func.jvp(lambda x: torch.func.jvp(torch.sin, (x,), (x,))[1], (numbers(torch),), (numbers(torch),))


@program
def jvp_of_vjp(torch):
    return torch.func.jvp(lambda x: torch.func.vjp(torch.sin, x)[1](x)[0], (numbers(torch),), (numbers(torch),))


@program
def several_arguments_structures_and_aux(torch):
    return torch.func.grad(lambda a, b: ((a["x"] * b[0]).sum(), a), argnums=(0, 1), has_aux=True)(
        {"x": numbers(torch)}, [numbers(torch)]
    )


@program
def writing_into_a_view_of_a_dual(torch):
    fa = torch.autograd.forward_ad
    with fa.dual_level():
        d = fa.make_dual(numbers(torch), numbers(torch))
        v = d[1:]
        v.mul_(2)
        return fa.unpack_dual(d)


@program
def duals_are_printed_with_their_tangent(torch):
    fa = torch.autograd.forward_ad
    with fa.dual_level():
        d = fa.make_dual(numbers(torch), numbers(torch))
        a = repr(d)
    return a, repr(d)


@program
def custom_jvp_of_one_dual_input(torch):
    fa = torch.autograd.forward_ad

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g, g

        @staticmethod
        def jvp(ctx, a, b):
            x, y = ctx.saved_tensors
            return (0 if a is None else a * y) + (0 if b is None else b * x)

    with fa.dual_level():
        return fa.unpack_dual(F.apply(fa.make_dual(numbers(torch), numbers(torch)), numbers(torch)))


@program
def backward_through_a_tangent(torch):
    fa = torch.autograd.forward_ad
    x = numbers(torch).requires_grad_()
    with fa.dual_level():
        d = fa.make_dual(x, numbers(torch))
        y = (d**3).sum()
        tan = fa.unpack_dual(y).tangent
        return tan, torch.autograd.grad(tan, x)


@program
def strict_functions_of_autograd_functional(torch):
    af = torch.autograd.functional

    def g(x):
        return numbers(torch)

    return (
        [caught(h, g, numbers(torch), strict=True) for h in (af.jacobian,)],
        caught(af.vjp, g, numbers(torch), numbers(torch), strict=True),
        caught(af.jvp, g, numbers(torch), numbers(torch), strict=True),
        caught(af.hessian, lambda x: x.sum(), numbers(torch), strict=True),
        caught(af.vhp, lambda x: x.sum(), numbers(torch), numbers(torch), strict=True),
        caught(af.hvp, lambda x: x.sum(), numbers(torch), numbers(torch), strict=True),
    )


@program
def refusals_of_autograd_functional(torch):
    af = torch.autograd.functional

    def f(x):
        return x**2

    return (
        caught(af.vjp, f, numbers(torch)),
        caught(af.vjp, f, numbers(torch), numbers(torch)[:2]),
        caught(af.jvp, f, numbers(torch)),
        caught(af.jvp, f, numbers(torch), (numbers(torch), numbers(torch))),
        caught(af.hvp, f, numbers(torch), numbers(torch)),
        caught(af.vhp, lambda x: x.sum(), numbers(torch)),
        caught(af.jacobian, f, "x"),
        caught(af.jacobian, f, [3]),
        caught(af.hessian, lambda x: (x.sum(), x.sum()), numbers(torch)),
        caught(af.jacobian, f, numbers(torch), strategy="forward-mode"),
        caught(af.jacobian, f, numbers(torch), strategy="forward-mode", vectorize=True),
        caught(af.jacobian, f, numbers(torch), strategy="no"),
        caught(af.hessian, lambda x: x.sum(), numbers(torch), outer_jacobian_strategy="no"),
        caught(af.jacobian, f, numbers(torch), strict=True, vectorize=True),
    )


@program
def jacobians_of_autograd_functional(torch):
    af = torch.autograd.functional

    def f(x, y):
        return (x * y, x.sum())

    return (
        af.jacobian(f, (numbers(torch), numbers(torch))),
        af.jacobian(f, (numbers(torch), numbers(torch)), vectorize=True),
        af.hessian(
            lambda x, y: (x * y**2).sum(),
            (numbers(torch), numbers(torch)),
            vectorize=True,
            outer_jacobian_strategy="forward-mode",
        ),
    )


test_as_torch, test_recording_is_torchs = program.tests()
