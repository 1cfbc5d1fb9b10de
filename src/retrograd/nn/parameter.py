"""Tensors that a module owns: parameters and buffers."""

from __future__ import annotations

from typing import Any, Self

from ..tensor import _base
from ..tensor._base import TensorMeta
from ..tensor._tensor import Parameter, Tensor
from ..tensor._tensor import ParameterMeta as _ParameterMeta
from ._uninitialized import UninitializedBuffer, UninitializedParameter, UninitializedTensorMixin, is_lazy

make_parameter: Any = Parameter  # its metaclass constructs it, which type checkers do not see


class _BufferMeta(TensorMeta):
    """Lets tensors marked `_is_buffer` pass for Buffers."""

    def __instancecheck__(cls, instance: Any) -> bool:  # noqa: N805 - of a metaclass
        return super().__instancecheck__(instance) or (
            cls.__name__ == "Buffer" and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferMeta):
    """A Tensor that is a module's state but no parameter; `persistent` says whether the state_dict holds it."""

    __slots__ = ()
    __torch_function__ = _base.disabled_torch_function  # type: ignore[assignment]
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        """Build a buffer on a tensor's memory."""
        given = Tensor() if data is None else data
        result: Any = given.detach().requires_grad_(given.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result  # type: ignore[no-any-return]


__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "_ParameterMeta",
    "is_lazy",
    "make_parameter",
]
