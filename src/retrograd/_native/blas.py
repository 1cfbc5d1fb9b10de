"""BLAS's products of matrices, for kernels that call them by their address."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

# Multiplications up to which OpenBLAS takes one thread, whatever the processor (interface/gemm.c: 4 * SMP_THRESHOLD_MIN).
ALONE: Final = 1 << 18


@cache
def addresses() -> dict[str, int]:
    """Return the addresses of the products in NumPy's own library; none where they are not to be found."""
    found: dict[str, int] = {}
    library = ctypes.CDLL(_multiarray_umath.__file__)
    for type, name in (("f32", "scipy_cblas_sgemm64_"), ("f64", "scipy_cblas_dgemm64_")):
        function = getattr(library, name, None)
        if function is not None:
            found[type] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return found


@cache
def cell(type: str) -> Any:
    """Return memory that holds the address of a product."""
    return np.array([addresses()[type]], np.uint64)
