"""Hold the data types, their promotion rules and their limits."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import ml_dtypes
import numpy as np

from ._tracebacks import hide

if TYPE_CHECKING:
    import numpy.typing as npt

BOOL_KIND: Final = 0
INT_KIND: Final = 1
FLOAT_KIND: Final = 2
COMPLEX_KIND: Final = 3


class dtype:  # noqa: N801
    """Describe the element type of a tensor.

    Example:
        >>> torch.float16.itemsize, torch.int64.is_floating_point, torch.ones(1).dtype
        (2, False, torch.float32)
    """

    __module__ = "retrograd"
    __slots__ = ("_scalar_name", "abbr", "is_complex", "is_floating_point", "is_signed",
                 "itemsize", "kind", "name", "numpy", "stores_only")  # fmt: skip

    _scalar_name: str
    abbr: str
    is_complex: bool
    is_floating_point: bool
    is_signed: bool
    itemsize: int
    kind: int
    name: str
    numpy: np.dtype[Any]
    stores_only: bool  # memory may have it, few operations compute in it: see `_stored.py`

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Refuse: the only instances are this module's singletons."""
        raise TypeError("cannot create 'torch.dtype' instances")

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Refuse subclasses."""
        if cls.__module__ == dtype.__module__:
            return
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
        found = _COMPLEX_OF.get(self)
        if found is None:
            raise RuntimeError(f"Unknown Complex ScalarType for {self._scalar_name}")
        return found


class _NameOnly(dtype):
    """A type of which there are no tensors here. `__getattr__` makes reading every attribute slow, so dtypes have none."""

    __slots__ = ()
    __module__ = dtype.__module__

    def __getattr__(self, name: str) -> NoReturn:
        """Say why one of the slots is empty."""
        if name == "numpy":
            raise NotImplementedError(
                f"{self!r} is a name only: retrograd has no tensors of this dtype\nHint: keep the bytes in a tensor of "
                "torch.uint8."
            )
        if name == "is_signed":
            quantized = self._scalar_name.startswith("Q")
            reason = "isSignedType not supported for quantized types" if quantized else "Bits types are undefined"
            raise RuntimeError(reason)
        raise AttributeError(f"'torch.dtype' object has no attribute '{name}'")


_NameOnly.__name__ = _NameOnly.__qualname__ = dtype.__name__


def _make(
    name: str, scalar_name: str, abbr: str, numpy_type: npt.DTypeLike, kind: int, stores_only: bool = False
) -> dtype:
    numpy_dtype = np.dtype(numpy_type)
    signed = numpy_dtype.kind not in "bu" and not name.endswith("e8m0fnu")
    return _filled(
        name, scalar_name, abbr, kind, numpy_dtype.itemsize,
        numpy=numpy_dtype, is_signed=signed, stores_only=stores_only,
    )  # fmt: skip


def _filled(name: str, scalar_name: str, abbr: str, kind: int, itemsize: int, **more: object) -> dtype:
    made: dtype = object.__new__(dtype if "numpy" in more else _NameOnly)
    attributes = {"name": name, "_scalar_name": scalar_name, "abbr": abbr, "kind": kind, "itemsize": itemsize} | more
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

# NumPy has no half-precision complex; the two parts of an element are what torch has in memory.
_TWO_HALVES: Final = np.dtype([("real", np.float16), ("imag", np.float16)])
uint16 = _make("uint16", "UInt16", "u16", np.uint16, INT_KIND, True)
uint32 = _make("uint32", "UInt32", "u32", np.uint32, INT_KIND, True)
uint64 = _make("uint64", "UInt64", "u64", np.uint64, INT_KIND, True)
complex32 = _make("complex32", "ComplexHalf", "c32", _TWO_HALVES, COMPLEX_KIND, True)
FLOAT8_DTYPES: Final[tuple[dtype, ...]] = tuple([
    _make(f"float8_{form}", f"Float8_{form}", f"f8{form}", getattr(ml_dtypes, f"float8_{form}"), FLOAT_KIND, True)
    for form in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")
])  # fmt: skip


def _name_only(name: str, scalar_name: str, abbr: str = "", itemsize: int = 1, **more: object) -> dtype:
    """Make a type that has no tensors here."""
    kind = FLOAT_KIND if name.startswith("float") else INT_KIND
    return _filled(name, scalar_name, abbr or name, kind, itemsize, stores_only=True, **more)


_FEW_BITS: Final = [
    *(_name_only(f"uint{bits}", f"UInt{bits}", is_signed=False) for bits in range(1, 8)),
    *(_name_only(f"int{bits}", f"Int{bits}", is_signed=True) for bits in range(1, 8)),
]
_QUANTIZED: Final = [
    _name_only(name, f"Q{name[1:].replace('u', 'U').replace('i', 'I')}", itemsize=4 if name == "qint32" else 1)
    for name in ("qint8", "quint8", "qint32", "quint4x2", "quint2x4")
]
_BITS: Final = [
    _name_only(f"bits{form}", f"Bits{form}", f"b{form if 'x' in form else form + 'x1'}", 2 if form == "16" else 1)
    for form in ("1x8", "2x4", "4x2", "8", "16")
]
float4_e2m1fn_x2 = _name_only("float4_e2m1fn_x2", "Float4_e2m1fn_x2", "f4e2m1fnx2", is_signed=True)

# Computed in; and beside them those that are kept in memory, of which few operations make anything.
ALL_DTYPES: Final[tuple[dtype, ...]] = (
    float16, bfloat16, float32, float64, complex64, complex128,
    uint8, int8, int16, int32, int64, bool_,
)  # fmt: skip
STORED_DTYPES: Final[tuple[dtype, ...]] = (uint16, uint32, uint64, complex32, *FLOAT8_DTYPES)
NAMES_ONLY: Final[tuple[dtype, ...]] = (*_FEW_BITS, *_QUANTIZED, *_BITS, float4_e2m1fn_x2)
IN_MEMORY: Final = (*ALL_DTYPES, *STORED_DTYPES)
# C++'s names, which torch prints in some of its messages.
CPP_NAMES: Final[dict[str, str]] = {
    "bool": "bool", "uint8": "unsigned char", "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int",
    "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int", "float32": "float", "float64": "double",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
} | {each.name: f"c10::{each._scalar_name}" for each in (float16, bfloat16, *FLOAT8_DTYPES)}  # fmt: skip
ALIASES: Final[dict[str, dtype]] = {
    "half": float16, "float": float32, "double": float64, "chalf": complex32, "cfloat": complex64, "cdouble": complex128,
    "short": int16, "int": int32, "long": int64, "bit": _FEW_BITS[0],
}  # fmt: skip
_BY_NAME: Final = {each.name: each for each in (*IN_MEMORY, *NAMES_ONLY)}
_BY_NUMPY: Final = {each.numpy: each for each in IN_MEMORY}
_REAL_OF: Final = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX_OF: Final = {part: whole for whole, part in _REAL_OF.items()} | {whole: whole for whole in _REAL_OF}
_COMPLEX_OF[bfloat16] = complex64
TWO_BYTE_FLOATS: Final = (float16.numpy, bfloat16.numpy)
STORED_NUMBERS: Final = frozenset(
    each.numpy.num for each in STORED_DTYPES
)  # which are read quicker than dtypes are compared


def holds_complex(dtype: np.dtype[Any]) -> bool:
    """Tell whether a NumPy dtype stands for complex numbers, of which NumPy does not know the smallest."""
    return dtype.kind == "c" or dtype == _TWO_HALVES


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
    raise TypeError(
        f"can't convert np.ndarray of type {numpy_dtype.type.__module__}.{numpy_dtype.type.__name__}. "
        "The only supported types are: float64, float32, float16, complex64, complex128, "
        "int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
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


_PROMOTED: Final = {(a, b): _promote(a, b) for a in (*ALL_DTYPES, complex32) for b in (*ALL_DTYPES, complex32)}
_QUANTIZED_REFUSED: Final = (
    "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be"
)


def _promote_rarely(a: dtype, b: dtype) -> dtype:
    """Promote types, one of which takes hardly any part in promotion, or raise torch's error."""
    if a is b:
        return a
    either = {a, b}
    names = f"{a._scalar_name} and {b._scalar_name}"
    if not either.isdisjoint(_QUANTIZED):
        raise RuntimeError(f"{_QUANTIZED_REFUSED}, offending types: {a._scalar_name} {b._scalar_name}")
    if not either.isdisjoint(_BITS):
        raise RuntimeError(f"Promotion from {names} is unsupported.")
    if not either.isdisjoint(FLOAT8_DTYPES):
        raise RuntimeError(f"Promotion for Float8 Types is not supported, attempted to promote {names}")
    if any(one._scalar_name.startswith("UInt") for one in either):
        for one in (a, b):
            if one.is_floating_point:
                return one
        raise RuntimeError(f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {names}")
    raise RuntimeError(f"Promotion from {names} is unsupported.")


def _check_dtype_argument(function: str, name: str, position: int, value: object) -> None:
    if not isinstance(value, dtype):
        given = type_name(type(value))
        raise TypeError(f"{function}(): argument '{name}' (position {position}) must be torch.dtype, not {given}")


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest type of at least both kinds and sizes.

    Args:
        type1: a dtype
        type2: a dtype

    Example:
        >>> torch.promote_types(torch.int32, torch.float16)
        torch.float16
    """
    try:
        try:
            return _PROMOTED[type1, type2]
        except (KeyError, TypeError):
            _check_dtype_argument("promote_types", "type1", 1, type1)
            _check_dtype_argument("promote_types", "type2", 2, type2)
        return _promote_rarely(type1, type2)
    except Exception as error:
        hide(error)
        raise


def can_cast(from_: dtype, to: dtype) -> bool:
    """Return whether in-place results of type `from_` may be stored as `to`."""
    try:
        _check_dtype_argument("can_cast", "from_", 1, from_)
        _check_dtype_argument("can_cast", "to", 2, to)
        if to.kind == INT_KIND and to in NAMES_ONLY:
            return from_.kind <= FLOAT_KIND
        return from_.kind <= to.kind
    except Exception as error:
        hide(error)
        raise


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
    return lower if lower.kind == COMPLEX_KIND else promote_types(higher, lower)


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
    """Return the type given to Python floats.

    Example:
        >>> torch.get_default_dtype()
        torch.float32
    """
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the type given to Python floats.

    Args:
        d: a float dtype

    Example:
        >>> torch.set_default_dtype(torch.float64)
        >>> torch.tensor(1.0).dtype
        torch.float64
        >>> torch.set_default_dtype(torch.float32)
    """
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d.stores_only:
        raise TypeError(f"couldn't find storage object {d._scalar_name}Storage")
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


# eps, as torch reports it; largest, smallest, smallest normal
_FLOAT8_LIMITS: Final = {
    "float8_e4m3fn": (0.125, 448.0, -448.0, 2.0**-6),
    "float8_e5m2": (0.25, 57344.0, -57344.0, 2.0**-14),
    "float8_e4m3fnuz": (0.125, 240.0, -240.0, 2.0**-7),
    "float8_e5m2fnuz": (0.125, 57344.0, -57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 2.0**-127),
}

# mantissa bits, exponent of the smallest and of the largest normal number, decimal digits
_FLOAT_SHAPES: Final = {
    float16: (10, -14, 15, 3),
    bfloat16: (7, -126, 127, 2),
    float32: (23, -126, 127, 6),
    float64: (52, -1022, 1023, 15),
}


class finfo(_Limits):  # noqa: N801
    """Describe the limits of a floating-point type.

    Args:
        type: a dtype; the default float dtype if it is not given

    Example:
        >>> torch.finfo(torch.float32).eps, torch.finfo(torch.float16).max
        (1.1920928955078125e-07, 65504.0)
    """

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
        self.bits = described.itemsize * 8
        self.dtype = described.name
        if described.stores_only:
            if described.name not in _FLOAT8_LIMITS:
                raise NotImplementedError(f"\"lowest\" not implemented for '{described._scalar_name}'")
            self.eps, self.max, self.min, self.tiny = _FLOAT8_LIMITS[described.name]
            self.resolution, self.smallest_normal = 1.0, self.tiny
            return
        mantissa, lowest, highest, digits = _FLOAT_SHAPES[described]
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
    """Describe the limits of an integer type.

    Args:
        type: a dtype

    Example:
        >>> torch.iinfo(torch.int8).min, torch.iinfo(torch.int8).max
        (-128, 127)
    """

    __slots__ = ()

    def __init__(self, type: dtype) -> None:
        """Read the limits of `type`."""
        _check_dtype_argument("iinfo", "type", 1, type)
        if type in _QUANTIZED:
            raise NotImplementedError(f"\"dtype\" not implemented for '{type._scalar_name}'")
        if type.kind >= FLOAT_KIND or type in NAMES_ONLY:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        self.bits = type.itemsize * 8
        self.dtype = type.name
        self.min, self.max = integer_range(type)

    def __repr__(self) -> str:
        """Return the range in six digits."""
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def integer_range(target: dtype) -> tuple[int, int]:
    bits = target.itemsize * 8
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if target.is_signed else (0, (1 << bits) - 1)


def accepted_range(target: dtype) -> tuple[int, int]:
    """Return the integers a type takes: unsigned types let small negative ones wrap."""
    smallest, largest = integer_range(target)
    return (smallest if target.is_signed else -largest), largest


def refuse_negative_strides(array: npt.NDArray[Any]) -> None:
    """Raise on an array that runs backwards, which no tensor can."""
    if min(array.strides, default=0) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides "
            "are not currently supported. (You can probably work around this by making a copy of your array "
            " with array.copy().) "
        )


def type_name(described: builtins.type) -> str:
    module = described.__module__
    if module.partition(".")[0] in ("numpy", "ml_dtypes", "decimal"):
        return f"{module}.{described.__name__}"
    if described is dtype or (module.partition(".")[0] in ("retrograd", "torch") and described.__name__ != "Tensor"):
        return f"torch.{described.__name__}"
    return described.__name__
