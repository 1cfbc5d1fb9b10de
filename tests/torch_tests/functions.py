"""Custom Functions: what they return, save and mark, forward mode, views and writes in them."""

from __future__ import annotations

import gc
import weakref

from tests.torch_tests.suite import function, heard, leaf, near, no_collector, refused, suite

own = suite("TestAutograd")


def same(ctx, x):
    return x


def given(ctx, g):
    return g


def described(node):
    if node is None:
        return "None"
    inner = ", ".join(described(one) for one, _ in node.next_functions)
    return f"{type(node).__name__}({inner})"


def _formula(torch, **more):
    def forward(ctx, a, k, b):
        ctx.k = k
        ctx.save_for_backward(a, b)
        return a + k * b + a * b

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g + g * b, None, g * ctx.k + g * a

    made = function(torch, forward, more.get("backward", lambda make: make)(backward))
    x, y = leaf(torch, 3), leaf(torch, 3)
    made.apply(x, 2, y).sum().backward(torch.ones((), requires_grad=True), create_graph=True)
    assert near(x.grad, y + 1)
    assert near(y.grad, x + 2)
    return x, y


@own
def function_(torch):
    x, y = _formula(torch)
    assert x.grad.grad_fn is not None
    assert y.grad.grad_fn is not None
    x.grad = y.grad = None


@own
def once_differentiable(torch):
    modes = []

    def once(backward):
        def watched(ctx, g):
            modes.append(torch.is_grad_enabled())
            return backward(ctx, g)

        return torch.autograd.function.once_differentiable(watched)

    x, y = _formula(torch, backward=once)
    assert modes == [False]
    for one in (x, y):
        assert described(one.grad.grad_fn) == "CopyBackwards(None, Error(AccumulateGrad(), None, AccumulateGrad()))"
        one.grad = None


@own
def function_returns_input(torch):
    made = function(torch, same, lambda ctx, g: g * 2)
    for shape in ((1,), ()):
        v = torch.ones(shape, requires_grad=True)
        for x in (v, v.clone()):
            v.grad = None
            made.apply(x).backward()
            assert near(v.grad, torch.full(shape, 2.0))


@own
def function_returns_undefined_tensor(torch):
    made = function(torch, lambda ctx, x: x * 2, lambda ctx, g: None)
    x = torch.ones(1, requires_grad=True)
    made.apply(x).backward()
    made.apply(x**2).backward()
    made.apply(x).sum().backward()
    assert x.grad is None
    assert torch.autograd.grad(made.apply(x), x, allow_unused=True)[0] is None


@own
def materialize_grads(torch):
    seen = []
    made = function(torch, same, lambda ctx, g: seen.append(g) or g)
    torch._C._functions.UndefinedGrad()(made.apply(torch.ones(1, requires_grad=True))).backward()
    assert near(seen, [[0.0]])


@own
def dont_materialize_grads(torch):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x

    made = function(torch, forward, lambda ctx, g: seen.append(g) or g)
    torch._C._functions.UndefinedGrad()(made.apply(torch.ones(1, requires_grad=True))).backward()
    assert seen == [None]


@own
def set_materialize_non_diff_grads(torch):
    seen = []

    def forward(ctx, x):
        one, two = x.clone(), x.clone()
        ctx.mark_non_differentiable(two)
        ctx._materialize_non_diff_grads = False
        return one, two

    made = function(torch, forward, lambda ctx, g, h: seen.append(h) or g)
    made.apply(torch.tensor(1.0, requires_grad=True))[0].backward()
    assert seen == [None]


@own
def legacy_function_deprecation_exception(torch):
    class Old(torch.autograd.Function):
        def forward(self, x):
            return x

        def backward(self, g):
            return g

    with refused("Legacy autograd function with non-static forward method is deprecated"):
        Old()(torch.rand(3))


@own
def custom_function_exception(torch):
    def fail(ctx, g):
        raise KeyError("on the way back")

    x = leaf(torch, 3)
    with refused("on the way back", Exception):
        function(torch, lambda ctx, x: x.clone(), fail).apply(x * x).sum().backward()


@own
def custom_function_non_tensor_inputs_outputs(torch):
    seen = []

    def forward(ctx, a, b, k, c):
        ctx.k = k
        ctx.save_for_backward(a, b, c)
        return k, (a + b * c) * k, None, True, (a * b + c) * k, "bar", a

    def backward(ctx, *gs):
        seen.append([at for at, g in enumerate(gs) if g is None])
        a, b, c = ctx.saved_tensors
        k = ctx.k
        return gs[1] * k + gs[4] * b * k + gs[6], gs[1] * c * k + gs[4] * a * k, None, gs[1] * b * k + gs[4] * k

    made = function(torch, forward, torch.autograd.function.once_differentiable(backward))
    a, b, c = leaf(torch, 4), leaf(torch, 4), leaf(torch, 4).detach()
    found = made.apply(a, b, 3, c)
    assert (found[0], found[2], found[3], found[5]) == (3, None, True, "bar")
    assert near(found[6], a)
    torch.autograd.backward([found[1].sum(), found[4].sum(), found[6].sum()])
    assert a.grad is not None
    assert c.grad is None
    assert seen == [[0, 2, 3, 5]]

    def run(a, b, c):
        out = made.apply(a, b, 3, c)
        return out[1], out[4], out[6]

    assert torch.autograd.gradcheck(run, (a, b, c), check_batched_grad=False)


@own
def custom_function_no_tensors(torch):
    made = function(torch, lambda ctx, a, k: (k, a * k, None, True, "bar", a), lambda ctx, *g: g[:2])
    assert made.apply(0.5, 4) == (4, 2.0, None, True, "bar", 0.5)


@own
def invalid_gradients(torch):
    made = function(torch, lambda ctx, x: x * 2, lambda ctx, g: torch.rand(10))
    with refused("expected shape"):
        made.apply(torch.rand(5, 5, requires_grad=True)).sum().backward()


@own
def custom_function_vmap_defaults(torch):
    made = function(torch, lambda x: x**2, lambda ctx, g: g, setup_context=lambda ctx, inputs, output: None)
    assert made.generate_vmap_rule is False
    assert hasattr(made, "vmap")


@own
def custom_function_setup_context_simple(torch):
    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    made = function(torch, lambda x: x**2, lambda ctx, g: g * 2 * ctx.saved_tensors[0], setup_context=setup)
    x = torch.tensor(1.5, requires_grad=True)
    assert near(torch.autograd.grad(made.apply(x), x), [2 * x])


@own
def custom_function_setup_context_multi_output(torch):
    def setup(ctx, inputs, output):
        ctx.twice = output[1]

    backward = torch.autograd.function.once_differentiable(lambda ctx, g, _: g * ctx.twice)
    made = function(torch, lambda x: (x**2, x.item() * 2), backward, setup_context=setup)
    x = torch.tensor(1.5, requires_grad=True)
    assert near(torch.autograd.grad(made.apply(x)[0], x), [2 * x])


@own
def custom_function_setup_context_multi_input(torch):
    def setup(ctx, inputs, output):
        ctx.shape, ctx.back = inputs[0].shape, inputs[3]

    made = function(
        torch,
        lambda x, shape, there, back: x.reshape(shape) * there,
        lambda ctx, g: (g.reshape(ctx.shape) * ctx.back, None, None, None),
        setup_context=setup,
    )
    for shape, new in (((24,), (3, 8)), ((2, 3, 4), (6, 4))):
        x = leaf(torch, *shape)
        out = made.apply(x, new, 7, 11)
        assert near(out, x.reshape(new) * 7)
        assert near(torch.autograd.grad(out.sum(), x)[0], 11.0)


@own
def setup_context_when_forward_has_default_args(torch):
    def setup(ctx, inputs, output):
        x, ctx.y = inputs
        ctx.save_for_backward(x)

    def backward(ctx, g):
        return g * ctx.y * torch.pow(ctx.saved_tensors[0], ctx.y - 1), None

    def forward(x, y=3):
        return torch.pow(x, y)

    plain = function(torch, forward, backward, setup_context=setup)
    methods = {"forward": lambda cls, x, y=3: forward(x, y), "setup_context": lambda cls, *a: setup(*a)}
    methods["backward"] = lambda cls, *a: backward(*a)
    bound = type("Bound", (torch.autograd.Function,), {n: classmethod(m) for n, m in methods.items()})
    for made in (plain, bound):
        x = torch.tensor(2.0, requires_grad=True)
        out = made.apply(x)
        assert near(out, 8.0)
        assert near(torch.autograd.grad(out, x), [12.0])


@own
def no_grad_python_function(torch):
    made = function(torch, lambda ctx, x: x + 1, given)
    with torch.no_grad():
        assert not made.apply(torch.ones(5, requires_grad=True)).requires_grad


@own
def no_grad_input(torch):
    x = torch.rand(5, requires_grad=True)
    with torch.no_grad():
        y = function(torch, same, given).apply(x)
    assert x.requires_grad
    assert y.grad_fn is None


@own
def mark_non_differentiable(torch):
    def forward(ctx, x):
        out = x > 0
        ctx.mark_non_differentiable(out)
        return out

    x = leaf(torch, 5)
    mask = function(torch, forward, lambda ctx, g: (g * 0).double()).apply(x)
    assert not mask.requires_grad
    x.masked_fill(mask, 0).sum().backward()


@own
def mark_non_differentiable_mixed(torch):
    seen = []

    def forward(ctx, x):
        a, b = x + 1, x + 2
        ctx.mark_non_differentiable(a)
        return a, b

    x = leaf(torch, 5)
    a, b = function(torch, forward, lambda ctx, g, h: seen.extend((g, h)) or h).apply(x)
    assert (a.requires_grad, b.requires_grad) == (False, True)
    b.sum().backward()
    assert near(seen[0], 0.0)
    assert near(seen[1], 1.0)
    assert near(x.grad, 1.0)


@own
def mark_non_differentiable_none(torch):
    def forward(ctx, x):
        out = x.clone()
        ctx.mark_non_differentiable(out)
        return out

    x = leaf(torch, 5)
    (function(torch, forward, lambda ctx, g: None).apply(x * x) * x).sum().backward()


@own
def return_duplicate(torch):
    def forward(ctx, x):
        out = x * 2
        return out, out

    made = function(torch, forward, lambda ctx, g, h: g * 2 + h * 2)

    def run(x):
        a, b = made.apply(x)
        assert a is b
        return a + b

    x = leaf(torch, 3)
    assert torch.autograd.gradcheck(run, [x])
    assert torch.autograd.gradgradcheck(run, [x])


@own
def return_duplicate_inplace(torch):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x

    made = function(torch, forward, lambda ctx, g, h: g * 2 + h * 2)

    def run(x):
        a, b = made.apply(x.clone())
        assert a is b
        return a + b

    x = leaf(torch, 3)
    assert torch.autograd.gradcheck(run, [x])
    assert torch.autograd.gradgradcheck(run, [x])
    with refused(""):
        made.apply(x)
    with refused(""):
        made.apply(leaf(torch, 2, 2).clone()[0])


@own
def gc_in_destructor(torch):
    class Own(torch.autograd.Function):
        def forward(self, x):
            return x

        def __del__(self):
            gc.collect()

    for _ in range(3):
        Own().forward(torch.rand(1, requires_grad=True)).backward()


@own
def custom_autograd_repeated_grad_grad(torch):
    def product(x):
        return x.prod(dim=-1).prod(dim=-1)

    def forward(ctx, x):
        y = product(x)
        ctx.save_for_backward(x, y)
        return y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y)[:, None, None] / x

    for run in (product, function(torch, forward, backward).apply):
        x = torch.ones(2, 4, 4).requires_grad_()
        y, found = run(x), []
        for _ in range(2):
            (g,) = torch.autograd.grad(y[0], x, create_graph=True)
            found.append(torch.autograd.grad(g[0, 0, 0], x, retain_graph=True)[0][0, 0, 1])
        assert near(*found)


@own
def custom_autograd_no_early_free(torch):
    def forward(ctx, x):
        y = x**2
        ctx.save_for_backward(x, y)
        return y

    def of_input(ctx, g):
        return g * 2 * ctx.saved_tensors[0]

    def of_output(ctx, g):
        x, y = ctx.saved_tensors
        return g * 2 * y / x

    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    for backward in (of_input, of_output):
        made = function(torch, forward, backward).apply
        assert torch.autograd.gradcheck(made, x)
        assert torch.autograd.gradgradcheck(made, x)
        y = made(x)
        torch.autograd.grad(y, x, create_graph=True)
        torch.autograd.grad(y, x)


@own
def custom_autograd_ac_early_stop(torch):
    refs = []

    def forward(ctx, x):
        y = x.clone()
        ctx.save_for_backward(y)
        refs.append(weakref.ref(y))
        return y

    made = function(torch, forward, lambda ctx, g: ctx.saved_tensors and None)

    def scope():
        torch.utils.checkpoint.checkpoint(
            made.apply, torch.rand(5, requires_grad=True), use_reentrant=False
        ).sum().backward()

    with no_collector():
        scope()
        assert all(ref() is None for ref in refs)


@own
def return_leaf(torch):
    made = function(torch, lambda ctx, a, b: (a, a + b), lambda ctx, g, h: (g + h, h))
    x, y, seen = leaf(torch, 3), leaf(torch, 3), []
    q, p = made.apply(x, y)
    q.register_hook(lambda g: seen.append(g.tolist()))
    (q + p + x).sum().backward()
    assert seen == [[1.0] * 3]
    assert near(x.grad, 3.0)
    assert near(y.grad, 1.0)


@own
def return_leaf_inplace(torch):
    def forward(ctx, a, b):
        ctx.mark_dirty(a)
        return a.add_(b), b + 2

    made = function(torch, forward, lambda ctx, g, h: (g, g + h))
    x, y = torch.rand(5), torch.rand(5, requires_grad=True)
    q, _ = made.apply(x, y)
    assert q is x
    assert type(q.grad_fn) is made._backward_cls
    assert q.requires_grad
    q.sum().backward()
    assert near(y.grad, 1.0)


@own
def too_many_grads(torch):
    x = leaf(torch, 5)
    function(torch, same, lambda ctx, g: (g, None, None)).apply(x).sum().backward()
    assert near(x.grad, 1.0)


@own
def dep_nograd(torch):
    def forward(ctx, x):
        out = torch.rand(x.size())
        ctx.mark_non_differentiable(out)
        return x, out

    x = torch.rand(5, requires_grad=True)
    a, b = function(torch, forward, lambda ctx, g, _: g).apply(x)
    b = b + 1
    assert (a.requires_grad, b.requires_grad) == (True, False)
    function(torch, lambda ctx, x, _: x, lambda ctx, g: (g, None)).apply(a, b).backward(torch.ones(5))
    assert near(x.grad, 1.0)


@own
def custom_function_error(torch):
    x = torch.rand(1, requires_grad=True)
    with refused("must implement the forward", NotImplementedError):
        type("Own", (torch.autograd.Function,), {"backward": staticmethod(given)}).apply(x)
    clone = {"forward": staticmethod(lambda ctx, x: x.clone())}
    with refused("must implement either the backward"):
        type("Own", (torch.autograd.Function,), clone).apply(x).sum().backward()
    both = clone | {"backward": staticmethod(given), "vjp": staticmethod(given)}
    with refused("Implementing both 'backward' and 'vjp'"):
        type("Own", (torch.autograd.Function,), both).apply(x).sum().backward()
    fw = torch.autograd.forward_ad
    with refused("must implement the jvp function"), fw.dual_level():
        type("Own", (torch.autograd.Function,), clone).apply(fw.make_dual(x, torch.rand_like(x)))


@own
def custom_function_forward_mode_view_checks(torch):
    def forward(ctx, x, flag):
        ctx.flag, ctx.size = flag, x.size()
        return x.narrow(0, 0, 2)

    def vjp(ctx, g):
        out = g.new_zeros(ctx.size)
        out.narrow(0, 0, 2).copy_(g)
        return out, None

    def jvp(ctx, t, _):
        out = t.narrow(0, 0, 2)
        out = out if ctx.flag == "ok" else out.clone()
        return out.view_as(out) if ctx.flag in ("other", "other base") else out

    made = function(torch, forward, vjp=vjp, jvp=jvp)
    for flag, words in (
        ("ok", None),
        ("copy", "jvp is not returning a view"),
        ("other", "jvp is not returning a view of the given"),
        ("other base", "jvp is not returning a view of the same base"),
    ):

        def run(x, flag=flag):
            return made.apply(x.view_as(x) if flag == "other base" else x, flag)

        if words is None:
            assert torch.autograd.gradcheck(run, leaf(torch, 4, 4), check_forward_ad=True)
        else:
            with refused(words):
                torch.autograd.gradcheck(run, leaf(torch, 4, 4), check_forward_ad=True)


@own
def custom_function_forward_mode_inplace_checks(torch):
    def forward(ctx, x, flag):
        ctx.mark_dirty(x)
        ctx.flag = flag
        return x.mul_(2)

    made = function(
        torch, forward, vjp=lambda ctx, g: (2 * g, None), jvp=lambda ctx, t, _: 2 * t if ctx.flag else t.mul_(2)
    )
    run = lambda x, flag: made.apply(x.clone(), flag)  # noqa: E731
    assert torch.autograd.gradcheck(run, (leaf(torch, 3), False), check_forward_ad=True)
    with refused("inplace custom Function is not modifying the forward mode gradients inplace"):
        torch.autograd.gradcheck(run, (leaf(torch, 3), True), check_forward_ad=True)


@own
def custom_function_forward_mode_wrong_formula(torch):
    def forward(ctx, x, wrong):
        ctx.wrong = wrong
        return x * 2

    made = function(torch, forward, vjp=lambda ctx, g: (2 * g, None), jvp=lambda ctx, t, _: (3 if ctx.wrong else 2) * t)
    assert torch.autograd.gradcheck(made.apply, (leaf(torch, 4), False), check_forward_ad=True)
    with refused("Jacobian computed with forward mode mismatch for output 0"):
        torch.autograd.gradcheck(made.apply, (leaf(torch, 4), True), check_forward_ad=True)


@own
def custom_function_forward_mode_non_tensor_before_tensor_args(torch):
    seen, fw = [], torch.autograd.forward_ad

    def jvp(ctx, a, x, b, y):
        seen.extend((a, b))
        return x * 2 + y * 3

    made = function(torch, lambda ctx, a, x, b, y: x * 2 + y * 3, jvp=jvp)
    x, y = leaf(torch, 1).detach(), leaf(torch, 1).detach()
    with fw.dual_level():
        made.apply(1, fw.make_dual(x, x.clone()), 1, y)
    args = 1, x.requires_grad_(), 1, y.requires_grad_()
    assert torch.autograd.gradcheck(
        made.apply, args, check_forward_ad=True, check_backward_ad=False, check_batched_grad=False
    )
    assert all(one is None for one in seen)


@own
def custom_function_forward_mode_forward_is_no_op(torch):
    fw, words = torch.autograd.forward_ad, r"A custom Function's forward is returning a view \(or an input as-is\)"
    for name, shown in (("view", lambda t: t.view_as(t)), ("same", lambda t: t), ("double", lambda t: t * 2)):
        made = function(
            torch,
            lambda ctx, x, y: (x + y, x),
            vjp=lambda ctx, g, h: (g + h, g),
            jvp=lambda ctx, x, y, shown=shown: (x + y, shown(x)),
        )
        for needs in (True, False):
            a = torch.tensor(1.0, dtype=torch.float64, requires_grad=needs)
            b, t = torch.tensor(1.0, dtype=torch.float64, requires_grad=needs), torch.tensor(1.0, dtype=torch.float64)
            with fw.dual_level():
                dual = fw.make_dual(a, t)
                if name == "view":
                    assert fw.unpack_dual(made.apply(dual, b)[1]).tangent._base is t
                else:
                    with refused(words):
                        made.apply(dual, b)


@own
def custom_function_save_for_forward(torch):
    fw = torch.autograd.forward_ad

    def forward(ctx, x, y, z):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        ctx.z = z
        return z * x * y

    def jvp(ctx, x_t, y_t, _):
        x, y = ctx.saved_tensors
        return ctx.z * (y * x_t + x * y_t)

    def vjp(ctx, g):
        x, y = ctx.saved_tensors
        return ctx.z * g * y, ctx.z * g * x, None

    made = function(torch, forward, vjp=vjp, jvp=jvp)
    a, b, t = leaf(torch, 1), leaf(torch, 1), leaf(torch, 1).detach()
    with fw.dual_level():
        made.apply(fw.make_dual(a, t), b, 4).backward()
    assert torch.autograd.gradcheck(made.apply, (a, b, 4), check_forward_ad=True)
    counts = []

    def backward_only(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    made = function(
        torch,
        backward_only,
        vjp=lambda ctx, g: counts.append(len(ctx.saved_tensors)) or g,
        jvp=lambda ctx, t: counts.append(len(ctx.saved_tensors)) or t,
    )
    with fw.dual_level():
        made.apply(fw.make_dual(a, t)).backward()
    assert counts == [0, 1]


@own
def custom_function_forward_mode_non_differentiable(torch):
    fw = torch.autograd.forward_ad

    def marked(ctx, x, y):
        out = y.clone()
        ctx.mark_non_differentiable(out)
        return x.clone(), out

    def run(forward, jvp, *args):
        with fw.dual_level():
            dual = fw.make_dual(torch.tensor(2.0), torch.tensor(1.0))
            out = function(torch, forward, jvp=jvp).apply(dual, *args)
            return [fw.unpack_dual(one).tangent for one in out if isinstance(one, torch.Tensor)]

    assert run(marked, lambda ctx, x, y: (x, None), torch.tensor(3.0))[1] is None
    assert run(lambda ctx, x, y: (x.clone(), y.clone()), lambda ctx, x, y: (x, None), torch.tensor(3))[1] is None
    with refused("You should return None at that position instead"):
        run(marked, lambda ctx, x, y: (x, x.clone()), torch.tensor(3.0))
    assert near(run(lambda ctx, x: (x.clone(), object(), x.clone()), lambda ctx, t: (t, None, t)), [1.0, 1.0])


@own
def custom_function_local_inplace(torch):
    def forward(ctx, x, write):
        view = x.clone()[:3]
        if write:
            view += 2
        return view

    made = function(torch, forward, lambda ctx, g: (g, None))
    for write in (False, True):
        assert type(made.apply(torch.rand(10, requires_grad=True), write).grad_fn).__name__ == "OwnBackward"


@own
def custom_function_cycle(torch):
    def forward(ctx, x, held):
        x = x.clone()
        ctx.held = held
        ctx.save_for_backward(x)
        return x

    made = function(torch, forward, lambda ctx, g: (g * ctx.saved_tensors[0], None))

    def scope(run):
        a, held = torch.tensor(3.0, requires_grad=True), {}
        out = made.apply(a, held)
        held["out"] = out
        if run:
            out.sum().backward()
            assert near(a.grad, 3.0)
        return weakref.ref(out)

    for run in (False, True):
        with no_collector():
            ref = scope(run)
            assert ref() is not None
        gc.collect()
        assert ref() is None


@own
def custom_function_mark_dirty_not_differentiable(torch):
    fw = torch.autograd.forward_ad

    def forward(ctx, x):
        out = x.mul_(2)
        ctx.mark_dirty(out)
        return out

    for needs in (True, False):
        for wrong in (True, False):
            made = function(
                torch, forward, lambda ctx, g: None, jvp=lambda ctx, t, wrong=wrong: t if wrong else t.mul_(2)
            )
            z = torch.tensor(1.0, requires_grad=needs)
            x = z.clone()
            assert made.apply(x) is x
            assert near(x, 2.0)
            with fw.dual_level():
                tangent = torch.ones_like(x)
                dual = fw.make_dual(x, tangent)
                if wrong:
                    with refused("jvp function must modify the corresponding gradient inplace"):
                        made.apply(dual)
                else:
                    out = made.apply(dual)
                    assert out is dual
                    assert fw.unpack_dual(out).tangent is tangent


@own
def custom_function_mark_output_view_of_intermediate(torch):
    def forward(ctx, x):
        out = x.clone().view_as(x)
        ctx.mark_dirty(out)
        return out

    with refused("received a tensor that was not an input"):
        function(torch, forward, lambda ctx, g: None).apply(leaf(torch, 1).clone())


def _adds_in_place(ctx, x):
    x.add_(1)
    ctx.mark_dirty(x)
    return x


@own
def custom_function_inplace_on_non_default_view(torch):
    b, _ = leaf(torch, 2).split_with_sizes([1, 1], dim=0)
    with refused("output of a function that returns multiple view"):
        function(torch, _adds_in_place, lambda ctx, g: None).apply(b)


@own
def custom_function_inplace_on_view_of_leaf(torch):
    a = leaf(torch, 2)
    with refused("a view of a leaf Variable that requires grad"):
        function(torch, _adds_in_place, lambda ctx, g: None).apply(a.view_as(a))


@own
def custom_function_saving_mutated_view_no_leak(torch):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    def scope():
        x = leaf(torch, 1).clone()
        x = x.view_as(x)
        function(torch, forward, lambda ctx, g: None).apply(x)
        return weakref.ref(x)

    assert scope()() is None


@own
def custom_function_return_view_in_nograd(torch):
    x = torch.rand(2, requires_grad=True)
    with torch.no_grad():
        out, plain = function(torch, lambda ctx, x: x[:], given).apply(x), x[:]
    assert out.requires_grad == plain.requires_grad
    with refused("A view was created in no_grad mode and is being modified inplace"):
        out.zero_()


@own
def custom_function_preserve_torch_function_when_return_as_is(torch):
    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.rand(2, 3).as_subclass(Own)
    assert isinstance(function(torch, same, lambda ctx, g: None).apply(x), Own)


@own
def autograd_python_custom_function_inplace(torch):
    calls = []

    def adder(ctx, a, b):
        a.add_(b)
        ctx.mark_dirty(a)
        return a

    made = function(torch, adder, lambda ctx, g: calls.append(1) or (g, g))
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    for run in (lambda: made.apply(a.clone(), b), lambda: made.apply(a.clone(), b).add_(2)):
        run().sum().backward()
    made.apply(a.clone().view_as(a), b).sum().backward()
    assert len(calls) == 3

    def wrong(ctx, a, b):
        c = 3 * a
        c.add_(b)
        ctx.mark_dirty(c)
        return c

    with heard() as texts:
        function(torch, wrong, lambda ctx, g: (3 * g, 3 * g)).apply(a.clone(), b)
    assert len(texts) == 1

    def two(ctx, a, b):
        a.add_(b)
        ctx.mark_dirty(a)
        return a, a + b

    made = function(torch, two, lambda ctx, g, h: (g + h, g + h))
    for write in (False, True):
        c, d = made.apply(a.clone(), b)
        if write:
            c += 2
        (c * d).sum().backward()
    with refused("your Function modifies inplace an input that is a view of another Tensor"):
        made.apply(a.clone().view_as(a), b)

    def forgets(ctx, a, b):
        a.add_(b)
        ctx.mark_dirty(a)
        return a.clone(), a + b

    with refused("Some elements marked as dirty during the forward method were not returned as output"):
        function(torch, forgets, lambda ctx, g, h: (g, h)).apply(a.clone().view_as(a), b)


@own
def autograd_simple_views_python(torch):
    def one(ctx, a, view, pure):
        ctx._is_pure_view = pure
        return a.narrow(0, 0, 2) if view else a.clone()

    def two(ctx, a, b, view, pure):
        ctx._is_pure_view = pure
        a = a.narrow(0, 0, 2) if view else a.clone()
        return a, a + b

    of_one = function(torch, one, lambda ctx, g: (g, None, None))
    of_two = function(torch, two, lambda ctx, g, h: (g + h, h, None, None))
    for write in (True, False):
        for view in (True, False):
            for pure in (True, False):
                a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

                def run(write=write, view=view, pure=pure, a=a):
                    out = of_one.apply(a.clone(), view, pure)
                    if write:
                        out += 3
                    return out.sum()

                if write and view and not pure:
                    with refused(
                        "Output 0 of Own(Backward)? is a view and is being modified inplace. This view was created inside"
                    ):
                        run()
                else:
                    run().backward()
                    assert near(a.grad, 1.0)

                def both(write=write, view=view, pure=pure, a=a, b=b):
                    x, y = of_two.apply(a.clone(), b.clone(), view, pure)
                    if write:
                        x += 3
                    return (x * y).sum()

                if pure:
                    with refused("Pure view custom Function can only have one input Tensor and one output Tensor"):
                        both()
                elif write and view:
                    with refused("This view is the output of a function that returns multiple views"):
                        both()
                else:
                    both().backward()


@own
def autograd_multiple_views_python(torch):
    calls = []

    def forward(ctx, a, at):
        ctx.save_for_backward(a)
        ctx.at = at
        return a.select(0, at)

    def backward(ctx, g):
        calls.append(1)
        out = torch.zeros_like(ctx.saved_tensors[0])
        out.select(0, ctx.at).copy_(g)
        return out, None

    made, a = function(torch, forward, backward), torch.ones(2, requires_grad=True)
    made.apply(a.clone(), 1).sum().backward()
    assert calls == [1]
    out = made.apply(a.clone(), 1)
    with refused("Output 0 of Own(Backward)? is a view and is being modified inplace"):
        out += 1


@own
def inplace_not_requires_grad(torch):
    made = function(torch, lambda ctx, x: x.view_as(x), given)
    b = torch.rand(1, requires_grad=True)
    for write in ("add_", "copy_"):
        with refused("This view was created inside a custom Function"):
            getattr(made.apply(torch.rand(1, 2)), write)(b)
    with refused("This view is the output of a function that returns multiple views"):
        torch.rand(1, 2).unbind()[0].copy_(b)
    torch.rand(1, 2).select(1, 0).copy_(b)


@own
def autograd_views_codegen(torch):
    many, hidden = (
        "Output {} of Unbind(Backward0)? is a view and is being modified inplace",
        "A view was created in no_grad mode",
    )
    for mode in (True, False):
        for needs in (True, False):

            def views(mode=mode, needs=needs):
                x = torch.rand(2, requires_grad=needs).clone()
                with torch.set_grad_enabled(mode):
                    return (x, x.view_as(x), *x.unbind())

            for at, words in ((1, None), (2, many.format(0)), (3, many.format(1))):
                held = views()
                assert held[at]._is_view()
                words = None if not needs else hidden if not mode else words
                if words is None:
                    held[at].add_(1)
                else:
                    with refused(words):
                        held[at].add_(1)


@own
def autograd_inplace_views_creation_meta(torch):
    made = function(torch, lambda ctx, x: x.view_as(x), given)
    of = {"plain": lambda b: b.view_as(b), "many": lambda b: b.unbind()[0], "own": made.apply}
    words = {"many": "function that returns multiple views", "own": "view was created inside a custom Function"}
    for change in (lambda v: v.transpose_(0, 0), lambda v: v.unsqueeze_(0), lambda v: v.squeeze_(0), lambda v: v.t_()):
        for kind, make in of.items():
            for first in (True, False):
                for second in (True, False):
                    for needs in (True, False):
                        base = torch.rand(2, 3, requires_grad=needs).clone()
                        with torch.set_grad_enabled(first):
                            view = make(base)
                        expected = (
                            None if not needs else words.get(kind) if first else "A view was created in no_grad mode"
                        )
                        with torch.set_grad_enabled(second):
                            if expected is not None and second:
                                with refused(expected):
                                    change(view)
                                continue
                            change(view)
                        if expected is None:
                            view.add_(1)
                        else:
                            with refused(expected):
                                view.add_(1)


@own
def autograd_print_tensor(torch):
    a = torch.ones(1, requires_grad=True)
    assert repr(a) == "tensor([1.], requires_grad=True)"
    assert repr(a.clone()) == "tensor([1.], grad_fn=<CloneBackward0>)"
    with torch.no_grad():
        b = a[:]
        b *= 2
    assert repr(b) == "tensor([2.], grad_fn=<Invalid>)"
    assert repr(function(torch, same, given).apply(a)) == "tensor([2.], grad_fn=<OwnBackward>)"


@own
def autograd_inplace_view_of_view(torch):
    for block, words in (
        (torch.no_grad, "inside the no_grad block"),
        (torch.inference_mode, "inside the inference_mode"),
    ):
        x = torch.zeros(2)
        with block():
            y = x.view(2)
        y.requires_grad_()
        z = y.view(2)
        with refused(f"a view of a view .* is being .* {words}"):
            z /= 2


@own
def autograd_inplace_views_cross_dtype(torch):
    start = torch.rand(3, 3, dtype=torch.complex64)
    grads = []
    for in_place in (False, True):
        a = start.clone().requires_grad_()
        b = torch.view_as_real(a.clone())
        b = b.transpose_(0, 1) if in_place else b.transpose(0, 1)
        b += 1
        b.backward(torch.arange(0, 18, dtype=torch.float32).view(3, 3, 2))
        grads.append(a.grad)
    assert near(grads[0].T, grads[1])


@own
def inplace_on_view_saved_output(torch):
    gone = []

    class Hook:
        def __call__(self, *g):
            pass

        def __del__(self):
            gone.append(1)

    def scope():
        copy = torch.rand(3, 3, requires_grad=True).clone()
        copy.grad_fn.register_hook(Hook())
        torch.nn.functional.relu(copy.view(9), inplace=True)

    scope()
    assert gone == [1]


@own
def inplace_on_view_leaf_errors(torch):
    x = torch.zeros(1, requires_grad=True)
    with refused("a view of a leaf Variable that requires grad is being used in an in-place operation"):
        x.view_as(x).add_(1)


@own
def inplace_on_view_backward(torch):
    net = torch.nn.Sequential(torch.nn.InstanceNorm2d(2), torch.nn.ReLU(True))
    x = torch.tensor([[[[1.0, 1.0]]]], requires_grad=True)
    (g,) = torch.autograd.grad(net(x).pow(2), [x], grad_outputs=torch.ones_like(x), create_graph=True)
    torch.autograd.grad(g.sum(), [x])
    x = torch.ones(1, 3, 8, 8, requires_grad=True)
    out = torch.sigmoid(torch.nn.functional.threshold((x + 1).view_as(x), 0.0, 0.0, True))
    (g,) = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True)
    total = g.sum()
    total.backward()
    assert total.grad_fn.next_functions[0][0].next_functions[1][0].name() == "ThresholdBackwardBackward0"


@own
def inplace_on_view_weak_grad_fn(torch):
    a = torch.arange(10.0, requires_grad=True)
    b = a.narrow(0, 0, 2).clone().view(-1)
    b.relu_()
    c = b.clone()
    del b
    gc.collect()
    c.sum().backward()
    with refused(""):
        torch.rand(10, requires_grad=True).narrow(0, 0, 10).relu_()


@own
def no_grad_copy(torch):
    pointers = []
    made = function(torch, lambda ctx, a, b: a + b, lambda ctx, g: pointers.append(g.data_ptr()) or (g, g))

    def forward(ctx, x):
        ctx.size = x.size()
        return torch.tensor([1.0])

    wide = function(torch, forward, lambda ctx, g: torch.ones(1).expand(ctx.size))
    a, b = torch.rand(5, 6, requires_grad=True), torch.rand(5, 6, requires_grad=True)
    wide.apply(made.apply(a, b)).backward()
    assert a.grad.data_ptr() not in pointers
    assert b.grad.data_ptr() not in pointers
    a.grad = b.grad = None
    pointers.clear()
    made.apply(a, b)[1][0].backward()
    assert a.grad.data_ptr() != b.grad.data_ptr()
    assert pointers[0] in (a.grad.data_ptr(), b.grad.data_ptr())


@own
def boxed_gradients_of_a_function(torch):
    freed = []

    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    def backward(ctx, gs):
        x, y = ctx.saved_tensors
        g = gs.pop(0)
        ref, found = weakref.ref(g), (g * y, g * x)
        del g
        freed.append(ref() is None)
        g = gs.pop()
        return found[0] + g, found[1] + g

    made = function(torch, forward, backward, boxed_grads_call=True)
    x, y = leaf(torch, 2), leaf(torch, 2)
    p, q = made.apply(x, y)
    (p * 2 + q * 3).sum().backward()
    assert freed == [True]
    assert near(x.grad, 2 * y + 3)


own.cannot(
    "torch 2.13.0 does otherwise",
    "naughty_autograd_function_attribute_access",
    "naughty_autograd_function_stashing_ctx",
)
own.cannot("named tensors", "named_tensor_for_complex_views")
own.cannot("torch expects it to fail", "naughty_anomaly_access")
own.cannot("torch.compile", "checkpoint_compile_no_recompile")
own.cannot("CUDA", "checkpoint_device_context_fn", "forward_traceback_preserves_exception_with_checkpoint",
    "gradcheck_default_device_placement_context", "checkpointing_non_reentrant_autocast_gpu",
    "checkpointing_without_reentrant_memory_savings")  # fmt: skip
