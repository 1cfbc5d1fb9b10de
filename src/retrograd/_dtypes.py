"""Hold the data types, their promotion rules, and the reading of Python data into arrays."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import ml_dtypes
import numpy as np

from ._warnings import LIST_OF_ARRAYS, REAL_PART_ONLY, warn_once

if TYPE_CHECKING:
    import numpy.typing as npt

BOOL_KIND: Final = 0
INT_KIND: Final = 1
FLOAT_KIND: Final = 2
COMPLEX_KIND: Final = 3


class dtype:  # noqa: N801
    """Describe the element type of a tensor."""

    __module__ = "retrograd"
    __slots__ = ("_scalar_name", "abbr", "is_complex", "is_floating_point", "is_signed",
                 "itemsize", "kind", "name", "numpy")  # fmt: skip

    _scalar_name: str
    abbr: str
    is_complex: bool
    is_floating_point: bool
    is_signed: bool
    itemsize: int
    kind: int
    name: str
    numpy: np.dtype[Any]

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Refuse: the only instances are this module's singletons."""
        raise TypeError("cannot create 'torch.dtype' instances")

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Refuse subclasses."""
        raise TypeError("type 'torch.dtype' is not an acceptable base type")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse to change a shared singleton."""
        raise AttributeError(f"attribute '{name}' of 'torch.dtype' objects is not writable")

    def __repr__(self) -> str:
        """Return the name as user code writes it."""
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        """Pickle and copy to the singleton of the same name, as which the package has it."""
        return self.name

    def to_real(self) -> dtype:
        """Return the type of this type's real part."""
        return _REAL_OF.get(self, self)

    def to_complex(self) -> dtype:
        """Return the complex type whose parts hold this type."""
        if self.kind < FLOAT_KIND:
            raise RuntimeError(f"Unknown Complex ScalarType for {self._scalar_name}")
        return _COMPLEX_OF.get(self, self)


def _make(name: str, scalar_name: str, abbr: str, numpy_type: npt.DTypeLike, kind: int) -> dtype:
    made = object.__new__(dtype)
    numpy_dtype = np.dtype(numpy_type)
    attributes = {"name": name, "_scalar_name": scalar_name, "abbr": abbr, "kind": kind, "numpy": numpy_dtype}
    attributes |= {"itemsize": numpy_dtype.itemsize, "is_signed": numpy_dtype.kind not in "bu"}
    attributes |= {"is_complex": kind == COMPLEX_KIND, "is_floating_point": kind == FLOAT_KIND}
    for attribute, value in attributes.items():
        object.__setattr__(made, attribute, value)
    return made


float16 = _make("float16", "Half", "f16", np.float16, FLOAT_KIND)
bfloat16 = _make("bfloat16", "BFloat16", "bf16", ml_dtypes.bfloat16, FLOAT_KIND)
float32 = _make("float32", "Float", "f32", np.float32, FLOAT_KIND)
float64 = _make("float64", "Double", "f64", np.float64, FLOAT_KIND)
complex64 = _make("complex64", "ComplexFloat", "c64", np.complex64, COMPLEX_KIND)
complex128 = _make("complex128", "ComplexDouble", "c128", np.complex128, COMPLEX_KIND)
uint8 = _make("uint8", "Byte", "u8", np.uint8, INT_KIND)
int8 = _make("int8", "Char", "i8", np.int8, INT_KIND)
int16 = _make("int16", "Short", "i16", np.int16, INT_KIND)
int32 = _make("int32", "Int", "i32", np.int32, INT_KIND)
int64 = _make("int64", "Long", "i64", np.int64, INT_KIND)
bool_ = _make("bool", "Bool", "b8", np.bool_, BOOL_KIND)
uint64 = _make("uint64", "UInt64", "u64", np.uint64, INT_KIND)  # of hashes; it takes no part in promotion

ALL_DTYPES: Final[tuple[dtype, ...]] = (
    float16, bfloat16, float32, float64, complex64, complex128,
    uint8, int8, int16, int32, int64, bool_,
)  # fmt: skip
ALIASES: Final[dict[str, dtype]] = {
    "half": float16, "float": float32, "double": float64, "cfloat": complex64, "cdouble": complex128,
    "short": int16, "int": int32, "long": int64, "uint64": uint64,
}  # fmt: skip
_BY_NAME: Final = {each.name: each for each in (*ALL_DTYPES, uint64)}
_BY_NUMPY: Final = {each.numpy: each for each in (*ALL_DTYPES, uint64)}
_REAL_OF: Final = {complex64: float32, complex128: float64}
# NumPy has no half-precision complex, so float16 goes to the next wider complex type.
_COMPLEX_OF: Final = {float16: complex64, bfloat16: complex64, float32: complex64, float64: complex128}
_TWO_BYTE_FLOATS: Final = (float16.numpy, bfloat16.numpy)


def dtype_named(name: str) -> dtype:
    """Return the singleton called `name`."""
    return _BY_NAME[name]


def from_numpy(numpy_dtype: np.dtype[Any]) -> dtype:
    """Return the type that stands for a NumPy dtype."""
    found = _BY_NUMPY.get(numpy_dtype)
    if found is not None:
        return found
    if not numpy_dtype.isnative and numpy_dtype.newbyteorder("=") in _BY_NUMPY:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    wide_unsigned = "" if numpy_dtype.kind == "u" else "uint64, uint32, uint16, "
    raise TypeError(
        f"can't convert np.ndarray of type {numpy_dtype.type.__module__}.{numpy_dtype.type.__name__}. "
        "The only supported types are: float64, float32, float16, complex64, complex128, "
        f"int64, int32, int16, int8, {wide_unsigned}uint8, and bool."
    )


# --- promotion ---------------------------------------------------------------------------------------------


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    low, high = (a, b) if a.kind < b.kind else (b, a)
    if low.kind < high.kind:
        if high.kind == COMPLEX_KIND and low.kind == FLOAT_KIND:
            return _promote(low.to_complex(), high)
        return high
    if {a, b} == {float16, bfloat16}:
        return float32
    if {a, b} == {uint8, int8}:
        return int16
    return a if a.itemsize > b.itemsize else b


_PROMOTED: Final = {(a, b): _promote(a, b) for a in ALL_DTYPES for b in ALL_DTYPES}


def _check_dtype_argument(function: str, name: str, position: int, value: object) -> None:
    if not isinstance(value, dtype):
        given = _type_name(type(value))
        raise TypeError(f"{function}(): argument '{name}' (position {position}) must be torch.dtype, not {given}")


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest type of at least both kinds and sizes."""
    try:
        return _PROMOTED[type1, type2]
    except (KeyError, TypeError):
        _check_dtype_argument("promote_types", "type1", 1, type1)
        _check_dtype_argument("promote_types", "type2", 2, type2)
        raise


def can_cast(from_: dtype, to: dtype) -> bool:
    """Return whether in-place results of type `from_` may be stored as `to`."""
    _check_dtype_argument("can_cast", "from_", 1, from_)
    _check_dtype_argument("can_cast", "to", 2, to)
    return from_.kind <= to.kind


def _fold(dtypes: Sequence[dtype]) -> dtype | None:
    return functools.reduce(promote_types, dtypes) if dtypes else None


def _outrank(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """Let `lower` change `higher` only where it is of a greater kind."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if lower.kind <= higher.kind:
        return higher
    if higher.kind == FLOAT_KIND:
        return higher.to_complex()
    return _PROMOTED[higher, lower]


def _scalar_dtype(scalar_type: type) -> dtype:
    if issubclass(scalar_type, (bool, np.bool_)):
        return bool_
    if issubclass(scalar_type, (int, np.integer)):
        return int64
    if issubclass(scalar_type, (float, np.floating)):
        return _default
    if issubclass(scalar_type, (complex, np.complexfloating)):
        return _default.to_complex()
    raise TypeError(f"not a Python number type: {scalar_type!r}")


@functools.lru_cache(maxsize=4096)
def result_numpy(
    dim_dtypes: tuple[np.dtype[Any], ...],
    zero_dim_dtypes: tuple[np.dtype[Any], ...],
    scalar_kinds: tuple[type, ...],
) -> np.dtype[Any]:
    """Return the type an operation on tensors, 0-d tensors and Python numbers computes in."""
    dimensioned = _fold([from_numpy(each) for each in dim_dtypes])
    zero_dim = _fold([from_numpy(each) for each in zero_dim_dtypes])
    scalars = _fold([_scalar_dtype(each) for each in scalar_kinds])
    result = _outrank(dimensioned, _outrank(zero_dim, scalars))
    if result is None:
        raise RuntimeError("result_type needs at least one operand")
    return result.numpy


_default: dtype = float32
# Stands for a type argument left out, where passing None is an error.
_DEFAULT_DTYPE: Any = object()


def get_default_dtype() -> dtype:
    """Return the type given to Python floats."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the type given to Python floats."""
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default = d
    result_numpy.cache_clear()


def default_complex() -> dtype:
    """Return the type given to Python complex numbers."""
    if _default is bfloat16:
        raise RuntimeError("invalid default scalar type for complex")
    return _default.to_complex()


class _Limits:
    """Share what `finfo` and `iinfo` have in common."""

    __slots__ = ("bits", "dtype", "max", "min")

    dtype: str

    def __eq__(self, other: object) -> bool:
        """Compare by kind of limits and type described."""
        return type(self) is type(other) and self.dtype == getattr(other, "dtype", None)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        """Refuse to pickle or copy."""
        raise TypeError(f"cannot pickle 'torch.{type(self).__name__}' object")


# mantissa bits, exponent of the smallest and of the largest normal number, decimal digits
_FLOAT_SHAPES: Final = {
    float16: (10, -14, 15, 3),
    bfloat16: (7, -126, 127, 2),
    float32: (23, -126, 127, 6),
    float64: (52, -1022, 1023, 15),
}


class finfo(_Limits):  # noqa: N801
    """Describe the limits of a floating-point type."""

    __slots__ = ("eps", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype = _DEFAULT_DTYPE) -> None:
        """Read the limits of `type`, or of the default type."""
        described = _default if type is _DEFAULT_DTYPE else type
        _check_dtype_argument("finfo", "type", 1, described)
        if described.kind < FLOAT_KIND:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        described = described.to_real()
        mantissa, lowest, highest, digits = _FLOAT_SHAPES[described]
        self.bits = described.itemsize * 8
        self.dtype = described.name
        self.eps = math.ldexp(1.0, -mantissa)
        self.max = math.ldexp(2.0 - self.eps, highest)
        self.min = -self.max
        self.resolution = float(f"1e-{digits}")
        self.smallest_normal = self.tiny = math.ldexp(1.0, lowest)

    def __repr__(self) -> str:
        """Return all limits in six digits."""
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):  # noqa: N801
    """Describe the limits of an integer type."""

    __slots__ = ()

    def __init__(self, type: dtype) -> None:
        """Read the limits of `type`."""
        _check_dtype_argument("iinfo", "type", 1, type)
        if type.kind >= FLOAT_KIND:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        self.bits = type.itemsize * 8
        self.dtype = type.name
        self.min, self.max = _integer_range(type)

    def __repr__(self) -> str:
        """Return the range in six digits."""
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def _integer_range(target: dtype) -> tuple[int, int]:
    bits = target.itemsize * 8
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if target.is_signed else (0, (1 << bits) - 1)


def cast_array(array: npt.NDArray[Any], target: np.dtype[Any]) -> npt.NDArray[Any]:
    """Copy an array into another type the way `Tensor.to` converts."""
    if array.dtype == target:
        return array.copy(order="K")
    source_kind, target_kind = from_numpy(array.dtype).kind, from_numpy(target).kind
    if source_kind == COMPLEX_KIND and target_kind in (INT_KIND, FLOAT_KIND):
        warn_once(REAL_PART_ONLY)
        array, source_kind = array.real, FLOAT_KIND
    step: type[np.generic] | None = None
    if target in _TWO_BYTE_FLOATS and array.dtype not in _TWO_BYTE_FLOATS:
        # PyTorch rounds twice on the way to the two-byte floats.
        step = np.float32
    elif source_kind == FLOAT_KIND and target_kind == INT_KIND and target.itemsize < 4:
        # Numbers out of range wrap instead of meeting whatever the C compiler made of the cast.
        step = np.int64 if target == uint8.numpy else np.int32
    with np.errstate(over="ignore", invalid="ignore"):
        return (array if step is None else array.astype(step)).astype(target)


def refuse_negative_strides(array: npt.NDArray[Any]) -> None:
    """Raise on an array that runs backwards, which no tensor can."""
    if min(array.strides, default=0) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides "
            "are not currently supported. (You can probably work around this by making a copy of your array "
            " with array.copy().) "
        )


# --- Python data -------------------------------------------------------------------------------------------

# bool comes first because it is also an int.
_PLAIN_TYPES: Final = (bool, int, float, complex)
_MOST_DIMENSIONS: Final = 128
_SMALLEST_LONG: Final = -(1 << 63)
_LARGEST_LONG: Final = (1 << 63) - 1


def infer_from_python(value: object) -> dtype:
    """Return the type that nested Python data would become, without building it."""
    _refuse_text(value)
    _shape_of(value)
    return _infer(value)


def array_from_python(data: Any, dtype: dtype | None = None) -> npt.NDArray[Any]:
    """Build a fresh array from numbers, nested sequences or NumPy data."""
    data_type = type(data)
    if data_type is list or data_type is tuple:
        plain = _flatten_plain(data)
        if plain is not None:
            values, shape, leaf_types = plain
            packed = _pack_plain(values, leaf_types, _widest_plain(leaf_types) if dtype is None else dtype)
            if packed is not None:
                return packed.reshape(shape)
    elif data_type in _PLAIN_TYPES:
        packed = _pack_plain(data, {data_type}, _widest_plain({data_type}) if dtype is None else dtype)
        if packed is not None:
            return packed
    elif isinstance(data, np.ndarray):
        source = from_numpy(data.dtype)
        refuse_negative_strides(data)
        return cast_array(data, (dtype or source).numpy)
    return _read_slowly(data, dtype)


def _read_slowly(data: Any, target: dtype | None) -> npt.NDArray[Any]:
    """Walk any data in PyTorch's order of checks, so that the first fault found is the same."""
    _refuse_text(data)
    shape = _shape_of(data)
    if target is None:
        target = _infer(data)
    if 0 in shape:
        return np.empty(shape, target.numpy)
    numbers: list[Any] = []
    if target.kind == INT_KIND:
        _convert_leaves(data, shape, 0, functools.partial(_as_integer, target=target), numbers)
        return np.array(numbers, np.int64).astype(target.numpy).reshape(shape)
    convert = {BOOL_KIND: _as_bool, FLOAT_KIND: _as_float, COMPLEX_KIND: _as_complex}[target.kind]
    _convert_leaves(data, shape, 0, convert, numbers)
    return _pack_rounded(numbers, target).reshape(shape)


def _convert_leaves(
    value: Any, shape: tuple[int, ...], dim: int, convert: Callable[[Any], Any], numbers: list[Any]
) -> None:
    if dim == len(shape):
        numbers.append(convert(value))
        return
    try:
        items = list(value)
    except TypeError:
        raise TypeError("not a sequence") from None
    if len(items) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(items)})")
    for item in items:
        if isinstance(item, np.ndarray):
            warn_once(LIST_OF_ARRAYS)
        _convert_leaves(item, shape, dim + 1, convert, numbers)


def _flatten_plain(data: Sequence[Any]) -> tuple[Sequence[Any], list[int], set[type]] | None:
    """Flatten evenly nested lists of plain numbers, or give up with None."""
    shape = [len(data)]
    items = data
    while items and type(items[0]) in (list, tuple):
        width = len(items[0])
        for each in items:
            if type(each) not in (list, tuple) or len(each) != width:
                return None
        shape.append(width)
        if len(shape) > _MOST_DIMENSIONS:
            return None
        items = list(chain.from_iterable(items))
    leaf_types: set[type] = set(map(type, items))
    return (items, shape, leaf_types) if leaf_types and leaf_types.issubset(_PLAIN_TYPES) else None


def _widest_plain(leaf_types: set[type]) -> dtype:
    if complex in leaf_types:
        return default_complex()
    if float in leaf_types:
        return _default
    return int64 if int in leaf_types else bool_


def _pack_plain(values: Any, leaf_types: set[type], target: dtype) -> npt.NDArray[Any] | None:
    """Convert plain numbers in one NumPy call, or leave any fault to the slow path with None."""
    if target.kind >= FLOAT_KIND:
        return None if target.kind == FLOAT_KIND and complex in leaf_types else _pack_rounded(values, target)
    if target.kind == BOOL_KIND:
        return np.array(values, np.bool_) if leaf_types == {bool} else None
    if not leaf_types <= {bool, int}:
        return None
    try:
        whole = np.array(values, np.int64)
    except OverflowError:
        return None
    if target is int64:
        return whole
    smallest, largest = _accepted_range(target)
    return whole.astype(target.numpy) if smallest <= whole.min() and whole.max() <= largest else None


def _pack_rounded(values: Any, target: dtype) -> npt.NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        if target.numpy in _TWO_BYTE_FLOATS:
            return np.array(values, np.float32).astype(target.numpy)
        return np.array(values, target.numpy)


def _as_float(value: Any) -> float:
    # Unlike float(), ldexp takes no text and refuses in the words of the C conversion.
    return value if type(value) is float else math.ldexp(value, 0)


def _as_complex(value: Any) -> complex:
    if isinstance(value, complex):
        return value
    convert = getattr(type(value), "__complex__", None)
    return _as_float(value) if convert is None else convert(value)


def _as_bool(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_, float, complex)):
        return bool(value)
    return operator.index(value) != 0


def _as_integer(value: Any, target: dtype) -> int:
    smallest, largest = _integer_range(target)
    if isinstance(value, float):
        if not smallest <= value <= float(largest):
            raise _overflow(target)
        number = int(value)
        # float(largest) of int64 is one more than the largest; the hardware makes it the smallest.
        return number if number <= largest else smallest
    number = operator.index(value)
    if not _SMALLEST_LONG <= number <= _LARGEST_LONG:
        raise ValueError("Overflow when unpacking long long")
    if not _accepted_range(target)[0] <= number <= largest:
        raise _overflow(target)
    return number


def _accepted_range(target: dtype) -> tuple[int, int]:
    """Return the integers a type takes: unsigned types let small negative ones wrap."""
    smallest, largest = _integer_range(target)
    return (smallest if target.is_signed else -largest), largest


def _overflow(target: dtype) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {target.name} without overflow")


def _refuse_text(value: object) -> None:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{_type_name(type(value))}'")


def is_tensor(value: object) -> bool:
    """Return whether an object carries one of our types, which only tensors do."""
    return isinstance(getattr(value, "dtype", None), dtype)


def _is_sequence(value: object) -> bool:
    # Tensors and NumPy scalars have __getitem__ but stand for single numbers here.
    return (
        hasattr(type(value), "__getitem__")
        and (not isinstance(value, (dict, np.generic)) or isinstance(value, (str, bytes)))
        and not is_tensor(value)
    )


def _shape_of(data: Any) -> tuple[int, ...]:
    """Read the shape off the first item of every level."""
    shape: list[int] = []
    level = data
    while _is_sequence(level):
        length = len(level)
        shape.append(length)
        if len(shape) > _MOST_DIMENSIONS:
            raise ValueError(f"too many dimensions '{_type_name(type(level))}'")
        if length == 0:
            break
        try:
            level = level[0]
        except Exception as fault:
            described = _type_name(type(level))
            raise ValueError(f"could not determine the shape of object type '{described}'") from fault
    return tuple(shape)


def _infer(value: Any) -> dtype:
    if isinstance(value, (np.generic, np.ndarray)):
        return from_numpy(value.dtype)
    for plain in _PLAIN_TYPES:
        if isinstance(value, plain):
            return _widest_plain({plain})
    if is_tensor(value):
        tensor_dtype: dtype = value.dtype
        return tensor_dtype
    _refuse_text(value)
    if not _is_sequence(value):
        raise RuntimeError(f"Could not infer dtype of {_type_name(type(value))}")
    result: dtype | None = None
    for index in range(len(value)):
        item = value[index]
        if item is value:
            raise TypeError("new(): self-referential lists are incompatible")
        result = _infer(item) if result is None else promote_types(result, _infer(item))
        if result is complex128:
            break
    return _default if result is None else result


def _type_name(described: builtins.type) -> str:
    module = described.__module__
    if module.partition(".")[0] in ("numpy", "ml_dtypes", "decimal"):
        return f"{module}.{described.__name__}"
    if described is dtype or (module.partition(".")[0] in ("retrograd", "torch") and described.__name__ != "Tensor"):
        return f"torch.{described.__name__}"
    return described.__name__
