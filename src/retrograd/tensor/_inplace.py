"""In-place operations. See Note [Views and in-place]."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _errors
from .._modes import current_mode
from .._ops import shape as s
from . import _base
from ._base import LEAF, storage_of, wrap
from ._record import plain_scalar, record
from ._leaves import DETACH_INSTEAD, NOT_A_LEAF, is_leaf, set_requires_grad
from ._views import adopt, check_inplace, finish_write, sync_views, write_array, wrote

NUMPY_INTO = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def inplace(name: str, function: Any) -> Any:
    """Make the in-place variant of a function: compute, write, rebase."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_inplace(self, tuple(a for a in args if isinstance(a, _base.Tensor)))
        return adopt(self, function(self, *args, **kwargs), 3)

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"Compute {name} in place."
    return method


def arithmetic(name: str, function: Any) -> Any:
    """Make an in-place arithmetic method; without gradients it writes straight into memory."""
    ufunc = NUMPY_INTO[name]

    def method(self: Any, other: Any, *, alpha: Any = 1, **kwargs: Any) -> Any:
        array = self._array
        value = other._array if isinstance(other, _base.Tensor) else other
        if (
            type(array) is np.ndarray
            and array.dtype.kind == "f"
            and (not current_mode().grad or (self._edge is None and getattr(other, "_edge", None) is None))
            and (type(value) in (float, int) or (isinstance(value, (np.ndarray, np.generic)) and value.dtype is array.dtype))
            and not kwargs
            and array.flags.writeable
            and array.itemsize > 2
        ):
            check_inplace(self)
            if alpha != 1:
                value = value * alpha
            try:
                ufunc(array, value, out=array)
            except ValueError:
                _refuse_shape(array.shape, np.shape(value))
            wrote(self, 3)
            return self
        others = (other,) if isinstance(other, _base.Tensor) else ()
        check_inplace(self, others)
        if alpha != 1:
            kwargs["alpha"] = alpha
        result = function(self, other, **kwargs)
        if result is NotImplemented:
            raise TypeError(f"{name}_(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
        return adopt(self, result, 3)

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"Compute {name} in place."
    return method


def _refuse_shape(own: Any, other: Any) -> None:
    try:
        wide = np.broadcast_shapes(own, other)
    except ValueError:
        raise _errors.broadcast_error(own, other) from None
    raise RuntimeError(
        f"output with shape {_errors.sizes(own)} doesn't match the broadcast shape {_errors.sizes(wide)}"
    )


def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy values from another tensor."""
    return copy_into(self, src, 2)


def copy_into(target: Any, src: Any, depth: int) -> Any:
    """Write `src` into `target`; `depth` is the user's frame, counted from here."""
    if not isinstance(src, _base.Tensor):
        src = wrap(np.asarray(src))
    check_inplace(target, (src,))
    shape = tuple(target._array.shape)
    if tuple(src._array.shape) != shape:
        try:
            fits = np.broadcast_shapes(tuple(src._array.shape), shape) == shape
        except ValueError:
            fits = False
        if not fits:
            own = src._array.shape
            if len(own) > len(shape):
                raise _errors.broadcast_error(shape, own)
            for k in range(1, len(shape) + 1):
                if k <= len(own) and own[-k] not in (1, shape[-k]):
                    raise RuntimeError(
                        f"The expanded size of the tensor ({shape[-k]}) must match the existing size ({own[-k]}) at "
                        f"non-singleton dimension {len(shape) - k}.  Target sizes: {_errors.sizes(shape)}.  Tensor "
                        f"sizes: {_errors.sizes(own)}"
                    )
    mode = current_mode()
    value = src._array
    if value.dtype != target._array.dtype:
        value = s.astype(value, dtype=target._array.dtype)
    tracked = mode.grad and (target._edge is not None or src._edge is not None)
    node = None
    if tracked:
        old = wrap(target._array, target._edge, target._storage)
        node = record(s.overwrite, (_keep_edge(target, old), src), {}, "CopyBackwards", depth + 1)._edge
    write_array(target, value)
    finish_write(target, node, depth + 1)
    return target


def _keep_edge(target: Any, old: Any) -> Any:
    """A leaf cannot be written in grad mode, so its edge is never LEAF here; pass the tensor as it is."""
    return target if target._edge is not LEAF else old


def fill_(self: Any, value: Any) -> Any:
    """Fill with a value."""
    others = (value,) if isinstance(value, _base.Tensor) else ()
    check_inplace(self, others)
    if isinstance(value, _base.Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value._array.ndim} dimensions."
            )
        mode = current_mode()
        node = None
        if mode.grad and (self._edge is not None or value._edge is not None):
            node = record(s.overwrite, (self, value), {}, "FillBackward3", 2)._edge
        array = value._array
        write_array(self, array if array.dtype == self._array.dtype else s.astype(array, dtype=self._array.dtype))
        finish_write(self, node, 2)
        return self
    return _constant(self, plain_scalar(value), "FillBackward2", 3)


def zero_(self: Any) -> Any:
    """Fill with zeros."""
    check_inplace(self)
    return _constant(self, 0, "ZeroBackward0", 3)


def _constant(tensor: Any, value: Any, name: str, depth: int) -> Any:
    node = None
    if current_mode().grad and tensor._edge is not None:
        node = record(s.forget, (tensor,), {}, name, depth)._edge
    if isinstance(value, complex) and tensor._array.dtype.kind != "c":
        raise RuntimeError("value cannot be converted to type float without overflow")
    write_array(tensor, np.asarray(value).astype(tensor._array.dtype)[()])
    finish_write(tensor, node, depth)
    return tensor


def masked_fill_(self: Any, mask: Any, value: Any) -> Any:
    """Write a value where a mask is true."""
    from ._indexing import masked_fill_record

    check_inplace(self, (value,) if isinstance(value, _base.Tensor) else ())
    return adopt(self, masked_fill_record(self, mask, value, 3), 3)


def detach_(self: Any) -> Any:
    """Leave the graph in place."""
    view = None if self._extra is None else self._extra.view
    if view is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
            "detach_() cannot be called on these gradients. To fix this error, please refer to the "
            "Optimizer.zero_grad() function in torch/optim/optimizer.py as a reference."
        )
    self._edge = None
    if self._extra is not None:
        self._extra.retains_grad = False
    if self._storage is not None and self._storage.views is not None:
        sync_views(self._storage)
    return self


def reshaping(name: str, function: Any) -> Any:
    """Make an in-place view method such as `t_`: the tensor itself changes shape."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_inplace(self)
        old = wrap(self._array, self._edge, self._storage)
        if self._edge is LEAF:
            old._edge = None
        result = function(old, *args, **kwargs)
        self._array = result._array
        if current_mode().grad and self._edge is not None and self._edge is not LEAF:
            self._edge = result._edge
        view = None if self._extra is None else self._extra.view
        if view is not None:
            view.steps = (*view.steps, *result._extra.view.steps)
        wrote(self, 3)
        return self

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"Compute {name} in place."
    return method


def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
    """Change whether autograd follows this leaf."""
    if is_leaf(self):
        set_requires_grad(self, bool(requires_grad))
    elif not requires_grad:
        raise RuntimeError(NOT_A_LEAF + DETACH_INSTEAD)
    return self


def set_data(self: Any, value: Any) -> None:
    """Replace the memory (`x.data = y`); graph and version stay."""
    if not isinstance(value, _base.Tensor):
        raise TypeError("Variable data has to be a tensor, but got " + type(value).__name__)
    if (self._edge is not None) and value._array.dtype.kind not in "fcV":
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    self._array = _base.materialise(value)


