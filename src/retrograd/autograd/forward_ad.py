"""Forward mode: dual tensors. torch.autograd.forward_ad."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import _errors
from .._core.arrays import Dual, LevelArray, levels_of, raw_leaf
from .._core.levels import DUAL, Level, Transform, UserLevel
from .._core.primitive import vocabulary
from .._graph.node import Node
from .._modes import Block, Entry, change_mode, current_mode, is_in_with, push, write
from ..tensor import _base
from ..tensor._aliasing.entering import enter, refuse_wrapper, show_tangent, shown_tangent
from ..tensor._aliasing.views import register_view
from ..tensor._object.layout import geometry, laid_out_like, repeats, strides

_own = threading.local()
_open: dict[UserLevel, None] = {}  # of all threads; one that has none of its own takes part in the newest
USE_REVERSE = "differentiate in reverse mode: grad and vjp go through __torch_dispatch__."
_NO_LEVEL = "Dual level must be a positive number."
MADE_BY_USER: dict[str, Any] = {}  # marks the nodes of dual tensors that enter a level, from those inside a Function


class UnpackedDualTensor(NamedTuple):
    """The primal of a dual tensor, and its tangent or None."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Begin a level of forward mode."""
    level = _new_level()
    _open[level] = None
    change_mode(transforms=(*_without_dual_level(), Transform("dual_level", level)))
    return 0


def _new_level() -> UserLevel:
    if _own_level() is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _own.level = level = UserLevel(DUAL)
    return level


def _own_level() -> Level | None:
    """Return the level that this thread has begun, if nobody has ended it."""
    level: UserLevel | None = getattr(_own, "level", None)
    return level if level in _open else None


def open_level() -> Level | None:
    """Return the level that operations of this thread take part in."""
    return _own_level() or next(reversed(_open), None)


def __getattr__(name: str) -> Any:
    if name == "_current_level":  # torch's number of the level: 0 while there is one
        return -1 if open_level() is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _without_dual_level() -> tuple[Transform, ...]:
    """Return this thread's transforms but a level of forward mode; another thread may have ended that."""
    return tuple(t for t in current_mode().transforms if t.kind != "dual_level")


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: its tangents are gone."""
    current: Any = open_level()
    if current is None:
        raise RuntimeError(_NO_LEVEL)
    if level is not None and level != 0:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    current.alive, current.ended_by_call = False, True
    _open.pop(current, None)
    change_mode(transforms=_without_dual_level())


class dual_level(Block):  # noqa: N801 - torch's name
    """A level of forward mode as a block."""

    _block_fields = ("transforms",)

    def __enter__(self) -> int:
        level, before = _new_level(), current_mode()
        entered = before._replace(transforms=(*_without_dual_level(), Transform("dual_level", level)))
        ends = partial(setattr, level, "alive", False), partial(_open.pop, level, None)
        entry = self._block_entry_with(ends, before, entered)
        _open[level] = None
        write[entered]
        push[entry]
        return 0

    def _block_goes_on(self, entry: Entry) -> None:
        level = entry.entered.transforms[-1].level
        level.alive = True
        _open[level] = None

    def _block_ended(self, entry: Entry) -> None:
        if entry.entered.transforms[-1].level.ended_by_call:
            raise RuntimeError(_NO_LEVEL)

    def _block_left_unentered(self) -> None:
        raise RuntimeError(_NO_LEVEL)


class _set_fwd_grad_enabled(Block):  # noqa: N801 - torch's name
    """Switch forward mode off or on, at once or for a block: operations pass no tangents on, and none can be seen."""

    def __init__(self, mode: bool) -> None:
        self.mode, self.prev = mode, _is_fwd_grad_enabled()
        if not is_in_with():
            set_enabled(mode)

    def __enter__(self) -> None:
        self._block_begin(_switches(self.mode), _switches(self.prev))


def _is_fwd_grad_enabled() -> bool:
    return not getattr(_own, "disabled", False)


def _switches(enabled: bool) -> tuple[Any, ...]:
    """Return what switches forward mode off or on: operations take the primals of what belongs to an ended level."""
    level = open_level()
    levels = [one.level for one in current_mode().transforms if one.kind == "jvp"] + ([] if level is None else [level])
    return partial(setattr, _own, "disabled", not enabled), *[partial(setattr, one, "alive", enabled) for one in levels]


def set_enabled(enabled: bool) -> None:
    """Switch forward mode off or on."""
    for switch in _switches(enabled):
        switch()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Join a tensor and its tangent; derivatives flow through both.

    Args:
        tensor: the primal value
        tangent: a tensor of its shape
        level: the level of the block; the innermost if it is not given

    Example:
        >>> fwAD = torch.autograd.forward_ad
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor(2.0), torch.tensor(1.0))
        ...     print(fwAD.unpack_dual(x**3).tangent)
        tensor(12.)
    """
    now = open_level()
    if now is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    check_dual(tensor, tangent)
    if now in levels_of(tensor._array):
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if now in levels_of(tangent._array):
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
        )
    return dual_of(tensor, tangent, now)


def check_dual(tensor: Any, tangent: Any) -> None:
    """Raise torch's errors about a tensor and a tangent that do not go together."""
    for one in (tensor, tangent):
        refuse_wrapper(one, "forward mode cannot follow", USE_REVERSE)
    if tensor._array.dtype.kind not in "fcV":
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if tangent._array.dtype.kind not in "fcV":
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tuple(tensor._array.shape) != tuple(tangent._array.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {_errors.sizes(tensor._array.shape)} while the given forward gradient is of "
            f"size {_errors.sizes(tangent._array.shape)}."
        )


def dual_of(tensor: Any, tangent: Any, level: Level) -> Any:
    """Enter a dual level with a tensor and its tangent; the result shares the tensor's memory and version."""
    _base.materialise(tensor)
    _base.materialise(tangent)
    given = tangent
    if not _lies_like(tangent, tensor):
        tangent = _laid_like(tangent, tensor)
    result = vocabulary.enter_dual(tensor, tangent, level=level)
    enter(result, tensor, (vocabulary.dual_plain, {"level": level}))
    if isinstance(result._edge, Node):
        result._edge.shown = MADE_BY_USER
    if tangent is given:
        keep_tangent(result, tangent)
    return result


def _lies_like(tangent: Any, tensor: Any) -> bool:
    """Tell whether a tangent can be taken as it is: it lies in memory as its primal does, and not in the same memory."""
    one, other = tangent._array, tensor._array
    alike = type(tangent) is type(tensor) and type(one) is type(other) is np.ndarray and one is not other
    if alike and one.base is other.base is None and one.flags.c_contiguous and other.flags.c_contiguous:
        return True  # two whole arrays, as most are
    if (tangent.is_conj(), tangent.is_neg()) != (tensor.is_conj(), tensor.is_neg()):
        return False
    if isinstance(one, LevelArray) or isinstance(other, LevelArray):
        return strides(one) == strides(other) or repeats(raw_leaf(other))
    if not (type(one) is type(other) is np.ndarray):
        return True
    if not one.size:
        return True
    if np.may_share_memory(one, other):
        return False  # a write must not reach it twice
    (steps, start), (wanted, at) = geometry(tangent), geometry(tensor)
    if repeats(other):
        return True
    same = all(n == m for n, m, size in zip(steps, wanted, other.shape, strict=True) if size != 1)
    return same and start == at and _memory_size(one) == _memory_size(other)


def _memory_size(array: Any) -> int:
    """Count the elements of the memory that an array is a part of."""
    whole = array
    while isinstance(getattr(whole, "base", None), np.ndarray):
        whole = whole.base
    return int(whole.nbytes // array.itemsize)


def _laid_like(tangent: Any, tensor: Any) -> Any:
    """Copy a tangent into memory like that of its primal; what the primal does not show has no tangent."""
    copy, primal = vocabulary.copy(tangent), tensor._array
    array = copy._array
    if isinstance(array, LevelArray) or isinstance(primal, LevelArray) or not array.size or repeats(primal):
        if strides(array) != strides(primal) and not repeats(raw_leaf(primal)):
            copy._array = laid_out_like(array, primal)
        return copy
    if type(array) is type(primal) is np.ndarray:
        steps, start = geometry(tensor)
        needed = start + 1 + sum((size - 1) * n for size, n in zip(array.shape, steps, strict=True))
        memory = np.zeros(max(_memory_size(primal), needed), array.dtype)  # an array may be a part of memory of others
        inside = np.lib.stride_tricks.as_strided(memory[start:], array.shape, [n * array.itemsize for n in steps])
        inside[...] = array
        copy._array = inside
    return copy


def keep_tangent(dual: Any, tangent: Any) -> None:
    """Let `unpack_dual` show the tensor that a dual's tangent was made of."""
    if hasattr(tangent, "_array") and type(dual._array) is Dual and dual._array.tangent is tangent._array:
        show_tangent(dual, tangent)


def parts_of(tensor: Any, level: Level) -> tuple[Any, Any]:
    """Return the primal and the tangent of a dual tensor; the tangent is the same tensor every time, if it can be."""
    from ..tensor._aliasing.leaving import primal_of, tangent_of

    node, array = tensor._edge, tensor._array
    as_given = getattr(node, "shown", None) is MADE_BY_USER and node.level is level  # nothing was written since
    if as_given:
        outer = tensor._extra.entered.outer
        step = (vocabulary.permute_dims, {"axes": tuple(range(array.ndim))})
        primal = step[0](outer, **step[1])  # of the primal alone
        register_view(outer, primal, (step,), current_mode())
    else:
        primal = primal_of(tensor, level)
    tangent = tangent_of(tensor, level)
    if as_given and node._edges[1] is None and not tangent.is_leaf:
        tangent._edge = None  # as it was given to make_dual
    if (
        type(tensor._array) is Dual
        and (node is None or tangent._edge is not None)
        and tangent is not shown_tangent(tensor)
    ):
        show_tangent(tensor, tangent)  # again the next time
    return primal, tangent


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Split a dual tensor into primal and tangent."""
    now = open_level()
    if now is None or not _is_fwd_grad_enabled() or now not in levels_of(tensor._array):
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*parts_of(tensor, now))


__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]
