"""Tensors: the class, its storage and views, and its operations."""

from ._accumulate import AccumulateGrad
from ._tensor import Parameter, Tensor
from .._core import primitive as _core
from ._record import record as record_call
from ._table import functions, install_methods

_core.install_tensor(Tensor, lambda primitive, args, params: record_call(primitive, args, params, None, 3))
install_methods()
for _name in """sum mean max min prod max_at min_at logsumexp softmax log_softmax cumsum concat stack take_along masked_fill
argmax argmin any all matmul flip triangle""".split():
    _core.primitives[_name].dense = True

__all__ = ["AccumulateGrad", "Parameter", "Tensor", "functions"]
