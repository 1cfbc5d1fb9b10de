"""Functions for `options={"guard_filter_fn": ...}`: each says of torch's guards which to keep.

Here they change nothing: a call's guards take a few microseconds, and a program is never run without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..nn.parameter import Parameter


def keep_portable_guards_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Keep guards of shapes, of modes and of tensors that are no globals."""
    return [
        one.guard_type in ("GLOBAL_STATE", "SHAPE_ENV") or (one.guard_type == "TENSOR_MATCH" and not one.is_global)
        for one in guard_entries
    ]


def keep_tensor_guards_unsafe(guard_entries: Sequence[Any], keep_parameters: bool = False) -> list[bool]:
    """Keep guards of tensors, without parameters or with them."""
    return [
        one.guard_type == "TENSOR_MATCH" and (keep_parameters or not isinstance(one.value, Parameter))
        for one in guard_entries
    ]


def skip_all_guards_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Keep no guards."""
    return [False for _ in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Keep guards that are not of modules."""
    return [not one.orig_guard.source.is_unspecialized_nn_module() for one in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Keep guards that are not of the library's modules."""
    return [not one.orig_guard.source.is_unspecialized_builtin_nn_module() for one in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Keep guards that are not of globals."""
    return [not one.is_global for one in guard_entries]
