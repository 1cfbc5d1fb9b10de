"""In-place operations. See Note [Views and in-place]."""

from __future__ import annotations

import sys
from collections import OrderedDict
from functools import cache
from typing import Any
from weakref import ref

import numpy as np

from ... import _errors
from ..._core.arrays import LevelArray
from ..._core.numpy_namespace import _NUMPY_TYPES, is_half
from ..._graph.cuts import note_cut
from ..._graph.node import Node, Slot, node_class
from ..._graph.unpacked import sums_to
from ..._modes import NO_GRAD, PLAIN, current_mode, read_mode
from ..._native.program import NATIVE, formula
from ..._ops import shape as s
from ..._tracebacks import hide
from ..._warnings import REAL_PART_ONLY, warn, warn_once
from ...overrides import MISSING, answered, arguments, called, handle_torch_function, refuses_itself, taken_by_others
from .. import _base
from .._base import Storage, array_slot, edge_of, storage_of, stored, wrap
from .._object.layout import is_same_memory, refuse_overlap, refuse_repeats, repeats
from .._object.leaves import DETACH_INSTEAD, NOT_A_LEAF, USED_BY, is_leaf, refuse_inside, set_requires_grad
from .._object.numbers import element_of
from .._object.old_attributes import slot_of
from .._recording.flat import EXACT
from .._recording.old_forms import form_of, present_form
from .._recording.operands import plain_scalar
from .._recording.record import make_meta, record
from .._recording.refusals import REFUSED, REFUSED_IN_PLACE, refuse_in_place
from .._recording.unusual_calls import by_function
from .entering import refuse_captured, refuse_new_data, without_tangents
from .views import (
    NOWHERE,
    adopt,
    before_write,
    chained,
    check_inplace,
    finish_write,
    force_views,
    refuse_inference,
    sync_views,
    write_array,
    wrote,
)
from .writers import WRITERS, memory_to_write, value_beside

NDARRAY = np.ndarray
F32, F64, BOOL = np.dtype(np.float32), np.dtype(np.float64), np.dtype(bool)
may_share_memory, putmask = np.may_share_memory, np.putmask
ONE = 1  # a default that is known as itself: CPython has one object of it
ARGUMENTS = frozenset({float, int, bool, str, type(None)})  # besides tensors: what cannot share memory
NUMPY_INTO = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
HALF_INTO = {  # large arrays of half precision, which NumPy computes one by one
    "add": formula(lambda xp, x, y: x + y),
    "sub": formula(lambda xp, x, y: x - y),
    "mul": formula(lambda xp, x, y: x * y),
    "div": formula(lambda xp, x, y: x / y),
}


def may_overlap(one: Any, other: Any) -> bool:
    """Tell whether two arrays may share memory, by their bounds; anything but a NumPy array may."""
    return type(one) is not NDARRAY or type(other) is not NDARRAY or may_share_memory(one, other)


def inplace(name: str, function: Any) -> Any:
    """Make the in-place variant of a function: compute, write, rebase. Without gradients a ufunc writes by itself."""
    ufunc, writer = getattr(function, "ufunc", None), WRITERS.get(name)
    refused = any("f" in kinds for some in (REFUSED, REFUSED_IN_PLACE) for kinds in some.get(name, ()))
    form = form_of(function)
    most = sys.maxsize if form is None else len(form.tensors)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            array = memory_to_write(self)
            if array is not None and ((dtype := array.dtype) is F32 or dtype is F64) and not refused:
                if ufunc is not None and not args and not kwargs:
                    ufunc(array, array)
                    finish_write(self, None)
                    return self
                if writer is not None and writer(array, args, kwargs):
                    finish_write(self, None)
                    return self
                if len(args) <= most and all(
                    [type(a) in ARGUMENTS or value_beside(array, a) is not None for a in args]
                ):
                    result = function(self, *args, **kwargs)
                    out = result._array
                    if out.dtype is dtype and out.shape == array.shape:
                        array[...] = out
                        finish_write(self, None)
                        return self
                    return adopt(self, result)
            if type(self) not in EXACT and isinstance(self, _base.Tensor) and by_function(self):
                return handle_torch_function(method, (self, *args), self, *args, **kwargs)
            if len(args) > most:
                (self, *args), kwargs = present_form(method.__name__, function, (self, *args), kwargs)  # type: ignore[assignment]
                return method(self, *args, **kwargs)
            others = tuple(a for a in args if isinstance(a, _base.Tensor))
            if len(others) < len(args) and not all(
                type(a) is float or type(a) is int or isinstance(a, _base.Tensor) for a in args
            ):
                if taken_by_others(args, kwargs):
                    return handle_torch_function(method, args, self, *args, **kwargs)
                arguments().check(method, (self, *args), kwargs)
            check_inplace(self, others, method.__name__, args, kwargs)
            refuse_in_place(name, self._array.dtype, (*args, *kwargs.values()))
            refuse_repeats(self._array)
            for other in others:
                refuse_overlap(self._array, other._array)
            return adopt(self, function(before_write(self), *args, **kwargs))
        except Exception as error:
            if not isinstance(self, _base.Tensor):
                raise _errors.not_of_tensors(method.__name__, self) from None
            try:
                return answered(method, (self, *args), kwargs, error)
            except Exception as refusal:
                hide(refusal)
                raise

    method.refuses = True  # type: ignore[attr-defined]
    method.__name__ = method.__qualname__ = f"{name}_"
    method.__module__ = sys._getframe(1).f_globals["__name__"]  # which has it under that name
    method.__doc__ = f"""Compute {name} in place.

    The result is written into this tensor, which is returned. The other arguments are those of `torch.{name}`.
    """
    return method


def _of_another(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Stand for the signature of what `arithmetic` makes."""


def arithmetic(name: str, function: Any) -> Any:
    """Make an in-place arithmetic method; without gradients it writes straight into memory. Of two names there is one method."""
    return _arithmetic(function)


@cache
def _arithmetic(function: Any) -> Any:
    name = function.__name__
    ufunc, halves = NUMPY_INTO[name], HALF_INTO[name]

    def method(self: Any, other: Any = MISSING, *more: Any, alpha: Any = 1, **kwargs: Any) -> Any:
        try:
            array = memory_to_write(self)
            is_number = alpha is ONE or type(alpha) is float or type(alpha) is int
            if (
                array is not None
                and ((dtype := array.dtype) is F32 or dtype is F64)
                and is_number
                and not kwargs
                and not more
            ):
                value: Any = other if type(other) is float or type(other) is int else value_beside(array, other)
                if value is not None and (value is other or value.dtype is dtype):
                    try:
                        ufunc(array, value if alpha is ONE else value * alpha, array)
                    except ValueError:
                        _refuse_shape(array.shape, np.shape(value))
                    wrote(self)
                    return self
            elif (
                array is not None
                and array.size >= NATIVE
                and is_half(dtype)
                and alpha is ONE
                and not kwargs
                and not more
            ):
                value = value_beside(array, other)
                if value is not None and value.dtype == dtype and value.shape in ((), array.shape):
                    halves.into([array], array, np.asarray(value))
                    wrote(self)
                    return self
            if type(self) not in EXACT and isinstance(self, _base.Tensor) and by_function(self):
                given = (self, *more) if other is MISSING else (self, other, *more)
                return handle_torch_function(
                    method, given, *given, **(kwargs if alpha is ONE else {**kwargs, "alpha": alpha})
                )
            if more:
                named = kwargs if alpha is ONE else {**kwargs, "alpha": alpha}
                args, kwargs = present_form(method.__name__, function, (self, other, *more), named)
                return method(*args, **kwargs)
            if not isinstance(other, _base.Tensor) and taken_by_others((other,), {}):
                return handle_torch_function(method, (other,), self, other, **kwargs)
            if other is MISSING and "x2" in kwargs:  # NumPy's name
                other = kwargs.pop("x2")
            array = self._array
            value = other._array if isinstance(other, _base.Tensor) else other
            others = (other,) if isinstance(other, _base.Tensor) else ()
            check_inplace(self, others, method.__name__, (other,), kwargs)
            refuse_repeats(array)
            refuse_overlap(array, value)
            if alpha is not ONE:
                kwargs["alpha"] = alpha
            result = function(before_write(self), other, **kwargs)
            if result is NotImplemented:
                raise TypeError(f"{name}_(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
            return adopt(self, result)
        except Exception as error:
            values = (self, *more) if other is MISSING else (self, other, *more)
            named = kwargs if alpha is ONE else {**kwargs, "alpha": alpha}
            if not isinstance(self, _base.Tensor):
                raise _errors.not_of_tensors(method.__name__, self) from None
            try:
                return answered(method, values, named, error)
            except Exception as refusal:
                hide(refusal)
                raise

    method.__wrapped__, method.refuses = _of_another, True  # type: ignore[attr-defined]
    return called(method, f"{name}_", f"Compute {name} in place.")


def _refuse_shape(own: Any, other: Any) -> None:
    try:
        wide = np.broadcast_shapes(own, other)
    except ValueError:
        raise _errors.broadcast_error(own, other) from None
    raise RuntimeError(
        f"output with shape {_errors.sizes(own)} doesn't match the broadcast shape {_errors.sizes(wide)}"
    )


@refuses_itself
def copy_(self: Any, other: Any, non_blocking: bool = False) -> Any:
    """Write the elements of another tensor into this one.

    Args:
        src: the other tensor; it broadcasts, and is converted
        non_blocking: for torch's sake

    Example:
        >>> torch.zeros(2, 2).copy_(torch.tensor([1, 2]))
        tensor([[1., 2.],
                [1., 2.]])
    """
    if non_blocking is not False and non_blocking is not True:
        arguments().check(copy_, (self, other), {"non_blocking": non_blocking})
    try:
        if (mode := read_mode()) is not PLAIN and mode is not NO_GRAD:
            refuse_captured(self, "copy_")
        return copy_into(self, other)
    except Exception as error:
        try:
            return answered(copy_, (self, other), {}, error)
        except Exception as refusal:
            hide(refusal)
            raise


def copy_into(target: Any, src: Any) -> Any:
    """Write `src` into `target`."""
    array = memory_to_write(target)
    value = None if array is None else value_beside(array, src)
    if value is not None and value is not array and value.shape == array.shape and value.dtype is array.dtype:
        array[...] = value
        finish_write(target, None)
        return target
    if not isinstance(src, _base.Tensor):
        arguments().check(copy_, (target, src), {})
        src = wrap(np.asarray(src))
    check_inplace(target, (src,))
    if isinstance(src._array, np.generic) or not may_overlap(target._array, src._array):
        refuse_repeats(target._array)
    elif not is_same_memory(target._array, src._array):  # torch copies nothing then, and refuses nothing
        refuse_repeats(target._array)
        refuse_overlap(target._array, src._array)
    shape = tuple(target._array.shape)
    if tuple(src._array.shape) != shape:
        try:
            fits = np.broadcast_shapes(tuple(src._array.shape), shape) == shape
        except ValueError:
            fits = False
        if not fits:
            _refuse_shape(shape, tuple(src._array.shape))
    mode = current_mode()
    value = src._array
    if value.dtype is not target._array.dtype and value.dtype != target._array.dtype:
        if value.dtype.kind == "c" and target._array.dtype.kind not in "cb":
            warn_once(REAL_PART_ONLY)
        value = s.astype(value, dtype=target._array.dtype)
    tracked = mode.tracks and target._array.dtype.kind in "fcV" and (target._edge is not None or src._edge is not None)
    node = None
    if tracked:
        node = write_node(s.overwrite, (target, src), "CopyBackwards")
    write_array(target, value)
    finish_write(target, node)
    return target


def write_node(primitive: Any, tensors: tuple[Any, ...], name: str) -> Any:
    """Make the node of a write that keeps nothing, without computing what is written."""
    arrays = [tensor._array for tensor in tensors]
    if current_mode() is not PLAIN or not all([type(array) in _NUMPY_TYPES for array in arrays]):
        return record(primitive, tensors, {}, name)._edge
    node = node_class(primitive, name)().begin(tuple([edge_of(tensor) for tensor in tensors]))
    first, last = arrays[0], arrays[-1]
    alike = first.shape == last.shape and first.dtype is last.dtype and (first.dtype is F32 or first.dtype is F64)
    node.meta = None if alike else make_meta(primitive, arrays, first, node._edges)
    return node


@refuses_itself
def fill_(self: Any, value: Any) -> Any:
    """Fill with one value.

    Args:
        value: a number, or a tensor with one element

    Example:
        >>> torch.zeros(2).fill_(3.0)
        tensor([3., 3.])
    """
    try:
        if (mode := read_mode()) is not PLAIN and mode is not NO_GRAD:
            refuse_captured(self, "fill_", (value,))
        if type(value) is float or type(value) is int:
            return _constant(self, value, "FillBackward2")
        if isinstance(value, _base.Tensor):
            return fill_with(self, value)
        return _constant(self, plain_scalar(value), "FillBackward2")
    except Exception as error:
        try:
            return answered(fill_, (self, value), {}, error)
        except Exception as refusal:
            hide(refusal)
            raise


def fill_with(target: Any, value: Any) -> Any:
    """Fill with the value of a 0-d tensor."""
    check_inplace(target, (value,))
    if value._array.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
        )
    refuse_repeats(target._array)
    node = None
    if current_mode().tracks and (target._edge is not None or value._edge is not None):
        node = write_node(s.overwrite, (target, value), "FillBackward3")
    array = value._array
    write_array(target, array if array.dtype == target._array.dtype else s.astype(array, dtype=target._array.dtype))
    finish_write(target, node)
    return target


def zero_(self: Any) -> Any:
    """Fill with zeros.

    Example:
        >>> torch.ones(2).zero_()
        tensor([0., 0.])
    """
    try:
        array = memory_to_write(self)
        if array is not None:
            array.fill(0)
            finish_write(self, None)
            return self
        refuse_captured(self, "zero_")
        return _constant(self, 0, "ZeroBackward0")
    except Exception as error:
        hide(error)
        raise


def _constant(tensor: Any, value: Any, name: str) -> Any:
    array = memory_to_write(tensor)
    if (
        array is not None
        and (type(value) is float or type(value) is int)
        and array.dtype.kind == "f"
        and -6e4 < value < 6e4
    ):
        array.fill(value)
        finish_write(tensor, None)
        return tensor
    check_inplace(tensor)
    node = None
    if current_mode().tracks and tensor._edge is not None:
        node = write_node(s.forget, (tensor,), name)
    write_array(tensor, element_of(value, tensor._array.dtype))
    finish_write(tensor, node)
    return tensor


@refuses_itself
def masked_fill_(self: Any, mask: Any, value: Any) -> Any:
    """Fill with a value, in place, where a mask is True.

    Args:
        mask: a tensor of booleans; it broadcasts
        value: a number, or a tensor with one element

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> x.masked_fill_(x > 1.5, 0.0)
        tensor([1., 0.])
    """
    try:
        array = memory_to_write(self)
        if array is not None and type(value) is float and (array.dtype is F32 or array.dtype is F64):
            chosen = None if type(mask) not in EXACT else mask._array
            if (
                type(chosen) is NDARRAY
                and chosen.dtype is BOOL
                and chosen.shape == array.shape
                and -1e38 < value < 1e38
            ):
                putmask(array, chosen, np.array(value, array.dtype))
                finish_write(self, None)
                return self
        from .._functions.masks import masked_fill_record

        check_inplace(self, (value,) if isinstance(value, _base.Tensor) else (), "masked_fill_", (mask, value))
        if repeats(self._array):
            warn(
                "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
                "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar"
            )
        return adopt(self, masked_fill_record(self, mask, value))
    except Exception as error:
        try:
            return answered(masked_fill_, (self, mask, value), {}, error)
        except Exception as refusal:
            hide(refusal)
            raise


def detach_(self: Any) -> Any:
    """Take the tensor itself out of the graph: it becomes a leaf that requires no gradient.

    Example:
        >>> x = torch.ones(2, requires_grad=True) * 2
        >>> x.detach_().requires_grad
        False
    """
    try:
        refuse_captured(self, "detach_")
        if current_mode().inference:
            return self
        view = None if self._extra is None else self._extra.view
        if view is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        if self._edge is not None:
            note_cut("detach_()", self, self._edge, self)
        if not is_leaf(self):
            # torch's graph keeps the tensor itself, and complains when it finds it detached
            storage_of(self).detached = self._edge
            gone = Storage()
            gone.version, gone.detached, gone.real = -1, self._edge, storage_of(self)
            self._edge._storage = gone
        self._edge = None
        if isinstance(self._array, LevelArray):
            self._array = without_tangents(self._array)
        if self._storage is not None and self._storage.views is not None:
            sync_views(self._storage)
        return self
    except Exception as error:
        hide(error)
        raise


# torch's node names of in-place views, which differ from those of the views
_IN_PLACE_NAMES = {
    "AsStridedBackward0": "AsStridedBackward1",
    "TBackward0": "TBackward1",
    "TransposeBackward0": "TransposeBackward1",
    "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5",
    "UnsqueezeBackward0": "UnsqueezeBackward1",
}


def _undo_first(base: Any, step: Any, shape: tuple[int, ...]) -> None:
    """Let the views of a base that changed its shape in place start from the shape they know."""
    storage = storage_of(base)
    primitive, params = step
    if primitive is s.permute_dims:
        axes = params["axes"]
        undo = (primitive, {"axes": tuple(axes.index(k) for k in range(len(axes)))})
    else:
        undo = (s.reshape, {"shape": shape})
    for one in storage.views or ():
        view = None if (tensor := one()) is None else tensor._extra.view
        if view is not None and view.base is base:
            view.chain = chained((undo, *view.steps))


def _turned(tensor: Any) -> bool:
    """Transpose a matrix that no graph follows and nobody views; tell whether that was possible."""
    mode, storage = read_mode(), tensor._storage
    if (
        (mode is PLAIN or mode is NO_GRAD)
        and type(tensor) in EXACT
        and tensor._edge is tensor._extra is None
        and (storage is None or (not storage.inference and not storage.views))
        and type(array := tensor._array) is NDARRAY
        and array.ndim <= 2
    ):
        tensor._array = array.T
        wrote(tensor)
        return True
    return False


def reshaping(name: str, function: Any) -> Any:
    """Make an in-place view method such as `t_`: the tensor itself changes shape."""
    transposes = name == "t"

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if transposes and not args and not kwargs and _turned(self):
                return self
            check_inplace(self, (), method.__name__, args, kwargs)
            before = stored(self)
            seen = wrap(before, self._edge if current_mode().grad else None, storage_of(self))
            result = function(seen, *args, **kwargs)
            node = result._edge
            refuse_inference(storage_of(self))
            array_slot.__set__(self, result._array)
            view = None if self._extra is None else self._extra.view
            steps = () if result._extra is None or result._extra.view is None else result._extra.view.steps[-1:]
            if view is not None:
                view.chain = chained(steps, view.chain)
            elif steps:
                _undo_first(self, steps[0], tuple(before.shape))
            if isinstance(node, Node) and node is not NOWHERE:
                renamed = node_class(node.primitive, _IN_PLACE_NAMES[type(node).__name__])  # type: ignore[arg-type]
                node.__class__ = renamed
                storage_of(self).written()
                if view is None:  # not `rebase`: a retained gradient stays with the old node
                    self._edge = node
                    storage_of(self).owner = ref(self)
                    force_views(self, storage_of(self))
                else:  # the base keeps its history: only what this view shows has changed
                    self._edge = node
                    view = self._need_extra()
                    view.version, view.was = storage_of(self).version, before
                    sync_views(storage_of(self))
            else:
                if view is None and not is_leaf(self) and self._need_extra().node_shape is None:
                    self._extra.node_shape = tuple(before.shape)
                wrote(self)
            return self
        except Exception as error:
            hide(error)
            raise

    method.refuses = True  # type: ignore[attr-defined]
    return called(method, f"{name}_", f"Compute {name} in place.")


def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
    """Say whether gradients are collected for this tensor, and return it.

    Args:
        requires_grad: True or False

    Example:
        >>> torch.zeros(2).requires_grad_()
        tensor([0., 0.], requires_grad=True)
    """
    try:
        if type(requires_grad) is not bool:
            kind = type(requires_grad).__name__
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {kind}")
        if (mode := read_mode()) is not PLAIN and mode is not NO_GRAD:
            refuse_inside(
                "requires_grad_()", USED_BY, ("grad", "vjp")
            )  # inside vmap or jvp alone it means what it says
        if is_leaf(self):
            set_requires_grad(self, requires_grad)
        elif not requires_grad:
            raise RuntimeError(NOT_A_LEAF + DETACH_INSTEAD)
        return self
    except Exception as error:
        hide(error)
        raise


def set_data(self: Any, value: Any) -> None:
    """Replace the memory (`x.data = y`); graph and version stay."""
    if not isinstance(value, _base.Tensor):
        raise TypeError("Variable data has to be a tensor, but got " + type(value).__name__)
    refuse_new_data(self)
    if type(self._array) is not type(value._array) and self.is_meta != value.is_meta:
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.\nHint: one of "
            "them is on the meta device; put a new Parameter in its place."
        )
    if (self._edge is not None) and value._array.dtype.kind not in "fcV":
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    if (edge := _base._edge_slot.__get__(value)) is not None:
        note_cut(".data = ...", value, edge, self, 3)
    if value._array.shape != self._array.shape and isinstance(self._edge, (Node, Slot)) and self._edge is not NOWHERE:
        _want_gradients_of(self, tuple(self._array.shape))
    self._array = _base.materialise(value)
    before, inference = self._storage, 0 if value._storage is None else value._storage.inference
    if bool(inference) is not bool(before is not None and before.inference):
        # a Storage is of one kind for good: what has been seen of an array and its Storage stays true
        self._storage = _base.Storage()
        self._storage.version = 0 if before is None else before.version
        self._storage.inference = inference


def _want_gradients_of(tensor: Any, shape: tuple[int, ...]) -> None:
    """Let the node of a tensor, before anything else, refuse gradients of the shape that new data has."""

    def check(grad: Any) -> None:
        if grad is not None and not sums_to(tuple(grad.shape), shape):
            raise RuntimeError(
                f"Function returned an invalid gradient at index 0 - got {_errors.sizes(grad.shape)} but expected shape "
                f"compatible with {_errors.sizes(shape)}\nHint: the tensor that {name} made was given data of another shape."
            )

    node, slot = slot_of(tensor._edge)
    name = node.name()  # not the node, which will hold the check
    extra = node.need_extra()
    extra.tensor_hooks = {} if extra.tensor_hooks is None else extra.tensor_hooks
    hooks = extra.tensor_hooks.setdefault(slot, OrderedDict())
    hooks.setdefault(FIRST, check)  # that of the shape which the node knows stays
    hooks.move_to_end(FIRST, last=False)


FIRST = -1  # the number of a hook that no user has
