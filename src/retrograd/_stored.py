"""Arrays of dtypes that torch keeps in memory and hardly computes in: wide unsigned integers, complex32, the float8s.

Note [Dtypes that only store]
A tensor of such a dtype has a `StoredArray`. Every quick path asks for exactly `numpy.ndarray`, so none takes it, and the
usual dtypes pay nothing; `Primitive.run` meets it and asks `run_stored` what torch's CPU has. `OPERATIONS` is the only
place that says so: an operation that is not in it raises torch's error. What is left runs on the memory as it is, or, where
NumPy does not know the dtype, on wider numbers (`widened`) whose results are rounded once.
Casts in either direction are `convert`, with torch's rounding: `astype` and writes into a StoredArray go there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from . import _dtypes
from ._dtypes import COMPLEX_KIND, FLOAT_KIND, INT_KIND, STORED_NUMBERS, TWO_BYTE_FLOATS, from_numpy, uint8
from ._warnings import REAL_PART_ONLY, warn_once

COMPLEX32 = _dtypes.complex32.numpy
FLOAT8 = {each.numpy: each.name for each in _dtypes.FLOAT8_DTYPES}
E4M3FN, E5M2, E8M0 = (_dtypes.dtype_named(f"float8_{form}").numpy for form in ("e4m3fn", "e5m2", "e8m0fnu"))
HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)

# ---- what torch's CPU computes in them, by the names of primitives ----


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> dict[str, str]:
    return dict([pair.split("=") for pair in text.split()])


_VIEWS = _names(
    "alias reshape permute_dims broadcast_to expand_dims squeeze getitem diagonal as_strided restride unfold"
)
_MOVES = _VIEWS | _names(
    """astype copy copy_in_order concat stack index where roll tile block_diag put_diagonal constant_pad zeros_like ones_like
    write_part overwrite pick_rows drawn_with_two each_sample enter_batch leave_batch to_device forget"""
)
_ANY = _MOVES | _names("equal not_equal isnan any all multiply contract real conj")
_PRODUCTS = _names("matmul matmul_nt linear_map addmm affine")
OPERATIONS = {
    "unsigned": _ANY
    | _names(
        """bitwise_and bitwise_or bitwise_xor floor ceil trunc round isinf isfinite signbit nan_to_num sum prod cumsum cumprod
        sort argsort"""
    ),
    "float8": _ANY | _PRODUCTS | _names("abs index_put"),
    "complex32": _ANY
    | _names(
        """add subtract add_scaled subtract_scaled subtract_from negative abs conj_physical sgn addcmul isinf isfinite masked_fill
        index_add scatter_add scatter_add_zeros index_put triangle count_nonzero argwhere nonzero_static imag view_as_real norm
        var std embedding"""
    ),
}
_ONLY_SOME = {"isinf": {"float8_e5m2"}, "isfinite": {"float8_e5m2", "float8_e8m0fnu"}}
_NOT_E8M0 = _PRODUCTS | _names("abs index_put")

# Torch's names of the kernels that say they lack a dtype: {} is the operation's name, and {}_cpu the rule.
_KERNELS = dict.fromkeys(
    _names("""exp expm1 exp2 log log1p log2 log10 sqrt sin cos tan sinh cosh tanh arcsin arccos arctan floor ceil trunc round erf
    erfc erfinv lgamma"""), "{}_vml_cpu",
) | dict.fromkeys(_names("isinf isfinite trace nan_to_num masked_fill matmul triangle masked_scatter cdist index_put"), "{}")  # fmt: skip
_KERNELS |= _pairs(
    """add=add_stub subtract=add_stub add_scaled=add_stub subtract_scaled=add_stub subtract_from=add_stub
    power=pow power_scalar=pow power_base=pow square=pow ldexp=pow divide_floor=div_floor_cpu divide_trunc=div_trunc_cpu
    floor_divide=div_floor_cpu addcmul=addcmul_cpu_out addcdiv=addcdiv_cpu_out lerp=lerp_kernel_scalar sgn=sign_cpu
    less=lt_cpu less_equal=le_cpu greater=gt_cpu greater_equal=ge_cpu left_shift=lshift_cpu right_shift=rshift_cpu
    invert=bitwise_not_cpu relu=clamp_min_scalar_cpu clip=clamp_scalar_cpu gelu=GeluKernelImpl
    max=max_values_cpu min=min_values_cpu max_of_all=max_all min_of_all=min_all max_at=max_cpu min_at=min_cpu mean=sum_cpu
    prod=prod_out_cpu cumsum=cumsum_out_cpu cumprod=cumprod_out_cpu norm=norm_cpu xor_sum=xor_sum_cpu
    sort=sorting_kernel_method_name argsort=sorting_kernel_method_name searchsorted=searchsorted_out_cpu
    argwhere=nonzero_count_cpu nonzero_static=nonzero_count_cpu count_nonzero=nonzero_count_cpu
    take_along=scatter_gather_tensor_cpu place_along=scatter_gather_tensor_cpu scatter_assign=scatter_gather_tensor_cpu
    scatter_add=scatter_gather_tensor_cpu index_add=index_add_ put=take_put_cpu rot90=flip_cpu cross=cross
    linear_map=addmm_impl_cpu_ matmul_nt=addmm_impl_cpu_ addmm=addmm_impl_cpu_ affine=addmm_impl_cpu_
    NativeLayerNormBackward0=LayerNormKernelImpl MseLossBackward0=mse_cpu"""
)


def plain(value: Any) -> Any:
    """Return an array's memory as NumPy's own array."""
    return value.view(np.ndarray) if type(value) is StoredArray else value


class StoredArray(np.ndarray):
    """An array that no quick path takes. See Note [Dtypes that only store]."""

    __slots__ = ()
    stores_only = True

    def astype(  # type: ignore[override]
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """Cast as torch does."""
        wanted = np.dtype(dtype)
        return self if not copy and wanted == self.dtype else convert(self, wanted)

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """Read the memory as another dtype, or as another class of array."""
        if type is not None or (isinstance(dtype, builtin_type) and issubclass(dtype, np.ndarray)):
            return super().view(dtype if type is None else type)
        raw = super().view(np.ndarray)
        return as_storage_only(raw if dtype is None else raw.view(dtype))

    def fill(self, value: Any) -> None:
        """Write one value everywhere."""
        self[...] = value

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write what becomes of a value in this dtype."""
        if getattr(value, "dtype", None) != self.dtype:
            value = convert(value, self.dtype)
        plain(self)[index] = plain(value)

    def item(self, *args: Any) -> Any:
        """Return an element as a Python number."""
        return widened(self).item(*args)

    def tolist(self) -> Any:
        """Return Python numbers."""
        return widened(self).tolist()

    def __bool__(self) -> bool:
        """Tell whether the only element is not zero."""
        return bool(widened(self))

    @property  # type: ignore[misc]
    def real(self) -> Any:
        """Return the real part, on the same memory."""
        return plain(self)["real"] if self.dtype == COMPLEX32 else self

    @property  # type: ignore[misc]
    def imag(self) -> Any:
        """Return the imaginary part, on the same memory."""
        return plain(self)["imag"] if self.dtype == COMPLEX32 else as_storage_only(np.zeros(self.shape, self.dtype))

    def any(self, *args: Any, **options: Any) -> Any:
        """Tell whether an element is not zero."""
        return widened(self).any(*args, **options)

    def all(self, *args: Any, **options: Any) -> Any:
        """Tell whether no element is zero."""
        return widened(self).all(*args, **options)

    def nonzero(self) -> Any:
        """Return where elements are not zero, if torch would."""
        if "argwhere" not in OPERATIONS[family_of(from_numpy(self.dtype))]:
            refuse("argwhere", "argwhere", self.dtype)
        return widened(self).nonzero()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Refuse, by the same table, what reaches NumPy past `run_stored`."""
        dtype = next(one.dtype for one in inputs if type(one) is StoredArray)
        if ufunc.__name__ not in OPERATIONS[family_of(from_numpy(dtype))] or method != "__call__" or options:
            refuse(ufunc.__name__, ufunc.__name__, dtype)
        return _narrowed(ufunc(*[_wide(one, dtype) for one in inputs]), dtype)


builtin_type = type


def refuse(name: str, torch_name: str, dtype: np.dtype[Any]) -> NoReturn:
    """Raise torch's error of a kernel that has no version for a dtype."""
    kernel = _KERNELS.get(name, "{}_cpu").format(torch_name)
    scalar = from_numpy(dtype)._scalar_name
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar}'\nHint: {_hint(dtype)}")


def _hint(dtype: np.dtype[Any]) -> str:
    wide = "int64" if dtype.kind == "u" else "complex64" if dtype == COMPLEX32 else "float32"
    return (
        f"torch.{from_numpy(dtype).name} is a format to keep numbers in; compute in torch.{wide} and cast the result."
    )


def family_of(described: _dtypes.dtype) -> str:
    """Return the key of a dtype in `OPERATIONS`."""
    if described.kind == _dtypes.INT_KIND:
        return "unsigned"
    return "complex32" if described.is_complex else "float8"


# ---- calling a primitive ----
def run_stored(primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run a primitive on raw arrays, at least one of which is a StoredArray. See Note [Dtypes that only store]."""
    dtype = next(arg.dtype for arg in args if type(arg) is StoredArray)
    name = primitive.name
    described = from_numpy(dtype)
    family = family_of(described)
    if name not in OPERATIONS[family] and described.name not in _ONLY_SOME.get(name, ()):
        _refuse_call(primitive, args, params, dtype)
    if dtype == E8M0 and name in _NOT_E8M0:
        _refuse_call(primitive, args, params, dtype)
    if name == "matmul" and _matrix_kernel(args) != "addmm_impl_cpu_":
        _refuse_call(primitive, args, params, dtype)
    if name == "multiply" and family == "float8" and not all(hasattr(arg, "dtype") for arg in args):
        raise NotImplementedError(f"\"mul_cpu_reduced_float\" not implemented for '{described._scalar_name}'")
    if name == "astype":
        return convert(args[0], np.dtype(getattr(params["dtype"], "numpy", params["dtype"])))
    if name == "view_as_real":
        return np.asarray(plain(args[0]))[..., None].view(HALF)
    if name in ("real", "imag"):
        return getattr(args[0], name)
    as_it_is = name in _VIEWS or family == "unsigned" or (family == "float8" and name in _MOVES)
    if as_it_is:
        return _kept(primitive.run([_beside(plain(arg), dtype) for arg in args], params))
    return _narrowed(primitive.run([_wide(arg, dtype) for arg in args], params), dtype)


def _matrix_kernel(args: Sequence[Any]) -> str:
    ranks = {np.ndim(arg) for arg in args}
    return {1: "dot", 2: "addmm_impl_cpu_"}.get(max(ranks), "bmm") if len(ranks) == 1 else "addmv_impl_cpu_"


def _refuse_call(primitive: Any, args: Sequence[Any], params: dict[str, Any], dtype: np.dtype[Any]) -> NoReturn:
    """Refuse a call whose kernel depends on more than the primitive."""
    name = primitive.torch
    if primitive.name == "matmul":
        name = _matrix_kernel(args)
    elif primitive.name == "triangle":
        name = "triu" if params["upper"] else "tril"
    refuse(primitive.name, name, dtype)


def _wide(arg: Any, dtype: np.dtype[Any]) -> Any:
    """Return what is computed with instead of an operand; torch rounds a number to the dtype first."""
    if type(arg) in (bool, int, float, complex):
        return widened(convert(arg, dtype))[()]
    return widened(arg) if getattr(arg, "dtype", None) == dtype else arg


def _beside(arg: Any, dtype: np.dtype[Any]) -> Any:
    """Give a number that stands beside an array the array's dtype; NumPy would widen."""
    if type(arg) in (int, float, bool):
        return plain(convert(arg, dtype))
    return arg


def _kept(out: Any) -> Any:
    """Let results of these dtypes be StoredArrays again."""
    return tuple([_kept(part) for part in out]) if type(out) is tuple else as_storage_only(out)


def _narrowed(out: Any, dtype: np.dtype[Any]) -> Any:
    """Round the results of a wider computation once."""
    if type(out) is tuple:
        return tuple([_narrowed(part, dtype) for part in out])
    if out.dtype.kind == "c" or (out.dtype == SINGLE and dtype != COMPLEX32):
        return convert(out, dtype)
    return out.astype(HALF) if out.dtype == SINGLE else out


def as_storage_only(array: Any) -> Any:
    """Return an array as one that refuses what its dtype has no operation for, if it is of such a dtype."""
    if array.dtype.num not in STORED_NUMBERS or not isinstance(array, (np.ndarray, np.generic)):
        return array
    return array if getattr(array, "is_meta", False) else np.asarray(array).view(StoredArray)


# ---- casts ----
def cast_array(array: Any, target: np.dtype[Any]) -> Any:
    """Copy an array into another type the way `Tensor.to` converts."""
    if array.dtype == target:
        return array.copy(order="K")
    if target.num in STORED_NUMBERS:
        return convert(array, target)
    source_kind, target_kind = from_numpy(array.dtype).kind, from_numpy(target).kind
    if source_kind == COMPLEX_KIND and target_kind in (INT_KIND, FLOAT_KIND):
        warn_once(REAL_PART_ONLY)
        array, source_kind = array.real, FLOAT_KIND
    step: type[np.generic] | None = None
    if target in TWO_BYTE_FLOATS and array.dtype not in TWO_BYTE_FLOATS:
        # PyTorch rounds twice on the way to the two-byte floats.
        step = np.float32
    elif source_kind == FLOAT_KIND and target_kind == INT_KIND and target.itemsize < 4:
        # Numbers out of range wrap instead of meeting whatever the C compiler made of the cast.
        step = np.int64 if target == uint8.numpy else np.int32
    with np.errstate(over="ignore", invalid="ignore"):
        return (array if step is None else array.astype(step)).astype(target)


def widened(array: Any) -> Any:
    """Return the values in a dtype that NumPy computes in and that holds them exactly."""
    raw = plain(array)
    if raw.dtype == COMPLEX32:
        out = np.empty(raw.shape, np.complex64)
        out.real, out.imag = raw["real"], raw["imag"]
        return out
    return raw.astype(SINGLE) if raw.dtype in FLOAT8 else raw


def convert(value: Any, wanted: np.dtype[Any]) -> Any:
    """Cast numbers to or from such a dtype as torch does; they are copied."""
    source = widened(value) if type(value) is StoredArray else np.asarray(value)
    if type(value) is StoredArray and value.dtype == wanted:
        return value.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        if wanted == COMPLEX32:
            out = np.empty(source.shape, COMPLEX32)
            out["real"] = source.real.astype(SINGLE)
            out["imag"] = source.imag.astype(SINGLE) if source.dtype.kind == "c" else 0
        elif wanted in FLOAT8:
            out = _to_float8((source.real if source.dtype.kind == "c" else source).astype(SINGLE), wanted)
        elif wanted.kind == "u" and wanted.itemsize > 1:
            out = _to_unsigned(source.real if source.dtype.kind == "c" else source, wanted)
        else:
            return cast_array(source, wanted)
    return out.view(StoredArray)


def _to_unsigned(source: Any, wanted: np.dtype[Any]) -> Any:
    if source.dtype.kind not in "fV":
        return source.astype(wanted)
    if wanted.itemsize == 2:
        return source.astype(SINGLE if source.dtype.kind == "V" else source.dtype).astype(np.int32).astype(wanted)
    source = source.astype(np.float64)
    out = source.astype(np.int64).astype(wanted)  # negative ones wrap
    if wanted.itemsize == 8:
        large = source >= 2.0**63
        out[large] = source[large].astype(wanted)
    return out


def _to_float8(source: Any, wanted: np.dtype[Any]) -> Any:
    if wanted == E8M0:
        return _to_powers_of_two(source)
    out = source.astype(wanted)
    if wanted == E4M3FN:  # which has no infinity: torch takes the largest number for what is too large
        bits = out.view(np.uint8)
        large = np.abs(source) > 448
        bits[large] = np.where(np.signbit(source[large]), 0xFE, 0x7E)
    elif wanted == E5M2:  # of whose NaNs torch makes one
        bits = out.view(np.uint8)
        bits[np.isnan(source)] |= 0x7F
    return out


def _to_powers_of_two(source: Any) -> Any:
    """Keep the exponents of float32, rounded to nearest; the sign goes."""
    bits = np.ascontiguousarray(source).view(np.uint32)
    exponents, rest = (bits >> 23) & 0xFF, bits & 0x7FFFFF
    up = (rest > 0x400000) | ((rest == 0x400000) & (exponents > 0))
    exponents = np.where((exponents < 0xFF) & up, exponents + 1, exponents)
    return exponents.astype(np.uint8).reshape(source.shape).view(E8M0)
