"""torch.utils.checkpoint against torch: gradients, warnings, and the words when recomputation goes astray."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import retrograd
from tests.oracle import assert_same_answer, before_the_hint, outcome_and_warnings

pytestmark = pytest.mark.oracle


class Changing:
    """A function that is `first` the first time and `later` afterwards."""

    def __init__(self, first, later):
        self.functions = [first, later]

    def __call__(self, *args):
        return (self.functions.pop(0) if len(self.functions) > 1 else self.functions[0])(*args)


def report(library, program):
    """Run a program: return its outcome, what it warns of, and the gradient."""
    module = importlib.import_module(f"{library.__name__}.utils.checkpoint")
    x = library.tensor([0.5, -1.0, 2.0], dtype=library.float64, requires_grad=True)

    def words(error):
        return before_the_hint(error).replace(repr(type(x)), "<Tensor>").partition("\nThe graph was freed")[0]

    found, heard = outcome_and_warnings(lambda: program(library, module, x) and None, words=words)
    heard = [text for _, text in heard if "heckpoint" in text or "inputs" in text]
    return found, heard, None if x.grad is None else x.grad.numpy().tolist()


def _changing(first, later):
    return lambda t, c, x: c.checkpoint(Changing(first, later), x, use_reentrant=False).sum().backward()


def _twice(t, c, x):
    class Reads(t.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * (ctx.saved_tensors[0] + ctx.saved_tensors[0])

    c.checkpoint(lambda a: Reads.apply(a.sin()), x, use_reentrant=False).sum().backward()


def _freed(t, c, x):
    y = c.checkpoint(t.sin, x, use_reentrant=False).sum()
    y.backward()
    y.backward()


def _deep(t, c, x):
    def f(a):
        return c.checkpoint(lambda b: b.sin().exp() * b, a, use_reentrant=False)

    c.checkpoint(lambda a: f(f(a)).cos(), x, use_reentrant=False).sum().backward()


PROGRAMS = {
    "not_explicit": lambda t, c, x: c.checkpoint(t.sin, x).sum().backward(),
    "sequential_not_explicit": lambda t, c, x: c.checkpoint_sequential([t.sin, t.cos], 2, x).sum().backward(),
    "no_input_requires_grad": lambda t, c, x: c.checkpoint(t.sin, x.detach(), use_reentrant=True),
    "reentrant_debug": lambda t, c, x: c.checkpoint(t.sin, x, use_reentrant=True, debug=True),
    "reentrant_kwargs": lambda t, c, x: c.checkpoint(t.sin, x, use_reentrant=True, a=1, b=2),
    "sequential_kwargs": lambda t, c, x: c.checkpoint_sequential([t.sin], 1, x, use_reentrant=False, a=1),
    "too_many_segments": lambda t, c, x: c.checkpoint_sequential([t.sin], 2, x, use_reentrant=False),
    "determinism": lambda t, c, x: c.checkpoint(t.sin, x, use_reentrant=False, determinism_check="all"),
    "debug_and_context": lambda t, c, x: c.checkpoint(
        t.sin, x, use_reentrant=False, debug=True, context_fn=lambda: (None, None)
    ),
    "nothing_requires_grad": lambda t, c, x: c.checkpoint(lambda a: a.detach(), x, use_reentrant=True).sum().backward(),
    "fewer": _changing(lambda a: a.sin().exp().cos(), lambda a: a.sin()),
    "more": lambda t, c, x: (
        c.checkpoint(Changing(lambda a: a.sin(), lambda a: a.sin().cos()), x, use_reentrant=False, early_stop=False)
        .sum()
        .backward()
    ),
    "more_after_stop": _changing(lambda a: a.sin(), lambda a: a.sin().cos()),
    "metadata": _changing(lambda a: a.sin().cos(), lambda a: a.float().sin().reshape(3, 1).cos()),
    "unpacked_twice": _twice,
    "freed": _freed,
    "detach_list": lambda t, c, x: c.detach_variable([x]),
    "policy_type": lambda t, c, x: c.create_selective_checkpoint_contexts(3),
    "nested": _deep,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_like_torch(name):
    ours, theirs = (report(library, PROGRAMS[name]) for library in (retrograd, pytest.importorskip("torch")))
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]
    assert (ours[2] is None) == (theirs[2] is None)
    if ours[2] is not None:
        assert np.allclose(ours[2], theirs[2], rtol=1e-14)


@pytest.mark.parametrize("how", ["grad", "inputs"])
def test_reentrant_refuses_chosen_inputs(how):
    def program(t, c, x):
        y = c.checkpoint(t.sin, x, use_reentrant=True).sum()
        t.autograd.grad(y, x) if how == "grad" else y.backward(inputs=[x])

    assert_same_answer(lambda library: report(library, program))
