"""Forward mode: dual tensors. torch.autograd.forward_ad."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from .. import _errors
from .._core.arrays import levels_of
from .._core.levels import DUAL, Level, Transform
from .._core.primitive import vocabulary
from .._graph.node import Node
from .._modes import change_mode, current_mode

_state = threading.local()
MADE_BY_USER: dict[str, Any] = {}  # marks the nodes of dual tensors that enter a level, from those inside a Function


class UnpackedDualTensor(NamedTuple):
    """The primal of a dual tensor, and its tangent or None."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Begin a level of forward mode."""
    if getattr(_state, "level", None) is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _state.level = level = Level(DUAL)
    change_mode(transforms=(*current_mode().transforms, Transform("dual_level", level)))
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: its tangents are gone."""
    current = getattr(_state, "level", None)
    if current is None:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != 0:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    current.alive = False
    _state.level = None
    left = tuple(t for t in current_mode().transforms if t.level is not current)
    change_mode(transforms=left)


class dual_level:  # noqa: N801 - torch's name
    """A level of forward mode as a block."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def _current_level() -> Any:
    return getattr(_state, "level", None)


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
    if tensor._array.dtype != tangent._array.dtype:
        raise RuntimeError(
            f"Expected tangent to have the same dtype as the primal: got {tangent.dtype} and {tensor.dtype}."
        )


def dual_of(tensor: Any, tangent: Any, level: Level) -> Any:
    """Enter a dual level with a tensor and its tangent; the result shares the tensor's memory and version."""
    from ..tensor import _base
    from ..tensor._base import storage_of

    _base.materialise(tensor), _base.materialise(tangent)
    result = vocabulary.enter_dual(tensor, tangent, level=level)
    result._storage = storage_of(tensor)
    if isinstance(result._edge, Node):
        result._edge.shown = MADE_BY_USER
    return result


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Split a dual tensor into primal and tangent."""
    now = _current_level()
    if now is None:
        return UnpackedDualTensor(tensor, None)
    if now not in levels_of(tensor._array):
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
