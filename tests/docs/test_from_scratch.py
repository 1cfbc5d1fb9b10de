"""The essay docs/from-scratch.md: its program computes what retrograd computes. test_code_blocks.py checks what it prints."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import retrograd as torch

from .pages import programs

PAGE = Path(__file__).parents[2] / "docs" / "from-scratch.md"
X, W, T = np.array([0.3, -0.2, 0.5]), np.array([0.7, 0.4, -0.6]), np.array([1.1, -0.8, 0.9])
SAMPLES = np.array([[0.4, -1.2, 0.8], [1.3, 0.6, -0.7]])


@pytest.fixture(scope="module")
def names():
    """Return the names that the essay's program defines."""
    defined = {}
    options = np.get_printoptions()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile("\n".join(block.body for block in programs(PAGE.read_text())), str(PAGE), "exec"), defined)
    finally:
        np.set_printoptions(**options)
    return defined


@pytest.fixture(scope="module")
def essay(names):
    return SimpleNamespace(
        array=lambda array: array,
        numpy=np.asarray,
        total=lambda x: names["sum_to"](x, ()),
        **{name: names[name] for name in ("sin", "tanh", "grad", "jvp", "vmap", "hessian")},
    )


LIBRARY = SimpleNamespace(
    array=torch.tensor,
    numpy=lambda tensor: tensor.numpy(),
    total=torch.sum,
    sin=torch.sin,
    tanh=torch.tanh,
    grad=torch.func.grad,
    jvp=lambda f, x, t: torch.func.jvp(f, (x,), (t,)),
    vmap=lambda f, axes=(0,): torch.func.vmap(f, in_dims=axes),
    hessian=torch.func.hessian,
)


# Each makes a function of a vector to a number from another one; w is captured from outside.
STEPS = {
    "grad": lambda m, f, w: lambda x: m.total(m.sin(m.grad(f)(x)) * w),
    "grad with a captured variable": lambda m, f, w: lambda x: m.total(m.grad(lambda v: f(x * v * w))(x * 0.5) * x),
    "jvp": lambda m, f, w: lambda x: m.jvp(f, x, m.array(T))[1] * m.jvp(f, x * 2.0, x)[0],
    "jvp along a computed tangent": lambda m, f, w: lambda x: m.jvp(lambda v: f(v * w), m.tanh(x), x * w)[1],
    "vmap": lambda m, f, w: lambda x: m.total(m.vmap(lambda s: f(s * x * w))(m.array(SAMPLES))),
    "vmap with a shared argument": lambda m, f, w: (
        lambda x: m.total(m.sin(m.vmap(lambda s, y: f(s * y), (0, None))(m.array(SAMPLES), x)))
    ),
    "vmap over tangents": lambda m, f, w: (
        lambda x: m.total(m.vmap(lambda t: m.jvp(f, x, t)[1] * m.jvp(f, x, t)[0])(m.array(SAMPLES)))
    ),
}


def nested(m, steps, w):
    def f(x):
        return m.total(m.tanh(x * m.array(T)) * m.sin(x * w) * x) + m.total(w * x) * m.total(x * x)

    for step in steps:
        f = STEPS[step](m, f, w)
    return f


ASKED = {
    "grad": lambda m, f, w: m.grad(lambda x: f(x, w))(m.array(X)),
    "grad by what was captured": lambda m, f, w: m.grad(lambda w: f(m.array(X), w))(w),
    "gradients of samples": lambda m, f, w: m.vmap(m.grad(lambda w, x: f(x, w)), (None, 0))(w, m.array(SAMPLES)),
    "gradient of the samples' sum": lambda m, f, w: m.grad(
        lambda w: m.total(m.vmap(lambda x: f(x, w))(m.array(SAMPLES)))
    )(w),
}
NESTINGS = [(), *itertools.product(STEPS, repeat=1), *itertools.product(STEPS, ["grad", "vmap over tangents"])]


@pytest.mark.parametrize("steps", NESTINGS, ids=", ".join)
def test_compositions_are_those_of_the_library(essay, steps):
    for ask in ASKED.values():
        ours, theirs = (m.numpy(ask(m, lambda x, w, m=m: nested(m, steps, w)(x), m.array(W))) for m in (essay, LIBRARY))
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


def test_third_derivatives_and_hessians_are_those_of_the_library(essay):
    def answers(m):
        def f(x):
            return m.total(m.tanh(x * m.array(W)) * x)

        hessian = m.hessian(f)
        yield m.grad(m.grad(m.grad(lambda x: x * m.sin(x))))(m.array(np.array(2.0)))
        yield hessian(m.array(X))
        yield m.jvp(hessian, m.array(X), m.array(T))[1]

    for ours, theirs in zip(answers(essay), answers(LIBRARY), strict=True):
        np.testing.assert_allclose(essay.numpy(ours), LIBRARY.numpy(theirs), rtol=1e-10, atol=1e-12)


def test_its_table_names_files_that_exist():
    source = PAGE.parents[1] / "src" / "retrograd"
    table = PAGE.read_text().split("## 9.")[1]
    named = re.findall(r"`((?:_core|_ops|_graph|tensor|autograd|func)/[\w./]*)", table)
    assert len(named) > 10
    assert [name for name in named if not (source / name).exists()] == []
