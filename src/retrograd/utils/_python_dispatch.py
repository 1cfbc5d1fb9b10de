"""torch.utils._python_dispatch: modes that see torch's operations, below autograd; tensors that are made of others.

See Note [Below autograd] in `_dispatch/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from .. import _dispatch
from .._absent import finder
from .._modes import current_mode, push, using, write
from .._public import set_all
from .._warnings import warn
from ..overrides import TakingOver
from ..tensor import Tensor

__getattr__ = finder("torch.utils._python_dispatch")


class TorchDispatchMode(TakingOver):
    """A mode that sees every operation; override `__torch_dispatch__(self, func, types, args=(), kwargs=None)`."""

    _block_fields = ("dispatch_modes",)
    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("TorchDispatchMode: override __torch_dispatch__")

    def __enter__(self) -> Self:
        _dispatch.install()
        before = current_mode()
        entered = before._replace(dispatch_modes=(*before.dispatch_modes, self))
        entry = self._block_entry(before, entered)
        write[entered]
        push[entry]
        return self

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a mode: an old way."""
        warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`")
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Tell whether torch's own machinery puts the mode on the stack."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that runs every operation as it is."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    """Return the innermost mode, None if there is none."""
    modes = current_mode().dispatch_modes
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """Return the modes, the innermost last."""
    return list(current_mode().dispatch_modes)


class _Disabled(using):
    """A block without modes, which gives those that are out of force."""

    def __enter__(self) -> Any:
        modes = _get_current_dispatch_mode_stack()
        super().__enter__()
        return modes


def _disable_current_modes() -> Any:
    """Run a block that no mode sees."""
    return _Disabled(dispatch_modes=())


def _detect_infra_mode(key: Any) -> None:
    """Return the mode that torch's own machinery has put on the stack: there is none."""


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return what a wrapper class computed for an operation; the tensor itself where the operation writes in place."""
    schema = func._schema
    if not schema.returns:
        return out
    named = dict(zip((one.name for one in schema.arguments), args, strict=False)) | (kwargs or {})
    written = {
        label: one.name
        for one in schema.arguments
        if one.alias_info is not None and one.is_write
        for label in one.alias_info.after_set
    }

    def corrected(returned: Any, value: Any) -> Any:
        if returned.alias_info is None or not returned.is_write:
            return value
        names = [written[label] for label in returned.alias_info.after_set if label in written]
        return named.get(names[0], value) if names else value

    if len(schema.returns) == 1:
        return corrected(schema.returns[0], out)
    pairs = zip(schema.returns, out, strict=True)
    return type(out)([corrected(returned, value) for returned, value in pairs])


def transform_subclass(t: Any, callback: Any, outer_size: Any = None, outer_stride: Any = None) -> Any:
    """Make a wrapper of the same class of what `callback(name, inner)` returns for each inner tensor."""
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if made.shape != size:
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {size}, but got: {made.shape}"
        )
    return made


def any_torch_dispatch_mode_on_stack(*, include_infra_modes: bool = True) -> bool:
    """Tell whether a mode is in force."""
    return bool(current_mode().dispatch_modes)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Tell whether a mode is in force."""
    return bool(current_mode().dispatch_modes)


is_in_any_mode_without_ignore_compile_internals = is_in_torch_dispatch_mode


def get_alias_info(func: Any) -> Sequence[Any]:
    """Return which memory the arguments and results of an operation share."""
    schema = func._schema
    return [one.alias_info for one in (*schema.arguments, *schema.returns)]


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Tell whether a class of tensors says which tensors it consists of, and how to put it together from them."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Tell whether a value is a tensor that consists of others, and says so."""
    return is_traceable_wrapper_subclass_type(type(t))


set_all(globals())
