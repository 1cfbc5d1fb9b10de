"""Custom Functions: writes in forward, what ctx saves, and bad backwards, as in torch."""

from __future__ import annotations

import retrograd
from tests.autograd.recording import Programs, caught
from tests.autograd.test_function import cube, define, leaf

program = Programs("function_saved")


# ---- in place ----
def doubler(torch):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    return define(torch, forward, lambda ctx, g: g * 2)


@program
def mark_dirty(torch):
    x = leaf(torch)
    y = x * 1
    z = doubler(torch).apply(y)
    z.sum().backward()
    return z is y, y.grad_fn, y._version, y, x.grad


@program
def mark_dirty_on_leaf(torch):
    return caught(doubler(torch).apply, leaf(torch))


@program
def mark_dirty_without_grad(torch):
    x = torch.ones(3, dtype=torch.float64)
    y = doubler(torch).apply(x)
    return y is x, x, x._version


@program
def mark_dirty_on_view(torch):
    x = leaf(torch)
    y = x * 1
    v = y[:2]
    doubler(torch).apply(v)
    (y * y).sum().backward()
    return y.grad_fn, v.grad_fn, x.grad


@program
def mark_dirty_not_returned(torch):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x * 1

    return caught(define(torch, forward, lambda ctx, g: g).apply, leaf(torch) * 1)


@program
def mark_dirty_saved_by_an_earlier_node(torch):
    x = leaf(torch)
    y = x * 1
    z = y.exp()
    doubler(torch).apply(z)
    return caught(z.sum().backward)


@program
def inplace_function(torch):
    class Twice(torch.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(torch)
    y = x * 1
    Twice.apply(y).sum().backward()
    return x.grad


@program
def saved_output_then_written(torch):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    y = define(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(leaf(torch))
    z = y * 1
    y.add_(1)
    return caught(z.sum().backward)


@program
def saved_input_then_written(torch):
    x = leaf(torch) * 1
    y = cube(torch).apply(x)
    x.add_(1)
    return caught(y.sum().backward)


# ---- saved tensors ----
@program
def saved_none(torch):
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x, None)
        return x * 2

    x = leaf(torch)
    define(torch, forward, lambda ctx, g: (seen.append(ctx.saved_tensors[1]), g)[1]).apply(x).sum().backward()
    return seen


@program
def saved_not_a_tensor(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x, 5)
        return x * 2

    return caught(define(torch, forward, lambda ctx, g: g).apply, leaf(torch))


@program
def saved_twice_keeps_the_last(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(x, x * 2)
        return x * 2

    seen, x = [], leaf(torch)
    define(torch, forward, lambda ctx, g: (seen.append(len(ctx.saved_tensors)), g)[1]).apply(x).sum().backward()
    return seen


@program
def saved_input_is_the_tensor(torch):
    seen, x = [], leaf(torch)

    def backward(ctx, g):
        (saved,) = ctx.saved_tensors
        seen.append([saved is x, saved.requires_grad, saved.is_leaf])
        return g

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    define(torch, forward, backward).apply(x).sum().backward()
    return seen


@program
def saved_tensors_from_outside(torch):
    x = leaf(torch)
    y = cube(torch).apply(x)
    before = y.grad_fn.saved_tensors
    y.sum().backward()
    return before, caught(lambda: y.grad_fn.saved_tensors)


@program
def backward_twice(torch):
    x = leaf(torch)
    y = cube(torch).apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, caught(y.backward)


@program
def backward_twice_without_saving(torch):
    x = leaf(torch)
    y = define(torch, lambda ctx, x: x * 2, lambda ctx, g: g * 2).apply(x)
    y.backward(torch.ones(3, dtype=torch.float64))
    y.backward(torch.ones(3, dtype=torch.float64))
    return x.grad


# ---- errors ----
def _failing(torch, backward, *more):
    x = leaf(torch)
    return caught(define(torch, lambda ctx, x, *more: x * 2, backward).apply(x, *more).sum().backward)


@program
def too_few_gradients(torch):
    return _failing(torch, lambda ctx, g: g, 1.0)


@program
def too_many_gradients(torch):
    return _failing(torch, lambda ctx, g: (g, g))


@program
def gradient_of_wrong_shape(torch):
    return _failing(torch, lambda ctx, g: g[:2])


@program
def gradient_not_a_tensor(torch):
    return _failing(torch, lambda ctx, g: 5.0)


@program
def gradient_for_a_number(torch):
    return _failing(torch, lambda ctx, g: (g, g), 1.0)


@program
def backward_missing(torch):
    f = type("Made", (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2)})
    return caught(f.apply(leaf(torch)).sum().backward)


@program
def forward_missing(torch):
    return caught(type("Made", (torch.autograd.Function,), {}).apply, leaf(torch))


@program
def forward_not_static(torch):
    return caught(type("Made", (torch.autograd.Function,), {"forward": lambda self, x: x}).apply, leaf(torch))


@program
def instantiated_and_called(torch):
    return caught(lambda: cube(torch)()(leaf(torch)))


@program
def error_in_forward(torch):
    def forward(ctx, x):
        raise ValueError("from forward")

    x = leaf(torch)
    return caught(define(torch, forward, lambda ctx, g: g).apply, x), torch.is_grad_enabled(), x._version


@program
def error_in_backward(torch):
    def backward(ctx, g):
        raise KeyError("from backward")

    return _failing(torch, backward), torch.is_grad_enabled()


@program
def once_differentiable_once(torch):
    x = leaf(torch)
    once = torch.autograd.function.once_differentiable
    define(torch, lambda ctx, x: x * 2, once(lambda ctx, g: g * 2)).apply(x).sum().backward()
    return x.grad


@program
def once_differentiable_twice(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    once = torch.autograd.function.once_differentiable
    x = leaf(torch)
    y = define(torch, forward, once(lambda ctx, g: g * 2 * ctx.saved_tensors[0])).apply(x)
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    return g, g.requires_grad, caught(torch.autograd.grad, g.sum(), x)


test_as_torch, test_recording_is_torchs = program.tests()


def test_a_leaf_without_dimensions_is_saved_itself() -> None:
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        seen.append(ctx.saved_tensors[0])
        return 2 * seen[0] * g

    x = retrograd.tensor(1.5, requires_grad=True)
    y = define(retrograd, forward, backward).apply(x)
    x.reshape(1)  # makes an array of the number
    y.backward()
    assert seen[0] is x
