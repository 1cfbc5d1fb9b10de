"""What a custom Function is told and what is checked of what it returns, as in torch."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught, warned

program = Programs("function_checks")


def function(torch: Any, **methods: Any) -> Any:
    """Make a Function of static methods and flags."""
    body = {name: staticmethod(value) if callable(value) else value for name, value in methods.items()}
    return type("Made", (torch.autograd.Function,), body)


def leaf(torch: Any, *shape: int) -> Any:
    return torch.ones(shape, dtype=torch.float64, requires_grad=True)


# ---- in place ----
def increment(ctx, x):
    x.add_(1)
    ctx.mark_dirty(x)
    return x


@program
def dirty_view_with_two_outputs(torch):
    def forward(ctx, x):
        return increment(ctx, x), x * 2

    f = function(torch, forward=forward, backward=lambda ctx, g, h: g * 10 + h * 2)
    base = leaf(torch, 2) * 1
    return caught(f.apply, base[:1])


@program
def dirty_view_with_one_output(torch):
    f = function(torch, forward=increment, backward=lambda ctx, g: g * 10)
    x = leaf(torch, 2)
    base = x * 1
    f.apply(base[:1])
    base.sum().backward()
    return base, x.grad


@program
def dirty_view_of_unbind(torch):
    f = function(torch, forward=increment, backward=lambda ctx, g: g)
    return str(caught(f.apply, (leaf(torch, 2) * 1).unbind(0)[0]))


@program
def dirty_without_gradients_is_detached(torch):
    f = function(torch, forward=increment, backward=lambda ctx, g: g)
    x = leaf(torch, 2)
    with torch.no_grad():
        y = f.apply(x)
    return y is x, y.requires_grad, x.requires_grad, y, x


@program
def write_into_one_of_two_views(torch):
    f = function(torch, forward=lambda ctx, x: (x[0], x[1]), backward=lambda ctx, g, h: torch.stack([g, h]))
    first, _ = f.apply(leaf(torch, 2) * 1)
    return str(caught(first.mul_, 2))


@program
def write_into_a_single_view(torch):
    f = function(torch, forward=lambda ctx, x: x[0], backward=lambda ctx, g: g)
    return str(caught(f.apply(leaf(torch, 2) * 1).mul_, 2))


# ---- gradients ----
@program
def complex_gradient_of_a_real_input(torch):
    f = function(torch, forward=lambda ctx, x: x * 1, backward=lambda ctx, g: g * (1 + 5j))
    x = leaf(torch, 2)
    return caught(f.apply(x).sum().backward), x.grad


@program
def real_gradient_of_a_complex_input(torch):
    f = function(torch, forward=lambda ctx, x: x * 1, backward=lambda ctx, g: g.real)
    x = torch.ones(2, dtype=torch.complex128, requires_grad=True)
    f.apply(x).sum().abs().backward()
    return x.grad


# ---- what is needed ----
def product(torch: Any, seen: list[Any]) -> Any:
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        seen.append(ctx.needs_input_grad)
        return g * y, g * x

    return function(
        torch,
        forward=lambda x, y: x * y,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        backward=backward,
    )


@program
def needed_under_transforms(torch):
    seen: list[Any] = []
    f = product(torch, seen)
    func = torch.func
    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    func.grad(lambda x: f.apply(x, y).sum())(x)
    func.grad(lambda x: f.apply(y, x).sum())(x)
    func.grad(lambda x: f.apply(x, torch.ones(2)).sum())(x)
    func.grad(lambda x: func.grad(lambda z: f.apply(x, z).sum())(x).sum())(x)
    func.grad(lambda x, z: f.apply(x, z).sum(), (0, 1))(x, y)
    func.grad(lambda x, z: f.apply(x, z).sum(), 1)(x, y)
    func.vjp(lambda x: f.apply(x, y), x)[1](torch.ones(2))
    return seen


@program
def needed_outside(torch):
    seen: list[Any] = []
    f = product(torch, seen)
    x, y = leaf(torch, 2), leaf(torch, 2)
    torch.autograd.grad(f.apply(x, y).sum(), x)
    f.apply(x, y).sum().backward(inputs=[y])
    f.apply(x, y.detach()).sum().backward()
    return seen


# ---- forward mode ----
def in_dual_level(torch: Any, forward: Any, jvp: Any) -> Any:
    fwd = torch.autograd.forward_ad

    def run() -> Any:
        with fwd.dual_level():
            given = fwd.make_dual(torch.ones(2), torch.ones(2) * 3)
            out = function(torch, forward=forward, jvp=jvp).apply(given)
            outs = out if isinstance(out, tuple) else (out,)
            return [(list(fwd.unpack_dual(o)), o is given) if isinstance(o, torch.Tensor) else o for o in outs]

    found = caught(run)
    return str(found) if isinstance(found, Exception) else found


def copied(ctx, x):
    return x * 1


@program
def jvp_returns_another_number_of_tangents(torch):
    return [
        in_dual_level(torch, copied, lambda ctx, t: (t, t)),
        in_dual_level(torch, copied, lambda ctx, t: ()),
        in_dual_level(torch, lambda ctx, x: (x * 1, x * 2), lambda ctx, t: t),
        in_dual_level(torch, lambda ctx, x: (x * 1, 5), lambda ctx, t: t),
        in_dual_level(torch, lambda ctx, x: (x * 1, 5), lambda ctx, t: (t, None)),
    ]


@program
def jvp_returns_no_tensor(torch):
    return [
        in_dual_level(torch, copied, lambda ctx, t: 3),
        in_dual_level(torch, lambda ctx, x: (x * 1, x * 2), lambda ctx, t: (t, [t])),
    ]


@program
def jvp_returns_a_tangent_of_a_constant(torch):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return x * 1, y

    return [
        in_dual_level(torch, forward, lambda ctx, t: (t, t)),
        in_dual_level(torch, forward, lambda ctx, t: (t, None)),
        in_dual_level(torch, lambda ctx, x: (x * 1, x.argmax()), lambda ctx, t: (t, t)),
    ]


@program
def jvp_of_an_input_written_into(torch):
    return [
        in_dual_level(torch, increment, lambda ctx, t: t.mul_(2)),
        in_dual_level(torch, increment, lambda ctx, t: t * 2),
        in_dual_level(torch, increment, lambda ctx, t: t),
    ]


@program
def jvp_of_a_view(torch):
    return [
        in_dual_level(torch, lambda ctx, x: x[:1], lambda ctx, t: t[:1]),
        in_dual_level(torch, lambda ctx, x: x[:1], lambda ctx, t: t[:1] * 1),
        in_dual_level(torch, lambda ctx, x: x[:1], lambda ctx, t: torch.ones(1)[:1]),
        in_dual_level(torch, lambda ctx, x: x, lambda ctx, t: t),
        in_dual_level(torch, lambda ctx, x: x, lambda ctx, t: t.view_as(t)),
    ]


@program
def jvp_of_a_view_in_a_transform(torch):
    f = function(torch, forward=lambda x: x[:1], setup_context=lambda ctx, i, o: None, jvp=lambda ctx, t: t[:1] * 2)
    return torch.func.jvp(f.apply, (torch.ones(2),), (torch.ones(2),))


@program
def written_input_is_the_output_in_a_transform(torch):
    f = function(
        torch,
        forward=lambda x: x.add_(1),
        setup_context=lambda ctx, inputs, output: ctx.mark_dirty(inputs[0]),
        backward=lambda ctx, g: g * 3,
        jvp=lambda ctx, t: t.mul_(2),
    )
    seen = []

    def run(x):
        y = x * 1
        z = f.apply(y)
        seen.append(z is y)
        return z

    ones = torch.ones(2)
    return torch.func.jvp(run, (ones,), (ones,)), torch.func.grad(lambda x: run(x).sum())(ones), seen


@program
def attributes_deleted_in_jvp(torch):
    def forward(ctx, x):
        ctx.k = 3
        return x * 1

    def jvp(ctx, t):
        t = t * ctx.k
        del ctx.k
        return t, hasattr(ctx, "k")

    return in_dual_level(torch, forward, lambda ctx, t: jvp(ctx, t)[0])


# ---- vmap ----
def mapped(torch: Any, vmap: Any, forward: Any = lambda x: x * 2, **more: Any) -> str:
    f = function(torch, forward=forward, setup_context=lambda ctx, i, o: None, vmap=vmap, **more)
    return str(caught(torch.func.vmap(f.apply), torch.ones(3, 2)))


@program
def out_dims_of_another_structure(torch):
    pair = lambda x: (x, x)  # noqa: E731
    return [
        mapped(torch, lambda info, dims, x: (x * 2, (0, 0))),
        mapped(torch, lambda info, dims, x: ((x, x), (0, 0, 0)), pair),
        mapped(torch, lambda info, dims, x: ((x, x), 0), pair),
    ]


@program
def out_dims_out_of_range(torch):
    return [mapped(torch, lambda info, dims, x: (x * 2, 5)), mapped(torch, lambda info, dims, x: (x * 2, -1))]


@program
def both_rules_for_batches(torch):
    return mapped(torch, lambda info, dims, x: (x * 2, 0), generate_vmap_rule=True)


# ---- ctx and nodes ----
@program
def ctx_in_forward(torch):
    seen = []

    def forward(ctx, x, y, k):
        names = ("to_save", "dirty_tensors", "non_differentiable", "saved_tensors", "_raw_saved_tensors")
        seen.append([getattr(ctx, name) for name in names])
        seen.append([(type(node).__name__, at) for node, at in ctx.next_functions])
        seen.append(caught(lambda: ctx.materialize_grads))
        seen.append(warned(ctx.mark_shared_storage, (x, y)))
        seen.append(warned(lambda: ctx.saved_variables))
        return x * y

    f = function(torch, forward=forward, backward=lambda ctx, g: (g, g, None))
    x = leaf(torch, 2)
    node = f.apply(x, x * 2, 3).grad_fn
    return seen, [(type(one).__name__, at) for one, at in node.next_functions]


@program
def repr_of_a_node(torch):
    node = function(torch, forward=copied, backward=lambda ctx, g: g).apply(leaf(torch, 2)).grad_fn
    return repr(node).split(" object at")[0]


@program
def calling_nodes(torch):
    x = leaf(torch, 2)
    one = torch.ones(2, dtype=torch.float64)
    product, unbound, accumulating = (x * 3).grad_fn, x.unbind(0)[0].grad_fn, (x * 3).grad_fn.next_functions[0][0]
    custom = function(torch, forward=copied, backward=lambda ctx, g: g * 7).apply(x).grad_fn
    calls = [
        (product, one),
        (product, one, one),
        (product,),
        (product, None),
        (product, 3),
        (unbound, one[0]),
        (unbound, one[0], None),
        (x.sort()[0].grad_fn, one),
        (x.sort()[0].grad_fn, one, one),
        (accumulating,),
        (accumulating, one, one),
        (custom, one),
        (custom.apply, one),
    ]
    return [caught(node, *grads) for node, *grads in calls]


# ---- saved tensors ----
def saving(torch: Any, **more: Any) -> Any:
    def forward(ctx, x, y):
        ctx.save_for_backward(x, None, y)
        return x * y

    def backward(ctx, g):
        x, _, y = ctx.saved_tensors
        return g * y, g * x

    return function(torch, **{"forward": forward, "backward": backward} | more)


@program
def hooks_on_raw_saved_tensors(torch):
    x = leaf(torch, 2)
    z = saving(torch).apply(x, x * 2)
    raw = z.grad_fn._raw_saved_tensors
    pair = (lambda t: t * 5, lambda t: t + 1)
    seen = [type(raw[0]).__name__, len(raw), caught(raw[1].register_hooks, *pair)]
    raw[0].register_hooks(*pair)
    seen += [z.grad_fn.saved_tensors, caught(raw[0].register_hooks, *pair)]
    z.sum().backward()
    return seen, x.grad, caught(lambda: z.grad_fn._raw_saved_tensors)


@program
def raw_saved_tensors_under_hooks(torch):
    x = leaf(torch, 2)
    pair = (lambda t: t * 5, lambda t: t + 1)
    with torch.autograd.graph.saved_tensors_hooks(*pair):
        z = saving(torch).apply(x, x * 2)
    return caught(z.grad_fn._raw_saved_tensors[2].register_hooks, *pair), z.grad_fn.saved_tensors


@program
def saved_tensors_read_once(torch):
    seen = []

    def backward(ctx, g):
        seen.append(caught(lambda: ctx.saved_tensors))
        seen.append(caught(lambda: ctx.saved_tensors))
        return g, g

    f = saving(torch, backward=backward, clear_saved_tensors_on_access=True)
    x = leaf(torch, 2)
    y = f.apply(x, x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return seen, torch.autograd.Function.clear_saved_tensors_on_access


test_as_torch, test_recording_is_torchs = program.tests()
