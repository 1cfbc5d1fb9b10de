"""Forward mode: dual levels, the parts of a dual, metadata, views and writes."""

from __future__ import annotations

import gc
import weakref
from itertools import product

from tests.torch_tests.suite import Suite, near, refused

forward = Suite("TestAutogradForwardMode")
batched = Suite("TestAutogradForwardModeBatchedGrad")


@forward
def forward_level_cleanup(torch):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        tangent = torch.rand(2, requires_grad=True)
        ref = weakref.ref(tangent)
        dual = fw.make_dual(torch.rand(2), tangent)
        assert fw.unpack_dual(dual).tangent is tangent
        del tangent
        assert ref() is not None
        del dual
        assert ref() is None


@forward
def size_check(torch):
    fw = torch.autograd.forward_ad
    p, t = torch.rand(2), torch.rand(3)
    with fw.dual_level():
        with refused("forward gradient that has a different size"):
            fw.make_dual(p, t)
        fw.make_dual(p, t[1:])


@forward
def metadata_check_checks_storage_numel(torch):
    fw = torch.autograd.forward_ad
    primal, tangent = torch.rand(5)[:4].detach(), torch.rand(4)
    assert len(primal.storage()) == 5
    with fw.dual_level():
        dual = fw.make_dual(primal, tangent)
        before, part = tangent.clone(), fw.unpack_dual(dual).tangent
        part *= 2
        assert near(tangent, before)
        dual.as_strided((5,), (1,), 0)


@forward
def metadata_check_checks_ignores_size_zero(torch):
    fw = torch.autograd.forward_ad
    a, b = torch.ones(0).as_strided((0, 1), (1, 1), 0), torch.ones(0).as_strided((0, 1), (1, 0), 0)
    with fw.dual_level():
        torch.diagonal(fw.make_dual(a, b))
    empty = torch.rand(0, 1, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(torch.diagonal, (empty,), check_forward_ad=True)


@forward
def metadata_check_when_primal_has_conj_bit(torch):
    fw = torch.autograd.forward_ad
    a = torch.rand(2, 2, dtype=torch.complex128).conj()
    b = torch.rand_like(a)
    assert torch.is_conj(a)
    assert len(a.storage()) == len(b.storage())
    with fw.dual_level():
        assert fw.unpack_dual(fw.make_dual(a, b)[1:]).tangent.shape == (1, 2)


@forward
def metadata_check_when_primal_has_neg_bit(torch):
    fw = torch.autograd.forward_ad
    a = torch.rand(2, 2, dtype=torch.complex128).conj().imag
    b = torch.rand(2, 2, dtype=torch.complex128).imag
    assert torch.is_neg(a)
    assert len(a.storage()) == len(b.storage())
    with fw.dual_level():
        assert fw.unpack_dual(fw.make_dual(a, b)[1:]).tangent.shape == (1, 2)


@forward
def metadata_check_check_conj(torch):
    fw = torch.autograd.forward_ad
    bits = {"none": lambda x: x, "conj": lambda x: x.conj(), "neg": lambda x: x._neg_view()}
    for one, other in product(bits, bits):
        p = bits[one](torch.rand(2, 3, dtype=torch.complex128))
        t = bits[other](torch.rand(2, 3, dtype=torch.complex128))
        with fw.dual_level():
            dual = fw.make_dual(p, t)
            assert (fw.unpack_dual(dual).tangent is t) == (one == other), (one, other)
            torch.real(dual), torch.imag(dual)


@forward
def metadata_check_ignore_storage_offset_for_zero_numel_tensor(torch):
    fw = torch.autograd.forward_ad
    a, b = torch.ones(1).as_strided((0,), (1,), 1), torch.ones(1).as_strided((0,), (1,), 2)
    with fw.dual_level():
        assert fw.unpack_dual(fw.make_dual(a, b)).tangent is b
    a, b = torch.ones(1).as_strided((1,), (2,), 0), torch.ones(1).as_strided((1,), (1,), 0)
    with fw.dual_level():
        fw.make_dual(a, b)[1:]


@forward
def default_level(torch):
    fw = torch.autograd.forward_ad
    p, t = torch.rand(2), torch.rand(2)
    with fw.dual_level():
        dual = fw.make_dual(p, t)
        first, second = fw.unpack_dual(dual)
    assert near(first, p)
    assert second is t
    first, second = fw.unpack_dual(dual)
    assert near(first, p)
    assert second is None


@forward
def fwd_grad_enabled(torch):
    fw = torch.autograd.forward_ad
    assert fw._is_fwd_grad_enabled()
    try:
        torch._C._set_fwd_grad_enabled(False)
        assert not fw._is_fwd_grad_enabled()
    finally:
        torch._C._set_fwd_grad_enabled(True)
    assert fw._is_fwd_grad_enabled()


@forward
def set_fwd_grad_enabled(torch):
    fw = torch.autograd.forward_ad
    try:
        torch._C._set_fwd_grad_enabled(False)
        with fw._set_fwd_grad_enabled(True):
            assert fw._is_fwd_grad_enabled()
        assert not fw._is_fwd_grad_enabled()
    finally:
        torch._C._set_fwd_grad_enabled(True)


@forward
def nested_level(torch):
    fw = torch.autograd.forward_ad
    assert fw._current_level == -1
    with fw.dual_level() as level:
        assert level == fw._current_level == 0
        with refused("Nested forward mode AD is not supported"):
            fw.enter_dual_level()
    assert fw._current_level == -1


@forward
def set_fw_grad_having_own_fw_grad_at_same_level(torch):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(torch.rand(2), torch.rand(2))
        with refused("has a forward gradient at the same level"):
            fw.make_dual(torch.rand(2), dual)


@forward
def codegen_ignores_undefined_outputs(torch):
    fw = torch.autograd.forward_ad
    weight, x = torch.rand(6, 1, 3, 3), torch.rand(1, 1, 5, 5)
    out = torch.nn.functional.conv2d(x, weight)
    with fw.dual_level():
        dual = fw.make_dual(weight, torch.ones_like(weight))
        parts = torch.ops.aten.convolution_backward(
            torch.ones_like(out), x, dual, (0,), (1, 1), (0, 0), (1, 1), False, (0, 0), 1, (False, True, False)
        )
    assert parts[0] is None


@forward
def make_dual_inference_tensor_in_inference_mode(torch):
    fw = torch.autograd.forward_ad
    with torch.inference_mode():
        p = torch.rand(2)
        before = p.clone()
        with fw.dual_level():
            dual = fw.make_dual(p, torch.rand(2))
            assert not dual._is_view()
            dual += 1
            assert not near(p, before)


@forward
def make_dual_forbid_integral_dtype(torch):
    fw = torch.autograd.forward_ad
    real, whole = torch.ones(2), torch.ones(2, dtype=torch.long)
    with fw.dual_level():
        with refused("Expected tangent to be floating point or complex", ValueError):
            fw.make_dual(real, whole)
        for tangent in (real, whole):
            with refused("Expected primal to be floating point or complex", ValueError):
                fw.make_dual(whole, tangent)


@forward
def print_(torch):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        a = torch.rand(3)
        dual = fw.make_dual(a, torch.rand(3))
        parts = fw.unpack_dual(dual)
        assert "tangent=" in str(dual)
        assert not any("tangent=" in str(one) for one in (a, *parts))


@forward
def basic_packing_unpacking(torch):
    fw = torch.autograd.forward_ad
    p, t = torch.rand(2), torch.rand(2)
    with fw.dual_level():
        dual = fw.make_dual(p, t)
        first, second = fw.unpack_dual(dual)
        assert near(first, p)
        assert second is t
        assert fw.unpack_dual(dual).primal is not first
        assert fw.unpack_dual(dual).tangent is second
        assert near(fw.unpack_dual(p).primal, p)
        assert fw.unpack_dual(p).tangent is None


@forward
def advanced_packing_unpacking(torch):
    fw = torch.autograd.forward_ad
    p, t = torch.rand(2), torch.ones(2)
    with fw.dual_level():
        dual = fw.make_dual(p, t)
        assert dual.storage().data_ptr() == p.storage().data_ptr()
        p.add_(1)
        assert p._version == dual._version
        first, second = fw.unpack_dual(dual)
        assert first.storage().data_ptr() == p.storage().data_ptr()
        assert second is t
        p.add_(1)
        assert p._version == first._version
        t.add_(1)
        assert t._version == second._version
    with fw.dual_level():
        p.requires_grad_(), t.requires_grad_()
        dual = fw.make_dual(p, t)
        first, second = fw.unpack_dual(dual)
        gp, gt = torch.autograd.grad(first.sum(), (p, t), retain_graph=True, allow_unused=True)
        assert near(gp, 1.0)
        assert gt is None
        gp, gt = torch.autograd.grad(second.sum(), (p, t), retain_graph=True, allow_unused=True)
        assert gp is None
        assert near(gt, 1.0)
        first, second = fw.unpack_dual(dual.detach() * 2)
        assert not first.requires_grad
        assert second is None
        with torch.no_grad():
            out = dual * 3
        first, second = fw.unpack_dual(out)
        assert not first.requires_grad
        assert not second.requires_grad
        assert near(second, t * 3)
        copy = dual.clone()
        copy.detach_()
        first, second = fw.unpack_dual(copy * 2)
        assert not first.requires_grad
        assert second is None


@forward
def view_inplace_non_differentiable_views(torch):
    fw = torch.autograd.forward_ad
    p, t = torch.tensor([0.5, 2.0], dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    with fw.dual_level():
        dual = fw.make_dual(p, t)
        dual *= 2
        assert fw.unpack_dual(p).tangent is None
        assert near(t, [2.0, 2.0])
        assert near(p, [1.0, 4.0])
        assert near(fw.unpack_dual(dual).tangent, [2.0, 2.0])
        first, second = fw.unpack_dual(dual)
        assert fw.unpack_dual(first).tangent is None
        assert fw.unpack_dual(second).tangent is None
        first *= 2
        assert near(fw.unpack_dual(dual), [[2.0, 8.0], [2.0, 2.0]])
        second *= 2
        assert near(fw.unpack_dual(dual), [[2.0, 8.0], [4.0, 4.0]])


@forward
def view_inplace_differentiable_views(torch):
    fw = torch.autograd.forward_ad
    p, t = torch.rand(2), torch.ones(2)
    with fw.dual_level():
        dual = fw.make_dual(p, t)
        view = dual.narrow(0, 0, 1)
        view *= 2
        assert fw.unpack_dual(p).tangent is None
        assert near(fw.unpack_dual(dual).tangent, [2.0, 1.0])
        assert near(fw.unpack_dual(view).tangent, [2.0])
        other = torch.rand(2)
        other += dual
        assert near(fw.unpack_dual(other).tangent, [2.0, 1.0])
        other = torch.rand(2)
        other[0] = dual[0]
        assert near(fw.unpack_dual(other).tangent, [2.0, 0.0])
        other = torch.rand(2)
        cut = other.detach()
        cut += dual
        assert fw.unpack_dual(other).tangent is None


@forward
def view_inplace_always_creates_a_view(torch):
    fw = torch.autograd.forward_ad
    for name in ("add_", "mul_", "copy_"):
        base = torch.rand(2, 2)
        view = base.transpose(0, 1)
        with fw.dual_level():
            getattr(view, name)(fw.make_dual(torch.rand(2, 2), torch.rand(2, 2)))
            before = [one.clone() for one in fw.unpack_dual(base)]
            view *= 2
            after = fw.unpack_dual(base)
            assert near(after, [2 * one for one in before])


@forward
def grad_cleanup(torch):
    fw = torch.autograd.forward_ad
    p, t, other = torch.rand(2), torch.rand(2), torch.rand(2)
    with fw.dual_level():
        dual = fw.make_dual(p, t)
        assert fw.unpack_dual(p).tangent is None
        assert fw.unpack_dual(dual).tangent is t
    assert fw.unpack_dual(dual).tangent is None
    with fw.dual_level():
        fresh = fw.make_dual(p, other)
        assert near(fw.unpack_dual(dual).primal, fw.unpack_dual(fresh).primal)
        assert fw.unpack_dual(dual).tangent is None
        assert near(fw.unpack_dual(fresh).tangent, other)


@forward
def detach_view_tracking(torch):
    a = torch.rand(2)
    ref = weakref.ref(a)
    out = a.detach()
    del a
    assert ref() is None, out


@forward
def out_variant(torch):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual, plain = fw.make_dual(torch.rand(2), torch.rand(2)), torch.rand(2)
        with refused("out= function"):
            torch.add(plain, plain, out=dual)
        with refused("out= function"):
            torch.add(dual, plain, out=plain)


@forward
def non_differentiable(torch):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual, plain = fw.make_dual(torch.rand(2), torch.rand(2)), torch.rand(2)
        assert fw.unpack_dual(dual == plain).tangent is None
        dual.eq_(plain)


@forward
def backward_graph_destruction(torch):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        tangent = torch.rand(10, requires_grad=True)
        fw.make_dual(torch.rand_like(tangent), tangent).exp()
    gc.collect()


forward.cannot("operations by name below autograd", "create_new_zeros_with_same_meta")
forward.cannot("__torch_dispatch__", "make_dual_torch_dispatch")


@batched
def out_of_place_basic(torch):
    a, b = (torch.rand(4, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    every = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert torch.autograd.gradcheck(torch.sin, a, **every)
    assert torch.autograd.gradcheck(torch.add, (a, b), **every)


@batched
def out_of_place_not_same_layout(torch):
    fw = torch.autograd.forward_ad
    primal, tangent = torch.zeros(2, 2).transpose(0, 1), torch.zeros(2, 2, 2)

    def run(t):
        with fw.dual_level():
            return fw.unpack_dual(fw.make_dual(primal, t)).tangent

    assert torch._vmap_internals._vmap(run, 0, 0)(tangent) is not tangent


@batched
def inplace_on_view_same_layout(torch):
    fw = torch.autograd.forward_ad
    tangent, base = torch.zeros(2, 2, 2), torch.zeros(2, 2)
    view = base.view_as(base)

    def run(t):
        with fw.dual_level():
            dual = fw.make_dual(torch.zeros(2, 2), t)
            view.copy_(dual)
            return tuple(fw.unpack_dual(one).tangent for one in (dual, view, view._base))

    of_dual, of_view, of_base = torch._vmap_internals._vmap(run, 0, 0)(tangent)
    assert not of_view._is_view()
    assert of_view is of_base
    assert of_dual is tangent


@batched
def inplace_on_view_not_same_layout(torch):
    fw = torch.autograd.forward_ad
    tangent, view = torch.zeros(2, 2, 2), torch.zeros(2, 2).transpose(0, 1)

    def run(t):
        with fw.dual_level():
            dual = fw.make_dual(torch.zeros(2, 2), t)
            view.copy_(dual)
            return tuple(fw.unpack_dual(one).tangent for one in (dual, view, view._base))

    of_dual, of_view, of_base = torch._vmap_internals._vmap(run, 0, 0)(tangent)
    assert of_view._base is of_base
    assert of_dual is tangent
    assert of_view is not tangent


@batched
def metadata_check_for_storage_numel_skipped(torch):
    fw = torch.autograd.forward_ad
    primal = torch.rand(5)[:4].detach()

    def run(t):
        with fw.dual_level():
            dual = fw.make_dual(primal, t)
            part = fw.unpack_dual(dual).tangent
            assert part is t
            with refused("can access memory outside of `tensor`"):
                dual.as_strided((5,), (1,), 0)
        return part

    torch._vmap_internals._vmap(run, 0, 0)(torch.rand(10, 4))
