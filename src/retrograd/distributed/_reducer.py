"""What DistributedDataParallel does with gradients: it collects them in buckets and averages these while backward goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any
from weakref import ref

from .. import _dtypes
from .._modes import using
from .._public import set_all
from .._warnings import warn
from ..autograd.engine import queue_callback
from ..futures import Future
from ..tensor import Tensor
from ..tensor._functions.creation import tensor, zeros
from ..tensor._object.layout import is_dense
from ._collectives import all_reduce, broadcast
from ._objects import all_gather_object

TWICE = (
    "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a module "
    "parameter outside the `forward` function. Please make sure model parameters are not shared across multiple concurrent "
    "forward-backward passes. or try to use _set_static_graph() as a workaround if this module graph does not change during "
    "training loop.2) Reused parameters in multiple reentrant backward passes. For example, if you use multiple `checkpoint` "
    "functions to wrap the same part of your model, it would result in the same set of parameters been used by different "
    "reentrant backward passes multiple times, and hence marking a variable ready multiple times. DDP does not support such "
    "use cases in default. You can try to use _set_static_graph() as a workaround if your module graph does not change over "
    "iterations.\nParameter at index {} with name {} has been marked as ready twice. This means that multiple autograd engine  "
    "hooks have fired for this particular parameter during this iteration."
)
UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your "
    "module has parameters that were not used in producing loss. "
)
DETECT = (
    "You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to "
    "`torch.nn.parallel.DistributedDataParallel`, and by \n"
)
OUTPUTS = (
    "making sure all `forward` function outputs participate in calculating loss. \nIf you already have done the above, then the "
    "distributed data parallel module wasn't able to locate the output tensors in the return value of your module's `forward` "
    "function. Please include the loss function and the structure of the return value of `forward` of your module when reporting "
    "this issue (e.g. list, dict, iterable).\nParameter indices which did not receive grad for rank {}: {}"
)
HIGHER_ORDERS = (
    "Using DistributedDataParallel with create_graph=True  is not well-supported. The higher-order gradient will  not be "
    "synchronized across ranks, and backpropagation  through all_reduce operations will not occur. If you require  DDP to work "
    "with higher-order gradients for your use case,  please ping https://github.com/pytorch/pytorch/issues/63929"
)
NO_HIGHER_ORDERS = (
    "a leaf Variable that requires grad is being used in an in-place operation.\nHint: with create_graph=True gradients carry "
    "a graph, which other processes do not have. Use torch.autograd.grad inside the loss, or call the module inside without "
    "DistributedDataParallel and average with torch.distributed.nn.functional.all_reduce."
)


class BuiltinCommHookType(IntEnum):
    """The hooks that torch has built in."""

    __module__ = "retrograd.distributed.distributed_c10d"

    ALLREDUCE = 0
    FP16_COMPRESS = 1


class GradBucket:
    """Gradients of several parameters, one after the other in one tensor: what a communication hook gets."""

    __module__ = "retrograd.distributed.distributed_c10d"

    def __init__(self, index: int, buffer: Any, parameters: list[Any], last: bool) -> None:
        self._index, self._buffer, self._parameters, self._last = index, buffer, parameters, last

    def index(self) -> int:
        """Return the number of the bucket, in the order in which they are reduced."""
        return self._index

    def buffer(self) -> Any:
        """Return the tensor of all gradients."""
        return self._buffer

    def set_buffer(self, buffer: Any) -> None:
        """Put another tensor in its place."""
        self._buffer = buffer

    def gradients(self) -> list[Any]:
        """Return the gradient of each parameter, which shares the buffer's memory."""
        return _views(self._buffer, self._parameters)

    def parameters(self) -> list[Any]:
        """Return the parameters."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Tell whether it is the last of a backward."""
        return self._last


class _Bucket:
    """A bucket of the reducer: its memory, who fills it, and what averages it."""

    def __init__(self, indices: list[int], parameters: list[Any]) -> None:
        self.indices = indices
        self.parameters = parameters
        total = sum(one.numel() for one in parameters)
        self.buffer = zeros(total, dtype=parameters[0].dtype, device=parameters[0].device)
        self.views = _views(self.buffer, parameters)
        self.missing = len(indices)
        self.result: Any = None  # the work or the future that is under way


def _views(buffer: Any, parameters: Sequence[Any]) -> list[Any]:
    """Return a view of a row for each parameter, ordered in memory as the parameter is."""
    views, start = [], 0
    for one in parameters:
        if not one.is_contiguous() and is_dense(one.detach()._array):
            views.append(buffer.as_strided(one.shape, one.stride(), buffer.storage_offset() + start))
        else:
            views.append(buffer[start : start + one.numel()].view(one.shape))
        start += one.numel()
    return views


def _compute_bucket_assignment_by_size(
    tensors: Sequence[Any],
    bucket_size_limits: Sequence[int],
    expect_sparse_gradient: Any = (),
    tensor_indices: Sequence[int] = (),
) -> tuple[list[list[int]], list[int]]:
    """Divide tensors into buckets of one dtype and device; each is full when it has reached its limit in bytes.

    The limits are those of the first bucket of a kind, of the second, and so on; the last one holds for all others.
    """
    names = list(tensor_indices) or list(range(len(tensors)))
    open_buckets: dict[Any, tuple[list[int], int]] = {}
    turns: dict[Any, int] = {}
    found: list[tuple[list[int], int]] = []
    for name, one in zip(names, tensors, strict=True):
        kind = (one.dtype, one.device)
        indices, size = open_buckets.pop(kind, ([], 0))
        indices.append(name)
        size += one.numel() * one.element_size()
        turn = turns.setdefault(kind, 0)
        if size >= bucket_size_limits[turn]:
            found.append((indices, bucket_size_limits[turn]))
            turns[kind] = min(turn + 1, len(bucket_size_limits) - 1)
        else:
            open_buckets[kind] = (indices, size)
    found += [(indices, bucket_size_limits[turns[kind]]) for kind, (indices, _) in open_buckets.items()]
    if not tensor_indices:
        found.sort(key=lambda one: min(one[0]))
    return [indices for indices, _ in found], [limit for _, limit in found]


def _verify_params_across_processes(group: Any, parameters: Sequence[Any], logger: Any = None) -> None:
    """Raise torch's error in every process unless all have parameters of the same shapes."""
    rank, size = group.rank(), group.size()
    if size == 1:
        return
    facts: list[Any] = [None] * size
    all_gather_object(facts, [(list(one.shape), list(one.stride())) for one in parameters], group)
    mine = facts[rank]
    for other, theirs in enumerate(facts):
        if len(theirs) != len(mine):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {rank} has {len(mine)} params, while rank {other} has "
                f"inconsistent {len(theirs)} params."
            )
    for other, theirs in enumerate(facts):
        for at, (one, another) in enumerate(zip(mine, theirs, strict=True)):
            for what, here, there in zip(("sizes", "strides"), one, another, strict=True):
                if here != there:
                    raise RuntimeError(
                        f"[{rank}]: params[{at}] in this process with {what} {here} appears not to match {what} of the same "
                        f"param in process {other}."
                    )


# Note [Reduction during backward]
# All processes must start the same collectives in the same order, whatever the order of their gradients. So:
# Rule 1. A bucket is reduced when it is full and all before it have started.
# Rule 2. The first backward has one bucket, reduced at its end (several with find_unused_parameters). It shows in which order gradients
#         come; rank 0's order makes the buckets of all later ones.
# Rule 3. Every bucket is reduced in every backward, also if this process used none of its parameters: they count as zero. With
#         find_unused_parameters the processes then tell each other who used what, and what nobody used keeps its `.grad`.
# Rule 4. A backward that is not to be reduced (no_sync, or one after the first of a forward) leaves the buckets alone.
class Reducer:
    """The buckets of a module's gradients, and hooks on its parameters that fill and start them."""

    def __init__(
        self,
        parameters: list[Any],
        names: list[str],
        group: Any,
        first_limits: list[int],
        limits: list[int],
        *,
        find_unused: bool,
        as_views: bool,
    ) -> None:
        self.parameters, self.names, self.group, self.limits = parameters, names, group, limits
        self.find_unused, self.as_views, self.static = find_unused, as_views, False
        self.hook: Callable[[Any], Any] | None = None  # of a bucket, instead of the average
        self.expecting = False  # whether the next gradients are to be reduced
        self.unfinished = False  # whether some have come, and not all
        self.divisor: float | None = None
        self.joined: Callable[[], float] | None = None  # how many processes take part, if not all do
        self.order: list[int] = []  # of gradients in the first backward
        self.rebuilt = False
        self.ready: set[int] = set()
        self.unused: list[int] = []
        self.used = zeros(len(parameters), dtype=_dtypes.int32)
        self.used_everywhere: Any = None
        self.end_queued = False
        self.fired: Counter[int] | None = None  # of a static graph: how often each hook is called, once known
        self.left: Counter[int] = Counter()
        indices, _ = _compute_bucket_assignment_by_size(parameters, first_limits)
        self._make_buckets(indices[::-1])
        me = ref(self)

        def watch(at: int) -> Any:
            def came(_: Any) -> None:
                reducer = me()
                if reducer is not None:
                    reducer.gradient_came(at)

            return came

        self.handles = [one.register_post_accumulate_grad_hook(watch(at)) for at, one in enumerate(parameters)]

    def __del__(self) -> None:
        for handle in getattr(self, "handles", ()):
            handle.remove()

    def _make_buckets(self, indices: Iterable[Iterable[int]]) -> None:
        self.buckets = [_Bucket(list(some), [self.parameters[at] for at in some]) for some in indices]
        self.place = {at: (bucket, i) for bucket in self.buckets for i, at in enumerate(bucket.indices)}
        self.next = 0

    # ---- before a forward and after it ----
    def rebuild_buckets(self) -> bool:
        """Check that the last backward came to its end; after the first one put the buckets into its order."""
        if self.unfinished:
            raise RuntimeError(self._not_finished())
        if self.rebuilt or (self.find_unused and not self.static) or not self.order:
            return False
        order = tensor(self.order)
        broadcast(order, group=self.group, group_src=0)
        chosen = order.tolist()
        ordered = [self.parameters[at] for at in chosen]
        indices, _ = _compute_bucket_assignment_by_size(ordered, self.limits, (), chosen)
        self._make_buckets(indices)
        self.rebuilt = True
        return True

    def _not_finished(self) -> str:
        text = UNFINISHED + ("" if self.find_unused else DETECT)
        absent = " ".join(str(at) for at in range(len(self.parameters)) if at not in self.ready)
        names = ", ".join(name for at, name in enumerate(self.names) if at not in self.ready)
        text += OUTPUTS.format(self.group.rank(), absent)
        return f"{text}\nHint: {names or 'none'} got no gradient."

    def prepare_for_backward(self, outputs: Iterable[Any] = ()) -> None:
        """Expect the gradients of a backward. With `find_unused`, find what the outputs do not depend on."""
        self.expecting, self.end_queued = True, False
        self.ready.clear()
        self.unused.clear()
        self.divisor, self.next = None, 0
        for bucket in self.buckets:
            bucket.missing = len(bucket.indices)
        if self.static:
            self.left = Counter(self.fired or ())
            self.unused = [] if self.fired is None else [at for at in range(len(self.parameters)) if not self.fired[at]]
        elif self.find_unused:
            reached = _leaves(outputs)
            self.unused = [at for at, one in enumerate(self.parameters) if id(one) not in reached]
            if not self.unused:
                warn(
                    "find_unused_parameters=True was specified in DDP constructor, but did not find any unused parameters in "
                    "the forward pass. This flag results in an extra traversal of the autograd graph every iteration,  which can "
                    "adversely affect performance. If your model indeed never has any unused parameters in the forward pass, "
                    "consider turning this flag off. Note that this warning may be a false positive if your model has flow "
                    "control causing later iterations to have unused parameters."
                )

    # ---- during a backward ----
    def backward_began(self) -> None:
        """Ask for the end of a backward, where more is to be done then than with the last gradient."""
        first_of_static = self.static and self.fired is None
        if self.expecting and not self.end_queued and (first_of_static or (self.find_unused and not self.static)):
            self.end_queued = True
            queue_callback(self._backward_ended)

    def gradient_came(self, at: int) -> None:
        """Take a gradient that has been added to a parameter's `.grad`."""
        if (self.find_unused or self.static) and self.parameters[at].grad is not None:  # an unused output gives none
            self.used[at] = 1  # also where it is not reduced yet: it will be, with the next one
        if not self.expecting:
            return
        self.backward_began()
        if self.static and self.fired is None:
            self.left[at] += 1
            self.order = [*(one for one in self.order if one != at), at]
            return
        if self.unused:
            absent, self.unused = self.unused, []
            for one in absent:
                self._mark_ready(one)
        if self.static:
            self.left[at] -= 1
            if self.left[at] > 0:
                return
        self._mark_ready(at)

    def _backward_ended(self) -> None:
        """Count as zero what got no gradient."""
        if not self.expecting:
            return
        if self.static and self.fired is None:
            self.fired = self.left
            self.order += [at for at in range(len(self.parameters)) if at not in self.fired]
        for bucket in list(self.buckets):
            for at in bucket.indices:
                if at not in self.ready:
                    self._mark_ready(at)

    def _mark_ready(self, at: int) -> None:
        if at in self.ready:
            raise RuntimeError(TWICE.format(at, self.names[at]))
        self.ready.add(at)
        self.unfinished = True
        if not self.rebuilt and not self.static:
            self.order.append(at)
        bucket, i = self.place[at]
        self._fill(bucket, i)
        bucket.missing -= 1
        while self.next < len(self.buckets) and not self.buckets[self.next].missing:
            self._start(self.next)
            self.next += 1
        if self.next == len(self.buckets):
            queue_callback(self._finish)

    def _factor(self) -> float:
        if self.divisor is None:
            self.divisor = self.group.size() if self.joined is None else self.joined()
        return 1.0 / self.divisor

    def _fill(self, bucket: _Bucket, i: int) -> None:
        """Put a parameter's gradient into its bucket; the average's division comes before the sum."""
        parameter, view = bucket.parameters[i], bucket.views[i]
        grad = parameter.grad
        with using(grad=False):
            if grad is None:
                view.zero_()
                return
            if grad.requires_grad:
                warn(HIGHER_ORDERS)
                raise RuntimeError(NO_HIGHER_ORDERS)
            if not _is_same(grad, view):
                view.copy_(grad)
                if self.as_views:
                    parameter.grad = view
            if self.hook is None:
                view.mul_(self._factor())

    def _start(self, number: int) -> None:
        bucket = self.buckets[number]
        if self.hook is None:
            bucket.result = all_reduce(bucket.buffer, group=self.group, async_op=True)
            return
        given = GradBucket(number, bucket.buffer, bucket.parameters, number == len(self.buckets) - 1)
        with using(grad=False):
            bucket.result = self.run_hook(given)

    def run_hook(self, bucket: GradBucket) -> Any:
        """Call the communication hook, or do what is done without one; return a Future."""
        if self.hook is None:
            bucket.buffer().mul_(self._factor())
            work = all_reduce(bucket.buffer(), group=self.group, async_op=True)
            assert work is not None, "this process is in the group"
            return work.get_future()
        future = self.hook(bucket)
        if not isinstance(future, Future):
            raise RuntimeError(
                "DDP communication hook's callback must return a torch.futures.Future object, but got "
                f"{type(future).__name__}"
            )
        return future

    def _finish(self) -> None:
        """Wait for the averages, and give them to the parameters."""
        if not self.expecting:
            return
        self.expecting = self.unfinished = False
        self._give_out()
        self.joined = None

    def _give_out(self) -> None:
        used = self._used_by_some()
        with using(grad=False):
            for bucket in self.buckets:
                self._take_result(bucket)
                for at, parameter, view in zip(bucket.indices, bucket.parameters, bucket.views, strict=True):
                    if used is not None and not used[at]:
                        continue
                    grad = parameter.grad
                    if grad is None:
                        parameter.grad = view if self.as_views else view.clone()
                    elif not _is_same(grad, view):
                        grad.copy_(view)

    def _take_result(self, bucket: _Bucket) -> None:
        result, bucket.result = bucket.result, None
        if not isinstance(result, Future):
            result.wait()
            return
        value = result.wait()
        averaged = value if isinstance(value, Tensor) else value[0]
        if not _is_same(averaged, bucket.buffer):
            bucket.buffer.copy_(averaged.reshape(bucket.buffer.shape))

    def _used_by_some(self) -> list[int] | None:
        """Return which parameters some process has used, or None if all have been."""
        if self.static:
            if self.used_everywhere is None:
                self.used_everywhere = self.share_used()
            return self.used_everywhere  # type: ignore[no-any-return]
        return self.share_used() if self.find_unused else None

    def share_used(self) -> list[int]:
        """Tell the others which parameters this process has used, and hear from them."""
        all_reduce(self.used, group=self.group)
        found: list[int] = self.used.tolist()
        self.used.zero_()
        return found

    # ---- for a process that has no inputs left ----
    def shadow_backward(self) -> None:
        """Do what the others do in their backward, with gradients of zero, and take the averages.

        torch drops them. Here a ZeroRedundancyOptimizer of this process goes on updating its part by the right gradients.
        """
        self.divisor = None
        last = len(self.buckets) - 1
        with using(grad=False):
            for number, bucket in enumerate(self.buckets):
                bucket.buffer.zero_()
                bucket.result = self.run_hook(GradBucket(number, bucket.buffer, bucket.parameters, number == last))
        self._give_out()
        if not self.rebuilt and not self.order:
            self.order = list(range(len(self.parameters)))  # rank 0's order is taken, if it has one


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (one.numel() > 0 and one.data_ptr() == other.data_ptr() and one.stride() == other.stride())


def _leaves(outputs: Iterable[Any]) -> set[int]:
    """Return the ids of the leaves on which outputs depend."""
    found: set[int] = set()
    waiting = [one.grad_fn for one in outputs if one.grad_fn is not None]
    found.update(id(one) for one in outputs if one.requires_grad and one.grad_fn is None)
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.add(id(variable))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return found


set_all(globals(), but="Reducer")
