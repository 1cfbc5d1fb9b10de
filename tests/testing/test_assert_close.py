"""torch.testing against torch: the same verdicts, the same words, the same random inputs."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

import retrograd
from tests.oracle import outcome, whole

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

NAN, INF = math.nan, math.inf


def f(library: Any, values: Any, dtype: str | None = None) -> Any:
    return library.tensor(values, dtype=None if dtype is None else getattr(library, dtype))


# name -> what is compared, and how, on either library
CASES: dict[str, Any] = {
    "floats": lambda t: ((f(t, [1.0, 2, 3]), f(t, [1.0, 2.5, 4])), {}),
    "integers": lambda t: ((f(t, [1, 2, 3]), f(t, [1, 3, 4])), {}),
    "bytes": lambda t: ((f(t, [1], "uint8"), f(t, [255], "uint8")), {}),
    "bools": lambda t: ((f(t, [True, False]), f(t, [True, True])), {}),
    "complex": lambda t: ((f(t, [1 + 1j]), f(t, [1 + 2j])), {}),
    "half": lambda t: ((f(t, [1.0], "float16"), f(t, [1.01], "float16")), {}),
    "bfloat16": lambda t: ((f(t, [1.0], "bfloat16"), f(t, [1.1], "bfloat16")), {}),
    "matrix": lambda t: ((f(t, [[1.0, 2], [3, 4]]), f(t, [[1.0, 2], [3, 9]])), {}),
    "nothing": lambda t: ((f(t, []), f(t, [])), {}),
    "number tensors": lambda t: ((f(t, 1.0), f(t, 2.0)), {}),
    "half number tensors": lambda t: ((f(t, 1.0, "float16"), f(t, 1.01, "float16")), {}),
    "bool number tensors": lambda t: ((f(t, True), f(t, False)), {}),
    "close": lambda t: ((f(t, [1.0]), f(t, [1.0000001])), {}),
    "numbers": lambda t: ((1.0, 2.0), {}),
    "whole numbers": lambda t: ((1, 2), {}),
    "complex numbers": lambda t: ((1 + 1j, 1 + 2j), {}),
    "zero expected": lambda t: ((1.0, 0.0), {}),
    "infinite": lambda t: ((INF, INF), {}),
    "other infinity": lambda t: ((INF, -INF), {}),
    "infinite tensor": lambda t: ((f(t, [INF, 1.0]), f(t, [INF, 2.0])), {}),
    "infinite against finite": lambda t: ((f(t, [INF]), f(t, [1.0])), {}),
    "nan": lambda t: ((f(t, [NAN]), f(t, [NAN])), {}),
    "nan is equal": lambda t: ((f(t, [NAN]), f(t, [NAN])), {"equal_nan": True}),
    "nan number": lambda t: ((NAN, NAN), {}),
    "nan number is equal": lambda t: ((NAN, NAN), {"equal_nan": True}),
    "nan among others": lambda t: ((f(t, [NAN, 1.0, 0.0]), f(t, [0.0, 2.0, 0.0])), {}),
    "types of numbers": lambda t: ((1, 1.0), {}),
    "types of numbers unchecked": lambda t: ((1, 1.5), {"check_dtype": False}),
    "truth": lambda t: ((True, False), {}),
    "NumPy": lambda t: ((np.array([1.0]), np.array([2.0])), {}),
    "NumPy numbers": lambda t: ((np.float32(1), np.float32(2)), {}),
    "shapes": lambda t: ((f(t, [1.0]), f(t, [[1.0]])), {}),
    "dtypes": lambda t: ((f(t, [1.0]), f(t, [1.0], "float64")), {}),
    "dtypes unchecked": lambda t: ((f(t, [1.0]), f(t, [1.1], "float16")), {"check_dtype": False}),
    "strides": lambda t: ((f(t, [[1.0, 2], [3, 4]]).t(), f(t, [[1.0, 3], [2, 4]])), {"check_stride": True}),
    "strides unchecked": lambda t: ((f(t, [[1.0, 2], [3, 4]]).t(), f(t, [[1.0, 3], [2, 4]])), {}),
    "sequence": lambda t: (([f(t, [1.0]), f(t, [2.0])], [f(t, [1.0]), f(t, [3.0])]), {}),
    "lengths": lambda t: (([f(t, 1.0)], [f(t, 1.0), f(t, 2.0)]), {}),
    "nested lengths": lambda t: (([[1], [1, 2]], [[1], [1]]), {}),
    "mapping": lambda t: (({"a": f(t, 1.0), "b": f(t, 2.0)}, {"a": f(t, 1.0), "b": f(t, 3.0)}), {}),
    "keys": lambda t: (({"a": 1, "c": 2}, {"a": 1, "b": 2}), {}),
    "nested": lambda t: (([{"a": [1.0, 2.0]}], [{"a": [1.0, 3.0]}]), {}),
    "first of two": lambda t: (({"b": 1.0, "a": 1.0}, {"b": 2.0, "a": 2.0}), {}),
    "list and tuple": lambda t: (([1.0], (1.0,)), {}),
    "None": lambda t: ((None, None), {}),
    "None against a tensor": lambda t: (([None], [f(t, [1.0, 2])]), {}),
    "text": lambda t: (("a", "a"), {}),
    "text after a difference": lambda t: (([1.0, "a"], [2.0, "a"]), {}),
    "unlike": lambda t: (([1], {"a": 1}), {}),
    "tolerances": lambda t: ((f(t, [1.0]), f(t, [1.2])), {"rtol": 0.1, "atol": 0.01}),
    "no tolerance": lambda t: ((f(t, [1.0, 2.0]), f(t, [1.0, 2.1])), {"rtol": 0, "atol": 0}),
    "one tolerance": lambda t: ((1.0, 2.0), {"rtol": 0.1}),
    "message": lambda t: (([f(t, 1.0)], [f(t, 2.0)]), {"msg": "hello"}),
    "message made": lambda t: (([f(t, 1.0)], [f(t, 2.0)]), {"msg": lambda text: f"<{text}>"}),
    "message of lengths": lambda t: (([1], [1, 2]), {"msg": "hello"}),
}


@pytest.mark.parametrize("name", CASES)
def test_assert_close(name: str) -> None:
    found = []
    for library in (retrograd, torch):
        values, options = CASES[name](library)
        check = functools.partial(library.testing.assert_close, *values, **options)
        found.append(outcome(check, words=whole, ignore_warnings=False))
    assert found[0] == found[1]


OLD = [(1.0, 2.0), ([1.0, 2], [1.0, 3]), (1, 1.5), ([1.0], [1.00001]), ([NAN], [NAN])]


@pytest.mark.parametrize("values", OLD, ids=str)
def test_assert_allclose(values: Any) -> None:
    found = []
    for library in (retrograd, torch):
        with pytest.warns(FutureWarning, match="assert_allclose"):
            found.append(outcome(library.testing.assert_allclose, *values, words=whole, ignore_warnings=False))
    assert found[0] == found[1]


DTYPES = "float32 float64 float16 bfloat16 int64 int32 int8 uint8 bool complex64 complex128".split()  # noqa: SIM905
MADE: list[tuple[Any, dict[str, Any]]] = [
    ((3,), {}),
    ((2, 3), {"low": 0, "high": 3}),
    (((2, 3),), {"noncontiguous": True}),
    (([8],), {"low": -1, "high": 2, "exclude_zero": True}),
    ((2, 3), {"low": 0, "high": 3, "noncontiguous": True, "exclude_zero": True}),
    ((), {}),
    ((0,), {}),
    ((3,), {"low": 3, "high": 1}),
    ((3,), {"low": NAN}),
    ((3,), {"low": 1.5, "high": 3.7}),
    ((3,), {"low": -INF, "high": INF}),
    ((3,), {"low": 1e39, "high": 1e40}),
    ((3,), {"requires_grad": True}),
    ((3,), {"noncontiguous": True, "memory_format": "contiguous_format"}),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", MADE, ids=str)
def test_make_tensor(dtype: str, case: Any) -> None:
    shape, options = case
    found = []
    for library in (retrograd, torch):
        library.manual_seed(3)
        given = {k: getattr(library, v) if isinstance(v, str) else v for k, v in options.items()}
        try:
            one = library.testing.make_tensor(*shape, dtype=getattr(library, dtype), device="cpu", **given)
            found.append((tuple(one.shape), one.stride(), str(one.dtype), one.requires_grad, one.detach().tolist()))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    assert str(found[0]) == str(found[1])
