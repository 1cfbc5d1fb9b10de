"""linearize, hvp, functionalize and debug_unwrap."""

from __future__ import annotations

import math

import numpy as np
import pytest

import retrograd as torch
from retrograd import func


def close(ours, expected) -> None:
    np.testing.assert_allclose(np.asarray(ours.detach()), np.asarray(expected), rtol=1e-10, atol=1e-12)


X = [0.3, -1.2, 2.0]


def x64() -> torch.Tensor:
    return torch.tensor(X, dtype=torch.float64)


def test_the_function_runs_once() -> None:
    calls = []

    def f(x):
        calls.append(1)
        return x.sin() * x

    output, push = func.linearize(f, x64())
    t = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    close(output, [math.sin(v) * v for v in X])
    expected = [(math.cos(v) * v + math.sin(v)) * s for v, s in zip(X, [1.0, 2.0, 3.0], strict=True)]
    close(push(t), expected)
    close(push(2 * t), [2 * e for e in expected])
    assert calls == [1]


def test_trees_numbers_and_integers() -> None:
    def f(a, b):
        return {"p": a["q"] * b, "n": 3, "i": b.long(), "l": [b.exp()]}

    output, push = func.linearize(f, {"q": x64()}, x64())
    assert output["n"] == 3
    t = torch.ones(3, dtype=torch.float64)
    pushed = push({"q": t}, 2 * t)
    close(pushed["p"], [v + 2 * v for v in X])
    close(pushed["l"][0], [2 * math.exp(v) for v in X])
    assert pushed["n"] == 3
    assert pushed["i"].dtype is torch.int64
    assert not pushed["i"].any()


def test_agrees_with_jvp_on_complex_numbers() -> None:
    x = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.complex128)
    t = torch.tensor([0.3 - 1j, 2 + 0.5j], dtype=torch.complex128)

    def f(z):
        return z * z.conj() * z, z.abs()

    _, push = func.linearize(f, x)
    _, expected = func.jvp(f, (x,), (t,))
    for ours, theirs in zip(push(t), expected, strict=True):
        close(ours, theirs.detach())


def test_composes_with_the_other_transforms() -> None:
    t = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)

    def directional(x):
        return func.linearize(lambda v: v**3, x)[1](t).sum()

    close(func.grad(directional)(x64()), [6 * v * s for v, s in zip(X, t.tolist(), strict=True)])
    _, push = func.linearize(lambda v: v.tanh(), x64())
    rows = func.vmap(push)(torch.eye(3, dtype=torch.float64))
    close(rows, np.diag([1 - math.tanh(v) ** 2 for v in X]))
    _, per_sample = func.jvp(directional, (x64(),), (t,))
    close(per_sample, sum(6 * v * s * s for v, s in zip(X, t.tolist(), strict=True)))


def test_a_constant_has_zero_derivative() -> None:
    _, push = func.linearize(lambda x: torch.ones(2, dtype=torch.float64), x64())
    close(push(x64()), [0.0, 0.0])
    output, push = func.linearize(lambda x: x > 0, x64())
    assert output.tolist() == [True, False, True]
    assert push(x64()).tolist() == [False, False, False]


@pytest.mark.parametrize(
    ("tangents", "text"),
    [
        (lambda: (x64(), x64()), "to have the same argspec as the primals"),
        (lambda: ([x64()],), "to have the same argspec as the primals"),
        (
            lambda: (torch.ones(4, dtype=torch.float64),),
            r"tangent:0 with shape torch.Size\(\[4\]\) in flattened pytree doesn't match the shape torch.Size\(\[3\]\)",
        ),
        (lambda: (x64().float(),), "tangent:0 with dtype torch.float32 in flattened pytree doesn't match the dtype"),
    ],
)
def test_wrong_tangents(tangents, text) -> None:
    _, push = func.linearize(torch.sin, x64())
    with pytest.raises(RuntimeError, match=text):
        push(*tangents())


def test_hvp_is_the_hessian_times_a_vector() -> None:
    def f(x):
        return (x**3).sum() + x[0] * x[1] * x[2]

    t = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    gradient, product = func.hvp(f, (x64(),), (t,))
    close(product, (func.hessian(f)(x64()) @ t).detach())
    close(gradient, func.grad(f)(x64()).detach())


def test_functionalize_keeps_what_a_function_does() -> None:
    def f(x):
        y = x.clone()
        y.view(-1)[0] = 7
        return y.mul_(2)

    assert func.functionalize(f)(torch.ones(2)).tolist() == [14.0, 2.0]
    with pytest.raises(RuntimeError, match="received invalid argument for remove=x"):
        func.functionalize(f, remove="x")


def test_debug_unwrap_shows_every_sample() -> None:
    seen = []

    def f(x):
        seen.append((func.debug_unwrap(x).shape, func.debug_unwrap(x, recurse=False).dim()))
        return x.sum()

    func.vmap(func.vmap(f))(torch.ones(2, 3, 4))
    assert seen == [((2, 3, 4), 2)]
    x = torch.ones(3)
    assert func.debug_unwrap(x) is x
