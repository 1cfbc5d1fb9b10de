"""torch.fft: Fourier transforms of one, two or any number of dimensions.

Every transform is one of six kinds: of complex numbers (fft, ifft), from real numbers to half of the frequencies (rfft,
ihfft), and from half of the frequencies to real numbers (irfft, hfft); the last two of each pair run backward or on the
conjugate. Each kind comes for one dimension, for two and for any number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _dtypes, _errors
from ..._ops import elementwise as e
from ..._ops import fourier as f
from ..._ops import index as i
from ...overrides import overridable, refusing
from .. import _base
from .._recording.descriptions import MADE
from .._recording.out import call_into
from .._recording.record import record
from .creation import finish, options_of
from .elementwise import conj
from .rearrange import roll
from .shape import basic_view

Sizes = list[int]


# ---- arguments ----
def _norm(word: str | None, forward: bool) -> int:
    """Read torch's word for scaling as how often to divide by the root of the length."""
    if word is None or word == "backward":
        return 0 if forward else 2
    if word == "forward":
        return 2 if forward else 0
    if word == "ortho":
        return 1
    raise RuntimeError(f'Invalid normalization mode: "{word}"')


def _as_float(tensor: Any, complex_: bool = False) -> Any:
    """Bring a tensor to a dtype that can be transformed."""
    name = tensor._array.dtype.char
    if name in "FD" or (name in "fd" and not complex_):
        return tensor
    dtype = _base.dtype_of(tensor)
    if dtype.kind < _dtypes.FLOAT_KIND:
        dtype = _dtypes.get_default_dtype()
    if dtype.itemsize == 2:
        raise RuntimeError(f"Unsupported dtype {dtype._scalar_name}")
    return tensor.to(dtype.to_complex() if complex_ else dtype)


def _refuse_complex(tensor: Any, sentence: str) -> None:
    dtype = _base.dtype_of(tensor)
    if dtype.is_complex:
        raise RuntimeError(f"{sentence}{dtype._scalar_name}")


def _wrapped(dim: int, ndim: int) -> int:
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return _errors.wrap_dim(dim, ndim)


def _check_size(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _sequence(given: Any) -> Sizes | None:
    return given if given is None else [given] if isinstance(given, int) else list(given)


def _sizes_and_dims(tensor: Any, s: Any, dim: Any) -> tuple[Sizes, Sizes]:
    """Read the sizes and dimensions of a transform of several dimensions."""
    shape = tensor._array.shape
    ndim = len(shape)
    sizes, dims = _sequence(s), _sequence(dim)
    if dims is not None:
        dims = [_wrapped(d, ndim) for d in dims]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    if sizes is not None:
        if dims is not None and len(dims) != len(sizes):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(sizes) > ndim:
            raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {ndim} dimensions.")
        dims = list(range(ndim - len(sizes), ndim)) if dims is None else dims
        sizes = [shape[d] if n == -1 else n for n, d in zip(sizes, dims, strict=True)]
    else:
        dims = list(range(ndim)) if dims is None else dims
        sizes = [shape[d] for d in dims]
    for n in sizes:
        _check_size(n)
    return sizes, dims


def _resized(tensor: Any, sizes: Sizes, dims: Sizes) -> Any:
    """Cut dimensions that are too long and fill up those that are too short with zeros."""
    wanted = list(tensor._array.shape)
    if all(wanted[d] == n for n, d in zip(sizes, dims, strict=True)) and tensor._array.size:
        return tensor
    index: list[Any] = [slice(None)] * len(wanted)
    for n, d in zip(sizes, dims, strict=True):
        if wanted[d] > n:
            shown = {"dim": d, "start": 0, "end": n, "step": 1}
            tensor = basic_view(tensor, (slice(None),) * d + (slice(0, n),), "SliceBackward0", shown)
        elif wanted[d] < n:
            index[d] = slice(0, wanted[d])
        wanted[d] = n
    if any(part != slice(None) for part in index):
        params = {"shape": tuple(wanted), "index": tuple(index)}
        tensor = record(i.put_zeros, (tensor,), params, "ConstantPadNdBackward0")
    if not tensor._array.size:
        raise RuntimeError("MKL FFT error: Intel oneMKL DFTI ERROR: Inconsistent configuration parameters")
    return tensor


# ---- the transforms ----
def _c2c(tensor: Any, dims: Sizes, norm: str | None, forward: bool) -> Any:
    params = {"axes": tuple(dims), "norm": _norm(norm, forward), "forward": forward}
    return record(f.fft_c2c, (tensor,), params, "FftC2CBackward0", {"dim": tuple(dims), **params})


def _r2c(tensor: Any, dims: Sizes, norm: str | None, forward: bool, onesided: bool) -> Any:
    """Transform real numbers; backward is the conjugate, which the caller takes."""
    params = {"axes": tuple(dims), "norm": _norm(norm, forward), "onesided": onesided}
    return record(f.fft_r2c, (tensor,), params, "FftR2CBackward0", {"dim": tuple(dims), **params})


def _c2r(tensor: Any, dims: Sizes, norm: str | None, forward: bool, size: int) -> Any:
    params = {"axes": tuple(dims), "norm": _norm(norm, forward), "size": size}
    return record(f.fft_c2r, (tensor,), params, "FftC2RBackward0", {"dim": tuple(dims), **params})


def _half(size: int) -> int:
    return size // 2 + 1


def _complex(name: str, tensor: Any, n: int | None, dim: int, norm: Any, forward: bool) -> Any:
    tensor = _as_float(tensor)
    d = _wrapped(dim, tensor._array.ndim)
    size = tensor._array.shape[d] if n is None else n
    _check_size(size)
    tensor = _resized(tensor, [size], [d])
    if tensor._array.dtype.kind == "c":
        return _c2c(tensor, [d], norm, forward)
    out = _r2c(tensor, [d], norm, forward, False)
    return out if forward else conj(out)


def _complex_n(name: str, tensor: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    sizes, dims = _sizes_and_dims(tensor, s, dim)
    return _c2c(_resized(_as_float(tensor, True), sizes, dims), dims, norm, forward)


def _to_half(name: str, tensor: Any, n: int | None, dim: int, norm: Any, forward: bool) -> Any:
    _refuse_complex(tensor, f"{name} expects a real input tensor, but got ")
    tensor = _as_float(tensor)
    d = _wrapped(dim, tensor._array.ndim)
    size = tensor._array.shape[d] if n is None else n
    _check_size(size)
    out = _r2c(_resized(tensor, [size], [d]), [d], norm, forward, True)
    return out if forward else conj(out)


def _to_half_n(name: str, tensor: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    if forward:
        _refuse_complex(tensor, "rfftn expects a real-valued input tensor, but got ")
    sizes, dims = _sizes_and_dims(tensor, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    _refuse_complex(tensor, "Only supports floating-point dtypes, but found: ")
    tensor = _resized(_as_float(tensor), sizes, dims)
    if forward:
        return _r2c(tensor, dims, norm, True, True)
    out = _r2c(tensor, dims[-1:], norm, False, True)
    if len(dims) == 1:
        return conj(out)
    return _c2c(record(e.conj, (out,), {}, "ConjPhysicalBackward0"), dims[:-1], norm, False)


def _from_half(name: str, tensor: Any, n: int | None, dim: int, norm: Any, forward: bool) -> Any:
    tensor = _as_float(tensor, True)
    d = _wrapped(dim, tensor._array.ndim)
    size = 2 * (tensor._array.shape[d] - 1) if n is None else n
    _check_size(size)
    tensor = _resized(tensor, [_half(size)], [d])
    return _c2r(conj(tensor) if forward else tensor, [d], norm, forward, size)


def _from_half_n(name: str, tensor: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    sizes, dims = _sizes_and_dims(tensor, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    given = _sequence(s)
    size = 2 * (sizes[-1] - 1) if given is None or given[-1] == -1 else sizes[-1]
    _check_size(size)
    tensor = _resized(_as_float(tensor, True), [*sizes[:-1], _half(size)], dims)
    if not forward:
        return _c2r(tensor, dims, norm, False, size)
    if len(dims) > 1:
        tensor = _c2c(tensor, dims[:-1], norm, True)
    return _c2r(conj(tensor), dims[-1:], norm, True, size)


# ---- the public functions ----
_Transform = Callable[..., Any]
_WORDS = {"c": "complex", "f": "floating point"}


def _public(name: str, compute: _Transform, forward: bool, out_kind: str, dim: Any, sizes_name: str) -> Any:
    """Make a public function; `out_kind` is the kind of its result's dtype."""
    family = name.replace("2", "n")

    def run(input: Any, sizes: Any, dim: Any, norm: Any) -> Any:
        return compute(family, input, sizes, dim, norm, forward)

    through_c2c = compute is _complex_n or (compute is _to_half_n and not forward)
    run.__name__ = (
        "_fft_c2r" if out_kind == "f" else "_fft_c2c" if through_c2c else "_fft_r2c"
    )  # what writes into `out`
    spoken = "fftn" if compute is _complex_n else family

    def call(input: Any, sizes: Any, dim: Any, norm: Any, out: Any) -> Any:
        if out is None:
            return run(input, sizes, dim, norm)
        own = _base.dtype_of(out)
        if (own.is_complex, own.is_floating_point)[out_kind == "f"] is False:
            raise RuntimeError(f"{spoken} expects a {_WORDS[out_kind]} output tensor, but got {own._scalar_name}")
        return call_into(run, (input, sizes, dim, norm), {}, out)

    if sizes_name == "n":

        def function(
            input: Any, n: int | None = None, dim: int = dim, norm: str | None = None, *, out: Any = None
        ) -> Any:
            return call(input, n, dim, norm, out)

    else:

        def function(input: Any, s: Any = None, dim: Any = dim, norm: str | None = None, *, out: Any = None) -> Any:  # type: ignore[misc]
            return call(input, s, dim, norm, out)

    function.__name__, function.__qualname__ = f"fft_{name}", name
    function.__doc__ = MADE.get(f"fft.{name}", f"Compute torch.fft.{name}: a discrete Fourier transform.")
    several = name[-1] in "2n"
    return overridable(function, raised="" if several and "hfft" in name else "cpu")  # as torch has it


def _three(name: str, one: _Transform, several: _Transform, forward: bool, out_kind: str) -> tuple[Any, Any, Any]:
    """Make the functions of one kind for one, two and any number of dimensions."""
    return (
        _public(name, one, forward, out_kind, -1, "n"),
        _public(f"{name}2", several, forward, out_kind, (-2, -1), "s"),
        _public(f"{name}n", several, forward, out_kind, None, "s"),
    )


fft, fft2, fftn = _three("fft", _complex, _complex_n, True, "c")
ifft, ifft2, ifftn = _three("ifft", _complex, _complex_n, False, "c")
rfft, rfft2, rfftn = _three("rfft", _to_half, _to_half_n, True, "c")
ihfft, ihfft2, ihfftn = _three("ihfft", _to_half, _to_half_n, False, "c")
irfft, irfft2, irfftn = _three("irfft", _from_half, _from_half_n, False, "f")
hfft, hfft2, hfftn = _three("hfft", _from_half, _from_half_n, True, "f")


# ---- frequencies ----
def _shift(input: Any, dim: Any, name: str, extra: int) -> Any:
    shape = input._array.shape
    dims = list(range(len(shape))) if dim is None else _sequence(dim) or []
    shifts = [(shape[_errors.wrap_dim(d, len(shape))] + extra) // 2 for d in dims]
    return roll(input, tuple(shifts), tuple(dims))


@overridable
def fftshift(input: Any, dim: Any = None) -> Any:
    """Move the frequency zero from the start to the middle."""
    return _shift(input, dim, "fft_fftshift", 0)


@overridable
def ifftshift(input: Any, dim: Any = None) -> Any:
    """Undo `fftshift`."""
    return _shift(input, dim, "fft_ifftshift", 1)


def _frequencies(name: str, numbers: Callable[[int, Any], Any]) -> Any:
    def function(n: int, d: float = 1.0, **options: Any) -> Any:
        out, dtype, device, requires_grad = options_of(f"fft_{name}", options)
        if n < 0 and name == "fftfreq":
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
        if dtype is None:
            dtype = _dtypes.get_default_dtype() if out is None else _base.dtype_of(out)
        if dtype.kind < _dtypes.FLOAT_KIND:
            raise RuntimeError(f"{name} requires a floating point or complex dtype")
        if dtype.is_complex:
            raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype._scalar_name}'")
        values = numbers(n, np.float32 if dtype.itemsize == 2 else dtype.numpy)
        if dtype.itemsize == 2:
            values = values.astype(dtype.numpy).astype(np.float32)  # torch counts in half precision
        with np.errstate(all="ignore"):
            values *= values.dtype.type(np.float64(1.0) / np.float64(n * d))
        result = finish(values.astype(dtype.numpy, copy=False), device, requires_grad)
        return result if out is None else call_into(lambda: result, (), {}, out)

    function.__name__, function.__qualname__ = f"fft_{name}", name
    function.__doc__ = MADE[f"fft.{name}"]
    return function


def _both_signs(n: int, dtype: Any) -> Any:
    k = np.arange(n, dtype=dtype)
    k[(n + 1) // 2 :] -= n
    return k


fftfreq = refusing(_frequencies("fftfreq", _both_signs))
rfftfreq = refusing(
    _frequencies("rfftfreq", lambda n, dtype: np.arange(int(n / 2) + 1, dtype=dtype))  # halves rounded towards 0
)
