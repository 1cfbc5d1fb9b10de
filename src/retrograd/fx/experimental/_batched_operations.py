"""Operations on the samples of a vmap, and on duals, as operations on plain tensors.

torch's functorch runs them as operations on whole batches, or on primals and tangents. Some are here recorded as these; any other as one,
`retrograd::<name>_vmap` or `retrograd::<name>_jvp`, of which the transform computes what the operation is.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ..._core.arrays import Batched, Dual, LevelArray, highest_level
from ..._dispatch import kernel_of, schemas
from ...ops import OpOverload, OpOverloadPacket, Tag, aten
from ...tensor import Tensor
from ...tensor._base import wrap
from ...utils import _pytree as pytree

ALIKE = frozenset(("clone", "detach", "zeros_like", "ones_like"))  # they do the same to a batch as to a sample


def _is_pointwise(op: OpOverload) -> bool:
    return (Tag.pointwise in op.tags and not op._schema.is_mutable) or op._overloadpacket.__name__ in ALIKE


def physical(func: Any, args: Any, kwargs: Any, leveled: list[Any]) -> Any:
    """Return the level, and the operation and arguments on whole batches; None if there is no rule."""
    levels = {one._array.level for one in leveled}
    if len(levels) != 1 or any(
        not isinstance(one._array, Batched) or isinstance(one._array.array, LevelArray) for one in leveled
    ):
        return None
    (level,) = levels
    name, overload = func._overloadpacket.__name__, func._overloadname
    if _is_pointwise(func):
        ranks = {one.dim() for one in leveled}
        tensors = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        if len(ranks) != 1 or max(one.dim() for one in tensors) > max(ranks):
            return None  # a batch would have to get dimensions behind its first
        return level, func, *pytree.tree_map_only(Tensor, _whole, (args, kwargs))
    if name in ("sum", "mean") and len(leveled) == 1 and leveled[0].dim():
        x = _whole(args[0])
        if overload == "default":
            dims = [*range(1, x.dim())]
            op = aten.sum.dim_IntList if name == "sum" else aten.mean.dim
            return level, op, (x, dims), kwargs
        dims = [d % (x.dim() - 1) + 1 for d in args[1] or range(x.dim() - 1)]
        return level, func, (x, dims, *args[2:]), kwargs
    if name == "expand" and overload == "default" and len(args[1]) == args[0].dim():
        x = _whole(args[0])
        return level, func, (x, [x.shape[0], *args[1]]), kwargs
    return None


class _Transformed(OpOverloadPacket):
    """An operation on a batch, or on duals: the names of its tensors that are, and the arguments of the operation, in order."""

    kind = ""
    own: tuple[tuple[str, str], ...] = ()  # arguments of its own, and their types
    writes = True  # whether what the operation writes is written
    gave_one = False  # whether the last call returned one tensor, not several

    def __init__(self, of: OpOverload) -> None:
        super().__init__("retrograd", f"{of._overloadpacket.__name__}_{self.kind}")
        self.of = of
        number = 1 + sum(one.name.startswith(self.own[0][0]) for one in of._schema.arguments)
        arguments = [schemas.Argument(f"{name}{number}", kind, None, False, None, True) for name, kind in self.own]
        kept = {} if self.writes else {"alias_info": None}
        arguments += [one._replace(kwarg_only=False, **kept) for one in of._schema.arguments]
        text = f"{self._qualified_op_name}(...) -> ..."
        self.schema = schemas.FunctionSchema(self._qualified_op_name, "", arguments, [], text)

    def _forms(self) -> dict[str, Any]:
        return dict.fromkeys((self.of._overloadname, "default"), self.schema)

    def _call(self, args: Any, tensors: Any) -> list[Any]:
        """Run the operation with tensors in place of those among its arguments; return its results as a list."""
        left = iter(tensors)
        values = pytree.tree_map(lambda one: next(left) if isinstance(one, Tensor) else one, list(args))
        positional, named = schemas.given(
            self.of._schema, dict(zip([one.name for one in self.of._schema.arguments], values, strict=False))
        )
        out = kernel_of(self.of)(*positional, **named)
        self.gave_one = not isinstance(out, (list, tuple))
        results = [out] if self.gave_one else list(out)
        return [one.resolve_conj().resolve_neg() if isinstance(one, Tensor) else one for one in results]


class OnBatches(_Transformed):
    """An operation of which some tensors have a batch in front."""

    kind = "vmap"
    own = (("batched", "bool[]"), ("randomness", "str"))

    def _computes(self, op: OpOverload) -> Any:
        def compute(batched: Any, randomness: str, *args: Any) -> Any:
            vmap = import_module("...func", __package__).vmap
            tensors = _tensors(args)
            dims = tuple(0 if one else None for one in batched)
            run = vmap(lambda *own: tuple(self._call(args, own)), dims, randomness=randomness, _allow_none=True)
            return list(run(*tensors))

        return compute


class OnDuals(_Transformed):
    """An operation of which some tensors have a tangent: it returns the results, and their tangents."""

    kind = "jvp"
    own = (("tangents", "Tensor?[]"),)
    writes = False  # the trace writes the results, and their tangents

    def _computes(self, op: OpOverload) -> Any:
        def compute(tangents: Any, *args: Any) -> Any:
            forward = import_module("...autograd.forward_ad", __package__)
            tensors = _tensors(args)
            if self.of._schema.is_mutable:
                at = len(_tensors(args[: written_at(self.of)]))
                tensors[at] = tensors[at].clone()
            with forward.dual_level():
                own = [
                    one if tangent is None else forward.make_dual(one, tangent)
                    for one, tangent in zip(tensors, tangents, strict=True)
                ]
                out = [
                    forward.unpack_dual(one) if isinstance(one, Tensor) else (one, None)
                    for one in self._call(args, own)
                ]
            return [*[one[0] for one in out], *[one[1] for one in out]]

        return compute


@cache
def _on(kind: Any, op: OpOverload) -> OpOverload:
    return OpOverload(kind(op), op._overloadname)


def _tensors(args: Any) -> list[Any]:
    return [one for one in pytree.tree_leaves(list(args)) if isinstance(one, Tensor)]


def written_at(op: OpOverload) -> int:
    """Return the position of the argument that an operation writes into."""
    return next(k for k, one in enumerate(op._schema.arguments) if one.is_write)


def taken_apart(func: Any, args: Any, kwargs: Any, leveled: list[Any]) -> Any:
    """Return an operation on arguments without the innermost level, and what puts the level back on its results."""
    level: Any = highest_level([one._array for one in leveled])
    values = schemas.bind(func._schema, args, kwargs) if func.namespace == "aten" else None
    names = [one.name for one in func._schema.arguments]
    if values is None:
        values = {**dict(zip(names, args, strict=False)), **kwargs}
    given = [values.get(one.name, one.default_value) for one in func._schema.arguments]
    tensors = _tensors(given)
    has = [isinstance(one._array, LevelArray) and one._array.level is level for one in tensors]
    plain = pytree.tree_map_only(Tensor, lambda one: _without(one, level), given)
    if isinstance(next(one for one, is_in in zip(tensors, has, strict=True) if is_in)._array, Batched):
        op = _on(OnBatches, func)

        def put_back(out: Any) -> Any:
            return [None if one is None else wrap(Batched(level, one._array)) for one in out]

        return op, [has, level.randomness, *plain], put_back
    tangents = [wrap(one._array.tangent) if is_in else None for one, is_in in zip(tensors, has, strict=True)]

    def with_tangents(out: Any) -> Any:
        half = len(out) // 2
        return [
            one if tangent is None else wrap(Dual(level, one._array, tangent._array))
            for one, tangent in zip(out[:half], out[half:], strict=True)
        ]

    return _on(OnDuals, func), [tangents, *plain], with_tangents


def gives_many(func: Any, op: OpOverload) -> bool:
    """Tell whether an operation gives several results: by its schema, else by what `op`, which ran it on a batch or duals, got."""
    returns = func._schema.returns
    if not returns:
        return not op._overloadpacket.gave_one
    return len(returns) > 1 or returns[0].type.endswith("]")


def _without(tensor: Any, level: Any) -> Any:
    array: Any = tensor._array
    if not isinstance(array, LevelArray) or array.level is not level:
        return tensor
    return wrap(array.array if isinstance(array, Batched) else array.primal)  # type: ignore[attr-defined]


def _whole(tensor: Any) -> Any:
    array = tensor._array
    return wrap(array.array) if isinstance(array, Batched) else tensor
