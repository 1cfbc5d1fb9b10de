"""Bad input gives torch's exception and first sentence, and leaves every tensor as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from tests.autograd.recording import Programs

program = Programs("errors")
kept: list[tuple[Any, Any]] = []


def state(tensor: Any) -> Any:
    """Return what must not change about a tensor."""
    version = None if tensor.is_inference() else tensor._version
    grad = tensor.grad if tensor.is_leaf else None
    values = None if grad is None else grad.tolist()
    return (tensor.detach().tolist(), tensor.shape, tensor.dtype, tensor.requires_grad, version, tensor.grad_fn, values)


def keep(*tensors: Any) -> Any:
    """Note how tensors are before the error."""
    kept.extend((tensor, state(tensor)) for tensor in tensors)
    return tensors[0] if len(tensors) == 1 else tensors


def ones(torch: Any, *shape: int, **options: Any) -> Any:
    return torch.ones(shape, dtype=torch.float64, **options)


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


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
def grad_outputs_too_many(torch):
    x = keep(leaf(torch))
    torch.autograd.grad(x * 2, x, (ones(torch, 3), ones(torch, 3)))


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


# ---- leaving the graph ----
@program
def numpy_of_requiring(torch):
    keep(leaf(torch)).numpy()


@program
def numpy_of_non_leaf(torch):
    (keep(leaf(torch)) * 2).numpy()


@program
def array_of_requiring(torch):
    np.asarray(keep(leaf(torch)))


@program
def deepcopy_of_non_leaf(torch):
    import copy

    copy.deepcopy(leaf(torch) * 2)


@program
def item_of_many(torch):
    keep(leaf(torch)).item()


@program
def truth_of_many(torch):
    bool(keep(leaf(torch)))


@program
def item_of_batched(torch):
    torch.func.vmap(lambda v: v * v.item())(ones(torch, 3))


@program
def truth_of_batched(torch):
    torch.func.vmap(lambda v: v if v > 0 else -v)(ones(torch, 3))


@program
def numpy_of_batched(torch):
    torch.func.vmap(lambda v: torch.tensor(v.numpy()))(ones(torch, 3))


# ---- .grad ----
@program
def grad_of_wrong_size(torch):
    x = keep(leaf(torch))
    x.grad = ones(torch, 2)


@program
def grad_of_wrong_dtype(torch):
    x = keep(leaf(torch))
    x.grad = torch.ones(3)


@program
def grad_not_a_tensor(torch):
    x = keep(leaf(torch))
    x.grad = 1.0


@program
def grad_is_itself(torch):
    x = keep(leaf(torch))
    x.grad = x


@program
def set_grad_fn(torch):
    x = keep(leaf(torch))
    x.grad_fn = None


@program
def set_is_leaf(torch):
    x = keep(leaf(torch))
    x.is_leaf = False


@program
def data_of_integers(torch):
    x = keep(leaf(torch))
    x.data = torch.tensor([1, 2, 3])


# ---- hooks ----
@program
def hook_without_grad(torch):
    keep(ones(torch, 3)).register_hook(lambda g: g)


@program
def post_hook_without_grad(torch):
    keep(ones(torch, 3)).register_post_accumulate_grad_hook(lambda p: None)


@program
def post_hook_on_non_leaf(torch):
    keep(leaf(torch) * 2).register_post_accumulate_grad_hook(lambda p: None)


@program
def retain_grad_without_grad(torch):
    keep(ones(torch, 3)).retain_grad()


def _hooked(torch, hook):
    x = keep(leaf(torch))
    y = x * 2
    y.register_hook(hook)
    y.sum().backward()


@program
def hook_changes_size(torch):
    _hooked(torch, lambda g: g[:2])


@program
def hook_changes_dtype(torch):
    _hooked(torch, lambda g: g.to(torch.float32))


@program
def hook_returns_number(torch):
    _hooked(torch, lambda g: 2.0)


@program
def hook_raises(torch):
    def hook(g):
        raise ValueError("from the hook. More.")

    _hooked(torch, hook)


@program
def node_hook_returns_too_many(torch):
    x = keep(leaf(torch))
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: (gi[0], gi[0], gi[0]))
    y.sum().backward()


@program
def multi_grad_hook_of_unknown_mode(torch):
    x = keep(leaf(torch))
    torch.autograd.graph.register_multi_grad_hook([x], lambda g: None, mode="some")


@program
def unpack_hook_returns_number(torch):
    x = keep(leaf(torch))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 1):
        y = x * x
    y.sum().backward()


@program
def pack_hook_changes_its_input(torch):
    x = leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        x * 1 * x


@program
def unpack_hook_raises(torch):
    def unpack(t):
        raise ValueError("from unpack")

    x = keep(leaf(torch))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x * x
    y.sum().backward()


@program
def hooks_are_disabled(torch):
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):  # noqa: SIM117
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass


@program
def hooks_disabled_inside_hooks(torch):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):  # noqa: SIM117
        with torch.autograd.graph.disable_saved_tensors_hooks("not inside"):
            pass


@program
def gradient_edge_without_grad(torch):
    torch.autograd.graph.get_gradient_edge(ones(torch, 3))


# ---- forward mode ----
@program
def dual_outside_a_level(torch):
    torch.autograd.forward_ad.make_dual(keep(ones(torch, 3)), ones(torch, 3))


@program
def dual_levels_nested(torch):
    with torch.autograd.forward_ad.dual_level(), torch.autograd.forward_ad.dual_level():
        pass


@program
def exit_without_level(torch):
    torch.autograd.forward_ad.exit_dual_level()


@program
def dual_of_integers(torch):
    with torch.autograd.forward_ad.dual_level():
        torch.autograd.forward_ad.make_dual(torch.tensor([1, 2]), torch.ones(2))


@program
def dual_with_integer_tangent(torch):
    with torch.autograd.forward_ad.dual_level():
        torch.autograd.forward_ad.make_dual(torch.ones(2), torch.tensor([1, 2]))


@program
def dual_of_other_shape(torch):
    with torch.autograd.forward_ad.dual_level():
        torch.autograd.forward_ad.make_dual(ones(torch, 2), ones(torch, 3))


@program
def dual_of_other_dtype(torch):
    with torch.autograd.forward_ad.dual_level():
        torch.autograd.forward_ad.make_dual(ones(torch, 2), torch.ones(2))


@program
def dual_twice(torch):
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(ones(torch, 2), ones(torch, 2))
        torch.autograd.forward_ad.make_dual(x, ones(torch, 2))


# ---- the tests ----
@pytest.fixture(autouse=True)
def _forget():
    kept.clear()
    yield
    kept.clear()
    retrograd.autograd.forward_ad._state.level = None


@pytest.mark.parametrize("name", program.names)
def test_as_torch(name):
    program.check(retrograd, name)


@pytest.mark.parametrize("name", program.names)
def test_nothing_changed(name):
    program.run(retrograd, name)
    for tensor, before in kept:
        assert state(tensor) == before


@pytest.mark.oracle
@pytest.mark.parametrize("name", program.names)
def test_recording_is_torchs(name):
    program.check(pytest.importorskip("torch"), name)
