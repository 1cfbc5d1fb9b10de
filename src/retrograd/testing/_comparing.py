"""assert_close: two nested results are equal up to rounding, or an error says what differs most and where."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _dtypes
from .._core.arrays import raw_leaf
from .._warnings import warn
from ..tensor import Tensor
from ..tensor._functions.casting import device_of
from ..tensor._functions.creation import as_tensor
from ..tensor._functions.creation import tensor as new_tensor

# relative and absolute tolerance by dtype; others must be equal
TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
OLD_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}
_REAL_NAMES = {"complex64": "float32", "complex128": "float64"}
_NUMBERS = {int: "int64", float: "float64", complex: "complex128"}
At = tuple[Any, ...]


class Options(NamedTuple):
    """How to compare."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    allow_subclasses: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool


class Mismatch(Exception):  # noqa: N818 - caught inside
    """What differs, and the class of error that says so."""

    def __init__(self, text: str, kind: type[Exception] = AssertionError) -> None:
        super().__init__(text)
        self.kind = kind


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Example:
        >>> torch.testing.assert_close(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7]))
        >>> try:
        ...     torch.testing.assert_close(torch.tensor([1.0]), torch.tensor([2.0]))
        ... except AssertionError as error:
        ...     print(str(error).splitlines()[0])
        Tensor-likes are not close!
    """
    __tracebackhide__ = True  # pytest shows the caller
    options = Options(rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride)
    if (rtol is None) ^ (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    at: At = ()
    try:
        comparisons = []
        for at, compare in _pairs(actual, expected, (), options):
            comparisons.append((at, compare))
    except _Unlike as error:
        raise error.kind(_located(str(error), error.at)) from None
    for at, compare in comparisons:
        try:
            compare()
        except Mismatch as error:
            text = _located(str(error), at)
            raise error.kind(text if msg is None else msg(text) if callable(msg) else msg) from None


def _located(text: str, at: At) -> str:
    place = "".join(f"[{key!r}]" for key in at)
    return f"{text}\n\nThe failure occurred for item {place}" if at else text


class _Unlike(Mismatch):
    """Two values that cannot be compared at all."""

    def __init__(self, text: str, at: At, kind: type[Exception] = AssertionError) -> None:
        super().__init__(text, kind)
        self.at = at


# ---- which values are compared how ----
def _pairs(actual: Any, expected: Any, at: At, options: Options) -> Iterator[tuple[At, Callable[[], None]]]:
    """Find the pairs of leaves of nested sequences and mappings, and how each is compared."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise _Unlike(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", at)
        for k in range(len(actual)):
            yield from _pairs(actual[k], expected[k], (*at, k), options)
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, extra = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or extra:
            raise _Unlike(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing)}\n"
                f"Additional keys in the actual mapping: {sorted(extra)}",
                at,
            )
        keys = list(actual)
        try:
            keys.sort()
        except TypeError:
            keys = list(actual)
        for key in keys:
            yield from _pairs(actual[key], expected[key], (*at, key), options)
    else:
        yield at, _comparison(actual, expected, at, options)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.number)) and not isinstance(value, (bool, np.bool_))


def _comparison(actual: Any, expected: Any, at: At, options: Options) -> Callable[[], None]:
    if actual is None or expected is None:
        return lambda: _compare_nones(actual, expected)
    if isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
        return lambda: _compare_bools(bool(actual), bool(expected))
    if _is_number(actual) and _is_number(expected):
        return lambda: _compare_numbers(_python(actual), _python(expected), options)
    tensors = _as_tensors(actual, expected, options)
    if tensors is None:
        raise _Unlike(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", at, TypeError
        )
    return lambda: _compare_tensors(*tensors, options)


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _as_tensors(actual: Any, expected: Any, options: Options) -> tuple[Any, Any] | None:
    """Read two values of related types as tensors; None if they are not."""
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not related or (not options.allow_subclasses and type(actual) is not type(expected)):
        return None
    found = []
    for value in (actual, expected):
        if isinstance(value, Tensor):
            found.append(value)
            continue
        try:
            found.append(as_tensor(value))
        except Exception:
            return None
    return found[0], found[1]


# ---- comparing ----
def _compare_nones(actual: Any, expected: Any) -> None:
    if actual is not expected:
        raise Mismatch(f"None mismatch: {actual} is not {expected}")


def _compare_bools(actual: bool, expected: bool) -> None:
    if actual is not expected:
        raise Mismatch(f"Booleans mismatch: {actual} is not {expected}")


def _tolerances(names: Sequence[str], options: Options, table: Mapping[str, Any] = TOLERANCES) -> tuple[float, float]:
    """Return the tolerances asked for, or the widest of the dtypes."""
    if options.rtol is not None and options.atol is not None:
        return options.rtol, options.atol
    found = [table.get(_REAL_NAMES.get(name, name), (0.0, 0.0)) for name in names]
    return max(r for r, _ in found), max(a for _, a in found)


def _compare_numbers(actual: Any, expected: Any, options: Options) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        raise Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = _tolerances([_NUMBERS[type(one)] for one in (actual, expected)], options)
    if not _is_close(actual, expected, rtol, atol, options.equal_nan):
        raise Mismatch(_about_numbers(actual, expected, rtol, atol))


def _is_close(actual: Any, expected: Any, rtol: float, atol: float, equal_nan: bool) -> bool:
    if actual == expected:
        return True
    if equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return True
    distance = abs(actual - expected)
    return cmath.isfinite(distance) and distance <= atol + rtol * abs(expected)


def _allowed(tolerance: float, exact: bool) -> str:
    return "" if exact else f" (up to {tolerance} allowed)"


def _about_numbers(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    exact = rtol == atol == 0
    distance = abs(actual - expected)
    relative = float("inf") if expected == 0 else distance / abs(expected)
    return (
        f"Scalars are not {'equal' if exact else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {distance}{_allowed(atol, exact)}\n"
        f"Relative difference: {relative}{_allowed(rtol, exact)}"
    )


def _elements(tensor: Any) -> Any:
    """Return a tensor's numbers; a class that wraps tensors is asked for each."""
    array = tensor._array
    if not hasattr(array, "place"):
        return np.asarray(raw_leaf(tensor.cpu()._array))
    numbers = [one.item() for one in tensor.reshape(-1).unbind()]
    return np.array(numbers, array.dtype).reshape(array.shape)


def _compare_tensors(actual: Any, expected: Any, options: Options) -> None:
    actual, expected = actual.detach(), expected.detach()
    _compare_attributes(actual, expected, options)
    rtol, atol = _tolerances([actual.dtype.name, expected.dtype.name], options)
    if actual.dtype is not expected.dtype:
        common = _dtypes.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(common), expected.to(common)
    a, e = [_elements(one) for one in (actual, expected)]
    matches = _close_elements(a, e, rtol, atol, options.equal_nan)
    if matches.all():
        return
    if not a.ndim:
        raise Mismatch(_about_numbers(actual.item(), expected.item(), rtol, atol))
    raise Mismatch(_about_arrays(a, e, matches, rtol, atol))


def _compare_attributes(actual: Any, expected: Any, options: Options) -> None:
    both = (actual, expected)
    facts: list[tuple[str, bool, list[Any]]] = [
        ("shape", True, [one.shape for one in both]),
        ("layout", options.check_layout, [one.layout for one in both]),
        ("device", options.check_device, [device_of(one) for one in both]),
        ("dtype", options.check_dtype, [one.dtype for one in both]),
        ("stride()", options.check_stride, [one.stride() for one in both]),
    ]
    for name, wanted, (a, e) in facts:
        if wanted and a != e:
            raise Mismatch(f"The values for attribute '{name}' do not match: {a} != {e}.")


def _close_elements(a: Any, e: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    with np.errstate(all="ignore"):
        same = a == e
        if equal_nan and a.dtype.kind not in "biu":
            same = same | (np.isnan(a) & np.isnan(e))
        if rtol == atol == 0:
            return same
        distance = np.abs(a - e) if a.dtype.kind != "b" else a ^ e
        return same | (np.isfinite(distance) & (distance <= atol + rtol * np.abs(e)))


def _about_arrays(a: Any, e: Any, matches: Any, rtol: float, atol: float) -> str:
    """Say how many elements differ, and where most."""
    exact = rtol == atol == 0
    if a.dtype.kind in "biu":  # no wrapping
        a, e = a.astype(np.int64), e.astype(np.int64)
    with np.errstate(all="ignore"):
        distance = np.abs(a - e)
        size = np.abs(e)
        ratio = distance.astype(np.float32) / size.astype(np.float32) if a.dtype.kind == "i" else distance / size
    distance[matches], ratio[matches] = 0, 0
    count, total = int((~matches).sum()), matches.size

    def greatest(values: Any) -> str:
        flat = values.astype(np.float32).ravel() if values.dtype.kind == "V" else values.ravel()
        at = int(flat.argmax())
        place = tuple(int(k) for k in np.unravel_index(at, values.shape))
        return f"{flat[at].item()} at index {place}"

    return (
        f"Tensor-likes are not {'equal' if exact else 'close'}!\n\n"
        f"Mismatched elements: {count} / {total} ({count / total:.1%})\n"
        f"Greatest absolute difference: {greatest(distance)}{_allowed(atol, exact)}\n"
        f"Greatest relative difference: {greatest(ratio)}{_allowed(rtol, exact)}"
    )


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Compare as torch did before `assert_close`: looser, and dtypes may differ."""
    warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use "
        "`torch.testing.assert_close()` instead.",
        FutureWarning,
    )
    if not isinstance(actual, Tensor):
        actual = new_tensor(actual)
    if not isinstance(expected, Tensor):
        expected = new_tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        empty = Options(None, None, equal_nan, True, True, False, True, False)
        rtol, atol = _tolerances([actual.dtype.name, expected.dtype.name], empty, TOLERANCES | OLD_TOLERANCES)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
