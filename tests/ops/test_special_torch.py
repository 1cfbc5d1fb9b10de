"""Signs of every number of half precision; lgamma of the smallest numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import assert_same_answer

pytestmark = pytest.mark.oracle
pytest.importorskip("torch")


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
