"""Custom Functions: what ctx offers, what backward gets and may return, as in torch."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("function")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


def define(torch: Any, forward: Any, backward: Any, setup: Any = None, **more: Any) -> Any:
    """Make a Function of plain functions."""
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    if setup is not None:
        body["setup_context"] = staticmethod(setup)
    body |= {name: staticmethod(value) if callable(value) else value for name, value in more.items()}
    return type("Made", (torch.autograd.Function,), body)


def cube(torch: Any) -> Any:
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2

    return define(torch, forward, backward)


# ---- the two forms ----
@program
def one_part(torch):
    x = leaf(torch)
    cube(torch).apply(x).sum().backward()
    return x.grad


@program
def two_parts(torch):
    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * 3 * y / x

    x = leaf(torch)
    define(torch, lambda x: x**3, backward, setup).apply(x).sum().backward()
    return x.grad


@program
def double_backward(torch):
    x = leaf(torch)
    (g,) = torch.autograd.grad(cube(torch).apply(x).sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@program
def double_backward_through_saved_output(torch):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    f = define(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(torch)
    (g,) = torch.autograd.grad(f.apply(x).sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@program
def double_backward_through_saved_intermediate(torch):
    def forward(ctx, x):
        mid = x.exp()
        ctx.save_for_backward(x, mid)
        return mid * x, mid

    def backward(ctx, g, g_mid):
        x, mid = ctx.saved_tensors
        return g * mid * (1 + x) + g_mid * mid

    x = leaf(torch)
    y, _ = define(torch, forward, backward).apply(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@program
def straight_through(torch):
    f = define(torch, lambda ctx, x: x.round(), lambda ctx, g: g)
    x = leaf(torch, 0.4, 1.6)
    f.apply(x).sum().backward()
    return x.grad


@program
def forward_runs_without_grad_backward_by_create_graph(torch):
    log = []

    def forward(ctx, x):
        log.append(torch.is_grad_enabled())
        return x * 2

    def backward(ctx, g):
        log.append([torch.is_grad_enabled(), g.requires_grad])
        return g * 2

    x = leaf(torch)
    y = define(torch, forward, backward).apply(x).sum()
    y.backward(retain_graph=True)
    torch.autograd.grad(y, x, create_graph=True)
    return log


@program
def requires_grad_of_results(torch):
    f = define(torch, lambda ctx, x, y: x * y, lambda ctx, g: (g, g))
    a, c = leaf(torch), torch.ones(3, dtype=torch.float64)
    with torch.no_grad():
        quiet = f.apply(a, a)
    return [
        f.apply(a, c).requires_grad,
        f.apply(c, c).requires_grad,
        quiet.requires_grad,
        f.apply(a, a).is_leaf,
    ]


@program
def needs_input_grad(torch):
    log = []

    def forward(ctx, *args):
        log.append(list(ctx.needs_input_grad))
        return args[0] * args[1]

    def backward(ctx, g):
        log.append(list(ctx.needs_input_grad))
        return g, None, None, None

    a, c = leaf(torch), torch.ones(3, dtype=torch.float64)
    define(torch, forward, backward).apply(a, c, 2.0, None).sum().backward()
    return log


@program
def needs_input_grad_under_no_grad(torch):
    log = []
    f = define(torch, lambda ctx, x: (log.append(list(ctx.needs_input_grad)), x * 2)[1], lambda ctx, g: g)
    with torch.no_grad():
        f.apply(leaf(torch))
    return log


@program
def node_is_ctx(torch):
    held = []
    f = define(torch, lambda ctx, x: (held.append(ctx), x * 2)[1], lambda ctx, g: g)
    y = f.apply(leaf(torch))
    return [
        y.grad_fn is held[0],
        y.grad_fn.name(),
        type(y.grad_fn).__name__,
        y.grad_fn.next_functions[0][0].name(),
    ]


@program
def attributes_of_ctx(torch):
    def forward(ctx, x, power):
        ctx.power = power
        ctx.save_for_backward(x)
        return x**power

    f = define(torch, forward, lambda ctx, g: (g * ctx.power * ctx.saved_tensors[0] ** (ctx.power - 1), None))
    x = leaf(torch)
    y = f.apply(x, 3)
    y.sum().backward()
    return x.grad, y.grad_fn.power


# ---- arguments ----
@program
def non_tensor_arguments(torch):
    seen = []

    def forward(ctx, x, number, text, nothing, many):
        seen.append([number, text, nothing, len(many)])
        return x * number

    x = leaf(torch)
    f = define(torch, forward, lambda ctx, g: (g * 3, None, None, None, None))
    f.apply(x, 3, "text", None, [1, 2]).sum().backward()
    return seen, x.grad


@program
def tensors_inside_lists_are_not_followed(torch):
    x, w = leaf(torch), leaf(torch)
    f = define(torch, lambda ctx, x, ws: x * ws[0], lambda ctx, g: (g, None))
    y = f.apply(x, [w])
    y.sum().backward()
    return x.grad, w.grad


@program
def extra_nones_are_allowed(torch):
    x = leaf(torch)
    define(torch, lambda ctx, x: x * 2, lambda ctx, g: (g, None, None)).apply(x).sum().backward()
    return x.grad


@program
def defaults_in_two_parts(torch):
    seen = []

    def forward(x, scale=3.0):
        return x * scale

    def setup(ctx, inputs, output):
        seen.append(len(inputs))
        ctx.scale = inputs[1]

    x = leaf(torch)
    define(torch, forward, lambda ctx, g: (g * ctx.scale, None), setup).apply(x).sum().backward()
    return x.grad, seen


@program
def same_tensor_twice(torch):
    x = leaf(torch)
    define(torch, lambda ctx, a, b: a * b, lambda ctx, g: (g, g * 10)).apply(x, x).sum().backward()
    return x.grad


@program
def none_for_a_tensor(torch):
    x, w = leaf(torch), leaf(torch)
    define(torch, lambda ctx, a, b: a * b, lambda ctx, g: (None, g)).apply(x, w).sum().backward()
    return x.grad, w.grad


@program
def gradient_for_input_without_grad_is_dropped(torch):
    x, c = leaf(torch), torch.ones(3, dtype=torch.float64)
    define(torch, lambda ctx, a, b: a * b, lambda ctx, g: (g, g)).apply(x, c).sum().backward()
    return x.grad, c.grad


@program
def gradient_is_summed_to_the_input(torch):
    x, w = leaf(torch, 2.0), leaf(torch)
    define(torch, lambda ctx, a, b: a * b, lambda ctx, g: (g * 5, g)).apply(x, w).sum().backward()
    return x.grad


@program
def gradient_of_other_dtype_is_cast(torch):
    x = leaf(torch)
    define(torch, lambda ctx, a: a * 2, lambda ctx, g: g.to(torch.float32)).apply(x).sum().backward()
    return x.grad


# ---- outputs ----
@program
def several_outputs(torch):
    x = leaf(torch)
    f = define(torch, lambda ctx, x: (x * 2, x * 3), lambda ctx, a, b: a * 2 + b * 3)
    a, b = f.apply(x)
    (a * 10 + b).sum().backward()
    return x.grad, [a.output_nr, b.output_nr, a.grad_fn is b.grad_fn]


@program
def unused_output_gets_zeros(torch):
    seen, x = [], leaf(torch)
    f = define(torch, lambda ctx, x: (x * 2, x[:2] * 3), lambda ctx, a, b: (seen.append(b), a * 2)[1])
    f.apply(x)[0].sum().backward()
    return seen, x.grad


@program
def unused_output_gets_none(torch):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    x = leaf(torch)
    define(torch, forward, lambda ctx, a, b: (seen.append([a is None, b is None]), a)[1]).apply(x)[0].sum().backward()
    return seen, x.grad


@program
def no_gradient_at_all_gets_zeros(torch):
    seen, x = [], leaf(torch)
    nothing = define(torch, lambda ctx, x: x * 2, lambda ctx, g: None)
    f = define(torch, lambda ctx, x: x * 2, lambda ctx, g: (seen.append(g), g)[1])
    nothing.apply(f.apply(x)).sum().backward()
    return seen, x.grad


@program
def no_gradient_at_all_gets_none(torch):
    seen, x = [], leaf(torch)

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    nothing = define(torch, lambda ctx, x: x * 2, lambda ctx, g: None)
    f = define(torch, forward, lambda ctx, g: (seen.append(g), g)[1])
    nothing.apply(f.apply(x)).sum().backward()
    return seen, x.grad


@program
def outputs_that_are_not_tensors(torch):
    x = leaf(torch)
    f = define(torch, lambda ctx, x: (x * 2, "text", None, 5), lambda ctx, *gs: gs[0] * 2)
    y, *rest = f.apply(x)
    y.sum().backward()
    return x.grad, rest


@program
def list_of_outputs(torch):
    f = define(torch, lambda ctx, x: [x * 2], lambda ctx, *gs: gs[0])
    out = f.apply(leaf(torch))
    return type(out), [one.requires_grad for one in out]


@program
def mark_non_differentiable(torch):
    seen = []

    def forward(ctx, x):
        order = x.argsort()
        twice = x * 2
        ctx.mark_non_differentiable(order, twice)
        return x[order] * 3, order, twice

    def backward(ctx, g, g_order, g_twice):
        seen.append([g_order, g_twice])
        return g * 3

    x = leaf(torch)
    a, b, c = define(torch, forward, backward).apply(x)
    a.sum().backward()
    return [t.requires_grad for t in (a, b, c)], [t.is_leaf for t in (a, b, c)], seen, x.grad


@program
def integer_output_is_not_differentiable(torch):
    x = leaf(torch)
    f = define(torch, lambda ctx, x: (x * 2, x.argsort()), lambda ctx, a, b: a * 2)
    a, b = f.apply(x)
    a.sum().backward()
    return a.requires_grad, b.requires_grad, x.grad


@program
def input_returned_as_it_is(torch):
    x = leaf(torch)
    y = define(torch, lambda ctx, x: x, lambda ctx, g: g * 10).apply(x)
    y.sum().backward()
    return y is x, y.grad_fn, x.grad, y._is_view()


@program
def input_returned_then_written(torch):
    x = leaf(torch) * 1
    y = define(torch, lambda ctx, x: x, lambda ctx, g: g * 10).apply(x)
    return caught(y.add_, 1)


@program
def non_leaf_input_returned_without_grad(torch):
    c = torch.ones(3, dtype=torch.float64)
    y = define(torch, lambda ctx, x: x, lambda ctx, g: g * 10).apply(c)
    return y is c, y.requires_grad


@program
def view_of_input_returned(torch):
    x = leaf(torch)
    y = define(torch, lambda ctx, x: x[:2], lambda ctx, g: torch.cat([g * 10, g[:1] * 0])).apply(x)
    y.sum().backward()
    return y._is_view(), x.grad


@program
def view_of_input_returned_then_written(torch):
    x = leaf(torch) * 1
    y = define(torch, lambda ctx, x: x.view(-1), lambda ctx, g: g * 10).apply(x)
    return caught(y.add_, 1)


@program
def saved_input_also_returned(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x

    x = leaf(torch)
    define(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0] * 10).apply(x).sum().backward()
    return x.grad


test_as_torch, test_recording_is_torchs = program.tests()
