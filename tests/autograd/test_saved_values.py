"""Saved values and their hooks in unusual circumstances."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("saved_values")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


def hooks(torch: Any, pack: Any, unpack: Any) -> Any:
    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


@program
def pack_may_return_anything(torch):
    kept = {}

    def pack(t):
        kept[len(kept)] = t.detach().clone()
        return len(kept) - 1

    x = leaf(torch)
    with hooks(torch, pack, kept.get):
        y = (x * x).exp().sum()
    y.backward()
    return x.grad, len(kept)


@program
def pack_may_return_none(torch):
    x = leaf(torch)
    value = torch.full((3,), 2.0, dtype=torch.float64)
    with hooks(torch, lambda t: None, lambda n: value):
        y = x.exp().sum()
    y.backward()
    return x.grad


@program
def pack_raises(torch):
    x = leaf(torch)

    def fail(t):
        raise ValueError("pack")

    with hooks(torch, fail, lambda t: t):
        first = caught(x.exp)
    return first, x.exp().requires_grad


@program
def unpack_returns_another_dtype(torch):
    x = leaf(torch)
    with hooks(torch, lambda t: t, lambda t: t.float()):
        y = x.exp()
    y.sum().backward()
    return x.grad.dtype


@program
def pack_sees_detached_inputs_of_the_right_kind(torch):
    log, x = [], leaf(torch)
    w = torch.ones(3, dtype=torch.float64)

    def pack(t):
        log.append([t is x, t.requires_grad, list(t.shape)])
        return t

    with hooks(torch, pack, lambda t: t):
        (x * w).exp()
    return log


@program
def unpacked_at_every_use(torch):
    log, x = [], leaf(torch)
    with hooks(torch, lambda t: t, lambda t: log.append("unpack") or t):
        y = x.exp()
    y.sum().backward(retain_graph=True)
    y.sum().backward(retain_graph=True)
    _ = y.grad_fn._saved_result
    return log


@program
def unpacked_value_is_part_of_the_graph(torch):
    x = leaf(torch)
    with hooks(torch, lambda t: t, lambda t: t):
        y = x**3
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return torch.autograd.grad(g.sum(), x)


@program
def unpack_by_number_and_twice_differentiated(torch):
    kept, x = [], leaf(torch)
    with hooks(torch, lambda t: kept.append(t) or len(kept) - 1, lambda i: kept[i]):
        y = x**3
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return torch.autograd.grad(g.sum(), x)


@program
def packed_values_do_not_notice_writes(torch):
    x = leaf(torch)
    y = x * 1
    with hooks(torch, lambda t: t.clone(), lambda t: t):
        z = y.exp() * y
    y.add_(1)
    z.sum().backward()
    return x.grad


@program
def identity_hooks_do_not_notice_writes(torch):
    x = leaf(torch)
    y = x * 1
    with hooks(torch, lambda t: t, lambda t: t):
        z = y * y
    y.add_(1)
    return caught(z.sum().backward), x.grad


@program
def constants_are_packed(torch):
    log, x = [], leaf(torch)
    with hooks(torch, lambda t: log.append(t.tolist()) or t, lambda t: t):
        x * torch.full((3,), 7.0, dtype=torch.float64)
        x * 7
    return log


@program
def nothing_is_packed_without_grad(torch):
    log, x = [], leaf(torch)
    with hooks(torch, lambda t: log.append("pack") or t, lambda t: t):
        with torch.no_grad():
            x.exp()
        x.detach().exp()
        x + 1
    return log


@program
def nested_hooks_and_their_end(torch):
    log, x = [], leaf(torch)
    mark = lambda name: lambda t: log.append(name) or t  # noqa: E731
    with hooks(torch, mark("outer"), mark("unpack outer")):
        a = x.exp()
        with hooks(torch, mark("inner"), mark("unpack inner")):
            b = x.sin()
        c = x.cos()
    d = x.tanh()
    (a + b + c + d).sum().backward()
    return log


@program
def hooks_after_an_error_inside(torch):
    log, x = [], leaf(torch)

    def fails():
        with hooks(torch, lambda t: log.append("pack") or t, lambda t: t):
            raise ValueError("inside")

    first = caught(fails)
    x.exp()
    return first, log


@program
def hooks_inside_backward(torch):
    log, x = [], leaf(torch)

    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with hooks(torch, lambda t: log.append("pack") or t, lambda t: t):
                return g * x.exp()

    (g,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    return torch.autograd.grad(g.sum(), x), log


@program
def raw_saved_of_a_result(torch):
    x = leaf(torch)
    y = x.exp()
    raw = y.grad_fn._raw_saved_result
    raw.register_hooks(lambda t: t * 1, lambda t: t * 2)
    y.sum().backward()
    return type(raw).__name__, x.grad


@program
def raw_saved_twice(torch):
    y = leaf(torch).exp()
    raw = y.grad_fn._raw_saved_result
    raw.register_hooks(lambda t: t, lambda t: t)
    return caught(raw.register_hooks, lambda t: t, lambda t: t)


@program
def raw_saved_with_bad_hooks(torch):
    y = leaf(torch).exp()
    return caught(y.grad_fn._raw_saved_result.register_hooks, lambda: None, lambda t: t)


@program
def raw_saved_of_nothing(torch):
    y = torch.ones(3) * leaf(torch)
    return caught(y.grad_fn._raw_saved_other.register_hooks, lambda t: t, lambda t: t)


@program
def raw_saved_after_backward(torch):
    y = leaf(torch).exp()
    y.sum().backward()
    raw = caught(lambda: y.grad_fn._raw_saved_result)
    return caught(raw.register_hooks, lambda t: t, lambda t: t)


@program
def raw_saved_that_writes(torch):
    y = leaf(torch).exp()
    return caught(y.grad_fn._raw_saved_result.register_hooks, lambda t: t.add_(1), lambda t: t)


@program
def saved_leaf_is_the_leaf(torch):
    x = leaf(torch)
    y = x * x
    z = x.exp()
    return y.grad_fn._saved_self is x, z.grad_fn._saved_result is z, z.grad_fn._saved_result.grad_fn is z.grad_fn


@program
def saved_values_of_indexing_and_reductions(torch):
    x = leaf(torch)
    a, b, c = x[1:], x.sum(0), x.max(0)[0]
    return a.grad_fn._saved_start, b.grad_fn._saved_self_sym_sizes, c.grad_fn._saved_dim, c.grad_fn._saved_keepdim


@program
def disabled_inside_enabled(torch):
    graph = torch.autograd.graph

    def nested():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t), graph.disable_saved_tensors_hooks("not here"):
            pass

    return caught(nested)


@program
def disabled_twice(torch):
    graph = torch.autograd.graph

    def inner():
        hooked = graph.saved_tensors_hooks(lambda t: t, lambda t: t)
        with graph.disable_saved_tensors_hooks("outer"), graph.disable_saved_tensors_hooks("inner"), hooked:
            pass

    def outer():
        with graph.disable_saved_tensors_hooks("outer"):
            with graph.disable_saved_tensors_hooks("inner"):
                pass
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass

    return caught(inner), caught(outer)


@program
def disabled_as_decorator(torch):
    @torch.autograd.graph.disable_saved_tensors_hooks("no hooks")
    def inside(x):
        return x.exp()

    def packing(x):
        with hooks(torch, lambda t: t, lambda t: t):
            return inside(x)

    x = leaf(torch)
    return inside(x), caught(packing, x)


@program
def save_on_cpu_with_views_and_second_order(torch):
    x = leaf(torch)
    with torch.autograd.graph.save_on_cpu():
        y = (x[1:] * x[:2]).sin()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@program
def mutation_allowed_of_saved(torch):
    x = leaf(torch)
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        y = x * 1
        z = y.exp() * y
        y.sin_()
        z.sum().backward()
    return x.grad, hasattr(context, "clear")


@program
def custom_function_saves_through_hooks(torch):
    log, x = [], leaf(torch)

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(x, y, None)
            ctx.kept = y
            return y

        @staticmethod
        def backward(ctx, g):
            x, y, nothing = ctx.saved_tensors
            log.append([nothing is None, y is ctx.kept])
            return g * x * y

    with hooks(torch, lambda t: log.append(["pack", t.tolist()]) or t, lambda t: log.append("unpack") or t):
        y = Cube.apply(x)
    y.sum().backward()
    return log, x.grad


test_as_torch, test_recording_is_torchs = program.tests()
