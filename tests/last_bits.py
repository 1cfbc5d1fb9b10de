"""Factorisations whose last bits are random: what LAPACK returns on another machine differs from ours by about as much."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg.lapack
from numpy.linalg import _umath_linalg

UNITS = 2  # the error is up to so many units in the last place


def shake(seed: int) -> None:
    """Let NumPy's and scipy's LAPACK return other last bits from now on. Zeros stay, and what is not a float.

    Equal results get equal noise: any one machine answers the same call with the same bits.
    """

    def shaken(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(shaken(part) for part in value)
        if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind not in "fc":
            return value
        unit = np.finfo(value.dtype).eps
        rng = np.random.default_rng([seed, zlib.crc32(value.tobytes())])
        noisy = value * (1 + unit * rng.integers(-UNITS, UNITS + 1, np.shape(value)))
        return np.asarray(noisy).astype(value.dtype)[()]

    def noisy(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            return shaken(function(*args, **options))

        return call

    for name, function in vars(_umath_linalg).items():
        if isinstance(function, np.ufunc):
            setattr(_umath_linalg, name, noisy(function))
    found = scipy.linalg.lapack.get_lapack_funcs

    def get_lapack_funcs(names: Any, *args: Any, **options: Any) -> Any:
        functions = found(names, *args, **options)
        return noisy(functions) if isinstance(names, str) else [noisy(one) for one in functions]

    scipy.linalg.lapack.get_lapack_funcs = get_lapack_funcs
