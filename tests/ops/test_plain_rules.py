"""Rules of hot operations have a shorter way on plain arrays: the same numbers, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd._core.numpy_namespace import numpy_namespace
from retrograd._core.primitive import ELEMENTWISE, primitives
from retrograd._ops import affine, matrix_products

CASES = [(p, name) for p in primitives.values() if p.kind == ELEMENTWISE for name in p.plain_rules]


@pytest.mark.parametrize("shape", [(5, 7), (0, 3), ()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("primitive", "name"), CASES, ids=lambda case: getattr(case, "name", case))
def test_plain_rule_is_the_rule(primitive, name, dtype, shape):
    rng = np.random.default_rng(0)
    rule = primitive.rules[name]
    g, *values = (np.array(rng.standard_normal(shape), dtype) for _ in range(1 + len(rule.names)))
    before = [v.copy() for v in (g, *values)]
    expected = rule.function(numpy_namespace, g[None], *values)[0]  # of another shape: the long way
    given = primitive.plain_rules[name](g, *values)
    assert given.dtype == expected.dtype
    np.testing.assert_array_equal(given, expected)
    for array, copy in zip((g, *values), before, strict=True):
        np.testing.assert_array_equal(array, copy)


SHAPES = {  # of the operands, by the ways in which rules tell them apart
    matrix_products.matmul: [((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5))],
    affine.linear_map: [((3, 4), (5, 4)), ((4,), (5, 4)), ((2, 3, 4), (5, 4)), ((0, 4), (5, 4))],
    affine.affine: [((5,), (3, 4), (5, 4)), ((5,), (4,), (5, 4)), ((5,), (2, 3, 4), (5, 4)), ((1,), (3, 4), (5, 4))],
}
PRODUCTS = [(p, name, shapes) for p, some in SHAPES.items() for name in p.plain_rules for shapes in some]


@pytest.mark.parametrize(("primitive", "name", "shapes"), PRODUCTS)
def test_products_on_plain_arrays_give_the_gradients_of_the_rules(primitive, name, shapes):
    rng = np.random.default_rng(0)
    values = {one: rng.standard_normal(shape) for one, shape in zip(primitive.inputs, shapes, strict=True)}
    g = np.asarray(rng.standard_normal(np.shape(primitive(*values.values()))))
    facts = {f"{one}_shape": value.shape for one, value in values.items()}
    read = [(values | facts)[one] for one in primitive.rules[name].names]
    expected = primitive.rules[name].function(numpy_namespace, g, *read)
    np.testing.assert_allclose(primitive.plain_rules[name](g, *read), expected, rtol=1e-12, atol=1e-12)
    assert np.shape(expected) == values[name].shape


def test_there_are_some():
    assert {(p.name, name) for p, name in CASES} >= {("multiply", "x"), ("tanh", "x"), ("sigmoid", "x")}
