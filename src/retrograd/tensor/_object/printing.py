"""Write arrays and tensors as text in the layout PyTorch users know."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from ..._core.arrays import is_meta
from ..._dtypes import STORED_NUMBERS
from ..._stored import as_storage_only, widened

_ELLIPSIS = "..."
_SEPARATOR = ", "
_PARAMETER_HEADING = "Parameter containing:\n"

_MOST_FIXED_POINT_RATIO = 1000.0
_LARGEST_FIXED_POINT = 1.0e8
_SMALLEST_FIXED_POINT = 1.0e-4


@dataclass
class _PrintOptions:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


class _Profile(TypedDict):
    precision: int
    threshold: float
    edgeitems: int
    linewidth: int


_options = _PrintOptions()

_PROFILES: dict[str, _Profile] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed, a profile first and then the options given one by one."""
    chosen: dict[str, Any] = {}
    if profile is not None:
        # An unknown profile changes nothing rather than failing: that is how the reference behaves.
        chosen.update(_PROFILES.get(profile, {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen.update({name: value for name, value in given.items() if value is not None})
    # For sci_mode None means "choose per tensor", so leaving it out puts it back to automatic.
    chosen["sci_mode"] = sci_mode
    for name, value in chosen.items():
        setattr(_options, name, value)


def get_printoptions() -> dict[str, Any]:
    """Return the present print options as a new dictionary."""
    return asdict(_options)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Change print options as `set_printoptions` does until the block ends."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


@dataclass(frozen=True)
class _Writer:
    """Turn one value into its padded text, and know the columns to allow for each."""

    text: Callable[[Any], str]
    width: int


def _integer_writer(numbers: NDArray[Any]) -> _Writer:
    width = max(len(str(value)) for value in numbers.ravel().tolist())
    return _Writer(lambda value: str(value).rjust(width), width)


def _float_text(values: list[float]) -> Callable[[float], str]:
    """Choose the notation that suits the finite non-zero values given."""
    precision = _options.precision
    if all(value.is_integer() for value in values):

        def fixed(value: float) -> str:
            digits = f"{value:.0f}"
            return digits if digits[-1].isalpha() else digits + "."
    else:

        def fixed(value: float) -> str:
            return f"{value:.{precision}f}"

    def scientific(value: float) -> str:
        return f"{value:.{precision}e}"

    # Zeros, infinities and nans alone never need an exponent, not even when sci_mode asks for one.
    if not values:
        return fixed
    if _options.sci_mode is not None:
        return scientific if _options.sci_mode else fixed
    magnitudes = [abs(value) for value in values]
    smallest, largest = min(magnitudes), max(magnitudes)
    hard_to_read = (
        largest / smallest > _MOST_FIXED_POINT_RATIO
        or largest > _LARGEST_FIXED_POINT
        or smallest < _SMALLEST_FIXED_POINT
    )
    return scientific if hard_to_read else fixed


def _float_writer(numbers: NDArray[np.float64]) -> _Writer:
    # Zeros, infinities and nans have no say in the width, so columns holding them may be ragged.
    deciding: list[float] = numbers[np.isfinite(numbers) & (numbers != 0)].tolist()
    text = _float_text(deciding)
    width = max((len(text(value)) for value in deciding), default=1)
    return _Writer(lambda value: text(value).rjust(width), width)


def _complex_writer(numbers: NDArray[np.complex128]) -> _Writer:
    real = _float_writer(numbers.real)
    imag = _float_writer(numbers.imag)

    def text(value: complex) -> str:
        imaginary = imag.text(value.imag).lstrip()
        sign = "" if imaginary.startswith("-") else "+"
        return f"{real.text(value.real)}{sign}{imaginary}j"

    return _Writer(text, real.width + imag.width + 1)


def _exact_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Convert to a type whose `tolist` gives Python scalars without changing any value."""
    with np.errstate(all="ignore"):
        if array.dtype.num in STORED_NUMBERS:
            array = widened(as_storage_only(array))
        match array.dtype.kind:
            case "b" | "i" | "u":
                return array
            case "c":
                return array.astype(np.complex128)
            case _:
                # The float types of ml_dtypes do not report kind "f", so floats are what remains.
                return array.astype(np.float64)


def _writer_for(numbers: NDArray[Any]) -> _Writer:
    match numbers.dtype.kind:
        case "c":
            return _complex_writer(numbers)
        case "f":
            return _float_writer(numbers)
        case _:
            return _integer_writer(numbers)


# For each axis, how many entries come before the ellipsis, or None where nothing is left out.
_Cuts = tuple[int | None, ...]


def _edges(array: NDArray[Any], edgeitems: int) -> tuple[NDArray[Any], _Cuts]:
    """Keep only the first and last entries along every axis long enough to leave some out."""
    kept: list[list[int]] = []
    cuts: list[int | None] = []
    for size in array.shape:
        everything = range(size)
        if size > 2 * edgeitems:
            head, tail = everything[:edgeitems], everything[-edgeitems:]
            kept.append([*head, *tail])
            cuts.append(len(head))
        else:
            kept.append(list(everything))
            cuts.append(None)
    # One indexing of all axes copies only what is printed; axis by axis would copy far more.
    return array[np.ix_(*kept)], tuple(cuts)


def _row(values: list[Any], cut: int | None, indent: int, writer: _Writer) -> str:
    cells = [writer.text(value) for value in values]
    if cut is not None:
        cells.insert(cut, " " + _ELLIPSIS)
    columns = (_options.linewidth - indent) // (writer.width + len(_SEPARATOR))
    per_line = max(1, int(columns))
    lines = [_SEPARATOR.join(cells[at : at + per_line]) for at in range(0, len(cells), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(values: Any, cuts: _Cuts, indent: int, writer: _Writer) -> str:
    if not cuts:
        return writer.text(values)
    if len(cuts) == 1:
        return _row(values, cuts[0], indent, writer)
    blocks = [_nested(entry, cuts[1:], indent + 1, writer) for entry in values]
    if cuts[0] is not None:
        blocks.insert(cuts[0], _ELLIPSIS)
    line_breaks = "\n" * (len(cuts) - 1)
    return "[" + ("," + line_breaks + " " * (indent + 1)).join(blocks) + "]"


def format_array(array: NDArray[Any], indent: int = 0) -> str:
    """Write the bracketed values of an array whose first bracket stands at column `indent`."""
    if array.size == 0:
        return "[]"
    cuts: _Cuts = (None,) * array.ndim
    if array.ndim and array.size > _options.threshold:
        if _options.edgeitems == 0:
            return f"[{_ELLIPSIS}]"
        array, cuts = _edges(array, _options.edgeitems)
    numbers = _exact_numbers(array)
    return _nested(numbers.tolist(), cuts, indent, _writer_for(numbers))


def _dtype_is_implied(dtype_text: str, default_float_text: str, is_empty: bool) -> bool:
    """Tell whether a reader can infer the dtype from the values alone."""
    if dtype_text == default_float_text:
        return True
    if is_empty:
        return False
    default_complex = "complex128" if default_float_text.endswith("float64") else "complex64"
    return dtype_text.rpartition(".")[2] in {"int64", "bool", default_complex}


def _append_suffixes(text: str, indent: int, suffixes: Sequence[str]) -> str:
    """Append each suffix to the last line where it fits, and to a new line where it does not."""
    # The two extra columns keep room for the closing parenthesis and one more, as the reference does;
    # after a line break, and inside a suffix of several lines, the reference counts plain lengths.
    used = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if used + len(_SEPARATOR) + len(suffix) > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += _SEPARATOR + suffix
            used += len(_SEPARATOR) + len(suffix)
    return text


def tensor_repr(
    array: NDArray[Any],
    *,
    class_name: str = "tensor",
    dtype_text: str | None = None,
    default_float_text: str = "torch.float32",
    device_text: str | None = None,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    extra_suffixes: Sequence[str] = (),
    is_parameter: bool = False,
    has_values: bool = True,
    contents: str | None = None,
) -> str:
    """Write a tensor as `tensor([...], ...)` with every property a reader could not guess.

    `dtype_text` defaults to `torch.` and the array's dtype name, `device_text` is None for the default
    device, `extra_suffixes` are complete texts written last, such as f"tangent={tangent}", and
    `has_values=False` prints a tensor that has a shape and no data. `contents` stand for the elements if they are given.
    """
    if dtype_text is None:
        dtype_text = f"torch.{array.dtype.name}"
    opening = class_name + "("
    indent = len(opening)
    is_empty = array.size == 0
    has_values = has_values and not hasattr(array, "standin")  # of meta arrays and of wrappers
    body = contents if contents is not None else format_array(array, indent) if has_values else _ELLIPSIS
    has_values = has_values or contents is not None

    suffixes: list[str] = []
    if device_text is not None:
        suffixes.append(f"device='{device_text}'")
    if not has_values or (array.ndim != 1 if is_empty else _options.edgeitems == 0):
        suffixes.append(f"size={array.shape}")
    if not _dtype_is_implied(dtype_text, default_float_text, is_empty or not has_values):
        suffixes.append(f"dtype={dtype_text}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    suffixes.extend(extra_suffixes)

    text = _append_suffixes(opening + body, indent, suffixes) + ")"
    return _PARAMETER_HEADING + text if is_parameter else text


def scalar_format(
    array: NDArray[Any],
    format_spec: str,
    *,
    otherwise: Callable[[], str],
    type_name: str = "Tensor",
    is_plain_tensor: bool = True,
) -> str:
    """Format a plain 0-d tensor as the Python number it holds, and any other by `otherwise()`.

    Parameters and subclasses are not plain: they print in full even when 0-d.
    """
    if is_plain_tensor and array.ndim == 0 and not is_meta(array):
        return format(_exact_numbers(array).item(), format_spec)
    if format_spec:
        raise TypeError(f"unsupported format string passed to {type_name}.__format__")
    return otherwise()
