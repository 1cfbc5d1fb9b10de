"""What graphs save: raw saved variables, hooks on them, default hooks, values written after they were saved."""

from __future__ import annotations

import os
import tempfile
import warnings
import weakref

from tests.torch_tests.suite import Suite, function, leaf, near, no_collector, refused, suite

mutation = Suite("TestAllowMutationOnSaved")
saving = suite("TestAutograd")


def cloned(context):
    return len(list(context.cloned.items()))


def known(context):
    return len(list(context.tid_to_weakhandle.items()))


def same(x):
    return x


@mutation
def basic(torch):
    def run():
        a = leaf(torch, 2, 3)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        out.backward()
        return a

    with refused("modified by an inplace"):
        run()
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = run()
    assert near(a.grad, 2 * a)
    assert cloned(context) == 0


@mutation
def views(torch):
    def run():
        a = leaf(torch, 2, 3)
        b = a.clone()
        view = b.view_as(b)
        out = (b**2).sum()
        view.sin_()
        out.backward()
        return a

    with refused("modified by an inplace"):
        run()
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = run()
    assert near(a.grad, 2 * a)
    assert cloned(context) == 0


@mutation
def save_base_and_modify_view(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = leaf(torch, 2, 3)
        b = a.clone()
        part, out = b[:1], b**2
        part *= 10
        out.sum().backward()
        assert cloned(context) == 0
    assert near(a.grad, 2 * a)


@mutation
def save_view_modify_base(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(torch, 2, 3)
        b = a.clone()
        out = (b[:] ** 2).sum()
        b *= 2
        out.backward()
    assert near(a.grad, 2 * a)


@mutation
def double_backward(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = leaf(torch, 2, 3)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        torch.autograd.grad(out, a, create_graph=True)
        (first,) = torch.autograd.grad(out, a, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), a)
    assert near(second, 2.0)
    assert cloned(context) == 0


@mutation
def saved_but_not_anymore(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = leaf(torch, 2, 3).clone()
        out = (a**2).sum()
        assert (known(context), cloned(context)) == (1, 0)
        out.backward()
        a.sin_()
        assert cloned(context) == 0
        out = (a**2).sum()
        a.sin_()
        assert cloned(context) == 1
        del out
        assert cloned(context) == 0


@mutation
def saved_same_tensor_many_times(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = leaf(torch, 2, 3).clone()
        b, c = a**2, a**2
        a.sin_()
        assert cloned(context) == 1
        del b, c
        assert cloned(context) == 0


@mutation
def saved_same_tensor_different_versions(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = leaf(torch, 2, 3).clone()
        b = a**2
        a.sin_()
        c = a**2
        a.sin_()
        assert cloned(context) == 2
        del b
        assert cloned(context) == 1
        del c
        assert cloned(context) == 0


@mutation
def with_math_views(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        for written in ("base", "view"):
            a = torch.tensor([1 + 1j], requires_grad=True).clone()
            b = a.conj()
            out = (b**2).sum()
            (a if written == "base" else b).sin_()
            out.abs().backward()


@mutation
def with_out_variant(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a, b = torch.ones(1, requires_grad=True), torch.ones(1)
        out = a * b
        assert known(context) == 1
        torch.sin(torch.tensor([2.0]), out=b)
        assert cloned(context) == 1
        out.backward()
        assert cloned(context) == 0
        assert near(a.grad, [1.0])


@mutation
def backward_out_of_context(torch):
    words = "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
    allowed = torch.autograd.graph.allow_mutation_on_saved_tensors
    with allowed():
        out = (leaf(torch, 2) ** 2).sum()
    with refused(words, AssertionError):
        out.backward()
    with allowed():
        out = (leaf(torch, 2) ** 2).sum()
    with allowed(), refused(words, AssertionError):
        out.backward()


@mutation
def disallow_nesting(torch):
    allowed = torch.autograd.graph.allow_mutation_on_saved_tensors
    with allowed(), refused("contexts cannot be nested"):
        with allowed():
            pass


@mutation
def inplace_foreach(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = [torch.tensor(1.0, requires_grad=True) for _ in range(2)]
        b = torch._foreach_exp(a)
        torch._foreach_add_(b, 1)
        (b[0] + b[1]).backward()
    assert near([one.grad for one in a], torch._foreach_exp(a))


@saving
def saved_tensor_hooks_extra_exit_during_bw_no_crash(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks

    def unpack(x):
        inner.__exit__()
        return x

    inner = hooks(same, unpack)
    for _ in range(5):
        with hooks(same, same):
            inner.__enter__()
            leaf(torch, 3, 3).sin().sum().backward()
    for _ in range(5):
        inner.__exit__()
    y = leaf(torch, 2).exp()
    y.grad_fn._raw_saved_result.register_hooks(same, same)


@saving
def saved_tensor_hooks_extra_enter_during_bw_no_leak(torch):
    def scope():
        def unpack(x):
            held().__enter__()
            return x

        hooks = torch.autograd.graph.saved_tensors_hooks(same, unpack)
        held = weakref.ref(hooks)
        x = leaf(torch, 3, 3)
        with hooks:
            x.sin().sum().backward()
        return weakref.ref(unpack)

    with no_collector():
        assert scope()() is None


@saving
def grad_fn_attr_bindings(torch):
    kind = torch._C._autograd.SavedTensor
    a, b = torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    stacked, product = torch.stack([a, b]), (a * 2) * b
    assert near(product.grad_fn._saved_self, a * 2)
    assert isinstance(product.grad_fn._saved_self, torch.Tensor)
    assert isinstance(product.grad_fn._raw_saved_self, kind)
    assert type(stacked.grad_fn._saved_dim) is int
    product.grad_fn._raw_saved_self.register_hooks(same, same)
    product.sum().backward()
    with refused("after they have already been freed"):
        product.grad_fn._saved_self
    a, at = torch.ones(2, 2, requires_grad=True), torch.tensor([0, 1])
    node = a[:, at].grad_fn
    assert node._saved_indices[0] is None
    assert near(node._saved_indices[1], at)
    assert isinstance(node._raw_saved_indices[1], kind)
    assert tuple(node._saved_self_sym_sizes) == (2, 2)
    node._raw_saved_indices[1].register_hooks(same, same)
    with refused("None is forbidden"):
        node._raw_saved_indices[0].register_hooks(same, same)
    assert tuple(a.mean().grad_fn._saved_self_sym_sizes) == (2, 2)
    square = a * a
    square.grad_fn._raw_saved_self.register_hooks(same, same)
    square.sum().backward()
    with refused("after it has been freed"):
        square.grad_fn._raw_saved_self.register_hooks(same, same)
    line = torch.ones(1, 1, 2, requires_grad=True)
    node = torch.nn.functional.interpolate(line, 4, mode="linear").grad_fn
    assert tuple(node._saved_output_size) == (4,)
    assert node._saved_align_corners is False
    assert getattr(node, "_saved_scale_factors", None) is None
    assert torch.nn.functional.interpolate(line, scale_factor=0.5, mode="linear").grad_fn._saved_scales == 0.5
    image = torch.ones(1, 1, 3, 3, requires_grad=True)
    assert tuple(torch.nn.Conv2d(1, 1, 3)(image).grad_fn._saved_bias_sym_sizes_opt) == (1,)
    assert tuple(torch.nn.Conv2d(1, 1, 3, bias=False)(image).grad_fn._saved_bias_sym_sizes_opt) == (0,)
    cube = torch.ones(1, 3, 3, requires_grad=True)
    node = torch.addbmm(cube.squeeze(0), cube, cube).grad_fn
    assert (node._saved_batch1_sym_argsize_0, node._saved_batch1_sym_argsize_1) == (1, 3)
    node = torch.nn.functional.unfold(image, 3).grad_fn
    assert (node._saved_self_sym_argsize_minus_2, node._saved_self_sym_argsize_minus_1) == (3, 3)
    assert type(torch.pdist(a, p=1).grad_fn._saved_p) is float
    assert torch.logit(line, 1.0).grad_fn._saved_eps == 1.0
    assert torch.logit(line).grad_fn._saved_eps is None
    assert torch.linalg.qr(a, mode="reduced")[0].grad_fn._saved_mode == "reduced"
    assert torch.div(a, 2.0, rounding_mode="trunc").grad_fn._saved_rounding_mode == "trunc"
    for threshold, kind_of in ((1 + 0j, complex), (1.0, float), (1, int), (False, bool)):
        out = torch.threshold(torch.zeros(5, requires_grad=True), threshold=threshold, value=threshold)
        assert type(out.grad_fn._saved_threshold) is kind_of
    assert a.as_strided((3,), (1,), 1).grad_fn._saved_storage_offset == 1
    assert a.as_strided((3,), (1,)).grad_fn._saved_storage_offset is None
    out = torch.tanh(a)
    assert near(out, out.grad_fn._saved_result)
    scores, target = torch.rand(3, 5, requires_grad=True), torch.tensor([1, 0, 4])
    assert torch.nn.NLLLoss()(scores, target).grad_fn._saved_weight is None
    out = torch.nn.NLLLoss(weight=torch.ones(5))(scores, target)
    assert near(out.grad_fn._saved_weight, 1.0)
    out.backward()
    with refused("after they have already been freed"):
        out.grad_fn._saved_weight
    for one in torch._foreach_maximum([torch.ones(2, requires_grad=True)], [0.0]):
        assert list(one.grad_fn._saved_scalars) == [0.0]


@saving
def get_data_and_hooks_from_raw_saved_variable(torch):
    def unpack(x):
        return x

    a = torch.tensor(2.0, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(same, unpack):
        b = a**2
    c = b.exp()
    d = c**2
    first, result, second = b.grad_fn._raw_saved_self, c.grad_fn._raw_saved_result, d.grad_fn._raw_saved_self
    assert first.data is a
    assert first.unpack_hook is unpack
    assert result.data is not c
    assert result.unpack_hook is None
    assert second.data is c
    assert second.unpack_hook is None


@saving
def saved_tensor_constructor_with_hooks(torch):
    counts = {"pack": 0, "unpack": 0}

    def counting(name):
        def hook(x):
            counts[name] += 1
            return x

        return hook

    a = leaf(torch, 5)
    with torch.autograd.graph.saved_tensors_hooks(counting("pack"), counting("unpack")):
        saved = torch._C._autograd._make_saved_tensor(a, is_output=False)
        assert counts == {"pack": 1, "unpack": 0}
        first, second = saved.unpack(), saved.unpack()
        assert counts == {"pack": 1, "unpack": 2}
    assert near(first, a)
    assert near(second, a)


@saving
def saved_tensor_constructor_forbidden_without_flag(torch):
    with refused("Trying to create a SavedTensor object from Python is forbidden"):
        torch.autograd.SavedTensor()


@saving
def custom_function_saved_tensors(torch):
    def make(save):
        def forward(ctx, x):
            if save:
                ctx.save_for_backward(x, None)
            return x

        return function(torch, forward, lambda ctx, g: g)

    a = leaf(torch, 5)
    y = make(True).apply(a)
    assert near(y.grad_fn.saved_tensors[0], a)
    assert y.grad_fn.saved_tensors[1] is None
    raw = y.grad_fn._raw_saved_tensors
    assert all(isinstance(one, torch._C._autograd.SavedTensor) for one in raw)
    with refused("None is forbidden"):
        raw[1].register_hooks(same, same)
    with refused("incompatible function arguments", TypeError):
        raw[0].register_hooks(same)
    with refused("incompatible function arguments", TypeError):
        raw[0].register_hooks(1, 1)
    raw[0].register_hooks(same, same)
    with refused("already been set"):
        raw[0].register_hooks(same, same)
    y.sum().backward()
    del raw
    with refused("after they have already been freed"):
        y.grad_fn._raw_saved_tensors
    with refused("after they have already been freed"):
        y.grad_fn.saved_tensors
    y = make(False).apply(a)
    assert y.grad_fn.saved_tensors == y.grad_fn._raw_saved_tensors == ()


@saving
def clear_saved_tensors_on_access(torch):
    alive = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ref = weakref.ref(x)
        del x
        alive.append(ref())
        return g

    own = function(torch, forward, backward, clear_saved_tensors_on_access=True)
    own.apply(leaf(torch, 3).clone()).sum().backward()
    assert alive == [None]


@saving
def clear_saved_tensors_on_access_double_access_error(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    def backward(ctx, g):
        ctx.saved_tensors, ctx.saved_tensors
        return g

    own = function(torch, forward, backward, clear_saved_tensors_on_access=True)
    with refused("can only be accessed once"):
        own.apply(leaf(torch, 3)).sum().backward()


@saving
def no_unnecessary_unwrapping(torch):
    a = leaf(torch, 5)
    b = a * a
    c, d = a * b, torch.exp(a)
    assert b.grad_fn._saved_self is a
    assert b.grad_fn._saved_other is a
    assert c.grad_fn._saved_self is a
    assert c.grad_fn._saved_other is b
    assert near(d.grad_fn._saved_result, d)
    assert d.grad_fn._saved_result is not d
    c.sum().backward()
    with refused("after they have already been freed"):
        c.grad_fn._saved_self


@saving
def saved_variable_version_counter(torch):
    b = torch.exp(leaf(torch, 2))
    kept = b.grad_fn._saved_result
    assert b._version == kept._version
    with torch.no_grad():
        b += 1
    assert near(b, kept)
    assert b._version == kept._version


@saving
def saved_variable_packing_unpacking_saved_original_with_hooks(torch):
    for make in (lambda: leaf(torch, 5), lambda: leaf(torch, 5) + 1):
        a = make()
        node, y = a.grad_fn, a * a
        y.grad_fn._raw_saved_self.register_hooks(lambda x: 2 * x, lambda x: x / 2)
        assert near(y.grad_fn._saved_self, a)
        assert y.grad_fn._saved_self.grad_fn is node
        y.sum().backward()
        if node is None:
            assert near(a.grad, 2 * a)
        a = make()
        y = a * a
        y.grad_fn._raw_saved_self.register_hooks(lambda x: 2 * x, same)
        assert near(y.grad_fn._saved_self, 2 * a)
        y.sum().backward()
        if a.is_leaf:
            assert near(a.grad, 3 * a)
        a = make()
        y = a**3
        y.grad_fn._raw_saved_self.register_hooks(same, same)
        (g,) = torch.autograd.grad(y.sum(), a, create_graph=True)
        g.sum().backward()
        if a.is_leaf:
            assert near(a.grad, 6 * a)
        y = make() ** 2
        y.grad_fn._raw_saved_self.register_hooks(same, lambda x: 1)
        with refused("Output of saved tensor unpack_hook expected to be a Tensor", TypeError):
            y.grad_fn._saved_self
        for wrong in (lambda x, b: x, lambda x, b: (x, b)):
            with refused("missing 1 required positional argument", TypeError):
                y = make() ** 2
                y.grad_fn._raw_saved_self.register_hooks(wrong, same)
        with refused("A saved tensor pack hook is modifying its input in place"):
            y = make() ** 2
            y.grad_fn._raw_saved_self.register_hooks(lambda x: x.mul_(2), same)


@saving
def saved_variable_saved_original_inplace_detach(torch):
    a = leaf(torch, 1).clone()
    b = a.sin()
    a.detach_()
    with refused("Trying to use a saved tensor that has been detached"):
        b.backward()
    a = leaf(torch, 1).clone()
    b = a.exp()
    a.detach_()
    b.backward()


@saving
def saved_variable_packing_unpacking_did_not_save_original_with_hooks(torch):
    a = leaf(torch, 5)
    y = torch.exp(a)
    y.grad_fn._raw_saved_result.register_hooks(same, same)
    assert near(y.grad_fn._saved_result, y)
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    y.sum().backward()
    assert near(a.grad, y)


@saving
def saved_variable_packing_unpacking_saved_original_with_default_hooks(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    packed = []
    with hooks(lambda x: packed.append(1) or x, same):
        a = leaf(torch, 5)
        a * a
    assert len(packed) == 2
    for pack, unpack, factor in ((same, same, 1), (lambda x: 2 * x, lambda x: x / 2, 1), (lambda x: 2 * x, same, 2)):
        with hooks(pack, unpack):
            a = leaf(torch, 5)
            y = a * a
            assert near(y.grad_fn._saved_self, factor * a)
            assert near(y.grad_fn._saved_other, factor * a)
            y.sum().backward()
            assert near(a.grad, 2 * factor * a)
    a = leaf(torch, 5)
    (a * a).sum().backward()
    assert near(a.grad, 2 * a)


@saving
def saved_variable_packing_unpacking_did_not_save_original_with_default_hooks(torch):
    with torch.autograd.graph.saved_tensors_hooks(same, same):
        a = leaf(torch, 5)
        y = torch.exp(a)
        assert near(y.grad_fn._saved_result, y)
        y.sum().backward()
    assert near(a.grad, y)


@saving
def setting_default_saved_variable_hooks_twice_should_not_fail(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(same, same), hooks(same, same):
        leaf(torch, 2).sin()


@saving
def setting_default_saved_variable_hooks_twice_should_use_inner(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    a, b = leaf(torch, 5), leaf(torch, 5)
    with hooks(lambda x: 3 * x, lambda x: 3 * x):
        with hooks(lambda x: 5 * x, lambda x: 5 * x):
            y = a * a
        z = b * b
    (y.sum() + z.sum()).backward()
    assert near(a.grad, 50 * a)
    assert near(b.grad, 18 * b)


@saving
def disabling_saved_tensor_hooks(torch):
    graph, enabled = torch.autograd.graph, torch._C._autograd._saved_tensors_hooks_is_enabled
    with graph.disable_saved_tensors_hooks("not now"), refused("not now"):
        with graph.saved_tensors_hooks(same, same):
            pass
    assert enabled()
    with graph.saved_tensors_hooks(same, same), refused("not now"):
        with graph.disable_saved_tensors_hooks("not now"):
            pass
    assert enabled()


@saving
def disabling_saved_tensor_hooks_nested(torch):
    graph, enabled = torch.autograd.graph, torch._C._autograd._saved_tensors_hooks_is_enabled
    with graph.disable_saved_tensors_hooks("outer"):
        with graph.disable_saved_tensors_hooks("inner"), refused("inner"):
            with graph.saved_tensors_hooks(same, same):
                pass
        assert not enabled()
    assert enabled()


@saving
def saved_tensor_hooks_custom_error_propagation(torch):
    class OwnError(Exception):
        pass

    def fail(x):
        raise OwnError("mine")

    hooks, a = torch.autograd.graph.saved_tensors_hooks, leaf(torch, 1)
    with hooks(fail, same), refused("mine", OwnError):
        a.sin()
    with hooks(same, fail):
        out = a.sin()
        with refused("mine", OwnError):
            out.backward()


@saving
def saved_tensor_hooks_custom_function_intermediates(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x.exp().clone().detach_().requires_grad_())
        return x.exp()

    a = leaf(torch, 1)
    with torch.autograd.graph.saved_tensors_hooks(same, same):
        out = function(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(a)
    out.backward()
    assert near(a.grad, out)


@saving
def unpack_hooks_exec_count(torch):
    counts = []
    x, y = torch.ones(4, requires_grad=True), torch.ones(4)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: counts.append("pack") or t, lambda t: counts.append("unpack") or t
    ):
        out = x * y
        assert counts == ["pack"]
        out.sum().backward()
        assert counts == ["pack", "unpack"]


@saving
def saved_tensors_hook_version_counter_not_shared(torch):
    a = torch.tensor(1.0, requires_grad=True)
    other = a.clone()
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    def backward(ctx, g):
        before = a._version
        ctx.saved_tensors[0].add_(1)
        seen.append(a._version == before)
        return g

    with torch.autograd.graph.saved_tensors_hooks(lambda x: other, same):
        out = function(torch, forward, backward).apply(a)
    out.backward()
    assert seen == [True]


@saving
def save_on_cpu_and_checkpoint(torch):
    checkpoint, on_cpu = torch.utils.checkpoint.checkpoint, torch.autograd.graph.save_on_cpu

    def inner(x):
        with on_cpu():
            y = x.pow(2).pow(2).pow(2)
        return y.pow(2)

    grads = []
    a = leaf(torch, 2, 2)
    (plain,) = torch.autograd.grad(a.pow(2).pow(2).pow(2).pow(2).sum(), a)
    with on_cpu():
        out = checkpoint(lambda x: x.pow(2).pow(2), a.pow(2), use_reentrant=False).pow(2)
    grads.append(torch.autograd.grad(out.sum(), a)[0])
    grads.append(torch.autograd.grad(checkpoint(inner, a, use_reentrant=False).sum(), a)[0])
    assert all(near(one, plain) for one in grads)


@saving
def pack_hook_with_inplace_modification_should_fail(torch):
    words, a = "A saved tensor pack hook is modifying its input in place", leaf(torch, 5)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.add_(1), same), refused(words):
        torch.exp(a)
    y = torch.exp(a)
    with refused(words):
        y.grad_fn._raw_saved_result.register_hooks(lambda x: x.add_(1), same)


@saving
def saving_variable_to_disk(torch):
    with tempfile.TemporaryDirectory() as folder:

        def pack(x):
            name = os.path.join(folder, f"{len(os.listdir(folder))}.pt")
            torch.save(x, name)
            return name

        with torch.autograd.graph.saved_tensors_hooks(pack, torch.load):
            a = torch.ones(5, requires_grad=True)
            y = a * a
            assert near(y.grad_fn._saved_self, a)
            y.sum().backward()
        assert near(a.grad, 2 * a)


@saving
def default_saved_tensors_hooks_double_backward(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    double = lambda x: 2 * x  # noqa: E731

    def second(first_under, second_under):
        a = leaf(torch, 5)
        with hooks(first_under, same):
            out = (a**3).sum()
        with hooks(second_under, same):
            (g,) = torch.autograd.grad(out, a, create_graph=True)
            g.sum().backward()
        return a

    for first, then, factor in ((same, same, 1), (double, same, 2), (same, double, 4), (double, double, 8)):
        a = second(first, then)
        assert near(a.grad, 6 * factor * a), (factor, a.grad / a / 6)


@saving
def wrapped_number_saved_tensors_hooks(torch):
    def fail(x):
        raise RuntimeError("called")

    with torch.autograd.graph.saved_tensors_hooks(fail, fail):
        a = leaf(torch, 5)
        torch.autograd.grad((a * 3).sum(), a)


@saving
def graph_save_on_cpu(torch):
    for pin in (False, True) if torch.cuda.is_available() else (False,):
        for dtype in (torch.float32, torch.float64):
            with torch.autograd.graph.save_on_cpu(pin):
                a = leaf(torch, 5, dtype=dtype)
                y = a * a
                assert near(y.grad_fn._saved_self, a)
                assert y.grad_fn._saved_other.dtype is a.dtype
                assert y.grad_fn._saved_self.layout is a.layout
                y.sum().backward()
            assert near(a.grad, 2 * a)


@saving
def index_backward_does_not_save_tensor(torch):
    b = torch.zeros(3, requires_grad=True)
    tensor, mask = b + 0, torch.tensor([True, False, False])
    tensor[mask] = tensor[mask]
    tensor.backward(torch.zeros_like(tensor))


@saving
def no_unnecessary_save(torch):
    mu, x, loss = torch.ones(1, requires_grad=True), torch.empty(1), 0
    for i in range(3):
        x.detach_()
        x.copy_(mu + i)
        loss = loss + (x * torch.tensor([float(i)])).sum()
    loss.backward()
    assert near(mu.grad, [3.0])


@saving
def saved_variables_deprecated(torch):
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x + y

    def backward(ctx, g):
        ctx.saved_variables
        return g, g

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        function(torch, forward, backward).apply(leaf(torch, 2), leaf(torch, 2)).sum().backward()
    assert any("deprecated" in str(one.message) and "saved_variables" in str(one.message) for one in seen)


@saving
def save_none_for_backward(torch):
    def forward(ctx, x):
        ctx.save_for_backward(None, x, None)
        return x * x

    def backward(ctx, g):
        first, x, last = ctx.saved_tensors
        assert first is None
        assert last is None
        return 2 * x * g

    x = leaf(torch, 2, 2)
    function(torch, forward, backward).apply(x).sum().backward()
    assert near(x.grad, 2 * x)


@saving
def save_output_nr(torch):
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx, g):
        seen.append(ctx.saved_tensors[0].output_nr)
        return g

    halves = function(torch, lambda ctx, x: (x[:5], x[5:]), lambda ctx, *g: torch.cat(g)).apply(leaf(torch, 10))
    assert halves[1].output_nr == 1
    function(torch, forward, backward).apply(halves[1]).sum().backward()
    assert seen == [1]


saving.cannot("CUDA", "graph_save_on_cpu_cuda", "scalar_grad_mixed_device")
