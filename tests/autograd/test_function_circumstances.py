"""Custom functions in unusual circumstances: views, writes, odd outputs and odd gradients."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("function_circumstances")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


def make(torch: Any, forward: Any, backward: Any = None) -> Any:
    """Make a Function of two functions of ctx."""

    class Made(torch.autograd.Function):
        pass

    Made.forward = staticmethod(forward)
    if backward is not None:
        Made.backward = staticmethod(backward)
    return Made


def identity(ctx, g, *more):
    return g


@program
def two_views_of_the_input(torch):
    f = make(torch, lambda ctx, x: (x[:1], x[1:]), lambda ctx, a, b: torch.cat([a, b]))
    x = leaf(torch)
    a, b = f.apply(x * 1)
    return a, b, a._is_view(), caught(a.mul_, 2), caught(b.add_, 1)


@program
def one_view_of_the_input_written(torch):
    f = make(torch, lambda ctx, x: x.view(3, 1), lambda ctx, g: g.view(3))
    y = f.apply(leaf(torch) * 1)
    return y._is_view(), caught(y.mul_, 2), y.grad_fn.name()


@program
def view_of_an_intermediate(torch):
    f = make(torch, lambda ctx, x: (x * 2)[1:], lambda ctx, g: torch.cat([torch.zeros(1), g]) * 2)
    y = f.apply(leaf(torch))
    return y._is_view(), caught(y.mul_, 2)


@program
def input_returned_and_written_through(torch):
    f = make(torch, lambda ctx, x: x, identity)
    x = leaf(torch)
    base = x * 1
    y = f.apply(base)
    return y is base, y._is_view(), caught(y.mul_, 3), base


@program
def leaf_returned_and_written(torch):
    f = make(torch, lambda ctx, x: x, identity)
    x = leaf(torch)
    y = f.apply(x)
    return y is x, y.is_leaf, caught(y.mul_, 3)


@program
def input_returned_twice(torch):
    f = make(torch, lambda ctx, x: (x, x), lambda ctx, a, b: a + 10 * b)
    x = leaf(torch)
    a, b = f.apply(x)
    (a + 2 * b).sum().backward()
    return a is b, x.grad


@program
def one_result_returned_twice(torch):
    def forward(ctx, x):
        y = x * 2
        return y, y

    f = make(torch, forward, lambda ctx, a, b: a + 10 * b)
    x = leaf(torch)
    a, b = f.apply(x)
    (a + 2 * b).sum().backward()
    return a is b, x.grad


@program
def dirty_leaf(torch):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    f = make(torch, forward, lambda ctx, g: g * 2)
    return caught(f.apply, leaf(torch))


@program
def dirty_that_is_no_input(torch):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    f = make(torch, forward, lambda ctx, g: g * 2)
    x = leaf(torch)
    found = caught(f.apply, x)
    return found


@program
def dirty_that_is_no_tensor(torch):
    def forward(ctx, x):
        ctx.mark_dirty(3)
        return x * 1

    return str(caught(make(torch, forward, identity).apply, leaf(torch)))[:50]


@program
def dirty_among_several(torch):
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.mul_(2), y * 3

    f = make(torch, forward, lambda ctx, a, b: (a * 2, b * 3))
    x, y = leaf(torch), leaf(torch)
    base = x * 1
    a, b = f.apply(base, y)
    (a + b).sum().backward()
    return a is base, x.grad, y.grad, base._version


@program
def written_without_mark_dirty(torch):
    f = make(torch, lambda ctx, x: x.mul_(2), lambda ctx, g: g * 2)
    x = leaf(torch)
    base = x * 1
    y = f.apply(base)
    y.sum().backward()
    return y is base, x.grad, base._version


@program
def dirty_view(torch):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    f = make(torch, forward, lambda ctx, g: g * 20)
    x = leaf(torch)
    base = x * 1
    f.apply(base[1:])
    base.sum().backward()
    return x.grad, base.grad_fn.name()


@program
def dirty_and_not_differentiable(torch):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x.mul_(2)

    x = leaf(torch) * 1
    return caught(make(torch, forward, identity).apply, x)


@program
def odd_outputs(torch):
    found = []
    for made in (
        lambda ctx, x: None,
        lambda ctx, x: 3,
        lambda ctx, x: [x * 2, x * 3],
        lambda ctx, x: {"a": x * 2},
        lambda ctx, x: (x * 2, None, "text", 4),
        lambda ctx, x: ((x * 2,), x * 3),
        lambda ctx, x: (),
    ):
        out = caught(make(torch, made, identity).apply, leaf(torch))
        if isinstance(out, (tuple, list)):
            found.append([type(out).__name__, *(getattr(o, "requires_grad", o) for o in out if type(o) is not tuple)])
        else:
            found.append(out if isinstance(out, Exception) else str(type(out).__name__))
    return found


@program
def backward_gets_none_for_other_outputs(torch):
    log = []
    f = make(
        torch, lambda ctx, x: (x * 2, 5, "s"), lambda ctx, *g: log.append([None if o is None else 1 for o in g]) or g[0]
    )
    f.apply(leaf(torch))[0].sum().backward()
    return log


@program
def odd_gradients(torch):
    found = []
    for given in (3, "g", [1], lambda: 1, (None,), ()):
        x = leaf(torch)
        y = make(torch, lambda ctx, x: x * 1, lambda ctx, g, given=given: given).apply(x)
        found.append([caught(y.sum().backward), x.grad])
    return found


@program
def gradient_of_other_kinds(torch):
    found = []
    one = lambda *shape, **kw: torch.ones(*shape, **kw)  # noqa: E731
    for given in (
        one(3),
        one(3, dtype=torch.float16),
        one(1, dtype=torch.float64),
        one((), dtype=torch.float64),
        one(2, 3, dtype=torch.float64),
        one(3, dtype=torch.int64),
        one(3, 3, dtype=torch.float64),
        one(4, dtype=torch.float64),
        one(0, dtype=torch.float64),
    ):
        x = leaf(torch)
        y = make(torch, lambda ctx, x: x * 1, lambda ctx, g, given=given: given).apply(x)
        found.append([caught(y.sum().backward), x.grad])
    return found


@program
def saved_twice_and_read_twice(torch):
    log = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(x * 2, x * 3)
        return x * 1

    def backward(ctx, g):
        log.append(len(ctx.saved_tensors))
        return g

    make(torch, forward, backward).apply(leaf(torch)).sum().backward()
    return log


@program
def nothing_saved(torch):
    log = []
    f = make(torch, lambda ctx, x: x * 1, lambda ctx, g: log.append(ctx.saved_tensors) or g)
    f.apply(leaf(torch)).sum().backward()
    return log


@program
def saved_in_backward(torch):
    def backward(ctx, g):
        ctx.save_for_backward(g)
        return g

    x = leaf(torch)
    y = make(torch, lambda ctx, x: x * 1, backward).apply(x)
    return caught(y.sum().backward), x.grad


@program
def saved_things_that_are_no_tensors(torch):
    found = []
    for value in (3, "text", [1]):

        def forward(ctx, x, value=value):
            ctx.save_for_backward(value)
            return x * 1

        found.append(caught(make(torch, forward, identity).apply, leaf(torch)))
    return found


@program
def needs_input_grad_of_everything(torch):
    log = []
    f = make(
        torch,
        lambda ctx, x, n, y, s: log.append(["forward", *ctx.needs_input_grad]) or x * y,
        lambda ctx, g: log.append(["backward", *ctx.needs_input_grad]) or (g, None, None, None),
    )
    x, y = leaf(torch), torch.ones(3, dtype=torch.float64)
    f.apply(x, 3, y, "s").sum().backward()
    f.apply(y, 3, y, None)
    with torch.no_grad():
        f.apply(x, 3, y, None)
    return log


@program
def needs_input_grad_with_chosen_inputs(torch):
    log = []
    f = make(torch, lambda ctx, x, y: x * y, lambda ctx, g: log.append(list(ctx.needs_input_grad)) or (g, g))
    x, y = leaf(torch), leaf(torch)
    torch.autograd.grad(f.apply(x, y).sum(), x)
    return log


@program
def no_backward_and_no_forward(torch):
    class Empty(torch.autograd.Function):
        pass

    x = leaf(torch)
    y = make(torch, lambda ctx, x: x * 1).apply(x)
    return caught(Empty.apply, x), caught(y.sum().backward)


@program
def vjp_instead_of_backward(torch):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    x = leaf(torch)
    Made.apply(x).sum().backward()
    return x.grad


@program
def vjp_and_backward(torch):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 3

    return caught(Made.apply(leaf(torch)).sum().backward)


@program
def instances_are_refused(torch):
    f = make(torch, lambda ctx, x: x, identity)
    return caught(lambda: f()(leaf(torch)))


@program
def keyword_arguments(torch):
    f = make(torch, lambda ctx, x, scale=2: x * scale, lambda ctx, g: (g, None))
    x = leaf(torch)
    return caught(f.apply, x, scale=3), caught(f.apply, x=x), caught(f.apply, x, 3, 4)


@program
def inside_inference_mode(torch):
    f = make(torch, lambda ctx, x: x * 2, identity)
    x = leaf(torch)
    with torch.inference_mode():
        y = f.apply(x)
    return y.requires_grad, y.is_inference()


@program
def grad_mode_in_forward_and_backward(torch):
    log = []
    f = make(
        torch,
        lambda ctx, x: log.append(torch.is_grad_enabled()) or x * 2,
        lambda ctx, g: log.append([torch.is_grad_enabled(), g.requires_grad]) or g * 2,
    )
    x = leaf(torch)
    f.apply(x).sum().backward()
    torch.autograd.grad((f.apply(x) ** 2).sum(), x, create_graph=True)
    return log


@program
def enable_grad_in_forward(torch):
    def forward(ctx, x):
        with torch.enable_grad():
            y = x * 2
        ctx.inner = y.requires_grad
        return y.detach()

    y = make(torch, forward, lambda ctx, g: g * 7).apply(leaf(torch))
    return y.grad_fn.inner, y.requires_grad


@program
def backward_called_in_forward(torch):
    def forward(ctx, x):
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            (inner * inner).sum().backward()
        ctx.save_for_backward(inner.grad)
        return x * 1

    x = leaf(torch)
    make(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x).sum().backward()
    return x.grad


@program
def backward_called_in_backward(torch):
    def backward(ctx, g):
        with torch.enable_grad():
            inner = leaf(torch)
            (inner**3).sum().backward()
        return g * inner.grad

    x = leaf(torch)
    make(torch, lambda ctx, x: x * 1, backward).apply(x).sum().backward()
    return x.grad


@program
def not_differentiable_input_and_float(torch):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y, x * 3

    x = leaf(torch)
    y, z = make(torch, forward, lambda ctx, a, b: b * 3).apply(x)
    z.sum().backward()
    return y.requires_grad, y.grad_fn, z.requires_grad, x.grad


@program
def all_outputs_not_differentiable(torch):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    y = make(torch, forward, identity).apply(leaf(torch))
    return y.requires_grad, y.grad_fn, y.is_leaf


@program
def input_not_differentiable_returned(torch):
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return x

    x = leaf(torch)
    y = caught(make(torch, forward, identity).apply, x)
    return y.requires_grad if not isinstance(y, Exception) else y, x.requires_grad


@program
def names_and_attributes_of_the_node(torch):
    y = make(torch, lambda ctx, x: x * 1, identity).apply(leaf(torch))
    node = y.grad_fn
    node.extra_thing = 3
    return (
        node.name(),
        type(node).__name__,
        node.extra_thing,
        isinstance(node, torch.autograd.graph.Node),
        len(node.next_functions),
    )


@program
def once_differentiable_and_constants(torch):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2, y * 3

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, a, b):
            return a * 2, None

    x, y = leaf(torch), torch.ones(3, dtype=torch.float64)
    out = Made.apply(x, y)
    g = torch.autograd.grad((out[0] ** 2).sum(), x, create_graph=True)[0]
    return g.requires_grad, caught(torch.autograd.grad, g.sum(), x)


@program
def deep_copy_of_ctx_and_pickle(torch):
    import copy
    import pickle

    y = make(torch, lambda ctx, x: x * 1, identity).apply(leaf(torch))
    found = [caught(copy.deepcopy, y), caught(pickle.dumps, y)]
    return [one if isinstance(one, Exception) else "copied" for one in found][:1]


@program
def same_input_twice(torch):
    f = make(torch, lambda ctx, a, b: a * b, lambda ctx, g: (g * 2, g * 5))
    x = leaf(torch)
    f.apply(x, x).sum().backward()
    return x.grad


@program
def gradient_of_one_input_only(torch):
    f = make(torch, lambda ctx, a, b: a * b, lambda ctx, g: (g, None))
    x, y = leaf(torch), leaf(torch)
    f.apply(x, y).sum().backward()
    return x.grad, y.grad, caught(torch.autograd.grad, f.apply(x, y).sum(), y)


@program
def materialized_gradients_of_integers(torch):
    log = []
    f = make(
        torch,
        lambda ctx, x: (x * 2, torch.ones(2, dtype=torch.int64)),
        lambda ctx, a, b: log.append([a.dtype, None if b is None else [b.dtype, list(b.shape)]]) or a,
    )
    f.apply(leaf(torch))[0].sum().backward()
    return [[str(part) for part in row] for row in log]


@program
def setup_context_and_outputs(torch):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(x, n):
            return x * n, n

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.seen = [len(inputs), type(output).__name__, inputs[1]]

        @staticmethod
        def backward(ctx, g, _):
            return g * 3, None

    x = leaf(torch)
    y, n = Made.apply(x, 3)
    y.sum().backward()
    return y.grad_fn.seen, n, x.grad


test_as_torch, test_recording_is_torchs = program.tests()
