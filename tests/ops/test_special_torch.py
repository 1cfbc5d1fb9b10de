"""Special functions where torch has no derivative, or none in half precision; signs of every number of half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import assert_same_answer, outcome

pytestmark = pytest.mark.oracle
pytest.importorskip("torch")

NO_DERIVATIVE = (
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
    "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0"
)


@pytest.mark.parametrize("name", NO_DERIVATIVE.split())
def test_bessel_functions_take_no_gradient(name: str) -> None:
    def asked(library: Any) -> Any:
        function, x = getattr(library.special, name), library.ones(2)
        slopes = library.func.grad(lambda t: (t * 3 + function(t) * 0).sum())(x)
        tangent = library.func.jvp(function, (x,), (library.ones(2),))[1]
        return function(x.clone().requires_grad_()).requires_grad, slopes.tolist(), tangent.tolist()

    assert_same_answer(asked)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["i1", "i1e"])
def test_backward_refuses_half_precision(name: str, dtype: str) -> None:
    def asked(library: Any) -> Any:
        x = library.ones(2, dtype=getattr(library, dtype), requires_grad=True)
        return outcome(lambda: getattr(library.special, name)(x).sum().backward())

    assert_same_answer(asked)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_sign_of_every_number(dtype: str) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.int16)

    def asked(library: Any) -> Any:
        return library.signbit(library.from_numpy(bits.copy()).view(getattr(library, dtype))).tolist()

    assert_same_answer(asked)


@pytest.mark.parametrize("count", [1, 3, 20_000])
def test_lgamma_of_the_smallest_numbers(count: int) -> None:
    def asked(library: Any) -> Any:
        x = library.tensor([1e-310, -5e-324, 2e-305], dtype=library.float64)[:count].repeat(max(1, count // 3))
        return [round(one, 9) for one in library.lgamma(x).tolist()[:3]]

    assert_same_answer(asked)
