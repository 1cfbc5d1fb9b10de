"""What a graph remembers, and what small programs of views, writes and second backwards make of it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from tests.autograd.recording import Programs, caught, warned

program = Programs("graph_of_small_programs")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


@program
def a_given_gradient_stays_the_same_object(torch):
    x = torch.nn.Parameter(torch.zeros(2))
    g = torch.ones(2)
    x.grad = g
    (x * 2).sum().backward()
    return x.grad is g, g


@program
def backward_of_a_function_of_a_gradient(torch):
    x = leaf(torch)
    y = (x**3).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    z = (g * x).sum()
    z.backward()
    return x.grad


@program
def an_index_that_is_used_twice(torch):
    x = leaf(torch)
    x[[0, 0, 2]].sum().backward()
    return x.grad


@program
def writing_by_a_mask(torch):
    x = leaf(torch)
    y = torch.zeros(3, dtype=torch.float64)
    y[y == 0] = x * 2
    y.sum().backward()
    return x.grad, y.grad_fn.name()


@program
def overwritten_elements_get_no_gradient(torch):
    x = leaf(torch)
    y = x * 2
    y[0] = 0
    y.sum().backward()
    return x.grad


@program
def a_tensor_that_nobody_needs_is_freed(torch):
    x = leaf(torch)
    y = x * 2
    r = weakref.ref(y)
    z = y + 1
    del y
    gc.collect()
    return r() is None, z.requires_grad


@program
def writing_into_a_detached_copy(torch):
    x = leaf(torch)
    y = x + 2
    y = y.detach()
    y.add_(1)
    return y.requires_grad, x


@program
def detaching_a_view_in_place(torch):
    x = leaf(torch)
    y = (x * 1)[1:]
    return caught(y.detach_)


@program
def detached_views(torch):
    x = leaf(torch) * 1
    v = x.view(3)
    return v.detach()._is_view(), v._is_view()


@program
def conversions_of_dtype(torch):
    x = leaf(torch)
    return (
        [str(caught(getattr(x, n)).dtype) for n in ("float", "double", "int", "long", "half", "bool")],
        x.float().requires_grad,
        x.int().requires_grad,
    )


@program
def function_that_returns_its_leaf(torch):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a, a + b

        @staticmethod
        def backward(ctx, ga, gab):
            return ga + gab, gab

    hook = []
    x, y = leaf(torch), leaf(torch)
    q, p_ = Made.apply(x, y)
    q.register_hook(lambda g: hook.append("q"))
    x.register_hook(lambda g: hook.append("x"))
    (q + p_).sum().backward()
    return x.grad, y.grad, hook


@program
def function_that_writes_its_input(torch):
    class Made(torch.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_dirty(a)
            return a.add_(b), b + 2

        @staticmethod
        def backward(ctx, ga, gb):
            return ga, ga + gb

    x = torch.ones(3, dtype=torch.float64)
    y = leaf(torch)
    q, p_ = Made.apply(x, y)
    (q + p_ + x).sum().backward()
    return q is x, y.grad, q.requires_grad


@program
def elements_of_a_constant_become_recorded(torch):
    x = torch.zeros(3, dtype=torch.float64)
    y = leaf(torch)
    z = leaf(torch)
    x[0] = y[0]
    x[1] = 2 * z[1]
    x.sum().backward()
    return x.requires_grad, x.is_leaf, y.grad, z.grad


@program
def written_first_and_then_a_leaf(torch):
    a = torch.ones(3)
    a.add_(5)
    a.requires_grad = True
    a.sum().backward()
    b = torch.ones(3)
    b.add_(5)
    b.requires_grad = True
    return a.grad, caught(b.add_, 5)


@program
def constants_among_the_roots(torch):
    x = leaf(torch)
    y = torch.ones(3, dtype=torch.float64)
    q = x * 2
    return caught(lambda: torch.autograd.backward([q, y], [None, None]))


@program
def roots_that_depend_on_each_other(torch):
    x = leaf(torch)
    y = x**2
    z = y**3
    torch.autograd.backward([y, z], [torch.ones(3, dtype=torch.float64)] * 2)
    return x.grad


@program
def versions_are_shared_with_detached(torch):
    x = leaf(torch)
    y = x.clone()
    y2 = y.detach()
    v = y._version
    y2.add_(1)
    return y._version - v


@program
def what_counts_as_a_write(torch):
    x = torch.ones(3)
    v = [x._version]
    x.add_(1)
    v.append(x._version)
    x[0] = 1
    v.append(x._version)
    x.view(3).mul_(2)
    v.append(x._version)
    x.data.add_(1)
    v.append(x._version)
    x.zero_()
    v.append(x._version)
    x.fill_(2)
    v.append(x._version)
    x.copy_(x.clone())
    v.append(x._version)
    torch.add(x, 1, out=x)
    v.append(x._version)
    x.requires_grad_()
    v.append(x._version)
    with torch.no_grad():
        x.add_(1)
    v.append(x._version)
    return v


@program
def version_after_data(torch):
    x = torch.ones(3)
    x.add_(1)
    a = x._version
    x.data = torch.ones(3)
    return a, x._version


@program
def retained_gradients_of_base_and_view(torch):
    x = leaf(torch)
    b = x * 2
    v = b[:2]
    b.retain_grad()
    v.retain_grad()
    v.mul_(3)
    b.sum().backward()
    return b.grad, v.grad, x.grad


@program
def writes_through_views_of_views(torch):
    x = leaf(torch)
    b = x.clone()
    a = b[1:]
    c = a[1:]
    c.mul_(5)
    a.mul_(2)
    (b * torch.arange(1.0, 4.0, dtype=torch.float64)).sum().backward()
    return x.grad, b, a.grad_fn.name(), c.grad_fn.name()


@program
def view_after_its_base_was_written(torch):
    x = leaf(torch)
    b = x * 1
    v = b.view(3)
    b.add_(2)
    return v.grad_fn.name(), torch.autograd.grad(v.sum(), x)


@program
def view_of_a_leaf_made_under_no_grad(torch):
    x = leaf(torch)
    with torch.no_grad():
        v = x.view(3)
    return v.requires_grad, caught(v.add_, 1), v.is_leaf


@program
def writing_a_recorded_value_into_a_view_of_a_constant(torch):
    b = torch.ones(3)
    v = b[1:]
    x = leaf(torch)
    v.mul_(x[1:])
    return b.requires_grad, b.grad_fn is not None and b.grad_fn.name(), v.requires_grad


@program
def element_of_a_leaf_written_under_no_grad(torch):
    x = torch.ones(4, requires_grad=True)
    with torch.no_grad():
        x[0] = 5
    return x.is_leaf, x._version


@program
def writing_into_expanded(torch):
    x = leaf(torch)
    e = x.expand(2, 3)
    return caught(lambda: e.clone().add_(1).sum().backward()), caught(e.add_, 1)


@program
def parts_are_views(torch):
    x = leaf(torch) * 1
    a = x.unbind()
    c = x.chunk(3)
    return a[0]._is_view(), caught(c[0].add_, 1), a[1].grad_fn.name(), c[1].grad_fn.name()


@program
def made_with_requires_grad(torch):
    return (
        [
            f(3, requires_grad=True).requires_grad
            for f in (torch.ones, torch.zeros, torch.rand, torch.randn, torch.empty)
        ],
        torch.arange(3.0, requires_grad=True).requires_grad,
        torch.full((2,), 1.0, requires_grad=True).requires_grad,
        torch.ones_like(torch.ones(2), requires_grad=True).requires_grad,
        torch.eye(2, requires_grad=True).requires_grad,
        torch.linspace(0, 1, 3, requires_grad=True).requires_grad,
    )


@program
def copy_of_another_shape(torch):
    x = leaf(torch)
    y = torch.zeros(2, 3, dtype=torch.float64)
    y.copy_(x)
    y.sum().backward()
    return x.grad


@program
def gradient_comes_back_in_the_leafs_dtype(torch):
    x = torch.ones(3, dtype=torch.float16, requires_grad=True)
    x.to(torch.float64).sum().backward()
    return x.grad


@program
def what_has_no_gradient(torch):
    x = leaf(torch)
    return (
        (x > 1).requires_grad,
        x.argmax().requires_grad,
        x.long().requires_grad,
        x.round().requires_grad,
        torch.ones_like(x).requires_grad,
        x.floor_divide(2).requires_grad,
        x.sign().requires_grad,
        x.isnan().requires_grad,
    )


@program
def saved_attributes_of_common_nodes(torch):
    a = leaf(torch)
    f = a.sum(0, keepdim=True).grad_fn
    g = a.reshape(1, 3).transpose(0, 1).grad_fn
    h = torch.cat([a, a], 0).grad_fn
    i = a.clamp(min=1, max=2).grad_fn
    j = a.pow(2).grad_fn
    k = a.unsqueeze(0).grad_fn
    top = a.topk(2)[0].grad_fn
    return (
        f._saved_dim,
        f._saved_keepdim,
        g._saved_dim0,
        g._saved_dim1,
        h._saved_dim,
        i._saved_min,
        i._saved_max,
        j._saved_exponent,
        j._saved_self,
        k._saved_dim,
        top._saved_dim,
        top._saved_indices,
    )


@program
def numbers_of_nodes(torch):
    x = leaf(torch)
    a = x * 1
    b = x * 2
    return a.grad_fn._sequence_nr() < b.grad_fn._sequence_nr(), caught(a.grad_fn._sequence_nr) is not None


@program
def five_uses_of_one_leaf(torch):
    x = leaf(torch)
    y = sum(x * i for i in range(1, 6))
    y.sum().backward()
    return x.grad


@program
def what_a_hook_kept_is_not_changed_later(torch):
    x = leaf(torch)
    g = []
    y = x * 1
    y.register_hook(lambda v: g.append(v))
    (y * 2).sum().backward(retain_graph=True)
    (y * 3).sum().backward()
    return g, x.grad


@program
def grad_without_a_path(torch):
    x = torch.ones(1)
    y = x**2
    z = torch.ones(1, requires_grad=True)
    return (
        caught(torch.autograd.grad, x, y),
        caught(torch.autograd.grad, z**2, x),
        caught(torch.autograd.grad, z**2, z, x * 0 + 1),
    )


@program
def hooks_on_the_way_to_an_inner_tensor(torch):
    x = leaf(torch)
    h = []
    y = x * 2
    y.register_hook(lambda g: h.append("y"))
    x.register_hook(lambda g: h.append("x"))
    torch.autograd.grad((y * 3).sum(), y)
    return h


@program
def grad_of_some_inner_tensors_and_then_of_all_leaves(torch):
    leaves = [torch.ones(2, requires_grad=True) for _ in range(4)]
    ints = [one.clone() for one in leaves]
    loss = sum(v * i for i, v in enumerate(ints)).sum()
    return torch.autograd.grad(loss, ints[:2], retain_graph=True), torch.autograd.grad(loss, leaves)


@program
def hessian_times_ones(torch):
    x = leaf(torch, 2.0, 2.0)
    y = leaf(torch, 2.0, 2.0)
    z = x**2 + y * x + y**2
    z.backward(torch.ones(2, dtype=torch.float64), create_graph=True)
    xg = x.grad
    a = (xg * 1).sum()
    r = torch.autograd.grad(a, [x, y])
    x.grad = y.grad = None
    return xg, r


@program
def backward_after_a_hook_failed(torch):
    x = leaf(torch)
    y = x * 2

    def bad(g):
        raise RuntimeError("stop")

    h = y.register_hook(bad)
    a = caught(y.sum().backward)
    h.remove()
    y = x * 2
    y.sum().backward()
    return a, x.grad


@program
def base_gone_before_its_view_is_written(torch):
    x = leaf(torch)
    y = x.clone()
    v = y[0]
    del y
    gc.collect()
    v.mul_(2)
    v.backward()
    return x.grad


@program
def out_and_gradients(torch):
    a = leaf(torch)
    b = torch.ones(3, dtype=torch.float64)
    c = torch.zeros(3, dtype=torch.float64)
    return caught(torch.mul, a, b, out=c), caught(torch.mul, b, b, out=a)


@program
def second_order_of_selecting(torch):
    x = leaf(torch)
    return torch.autograd.grad(torch.autograd.grad(x.select(0, 1) ** 2, x, create_graph=True)[0].sum(), x)


@program
def nan_of_a_custom_function_under_anomaly_mode(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, fail):
            ctx.f = fail
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            g = g.clone()
            if ctx.f:
                g[0] = float("nan")
            return g, None

    x = leaf(torch)

    def run():
        with torch.autograd.detect_anomaly():
            F.apply(x, True).sum().backward()

    def run2():
        with torch.autograd.detect_anomaly(check_nan=False):
            F.apply(x, True).sum().backward()

    return caught(run), caught(run2)


@program
def names_of_many_nodes(torch):
    x = leaf(torch)
    return [
        f.grad_fn.name()
        for f in (
            x.sin(),
            x @ x,
            x.mean(),
            x.var(),
            x.view(3, 1),
            x[None],
            x[0],
            x[1:],
            x.t() if False else x.expand(2, 3),
            x.clone(),
            x.softmax(0),
            x.log_softmax(0),
            x.relu(),
            x.abs(),
            -x,
            x / 2,
            2 / x,
            x - 1,
            1 - x,
            x**2,
            2**x,
            x.cumsum(0),
            x.flip(0),
            x.roll(1),
            x.repeat(2),
            x.squeeze(),
            x.norm(),
            x.std(),
            x.prod(),
            x.max(),
            x.min(0)[0],
            x.gather(0, torch.tensor([0])),
            x.masked_fill(x > 1, 0),
            torch.where(x > 1, x, x * 2),
            torch.stack([x, x]),
            torch.cat([x, x]),
            x.index_select(0, torch.tensor([0])),
            x.double().float(),
        )
    ]


@program
def warning_of_inner_gradients(torch):
    y = leaf(torch) * 2
    return warned(lambda: y.grad), y.retain_grad() or warned(lambda: y.grad)


test_as_torch, test_recording_is_torchs = program.tests()
