"""Forward mode: dual tensors. torch.autograd.forward_ad."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from .. import _errors
from .._core.arrays import levels_of, raw_leaf
from .._core.levels import DUAL, Level, Transform
from .._core.primitive import vocabulary
from .._graph.node import Node
from .._modes import change_mode, current_mode

_own = threading.local()
_open: list[Level] = []  # of all threads; one that has none of its own takes part in the newest
MADE_BY_USER: dict[str, Any] = {}  # marks the nodes of dual tensors that enter a level, from those inside a Function


class UnpackedDualTensor(NamedTuple):
    """The primal of a dual tensor, and its tangent or None."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Begin a level of forward mode."""
    if _own_level() is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _own.level = level = Level(DUAL)
    _open.append(level)
    change_mode(transforms=(*_without_dual_level(), Transform("dual_level", level)))
    return 0


def _own_level() -> Level | None:
    """Return the level that this thread has begun, if nobody has ended it."""
    level: Level | None = getattr(_own, "level", None)
    return level if level in _open else None


def _current_level() -> Level | None:
    return _own_level() or (_open[-1] if _open else None)


def _without_dual_level() -> tuple[Transform, ...]:
    """Return this thread's transforms but a level of forward mode; another thread may have ended that."""
    return tuple(t for t in current_mode().transforms if t.kind != "dual_level")


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: its tangents are gone."""
    current = _current_level()
    if current is None:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != 0:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    current.alive = False
    _open.remove(current)
    change_mode(transforms=_without_dual_level())


class dual_level:  # noqa: N801 - torch's name
    """A level of forward mode as a block."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


class _set_fwd_grad_enabled:  # noqa: N801 - torch's name
    """Switch forward mode off or on, at once or for a block: operations pass no tangents on, and none can be seen."""

    def __init__(self, mode: bool) -> None:
        self.prev = _is_fwd_grad_enabled()
        _enable(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _enable(self.prev)


def _is_fwd_grad_enabled() -> bool:
    return not getattr(_own, "disabled", False)


def _enable(enabled: bool) -> None:
    _own.disabled = not enabled
    level = _current_level()
    if level is not None:
        level.alive = enabled  # operations take the primals of what belongs to an ended level


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Join a tensor and its tangent; derivatives flow through both."""
    now = _current_level()
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
    return dual_of(tensor, tangent, now)


def check_dual(tensor: Any, tangent: Any) -> None:
    """Raise torch's errors about a tensor and a tangent that do not go together."""
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
    from ..tensor import _base
    from ..tensor._entering import enter
    from ..tensor._layout import laid_out_like, repeats, strides

    primal = _base.materialise(tensor)
    _base.materialise(tangent)
    lies_so = strides(tangent._array) == strides(primal) or repeats(raw_leaf(primal))
    memories = raw_leaf(primal), raw_leaf(tangent._array)
    if not lies_so or (all(type(one) is np.ndarray for one in memories) and np.may_share_memory(*memories)):
        tangent = vocabulary.copy(tangent)  # a write must not reach it twice; torch lays it out as what it belongs to
        tangent._array = tangent._array if lies_so else laid_out_like(tangent._array, primal)
    result = vocabulary.enter_dual(tensor, tangent, level=level)
    enter(result, tensor, (vocabulary.dual_plain, {"level": level}))
    if isinstance(result._edge, Node):
        result._edge.shown = MADE_BY_USER
    return result


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Split a dual tensor into primal and tangent."""
    now = _current_level()
    if now is None or not _is_fwd_grad_enabled() or now not in levels_of(tensor._array):
        return UnpackedDualTensor(tensor, None)
    primal, tangent = vocabulary.dual_plain(tensor, level=now), vocabulary.dual_eps(tensor, level=now)
    node = tensor._edge
    if getattr(node, "shown", None) is MADE_BY_USER and node.level is now and node._edges[1] is None:
        tangent._edge = None  # as it was given to make_dual
    return UnpackedDualTensor(primal, tangent)


__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]
