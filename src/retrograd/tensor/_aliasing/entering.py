"""Tensors inside a transform: the outer tensors that they show, and captured tensors, which no write may reach.

Note [Writes inside transforms]
Rule 1. What a transform hands to a function shows the memory of the tensor it was given, and shares its version. A write into it is
        a write into that one: it is refused where that one's would be, and the history of both becomes that of the write.
Rule 2. A variable of grad or vjp is a leaf to whoever writes into it, whatever graph its tensor is in.
        The other way round, a write into the tensor outside gives what shows it inside a new history, too.
Rule 3. Inside grad, vjp and jvp no operation may write into a tensor made outside of them, nor into a view of one. `out=`, lists of
        tensors (`_foreach_*`) and running statistics are not operations in place, and may.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._core.arrays import Batched, Dual, LevelArray
from ..._core.levels import Level, UserLevel
from ..._core.primitive import Primitive, vocabulary
from ..._modes import current_mode
from .. import _base
from .._base import storage_of

NO_WRITES = frozenset({"grad", "vjp", "jvp"})  # kinds of transforms
NO_POINTER = "Cannot access data pointer of Tensor that doesn't have storage"
_INSTEAD = (
    "\nHint: to update it, write under `with torch.no_grad():`, as optimizers do; to compute with other values, make a new tensor: "
    "x = x + 1 instead of x += 1, or write into x.clone()."
)
A_LEAF = f"a leaf Variable that requires grad is being used in an in-place operation.{_INSTEAD}"
A_VIEW_OF_A_LEAF = f"a view of a leaf Variable that requires grad is being used in an in-place operation.{_INSTEAD}"


class Entered(NamedTuple):
    """How a tensor inside a transform belongs to the one outside whose memory it shows."""

    outer: Any
    transforms: int  # how many there are outside of the one that it has entered
    leaving: tuple[Primitive, dict[str, Any]] | None  # makes the outer tensor of it; None for variables of grad and vjp
    level: Level | None = None
    is_view: bool = False  # to torch


def enter(inner: Any, outer: Any, leaving: Any) -> Any:
    """Note which tensor `inner` shows inside the innermost transform, or inside a level of forward mode."""
    inner._storage = storage_of(outer)
    transforms = current_mode().transforms
    params = {} if leaving is None else leaving[1]
    level = params.get("level")
    own = level is None or (bool(transforms) and transforms[-1].level is level)
    is_view = level is not None and params.get("axis") != 0
    inner._storage.add_inner(inner)
    inner._need_extra().entered = Entered(outer, len(transforms) - own, leaving, level, is_view)
    return inner


def is_wrapper(tensor: Any) -> bool:
    """Tell whether a tensor wraps others, and has no numbers of its own."""
    return type(tensor) in _base.dispatch_types and hasattr(tensor._array, "place")


def refuse_wrapper(tensor: Any, what: str, hint: str) -> None:
    """Refuse a tensor that wraps others where a transform needs its numbers."""
    if _base.dispatch_types and is_wrapper(tensor):
        raise NotImplementedError(f"{what} a {type(tensor).__name__}, which wraps other tensors\nHint: {hint}")


def base_of(tensor: Any) -> Any:
    """Return the tensor that a view shows a part of; any other is its own base."""
    view = None if tensor._extra is None else tensor._extra.view
    return tensor if view is None else view.base


def entered(base: Any) -> Entered | None:
    """Return how a base has entered a transform, if it has."""
    return None if base._extra is None else base._extra.entered


class Tangent(NamedTuple):
    """The tensor that shows a dual's tangent, for as long as the dual stands where it stood and has that memory."""

    tensor: Any
    array: Any
    edge: Any


def show_tangent(dual: Any, tangent: Any) -> None:
    """Note which tensor shows the tangent of a dual; a write into it is one into the dual."""
    dual._need_extra().tangent = Tangent(tangent, dual._array.tangent, dual._edge)
    storage_of(tangent).add_inner(dual)


def shown_tangent(dual: Any) -> Any:
    """Return the tensor that shows the tangent of a dual, if there is one and the dual is as it was."""
    known, array = None if dual._extra is None else dual._extra.tangent, dual._array
    if known is None or known.edge is not dual._edge or type(array) is not Dual or known.array is not array.tangent:
        return None
    return known.tensor


def given_tangent(tensor: Any) -> Any:
    """Return the tensor outside whose memory is the tangent of this one, if there is one."""
    known = None if tensor._extra is None or (extra := base_of(tensor)._extra) is None else extra.tangent
    return None if known is None or known.tensor._array is not known.array else known.tensor


def share_birth(alias: Any, tensor: Any) -> Any:
    """Let a tensor on another's memory be captured where that one is."""
    if alias._extra is not None or current_mode().transforms:
        extra = base_of(tensor)._extra
        alias._need_extra().born = 0 if extra is None else extra.born
    return alias


def data_of(tensor: Any) -> Any:
    """Return what `.data` shows: the array without tangents."""
    array = _base.materialise(tensor)
    return without_tangents(array) if isinstance(array, LevelArray) else array


def data_inside(tensor: Any) -> Any:
    """Return `.data` inside transforms: cut at the innermost that follows the tensor, as in torch. `detach` cuts at all."""
    array = _base.materialise(tensor)
    for transform in reversed(current_mode().transforms):
        level = transform.level
        if level is None and tensor._edge is not None:
            behind = vocabulary.seen_behind(tensor, transform=transform)._edge
            return _base.wrap(array, behind, None)
        if isinstance(array, LevelArray) and array.level is level:
            if isinstance(array, Batched):
                if is_of_innermost(array):
                    raise RuntimeError("accessing `data` under vmap transform is not allowed")
                return _base.wrap(array, tensor._edge, None)
            shown = vocabulary.dual_plain(tensor, level=level)
            return _base.wrap(shown._array, shown._edge, None)
        if transform.kind == "jvp" and _is_born_in(tensor, transform):
            return _base.wrap(array, tensor._edge, None)  # a constant to it already
    return _base.wrap(data_of(tensor), None, None)


def _is_born_in(tensor: Any, transform: Any) -> bool:
    extra = base_of(tensor)._extra
    return extra is not None and extra.born > transform.born


def memory_under(tensor: Any) -> Any:
    """Return the array whose memory a tensor has: of a dual of `forward_ad` the primal."""
    array = _base.materialise(tensor)
    while isinstance(array, Dual) and isinstance(array.level, UserLevel):
        array = array.primal
    return array


def refuse_new_data(tensor: Any) -> None:
    """Raise torch's errors for `tensor.data = ...` inside a transform."""
    transforms = [one for one in current_mode().transforms if one.kind != "dual_level"]
    if transforms and _is_born_in(tensor, transforms[0]):
        under = is_of_innermost(tensor._array)
        where = "under vmap transform" if under else "inside functorch transform"
        raise RuntimeError(f"mutating directly with `.data` {where} is not allowed.")


def is_of_innermost(array: Any) -> bool:
    """Tell whether an array is a batch of the innermost transform."""
    transforms = current_mode().transforms
    return isinstance(array, Batched) and bool(transforms) and transforms[-1].level is array.level


def without_tangents(array: Any) -> Any:
    """Return an array as forward mode's constant."""
    if isinstance(array, Dual):
        return without_tangents(array.primal)
    if isinstance(array, Batched):
        inner = without_tangents(array.array)
        return array if inner is array.array else Batched(array.level, inner)
    return array


def check_outside(tensor: Any) -> None:
    """Raise torch's errors for a write into a tensor that shows a leaf outside, or is a variable. See Rules 1 and 2."""
    base = base_of(tensor)
    whole = base is tensor
    while (link := entered(base)) is not None:
        outer = link.outer
        if link.leaving is None:
            raise RuntimeError(A_LEAF if whole else A_VIEW_OF_A_LEAF)
        base = base_of(outer)
        whole = whole and base is outer and not link.is_view
        if base.requires_grad and base.is_leaf:
            raise RuntimeError(A_LEAF if whole else A_VIEW_OF_A_LEAF)


def refuse_captured(tensor: Any, name: str, args: Any = (), kwargs: Any = None) -> None:
    """Raise torch's error for an operation in place on a tensor from outside of a transform. See Rule 3."""
    transforms = current_mode().transforms
    while transforms:
        base = base_of(tensor)
        born = 0 if base._extra is None else base._extra.born
        if any([one.kind in NO_WRITES and born < one.born for one in transforms]):
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
                f"(aten::{operator_name(name, args, kwargs or {})}) that would mutate a captured Tensor. This is not "
                "supported; please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs."
            )
        link = entered(base)
        if link is None:
            return
        tensor, transforms = link.outer, transforms[: link.transforms]


# ---- names of torch's operators: a method is one of several, told apart by the kinds of its arguments ----
_WITH_TENSOR = frozenset("add_ sub_ subtract_ mul_ multiply_ divide_ true_divide_ floor_divide_".split())  # noqa: SIM905
_FIRST = frozenset(
    """bitwise_and_ bitwise_or_ bitwise_xor_ copysign_ eq_ fill_ float_power_ fmod_ ge_ greater_ greater_equal_ gt_ le_ less_
    less_equal_ lt_ ne_ not_equal_ pow_ remainder_ masked_fill_ lerp_""".split()  # noqa: SIM905
)
_NUMBERS = {"bitwise_left_shift_": "Tensor_Scalar", "bitwise_right_shift_": "Tensor_Scalar", "xlogy_": "Scalar_Other"}
_PLAIN_NUMBERS = frozenset({"clamp_", "clip_", "clamp_min_", "clamp_max_"})


def operator_name(name: str, args: Any, kwargs: dict[str, Any]) -> str:
    """Return torch's name of an operation in place, with what tells it from others of the same name."""
    values = (*args, *kwargs.values())
    last = bool(values) and isinstance(values[-1], _base.Tensor)
    kind = ""
    if name in _WITH_TENSOR:
        kind = "Tensor"
    elif name == "div_":
        kind = "Tensor_mode" if kwargs.get("rounding_mode") is not None else "Tensor"
    elif name in _FIRST:
        kind = "Tensor" if last else "Scalar"
    elif name in _NUMBERS:
        kind = "Tensor" if last else _NUMBERS[name]
    elif name in _PLAIN_NUMBERS:
        kind = "Tensor" if last or not values else ""
    elif name == "index_fill_":
        kind = "int_Tensor" if last else "int_Scalar"
    elif name == "bernoulli_":
        kind = "Tensor" if last else "float"
    elif name == "random_":
        kind = ("", "to", "from")[len([one for one in values if one is not None])]
    elif name == "round_":
        kind = "decimals" if values else ""
    elif name == "squeeze_":
        kind = "" if not values else "dim" if isinstance(values[0], int) else "dims"
    elif name == "scatter_":
        source = kwargs.get("src", kwargs.get("value", args[2] if len(args) > 2 else None))
        kind = "src" if isinstance(source, _base.Tensor) else "value"
        if "reduce" in kwargs or len(args) > 3:
            kind = "reduce" if kind == "src" else "value_reduce"
    elif name == "scatter_reduce_":
        kind = "two"
    return f"{name}.{kind}" if kind else name
