"""Arrays without elements: the values of tensors on torch's meta device.

Note [Meta arrays]
A `MetaArray` has a shape, strides and a dtype, and no memory. It is an array type like a dual or a batch: primitives, rules and
decompositions run on it unchanged, over a vocabulary of its own (`meta_namespace.py`), and every step gives the shape and the dtype that
it would give on numbers.
- Views are exact: each array holds a stand-in, a NumPy array of its shape and strides over one element, and a view is NumPy's view of the
  stand-in. Nothing may read a stand-in: only its first element exists.
- What NumPy's functions do with it is said in `__array_ufunc__` (elementwise functions, reductions, products of matrices: shapes by their
  signatures, dtypes by running them on one element) and in `__array_function__` (a rule for each function, `meta_functions.py`).
- Anything that wants elements raises. So what has no shape rule cannot compute with rubbish.
- `isinstance(x, np.ndarray)` holds, because code that asks it wants to know about strides and views; `type(x) is np.ndarray`, by which the
  quick ways are chosen, does not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.lib.stride_tricks import as_strided

from .arrays import is_meta
from .memory_order import dense_strides, output_order

NO_DATA = "Cannot copy out of meta tensor; no data!"
NO_ITEM = "Tensor.item() cannot be called on meta tensors"

BYTE = np.dtype(np.uint8)
_elements: dict[np.dtype[Any], Any] = {}  # the one element of all stand-ins of a dtype
_addresses = itertools.count(1 << 62, 1 << 40)  # where memory would start: tells apart what would be apart


class MetaArray(NDArrayOperatorsMixin):
    """A shape, strides and a dtype. See Note [Meta arrays]."""

    __slots__ = ("__weakref__", "_start", "base", "standin")
    is_meta = True
    __class__ = property(lambda self: np.ndarray)  # see the note
    base: MetaArray | None
    standin: Any
    _start: int

    def __init__(self, standin: Any, base: MetaArray | None = None) -> None:
        self.standin = standin
        self.base = None if base is None else base if base.base is None else base.base
        self._start = next(_addresses) if self.base is None else self.base._start

    # ---- what it has ----
    @property
    def vocabulary(self) -> Any:
        from .meta_namespace import meta_namespace

        return meta_namespace

    shape = property(lambda self: self.standin.shape)
    strides = property(lambda self: self.standin.strides)
    dtype = property(lambda self: self.standin.dtype)
    ndim = property(lambda self: self.standin.ndim)
    size = property(lambda self: self.standin.size)
    itemsize = property(lambda self: self.standin.itemsize)
    nbytes = property(lambda self: self.standin.nbytes)
    flags = property(lambda self: self.standin.flags)

    @property
    def address(self) -> int:
        """Return where the first element would lie."""
        first = _element(self.dtype).__array_interface__["data"][0]
        own: int = self.standin.__array_interface__["data"][0]
        return self._start + (own - first if self.size and self.base is not None else 0)

    def __len__(self) -> int:
        return len(self.standin)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"MetaArray({self.shape}, {self.dtype})"

    __hash__ = object.__hash__

    # ---- what it does not have ----
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise NotImplementedError(NO_DATA)

    def get(self) -> Any:
        """Refuse to bring elements to the CPU: CuPy's name for it."""
        raise NotImplementedError(NO_DATA)

    def tolist(self) -> Any:
        raise NotImplementedError(NO_DATA)

    def item(self, *args: Any) -> Any:
        raise RuntimeError(NO_ITEM)

    __bool__ = __int__ = __float__ = __complex__ = __index__ = item

    # ---- views ----
    def _as_view(self, standin: Any) -> MetaArray:
        return MetaArray(standin, self)

    def transpose(self, *axes: Any) -> MetaArray:
        return self._as_view(self.standin.transpose(*axes))

    def swapaxes(self, one: int, other: int) -> MetaArray:
        return self._as_view(self.standin.swapaxes(one, other))

    def squeeze(self, axis: Any = None) -> MetaArray:
        return self._as_view(self.standin.squeeze(axis))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> MetaArray:
        return self._as_view(self.standin.diagonal(offset, axis1, axis2))

    T = property(lambda self: self._as_view(self.standin.T))
    mT = property(lambda self: self._as_view(self.standin.mT))  # noqa: N815 - NumPy's name

    def _real(self) -> MetaArray:
        return self._as_view(self.standin.real)

    def _imag(self) -> MetaArray:
        return self._as_view(self.standin.imag) if self.dtype.kind == "c" else fresh(self.shape, self.dtype)

    def _write_part(self, value: Any) -> None:
        self._check_fits(value)

    real, imag = property(_real, _write_part), property(_imag, _write_part)

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> MetaArray:
        shape = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
        try:
            return self._as_view(np.reshape(self.standin, shape, copy=False))
        except ValueError:
            sizes = np.reshape(_over_one(self.dtype, self.shape, (0,) * self.ndim), (-1,), copy=False)
            return fresh(np.reshape(sizes, shape, copy=False).shape, self.dtype)  # raises if the sizes do not fit

    def ravel(self, order: str = "C") -> MetaArray:
        return self.reshape(-1)

    def flatten(self, order: str = "C") -> MetaArray:
        return fresh((self.size,), self.dtype)

    def view(self, dtype: Any = None, *rest: Any) -> MetaArray:
        if dtype is None or (isinstance(dtype, type) and issubclass(dtype, np.ndarray)):
            return self._as_view(self.standin)
        dtype = np.dtype(dtype)
        old, new = self.itemsize, dtype.itemsize
        shape, steps = list(self.shape), list(self.strides)
        if old != new:
            if not shape or (steps[-1] != old and shape[-1] != 1) or shape[-1] * old % new:
                raise ValueError(
                    "the last axis must be contiguous, and its size in bytes a multiple of the new dtype's"
                )
            shape[-1], steps[-1] = shape[-1] * old // new, new
        return self._as_view(_over_one(dtype, tuple(shape), tuple(steps)))

    def __getitem__(self, index: Any) -> MetaArray:
        index = index if isinstance(index, tuple) else (index,)
        if any(_is_array(part) for part in index):
            return fresh(indexed_shape(self.shape, index), self.dtype)
        return self._as_view(self.standin[(*index, *(() if Ellipsis in index else (...,)))])

    # ---- writes: sizes are checked, and nothing happens ----
    def __setitem__(self, index: Any, value: Any) -> None:
        part = self if index is Ellipsis else self[index]
        part._check_fits(value)

    def _check_fits(self, value: Any) -> None:
        shape = np.shape(value) if type(value) is not MetaArray else value.shape
        lead = max(len(shape) - self.ndim, 0)
        shown = np.broadcast_shapes(self.shape, shape[lead:])
        if shown != self.shape or any(n != 1 for n in shape[:lead]):
            raise ValueError(f"could not broadcast input array from shape {shape} into shape {self.shape}")

    def fill(self, value: Any) -> None:
        """Do nothing."""

    def sort(self, axis: int = -1, **_: Any) -> None:
        """Do nothing."""

    partition = fill

    # ---- new arrays ----
    def copy(self, order: str = "C") -> MetaArray:
        return fresh(self.shape, self.dtype) if order == "C" else like(self)

    def astype(self, dtype: Any, order: str = "K", copy: bool = True, **_: Any) -> MetaArray:
        dtype = np.dtype(dtype)
        return self if not copy and dtype == self.dtype else like(self, dtype)

    def conj(self) -> MetaArray:
        return like(self)

    conjugate = conj

    def _reduced(self, name: str, axis: Any, keepdims: bool, dtype: Any, out: Any = None) -> Any:
        sample = getattr(np.ones(1, self.dtype), name)(**({} if dtype is None else {"dtype": dtype}))
        return _into(out, reduced(self, axis, keepdims, sample.dtype))

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **_: Any) -> Any:
        return self._reduced("sum", axis, keepdims, dtype, out)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **_: Any) -> Any:
        return self._reduced("prod", axis, keepdims, dtype, out)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **_: Any) -> Any:
        return self._reduced("mean", axis, keepdims, dtype, out)

    def var(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        return self._reduced("var", axis, keepdims, dtype, out)

    def std(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        return self._reduced("std", axis, keepdims, dtype, out)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False, **_: Any) -> Any:
        self._refuse_empty(axis, "maximum")
        return _into(out, reduced(self, axis, keepdims, self.dtype))

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False, **_: Any) -> Any:
        self._refuse_empty(axis, "minimum")
        return _into(out, reduced(self, axis, keepdims, self.dtype))

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False, **_: Any) -> Any:
        return _into(out, reduced(self, axis, keepdims, np.dtype(bool)))

    all = any

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        self._refuse_empty(axis, "argmax")
        return _into(out, reduced(self, axis, keepdims, np.dtype(np.intp)))

    argmin = argmax

    def _refuse_empty(self, axis: Any, name: str) -> None:
        axes = range(self.ndim) if axis is None else normalised(axis, self.ndim)
        if any(self.shape[k] == 0 for k in axes) and reduced(self, axis, False, self.dtype).size:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return self._accumulated("cumsum", axis, dtype, out)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return self._accumulated("cumprod", axis, dtype, out)

    def _accumulated(self, name: str, axis: Any, dtype: Any, out: Any) -> Any:
        kind = getattr(np.ones(1, self.dtype), name)(dtype=dtype).dtype
        return _into(out, fresh((self.size,) if axis is None else self.shape, kind))

    def argsort(self, axis: int = -1, **_: Any) -> MetaArray:
        return fresh(self.shape, np.dtype(np.intp))

    def argpartition(self, kth: Any, axis: int = -1, **_: Any) -> MetaArray:
        return fresh(self.shape, np.dtype(np.intp))

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
        shape, at = (self.shape, axis % self.ndim) if axis is not None else ((self.size,), 0)
        return _into(out, fresh((*shape[:at], *_shape(indices), *shape[at + 1 :]), self.dtype))

    def repeat(self, repeats: Any, axis: Any = None) -> MetaArray:
        if type(repeats) is MetaArray:
            raise NotImplementedError("cannot repeat_interleave a meta tensor without output_size")
        shape, at = (self.shape, axis % self.ndim) if axis is not None else ((self.size,), 0)
        counts = np.broadcast_to(np.asarray(repeats), (shape[at],))
        return fresh((*shape[:at], int(counts.sum()), *shape[at + 1 :]), self.dtype)

    def clip(self, low: Any = None, high: Any = None, out: Any = None, **_: Any) -> Any:
        return _into(out, like(self))

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        return _into(out, like(self))

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
        return self.diagonal(offset, axis1, axis2).sum(-1, dtype=self.dtype if dtype is None else dtype, out=out)

    def nonzero(self) -> Any:
        raise NotImplementedError("how many elements are not zero depends on their values")

    def dot(self, other: Any) -> Any:
        from .meta_functions import dot

        return dot(self, other)

    # ---- NumPy's protocols ----
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if method == "at":
            return None
        options.pop("where", None)
        options.pop("order", None)
        if method == "__call__":
            found = _called(ufunc, inputs, options)
        elif method == "reduce":
            axis, keepdims = options.pop("axis", 0), options.pop("keepdims", False)
            options.pop("initial", None)
            sample = ufunc.reduce(np.ones(1, inputs[0].dtype), **options)
            found = reduced(inputs[0], axis, keepdims, sample.dtype)
        elif method == "accumulate":
            options.pop("axis", None)
            found = fresh(inputs[0].shape, ufunc.accumulate(np.ones(1, inputs[0].dtype), **options).dtype)
        elif method == "reduceat":
            sizes, axis = list(inputs[0].shape), options.pop("axis", 0)
            sizes[axis] = _shape(inputs[1])[0]
            found = fresh(sizes, ufunc.reduce(np.ones(1, inputs[0].dtype), **options).dtype)
        else:
            shape = _shape(inputs[0]) + _shape(inputs[1])
            found = fresh(shape, ufunc(*[one_element(x) for x in inputs], **options).dtype)
        if out is None:
            return found
        outs = out if isinstance(out, tuple) else (out,)
        founds = found if isinstance(found, tuple) else (found,)
        written = tuple([_into(one, made) for one, made in zip(outs, founds, strict=True)])
        return written if isinstance(found, tuple) else written[0]

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from .meta_functions import call

        return call(function, args, options)

    def __reduce__(self) -> Any:
        return with_strides, (self.shape, tuple([n // self.itemsize for n in self.strides]), self.dtype)

    def __copy__(self) -> MetaArray:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> MetaArray:
        return memo.setdefault(id(self), self.copy("K"))  # type: ignore[no-any-return]


def with_strides(shape: Any, strides: Any, dtype: Any) -> MetaArray:
    """Make an array of given strides, in elements."""
    dtype = np.dtype(dtype)
    return MetaArray(_over_one(dtype, shape, tuple([n * dtype.itemsize for n in strides])))


# ---- making them ----
def _element(dtype: np.dtype[Any]) -> Any:
    found = _elements.get(dtype)
    if found is None:
        bytes_ = dtype.itemsize == 1 and dtype.kind not in "biu"  # float8, whose name stride tricks do not know
        found = _elements[dtype] = _element(BYTE).view(dtype) if bytes_ else np.zeros(1, dtype)
    return found


def _over_one(dtype: np.dtype[Any], shape: Any, strides: Any) -> Any:
    """Return a stand-in: shape and strides over one element."""
    element = _element(dtype)
    if element.base is None:
        return as_strided(element, shape, strides)
    return as_strided(element.base, shape, strides).view(dtype)


def fresh(shape: Any, dtype: Any, order: Sequence[int] | None = None) -> MetaArray:
    """Make an array whose dimensions follow each other densely, in `order` if one is given, innermost first."""
    dtype = np.dtype(dtype)
    shape = (int(shape),) if hasattr(shape, "__index__") else tuple([int(n) for n in shape])
    if math.prod(shape) * dtype.itemsize > (1 << 63) - 1:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    if order is None:
        steps = dense_strides(shape)
    else:
        found, step = [0] * len(shape), 1
        for k in order:
            found[k] = step
            step *= max(shape[k], 1)
        steps = tuple(found)
    return MetaArray(_over_one(dtype, shape, tuple([n * dtype.itemsize for n in steps])))


def like(array: Any, dtype: Any = None) -> MetaArray:
    """Make an array in the order of another, as NumPy keeps it."""
    return fresh(array.shape, array.dtype if dtype is None else dtype, result_order(array.shape, [array]))


def result_order(shape: Any, operands: Sequence[Any]) -> list[int] | None:
    """Return the order of dimensions of an elementwise result; None where it is the usual."""
    if len(shape) < 2 or 0 in shape:
        return None
    steps = []
    for one in operands:
        if isinstance(one, np.ndarray) and one.ndim:
            lead = len(shape) - one.ndim
            own = [
                0 if n != shape[k + lead] else s for k, (n, s) in enumerate(zip(one.shape, one.strides, strict=True))
            ]
            steps.append([0] * lead + own)
    if all(isinstance(one, np.ndarray) and one.flags.c_contiguous and one.shape == shape for one in operands):
        return None
    return output_order(shape, steps)


def reduced(x: Any, axis: Any, keepdims: bool, dtype: Any) -> MetaArray:
    """Make the result of a reduction."""
    axes = set(range(x.ndim)) if axis is None else normalised(axis, x.ndim)
    kept = [k for k in range(x.ndim) if k not in axes]
    shape = tuple([x.shape[k] for k in kept])
    if keepdims:
        return fresh(tuple([1 if k in axes else n for k, n in enumerate(x.shape)]), dtype)
    order = None if x.flags.c_contiguous else output_order(shape, [[x.strides[k] for k in kept]])
    return fresh(shape, dtype, order)


def normalised(axis: Any, ndim: int) -> set[int]:
    """Return axes counted from the front."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for one in axes:
        if not -max(ndim, 1) <= one < max(ndim, 1):
            raise np.exceptions.AxisError(one, ndim)
    return {one % ndim for one in axes if ndim}


def _shape(value: Any) -> tuple[int, ...]:
    return value.shape if hasattr(value, "shape") else np.shape(value)


def one_element(value: Any, rank: int = 1) -> Any:
    """Return what stands for an operand where only dtypes matter: one element, or the number itself."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.ones((1,) * rank, value.dtype)
    return value


def _into(out: Any, made: Any) -> Any:
    out = out[0] if isinstance(out, tuple) else out
    if out is None:
        return made
    if type(out) is not MetaArray:
        raise NotImplementedError(NO_DATA)
    out._check_fits(made)
    return out


def _called(ufunc: Any, inputs: Sequence[Any], options: Any) -> Any:
    if ufunc.signature is None:
        shape = np.broadcast_shapes(*[_shape(x) for x in inputs])
        sample = ufunc(*[one_element(x) for x in inputs], **options)
        order = result_order(shape, inputs)
        if isinstance(sample, tuple):
            return tuple([fresh(shape, one.dtype, order) for one in sample])
        return fresh(shape, sample.dtype, order)
    shapes, ranks = core_shapes(ufunc, [_shape(x) for x in inputs])
    sample = ufunc(*[one_element(x, rank) for x, rank in zip(inputs, ranks, strict=True)], **options)
    if isinstance(sample, tuple):
        return tuple([fresh(shape, one.dtype) for shape, one in zip(shapes, sample, strict=True)])
    return fresh(shapes[0], sample.dtype)


def core_shapes(ufunc: Any, shapes: Sequence[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return the shapes of the results of a generalised ufunc, by its signature, and the ranks that its operands have there."""
    given, made = (side.strip("()").split("),(") for side in ufunc.signature.replace(" ", "").split("->"))
    names = [[one for one in part.split(",") if one] for part in given]
    sizes: dict[str, int] = {}
    missing: set[str] = set()
    leads, ranks = [], []
    for operand, (own, shape) in enumerate(zip(names, shapes, strict=True)):
        while len(own) > len(shape) and any(one.endswith("?") for one in own):
            gone = next(one for one in own if one.endswith("?"))
            missing.add(gone)
            own.remove(gone)
        if len(own) > len(shape):
            raise ValueError(f"{ufunc.__name__}: Input operand {operand} does not have enough dimensions")
        cut = len(shape) - len(own)
        leads.append(shape[:cut])
        ranks.append(len(own))
        for name, n in zip(own, shape[cut:], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(
                    f"{ufunc.__name__}: Input operand {operand} has a mismatch in its core dimension, with gufunc signature "
                    f"{ufunc.signature} (size {n} is different from {sizes[name]})"
                )
    lead = np.broadcast_shapes(*leads)
    outs = [[one for one in part.split(",") if one and one not in missing] for part in made]
    return [(*lead, *[sizes[one] for one in own]) for own in outs], ranks


# ---- indices ----
def _is_array(part: Any) -> bool:
    return isinstance(part, (np.ndarray, list, np.bool_, bool))


def indexed_shape(shape: tuple[int, ...], index: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of what an index with arrays among its parts selects."""
    parts: list[Any] = []
    for part in index:
        if isinstance(part, (bool, np.bool_, list)):
            part = np.asarray(part)
        if isinstance(part, np.ndarray) and part.dtype.kind == "b":
            if is_meta(part):
                raise NotImplementedError(
                    "a mask on the meta device: how many elements it selects depends on its values"
                )
            parts += (
                [np.nonzero(part)[0]] * 1 + [_Rest] * (part.ndim - 1) if part.ndim else [None, np.arange(int(part))]
            )
        else:
            parts.append(part)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    at = next((k for k, part in enumerate(parts) if part is Ellipsis), None)
    free = [slice(None)] * (len(shape) - used)
    parts = [*parts, *free] if at is None else [*parts[:at], *free, *parts[at + 1 :]]
    if len(shape) < used:
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    arrays = [k for k, part in enumerate(parts) if _advances(part)]
    chosen = np.broadcast_shapes(*[_shape(parts[k]) for k in arrays if parts[k] is not _Rest])
    together = arrays == list(range(arrays[0], arrays[-1] + 1))
    out: list[int] = [] if together else list(chosen)
    sizes = iter(shape)
    for k, part in enumerate(parts):
        if part is None:
            out.append(1)
            continue
        size = next(sizes)
        if _advances(part):
            if together and k == arrays[0]:
                out += chosen
        else:
            out.append(len(range(*part.indices(size))))
    return tuple(out)


class _Rest:
    """The further axes that a mask of several dimensions takes."""


def _advances(part: Any) -> bool:
    return part is _Rest or not (part is None or isinstance(part, slice))
