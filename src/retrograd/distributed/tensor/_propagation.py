"""Operations on distributed tensors: which placements they need, and which their results have.

Note [Strategies]
Rule 1. A rule says, for one dimension of a mesh, which placements of the inputs give which placement of the results. A matrix product
        has few: rows cut, columns cut, the inner dimension cut (the result is then a Partial), and everything whole.
Rule 2. Each dimension of the mesh takes the strategy that moves the fewest bytes, among those that use a cut which is already there.
        All processes see the same placements, so they choose the same.
Rule 3. The inputs are redistributed, the function runs on the parts, and the results are wrapped. A Replicate input of results that
        are not Replicate gets the sum of its gradients (Rule 3 of Note [Gradients of placements]).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..._modes import using
from ..._size import Size
from ...autograd.grad_mode import is_grad_enabled
from ...tensor import Tensor
from ...tensor._functions.creation import empty
from ...tensor._object.layout import dense_strides
from ...tensor._storage.given_strides import empty_strided
from .. import _collectives as c
from .._reductions import ReduceOp
from ._dtensor import DTensor, like, moved, placed
from ._redistribute import redistributed, with_summed_gradient
from ._utils import compute_local_shape, compute_local_shape_and_global_offset
from .placement_types import Partial, Placement, Replicate, Shard

MIXED = (
    "{name} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed "
    "operators!"
)
UNKNOWN = (
    "Operator {name} does not have a sharding strategy registered.\nHint: call it on parts (x.to_local()), on the whole "
    "(x.full_tensor()), or through torch.distributed.tensor.experimental.local_map."
)
replicates_others = [False]  # whether plain tensors may stand beside distributed ones: `implicit_replication`

Strategy = tuple[Placement, tuple[Placement, ...]]  # of the results, and of the inputs
WHOLE: Placement = Replicate()


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


SUMS = words("add sub")
PRODUCTS = words("mul div")
UNCHANGED = words("neg clone contiguous to cpu cuda float double real imag alias")
WEIGHTED_MEANS = words("l1_loss mse_loss smooth_l1_loss huber_loss")  # which divide by the sum of the weights
FILLING = words("zero_ fill_ normal_ uniform_ copy_ random_ bernoulli_ exponential_ trunc_normal_ masked_fill_")


class Call:
    """A function with arguments, some of which are distributed tensors."""

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs
        self.name: str = getattr(func, "__name__", str(func))
        given = list(tensors_of((args, kwargs)))
        self.mesh = next(one for one in given if isinstance(one, DTensor)).device_mesh
        self.tensors = [self._distributed(one) for one in given]

    def _distributed(self, tensor: Any) -> DTensor:
        if isinstance(tensor, DTensor):
            if tensor.device_mesh != self.mesh:
                raise NotImplementedError(
                    f"{self.name} of tensors on different meshes, {self.mesh} and {tensor.device_mesh}\n"
                    "Hint: redistribute one of them by full_tensor() and distribute_tensor()."
                )
            return tensor
        if tensor.ndim > 0 and not replicates_others[0]:
            raise RuntimeError(MIXED.format(name=self.name))
        return placed(tensor, self.mesh, (WHOLE,) * self.mesh.ndim, tensor.shape)

    def argument(self, at: int, name: str, default: Any = None) -> Any:
        """Return an argument that may be given by position or by name."""
        return self.args[at] if len(self.args) > at else self.kwargs.get(name, default)

    def with_tensors(self, tensors: Sequence[Any]) -> tuple[Any, Any]:
        """Return the arguments with others in the place of the tensors."""
        left = iter(tensors)
        return _replaced((self.args, self.kwargs), left)  # type: ignore[no-any-return]

    def shapes(self) -> Any:
        """Return the result that the function has on tensors of the whole shapes without memory."""
        made = [empty_strided(one.shape, one.stride(), dtype=one.dtype, device="meta") for one in self.tensors]
        args, kwargs = self.with_tensors(made)
        with using(grad=False):
            return self.func(*args, **kwargs)


# ---- tensors inside of arguments ----
def tensors_of(values: Any) -> Iterable[Any]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, dict):
        yield from tensors_of(list(values.values()))
    elif isinstance(values, (tuple, list)) and not isinstance(values, Size):
        for one in values:
            yield from tensors_of(one)


def _replaced(values: Any, left: Any) -> Any:
    if isinstance(values, Tensor):
        return next(left)
    if isinstance(values, dict):
        return {key: _replaced(one, left) for key, one in values.items()}
    if isinstance(values, (tuple, list)) and not isinstance(values, Size):
        made = [_replaced(one, left) for one in values]
        return type(values)(*made) if hasattr(values, "_fields") else type(values)(made)
    return values


def mapped(values: Any, function: Callable[[Any], Any]) -> Any:
    return _replaced(values, (function(one) for one in list(tensors_of(values))))


# ---- choosing and running ----
def cost(tensor: DTensor, here: Placement, there: Placement) -> float:
    """Return how many numbers a change of placement moves, roughly."""
    if here == there:
        return 0.0
    size = max(math.prod(tensor._whole_shape), 1)
    if here.is_replicate():
        return 0.01 * size  # nothing is sent
    if there.is_replicate():
        return (2.0 if here.is_partial() else 1.0) * size
    return math.inf if there.is_partial() else (1.0 if here.is_partial() else 0.5) * size


def chosen(this: Call, strategies: Sequence[Strategy], mesh_dim: int) -> Strategy:
    """Return the cheapest strategy along a dimension of the mesh. See Rule 2 of Note [Strategies]."""
    everything_whole: Strategy = (WHOLE, (WHOLE,) * len(this.tensors))
    best, least = everything_whole, math.inf
    for result, inputs in (*strategies, everything_whole):
        here = [one.placements[mesh_dim] for one in this.tensors]
        uses = any(a == b and not a.is_replicate() for a, b in zip(here, inputs, strict=True))
        if not uses and any(not one.is_replicate() for one in inputs):
            continue
        total = sum(cost(one, *pair) for one, *pair in zip(this.tensors, here, inputs, strict=True))
        if total < least:
            best, least = (result, tuple(inputs)), total
    return best


def run(this: Call, strategies: Sequence[Strategy], shapes: Any = None, local: Callable[..., Any] | None = None) -> Any:
    """Run a function by the cheapest strategies. `local` runs on the parts instead, with the placements of the result."""
    mesh = this.mesh
    picked = [chosen(this, strategies, at) for at in range(mesh.ndim)]
    results = tuple(result for result, _ in picked)
    if shapes is None:
        shapes = this.shapes()
    parts = []
    for i, one in enumerate(this.tensors):
        parts.append(part_for(one, tuple(inputs[i] for _, inputs in picked), results))
    args, kwargs = this.with_tensors(parts)
    value = this.func(*args, **kwargs) if local is None else local(results, *parts)
    if isinstance(shapes, Size):
        return placed(value, mesh, results, shapes)
    wholes = iter(tensors_of(shapes))
    return mapped(value, lambda one: placed(one, mesh, results, (whole := next(wholes)).shape, whole.stride()))


def part_for(tensor: DTensor, wanted: tuple[Placement, ...], results: tuple[Placement, ...]) -> Any:
    """Return this process's part under the wanted placements, whose gradients are added up where the results are not whole."""
    mesh, shape = tensor.device_mesh, tensor._whole_shape
    part = redistributed(tensor.as_subclass(Tensor), mesh, shape, tensor.placements, wanted)
    summed = [
        at
        for at in range(mesh.ndim)
        if mesh.size(at) > 1 and wanted[at].is_replicate() and not results[at].is_replicate()
    ]
    return with_summed_gradient(part, mesh, shape, wanted, summed)


def aligned(shape: Sequence[int], out: Sequence[int], dim: int) -> Placement:
    """Return how an input lies whose result is cut along a dimension, under broadcasting."""
    own = dim - (len(out) - len(shape))
    return Shard(own) if own >= 0 and shape[own] == out[dim] else WHOLE


# ---- element by element ----
def pointwise(this: Call) -> Any:
    """Compute element by element: cut as the inputs are. Sums of Partials, and their products with others, are Partials."""
    shapes = [one._whole_shape for one in this.tensors]
    out = tuple(np.broadcast_shapes(*shapes))
    strategies: list[Strategy] = [
        (Shard(dim), tuple(aligned(shape, out, dim) for shape in shapes)) for dim in range(len(out))
    ]
    return run(this, [*strategies, *_of_summands(this)], Size(out))


def _of_summands(this: Call) -> list[Strategy]:
    count, summand = len(this.tensors), Partial()
    if this.name in SUMS and count == 2:
        return [(summand, (summand, summand))]
    if this.name in PRODUCTS or (this.name in UNCHANGED and count == 1):
        first: Strategy = (summand, (summand, *(WHOLE,) * (count - 1)))
        both = this.name == "mul" and count == 2
        return [first, (summand, (WHOLE, summand))] if both else [first]
    return []


def in_place(this: Call) -> Any:
    """Change a tensor where it lies: the others are brought to it."""
    target: Any = this.tensors[0]
    others = this.tensors[1:]
    if not isinstance(this.args[0], DTensor):
        raise RuntimeError(MIXED.format(name=this.name))
    _need_summands_apart(this, target, others)
    shape = target._whole_shape
    for one in others:
        if tuple(np.broadcast_shapes(shape, one._whole_shape)) != shape:
            raise RuntimeError(
                f"output with shape {list(shape)} doesn't match the broadcast shape "
                f"{list(np.broadcast_shapes(shape, one._whole_shape))}"
            )
    parts = []
    for one in others:
        wanted = tuple(_beside(place, one, shape, this.name) for place in target.placements)
        parts.append(part_for(one, wanted, target.placements))
    args, kwargs = this.with_tensors([target, *parts])
    target.__class__ = Tensor  # its memory is a part, which is written as that of any tensor
    try:
        this.func(*args, **kwargs)
    finally:
        target.__class__ = DTensor
    return target


def _beside(place: Placement, other: DTensor, shape: Sequence[int], name: str) -> Placement:
    """Return how a tensor must lie that is written into another, or combined with it."""
    if isinstance(place, Shard):
        return aligned(other._whole_shape, shape, place.dim)
    return place if place.is_partial() and name in ("add_", "sub_", "copy_") else WHOLE


def _need_summands_apart(this: Call, target: DTensor, others: Sequence[DTensor]) -> None:
    """Refuse what cannot be done to each summand: a sum of summands with a number added to each has it several times."""
    partial = [one for one in target.placements if isinstance(one, Partial)]
    fits = this.name in ("zero_", "mul_", "div_", "neg_") or (this.name in ("add_", "sub_", "copy_") and others)
    if partial and not (fits and all(one.reduce_op in ("sum", "avg") for one in partial)):
        raise RuntimeError(
            f"{this.name}: in-place operations that require placement changes are not supported. The input has placement "
            f"{target.placements}, but no valid strategy preserves it\nHint: x = x.redistribute(placements=[Replicate()]) first."
        )


def made_like(this: Call) -> Any:
    """Make a tensor of the same shape: it has no summands to add up."""
    source = this.tensors[0]
    args, kwargs = this.with_tensors([source._local_tensor])
    made = this.func(*args, **kwargs)
    places = tuple(WHOLE if one.is_partial() and this.name != "zeros_like" else one for one in source.placements)
    return placed(made, this.mesh, places, source._whole_shape)


def new_whole(this: Call) -> Any:
    """Make a new tensor of a given shape, which every process has whole."""
    args, kwargs = this.with_tensors([one._local_tensor for one in this.tensors])
    made = this.func(*args, **kwargs)
    return placed(made, this.mesh, (WHOLE,) * this.mesh.ndim, made.shape)


# ---- reductions ----
def dims_of(given: Any, ndim: int) -> list[int]:
    if given is None or (isinstance(given, (tuple, list)) and not given):
        return list(range(ndim))
    return [dim % ndim if ndim else 0 for dim in (given if isinstance(given, (tuple, list)) else [given])]


def _kept(dims: Sequence[int], ndim: int, keepdim: bool) -> dict[int, int]:
    """Return where the dimensions that are not reduced are in the result."""
    left = [dim for dim in range(ndim) if dim not in dims]
    return {dim: dim if keepdim else at for at, dim in enumerate(left)}


def reducing(op: str | None) -> Callable[[Call], Any]:
    """Return the rule of a reduction. What is cut along a reduced dimension gives a Partial, or must be whole without an `op`."""

    def reduce(this: Call) -> Any:
        source = this.tensors[0]
        given = this.argument(1, "dim")
        dims = dims_of(given, source.ndim)
        shapes = this.shapes()
        keepdim = next(iter(tensors_of(shapes))).ndim == source.ndim
        kept = _kept(dims, source.ndim, keepdim)
        strategies: list[Strategy] = [(Shard(after), (Shard(before),)) for before, after in kept.items()]
        places_wanted = this.name in ("max", "min") and given is not None
        needs_whole = (
            op != "sum" and source.requires_grad and is_grad_enabled()
        )  # gradients go to the largest of all only
        if op is not None and not places_wanted and not needs_whole:
            cut = [dim for dim in dims if op == "sum" or not _leaves_some_without(source._whole_shape[dim], this.mesh)]
            strategies += [(Partial(op), (Shard(dim),)) for dim in cut]
            strategies += [(Partial(op), (Partial(op),))]
        return run(this, strategies, shapes)

    return reduce


def _leaves_some_without(length: int, mesh: Any) -> bool:
    """Tell whether a cut may leave a process nothing: it has no largest element."""
    counts = (*mesh.shape, mesh.size())
    return any(Shard.local_shard_size_and_offset(length, count, count - 1)[0] == 0 for count in counts)


def mean(this: Call) -> Any:
    """Return the mean as a sum divided by the whole's count: parts may differ in size."""
    source = this.tensors[0]
    dims = this.argument(1, "dim")
    count = math.prod(source._whole_shape[dim] for dim in dims_of(dims, source.ndim))
    total = source.sum(dims, this.argument(2, "keepdim", False), dtype=this.kwargs.get("dtype"))
    return total / count


def norm(this: Call) -> Any:
    """Return a norm: that of the norms of the parts."""
    source = this.tensors[0]
    order = this.argument(1, "p" if this.name == "norm" else "ord", 2)
    dims = dims_of(this.argument(2, "dim"), source.ndim)
    cut = [at for at, one in enumerate(source.placements) if one.is_shard() and one.dim in dims]  # type: ignore[attr-defined]
    if not cut or not isinstance(order, (int, float)) or order == 0:
        kept = _kept(dims, source.ndim, bool(this.argument(3, "keepdim", False)))
        return run(this, [(Shard(after), (Shard(before),)) for before, after in kept.items()])
    wanted = tuple(WHOLE if one.is_partial() else one for one in source.placements)
    own = part_for(source, wanted, wanted)
    if any(own.shape[dim] == 0 for dim in dims) and (order < 0 or order == math.inf):  # these norms of nothing raise
        own = own.sum(dims, keepdim=True) + (
            math.inf if order < 0 else 0.0
        )  # what leaves the norms of the others as they are
    args, kwargs = this.with_tensors([own])
    part = this.func(*args, **kwargs)
    kept = _kept(dims, source.ndim, bool(this.argument(3, "keepdim", False)))
    for at in cut:  # the norms of all processes along this dimension of the mesh, beside each other
        beside = tuple(Shard(0) if i == at else WHOLE for i in range(this.mesh.ndim))
        shape = (this.mesh.size(at), *part.shape)
        norms = redistributed(part.unsqueeze(0), this.mesh, shape, beside, (WHOLE,) * this.mesh.ndim)
        part = norms.norm(order, 0)
    places = tuple(
        WHOLE if at in cut or not isinstance(one, Shard) else Shard(kept[one.dim]) for at, one in enumerate(wanted)
    )
    return placed(part, this.mesh, places, this.shapes().shape)


def along(position: int, name: str, default: Any = None) -> Callable[[Call], Any]:
    """Return the rule of what needs a dimension whole and keeps the others: a softmax, a sort, a cumulative sum."""

    def keep_others(this: Call) -> Any:
        source = this.tensors[0]
        dims = dims_of(this.argument(position, name, default), source.ndim)
        strategies = [(Shard(dim), _beside_first(this, dim)) for dim in range(source.ndim) if dim not in dims]
        return run(this, strategies)

    return keep_others


def _beside_first(this: Call, dim: int) -> tuple[Placement, ...]:
    return (Shard(dim), *(aligned(one._whole_shape, this.tensors[0]._whole_shape, dim) for one in this.tensors[1:]))


def normalised(this: Call) -> Any:
    """Normalise the last dimensions, which must be whole; weights are whole, too."""
    source = this.tensors[0]
    count = len(this.argument(1, "normalized_shape"))
    others = (WHOLE,) * (len(this.tensors) - 1)
    return run(this, [(Shard(dim), (Shard(dim), *others)) for dim in range(source.ndim - count)], source.shape)


# ---- products ----
def matmul(this: Call) -> Any:
    """Multiply matrices, or batches of them: cut by rows, by columns, or along the inner dimension, or summands of either."""
    x, y = this.tensors
    return run(this, ways_to_multiply(x._whole_shape, y._whole_shape, transposed=False))


def ways_to_multiply(left: Sequence[int], right: Sequence[int], transposed: bool) -> list[Strategy]:
    """Return the strategies of a matrix product; the second is transposed in a linear layer."""
    rows = [len(left) - 2] if len(left) > 1 else []
    inner, columns = (len(right) - 2, [len(right) - 1]) if len(right) > 1 else (0, [])
    if transposed:
        inner, columns = len(right) - 1, [0] if len(right) > 1 else []
    batch = np.broadcast_shapes(tuple(left[:-2]), () if transposed else tuple(right[:-2]))
    ndim = len(batch) + len(rows) + len(columns)
    found: list[Strategy] = []
    for dim in range(len(batch)):
        cut = aligned(left[:-2], batch, dim), WHOLE if transposed else aligned(right[:-2], batch, dim)
        found.append((Shard(dim), cut))
    found += [(Shard(len(batch)), (Shard(row), WHOLE)) for row in rows]
    found += [(Shard(ndim - 1), (WHOLE, Shard(column))) for column in columns]
    found.append((Partial(), (Shard(len(left) - 1), Shard(inner))))
    return [*found, (Partial(), (Partial(), WHOLE)), (Partial(), (WHOLE, Partial()))]


def linear(this: Call) -> Any:
    """Multiply by a transposed weight, then add the bias: to summands of the product, a summand of it."""
    x, weight, *bias = this.tensors
    product = Call(this.func, (x, weight), {})
    found = run(product, ways_to_multiply(x._whole_shape, weight._whole_shape, transposed=True))
    return found + bias[0] if bias else found


def added_product(this: Call) -> Any:
    """Add a product to a tensor. Where both factors are cut along the inner dimension, their product comes first, as summands."""
    added, x, y = this.tensors
    strategies = ways_to_multiply(x._whole_shape, y._whole_shape, transposed=False)
    inner = next(given for result, given in strategies if result.is_partial())
    if any(pair == inner for pair in zip(x.placements, y.placements, strict=True)):
        beta, alpha = this.kwargs.get("beta", 1), this.kwargs.get("alpha", 1)
        product = x @ y
        return (added if beta == 1 else added * beta) + (product if alpha == 1 else product * alpha)
    shapes = this.shapes()
    out, own = tuple(shapes.shape), added._whole_shape
    cuts = [(one, aligned(own, out, one.dim), *given) for one, given in strategies if isinstance(one, Shard)]
    return run(this, [(result, tuple(given)) for result, *given in cuts], shapes)


def einsum(this: Call) -> Any:
    """Sum products by letters: one that is cut in all tensors that have it stays cut in the result, or gives summands of it."""
    equation = this.args[0]
    if not isinstance(equation, str) or "." in equation:
        return whole(this)
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if "->" not in equation:
        right = "".join(sorted(letter for letter in set(left) - {","} if left.count(letter) == 1))
    strategies: list[Strategy] = []
    for letter in dict.fromkeys(left.replace(",", "")):
        sizes = {
            one._whole_shape[term.index(letter)]
            for one, term in zip(this.tensors, terms, strict=True)
            if letter in term
        }
        if len(sizes) == 1 and all(term.count(letter) < 2 for term in terms):
            result: Placement = Shard(right.index(letter)) if letter in right else Partial()
            strategies.append((result, tuple(Shard(term.index(letter)) if letter in term else WHOLE for term in terms)))
    return run(this, strategies)


def attention(this: Call) -> Any:
    """Attend: batches and heads may be cut, if queries, keys and values are cut alike."""
    query, key, value = this.tensors[:3]
    strategies: list[Strategy] = []
    for dim in range(query.ndim - 2):
        if query._whole_shape[dim] == key._whole_shape[dim] == value._whole_shape[dim]:
            masks = [aligned(one._whole_shape, query._whole_shape, dim) for one in this.tensors[3:]]
            strategies.append((Shard(dim), (Shard(dim), Shard(dim), Shard(dim), *masks)))
    return run(this, strategies)


def embedding(this: Call) -> Any:
    """Look rows of a table up: the numbers may be cut, or the table by columns or by rows, which gives summands."""
    numbers, table = this.tensors
    if this.argument(3, "max_norm") is not None and any(not one.is_replicate() for one in table.placements):
        raise NotImplementedError("embedding(max_norm=...) of a table that is cut: it would be changed in parts")
    rows_cut = [at for at, one in enumerate(table.placements) if one.is_shard(0)]
    if rows_cut:
        return _in_parts_of_the_table(this, numbers, table, rows_cut)
    ndim = numbers.ndim
    strategies: list[Strategy] = [(Shard(dim), (Shard(dim), WHOLE)) for dim in range(ndim)]
    return run(this, [*strategies, (Shard(ndim), (WHOLE, Shard(1)))], Size((*numbers._whole_shape, table.size(1))))


def _in_parts_of_the_table(this: Call, numbers: DTensor, table: DTensor, rows_cut: list[int]) -> Any:
    """Look up what this process has; rows of others are zeros, to be added up."""
    if this.argument(5, "scale_grad_by_freq", False):
        raise NotImplementedError("embedding of a table cut by rows: without scale_grad_by_freq")
    mesh, whole = this.mesh, (WHOLE,) * this.mesh.ndim
    wanted = tuple(one if at in rows_cut else WHOLE for at, one in enumerate(table.placements))
    results = tuple(Partial() if at in rows_cut else WHOLE for at in range(mesh.ndim))
    part = part_for(table, wanted, results)
    looked_up = part_for(numbers, whole, whole)
    (length, _), (begin, _) = compute_local_shape_and_global_offset(table._whole_shape, mesh, wanted)
    here = (looked_up >= begin) & (looked_up < begin + length)
    padding = this.argument(2, "padding_idx")
    if padding is not None:
        padding = padding % table.size(0) - begin
        padding = padding if 0 <= padding < length else None
    shape = (*numbers._whole_shape, table.size(1))
    if length == 0:
        found = part.new_zeros(shape) + part.sum() * 0
    else:
        found = this.func(looked_up.sub(begin).where(here, 0), part, padding_idx=padding)
        found = found.where(here.unsqueeze(-1), 0)
    return placed(found, mesh, results, shape)


# ---- losses ----
def loss_of_each(this: Call) -> Any:
    """Return a loss that is computed element by element, then added up, or its mean."""
    given = inspect.signature(this.func).bind(*this.args, **this.kwargs).arguments
    old, weighted = (given.get("size_average"), given.get("reduce")), given.get("weight") is not None
    if old != (None, None) or (weighted and this.name in WEIGHTED_MEANS):
        return whole(this)
    reduction = given.get("reduction", "mean")
    each = pointwise(Call(this.func, (), {**given, "reduction": "none"}))
    if reduction == "batchmean":
        return each.sum() / this.tensors[0].size(0)
    return _reduced(each, reduction)


def _reduced(each: Any, reduction: str) -> Any:
    if reduction == "none":
        return each
    return each.mean() if reduction == "mean" else each.sum()


def cross_entropy(this: Call) -> Any:
    """Return the cross entropy. Samples may be cut if losses are added up or kept; a mean needs the count of all."""
    x = this.tensors[0]
    reduction = this.argument(6, "reduction", "mean")
    if reduction == "mean" or x.ndim < 2:
        return run(this, [])
    others = tuple(
        Shard(0) if one.shape[:1] == x.shape[:1] and i == 0 else WHOLE for i, one in enumerate(this.tensors[1:])
    )
    result: Placement = Partial() if reduction == "sum" else Shard(0)
    return run(this, [(result, (Shard(0), *others))])


# ---- shapes ----
def reshaped(this: Call) -> Any:
    """Give the same elements another shape. A cut goes on where the dimension begins a dimension of the result evenly."""
    source = this.tensors[0]
    if this.name in ("view_as", "reshape_as"):
        return getattr(source, this.name.removesuffix("_as"))(this.tensors[1].shape)
    out = tuple(this.shapes().shape)
    strategies = _through(source, out)

    def local(results: Any, part: Any) -> Any:
        shape = compute_local_shape(out, this.mesh, results)
        return part.view(shape) if this.name == "view" else part.reshape(shape)

    return run(this, strategies, Size(out), local)


def _through(source: DTensor, out: Sequence[int]) -> list[Strategy]:
    """Return where cuts of a tensor are after a change of its shape."""
    shape, found = source._whole_shape, []
    for dims, made in _groups(shape, out):
        if not dims or not made:
            continue
        count = math.prod(
            source.device_mesh.size(at) for at, one in enumerate(source.placements) if one.is_shard(dims[0])
        )
        one_to_one = len(dims) == len(made) == 1
        even = shape[dims[0]] % count == 0 and out[made[0]] % count == 0
        if one_to_one or even:
            found.append((Shard(made[0]), (Shard(dims[0]),)))
    summed: Strategy = (Partial(), (Partial(),))
    return [*found, summed]


def _groups(shape: Sequence[int], out: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Pair runs of dimensions, those of length 1 left out, that hold the same elements."""
    left, right = ([dim for dim, n in enumerate(one) if n != 1] for one in (shape, out))
    found: list[tuple[list[int], list[int]]] = []
    while left and right:
        dims, made = [left.pop(0)], [right.pop(0)]
        have, need = shape[dims[0]], out[made[0]]
        while have != need:
            if have < need and left:
                dims.append(left.pop(0))
                have *= shape[dims[-1]]
            elif right:
                made.append(right.pop(0))
                need *= out[made[-1]]
            else:
                break
        found.append((dims, made))
    return found


def permuted(this: Call) -> Any:
    """Put dimensions into another order, which a tensor of different lengths shows."""
    source = this.tensors[0]
    lengths = [2 + dim for dim in range(source.ndim)]
    args, kwargs = this.with_tensors([empty(lengths, device="meta")])
    order = [n - 2 for n in this.func(*args, **kwargs).shape]
    strategies: list[Strategy] = [(Shard(at), (Shard(dim),)) for at, dim in enumerate(order)]
    return run(this, [*strategies, (Partial(), (Partial(),))])


def expanded(this: Call) -> Any:
    """Repeat a tensor along dimensions of length 1, or new ones."""
    source = this.tensors[0]
    if this.name == "expand_as":
        return source.expand(this.tensors[1].shape)
    shapes = this.shapes()
    out = tuple(shapes.shape)
    offset = len(out) - source.ndim
    strategies: list[Strategy] = [
        (Shard(dim + offset), (Shard(dim),))
        for dim in range(source.ndim)
        if source._whole_shape[dim] == out[dim + offset]
    ]

    def local(results: Any, part: Any) -> Any:
        return part.expand(compute_local_shape(out, this.mesh, results))

    return run(this, strategies, shapes, local)


def joined(this: Call) -> Any:
    """Join tensors along a dimension, which must be whole; `stack` makes a new one."""
    first = this.tensors[0]
    new = this.name == "stack"
    dim = this.argument(1, "dim", 0) % (first.ndim + new)
    count = len(this.tensors)
    strategies: list[Strategy] = [
        (Shard(at + (new and at >= dim)), (Shard(at),) * count) for at in range(first.ndim) if new or at != dim
    ]
    return run(this, [*strategies, (Partial(), (Partial(),) * count)])


def unbound(this: Call) -> Any:
    """Take slices along a dimension, which goes away."""
    source = this.tensors[0]
    dim = this.argument(1, "dim", 0) % source.ndim
    return run(this, [(Shard(at - (at > dim)), (Shard(at),)) for at in range(source.ndim) if at != dim])


def indexed(this: Call) -> Any:
    """Index: dimensions that are taken in full may stay cut."""
    source = this.tensors[0]
    index = this.args[1] if isinstance(this.args[1], tuple) else (this.args[1],)
    if len(this.tensors) > 1 or any(not isinstance(one, (int, slice, type(None), type(...))) for one in index):
        return whole(this)
    used = sum(one is not None and one is not ... for one in index)
    if ... not in index:
        index = (*index, ...)
    strategies: list[Strategy] = []
    dim = at = 0
    for one in index:
        span = source.ndim - used if one is ... else 1
        for _ in range(span):
            if one is None:
                at += 1
                continue
            if one is ... or one == slice(None):
                strategies.append((Shard(at), (Shard(dim),)))
            at += not isinstance(one, int)
            dim += 1
    return run(this, strategies)


def changed(this: Call) -> Any:
    """Change a tensor by something that needs it whole: a whole is changed, and this process's part of it is kept."""
    target: Any = this.tensors[0]
    if not isinstance(this.args[0], DTensor):
        raise RuntimeError(MIXED.format(name=this.name))
    whole = (WHOLE,) * this.mesh.ndim
    others = [part_for(one, whole, whole) for one in this.tensors[1:]]
    if target.placements != whole:
        copy = part_for(target, whole, whole).clone()
        args, kwargs = this.with_tensors([copy, *others])
        this.func(*args, **kwargs)
        if tuple(copy.shape) != target._whole_shape:
            raise NotImplementedError(
                f"{this.name} of a tensor that lies as {target.placements}: use the function that returns a new tensor"
            )
        return target.copy_(placed(copy, this.mesh, whole, copy.shape))
    args, kwargs = this.with_tensors([target, *others])
    target.__class__ = Tensor
    try:
        this.func(*args, **kwargs)
        shape, stride = tuple(target.shape), target.stride()
    finally:
        target.__class__ = DTensor
    target._whole_shape, target._whole_stride = shape, None if stride == dense_strides(shape) else stride
    return target


def whole(this: Call) -> Any:
    """Compute with wholes in every process, as it may be any function of tensors. One that draws would differ between processes."""
    lies = (WHOLE,) * this.mesh.ndim
    args, kwargs = this.with_tensors([part_for(one, lies, lies) for one in this.tensors])
    value = this.func(*args, **kwargs)
    if next(iter(tensors_of(value)), None) is None:
        raise NotImplementedError(UNKNOWN.format(name=this.name))
    return mapped(value, lambda one: placed(one, this.mesh, lies, one.shape, one.stride()))


# ---- what a program reads ----
def number(this: Call) -> Any:
    """Return the number that this process has, as torch does; a Partial's is its summand."""
    source = this.tensors[0]
    if source.numel() != 1:
        raise RuntimeError(f"a Tensor with {source.numel()} elements cannot be converted to Scalar")
    if any(one.is_shard() for one in source.placements):
        source = moved(source, tuple(WHOLE if one.is_shard() else one for one in source.placements))
    return this.func(source.as_subclass(Tensor), *this.args[1:], **this.kwargs)


def compared(this: Call) -> bool:
    """Tell whether two tensors are equal, or close, in all processes' parts."""
    first, second = this.tensors
    if first._whole_shape != second._whole_shape:
        return False
    wanted = tuple(WHOLE if one.is_partial() else one for one in first.placements)
    args, kwargs = this.with_tensors([moved(one, wanted)._local_tensor for one in (first, second)])
    answer = first._local_tensor.new_full((1,), float(this.func(*args, **kwargs)))
    for at in range(this.mesh.ndim):
        c.all_reduce(answer, ReduceOp.MIN, this.mesh.get_group(at))
    return bool(answer.item())


def detached(this: Call) -> Any:
    """Return the tensor outside of the graph."""
    return like(this.tensors[0]._local_tensor, this.tensors[0])


def cast_as(this: Call) -> Any:
    """Return a tensor in the dtype of another."""
    return this.tensors[0].to(this.tensors[1].dtype)
