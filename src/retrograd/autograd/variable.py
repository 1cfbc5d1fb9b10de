"""torch.autograd.variable: a Variable has long been a Tensor, but programs still make them by this name."""

from __future__ import annotations

from operator import index
from types import SimpleNamespace
from typing import Any

from .. import _errors
from .._warnings import warn
from ..tensor._tensor import Tensor
from .engine import queue_callback


class VariableMeta(type):
    """Makes every Tensor an instance of Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(data, requires_grad=False)` returns a Tensor that shares the memory of `data`, outside its graph.

    Example:
        >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = SimpleNamespace(queue_callback=queue_callback)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        data, requires_grad, volatile = _arguments(*args, **kwargs)
        if volatile:
            warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
            if requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if data is None:
            made = Tensor()
        elif isinstance(data, Tensor):
            made = data.detach().as_subclass(Tensor)
        else:
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if requires_grad and not (made.is_floating_point() or made.is_complex()):
            raise RuntimeError(_errors.ONLY_FLOATS)
        return made.requires_grad_(bool(requires_grad))


def _arguments(*args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
    names = ("data", "requires_grad", "volatile", "_grad_fn", "name")
    for name in kwargs:
        if name not in names:
            raise TypeError(f"'{name}' is an invalid keyword argument for this function")
    if len(args) > len(names):
        raise TypeError(f"function takes at most {len(names)} arguments ({len(args)} given)")
    given = dict(zip(names, args, strict=False))
    for name in given.keys() & kwargs.keys():
        raise TypeError(f"argument for function given by name ('{name}') and position ({names.index(name) + 1})")
    given |= kwargs
    return given.get("data"), index(given.get("requires_grad", False)), index(given.get("volatile", False))


__all__ = ["Variable"]
