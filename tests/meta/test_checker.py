"""The checks of tests/ops must fail on wrong rules: each test declares a primitive with one mistake."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from retrograd._core.arrays import operators
from retrograd._core.primitive import elementwise, general, primitives
from tests.ops import checks

X = np.array([0.7, -1.3, 1.9])
Y = np.array([1.1, 0.6, -0.8])
Z = X + 1j * Y
ROWS = [[X], [X + 0.1], [X - 0.2]]


@pytest.fixture(autouse=True)
def _forget_declarations() -> Iterator[None]:
    before = set(primitives)
    yield
    for name in set(primitives) - before:
        del primitives[name]
        operators.pop(name, None)


numbers = itertools.count()


def new(name: str) -> str:
    """Return a name that no primitive has had: node classes are made once for each name."""
    return f"checked_{name}_{next(numbers)}"


def cube(**rules: Any) -> Any:
    """Declare x ** 3; right unless a rule is given."""
    rules.setdefault("dx", lambda xp, g, x: g * (3 * x * x))
    return elementwise(new("cube"), implementation=lambda xp, x: x * x * x, **rules)


def total(*, vjp: Any = None, jvp: Any = None, batch: Any = None, conjugate: bool = True) -> Any:
    """Declare sum(x * x) along the last axis, by rules of its own; right unless a rule is given."""

    @general(name=new("total"))
    def primitive(xp, x, *, axis):
        return xp.sum(x * x, axis=(axis,), keepdims=False)

    def factor(xp, x):
        return xp.conj(2 * x) if conjugate else 2 * x

    primitive.vjp("x")(vjp or (lambda xp, g, x, axis: xp.expand_dims(g, axis=axis) * factor(xp, x)))
    primitive.jvp(jvp or (lambda xp, t, x, axis: xp.sum(2 * x * t, axis=(axis,), keepdims=False)))
    primitive.batch(batch or (lambda call, args, batched, size, *, axis: call(args[0], axis=axis + 1)))
    return lambda x: primitive(x, axis=0)


ONE_INPUT: dict[str, Callable[..., None]] = {
    "vjp": checks.check_vjp,
    "jvp": checks.check_jvp,
    "adjoint": checks.check_adjoint,
    "second": checks.check_second_order,
    "nested": checks.check_forward_over_reverse,
}


def failing(f: Any, array: np.ndarray = X) -> set[str]:
    """Return the names of the checks that fail."""
    found = set()
    for name, check in ONE_INPUT.items():
        try:
            check(f, [array], [True])
        except AssertionError:
            found.add(name)
    return found


def failing_batches(f: Any) -> set[str]:
    found = set()
    for name, check in {
        "vmap": lambda: checks.check_vmap(f, ROWS, [True]),
        "vmap of grad": lambda: checks.check_vmap_of_grad(f, ROWS, [True], [True]),
        "vmap of jvp": lambda: checks.check_vmap_of_jvp(f, ROWS, [True], [True]),
    }.items():
        try:
            check()
        except AssertionError:
            found.add(name)
    return found


def test_right_rules_pass() -> None:
    right_cube, right_total = cube(), total()
    for f in (right_cube, right_total):
        assert failing(f) == set()
        assert failing(f, Z) == set()
        assert failing_batches(f) == set()


def test_a_wrong_factor() -> None:
    # an elementwise rule serves both modes: they stay adjoint, and the derivatives of the wrong rule by x are right
    assert failing(cube(dx=lambda xp, g, x: g * (2 * x * x))) == {"vjp", "jvp", "second"}


def test_a_wrong_sign_at_one_place() -> None:
    wrong = cube(dx=lambda xp, g, x: g * xp.where(xp.greater(x, 1), -3 * x * x, 3 * x * x))
    assert {"vjp", "jvp"} <= failing(wrong)


def test_an_error_of_a_thousandth() -> None:
    assert {"vjp", "jvp"} <= failing(cube(dx=lambda xp, g, x: g * (3.003 * x * x)))


def test_a_wrong_second_derivative() -> None:
    # the gradient is right, but what it depends on is hidden from the graph and from duals
    wrong = cube(dx=lambda xp, g, x: g * (3 * xp.forget(x) * xp.forget(x)))
    assert failing(wrong) == {"second", "nested"}


def test_a_wrong_derivative_by_the_cotangent() -> None:
    wrong = cube(dx=lambda xp, g, x: (g + xp.forget(g)) / 2 * (3 * x * x))
    assert "second" in failing(wrong)


def test_a_wrong_vjp_beside_a_right_jvp() -> None:
    assert {"vjp", "adjoint"} <= failing(total(vjp=lambda xp, g, x, axis: xp.expand_dims(g, axis=axis) * x))


def test_a_wrong_jvp_beside_a_right_vjp() -> None:
    found = failing(total(jvp=lambda xp, t, x, axis: xp.sum(x * t, axis=(axis,), keepdims=False)))
    assert {"jvp", "adjoint"} <= found
    assert "vjp" not in found


def test_a_missing_conjugate() -> None:
    wrong = total(conjugate=False)
    assert failing(wrong) == set()
    assert {"vjp", "adjoint"} <= failing(wrong, Z)


def test_an_input_that_gets_the_gradient_of_another() -> None:
    swapped = elementwise(
        new("product"), lambda xp, g, x: g * x, lambda xp, g, y: g * y, implementation=lambda xp, x, y: x * y
    )
    with pytest.raises(AssertionError):
        checks.check_vjp(swapped, [X, Y], [True, True])
    with pytest.raises(AssertionError):
        checks.check_jvp(swapped, [X, Y], [True, True])


def test_a_constant_that_leaks_into_one_input_alone() -> None:
    # both tangents together would hide it: the error of x cancels that of y where the tangents are equal
    wrong = elementwise(new("sum"), lambda xp, g: g * 2, lambda xp, g: g * 0, implementation=lambda xp, x, y: x + y)
    with pytest.raises(AssertionError):
        checks.check_jvp(wrong, [X, Y], [True, True])


def test_a_batching_rule_that_reverses_the_batch() -> None:
    def reversed_rows(call: Any, args: Any, batched: Any, size: int, *, axis: int) -> Any:
        from retrograd._core.primitive import vocabulary

        return call(vocabulary.flip(args[0], axis=(0,)), axis=axis + 1)

    assert failing_batches(total(batch=reversed_rows)) >= {"vmap"}


def test_a_batching_rule_that_forgets_the_batch_axis() -> None:
    assert failing_batches(total(batch=lambda call, args, batched, size, *, axis: call(args[0], axis=axis))) >= {"vmap"}


def test_a_missing_batching_rule_warns() -> None:
    @general(name=new("loop"))
    def primitive(xp, x):
        return x * 2

    with pytest.warns(UserWarning, match="performance drop"):
        checks.check_vmap(lambda x: primitive(x), ROWS, [True])


def test_wrong_shape() -> None:
    with pytest.raises(AssertionError, match="shape"):
        checks.close(np.ones((1, 2)), np.ones(2), "here")


def test_slopes_of_a_known_function() -> None:
    found = checks.slopes(lambda moved: float(np.sum(moved[0] ** 2) + np.abs(moved[1]) @ np.ones(3)), [X, Z])
    np.testing.assert_allclose(found[0], 2 * X, rtol=1e-8)
    np.testing.assert_allclose(found[1], Z / np.abs(Z), rtol=1e-8)
