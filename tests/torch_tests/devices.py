"""Views and writes on the CPU, layouts, complex numbers, threads."""

from __future__ import annotations

import math
import sys
import threading
import traceback
from functools import partial

from tests.torch_tests.suite import Suite, function, leaf, near, refused

cpu = Suite("TestAutogradDeviceType")
threads = Suite("TestMultithreadAutograd")
dispatch = Suite("TestAutogradMultipleDispatch")


@cpu
def min_max_median_backprops_to_all_values(torch):
    for call in (torch.min, torch.max, torch.median, torch.nanmedian):
        for values in ([1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [math.nan] * 3):
            x = torch.tensor(values, requires_grad=True)
            call(x).backward()
            assert near(x.grad.sum(), 1.0)
            assert (x.grad == 1 / 3).sum() == 3


@cpu
def scatter_index_reduce_amin_amax_backprops_to_all_values(torch):
    for name in ("amin", "amax"):
        x = leaf(torch, 2, 3)
        source, at = x.detach().clone().requires_grad_(), torch.arange(2)
        check = partial(torch.autograd.gradcheck, check_batched_grad=False)
        assert check(torch.scatter_reduce, (x, 0, at.unsqueeze(-1).expand(2, 3), source, name))
        assert check(torch.index_reduce, (x, 0, at, source, name))


@cpu
def scatter_index_reduce_prod_gradgrad_error(torch):
    x = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    source, at = torch.zeros(2, dtype=torch.float64, requires_grad=True), torch.tensor([0, 0])
    for call in (torch.scatter_reduce, torch.index_reduce):
        assert torch.autograd.gradcheck(call, (x, 0, at, source, "prod"), check_batched_grad=False)
        with refused("Double backward is unsupported for"):
            torch.autograd.gradgradcheck(call, (x, 0, at, source, "prod"))


@cpu
def parameter_resize(torch):
    p = torch.nn.Parameter(torch.ones(16, dtype=torch.float64))
    for _ in range(2):
        with torch.no_grad():
            p.set_(p[1:])
            p.grad = None
        torch.cat((p, p)).sum().backward()
        assert near(p.grad, 2.0)


@cpu
def pyscalar_conversions(torch):
    whole, real = torch.zeros(1, 1, 1, dtype=torch.long), torch.zeros(1, 1, dtype=torch.float64)
    whole[0] = -12345
    assert int(whole) == -12345
    for value in (-12345.1, math.inf, -math.inf):
        real[0] = value
        assert float(real) == value
    whole[0] = 1234567890123456789
    assert float(whole) == float(1234567890123456789)
    for value, kind in ((math.nan, ValueError), (math.inf, OverflowError), (-math.inf, OverflowError)):
        real[0] = value
        with refused("", kind):
            int(real[0])
    real[0] = sys.float_info.max
    assert int(real) == sys.float_info.max
    for value in (0.0, sys.float_info.min, math.nan, math.inf):
        real[0] = value
        assert bool(real) == bool(value)


@cpu
def set_requires_grad_only_for_floats(torch):
    for dtype in (torch.float32, torch.float64, torch.int8, torch.int64):
        a = torch.ones(1, dtype=dtype)
        a.requires_grad = False
        for call in (
            lambda dtype=dtype: torch.ones(1, dtype=dtype).requires_grad_(),
            lambda dtype=dtype: setattr(torch.ones(1, dtype=dtype), "requires_grad", True),
            lambda dtype=dtype: torch.ones(1, dtype=dtype, requires_grad=True),
        ):
            if dtype.is_floating_point:
                call()
            else:
                with refused("floating point"):
                    call()


@cpu
def advanced_indexing_backwards_memory_format(torch):
    shape = (2, 8, 1, 2)
    at = torch.randint(1, shape).contiguous(memory_format=torch.channels_last)
    torch.rand(shape, requires_grad=True)[at].sum().backward()


@cpu
def where_functional(torch):
    condition = torch.tensor([[True, False, True]] * 3)
    for shapes in (((3, 3), (3, 3)), ((3, 1, 3), (3, 3, 1))):
        x, y = (leaf(torch, *shape) for shape in shapes)
        assert torch.autograd.gradcheck(torch.where, [condition, x, y])
        assert torch.autograd.gradgradcheck(torch.where, [condition, x, y])


@cpu
def where_scalar(torch):
    condition, x = torch.tensor([True, False, True]), leaf(torch, 3)
    for call in (lambda c, x: torch.where(c, 4.0, x), lambda c, x: torch.where(c, x, 4.0)):
        assert torch.autograd.gradcheck(call, (condition, x))
        assert torch.autograd.gradgradcheck(call, (condition, x))


@cpu
def grad_assignment(torch):
    x = torch.rand(5, 5)
    with refused("expected to be a Tensor or None", TypeError):
        x.grad = 0
    for wrong in (torch.rand(2, 2), torch.ones(5, 5, dtype=torch.long), x):
        with refused(""):
            x.grad = wrong


@cpu
def requires_grad_factory(torch):
    for dtype in (torch.float32, torch.float64):
        x = torch.rand(2, 3, dtype=dtype)
        for call in (torch.ones_like, torch.randn_like):
            for needs in (True, False):
                out = call(x, dtype=dtype, requires_grad=needs)
                assert out.requires_grad is needs
                assert out.dtype is dtype


@cpu
def copy__(torch):
    x = torch.rand(10, requires_grad=True)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        y = torch.empty(10, dtype=dtype)
        y.copy_(x)
        assert y.requires_grad
    assert x.to(torch.bfloat16).requires_grad


@cpu
def copy_forward_ad_broadcasting(torch):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        out = torch.rand(1, 3, 3)
        out.copy_(fw.make_dual(torch.rand(3, 3), torch.ones(3, 3)))
        assert near(fw.unpack_dual(out).tangent, 1.0)


@cpu
def copy_forward_ad_same_layout_copies_grad(torch):
    fw = torch.autograd.forward_ad
    tangent = torch.tensor([[5.0], [6.0]])
    with fw.dual_level():
        out = torch.zeros(2, 1)
        out.copy_(fw.make_dual(torch.ones(2, 1), tangent))
        assert fw.unpack_dual(out).tangent is not tangent


@cpu
def inplace_on_view_backprop_base(torch):
    root = leaf(torch, 2, 2)
    x = root.clone()
    x.narrow(0, 0, 1).mul_(2)
    x.sum().backward()
    assert near(root.grad, [[2.0, 2.0], [1.0, 1.0]])


@cpu
def inplace_on_view_backprop_view_of_view(torch):
    root = leaf(torch, 2, 2)
    x = root.clone()
    one, two = x.narrow(0, 0, 1), x.narrow(0, 0, 1)
    one.mul_(2)
    two.sum().backward()
    assert near(root.grad, [[2.0, 2.0], [0.0, 0.0]])


@cpu
def inplace_on_view_of_view(torch):
    root = leaf(torch, 2, 2)
    x = root.clone()
    x.narrow(0, 0, 1).narrow(1, 1, 1).mul_(2)
    x.sum().backward()
    assert near(root.grad, [[1.0, 2.0], [1.0, 1.0]])


@cpu
def inplace_on_view_then_no_grad(torch):
    b = torch.ones(3, 1, dtype=torch.float64, requires_grad=True) * 2
    c = b.view_as(b)
    c[0][0] = 3
    with torch.no_grad():
        c.grad_fn
    c.sum().backward()


def _twice_checked(torch, run, args):
    assert torch.autograd.gradcheck(run, args)
    assert torch.autograd.gradgradcheck(run, args)


@cpu
def inplace_on_view_gradcheck(torch):
    def run(root, b):
        x = root.clone()
        x.narrow(1, 2, 2).narrow(0, 1, 2).mul_(b)
        x.narrow(1, 0, 2).narrow(0, 1, 2).mul_(b)
        return x

    _twice_checked(torch, run, [leaf(torch, 4, 4), leaf(torch, 2, 2)])


@cpu
def inplace_on_view_multiple_outputs(torch):
    with refused(""):
        leaf(torch, 3, 3).clone().unbind()[0].mul_(2)


@cpu
def inplace_on_view_of_multiple_output_view(torch):
    part = leaf(torch, 10).clone().unbind(0)[0]
    with refused(""):
        part.view_as(part).mul_(2)


@cpu
def inplace_multiple_output_view_of_view(torch):
    a = leaf(torch, 10).clone()
    with refused(""):
        a.view_as(a).unbind(0)[0].mul_(2)


@cpu
def inplace_on_view_makes_base_require_grad(torch):
    def run(root, b):
        x = root.clone()
        assert not x.requires_grad
        x.narrow(1, 2, 2).mul_(b)
        assert x.requires_grad
        return x

    _twice_checked(torch, run, [leaf(torch, 4, 4).detach(), leaf(torch, 4, 2)])


@cpu
def inplace_on_view_backprop_view(torch):
    a, b = torch.tensor([2.0, 5.0]), torch.tensor([3.0], requires_grad=True)
    a.narrow(0, 1, 1).mul_(b).sum().backward()
    assert near(b.grad, [5.0])
    assert a.grad is None


@cpu
def inplace_on_view_modify_base(torch):
    def run(r):
        x = torch.ones(5, dtype=torch.float64)
        v = x.select(0, 1)
        assert not v.requires_grad
        assert v.grad_fn is None
        x.add_(r)
        assert v.requires_grad
        return v

    _twice_checked(torch, run, [torch.ones(1, dtype=torch.float64, requires_grad=True)])


@cpu
def inplace_on_view_python(torch):
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.add_(y)

    made = function(torch, forward, lambda ctx, g: (g, g))

    def run(root, b):
        x = root.clone()
        made.apply(x.narrow(1, 2, 2).narrow(0, 1, 2), b)
        made.apply(x.narrow(1, 0, 2).narrow(0, 1, 2), b)
        return x

    _twice_checked(torch, run, [leaf(torch, 4, 4), leaf(torch, 2, 2)])


@cpu
def inplace_on_view_non_contig(torch):
    root = torch.ones(2, 3, 2).select(2, 1).t().requires_grad_()
    x = root.clone()
    x.narrow(0, 0, 1).narrow(1, 1, 1).mul_(2)
    x.sum().backward()
    assert near(root.grad, [[1.0, 2.0], [1.0, 1.0], [1.0, 1.0]])


@cpu
def inplace_on_view_multi_output_unsafe(torch):
    for call in (
        lambda t: t.unsafe_split(1),
        lambda t: t.unsafe_split_with_sizes((1, 1, 1)),
        lambda t: t.unsafe_chunk(3),
    ):
        one, two, _ = call(leaf(torch, 3, 3) * 2)
        one.mul_(two)
        one.sum().backward()


@cpu
def inplace_on_view_multi_output_safe(torch):
    for call in (lambda t: t.split(1), lambda t: t.split_with_sizes((1, 1, 1)), lambda t: t.chunk(3)):
        one, two, _ = call(leaf(torch, 3, 3) * 2)
        with refused("This view is the output of a function that returns multiple views."):
            one.mul_(two)


@cpu
def inplace_on_view_undefined_grad_output(torch):
    def forward(ctx, x, other):
        ctx.mark_dirty(x)
        return x.mul_(2)

    a, b = torch.tensor([1.0], requires_grad=True), torch.tensor(1.0, requires_grad=True)
    function(torch, forward, lambda ctx, g: (g * 2, None)).apply(a.clone()[:], b).backward()
    assert b.grad is None
    assert near(a.grad, [2.0])


@cpu
def mv_grad_stride_0(torch):
    matrix = leaf(torch, 2, 2).detach()
    _twice_checked(torch, lambda v: (matrix @ v.expand(2)).sum(), leaf(torch, 1))


@cpu
def strided_leaf_grad_layout(torch):
    for one in (torch.contiguous_format, torch.channels_last):
        for two in (torch.contiguous_format, torch.channels_last):
            a, b = (torch.rand(2, 3, 4, 5).to(memory_format=f).requires_grad_() for f in (one, two))
            for loss in (lambda a=a, b=b: a.sum() + b.sum(), lambda a=a, b=b: (a * b).sum()):
                a.grad = b.grad = None
                loss().backward()
                assert a.grad.stride() == a.stride()
                assert b.grad.stride() == b.stride()
    c = torch.empty_strided((2, 2), (4, 2)).copy_(torch.rand(2, 2)).requires_grad_()
    for loss in (lambda: c.sum(), lambda: (c * torch.rand(2, 2)).sum()):
        c.grad = None
        loss().backward()
        assert c.grad.stride() == (2, 1)


@cpu
def copy_r_to_c(torch):
    out, x = torch.empty(3, 2, dtype=torch.complex128), leaf(torch, 3, 2)
    out.copy_(x)
    total = out.sum()
    total.abs().backward()
    assert near(x.grad, torch.sgn(total.detach()).real.item())


@cpu
def to_r_to_c(torch):
    x = leaf(torch, 3, 2)
    total = x.to(torch.complex128).sum()
    total.abs().backward()
    assert near(x.grad, torch.sgn(total.detach()).real.item())


@cpu
def non_differentiable_ops(torch):
    x = torch.tensor([[1, 2], [3, 4.0]], requires_grad=True)
    assert not torch.isin(x, torch.tensor([2, 3])).requires_grad
    assert not torch.signbit(x).requires_grad


@cpu
def complex_scalar_backward(torch):
    a = torch.zeros(1, requires_grad=True)
    words = "grad can be implicitly created only for real scalar outputs"
    with refused(words):
        (a * 0.5j).backward()
    with refused(words):
        torch.autograd.grad(a * 0.5j, a)


@cpu
def pow_real_negative_base_complex_exponent(torch):
    exponent = torch.tensor([0.3 + 0.4j, -0.7 + 0.2j], dtype=torch.complex128, requires_grad=True)
    base = -torch.ones(2, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda e: torch.pow(base, e), (exponent,))
    assert torch.autograd.gradcheck(lambda e: torch.pow(-1, e), (exponent,))


@cpu
def resize_version_bump(torch):
    x, y = torch.rand(1), torch.rand(3)
    x.resize_((1, 2))
    assert x._version == 1
    x.resize_as_(y)
    assert x._version == 2
    x.resize_((3,)), x.resize_as_(y)
    assert x._version == 2


cpu.cannot("sparse tensors", "sparse_ctor_getter_backward", "sparse_backward", "sparse_mask_autograd")
cpu.cannot("CUDA", "advanced_indexing_backwards_large", "reentrant_parent_error_on_cpu", "free_unneeded_tensor", "pin_memory",
    "profiler_emit_nvtx", "rnn_backward_to_input_but_not_parameters", "unused_output_device", "backward_device",
    "inputbuffer_add_multidevice", "simple_reentrant_cross_device", "cross_device_reentrant_autograd",
    "gradcheck_input_output_different_device", "zero_dim_param_mixed_device_grad")  # fmt: skip
cpu.cannot("a tool of Intel's", "profiler_emit_itt")
cpu.cannot("an operation made for the test", "warning_in_backward")


# ---- threads ----
def _together(run, args=(), count=6):
    errors = []

    def guarded():
        try:
            run(*args)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=guarded) for _ in range(count)]
    for one in started:
        one.start()
    for one in started:
        one.join()
    if errors:
        raise errors[0]


@threads
def multithreaded_exception_propagation(torch):
    with refused("", ZeroDivisionError):
        _together(lambda: 1 / 0)


@threads
def simple_backward(torch):
    def train():
        x = torch.ones(5, 5, requires_grad=True)
        ((x + 3) * (x + 4) * 0.5).sum().backward()
        assert near(x.grad, x + 3.5)

    _together(train)


@threads
def simple_backward_same_input(torch):
    x = torch.ones(5, 5, requires_grad=True)
    _together(lambda: ((x + 3) * (x + 4) * 0.5).sum().backward())
    assert near(x.grad, 6 * (x + 3.5))

    def asks():
        assert near(torch.autograd.grad(((x + 3) * (x + 4) * 0.5).sum(), x)[0], x + 3.5)

    _together(asks)


@threads
def multi_grad_all_hooks(torch):
    a, b, c = (torch.rand(2, requires_grad=True) for _ in range(3))
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        (a, b, c), lambda gs: seen.append([g is not None for g in gs])
    )
    out = (b * c).sum()
    _together(lambda: out.backward(inputs=(b, c), retain_graph=True), count=5)
    assert seen == [[False, True, True]] * 5
    handle.remove()


@threads
def multi_grad_any_hooks(torch):
    a, b, c = (torch.rand(2, requires_grad=True) for _ in range(3))
    seen = []
    torch.autograd.graph.register_multi_grad_hook((a, b, c), lambda g: seen.append(1), mode="any")
    out = (b * c).sum()
    _together(lambda: out.backward(inputs=(b, c), retain_graph=True), count=5)
    assert len(seen) == 5


@threads
def python_thread_in_middle(torch):
    counts, lock = [0, 0], threading.Lock()
    x = torch.ones(5, requires_grad=True)
    y = x + x**2

    def once():
        try:
            (y + y**2).sum().backward()
            at = 0
        except RuntimeError as error:
            assert "Specify retain_graph=True" in str(error)
            at = 1
        with lock:
            counts[at] += 1

    _together(once, count=5)
    assert counts[0] >= 1
    x = torch.ones(5, requires_grad=True)
    z = x + x**2
    _together(lambda: (z + z**2).sum().backward(retain_graph=True), count=5)
    assert near(x.grad, 5 * (4 * x**3 + 6 * x**2 + 4 * x + 1))


@threads
def preserve_backtrace(torch):
    def fail(ctx, *g):
        raise ValueError("something")

    try:
        function(torch, lambda ctx, x: x, fail).apply(torch.rand(10, requires_grad=True)).sum().backward()
    except Exception as error:
        assert 'raise ValueError("something")' in "\n".join(traceback.format_tb(error.__traceback__))


@threads
def cat_stack_r_to_c(torch):
    z = torch.rand(3, 2, dtype=torch.complex128, requires_grad=True)
    for call in (torch.cat, torch.stack):
        for pair in ([leaf(torch, 3, 2), z], [z, leaf(torch, 3, 2)]):
            assert torch.autograd.gradcheck(lambda a, b, call=call: call((a, b), dim=-1), pair, check_forward_ad=True)


@threads
def set_multithreading_enabled_as_context_manager_and_function(torch):
    switch, asked = torch.autograd.set_multithreading_enabled, torch.autograd.is_multithreading_enabled
    with switch(False):
        assert not asked()
        switch(True)
        assert asked()
    assert asked()
    switch(False)
    assert not asked()
    switch(True)
    assert asked()


threads.cannot("nn.DataParallel", "dataparallel_saved_tensors_hooks")
threads.cannot("torch.jit", "fork_join_in_middle")
threads.cannot("CUDA", "custom_function_propagates_errors_from_device_thread")


# ---- what else stands in the class about dispatch ----
@dispatch
def is_retain_graph(torch):
    seen = []
    asked = torch._C._autograd._get_current_graph_task_keep_graph
    made = function(torch, lambda ctx, x: x.clone(), lambda ctx, g: seen.append(asked()) or g)
    out = made.apply(torch.rand(10, requires_grad=True))
    for keep in (True, False):
        out.sum().backward(retain_graph=keep)
    assert seen == [True, False]


@dispatch
def set_sequence_nr(torch):
    x, y, z = (torch.rand(3, requires_grad=True) for _ in range(3))
    a, b = x + y, y + z
    c, order = a + b, []
    for one, number, name in ((a, 100, "a"), (b, 99, "b"), (c, 98, "c")):
        one.grad_fn._set_sequence_nr(number)
        assert one.grad_fn._sequence_nr() == number
        one.register_hook(lambda g, name=name: order.append(name))
    c.sum().backward()
    assert order == ["c", "a", "b"]
    assert near(y.grad, 2.0)


@dispatch
def atan2_zero_gradient(torch):
    x, y = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    torch.atan2(x, y).backward()
    assert near(x.grad, [0.0])
    assert near(y.grad, [0.0])


@dispatch
def backward_respects_torch_function(torch):
    seen = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func is torch.autograd.backward)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.rand(3, requires_grad=True)
    torch.autograd.backward((x * 2).as_subclass(Own), torch.ones(3))
    assert any(seen)
    assert near(x.grad, 2.0)


@dispatch
def trace_backward_nonsquare_171704(torch):
    for shape in ((5, 2), (4, 1), (1, 5), (2, 5)):
        x = leaf(torch, *shape)
        torch.trace(x).backward()
        assert near(x.grad, [[float(i == j) for j in range(shape[1])] for i in range(shape[0])])


dispatch.cannot("operations made for the test", "autograd_multiple_dispatch_registrations", "view_copy", "foward_mode_AD",
    "autograd_composite_implicit_and_dispatch_registration", "per_dispatch_key_input_saving")  # fmt: skip
dispatch.cannot("CUDA", "backward_single_threaded", "backward_tls_stash")
streams = Suite("TestAutogradStreamSynchronization")
streams.cannot("CUDA streams", "consumer_to_single_producer_case_2_correctness",
    "consumer_to_single_producer_case_3_correctness_non_default_ambient_stream", "consumer_to_single_producer_case_3_correctness",
    "consumer_to_single_producer_case_4_correctness", "consumer_to_multi_producer_case_4_correctness",
    "side_stream_backward_overlap", "warn_on_accumulate_grad_stream_mismatch_flag")  # fmt: skip
