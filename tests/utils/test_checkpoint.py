"""torch.utils.checkpoint: plain gradients with less memory, torch's words when recomputation goes astray."""

from __future__ import annotations

import gc
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd
from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    detach_variable,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

VARIANTS = pytest.mark.parametrize("use_reentrant", [False, True])


def leaf(*shape, seed=0):
    values = np.random.RandomState(seed).standard_normal(shape)
    return retrograd.tensor(values.tolist(), dtype=retrograd.float64, requires_grad=True)


def block(x, w):
    return (x.sin() @ w).exp().tanh()


def same(a, b):
    return a.shape == b.shape and (a.detach().numpy() == b.detach().numpy()).all()


@contextmanager
def no_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Counter:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


class Changing:
    """A function that is `first` the first time and `later` afterwards."""

    def __init__(self, first, later):
        self.functions = [first, later]

    def __call__(self, *args):
        return (self.functions.pop(0) if len(self.functions) > 1 else self.functions[0])(*args)


# ---- gradients ----
@VARIANTS
def test_gradients_are_bitwise_those_of_the_plain_run(use_reentrant):
    grads = []
    for wrapped in (False, True):
        x, w = leaf(3, 4), leaf(4, 4, seed=1)
        out = checkpoint(block, x, w, use_reentrant=use_reentrant) if wrapped else block(x, w)
        (out * out).sum().backward()
        grads.append((x.grad, w.grad))
    assert all(same(a, b) for a, b in zip(*grads, strict=True))


@VARIANTS
def test_a_chain_of_checkpoints(use_reentrant):
    grads = []
    for wrapped in (False, True):
        x, w = leaf(3, 4), leaf(4, 4, seed=1)
        y = x
        for _ in range(4):
            y = checkpoint(block, y, w, use_reentrant=use_reentrant) if wrapped else block(y, w)
        y.sum().backward()
        grads.append((x.grad, w.grad))
    assert all(same(a, b) for a, b in zip(*grads, strict=True))


def test_keyword_arguments_reach_the_function():
    x = leaf(3)
    checkpoint(lambda a, *, power: (a**power).sum(), x, use_reentrant=False, power=3).backward()
    assert same(x.grad, 3 * x.detach() ** 2)


def test_tensors_that_the_function_closes_over_get_gradients():
    x, w = leaf(3), leaf(3, seed=1)
    checkpoint(lambda a: (a * w).exp().sum(), x, use_reentrant=False).backward()
    assert same(w.grad, x.detach() * (x.detach() * w.detach()).exp())


def test_double_backward():
    results = []
    for wrapped in (False, True):
        x, w = leaf(3, 4), leaf(4, 4, seed=1)
        out = checkpoint(block, x, w, use_reentrant=False) if wrapped else block(x, w)
        first = retrograd.autograd.grad(out.sum(), (x, w), create_graph=True)
        results.append(retrograd.autograd.grad(sum((g * g).sum() for g in first), (x, w)))
    assert all(same(a, b) for a, b in zip(*results, strict=True))


def test_grad_of_chosen_inputs():
    x, w = leaf(3, 4), leaf(4, 4, seed=1)
    (found,) = retrograd.autograd.grad(checkpoint(block, x, w, use_reentrant=False).sum(), (w,))
    (expected,) = retrograd.autograd.grad(block(x, w).sum(), (w,))
    assert same(found, expected)


def test_retained_graph_recomputes_once_per_backward():
    x = leaf(4)
    function = Counter(lambda a: a.sin().exp().cos())
    y = checkpoint(function, x, use_reentrant=False).sum()
    for _ in range(3):
        y.backward(retain_graph=True)
    assert function.calls == 1 + 3


def test_backward_inside_a_batch_of_gradients():
    x = leaf(3)
    y = checkpoint(lambda a: a.sin().exp(), x, use_reentrant=False)
    (rows,) = retrograd.autograd.grad(y, x, retrograd.eye(3, dtype=retrograd.float64), is_grads_batched=True)
    expected = (x.sin().exp() * x.cos()).detach()
    assert np.allclose(rows.numpy(), np.diag(expected.numpy()), rtol=1e-15)


def test_grad_called_inside_the_function():
    def function(a):
        (g,) = retrograd.autograd.grad(a.sin().sum(), a, create_graph=True)
        return g.exp()

    x = leaf(3)
    (found,) = retrograd.autograd.grad(checkpoint(function, x, use_reentrant=False).sum(), x)
    (expected,) = retrograd.autograd.grad(function(x).sum(), x)
    assert same(found, expected)


def test_backward_inside_the_function_before_it_has_saved_everything():
    w = leaf(3, seed=1)

    def function(a):
        y = (a * w).sin()
        y.sum().backward(retain_graph=True)
        return y.exp()

    x = leaf(3)
    checkpoint(function, x, use_reentrant=False, early_stop=False).sum().backward()
    assert x.grad is not None


def test_a_custom_function_inside():
    class Square(retrograd.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return 2 * a * g

    x = leaf(3)
    checkpoint(lambda a: Square.apply(a.sin()), x, use_reentrant=False).sum().backward()
    assert np.allclose(x.grad.numpy(), (2 * x.sin() * x.cos()).detach().numpy(), rtol=1e-15)


def test_several_outputs_and_other_values():
    x = leaf(3)
    a, number, none = checkpoint(lambda v: (v.exp(), 7, None), x, use_reentrant=True)
    assert (number, none) == (7, None)
    a.sum().backward()
    assert same(x.grad, x.detach().exp())


def test_a_module_s_parameters_get_gradients_even_if_no_argument_requires_grad():
    w = leaf(3)
    checkpoint(
        lambda a: (a * w).sin().sum(), retrograd.ones(3, dtype=retrograd.float64), use_reentrant=False
    ).backward()
    assert same(w.grad, w.detach().cos())


# ---- nesting ----
@pytest.mark.parametrize("early_stop", [True, False])
def test_nested_checkpoints(early_stop):
    def inner(a):
        return checkpoint(lambda b: b.sin().exp().cos(), a, use_reentrant=False, early_stop=early_stop)

    def outer(a):
        return checkpoint(lambda b: inner(inner(b) * b.sin()), a, use_reentrant=False, early_stop=early_stop)

    x = leaf(4)
    (found,) = retrograd.autograd.grad(outer(outer(x)).sum(), x)

    def plain(a):
        b = (a.sin().exp().cos()) * a.sin()
        return b.sin().exp().cos()

    (expected,) = retrograd.autograd.grad(plain(plain(x)).sum(), x)
    assert same(found, expected)


def test_three_levels_with_double_backward():
    def deep(a, depth):
        if depth == 0:
            return a.sin().exp()
        return checkpoint(lambda b: deep(b.cos(), depth - 1), a, use_reentrant=False)

    def plain(a, depth):
        return a.sin().exp() if depth == 0 else plain(a.cos(), depth - 1)

    x = leaf(4)
    found = [retrograd.autograd.grad(f(x, 3).sum(), x, create_graph=True)[0] for f in (deep, plain)]
    second = [retrograd.autograd.grad(g.exp().sum(), x)[0] for g in found]
    assert same(*found)
    assert same(*second)


def test_reentrant_around_nonreentrant():
    def inner(a):
        return checkpoint(lambda b: b.sin().exp(), a, use_reentrant=False)

    x = leaf(4)
    checkpoint(lambda a: inner(a).cos(), x, use_reentrant=True).sum().backward()
    (expected,) = retrograd.autograd.grad(x.sin().exp().cos().sum(), x)
    assert same(x.grad, expected)


def test_saved_tensor_hooks_around_see_the_arguments_only():
    seen = []
    x = leaf(4)
    with saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        y = checkpoint(lambda a: a.sin().exp().cos(), x, use_reentrant=False)
    assert len(seen) == 1
    y.sum().backward()
    (expected,) = retrograd.autograd.grad(x.sin().exp().cos().sum(), x)
    assert same(x.grad, expected)


# ---- early stop ----
def test_early_stop_skips_what_comes_after_the_last_saved_tensor():
    reached = []

    def function(a):
        y = a.sin().exp()
        z = y + 1  # saves nothing
        reached.append(1)
        return z

    for stop, expected in ((True, 1), (False, 2)):
        reached.clear()
        checkpoint(function, leaf(3), use_reentrant=False, early_stop=stop).sum().backward()
        assert len(reached) == expected


def test_early_stop_setting_of_a_block_wins():
    function = Changing(lambda a: a.sin(), lambda a: a.sin().sin())
    with set_checkpoint_early_stop(False):
        y = checkpoint(function, leaf(3), use_reentrant=False, early_stop=True)
    with pytest.raises(CheckpointError, match="trying to save more tensors"):
        y.sum().backward()


# ---- random numbers ----
@VARIANTS
def test_random_numbers_are_drawn_again(use_reentrant):
    masks = []

    def function(a):
        masks.append(retrograd.rand(4))
        return (a * masks[-1]).sin()

    x = leaf(4)
    retrograd.manual_seed(3)
    y = checkpoint(function, x, use_reentrant=use_reentrant)
    following = retrograd.rand(2)
    y.sum().backward()
    after = retrograd.rand(2)
    assert same(*masks)
    retrograd.manual_seed(3)
    retrograd.rand(4)
    assert same(following, retrograd.rand(2))
    assert same(after, retrograd.rand(2))  # recomputation left the stream where it was


def test_random_state_is_not_kept_when_told_so():
    masks = []

    def function(a):
        masks.append(retrograd.rand(4))
        return (a * masks[-1]).sin()

    checkpoint(function, leaf(4), use_reentrant=False, preserve_rng_state=False).sum().backward()
    assert not same(*masks)


# ---- contexts ----
def test_contexts_surround_both_runs():
    log = []

    @contextmanager
    def note(name):
        log.append(f"+{name}")
        try:
            yield
        finally:
            log.append(f"-{name}")

    y = checkpoint(
        lambda a: a.sin().exp(),
        leaf(3),
        use_reentrant=False,
        context_fn=lambda: (note("forward"), note("again")),
    )
    assert log == ["+forward", "-forward"]
    y.sum().backward()
    assert log == ["+forward", "-forward", "+again", "-again"]


def test_a_forward_context_that_swallows_an_error():
    class Swallow:
        def __enter__(self):
            pass

        def __exit__(self, *exc):
            return True

    def fail(a):
        raise ValueError

    with pytest.raises(RuntimeError, match="suppressed an exception raised during the checkpointed forward"):
        checkpoint(fail, leaf(3), use_reentrant=False, context_fn=lambda: (Swallow(), Swallow()))


# ---- memory ----
def test_intermediate_values_die_with_the_forward():
    kept = []

    def function(a):
        y = a.sin()
        kept.append(weakref.ref(y._array))
        return y.exp().cos()

    with no_collector():
        y = checkpoint(function, leaf(4), use_reentrant=False)
        assert [r() is None for r in kept] == [True]
        y.sum().backward()
        assert [r() is None for r in kept] == [True, True]


def test_recomputed_values_die_as_backward_uses_them():
    kept, alive = [], []

    def function(a):
        for _ in range(4):
            a = a.sin()
            a.register_hook(lambda g: alive.append(sum(r() is not None for r in kept)))
            kept.append(weakref.ref(a._array))
        return a.exp()

    x = leaf(4)
    with no_collector():
        y = checkpoint(function, x, use_reentrant=False)
        kept.clear()
        y.sum().backward()
        assert sum(r() is not None for r in kept) == 0
    assert alive == sorted(alive, reverse=True)


@pytest.mark.parametrize("retain", [False, True])
def test_nothing_is_left_in_cycles(retain):
    kept = []

    def function(a, b):
        y = checkpoint(lambda v: v.sin().exp(), a * b, use_reentrant=False)
        kept.append(weakref.ref(y))
        return y.cos() * b

    with no_collector():
        x, w = leaf(4), leaf(4, seed=1)
        y = checkpoint(function, x, w, use_reentrant=False)
        kept.append(weakref.ref(y.grad_fn))
        kept.append(weakref.ref(x))
        y.sum().backward(retain_graph=retain)
        retrograd.autograd.grad(checkpoint(function, x, w, use_reentrant=False).sum(), x, create_graph=True)
        del x, w, y
        assert [r() for r in kept] == [None] * len(kept)


def test_an_error_in_recomputation_leaves_no_cycle():
    function = Changing(lambda a: a.sin().exp().cos(), lambda a: a.sin())
    with no_collector():
        x = leaf(4)
        y = checkpoint(function, x, use_reentrant=False)
        with pytest.raises(CheckpointError):
            y.sum().backward()
        kept = [weakref.ref(x), weakref.ref(y.grad_fn)]
        del x, y
        assert [r() for r in kept] == [None, None]


# ---- transforms ----
def test_inside_jvp_and_vmap():
    def function(a):
        return checkpoint(lambda b: b.sin().exp(), a, use_reentrant=False)

    x = leaf(3, 2)
    out, tangent = retrograd.func.jvp(function, (x.detach(),), (retrograd.ones_like(x),))
    assert same(out, x.sin().exp())
    assert np.allclose(tangent.numpy(), (x.sin().exp() * x.cos()).detach().numpy(), rtol=1e-15)
    mapped = retrograd.vmap(function)(x)
    (found,) = retrograd.autograd.grad(mapped.sum(), x)
    (expected,) = retrograd.autograd.grad(x.sin().exp().sum(), x)
    assert same(found, expected)


def test_inside_func_grad():
    x = leaf(3).detach()
    found = retrograd.func.grad(lambda a: checkpoint(lambda b: b.sin().exp(), a, use_reentrant=False).sum())(x)
    assert same(found, retrograd.func.grad(lambda a: a.sin().exp().sum())(x))


# ---- sequences, odds and ends ----
@VARIANTS
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_sequential(use_reentrant, segments):
    steps = [retrograd.sin, retrograd.exp, retrograd.cos, retrograd.tanh, retrograd.sin]
    x = leaf(4)
    found = checkpoint_sequential(steps, segments, x, use_reentrant=use_reentrant)
    found.sum().backward()
    expected = x.sin().exp().cos().tanh().sin()
    assert same(found, expected)
    assert same(x.grad, retrograd.autograd.grad(expected.sum(), x)[0])


def test_without_gradients_nothing_is_recomputed():
    function = Counter(retrograd.sin)
    with retrograd.no_grad():
        y = checkpoint(function, leaf(3), use_reentrant=False)
    assert not y.requires_grad
    assert function.calls == 1


def test_an_argument_changed_in_place_is_an_error():
    x = leaf(3)
    y = checkpoint(lambda a: a.sin().exp(), x, use_reentrant=False)
    with retrograd.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_detach_variable_makes_leaves():
    x = leaf(3)
    a, b, c = detach_variable((x.sin(), 3, x.detach()))
    assert (a.is_leaf, a.requires_grad, b, c.requires_grad) == (True, True, 3, False)


def test_debug_names_the_operations_of_both_runs():
    function = Changing(lambda a: a.sin().exp().cos(), lambda a: a.sin().tanh())
    y = checkpoint(function, leaf(3), use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError) as caught:
        y.sum().backward()
    text = str(caught.value)
    before, _, after = text.partition("Operations executed during recomputation:")
    assert "$2: f64[3] = torch.exp($1)" in before
    assert "torch.tanh($1)" in after
    assert "test_checkpoint.py" in text
    assert isinstance(caught.value.__cause__, CheckpointError)


def test_debug_setting_of_a_block_wins():
    function = Changing(lambda a: a.sin().exp(), lambda a: a.sin())
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(function, leaf(3), use_reentrant=False)
    with pytest.raises(CheckpointError, match="An error happened while unpacking tensors"):
        y.sum().backward()


def test_metadata_may_differ_if_told_so():
    function = Changing(lambda a: a.sin(), lambda a: (a.float() * 1).sin())
    y = checkpoint(function, leaf(3), use_reentrant=False, determinism_check="none")
    y.sum().backward()


# ---- random programs ----
STEPS = {
    "sin": lambda a, w: a.sin(),
    "exp": lambda a, w: a.tanh().exp(),
    "product": lambda a, w: a * w,
    "matmul": lambda a, w: a @ w,
    "in_place": lambda a, w: a.clone().mul_(w).add_(1),
    "write_part": lambda a, w: _write_part(a),
    "reshape": lambda a, w: a.t().reshape(3, 3),
    "mean": lambda a, w: a - a.mean(),
    "random": lambda a, w: a * retrograd.rand(3, 3, dtype=retrograd.float64),
    "cat": lambda a, w: retrograd.cat([a[:1] * w[:1], a[1:]]),
}
PROGRAM = st.recursive(
    st.sampled_from(sorted(STEPS)), lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=8
)


def _write_part(a):
    b = a.clone()
    b[0] = b[1] * 2
    return b


def run_program(program, a, w, wrapped):
    """Run a nest of steps; every list in it is a checkpointed function."""
    if isinstance(program, str):
        return STEPS[program](a, w)

    def body(b, w):
        for part in program:
            b = run_program(part, b, w, wrapped)
        return b

    return checkpoint(body, a, w, use_reentrant=False) if wrapped else body(a, w)


@settings(max_examples=40, deadline=None)
@given(program=st.lists(PROGRAM, min_size=1, max_size=4), early_stop=st.booleans())
def test_random_nests_have_the_gradients_of_the_plain_run(program, early_stop):
    results = []
    for wrapped in (False, True):
        retrograd.manual_seed(0)
        x, w = leaf(3, 3), leaf(3, 3, seed=1)
        with set_checkpoint_early_stop(early_stop):
            out = run_program(program, x, w, wrapped)
            first = retrograd.autograd.grad(out.sum(), (x, w), create_graph=True, materialize_grads=True)
            second = [None, None]
            if any(g.requires_grad for g in first):
                second = retrograd.autograd.grad(sum((g * g).sum() for g in first), (x, w), allow_unused=True)
        results.append([out, *first, *(retrograd.zeros(3, 3) if g is None else g for g in second)])
    for plain, nested in zip(*results, strict=True):  # many uses of the weights are summed up in another order
        np.testing.assert_allclose(plain.detach().numpy(), nested.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_a_leaf_without_dimensions_is_recomputed_with_its_gradient() -> None:
    x = retrograd.tensor(1.5, requires_grad=True)
    checkpoint(lambda x: x[x > 0] * x, x, use_reentrant=False).sum().backward()
    assert x.grad.item() == 3.0
