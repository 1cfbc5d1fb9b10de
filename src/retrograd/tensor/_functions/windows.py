"""Window functions: torch.signal.windows, and the older torch.hann_window and its kin.

Each is a formula of the positions 0 .. M - 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from inspect import Signature, signature
from operator import index
from typing import Any

import numpy as np

from ... import _dtypes
from ..._device import strided
from ..._dtypes import CPP_NAMES
from ...overrides import called
from .creation import finish, options_of

Formula = Callable[[Any, int], Any]


# ---- formulas of the positions `k` and the length `n` that the window is symmetric over ----
def _bartlett(k: Any, n: int) -> Any:
    return 1 - np.abs(2 * k / (n - 1) - 1)


def _cosines(k: Any, n: int, a: Iterable[float]) -> Any:
    """Sum cosines of whole numbers of periods, with alternating signs."""
    first, *rest = a
    turn = k * (2 * math.pi / (n - 1))
    total = np.full_like(turn, first)
    for j, weight in enumerate(rest, 1):
        total += ((-1) ** j * weight) * np.cos(j * turn)
    return total


def _kaiser(k: Any, n: int, beta: float) -> Any:
    from scipy.special import i0  # imported only when asked for

    return i0(beta * np.sqrt(np.maximum(1 - (2 * k / (n - 1) - 1) ** 2, 0))) / i0(beta)


_BLACKMAN = (0.42, 0.5, 0.08)
_NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


def _positions(length: int, dtype: Any) -> Any:
    """Count from 0, in single precision where that is asked for: NumPy's cosines are ten times quicker then."""
    return np.arange(length, dtype=np.float32 if dtype is _dtypes.float32 else np.float64)


# ---- torch.signal.windows ----
def _window(choose: Callable[..., Formula], spoken: str | None = None) -> Any:
    """Make a public function of one that checks a window's own parameters and chooses its formula.

    `spoken` is the name that errors give the window.
    """
    name = choose.__name__

    def window(
        M: int,  # noqa: N803 - torch's name
        *,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = strided,
        device: Any = None,
        requires_grad: bool = False,
        **own: Any,
    ) -> Any:
        formula = choose(sym, **own)
        dtype = _dtypes.get_default_dtype() if dtype is None else dtype
        if M < 0:
            raise ValueError(f"{spoken or name} requires non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueError(f"{spoken or name} is implemented for strided tensors only, got: {layout}")
        if dtype not in (_dtypes.float32, _dtypes.float64):
            raise ValueError(f"{spoken or name} expects float32 or float64 dtypes, got: {dtype}")
        length = index(M)
        values = formula(_positions(length, dtype), length + (not sym)) if length > 1 else np.ones(length)
        return finish(values.astype(dtype.numpy), device, requires_grad)

    (first, *shared, _), (_, *own) = (signature(one).parameters.values() for one in (window, choose))
    window.__signature__ = Signature([first, *own, *shared], return_annotation="Any")  # type: ignore[attr-defined]
    return called(window, name, choose.__doc__)


def _simple(name: str, formula: Formula, spoken: str | None = None) -> Any:
    """Make a window function without parameters."""

    def choose(sym: bool) -> Formula:
        return formula

    doc = f"Compute the {name} window of M samples; `sym=False` makes it one period."
    return _window(called(choose, name, doc), spoken)


bartlett = _simple("bartlett", _bartlett)
blackman = _simple("blackman", lambda k, n: _cosines(k, n, _BLACKMAN))
cosine = _simple("cosine", lambda k, n: np.sin(math.pi * (k + 0.5) / n))
hamming = _simple("hamming", lambda k, n: _cosines(k, n, (0.54, 1 - 0.54)), "general_cosine")
hann = _simple("hann", lambda k, n: _cosines(k, n, (0.5, 0.5)), "general_cosine")
nuttall = _simple("nuttall", lambda k, n: _cosines(k, n, _NUTTALL), "general_cosine")


@_window
def exponential(sym: bool, *, center: float | None = None, tau: float = 1.0) -> Formula:
    """Compute a window that decays exponentially from its center."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return lambda k, n: np.exp(-np.abs(k - ((n - 1) / 2 if center is None else center)) / tau)


@_window
def gaussian(sym: bool, *, std: float = 1.0) -> Formula:
    """Compute a window of the shape of the normal distribution."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return lambda k, n: np.exp(-(((k - (n - 1) / 2) / std) ** 2) / 2)


@_window
def kaiser(sym: bool, *, beta: float = 12.0) -> Formula:
    """Compute the Kaiser window."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return lambda k, n: _kaiser(k, n, beta)


@_window
def general_cosine(sym: bool, *, a: Iterable[float]) -> Formula:
    """Compute a sum of cosines with alternating signs and the weights `a`."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = a if isinstance(a, (list, tuple)) else list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    return lambda k, n: _cosines(k, n, weights)


def _raised_cosine(sym: bool, *, alpha: float = 0.54) -> Formula:
    """Compute a raised cosine."""
    return lambda k, n: _cosines(k, n, (alpha, 1.0 - alpha))


_raised_cosine.__name__ = _raised_cosine.__qualname__ = "general_hamming"
general_hamming = _window(_raised_cosine, "general_cosine")


# ---- torch.hann_window and its kin ----
def _old_window(name: str, formula: Formula, length: Any, periodic: bool, options: Any) -> Any:
    _, dtype, device, requires_grad = options_of(name, options, out=False)
    dtype = dtype or _dtypes.get_default_dtype()
    if dtype.kind < _dtypes.FLOAT_KIND:
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={CPP_NAMES.get(dtype.name, dtype.name)}, "
            "device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false, "
            "memory_format=(nullopt))"
        )
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length > 1 and dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype._scalar_name}'")
    values = formula(_positions(length, dtype), length + bool(periodic)) if length > 1 else np.ones(length)
    return finish(values.astype(dtype.numpy), device, requires_grad)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Any:
    """Compute the triangular window that is zero at its ends."""
    return _old_window("bartlett_window", _bartlett, window_length, periodic, options)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Any:
    """Compute the Blackman window."""
    return _old_window("blackman_window", lambda k, n: _cosines(k, n, _BLACKMAN), window_length, periodic, options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Any:
    """Compute the window alpha - beta * cos."""
    return _old_window("hamming_window", lambda k, n: _cosines(k, n, (alpha, beta)), window_length, periodic, options)


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Any:
    """Compute the Hann window."""
    return _old_window("hann_window", lambda k, n: _cosines(k, n, (0.5, 0.5)), window_length, periodic, options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Any:
    """Compute the Kaiser window."""
    return _old_window("kaiser_window", lambda k, n: _kaiser(k, n, beta), window_length, periodic, options)
