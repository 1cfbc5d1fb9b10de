"""Grad and inference modes, indexing, gradcheck, profiler."""

from __future__ import annotations

import importlib
import inspect
import warnings
from itertools import product

from tests.torch_tests.suite import Suite, function, heard, leaf, near, refused, suite

modes = suite("TestAutograd")
inference = Suite("TestAutogradInferenceMode")


@modes
def grad_mode_class_decoration(torch):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")

        @torch.no_grad()
        class Old:
            def __init__(self):
                self.inside = torch.is_grad_enabled()

            def method(self):
                return torch.is_grad_enabled()

    assert any(
        issubclass(one.category, FutureWarning) and "Decorating classes is deprecated" in str(one.message)
        for one in seen
    )
    assert (Old().inside, Old().method()) == (False, True)
    with heard() as texts:

        class New:
            @torch.no_grad()
            def __init__(self):
                self.inside = torch.is_grad_enabled()

        assert torch.no_grad()(torch.is_grad_enabled)() is False
        assert New().inside is False
    assert not texts


@modes
def no_grad(torch):
    x, y = torch.ones(3, requires_grad=True), torch.ones(3) * 4

    def add(a, b):
        return a + b

    with torch.no_grad():
        w = x + y
    for call in (torch.no_grad()(add), torch.no_grad(add)):
        for out in (w, call(x, y)):
            assert not out.requires_grad
            assert out.grad_fn is None
            with refused(""):
                out.backward(torch.ones(3))
        with torch.no_grad():
            call(x, y)
            assert not torch.is_grad_enabled()


@modes
def enable_grad_decorator_no_paren(torch):
    @torch.enable_grad
    def double(x):
        return x * 2

    with torch.no_grad():
        assert double(torch.ones(1, requires_grad=True)).requires_grad


@modes
def set_grad_generator_functions(torch):
    for inner, outer in ((torch.no_grad, torch.enable_grad), (torch.enable_grad, torch.no_grad)):

        @inner()
        def numbers():
            for _ in range(3):
                yield torch.is_grad_enabled()

        with outer():
            for seen in numbers():
                assert seen is (inner is torch.enable_grad)
                assert torch.is_grad_enabled() is (outer is torch.enable_grad)


@modes
def set_grad_generator_functions_recursive(torch):
    @torch.enable_grad()
    def on(depth):
        assert torch.is_grad_enabled()
        if depth:
            off(depth - 1)
            assert torch.is_grad_enabled()

    @torch.no_grad()
    def off(depth):
        assert not torch.is_grad_enabled()
        if depth:
            on(depth - 1)
            assert not torch.is_grad_enabled()

    for block in (torch.enable_grad, torch.no_grad):
        with block():
            on(5)
            off(5)
            assert torch.is_grad_enabled() is (block is torch.enable_grad)


def _coroutines(torch):
    return ((torch.no_grad, torch.enable_grad, False), (torch.enable_grad, torch.no_grad, True))


@modes
def set_grad_coroutines(torch):
    for inner, outer, on in _coroutines(torch):

        @inner()
        def numbers(on=on):
            for i in range(4):
                assert torch.is_grad_enabled() is on
                assert (yield i) == i
                assert torch.is_grad_enabled() is on

        with outer():
            coroutine, got = numbers(), None
            try:
                while True:
                    got = coroutine.send(got)
                    assert torch.is_grad_enabled() is not on
            except StopIteration:
                pass


class Mine(Exception):  # noqa: N818
    pass


@modes
def set_grad_coroutines_benign_exceptions(torch):
    for inner, outer, on in _coroutines(torch):

        @inner()
        def numbers(on=on):
            raised = False
            for i in range(4):
                try:
                    assert torch.is_grad_enabled() is on
                    yield -i if raised else i
                except Mine:
                    assert torch.is_grad_enabled() is on
                    raised = True

        with outer():
            coroutine = numbers()
            assert next(coroutine) == 0
            try:
                while True:
                    assert coroutine.throw(Mine) < 0
            except StopIteration:
                pass


@modes
def set_grad_coroutines_critical_exceptions(torch):
    for inner, outer, on in _coroutines(torch):

        @inner()
        def numbers(on=on):
            try:
                yield 0
            except Mine:
                assert torch.is_grad_enabled() is on
                raise ZeroDivisionError from None

        with outer():
            coroutine = numbers()
            next(coroutine)
            with refused("", ZeroDivisionError):
                coroutine.throw(Mine)
            assert torch.is_grad_enabled() is not on


@modes
def set_grad_coroutines_exit(torch):
    for inner, outer, on in _coroutines(torch):
        seen = []

        @inner()
        def numbers(seen=seen):
            try:
                yield 0
            except GeneratorExit:
                seen.append(torch.is_grad_enabled())
                raise

        with outer():
            coroutine = numbers()
            next(coroutine)
            coroutine.close()
        assert seen == [on]


@modes
def set_grad_enabled(torch):
    x = torch.tensor([1.0], requires_grad=True)
    for mode in (False, True):
        with torch.set_grad_enabled(mode):
            assert (x * 2).requires_grad is mode
    with torch.set_grad_enabled(False):
        torch.set_grad_enabled(True)
        assert (x * 2).requires_grad


@modes
def set_grad_enabled_wraps(torch):
    @torch.set_grad_enabled(False)
    def decorated(x):
        return x.sin()

    assert torch.is_grad_enabled()
    switch = torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    wrapped = switch(lambda x: x.sin())
    assert torch.is_grad_enabled()
    for call in (decorated, wrapped):
        assert not call(torch.zeros(1, requires_grad=True)).requires_grad


@modes
def indexing(torch):
    indices = [1, (1, 1), slice(1, None), slice(None, 2), (slice(None, 2), 2), (1, slice(2, None)), torch.tensor([0, 2]),
        torch.tensor([[True, False, True, False]] * 4), (Ellipsis, slice(2, None)), ([0], [0]), ([1, 2, 3], [0]),
        ([[1, 2], [3, 0]], [[0, 1], [2, 3]]), (slice(None), [2, 3]), ([2, 3], slice(None)), ([0],)]  # fmt: skip
    more = [(slice(None), [0], [0]), ([0], [0], slice(None)), (slice(None), [1, 2], [2, 1]), ([1, 2], [2, 1], slice(None)),
        (slice(None), slice(None), [2, 1]), (slice(None), [2, 1], slice(None)), ([1, 2], [0, 1], Ellipsis),
        (Ellipsis, [1, 2], [0, 1]), (torch.tensor([0, 1]), Ellipsis)]  # fmt: skip
    for shape, chosen in (((4, 4), indices), ((4, 3, 4), more)):
        for index in chosen:
            y = leaf(torch, *shape)
            out = y[index]
            assert near(out, y.detach()[index])
            out.sum().backward()
            expected = torch.zeros(shape)
            expected[index] = 1
            assert near(y.grad, expected), index


@modes
def indexing_duplicates(torch):
    y = leaf(torch, 4, 4)
    y[torch.tensor([1, 1, 3, 2, 1, 2])].sum().backward()
    assert near(y.grad[:, 0], [0.0, 3.0, 2.0, 1.0])
    y = leaf(torch, 4, 4)
    y[[1, 1, 3, 2, 1, 2], [0]].sum().backward()
    assert near(y.grad[:, 0], [0.0, 3.0, 2.0, 1.0])
    y = leaf(torch, 4, 4)
    y[[[1, 2], [0, 0]], [[0, 1], [1, 1]]].sum().backward()
    assert near(y.grad, [[0.0, 2, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    y = leaf(torch, 4, 4, 4)
    y[[1, 1, 1], slice(None), slice(None)].sum().backward()
    assert near(y.grad[1], 3.0)


@modes
def setitem(torch):
    for size, index in (
        ((5, 5), 1), ((5,), 1), ((1,), 0), ((10,), [0, 4, 2]), ((5, 5), ([0, 4], [2, 2])),
        ((5, 5, 5), (slice(None), [1, 3], slice(None))), ((5, 5, 5), ([1, 3], [2, 4], slice(None))),
        ((5, 5), torch.tensor([3]).sum()),
    ):  # fmt: skip
        for value in (2, "tensor"):
            x = leaf(torch, *size)
            y = x + 2
            version = y._version
            given = value if value == 2 else (x[index].detach() * 0 + 7).requires_grad_()
            y[index] = given
            assert y._version != version
            y.backward(torch.ones(size))
            expected = torch.ones(size)
            expected[index] = 0
            assert near(x.grad, expected)
            if value != 2:
                assert near(given.grad, 1.0)
    x, y = leaf(torch, 4, dtype=torch.float32), torch.zeros(2, 3, 4)
    y[1] = x
    y.backward(torch.ones(2, 3, 4))
    assert near(x.grad, 3.0)


@modes
def setitem_mask(torch):
    mask = torch.tensor([[True, False, True], [False, True, False], [True, True, False]])
    for chosen, size in ((mask, (3, 3)), (mask[0], (3,)), (mask[0, 0:1], (1,))):
        x = leaf(torch, *size)
        y = x + 2
        y[chosen] = 2
        y.sum().backward()
        assert near(x.grad, (~chosen).double())


@modes
def select_sum(torch):
    x = leaf(torch, 10)
    assert torch.autograd.gradcheck(lambda x: x.select(0, 1).sum(), [x])
    assert torch.autograd.gradgradcheck(lambda x: x.select(0, 1).sum(), [x])


@modes
def diagonal_expanded_v(torch):
    v, a = torch.tensor(0.5, dtype=torch.float64).expand(4), leaf(torch, 4, 4)
    assert near(torch.autograd.grad(a.diagonal(), a, v)[0], torch.eye(4) * 0.5)


@modes
def select_expanded_v(torch):
    v, a = torch.arange(3.0, dtype=torch.float64).expand(2, 3), leaf(torch, 2, 2, 3)
    (found,) = torch.autograd.grad(a[0], a, v)
    assert near(found[0], v)
    assert near(found[1], 0.0)


@modes
def slice_expanded_v(torch):
    v, a = torch.arange(3.0, dtype=torch.float64).reshape(3, 1).expand(2, 3, 2), leaf(torch, 4, 3, 2)
    (found,) = torch.autograd.grad(a[1:3], a, v)
    assert near(found[1:3], v)
    assert near(found[0], 0.0)


@modes
def volatile_deprecated(torch):
    with heard() as texts:
        assert torch.rand(3).volatile is False
    assert "volatile" in texts[0]


@modes
def dir_(torch):
    x, y = torch.rand(3, 3), torch.rand(3, 3, dtype=torch.complex64)
    names = dir(x)
    assert "shape" in names
    with refused(""):
        x.imag
    assert hasattr(y, "imag")
    assert all(hasattr(x, name) for name in names if name != "imag")


@modes
def unrelated_inputs(torch):
    x, y = leaf(torch, 4), leaf(torch, 4)
    assert torch.autograd.gradcheck(lambda x, y: x * x, (x, y))
    assert torch.autograd.gradgradcheck(lambda x, y: x * x, (x, y))


# ---- gradcheck ----
def _off(x):
    y = x.clone()
    y.register_hook(lambda g: g + 1e-2)
    return y


@modes
def gradcheck_single_input(torch):
    for fast in (True, False):
        assert torch.autograd.gradcheck(lambda x: x.mul(5), leaf(torch, 10), fast_mode=fast)
        assert torch.autograd.gradgradcheck(lambda x: x.mul(5), leaf(torch, 10), fast_mode=fast)


@modes
def gradcheck_nondeterministic(torch):
    def forward(ctx, x, jitter=0.0):
        ctx.jitter = jitter
        return x

    def backward(ctx, g):
        return made.apply(g, ctx.jitter) * (1 + torch.rand_like(g) * ctx.jitter), None

    made = function(torch, forward, backward)
    check, twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    for fast in (True, False):
        more = {"check_batched_grad": False, "fast_mode": fast}
        x = leaf(torch, 3, 3)
        check(lambda x: made.apply(x, 0.0), x, **more)
        with refused("Backward is not reentrant"):
            check(lambda x: made.apply(x, 1e-6), x, **more)
        with refused("Backward is not reentrant"):
            twice(lambda x: made.apply(x, 1e-12), x, **more)
        check(lambda x: made.apply(x, 1e-6), x, nondet_tol=1e-5, **more)
        twice(lambda x: made.apply(x, 1e-12), x, nondet_tol=1e-5, **more)


@modes
def gradcheck_check_no_differentiable_outputs(torch):
    x, check = torch.ones(1, requires_grad=True), torch.autograd.gradcheck
    with refused("Numerical gradient for function expected to be zero"):
        check(lambda x: torch.tensor([x]), x)
    for fast in (True, False):
        assert not check(lambda x: torch.tensor([x]), x, raise_exception=False, fast_mode=fast)
        assert check(lambda x: (), (x,), fast_mode=fast)


@modes
def gradcheck_undefined_grad(torch):
    def run(x):
        def hook(g):
            if g is None:
                raise RuntimeError("x is undefined")

        y = x.clone()
        y.register_hook(hook)
        return y

    for fast in (True, False):
        with heard() as texts, refused("Expected backward function to handle undefined output grads"):
            torch.autograd.gradcheck(run, (leaf(torch, 1),), fast_mode=fast)
        assert any("New undefined gradient support checking feature" in text for text in texts)


@modes
def gradcheck_jacobian_mismatch(torch):
    check = torch.autograd.gradcheck
    for fast in (True, False):
        with refused("Jacobian mismatch for output 0 with respect to input 0"):
            check(_off, (torch.ones(2, 2, requires_grad=True),), fast_mode=fast)
        assert not check(_off, (torch.ones(2, 2, requires_grad=True),), raise_exception=False, fast_mode=fast)
    z = torch.ones(2, 2, requires_grad=True, dtype=torch.complex128)
    for run, x in (
        (_off, z),
        (lambda x: _off(torch.complex(x, x)), torch.ones(2, 2, requires_grad=True, dtype=torch.float64)),
    ):
        with refused("While considering the imaginary part of complex outputs only"):
            check(run, (x,), fast_mode=False)
    with refused("Jacobian mismatch for output 0 with respect to input 0"):
        check(lambda z: _off(torch.real(z)), (z,), fast_mode=False)


@modes
def gradcheck_output_shape_or_dtype_depend_on_values(torch):
    a = torch.ones(1, dtype=torch.float64, requires_grad=True)
    for run, words in (
        (
            lambda x: torch.cat([x, x]) if torch.all(x >= 1) else x,
            "return outputs with the same shape when inputs are perturbed",
        ),
        (
            lambda x: x.float() if torch.all(x >= 1) else x,
            "return outputs with the same dtype when inputs are perturbed",
        ),
    ):
        for fast in (True, False):
            with refused(words, AssertionError):
                torch.autograd.gradcheck(run, (a,), fast_mode=fast)


@modes
def gradcheck_complex_non_complex_outputs(torch):
    a, b = (torch.ones(2, 2, requires_grad=True, dtype=torch.float64) for _ in range(2))
    assert torch.autograd.gradcheck(lambda x, y: (torch.complex(x, y), x + 1), (a, b))
    c = torch.ones(2, 2, requires_grad=True, dtype=torch.complex128)
    assert torch.autograd.gradcheck(lambda z: (z, torch.real(z)), c)


@modes
def gradcheck_adjusted_atol_complex_inputs(torch):
    z = (torch.tensor([0.3 + 0.4j, 0.7 + 0.1j], dtype=torch.complex128) * 0.01).requires_grad_()
    for fast in (True, False):
        assert torch.autograd.gradcheck(lambda z: 1.0 / torch.norm(z), (z,), fast_mode=fast, atol=2e-2, rtol=1e-9)


@modes
def gradcheck_get_numerical_jacobian(torch):
    old = inspect.unwrap(torch.autograd.gradcheck).__globals__["get_numerical_jacobian"]

    def run(inputs):
        return 2 * inputs[0] + inputs[1], inputs[0] + 2 * inputs[1]

    a, b = leaf(torch, 2, 2), leaf(torch, 2, 2)
    with heard() as texts:
        found = old(run, (a, b), target=a, eps=1e-6)
    assert any("`get_numerical_jacobian` was part of PyTorch's private API" in text for text in texts)
    assert near(found[0], 2 * torch.eye(4))
    found = old(run, (a, b), eps=1e-6)
    assert near(found[1], torch.eye(4))
    with refused("Expected grad_out to be 1.0", ValueError):
        old(run, (a, b), eps=1e-6, grad_out=2.0)


@modes
def gradcheck_get_analytical_jacobian(torch):
    old = inspect.unwrap(torch.autograd.gradcheck).__globals__["get_analytical_jacobian"]
    a, b = leaf(torch, 2, 2), leaf(torch, 2, 2)
    with heard() as texts:
        jacobians, reentrant, _, _ = old((a, b), 2 * a + b)
    assert any("`get_analytical_jacobian` was part of PyTorch's private API" in text for text in texts)
    assert near(jacobians[0], 2 * torch.eye(4))
    assert near(jacobians[1], torch.eye(4))
    assert reentrant
    with refused("Expected grad_out to be 1.0", ValueError):
        old((a,), a * 2, grad_out=2.0)


@modes
def gradcheck_custom_error(torch):
    kind, words = (
        inspect.unwrap(torch.autograd.gradcheck).__globals__["GradcheckError"],
        "Jacobian mismatch for output 0 with respect to input 0",
    )

    def fail(x):
        raise RuntimeError("Not ours")

    for fast in (True, False):
        x = torch.ones(2, 2, requires_grad=True)
        for error in (kind, RuntimeError):
            with refused(words, error):
                torch.autograd.gradcheck(_off, (x,), fast_mode=fast)
        with refused("Not ours"):
            torch.autograd.gradcheck(fail, (x,), fast_mode=fast, raise_exception=False)


@modes
def gradcheck_forward_ad(torch):
    fw = torch.autograd.forward_ad

    def bad(x, y):
        if fw._current_level >= 0:
            p, t = fw.unpack_dual(y)
            y = fw.make_dual(p, t * 1.1)
        return x + y, y

    words = "Jacobian computed with forward mode mismatch for output 0 with respect to input 1"
    real, other = leaf(torch, 2), leaf(torch, 2) + 0.1
    other = other.detach().requires_grad_()
    complex_one = torch.rand(2, dtype=torch.complex128, requires_grad=True)
    for fast in (True, False):
        for pair in (
            (real, other),
            (complex_one, other),
            (complex_one, torch.rand(2, dtype=torch.complex128, requires_grad=True)),
        ):
            assert torch.autograd.gradcheck(lambda x, y: (x + y, y), pair, check_forward_ad=True, fast_mode=fast)
            with refused(words):
                torch.autograd.gradcheck(bad, pair, check_forward_ad=True, fast_mode=fast)


@modes
def gradcheck_forward_ad_runs_with_no_requires_grad(torch):
    fw, seen = torch.autograd.forward_ad, []

    def forward(ctx, x, y):
        if fw._current_level >= 0:
            seen.append(x.requires_grad or y.requires_grad)
        return x.clone(), y.clone()

    made = function(torch, forward, jvp=lambda ctx, x, y: (x, y))
    for needs, undefined, batched in (
        (True, False, False),
        (True, True, False),
        (True, True, True),
        (False, True, True),
    ):
        x, y = leaf(torch, 2), leaf(torch, 2).detach().requires_grad_(needs)
        torch.autograd.gradcheck(
            made.apply, (x, y), check_forward_ad=True, check_undefined_grad=undefined, check_backward_ad=False,
            check_batched_grad=False, check_batched_forward_grad=batched,
        )  # fmt: skip
    assert seen
    assert not any(seen)


@modes
def gradcheck_forward_ad_respects_requires_grad(torch):
    counts = []
    made = function(torch, lambda ctx, x, y: (x.clone(), y.clone()), jvp=lambda ctx, x, y: counts.append(1) or (x, y))
    for needs, undefined, batched, expected in (
        (True, False, False, 2),
        (True, True, False, 6),
        (True, True, True, 12),
        (False, True, True, 5),
    ):
        counts.clear()
        x, y = leaf(torch, 1), leaf(torch, 1).detach().requires_grad_(needs)
        torch.autograd.gradcheck(
            made.apply, (x, y), check_forward_ad=True, check_undefined_grad=undefined, check_backward_ad=False,
            check_batched_grad=False, check_batched_forward_grad=batched,
        )  # fmt: skip
        assert len(counts) == expected


@modes
def gradcheck_check_forward_or_backward_only(torch):
    def forward(ctx, x, there, back):
        ctx.there, ctx.back = there, back
        return x * 2

    def vjp(ctx, g):
        if ctx.back:
            raise RuntimeError("FAIL BWD")
        return 2 * g, None, None

    def jvp(ctx, t, *_):
        if ctx.there:
            raise RuntimeError("FAIL FWD")
        return 2 * t

    made = function(torch, forward, vjp=vjp, jvp=jvp)
    for fast, forwards, backwards, there, back in product((True, False), repeat=5):

        def run(fast=fast, forwards=forwards, backwards=backwards, there=there, back=back):
            torch.autograd.gradcheck(
                made.apply, (leaf(torch, 2), there, back), check_forward_ad=forwards, check_backward_ad=backwards,
                check_undefined_grad=backwards, check_batched_grad=backwards, fast_mode=fast,
            )  # fmt: skip

        if not forwards and not backwards:
            with refused("Expected at least one of", AssertionError):
                run()
        elif (back and backwards) or (there and forwards):
            with refused("FAIL BWD" if back and backwards else "FAIL FWD"):
                run()
        else:
            run()


@modes
def gradcheck_forward_ad_batched_grad(torch):
    x, check = leaf(torch, 2), torch.autograd.gradcheck
    more = {"check_forward_ad": True, "check_batched_forward_grad": True}
    only = {"check_backward_ad": False, "check_batched_grad": False, "check_undefined_grad": False}
    assert check(lambda a, b: (a.clone(), a + 1), (x, 1), **more, **only)
    assert check(lambda a, c: a.clone(), (x, x.clone()), **more, **only)
    made = function(
        torch, lambda ctx, x: x * 2, vjp=lambda ctx, g: g * 2, jvp=lambda ctx, t: torch.randn_like(t) * 0 + t * 2
    )
    with refused("vmap: We do not yet support calling random operations inside of vmap"):
        check(made.apply, (x,), **more)


# ---- profiler ----
@modes
def profiler(torch):
    profiler = torch.autograd.profiler
    x = torch.rand(4, 4)
    with profiler.profile() as seen:
        assert torch.autograd._profiler_enabled()
        x * 2 + 4
    assert not torch.autograd._profiler_enabled()
    assert {"aten::mul", "aten::add"} <= {one.name for one in seen.function_events}


@modes
def record_function_callbacks(torch):
    profiler = torch.autograd.profiler
    with profiler.profile() as seen, profiler.record_function("foo"):
        torch.rand(4) * 2 + 4
    assert next(one for one in seen.function_events if "foo" in one.name).count == 1


@modes
def record_function(torch):
    profiler = torch.autograd.profiler
    with profiler.profile() as seen:
        with profiler.record_function("outer"):
            y = torch.rand(4) * 2 + 4
            with profiler.record_function("inner"):
                y = y - 1
        y / 1
    names = [one.name for one in seen.function_events]
    wanted = ["outer", "aten::mul", "aten::add", "inner", "aten::sub", "aten::div"]
    assert [one for one in names if one in wanted] == wanted

    @profiler.record_function("my_func")
    def add(x, y):
        return x + y

    with profiler.profile() as seen:
        add(1, 2)
    assert "my_func" in str(seen)


@modes
def record_function_multithreaded(torch):
    record = torch.autograd.profiler.record_function
    outer = record("outer")
    outer.__enter__()
    with record("inner"):
        outer.__exit__(None, None, None)
    with record("inner"):
        outer.__enter__()
    outer.__exit__(None, None, None)


@modes
def profiler_unboxed_only(torch):
    with torch.autograd.profiler.profile():
        torch.rand(3, 4).resize_([3, 2])


@modes
def profiler_aggregation_table(torch):
    with torch.autograd.profiler.profile() as seen:
        torch.einsum("i->", torch.rand(64))
    assert seen.table() == str(seen)


@modes
def profiler_function_event_avg(torch):
    util = importlib.import_module(f"{torch.__name__}.autograd.profiler_util")
    event, average = util.FunctionEvent, util.FunctionEventAvg()
    average.add(event(id=0, node_id=0, name="foo", thread=0, start_us=10, end_us=15))
    average.add(event(id=1, node_id=0, name="foo", thread=0, start_us=20, end_us=30))
    average.add(average)
    assert (average.key, average.count, average.cpu_time_total, average.self_cpu_time_total) == ("foo", 4, 30, 30)
    assert average.cpu_time == 7.5
    assert average.device_time_total == 0


@modes
def profiler_aggregation_fake(torch):
    util = importlib.import_module(f"{torch.__name__}.autograd.profiler_util")
    events, event = util.EventList(), util.FunctionEvent
    at = 0
    for thread, ranges in ((1, ((0, 1), (1, 2))), (0, ((0, 2), (1, 2), (1, 3)))):
        for start, end in ranges:
            at += 1
            events.append(event(id=at, node_id=0, name="", thread=thread, start_us=start, end_us=end))
    events._populate_cpu_children()
    assert [[child.id for child in one.cpu_children] for one in events] == [[], [], [], [], [4]]


@modes
def profiler_shapes(torch):
    one, two = torch.nn.Linear(20, 30), torch.nn.Linear(30, 40)
    with torch.autograd.profiler.profile(record_shapes=True) as seen:
        two(one(torch.rand(8, 20)))
    shapes = [list(map(list, e.input_shapes)) for e in seen.function_events if e.name == "aten::linear"]
    assert shapes == [[[8, 20], [30, 20], [30]], [[8, 30], [40, 30], [40]]]


modes.cannot("sparse tensors", "gradcheck_input", "gradcheck_validates_inputs", "gradcheck_check_batched_grad",
    "gradcheck_backward_mul_by_grad_output", "gradcheck_dense_and_sparse_inputs")  # fmt: skip
modes.cannot(
    "MKL-DNN", "gradcheck_validates_input_mkldnn", "gradcheck_test_outputs", "gradcheck_multiple_mkldnn_inputs"
)
modes.cannot("torch.jit", "profiler_propagation")
modes.cannot(
    "the operations inside torch's operations", "profiler_seq_nr", "record_function_legacy", "profiler_aggregation_lstm"
)
modes.cannot("a solver for eigenvectors by iteration", "lobpcg")


# ---- inference mode ----
def _ones(torch, **more):
    return torch.ones(1, 2, 3, **more)


@inference
def inference_mode_context_manager(torch):
    on = torch.is_inference_mode_enabled
    assert not on()
    with torch.inference_mode():
        assert on()
        with torch.inference_mode(False):
            assert not on()
        assert on()
    assert not on()


@inference
def inference_mode_decorator(torch):
    seen = []

    def square(x):
        seen.append(torch.is_inference_mode_enabled())
        return x * x

    for mode, decorated in (
        (True, torch.inference_mode(square)),
        (True, torch.inference_mode(mode=square)),
        (True, torch.inference_mode(True)(square)),
        (False, torch.inference_mode(mode=False)(square)),
    ):
        for needs in (True, False):
            out = decorated(_ones(torch, requires_grad=needs))
            assert seen.pop() is mode
            assert torch.is_inference(out) or not mode
            assert out.requires_grad == (needs and not mode)


@inference
def inference_mode_tensor_creation(torch):
    with torch.inference_mode():
        for made, needs in (
            (_ones(torch), False),
            (_ones(torch, requires_grad=True), True),
            (_ones(torch).requires_grad_(False), False),
        ):
            assert made.requires_grad is needs
            assert torch.is_inference(made)


@inference
def inference_mode_existing_autograd_session(torch):
    a = _ones(torch, requires_grad=True).clone()
    out = a * a
    with torch.inference_mode():
        a.add_(2)
    assert not torch.is_inference(a)
    with refused("modified by an inplace operation"):
        out.backward(torch.ones_like(out))


@inference
def inference_mode_inf_tensor_in_inf_mode_functional_op(torch):
    with torch.inference_mode():
        for needs in (True, False):
            c = _ones(torch, requires_grad=needs)
            assert torch.is_inference(c * c)
            assert not (c * c).requires_grad


@inference
def inference_mode_inf_tensor_in_inf_mode_inplace_op(torch):
    with torch.inference_mode():
        for needs in (True, False):
            for call in (
                lambda x: x.add_(2),
                lambda x: x.transpose_(0, 1),
                lambda x: x.resize_(1, 2),
                lambda x: x.resize_as_(torch.ones(1, 2)),
                lambda x: x.copy_(torch.ones(1, 2, 3)),
            ):
                c = _ones(torch, requires_grad=needs)
                call(c)
                assert torch.is_inference(c)
                assert c.requires_grad == needs


@inference
def inference_mode_inf_tensor_in_inf_mode_view_op(torch):
    with torch.inference_mode():
        for needs in (True, False):
            view = _ones(torch, requires_grad=needs).view(-1)
            assert torch.is_inference(view)
            assert not view.requires_grad


@inference
def inference_mode_inf_tensor_in_normal_mode_functional_op(torch):
    for needs in (True, False):
        with torch.inference_mode():
            c = _ones(torch, requires_grad=needs)
        if not needs:
            out = c * c
            assert not torch.is_inference(out)
            assert not out.requires_grad
            assert out.is_leaf


@inference
def inference_mode_inf_tensor_in_normal_mode_inplace_op(torch):
    for call in (lambda x: x.add_(2), lambda x: x.transpose_(0, 1)):
        with torch.inference_mode():
            c = _ones(torch)
        with refused("Inplace update to inference tensor outside InferenceMode"):
            call(c)


@inference
def inference_mode_inf_tensor_in_normal_mode_view_op(torch):
    for needs in (True, False):
        with torch.inference_mode():
            c = _ones(torch, requires_grad=needs)
        out = c.view(-1)
        assert torch.is_inference(out)
        assert not out.requires_grad
        assert not out._is_view()
        assert out.is_leaf


@inference
def normal_tensor_inplace_output_in_inference_mode(torch):
    for call, needs in product((lambda x: x.add_(2), lambda x: x.transpose_(0, 1)), (True, False)):
        a = _ones(torch, requires_grad=needs).clone()
        with torch.inference_mode():
            for _ in range(2):
                call(a)
                assert not torch.is_inference(a)
                assert a.requires_grad == needs
            view = a.view(-1)
            assert not torch.is_inference(view)
            assert view.requires_grad == needs


@inference
def normal_tensor_inplace_output_in_normal_mode(torch):
    for call, needs in product((lambda x: x.add_(2), lambda x: x.transpose_(0, 1)), (True, False)):
        a = _ones(torch, requires_grad=needs).clone()
        with torch.inference_mode():
            call(a)
        for _ in range(2):
            call(a)
            assert not torch.is_inference(a)
            assert a.requires_grad == needs
        assert a.view(-1).requires_grad == needs


@inference
def normal_tensor_view_output_in_inference_mode(torch):
    for needs in (True, False):
        a = _ones(torch, requires_grad=needs).clone()
        with torch.inference_mode():
            out = a.view(-1)
            inner = out.view(-1)
            for one in (out, inner):
                assert not torch.is_inference(one)
                assert one.requires_grad == needs
                assert one._is_view()
            assert inner.is_leaf
            inner.add_(2)
            assert inner.requires_grad == needs
            assert a._version == inner._version


@inference
def normal_tensor_view_output_in_normal_mode(torch):
    for needs in (True, False):
        a = _ones(torch, requires_grad=needs).clone()
        with torch.inference_mode():
            out = a.view(-1)
            assert out.is_leaf
        assert (out * out).requires_grad == needs
        if needs:
            with refused("A view was created in inference mode and is being modified inplace"):
                out.add_(2)
        else:
            out.add_(2)
        assert out.view(2, 3).requires_grad == needs


@inference
def mix_inference_and_normal_tensor_functional_op(torch):
    for needs in (True, False):
        s = _ones(torch, requires_grad=needs)
        with torch.inference_mode():
            c = _ones(torch, requires_grad=needs)
        out = c.add(s)
        assert not torch.is_inference(out)
        assert out.requires_grad == needs
        if needs:
            out.backward(torch.ones_like(out))
            assert near(c.grad, 1.0)
            with refused("Inference tensors cannot be saved for backward"):
                c * s


@inference
def mix_inference_and_normal_tensor_inplace_op(torch):
    for needs in (True, False):
        s = _ones(torch, requires_grad=needs)
        a = s.clone()
        with torch.inference_mode():
            c = _ones(torch)
        if needs:
            with refused("Inference tensors cannot be saved for backward"):
                a.mul_(c)
            with refused(
                "out=... arguments don't support automatic differentiation, but one of the arguments requires grad"
            ):
                torch.mul(s, s, out=c)
        else:
            a.mul_(c)
            with refused("Inplace update to inference tensor outside InferenceMode is not allowed"):
                torch.mul(s, s, out=c)


@inference
def mix_inference_and_normal_tensor_view_op(torch):
    for needs in (True, False):
        s = _ones(torch, requires_grad=needs)
        with torch.inference_mode():
            c = _ones(torch)
        assert torch.is_inference(c.view_as(s))
        assert not torch.is_inference(s.view_as(c))
        assert s.view_as(c).requires_grad == needs


@inference
def inference_mode_handle_direct_view_on_rebase(torch):
    for call, needs in product((lambda x: x.add_(2), lambda x: x.transpose_(0, 1)), (True, False)):
        a = _ones(torch, requires_grad=needs).clone()
        with torch.inference_mode():
            view = a.view_as(a)
        if needs:
            with refused("A view was created in inference mode and is being modified inplace"):
                call(view)
        else:
            call(view)


@inference
def inference_mode_handle_indirect_view_on_rebase(torch):
    for call, needs in product((lambda x: x.add_(2), lambda x: x.transpose_(0, 1)), (True, False)):
        a = _ones(torch, requires_grad=needs).clone()
        with torch.inference_mode():
            view = a.view(-1)
        call(a)
        if needs:
            with refused("A view was created in inference mode and its base or another view "):
                view.grad_fn
        else:
            view.grad_fn
