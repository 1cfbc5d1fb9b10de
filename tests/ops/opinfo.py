"""What the tests know of an operation: how to call it on either library, and inputs away from kinks."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Domain = Sequence[tuple[float, float]]  # intervals; values are spread evenly over all of them

EVERYWHERE: Domain = ((-2.1, 2.1),)
NOT_ZERO: Domain = ((-2.1, -0.4), (0.4, 2.1))
POSITIVE: Domain = ((0.4, 2.2),)
UNIT: Domain = ((-0.85, 0.85),)
IMAGINARY: Domain = ((-1.2, -0.2), (0.2, 1.2))  # of complex samples: branch cuts lie on the axes

DIFFERENTIABLE = ("float64", "complex128", "float32", "bfloat16", "float16", "complex64")


@dataclass(frozen=True)
class Float:
    """An input that gets gradients. `layout` says how its memory lies: plain, transposed or strided."""

    shape: tuple[int, ...]
    layout: str = "plain"
    domain: Domain | None = None


@dataclass(frozen=True, eq=False)
class Constant:
    """An input that gets none: indices or a mask."""

    array: np.ndarray
    batched: bool = True  # whether vmap may see a different one in each row


def F(*shape: int, layout: str = "plain", domain: Domain | None = None) -> Float:  # noqa: N802 - one letter in tables
    return Float(shape, layout, domain)


def K(values: Any, *, batched: bool = True) -> Constant:  # noqa: N802 - one letter in tables
    array = np.asarray(values)
    return Constant(array.astype(np.int64) if array.dtype.kind in "iu" or not array.size else array, batched)


@dataclass(frozen=True, eq=False)
class Sample:
    """Arguments of one call. Lists and tuples of `Float`s (as for cat) are inputs too."""

    inputs: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        parts = [_shown(one) for one in self.inputs] + [f"{k}={v!r}" for k, v in self.options.items()]
        return f"({', '.join(parts)})"


def _shown(value: Any) -> str:
    if isinstance(value, Float):
        return f"{list(value.shape)}" + ("" if value.layout == "plain" else f" {value.layout}")
    if isinstance(value, Constant):
        return f"{value.array.dtype}{list(value.array.shape)}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(_shown(one) for one in value)})"
    return repr(value)


def S(*inputs: Any, **options: Any) -> Sample:  # noqa: N802 - one letter in tables
    return Sample(inputs, options)


@dataclass(frozen=True, eq=False)
class Op:
    """An operation. `call(library, *inputs, **options)` returns a tensor or several."""

    name: str
    call: Callable[..., Any]
    samples: tuple[Sample, ...]
    complex: bool = False  # whether torch differentiates it with complex numbers
    domain: Domain = EVERYWHERE
    differentiable: bool = True
    batching: bool = True  # whether vmap is tested: not for sizes that depend on data
    oracle_dtypes: tuple[str, ...] | None = None  # None: all of them
    same_graph: bool = True  # whether torch takes the same steps, which its graph shows

    def function(self, library: Any, sample: Sample, tensors: Sequence[Any]) -> Any:
        """Call the operation with tensors in place of the sample's Floats and Constants."""
        left = iter(tensors)
        return self.call(library, *[_fill(one, left) for one in sample.inputs], **sample.options)


def _fill(value: Any, left: Iterator[Any]) -> Any:
    if isinstance(value, (Float, Constant)):
        return next(left)
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Float, Constant)) for v in value):
        return type(value)([_fill(v, left) for v in value])
    return value


def leaves(sample: Sample) -> list[Any]:
    """Return the Floats and Constants of a sample, in order."""

    def walk(value: Any) -> Iterator[Any]:
        if isinstance(value, (Float, Constant)):
            yield value
        elif isinstance(value, (list, tuple)):
            for one in value:
                yield from walk(one)

    return list(walk(sample.inputs))


def spread(shape: tuple[int, ...], domain: Domain, seed: str) -> np.ndarray:
    """Return different values, evenly spread over a domain; the seed decides their order and offset."""
    number = zlib.crc32(seed.encode())
    rng = np.random.default_rng(number)
    count = int(np.prod(shape))
    total = sum(high - low for low, high in domain)
    at = (np.arange(count) + rng.uniform(0.05, 0.95, 1)) * (total / max(count, 1))
    values = np.empty(count)
    start = 0.0
    for low, high in domain:
        inside = (at >= start) & (at < start + high - low)
        values[inside] = low + (at[inside] - start)
        start += high - low
    return rng.permutation(values).reshape(shape)


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """Copy an array into memory of a layout."""
    if layout == "transposed":
        return np.ascontiguousarray(array.T).T
    if layout == "strided":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return array


def arrays_of(op: Op, sample: Sample, dtype: str = "float64", row: int = 0) -> list[np.ndarray]:
    """Return the arrays of a sample: float64, complex128 or int64 (other dtypes are cast from these)."""
    arrays = []
    for k, leaf in enumerate(leaves(sample)):
        if isinstance(leaf, Constant):
            axis = leaf.array.ndim - 1
            arrays.append(np.roll(leaf.array, row, axis) if leaf.array.ndim and row and leaf.batched else leaf.array)
            continue
        domain = leaf.domain or op.domain
        seed = f"{op.name} {k} {row} {leaf.shape}"
        values = spread(leaf.shape, domain, seed)
        if dtype.startswith("complex"):
            values = values + 1j * spread(leaf.shape, IMAGINARY, seed + " imaginary")
        elif dtype == "int64":
            values = np.where(values < 0, np.floor(values * 3), np.ceil(values * 3)).astype(np.int64)
        elif dtype == "bool":
            values = values > np.mean(values) if values.size else values.astype(bool)
        arrays.append(laid_out(np.asarray(values), leaf.layout))
    return arrays


def is_float(sample: Sample) -> list[bool]:
    """Tell which leaves of a sample get gradients."""
    return [isinstance(leaf, Float) for leaf in leaves(sample)]


def deprecated(call: Callable[..., Any]) -> Callable[..., Any]:
    """Let an operation be called without the warning that it is deprecated."""

    def quiet(*args: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return call(*args, **options)

    return quiet


# ---- sample sets that many operations share ----
UNARY = tuple(
    S(x) for x in (F(), F(0), F(3), F(2, 3), F(2, 3, layout="transposed"), F(4, layout="strided"), F(2, 0, 3))
)

BINARY = (
    S(F(), F()),
    S(F(3), F(3)),
    S(F(2, 3), F(3)),
    S(F(2, 1), F(3)),
    S(F(), F(2, 3)),
    S(F(2, 3), F()),
    S(F(0), F(1)),
    S(F(2, 3, layout="transposed"), F(2, 3)),
    S(F(4, layout="strided"), F(1)),
)


def per_dim(*, keepdim: bool = True, all_dims: bool = False, several: bool = False) -> tuple[Sample, ...]:
    """Return samples of a reduction: dims of every sign, kept or not, of every layout."""
    samples = [S(F(), dim=0), S(F(), dim=-1), S(F(3), dim=0), S(F(2, 3), dim=0), S(F(2, 3), dim=-1)]
    samples += [
        S(F(2, 3, layout="transposed"), dim=1),
        S(F(2, 3, 2), dim=1),
        S(F(4, layout="strided"), dim=0),
    ]
    samples += [S(F(0, 3), dim=1), S(F(1, 3), dim=0)]
    if keepdim:
        samples += [S(F(2, 3), dim=1, keepdim=True), S(F(2, 3, 2), dim=-2, keepdim=True)]
    if all_dims:
        samples += [S(F()), S(F(3)), S(F(2, 3)), S(F(2, 3, layout="transposed"))]
    if several:
        samples += [
            S(F(2, 3, 2), dim=(0, 2)),
            S(F(2, 3, 2), dim=(-1, 0), keepdim=True),
            S(F(2, 3, 2), dim=(1, 2)),
        ]
        samples += [S(F(2, 3), dim=(0, 1))]
    return tuple(samples)
