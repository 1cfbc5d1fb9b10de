"""Custom Functions under forward mode, vmap and the transforms, as in torch."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("function_transforms")


def ones(torch: Any, *shape: int) -> Any:
    return torch.ones(shape, dtype=torch.float64)


def numbers(torch: Any, *shape: int) -> Any:
    count = 1
    for n in shape:
        count *= n
    return (torch.arange(count, dtype=torch.float64) + 1).reshape(shape)


def cube(torch: Any, **more: Any) -> Any:
    """x ** 3, with every derivative written by hand."""

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    body = {
        "forward": lambda x: x**3,
        "setup_context": setup,
        "backward": lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
        "jvp": lambda ctx, t: t * 3 * ctx.saved_tensors[0] ** 2,
    } | more
    made = {
        name: staticmethod(value) if callable(value) else value for name, value in body.items() if value is not None
    }
    return type("Made", (torch.autograd.Function,), made)


def forward_ad(torch: Any, f: Any, x: Any, t: Any) -> Any:
    fwd = torch.autograd.forward_ad
    with fwd.dual_level():
        return fwd.unpack_dual(f(fwd.make_dual(x, t)))


# ---- forward mode ----
@program
def jvp_in_a_dual_level(torch):
    return list(forward_ad(torch, cube(torch).apply, numbers(torch, 3), ones(torch, 3)))


@program
def jvp_by_transform(torch):
    return torch.func.jvp(cube(torch).apply, (numbers(torch, 3),), (ones(torch, 3),))


@program
def jvp_is_differentiable_in_reverse(torch):
    x = numbers(torch, 3).requires_grad_()
    _, tangent = torch.func.jvp(cube(torch).apply, (x,), (ones(torch, 3),))
    return torch.autograd.grad(tangent.sum(), x)


@program
def jvp_missing(torch):
    return caught(forward_ad, torch, cube(torch, jvp=None).apply, numbers(torch, 3), ones(torch, 3))


@program
def jvp_in_one_part(torch):
    def forward(ctx, x):
        ctx.save_for_forward(x)
        return x**3

    f = cube(torch, forward=forward, setup_context=None)
    return list(forward_ad(torch, f.apply, numbers(torch, 3), ones(torch, 3)))


@program
def jvp_sees_attributes(torch):
    def setup(ctx, inputs, output):
        ctx.factor = 7

    f = cube(torch, forward=lambda x: x * 7, setup_context=setup, jvp=lambda ctx, t: t * ctx.factor)
    return list(forward_ad(torch, f.apply, numbers(torch, 3), ones(torch, 3)))


@program
def jvp_tangent_missing_is_zero(torch):
    seen = []

    def jvp(ctx, tx, ty):
        seen.append(ty)
        return tx * 2

    f = cube(torch, forward=lambda x, y: x * y, setup_context=lambda ctx, i, o: None, jvp=jvp)
    y = ones(torch, 3) * 2
    result = forward_ad(torch, lambda x: f.apply(x, y), numbers(torch, 3), ones(torch, 3))
    return list(result), seen


@program
def jvp_tangent_missing_is_none(torch):
    seen = []

    def jvp(ctx, tx, ty):
        seen.append(ty)
        return tx * 2

    setup = lambda ctx, i, o: ctx.set_materialize_grads(False)  # noqa: E731
    f = cube(torch, forward=lambda x, y: x * y, setup_context=setup, jvp=jvp)
    y = ones(torch, 3) * 2
    result = forward_ad(torch, lambda x: f.apply(x, y), numbers(torch, 3), ones(torch, 3))
    return list(result), seen


@program
def jvp_of_wrong_shape(torch):
    f = cube(torch, jvp=lambda ctx, t: t[:2])
    return caught(forward_ad, torch, f.apply, numbers(torch, 3), ones(torch, 3))


@program
def jvp_of_several_outputs(torch):
    f = cube(
        torch,
        forward=lambda x: (x * 2, x * 3),
        setup_context=lambda ctx, i, o: None,
        jvp=lambda ctx, t: (t * 2, t * 3),
    )
    return torch.func.jvp(f.apply, (numbers(torch, 3),), (ones(torch, 3),))


@program
def jvp_straight_through(torch):
    f = cube(torch, forward=lambda x: x.round(), setup_context=lambda ctx, i, o: None, jvp=lambda ctx, t: t)
    return torch.func.jvp(f.apply, (numbers(torch, 3) / 4,), (ones(torch, 3),))


# ---- reverse transforms ----
@program
def grad(torch):
    f = cube(torch)
    return torch.func.grad(lambda x: f.apply(x).sum())(numbers(torch, 3))


@program
def grad_of_grad(torch):
    f = cube(torch)
    first = torch.func.grad(lambda x: f.apply(x).sum())
    return torch.func.grad(lambda x: first(x).sum())(numbers(torch, 3))


@program
def grad_without_setup_context(torch):
    def forward(ctx, x):
        return x * 2

    f = cube(torch, forward=forward, setup_context=None)
    return caught(torch.func.grad(lambda x: f.apply(x).sum()), numbers(torch, 3))


@program
def vjp(torch):
    out, pull = torch.func.vjp(cube(torch).apply, numbers(torch, 3))
    return out, pull(ones(torch, 3))


@program
def jacrev(torch):
    return torch.func.jacrev(cube(torch, generate_vmap_rule=True).apply)(numbers(torch, 2))


@program
def jacfwd(torch):
    return torch.func.jacfwd(cube(torch, generate_vmap_rule=True).apply)(numbers(torch, 2))


@program
def hessian(torch):
    f = cube(torch, generate_vmap_rule=True)
    return torch.func.hessian(lambda x: f.apply(x).sum())(numbers(torch, 2))


# ---- vmap ----
@program
def vmap_not_supported(torch):
    return caught(torch.func.vmap(cube(torch).apply), numbers(torch, 2, 3))


@program
def vmap_generated(torch):
    return torch.func.vmap(cube(torch, generate_vmap_rule=True).apply)(numbers(torch, 2, 3))


@program
def vmap_generated_and_written(torch):
    f = cube(torch, generate_vmap_rule=True, vmap=lambda info, dims, x: (x**3, dims[0]))
    return caught(torch.func.vmap(f.apply), numbers(torch, 2, 3))


@program
def vmap_written(torch):
    seen = []

    def vmap(info, in_dims, x):
        seen.append([info.batch_size, info.randomness, list(in_dims), list(x.shape)])
        return x**3, in_dims[0]

    return torch.func.vmap(cube(torch, vmap=vmap).apply)(numbers(torch, 2, 3)), seen


@program
def vmap_written_with_unbatched_argument(torch):
    seen = []

    def vmap(info, in_dims, x, y, k):
        seen.append([list(in_dims), k])
        return x * y * k, 0

    f = cube(torch, forward=lambda x, y, k: x * y * k, setup_context=lambda ctx, i, o: None, vmap=vmap)
    y = ones(torch, 3)
    return torch.func.vmap(lambda x: f.apply(x, y, 5))(numbers(torch, 2, 3)), seen


@program
def vmap_written_with_out_dim(torch):
    f = cube(torch, vmap=lambda info, dims, x: ((x**3).movedim(0, 1), 1))
    return torch.func.vmap(f.apply)(numbers(torch, 2, 3))


@program
def vmap_written_with_out_dim_none(torch):
    f = cube(torch, vmap=lambda info, dims, x: (ones(torch, 3) * 4, None))
    return torch.func.vmap(f.apply)(numbers(torch, 2, 3))


@program
def vmap_written_returns_no_pair(torch):
    f = cube(torch, vmap=lambda info, dims, x: x**3)
    return caught(torch.func.vmap(f.apply), numbers(torch, 2, 3))


@program
def vmap_written_with_several_outputs(torch):
    f = cube(
        torch,
        forward=lambda x: (x * 2, x.sum()),
        setup_context=lambda ctx, i, o: None,
        vmap=lambda info, dims, x: ((x * 2, x.sum(1)), (0, 0)),
    )
    return torch.func.vmap(f.apply)(numbers(torch, 2, 3))


@program
def vmap_not_called_without_batched_arguments(torch):
    f = cube(torch, vmap=lambda info, dims, x: (x * 0, None))
    c = ones(torch, 3) * 2
    return torch.func.vmap(lambda x: x + f.apply(c))(numbers(torch, 2, 3))


@program
def grad_of_vmap_generated(torch):
    f = cube(torch, generate_vmap_rule=True)
    x = numbers(torch, 2, 3).requires_grad_()
    return torch.autograd.grad(torch.func.vmap(f.apply)(x).sum(), x)


@program
def vmap_of_grad_generated(torch):
    f = cube(torch, generate_vmap_rule=True)
    return torch.func.vmap(torch.func.grad(lambda x: f.apply(x).sum()))(numbers(torch, 2, 3))


@program
def vmap_of_grad_with_unbatched_weight(torch):
    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    f = cube(
        torch,
        forward=lambda x, w: x * w,
        setup_context=setup,
        backward=lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
        generate_vmap_rule=True,
    )
    w = numbers(torch, 3)
    return torch.func.vmap(torch.func.grad(lambda x, w: f.apply(x, w).sum(), argnums=1), in_dims=(0, None))(
        numbers(torch, 2, 3), w
    )


@program
def grad_of_vmap_with_unbatched_weight(torch):
    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    f = cube(
        torch,
        forward=lambda x, w: x * w,
        setup_context=setup,
        backward=lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
        generate_vmap_rule=True,
    )
    w = numbers(torch, 3).requires_grad_()
    y = torch.func.vmap(lambda x: f.apply(x, w))(numbers(torch, 2, 3))
    return torch.autograd.grad(y.sum(), w)


@program
def jvp_of_vmap_generated(torch):
    f = cube(torch, generate_vmap_rule=True)
    x = numbers(torch, 2, 3)
    return torch.func.jvp(torch.func.vmap(f.apply), (x,), (ones(torch, 2, 3),))


@program
def vmap_of_jvp_generated(torch):
    f = cube(torch, generate_vmap_rule=True)
    return torch.func.vmap(lambda x, t: torch.func.jvp(f.apply, (x,), (t,))[1])(numbers(torch, 2, 3), ones(torch, 2, 3))


@program
def vmap_of_vmap_generated(torch):
    f = cube(torch, generate_vmap_rule=True)
    return torch.func.vmap(torch.func.vmap(f.apply))(numbers(torch, 2, 2))


@program
def batched_grad_through_function(torch):
    x = numbers(torch, 3).requires_grad_()
    y = cube(torch, generate_vmap_rule=True).apply(x)
    return torch.autograd.grad(y, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)


test_as_torch, test_recording_is_torchs = program.tests()
