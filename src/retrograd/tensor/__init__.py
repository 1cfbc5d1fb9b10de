"""Tensors: the class, its storage and views, and its operations."""

from typing import Any

from ._tensor import Parameter, Tensor  # before the functions, which are made for these classes

# isort: split
from .._core import primitive as _core
from .._modes import current_mode
from ._aliasing.memory import may_share
from ._aliasing.views import NOWHERE
from ._base import storage_of
from ._object.accumulate import AccumulateGrad
from ._recording.flat import install as install_classes
from ._recording.record import record as record_call
from ._table import find, functions, install_methods, install_names, later_functions


def _call(primitive: Any, args: Any, params: dict[str, Any]) -> Any:
    """Run a primitive that a rule calls on Tensors."""
    result = record_call(primitive, args, params)
    if primitive.may_alias and isinstance(args[0], Tensor) and may_share(result._array, args[0]._array):
        result._storage = storage_of(args[0])  # the same memory: a write into either is one into what saves the other
    if primitive.view and not current_mode().grad and args[0].requires_grad:
        result._edge = NOWHERE  # torch makes a view, which requires grad as its base does
    return result


_core.install_tensor(Tensor, _call)
install_classes(Tensor, Parameter)
install_methods()

__all__ = ["AccumulateGrad", "Parameter", "Tensor", "find", "functions", "install_names", "later_functions"]
