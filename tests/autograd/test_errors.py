"""Bad input to backward, grad and in-place operations: torch's error, and every tensor stays as it was."""

from __future__ import annotations

import pytest

import retrograd
from tests.autograd.keeping import keep, kept, leaf, ones, unchanged
from tests.autograd.recording import Programs

program = Programs("errors")


# ---- backward and grad ----
@program
def backward_of_many_elements(torch):
    x = keep(leaf(torch))
    (x * 2).backward()


@program
def backward_of_complex_scalar(torch):
    z = keep(torch.tensor(1 + 2j, dtype=torch.complex128, requires_grad=True))
    (z * 2).backward()


@program
def backward_without_grad(torch):
    keep(ones(torch)).backward()


@program
def backward_second_element_without_grad(torch):
    x = keep(leaf(torch))
    torch.autograd.backward([x.sum(), ones(torch)])


@program
def backward_twice(torch):
    x = leaf(torch)
    y = (x * x).sum()
    y.backward()
    keep(x)
    y.backward()


@program
def grad_twice(torch):
    x = leaf(torch)
    y = x.exp().sum()
    torch.autograd.grad(y, x)
    torch.autograd.grad(y, x)


@program
def saved_value_after_backward(torch):
    x = leaf(torch)
    y = x.exp()
    y.sum().backward()
    return y.grad_fn._saved_result


@program
def backward_gradient_of_wrong_shape(torch):
    x = keep(leaf(torch))
    (x * 2).backward(ones(torch, 2))


@program
def backward_gradient_not_a_tensor(torch):
    x = keep(leaf(torch))
    (x * 2).backward("no")


@program
def grad_outputs_of_wrong_shape(torch):
    x = keep(leaf(torch))
    torch.autograd.grad(x * 2, x, ones(torch, 3, 1))


@program
def grad_outputs_complex_for_real(torch):
    x = keep(leaf(torch))
    torch.autograd.grad(x * 2, x, torch.ones(3, dtype=torch.complex128))


@program
def grad_outputs_batched_of_wrong_shape(torch):
    x = keep(leaf(torch))
    torch.autograd.grad(x * 2, x, ones(torch, 2, 2), is_grads_batched=True)


@program
def grad_of_unused_input(torch):
    x, z = keep(leaf(torch), leaf(torch))
    torch.autograd.grad((x * 2).sum(), [x, z])


@program
def grad_of_input_without_grad(torch):
    x, z = keep(leaf(torch), ones(torch, 3))
    torch.autograd.grad((x * 2).sum(), z)


@program
def grad_of_no_inputs(torch):
    x = keep(leaf(torch))
    torch.autograd.grad((x * 2).sum(), [])


@program
def grad_of_output_without_grad(torch):
    x = keep(leaf(torch))
    torch.autograd.grad(ones(torch), x)


@program
def grad_materialized_but_unused_refused(torch):
    x = keep(leaf(torch))
    torch.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)


@program
def grad_of_many_elements(torch):
    x = keep(leaf(torch))
    torch.autograd.grad(x * 2, x)


@program
def backward_with_empty_inputs(torch):
    x = keep(leaf(torch))
    x.sum().backward(inputs=[])


@program
def backward_with_input_without_grad(torch):
    x = keep(leaf(torch))
    x.sum().backward(inputs=[ones(torch, 3)])


@program
def backward_tensors_and_gradients_differ_in_number(torch):
    x = keep(leaf(torch))
    torch.autograd.backward([x.sum(), x.sum()], [ones(torch)])


@program
def backward_with_both_names_of_gradients(torch):
    x = keep(leaf(torch))
    torch.autograd.backward(x.sum(), ones(torch), grad_variables=ones(torch))


@program
def backward_inside_vmap(torch):
    x = keep(leaf(torch))

    def f(v):
        (v * x.sum()).backward()
        return v

    torch.func.vmap(f)(ones(torch, 3))


# ---- requires_grad ----
@program
def integer_requires_grad(torch):
    torch.tensor([1, 2], requires_grad=True)


@program
def integer_set_requires_grad(torch):
    x = keep(torch.tensor([1, 2]))
    x.requires_grad = True


@program
def integer_requires_grad_method(torch):
    keep(torch.tensor([1, 2])).requires_grad_()


@program
def bool_zeros_require_grad(torch):
    torch.zeros(2, dtype=torch.bool, requires_grad=True)


@program
def non_leaf_requires_grad_false(torch):
    y = keep(leaf(torch) * 2)
    y.requires_grad = False


@program
def non_leaf_requires_grad_true(torch):
    y = keep(leaf(torch) * 2)
    y.requires_grad = True


@program
def non_leaf_requires_grad_method_false(torch):
    keep(leaf(torch) * 2).requires_grad_(False)


@program
def requires_grad_inside_grad(torch):
    def f(x):
        y = torch.ones(3).requires_grad_()
        return (x * y).sum()

    torch.func.grad(f)(torch.ones(3))


# ---- in-place ----
@program
def saved_input_overwritten(torch):
    x = leaf(torch)
    y = x * 1
    z = y * y
    y.add_(1)
    keep(x, y)
    z.sum().backward()


@program
def saved_output_overwritten(torch):
    x = leaf(torch)
    y = x.exp()
    z = y.sum()
    y.mul_(2)
    keep(x, y)
    z.backward()


@program
def saved_leaf_overwritten_under_no_grad(torch):
    x = leaf(torch)
    y = (x * x).sum()
    with torch.no_grad():
        x.add_(1)
    keep(x)
    y.backward()


@program
def saved_through_view_overwritten(torch):
    x = leaf(torch)
    y = x * 1
    z = (y * y).sum()
    y[0] = 5.0
    z.backward()


@program
def saved_constant_overwritten(torch):
    x = leaf(torch)
    c = ones(torch, 3)
    y = (x * c).sum()
    c.zero_()
    keep(x, c)
    y.backward()


@program
def leaf_in_place(torch):
    keep(leaf(torch)).add_(1)


@program
def leaf_in_place_operator(torch):
    x = keep(leaf(torch))
    x += 1


@program
def leaf_set_item(torch):
    x = keep(leaf(torch))
    x[0] = 1.0


@program
def leaf_fill(torch):
    keep(leaf(torch)).fill_(1)


@program
def leaf_copy(torch):
    keep(leaf(torch)).copy_(ones(torch, 3))


@program
def view_of_leaf_in_place(torch):
    x = keep(leaf(torch))
    x[:2].mul_(2)


@program
def reshaped_view_of_leaf_in_place(torch):
    x = keep(leaf(torch))
    x.view(3, 1).zero_()


@program
def view_made_under_no_grad_in_place(torch):
    x = leaf(torch) * 1
    with torch.no_grad():
        v = x[:2]
    keep(x)
    v.mul_(2)


@program
def view_made_under_no_grad_of_leaf_in_place(torch):
    x = leaf(torch)
    with torch.no_grad():
        v = x[:2]
    keep(x, v)
    v.mul_(2)


@program
def one_of_unbind_in_place(torch):
    parts = (ones(torch, 2, 2, requires_grad=True) * 1).unbind(0)
    keep(*parts)
    parts[0].mul_(2)


@program
def one_of_split_in_place(torch):
    parts = (ones(torch, 4, requires_grad=True) * 1).split(2)
    keep(*parts)
    parts[1].add_(1)


@program
def one_of_chunk_in_place(torch):
    parts = (ones(torch, 4, requires_grad=True) * 1).chunk(2)
    keep(*parts)
    parts[1][0] = 1.0


@program
def unbind_used_after_base_was_written(torch):
    x = ones(torch, 2, 2, requires_grad=True) * 1
    parts = x.unbind(0)
    x.mul_(2)
    parts[0] * 2


@program
def no_grad_view_used_after_base_was_written(torch):
    x = leaf(torch) * 1
    with torch.no_grad():
        v = x[:2]
    x.mul_(2)
    v * 2


@program
def in_place_changes_shape(torch):
    x = keep(ones(torch, 3))
    x.add_(ones(torch, 2, 3))


@program
def in_place_changes_dtype(torch):
    x = keep(torch.tensor([1, 2]))
    x.add_(torch.tensor([0.5, 0.5]))


@program
def in_place_on_expanded(torch):
    x = keep(ones(torch, 1))
    x.expand(3).add_(1)


@program
def detach_view_in_place(torch):
    x = leaf(torch) * 1
    keep(x)
    x[:2].detach_()


@program
def resize_like_t_on_leaf(torch):
    keep(ones(torch, 2, 3, requires_grad=True)).t_()


# ---- inference tensors ----
@program
def inference_tensor_saved(torch):
    with torch.inference_mode():
        c = ones(torch, 3)
    x = keep(leaf(torch))
    keep(c)
    x * c


@program
def inference_tensor_written_outside(torch):
    with torch.inference_mode():
        c = ones(torch, 3)
    keep(c).add_(1)


@program
def inference_tensor_requires_grad(torch):
    with torch.inference_mode():
        c = ones(torch, 3)
    keep(c).requires_grad_()


@program
def inference_tensor_version(torch):
    with torch.inference_mode():
        c = ones(torch, 3)
    return c._version


@program
def inference_view_written_outside(torch):
    x = leaf(torch) * 1
    with torch.inference_mode():
        v = x[:2]
    v.add_(1)


# ---- the tests ----
@pytest.fixture(autouse=True)
def _forget():
    kept.clear()
    yield
    kept.clear()
    if retrograd.autograd.forward_ad._current_level >= 0:
        retrograd.autograd.forward_ad.exit_dual_level()


test_as_torch, test_recording_is_torchs = program.tests()


@pytest.mark.parametrize("name", program.using("keep(", "_hooked("))
def test_nothing_changed(name):
    program.run(retrograd, name)
    assert kept
    assert unchanged()
