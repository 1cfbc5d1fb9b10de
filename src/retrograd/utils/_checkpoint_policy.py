"""Selective checkpointing: a policy says, operation by operation, what is kept and what is computed again.

In the first run every operation is shown to the policy, and the results that it wants are kept, in order, under the operation's
name. In the second run an operation whose result was kept takes it instead of computing; the graph is built as ever.
Views and in-place operations cost nothing to repeat, and are not shown.
"""

from __future__ import annotations

import enum
import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from .. import ops
from .._core.fused import Fused
from .._graph.node import default_node_name, node_class
from .._modes import Block, current_mode, push, using, write
from ..tensor._base import Storage, memory_of, storage_of, wrap
from ..tensor._tensor import Tensor

SAC_IGNORED_OPS: set[Any] = set()

_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward.\nHint: the function given to checkpoint must do the same in both runs."
)


class CheckpointPolicy(enum.Enum):
    """Whether the result of an operation is kept or recomputed."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


KEEPING = frozenset(policy for policy in CheckpointPolicy if not policy.name.endswith("RECOMPUTE"))


class SelectiveCheckpointContext:
    """What a policy function gets besides the operation."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Kept:
    """A kept result, with the versions of its memory."""

    def __init__(self, out: Any) -> None:
        self.out = out
        self.versions: list[tuple[Storage, int]] = []

    def watch(self, tensors: Sequence[Any]) -> None:
        """Remember at which versions the tensors made of the result are."""
        self.versions = [(storage, storage.version) for storage in map(storage_of, tensors)]

    def check(self) -> None:
        """Raise if somebody has written into the result."""
        if any(storage.version != version for storage, version in self.versions):
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated\nHint: do not write into the "
                "result of an operation that is kept, or pass allow_cache_entry_mutation=True: then the recomputation "
                "starts from the value as it was left."
            )


CONSUMED, RECOMPUTED = object(), object()
Results = dict[Any, list[Any]]


class _Dispatching(Block):
    """A context in which every operation goes through `__call__`."""

    _block_fields = ("dispatch",)

    def __init__(self, storage: Results) -> None:
        self.storage = storage
        self.counts: dict[Any, int] = defaultdict(int)

    def __enter__(self) -> None:
        self.counts.clear()
        before = current_mode()
        entered = before._replace(dispatch=self)
        entry = self._block_entry(before, entered)
        write[entered]
        push[entry]

    def __call__(self, operation: Any, name: str | None, args: Sequence[Any], compute: Callable[[], Any]) -> Any:
        op = _identity(operation, name, args)
        if op in SAC_IGNORED_OPS:
            return compute()
        at = self.counts[op]
        self.counts[op] += 1
        return self.result(op, at, operation, name, args, compute)

    def result(
        self, op: Any, at: int, operation: Any, name: str | None, args: Sequence[Any], compute: Callable[[], Any]
    ) -> Any:
        raise NotImplementedError

    def made(self, tensors: Sequence[Any]) -> None:
        """Take note of what became of the last result."""


class _Caching(_Dispatching):
    """The first run: compute, ask the policy, keep."""

    def __init__(self, storage: Results, policy: Any) -> None:
        super().__init__(storage)
        self.policy = policy
        self._last: _Kept | None = None  # the last result, if it was kept

    def result(
        self, op: Any, at: int, operation: Any, name: str | None, args: Sequence[Any], compute: Callable[[], Any]
    ) -> Any:
        out = compute()
        if isinstance(operation, Fused):
            shown = out[0]
        else:
            shown = out = memory_of(out)  # a number that is written into later is to be the one that is kept
        tensors = tuple(map(wrap, shown)) if isinstance(shown, tuple) else wrap(shown)
        with using(dispatch=None):
            policy = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=tensors), op, *args)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        self._last = _Kept(out) if policy in KEEPING else None
        self.storage[op].append(RECOMPUTED if self._last is None else self._last)
        return out

    def made(self, tensors: Sequence[Any]) -> None:
        if self._last is not None:
            self._last.watch(tensors)
            self._last = None


class _Cached(_Dispatching):
    """The second run: take what was kept."""

    def __init__(self, storage: Results, may_be_changed: bool) -> None:
        super().__init__(storage)
        self.may_be_changed = may_be_changed
        self._unchecked: _Kept | None = None  # what was taken last

    def result(
        self, op: Any, at: int, operation: Any, name: str | None, args: Sequence[Any], compute: Callable[[], Any]
    ) -> Any:
        if op not in self.storage:
            raise RuntimeError(f"{op} encountered during backward but not found in storage. {_MISMATCH}")
        entries = self.storage[op]
        if at >= len(entries):
            raise RuntimeError(
                f"{op} invocation index {at} encountered during backward but not found in storage. {_MISMATCH}"
            )
        kept = entries[at]
        if kept is CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if kept is RECOMPUTED:
            return compute()
        entries[at] = CONSUMED
        if not self.may_be_changed:
            if _reads_its_result(operation, name):
                kept.check()
            else:
                self._unchecked = kept
        return kept.out

    def made(self, tensors: Sequence[Any]) -> None:
        """Look at what was taken, now that it is used; an early stop comes before, and then its value does not matter."""
        if self._unchecked is not None:
            self._unchecked.check()
            self._unchecked = None


def _reads_its_result(operation: Any, name: str | None) -> bool:
    """Tell whether the backward of an operation reads what it returned."""
    if isinstance(operation, Fused):
        return operation.reads_result
    return operation.differentiable and "out" in node_class(operation, name).array_names


def _identity(operation: Any, name: str | None, args: Sequence[Any]) -> Any:
    if name is None and not operation.differentiable:
        return ops.of_comparison(operation.torch, len(args) > 1 and not isinstance(args[1], Tensor))
    return ops.of_node(name or default_node_name(operation.torch))


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Return the two contexts for checkpoint's `context_fn`; a list names the operations whose results are kept."""
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, ops.OpOverload):
                extra = (
                    "Please update the OpOverloadPacket to a specific OpOverload. For example, if you have "
                    "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                    if isinstance(op, ops.OpOverloadPacket)
                    else ""
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {extra}"
                )
        policy = functools.partial(_by_list, policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Results = defaultdict(list)
    return _Caching(storage, policy), _Cached(storage, allow_cache_entry_mutation)


def _by_list(kept: list[Any], context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE
