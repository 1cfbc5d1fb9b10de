"""Gradients that meet: how .grad is filled, kept, laid out and refused."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("gradients_that_meet")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


@program
def grad_is_the_same_object_when_added_to(torch):
    x = leaf(torch)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    return x.grad is first, first


@program
def grad_is_a_new_object_with_create_graph(torch):
    x = leaf(torch)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    result = x.grad is first, first, x.grad, x.grad.requires_grad
    x.grad = None
    return result


@program
def plain_after_create_graph(torch):
    x = leaf(torch)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x).sum().backward()
    result = x.grad is first, x.grad.requires_grad, x.grad
    x.grad = None
    return result


@program
def grad_is_detached(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    return x.grad.requires_grad, x.grad.is_leaf, x.grad.grad_fn


@program
def layout_follows_a_transposed_leaf(torch):
    x = torch.ones(3, 2, dtype=torch.float64).t().requires_grad_()
    (x * torch.arange(6.0, dtype=torch.float64).reshape(2, 3)).sum().backward()
    return x.stride(), x.grad.stride(), x.grad


@program
def layout_of_an_expanded_gradient(torch):
    x = leaf(torch)
    x.sum().backward()
    return x.grad.stride(), x.grad.is_contiguous()


@program
def layout_of_a_transposed_gradient(torch):
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    (x.t() * torch.arange(6.0, dtype=torch.float64).reshape(3, 2)).sum().backward()
    return x.grad.stride(), x.grad


@program
def seed_is_not_shared(torch):
    x = leaf(torch)
    seed = torch.ones(3, dtype=torch.float64)
    x.backward(seed)
    seed.zero_()
    return x.grad


@program
def given_gradient_is_used_as_it_is(torch):
    x = leaf(torch)
    given = torch.ones(3, dtype=torch.float64)
    x.grad = given
    (x * 2).sum().backward()
    return x.grad is given, given


@program
def given_gradient_that_requires_grad(torch):
    x, given = leaf(torch), leaf(torch)
    x.grad = given
    return caught((x * 2).sum().backward), x.grad


@program
def assignments_of_grad(torch):
    x = leaf(torch)
    found = []
    for value in (
        torch.ones(3, dtype=torch.float32),
        torch.ones(3, dtype=torch.int64),
        torch.ones(1, 3, dtype=torch.float64),
        torch.ones(3, dtype=torch.complex128),
        [1.0],
        x,
    ):
        found.append(caught(setattr, x, "grad", value))
    return found


@program
def grad_of_a_tensor_without_grad_may_be_set(torch):
    x = torch.ones(2)
    x.grad = torch.zeros(2)
    return x.grad, x.requires_grad


@program
def del_grad(torch):
    x = leaf(torch)
    x.sum().backward()
    del x.grad
    return x.grad


@program
def grad_survives_requires_grad_off(torch):
    x = leaf(torch)
    x.sum().backward()
    x.requires_grad_(False)
    return x.grad


@program
def grad_after_data_of_another_shape(torch):
    x = leaf(torch)
    x.sum().backward()
    x.data = torch.ones(2, dtype=torch.float64)
    return caught(lambda: x.grad), caught((x * 2).sum().backward), caught(lambda: x.grad)


@program
def undefined_gradients_add_nothing(torch):
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    x = leaf(torch)
    (Nothing.apply(x).sum() + (x * 2).sum()).backward()
    y = leaf(torch)
    Nothing.apply(y).sum().backward()
    return x.grad, y.grad


@program
def retained_where_nothing_arrives(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    z = x * 3
    z.sum().backward()
    return y.grad, y.retains_grad


@program
def retained_and_captured(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    g = torch.autograd.grad((y * y).sum(), (x, y))
    return g, y.grad, x.grad


@program
def retained_with_chosen_inputs(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward(inputs=[x])
    return y.grad, x.grad


@program
def retain_grad_of_leaf_without_grad(torch):
    return caught(torch.ones(2).retain_grad)


@program
def retain_grad_after_backward_has_freed(torch):
    x = leaf(torch)
    y = x * 2
    y.sum().backward(retain_graph=True)
    y.retain_grad()
    y.sum().backward()
    return y.grad


@program
def inputs_leaf_and_inner(torch):
    x, w = leaf(torch), leaf(torch)
    y = x * w
    y.sum().backward(inputs=[y, x])
    return y.grad, x.grad, w.grad


@program
def inputs_as_a_tensor(torch):
    x = leaf(torch)
    (x * x).sum().backward(inputs=x)
    return x.grad


@program
def inputs_not_in_the_graph(torch):
    x, w = leaf(torch), leaf(torch)
    return caught((x * 2).sum().backward, inputs=[w]), w.grad, x.grad


@program
def inputs_twice_the_same(torch):
    x = leaf(torch)
    (x * 2).sum().backward(inputs=[x, x])
    return x.grad


@program
def inputs_that_are_no_tensors(torch):
    x = leaf(torch)
    return caught((x * 2).sum().backward, inputs=[1]), caught((x * 2).sum().backward, inputs=["x"])


@program
def inner_inputs_accumulate(torch):
    x = leaf(torch)
    y = x * 2
    z = (y * 3).sum()
    z.backward(inputs=[y], retain_graph=True)
    z.backward(inputs=[y])
    return y.grad, x.grad


@program
def several_roots_of_one_graph(torch):
    x = leaf(torch)
    y = x * 2
    torch.autograd.backward([y, (y * y).sum()], [torch.ones(3, dtype=torch.float64), None])
    return x.grad


@program
def one_root_twice(torch):
    x = leaf(torch)
    y = (x * 2).sum()
    torch.autograd.backward([y, y])
    return x.grad


@program
def a_leaf_among_the_roots(torch):
    x = leaf(torch)
    torch.autograd.backward([x, (x * 2).sum()], [torch.ones(3, dtype=torch.float64), None])
    return x.grad


@program
def grad_of_a_leaf_by_itself_and_others(torch):
    x, w = leaf(torch), leaf(torch)
    return torch.autograd.grad([x, (x * w).sum()], [x, w], [torch.ones(3, dtype=torch.float64), None])


@program
def seeds_that_require_grad(torch):
    x, v = leaf(torch), leaf(torch)
    (g,) = torch.autograd.grad(x * x, x, v, create_graph=True)
    return torch.autograd.grad(g.sum(), (x, v))


@program
def seeds_that_require_grad_without_create_graph(torch):
    x, v = leaf(torch), leaf(torch)
    (g,) = torch.autograd.grad(x * x, x, v)
    return g.requires_grad


@program
def bad_seeds(torch):
    x = leaf(torch)
    backward, one = torch.autograd.backward, torch.ones(3, dtype=torch.float64)
    return (
        caught(backward, x * 2, 1.0),
        caught(backward, x * 2, [1.0]),
        caught(backward, [x * 2], [None]),
        caught(backward, [x * 2, x * 3], [one]),
        caught(backward, x * 2, torch.ones(3, dtype=torch.int64)),
        caught(backward, x * 2, torch.ones(3, dtype=torch.complex128)),
        caught(backward, x * 2, torch.ones(1, 3, dtype=torch.float64)),
        caught(backward, (x * 2).sum(), torch.ones(1, dtype=torch.float64)),
        caught(backward, [], []),
    )


@program
def seed_of_another_floating_dtype(torch):
    x = leaf(torch)
    (x * 2).backward(torch.ones(3, dtype=torch.float32))
    return x.grad


@program
def grad_of_bad_arguments(torch):
    x = leaf(torch)
    grad = torch.autograd.grad
    return (
        caught(grad, (x * 2).sum(), []),
        caught(grad, [], [x]),
        caught(grad, (x * 2).sum(), [1.0]),
        caught(grad, 3.0, x),
        caught(grad, x * 2, x, torch.ones(2, 3), is_grads_batched=False),
        caught(grad, x * 2, x, torch.eye(2), is_grads_batched=True),
        caught(grad, (x * 2).sum(), x, allow_unused=False, materialize_grads=True),
        caught(grad, (x * 2).sum(), x, only_inputs=False),
    )


@program
def batched_gradients_of_several(torch):
    x, w = leaf(torch), leaf(torch)
    outputs = (x * w, (x.sin() * w).sum())
    seeds = (torch.eye(3, dtype=torch.float64), torch.arange(3.0, dtype=torch.float64))
    return torch.autograd.grad(outputs, (x, w), seeds, is_grads_batched=True)


@program
def materialized_and_unused(torch):
    x, w = leaf(torch), leaf(torch)
    found = torch.autograd.grad((x * 2).sum(), (x, w), materialize_grads=True, create_graph=True)
    return found, [g.requires_grad for g in found]


@program
def freed_in_part(torch):
    x = leaf(torch)
    shared = x.exp()
    a, b = shared.sin().sum(), shared.cos().sum()
    a.backward()
    return caught(b.backward)


@program
def retained_in_part(torch):
    x = leaf(torch)
    shared = x.exp()
    a, b = shared.sin().sum(), shared.cos().sum()
    a.backward(retain_graph=True)
    b.backward()
    return x.grad, caught(a.backward)


@program
def complex_leaf(torch):
    z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    (z * z).abs().sum().backward()
    (z.real * 2).sum().backward()
    return z.grad


@program
def real_leaf_of_a_complex_result(torch):
    x = leaf(torch)
    (x * 1j).imag.sum().backward()
    return x.grad


@program
def half_leaf(torch):
    x = torch.ones(3, dtype=torch.float16, requires_grad=True)
    (x.float() * 3).sum().backward()
    return x.grad


@program
def empty_leaf(torch):
    x = torch.ones(0, 2, dtype=torch.float64, requires_grad=True)
    (x * 2).sum().backward()
    return x.grad


@program
def backward_of_a_scalar_leaf(torch):
    x = torch.tensor(2.0, requires_grad=True)
    x.backward()
    return x.grad


@program
def gradient_of_a_view_as_leaf(torch):
    base = torch.ones(4, dtype=torch.float64)
    x = base[1:3].requires_grad_()
    (x * 3).sum().backward()
    return x.grad, base.grad, base.requires_grad


@program
def backward_inside_no_grad_and_inference(torch):
    x = leaf(torch)
    y, z = (x * x).sum(), (x * x).sum()
    with torch.no_grad():
        y.backward()
    with torch.inference_mode():
        found = caught(z.backward)
    return x.grad, found


@program
def is_leaf_of_many(torch):
    x = leaf(torch)
    with torch.no_grad():
        inside = x * 2
    return [
        t.is_leaf
        for t in (x, x * 2, x.detach(), inside, x[0], x.data, torch.ones(2) * 2, x.clone(), x.clone().detach(), x.cpu())
    ]


@program
def grad_fn_of_the_same_tensor_by_to(torch):
    x = leaf(torch)
    return x.to(torch.float64) is x, x.double() is x, x.contiguous() is x, x.float().grad_fn.name(), x.cpu() is x


test_as_torch, test_recording_is_torchs = program.tests()
