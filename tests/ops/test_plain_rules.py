"""Rules of hot operations have a shorter way on plain arrays: the same numbers, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd._core.numpy_namespace import numpy_namespace
from retrograd._core.primitive import primitives

CASES = [(p, name) for p in primitives.values() for name in p.plain_rules]


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


def test_there_are_some():
    assert {(p.name, name) for p, name in CASES} >= {("multiply", "x"), ("tanh", "x"), ("sigmoid", "x")}
