"""Below autograd: `__torch_dispatch__` of modes and of classes, with torch's operations as it names them.

Note [Below autograd]
A mode of `utils._python_dispatch`, or a tensor whose class has a `__torch_dispatch__`, sees torch's operations
(`torch.ops.aten.mm.default`), not the functions that a program calls, and sees those of a backward as well. So while one is there,
calls take another way:
1. The public function hands the call to `call` (`overrides.handle_torch_function`, after all that `__torch_function__` takes over).
2. A function that torch makes of others is made of them here too (`composites.py`), each of which comes to `call` again. Any
   other is one operation; its arguments choose the form (`schemas.py`).
3. `recording.py` is autograd for this way: it has the operation computed, and gives the result a node whose backward is written in public
   functions (`derivatives.py`), or is one of torch's operations (`backwards.py`), so that it comes to `call` again, and can be
   differentiated. Any other operation has as its backward `retrograd::<name>_vjp`. `writing.py` follows writes through views.
4. `redispatch` asks the innermost mode, without it, or the classes of the tensors; `func(*args)` in there asks the next. Under the
   last one there is the kernel: the public function again, in no_grad, or what `kernels.py` has for operations that programs do not call.
As long as nothing of this is used nothing is paid: see Note [What a mode sees] in `_watching.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

from .._core.arrays import LevelArray
from .._modes import current_mode, using
from ..tensor import _base


def flat_tensors(values: Iterable[Any]) -> list[Any]:
    """Return the tensors among arguments, also those in lists."""
    found = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += flat_tensors(value)
        elif isinstance(value, _base.Tensor):
            found.append(value)
    return found


def runs_unseen(args: Iterable[Any], kwargs: dict[str, Any]) -> bool:
    """Tell whether an operation is on samples of a vmap or on duals, which are above modes: only what asks for them sees them."""
    modes = current_mode().dispatch_modes
    if not modes or not current_mode().transforms or any(getattr(one, "sees_samples", False) for one in modes):
        return False
    return any(isinstance(one._array, LevelArray) for one in flat_tensors((*args, *kwargs.values())))


def samples_are_counted() -> bool:
    """Tell whether a mode wants to know of operations that run unseen."""
    return any(hasattr(one, "on_samples") for one in current_mode().dispatch_modes)


def note_samples(name: str, args: Any, kwargs: Any, out: Any) -> None:
    """Tell modes that count of an operation on samples or duals, which has run."""
    for one in current_mode().dispatch_modes:
        if hasattr(one, "on_samples"):
            one.on_samples(name, args, kwargs, out)


def is_wanted(args: Iterable[Any], kwargs: dict[str, Any]) -> bool:
    """Tell whether a mode or a class wants to see an operation on some arguments."""
    if current_mode().dispatch_modes:
        return not runs_unseen(args, kwargs)
    types = _base.dispatch_types
    return bool(types) and any(type(one) in types for one in flat_tensors((*args, *kwargs.values())))


def classes_of(tensors: Iterable[Any]) -> list[Any]:
    """Return the classes with a `__torch_dispatch__`, subclasses first, else in order."""
    found: list[Any] = []
    for one in tensors:
        kind = type(one)
        if kind in _base.dispatch_types and kind not in found:
            at = next((k for k, other in enumerate(found) if issubclass(kind, other)), len(found))
            found.insert(at, kind)
    return found


def redispatch(op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Have an operation computed below autograd: by the innermost mode, by a class of its tensors, or by its kernel."""
    modes = current_mode().dispatch_modes
    types = tuple(classes_of(flat_tensors((*args, *kwargs.values()))))
    if modes:
        with using(dispatch_modes=modes[:-1]):
            if (rule := _registered_rule(op, type(modes[-1]))) is not None:
                return rule(modes[-1], op, types, tuple(args), kwargs)
            result = modes[-1].__torch_dispatch__(op, types, tuple(args), kwargs)
        if result is not NotImplemented:
            return _need_fitting(op, result)
    for kind in types:
        if (rule := _registered_rule(op, kind)) is not None:
            return rule(op, types, tuple(args), kwargs)
        result = kind.__torch_dispatch__(op, types, tuple(args), kwargs)
        if result is not NotImplemented:
            return _need_fitting(op, result)
    if modes or types:
        tried = f"\n  - mode object {modes[-1]!r}" if modes else ""
        tried += "".join(f"\n  - tensor subclass {kind}" for kind in types)
        raise TypeError(
            f"Multiple dispatch failed for 'torch._ops.{op}'; all __torch_dispatch__ handlers returned NotImplemented:\n{tried}\n"
            "\nFor more information, try re-running with TORCH_LOGS=not_implemented"
        )
    return kernel_of(op)(*args, **kwargs)


def run_below(op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute an operation on what classes with memory of their own hold; NotImplemented for wrappers, which hold nothing."""
    shown: dict[int, Any] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        if type(value) not in _base.dispatch_types:
            return value
        made = _base.Tensor._make_subclass(_base.Tensor, value)
        shown[id(made)] = value, made
        return made

    if any(hasattr(one._array, "place") for one in flat_tensors((*args, *kwargs.values()))):
        return NotImplemented
    args, kwargs = plain(args), {name: plain(value) for name, value in kwargs.items()}
    with hidden():
        out = kernel_of(op)(*args, **kwargs)
    return shown[id(out)][0] if id(out) in shown else out


def _need_fitting(op: Any, result: Any) -> Any:
    """Return what a mode or class has answered; refuse what is no result of the operation, in torch's words."""
    returns = op._schema.returns
    if len(returns) == 1:
        kind = returns[0].type
        if kind == "Tensor" and result is not None and not isinstance(result, _base.Tensor):
            raise RuntimeError(f"Unable to cast {result} to Tensor")
        if kind == "Scalar" and not isinstance(result, (bool, int, float, complex)):
            raise RuntimeError(f"Cannot cast {result} to number")
    elif returns and not isinstance(result, (tuple, list, _base.Tensor)):
        raise RuntimeError(f"Object of type '{type(result).__name__}' is not an instance of 'sequence'")
    elif returns and not isinstance(result, _base.Tensor) and len(returns) > len(result):
        raise RuntimeError(f"Expected {returns[len(result)].type} but got None")
    return result


def _registered_rule(op: Any, kind: type) -> Any:
    """Return what a program has registered for an operation of its own and a mode or class."""
    if op.namespace in ("aten", "retrograd"):
        return None
    from .programs import find

    rules = find(op.name()).by_dispatch
    return next((rules[one] for one in kind.__mro__ if one in rules), None)


@cache
def kernel_of(op: Any) -> Any:
    """Return what computes an operation."""
    from . import kernels

    return kernels.find(op)


def call(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run a public function as the operations that torch makes of it. See Note [Below autograd]."""
    from . import calls

    return calls.call(function, args, kwargs)


def hidden() -> using:
    """Run a block that no mode sees."""
    return using(dispatch_modes=())


SEEN_PROPERTIES: dict[str, Any] = {
    "T": lambda x: x.permute([*range(x.dim())][::-1]),
    "mT": lambda x: x.transpose(-2, -1),
    "H": lambda x: x.transpose(-2, -1).conj() if x.dim() else x.conj(),
    "mH": lambda x: x.transpose(-2, -1).conj(),
    "data": lambda x: x.detach(),
    "real": lambda x: _composites().real(x),
    "imag": lambda x: _composites().imag(x),
}


def _composites() -> Any:
    return import_module(f"{__package__}.composites")


@cache
def install() -> None:
    """Let the attributes of tensors that are operations look for modes and classes from now on, as public functions do."""
    for name in SEEN_PROPERTIES:
        setattr(_base.Tensor, name, _seen_property(name, vars(_base.Tensor)[name]))


def _seen_property(name: str, plain: Any) -> property:
    def read(self: Any) -> Any:
        if current_mode().dispatch_modes or type(self) in _base.dispatch_types:
            found = SEEN_PROPERTIES[name](self)
            if found is not NotImplemented:
                return found
        return plain.__get__(self, type(self))

    return property(read, plain.fset, plain.fdel, plain.__doc__)


__all__ = ["call", "flat_tensors", "hidden", "install", "is_wanted", "kernel_of", "redispatch"]
