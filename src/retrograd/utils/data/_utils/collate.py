"""torch.utils.data._utils.collate: samples become a batch."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from .... import _dtypes
from ...._modes import NO_GRAD, PLAIN, read_mode
from ...._tracebacks import guarded
from ....tensor import Tensor
from ....tensor._base import wrap
from ....tensor._functions.creation import as_tensor, tensor
from ....tensor._functions.joining import stack

Collates = dict[Any, Callable[..., Any]]

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


# ---- containers ----
def mapping_like(example: Any, items: dict[Any, Any]) -> Any:
    """Return a mapping of the example's class with new values, or a dict where the class does not allow it."""
    try:
        if not isinstance(example, MutableMapping):
            return type(example)(items)
        if type(example) is dict:
            return items
        copied = copy.copy(example)  # which keeps what else the object knows, a default for one
        copied.update(items)
        return copied
    except TypeError:
        return items


def sequence_like(example: Any, items: list[Any]) -> Any:
    """Return a sequence of the example's class with new elements, or a list where the class does not allow it."""
    try:
        if not isinstance(example, MutableSequence):
            return type(example)(items)
        if type(example) is list:
            return items
        copied = copy.copy(example)
        for k, item in enumerate(items):
            copied[k] = item
        return copied
    except TypeError:
        return items


def _holds_text(array: Any) -> bool:
    return array.dtype.kind in "SUO"


def default_convert(data: Any) -> Any:
    """Make tensors of the NumPy arrays and scalars in a sample; what batch_size=None does with each sample."""
    if isinstance(data, Tensor):
        return data
    kind = type(data)
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        return data if isinstance(data, np.ndarray) and _holds_text(data) else as_tensor(data)
    if isinstance(data, Mapping):
        return mapping_like(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        parts = [default_convert(one) for one in data]
        return kind(*parts) if hasattr(data, "_fields") else parts
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return sequence_like(data, [default_convert(one) for one in data])
    return data


def collate(batch: Any, *, collate_fn_map: Collates | None = None) -> Any:
    """Put the samples of a batch together, by the functions that the map has for their classes."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None:
            function = next((each for key, each in collate_fn_map.items() if isinstance(first, key)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        joined = {key: collate([one[key] for one in batch], collate_fn_map=collate_fn_map) for key in first}
        return mapping_like(first, joined)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*[collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)])
    if isinstance(first, Sequence):
        size = len(first)
        if set(map(len, batch)) != {size}:
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)]
        return columns if isinstance(first, tuple) else sequence_like(first, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


# ---- by class ----
def _joined(arrays: list[Any]) -> Any:
    """Return arrays as one with a new first axis; None unless all are of one dtype and shape.

    NumPy's `stack` takes several times as long for small ones. Images (4 axes with the new one) are as far as it goes: with
    more, torch looks at how the memory is laid out.
    """
    first = arrays[0]
    if set(map(type, arrays)) != {np.ndarray} or first.ndim > 3 or len({one.dtype for one in arrays}) > 1:
        return None
    try:
        return np.array(arrays, first.dtype)
    except ValueError:
        return None  # not of one shape


def collate_tensor_fn(batch: Any, *, collate_fn_map: Collates | None = None) -> Any:
    """Stack tensors."""
    arrays = [one._array for one in batch if type(one) is Tensor and one._edge is None]
    if len(arrays) == len(batch) and read_mode() in (PLAIN, NO_GRAD):
        joined = _joined(arrays)
        if joined is not None:
            return wrap(joined)
    try:
        return stack(batch, 0)
    except RuntimeError as error:
        if str(error).startswith("stack expects each tensor to be equal size"):
            raise RuntimeError(f"{error}{_UNEQUAL}") from None
        raise


_UNEQUAL = (
    "\nHint: a batch is one tensor. Give the DataLoader a collate_fn that makes samples equal, for example by "
    "torch.nn.utils.rnn.pad_sequence, or that returns a list."
)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Collates | None = None) -> Any:
    """Stack arrays, in one step unless somebody has put another function in the map for tensors."""
    if _holds_text(batch[0]):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    if collate_fn_map is not None and collate_fn_map.get(Tensor) is collate_tensor_fn:
        joined = _joined(batch)
        if joined is not None:
            for one in batch:
                if not one.flags.c_contiguous:
                    _dtypes.refuse_negative_strides(one)
            return as_tensor(joined)
    return collate([as_tensor(one) for one in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Collates | None = None) -> Any:
    """Make a vector of NumPy's scalars."""
    return as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: Collates | None = None) -> Any:
    """Make a vector of Python's floats, in double precision."""
    return tensor(batch, dtype=_dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Collates | None = None) -> Any:
    """Make a vector of Python's integers or bools."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Collates | None = None) -> Any:
    """Leave text as it is."""
    return batch


default_collate_fn_map: Collates = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


@guarded
def default_collate(batch: Any) -> Any:
    """Put samples together: numbers, arrays and tensors become tensors with the batch first; containers stay."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def stacks_plainly(collate_fn: Any) -> bool:
    """Tell whether a collate function is the default one, with nothing changed for tensors."""
    return collate_fn is default_collate and default_collate_fn_map.get(Tensor) is collate_tensor_fn


def rows_of(whole: Any, indices: Sequence[int]) -> Any:
    """Return rows of a plain tensor outside of any graph as one tensor, as stacking them would; None if it is no such tensor."""
    array = whole._array if type(whole) is Tensor and whole._edge is None else None
    if type(array) is not np.ndarray or not array.ndim or read_mode() not in (PLAIN, NO_GRAD):
        return None
    try:
        return wrap(array.take(indices, 0))
    except IndexError:
        return None  # whoever takes them one by one says which index is wrong


np_str_obj_array_pattern = re.compile(r"[SaUO]")  # the kinds of arrays that no tensor is made of
