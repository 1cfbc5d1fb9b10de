"""Bad input to everything else: torch's error, and every tensor stays as it was."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd
from tests.autograd.keeping import keep, kept, leaf, ones, unchanged
from tests.autograd.recording import Programs

program = Programs("errors_api")


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
def dual_twice(torch):
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(ones(torch, 2), ones(torch, 2))
        torch.autograd.forward_ad.make_dual(x, ones(torch, 2))


# ---- operations ----
@program
def shapes_that_do_not_broadcast(torch):
    x = keep(leaf(torch))
    x + ones(torch, 2)


@program
def matrix_shapes_that_do_not_fit(torch):
    ones(torch, 2, 3) @ ones(torch, 2, 3)


@program
def dtypes_of_matrix_product(torch):
    ones(torch, 2, 2) @ torch.ones(2, 2)


@program
def view_of_wrong_size(torch):
    keep(leaf(torch)).view(2, 2)


@program
def view_of_transposed(torch):
    keep(ones(torch, 2, 3)).t().view(6)


@program
def dimension_out_of_range(torch):
    keep(leaf(torch)).sum(2)


@program
def index_out_of_range(torch):
    keep(leaf(torch))[5]


@program
def too_many_indices(torch):
    keep(leaf(torch))[0, 0]


@program
def function_of_a_number(torch):
    torch.exp(2.0)


@program
def out_with_grad(torch):
    out = keep(ones(torch, 3))
    torch.add(leaf(torch), 1, out=out)


@program
def set_item_of_wrong_shape(torch):
    x = keep(ones(torch, 3))
    x[:2] = ones(torch, 3)


@program
def set_item_by_index_out_of_range(torch):
    x = keep(ones(torch, 3))
    x[7] = 1.0


@program
def copy_of_wrong_shape(torch):
    keep(ones(torch, 3)).copy_(ones(torch, 2))


@program
def negative_step(torch):
    keep(ones(torch, 3))[::-1]


# ---- transforms ----
@program
def grad_of_vector_function(torch):
    torch.func.grad(lambda x: x * 2)(keep(ones(torch, 3)))


@program
def grad_of_no_tensor(torch):
    torch.func.grad(lambda x: 5.0)(keep(ones(torch, 3)))


@program
def grad_argnum_out_of_range(torch):
    torch.func.grad(lambda x: x.sum(), argnums=2)(keep(ones(torch, 3)))


@program
def grad_of_integers(torch):
    torch.func.grad(lambda x: x.sum())(torch.tensor([1, 2]))


@program
def grad_aux_not_a_pair(torch):
    torch.func.grad(lambda x: x.sum(), has_aux=True)(keep(ones(torch, 3)))


@program
def vjp_of_wrong_shape(torch):
    torch.func.vjp(lambda x: x * 2, keep(ones(torch, 3)))[1](ones(torch, 2))


@program
def vjp_of_number(torch):
    torch.func.vjp(lambda x: 5.0, keep(ones(torch, 3)))


@program
def jvp_primals_not_a_tuple(torch):
    torch.func.jvp(lambda x: x, ones(torch, 3), ones(torch, 3))


@program
def jvp_of_other_shapes(torch):
    torch.func.jvp(lambda x: x, (ones(torch, 3),), (ones(torch, 2),))


@program
def jvp_of_too_few_tangents(torch):
    torch.func.jvp(lambda x, y: x, (ones(torch, 3), ones(torch, 3)), (ones(torch, 2),))


@program
def vmap_sizes_differ(torch):
    torch.func.vmap(lambda x, y: x + y)(ones(torch, 2), ones(torch, 3))


@program
def vmap_of_no_inputs(torch):
    torch.func.vmap(lambda: 1)()


@program
def vmap_over_number(torch):
    torch.func.vmap(lambda x: x)(5)


@program
def vmap_dimension_out_of_range(torch):
    torch.func.vmap(lambda x: x, in_dims=3)(ones(torch, 2))


@program
def vmap_over_scalar(torch):
    torch.func.vmap(lambda x: x)(ones(torch))


@program
def vmap_in_dims_of_other_structure(torch):
    torch.func.vmap(lambda x: x, in_dims=(0, 0))(ones(torch, 2))


@program
def vmap_in_dims_all_none(torch):
    torch.func.vmap(lambda x: x, in_dims=None)(ones(torch, 2))


@program
def vmap_in_dims_none_for_every_input(torch):
    torch.func.vmap(lambda x: x, in_dims=(None,))(ones(torch, 2))


@program
def vmap_returns_number(torch):
    torch.func.vmap(lambda x: 5)(ones(torch, 2))


@program
def vmap_out_dims_of_other_structure(torch):
    torch.func.vmap(lambda x: x, out_dims=(0, 0))(ones(torch, 2))


@program
def vmap_unknown_randomness(torch):
    torch.func.vmap(lambda x: x, randomness="some")(ones(torch, 2))


@program
def vmap_random_numbers(torch):
    torch.func.vmap(lambda x: x + torch.rand(1))(torch.ones(2))


@program
def vmap_chunk_size_zero(torch):
    torch.func.vmap(lambda x: x, chunk_size=0)(ones(torch, 2))


@program
def escaped_batched_tensor(torch):
    held = []
    torch.func.vmap(lambda x: (held.append(x), x)[1])(ones(torch, 2))
    held[0] + 1


@program
def jacrev_of_complex(torch):
    torch.func.jacrev(lambda x: x * 1j)(ones(torch, 2))


@program
def jacrev_of_complex_input(torch):
    torch.func.jacrev(lambda x: x.real)(torch.ones(2, dtype=torch.complex128))


@program
def jacfwd_of_complex(torch):
    torch.func.jacfwd(lambda x: x * 1j)(ones(torch, 2))


@program
def grad_of_complex_scalar(torch):
    torch.func.grad(lambda x: x.sum() * 1j)(ones(torch, 2))


@program
def grad_of_number(torch):
    torch.func.grad(lambda x: x)(5.0)


@program
def grad_aux_of_number(torch):
    torch.func.grad(lambda x: (x.sum(), 5), has_aux=True)(ones(torch, 2))


@program
def grad_argnums_of_wrong_type(torch):
    torch.func.grad(lambda x: x.sum(), argnums="0")(ones(torch, 2))


@program
def grad_argnums_twice(torch):
    torch.func.grad(lambda x: x.sum(), argnums=(0, 0))(ones(torch, 2))


@program
def vjp_of_nothing(torch):
    torch.func.vjp(lambda x: (), ones(torch, 2))


@program
def vjp_of_other_structure(torch):
    torch.func.vjp(lambda x: x * 2, ones(torch, 2))[1]((ones(torch, 2),))


@program
def jvp_of_numbers(torch):
    torch.func.jvp(lambda x: x, (5.0,), (5.0,))


@program
def jvp_of_integers(torch):
    torch.func.jvp(lambda x: x, (torch.tensor([1]),), (torch.tensor([1]),))


@program
def jvp_of_nothing(torch):
    torch.func.jvp(lambda: 1, (), ())


@program
def jvp_strict_and_independent(torch):
    torch.func.jvp(lambda x: ones(torch, 1), (ones(torch, 2),), (ones(torch, 2),), strict=True)


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
