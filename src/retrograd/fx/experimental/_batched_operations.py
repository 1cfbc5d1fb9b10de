"""Operations on the samples of a vmap as torch's functorch runs them: on whole batches, with the batch first."""

from __future__ import annotations

from typing import Any

from ..._core.arrays import Batched, LevelArray
from ...ops import aten
from ...tensor import Tensor
from ...tensor._base import wrap
from ...utils import _pytree as pytree

POINTWISE = frozenset(
    """abs add sub mul div neg exp log sin cos tan tanh sigmoid relu sqrt rsqrt pow reciprocal maximum minimum clamp where eq ne lt le gt ge
    gelu silu log1p expm1 erf square sign floor ceil round clone detach tanh_backward sigmoid_backward threshold_backward gelu_backward
    silu_backward logical_and logical_or logical_not bitwise_and bitwise_or bitwise_not zeros_like ones_like masked_fill""".split()  # noqa: SIM905
)


def physical(func: Any, args: Any, kwargs: Any, leveled: list[Any]) -> Any:
    """Return the level, and the operation and arguments on whole batches; None if there is no rule."""
    levels = {one._array.level for one in leveled}
    if len(levels) != 1 or any(
        not isinstance(one._array, Batched) or isinstance(one._array.array, LevelArray) for one in leveled
    ):
        return None
    (level,) = levels
    name, overload = func._overloadpacket.__name__, func._overloadname
    if name in POINTWISE:
        ranks = {one.dim() for one in leveled}
        tensors = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        if len(ranks) != 1 or max(one.dim() for one in tensors) > max(ranks):
            return None  # a batch would have to get dimensions behind its first
        return level, func, *pytree.tree_map_only(Tensor, _whole, (args, kwargs))
    if name in ("sum", "mean") and len(leveled) == 1:
        x = _whole(args[0])
        if overload == "default":
            dims = [*range(1, x.dim())]
            op = aten.sum.dim_IntList if name == "sum" else aten.mean.dim
            return level, op, (x, dims), kwargs
        dims = [d % (x.dim() - 1) + 1 for d in args[1] or range(x.dim() - 1)]
        return level, func, (x, dims, *args[2:]), kwargs
    if name == "expand" and overload == "default":
        x = _whole(args[0])
        extra = len(args[1]) - (x.dim() - 1)
        if extra:
            x = x.view([x.shape[0], *[1] * extra, *x.shape[1:]])
        return level, func, (x, [x.shape[0], *args[1]]), kwargs
    return None


def _whole(tensor: Any) -> Any:
    array = tensor._array
    return wrap(array.array) if isinstance(array, Batched) else tensor
