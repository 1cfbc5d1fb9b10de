"""Tensors: the class, its storage and views, and its operations."""

from ._accumulate import AccumulateGrad
from ._tensor import Parameter, Tensor
from .._core import primitive as _core
from ._record import record as record_call
from ._table import functions, install_methods

_core.install_tensor(Tensor, lambda primitive, args, params: record_call(primitive, args, params, None, 3))
install_methods()

__all__ = ["AccumulateGrad", "Parameter", "Tensor", "functions"]
