"""torch.autograd.graph: nodes, edges and hooks."""

from __future__ import annotations

import abc
import math
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays import raw_leaf
from .._core.numpy_namespace import raw_namespace
from .._graph.node import Node as GraphNode
from .._graph.node import Slot, face_of
from .._graph.unpacked import check_hooks
from .._modes import Block, change_mode, current_mode, push, using, write
from ..tensor import _base
from ..tensor._aliasing.views import NOWHERE, Nowhere, wrote
from ..tensor._base import edge_of
from ..tensor._object.devices import place_array
from ._mutation import allow_mutation_on_saved_tensors
from .engine import current_task, will_reach

__all__ = [
    "GradientEdge",
    "Node",
    "RemovableHandle",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class Node(abc.ABC):
    """What every node of a graph is, to `isinstance` and `issubclass`; nodes have other bases."""

    name: Callable[[], str]
    next_functions: tuple[tuple[Any, int], ...]
    metadata: dict[Any, Any]
    register_hook: Callable[[Any], Any]
    register_prehook: Callable[[Any], Any]


Node.register(GraphNode)


class RemovableHandle:
    """A registered hook; `remove()` takes it away. It does not keep the hooks alive, whose dict is an OrderedDict.

    Args:
        hooks_dict: where the hook is registered
        extra_dict: another such place

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> handle = layer.register_forward_hook(lambda module, args, out: print("called"))
        >>> _ = layer(torch.ones(1, 2))
        called
        >>> handle.remove()
        >>> _ = layer(torch.ones(1, 2))
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extras = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.extra_dict_ref = tuple(map(weakref.ref, extras))  # dicts in which the hook has entries, too

    @classmethod
    def add(cls, hooks: OrderedDict[int, Any], hook: Any, extra_dict: Any = None) -> RemovableHandle:
        handle = cls(hooks, extra_dict=extra_dict)
        hooks[handle.id] = hook
        return handle

    def remove(self) -> None:
        """Unregister the hook; a second call does nothing."""
        for one in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = one()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        return self.hooks_dict_ref(), self.id, tuple(one() for one in self.extra_dict_ref)

    def __setstate__(self, state: Any) -> None:
        hooks, self.id, extras = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(map(weakref.ref, extras))
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class _Edge(NamedTuple):
    node: GraphNode
    output_nr: int
    ownership_token: Any = None


class GradientEdge(_Edge):
    """A place in the graph: a node and the number of its output."""

    output: Output | None = None

    def known_output(self) -> Output | None:
        """Return what is known of the output; nothing, for some nodes of built-in operations."""
        if self.output is not None:
            return self.output
        if hasattr(self.node, "variable"):
            return output_of(self.node.variable._array)
        try:
            facts = self.node._input_metadata[self.output_nr]
        except AttributeError:
            return None
        home = raw_namespace(place_array(np.zeros(0), facts.device))  # the vocabulary of arrays on that device
        return Output(tuple(facts.shape), facts.dtype.numpy, home)


class Output(NamedTuple):
    """Shape, dtype and home of a node's output."""

    shape: tuple[int, ...]
    dtype: Any
    home: Any

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def ones(self) -> Any:
        return self.home.ones(shape=self.shape, dtype=self.dtype)


def output_of(array: Any) -> Output:
    """Describe an array of any level, without keeping it."""
    return Output(tuple(array.shape), array.dtype, raw_namespace(raw_leaf(array)))


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the edge at which a tensor's gradient arrives."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = GradientEdge(*face_of(edge_of(tensor)))
    edge.output = output_of(tensor._array)
    return edge


def edge_from(value: Any) -> Any:
    """Return the engine's edge for a Tensor or a GradientEdge."""
    if isinstance(value, GradientEdge):
        node = value.node
        if hasattr(node, "variable"):
            return node.variable
        return Slot(node, value.output_nr) if node.num_outputs != 1 else node
    if not isinstance(value, _base.Tensor):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(value).__name__}")
    edge = edge_of(value)
    return Nowhere() if edge is NOWHERE else edge  # a node of its own: no backward reaches it


class saved_tensors_hooks(Block):  # noqa: N801 - torch's name
    """Pack what the graph saves in this block, and unpack it when backward reads it.

    Args:
        pack_hook: called with each tensor that is saved; what it returns is kept
        unpack_hook: called with what was kept; it returns the tensor

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        ...     y = x.exp()
        >>> y.sum().backward()
        >>> x.grad
        tensor([2.7188, 2.7188])
    """

    _block_fields = ("saved_hooks",)

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        mode = current_mode()
        if mode.saved_hooks_disabled is not None:
            raise RuntimeError(mode.saved_hooks_disabled)
        check_hooks("_push_saved_tensors_default_hooks", self.pack_hook, self.unpack_hook)
        entered = mode._replace(saved_hooks=(*mode.saved_hooks, (self.pack_hook, self.unpack_hook)))
        entry = self._block_entry(mode, entered)
        write[entered]
        push[entry]

    def _block_left_unentered(self) -> None:
        hooks = current_mode().saved_hooks
        if not hooks:
            raise RuntimeError(
                "saved_tensors_hooks: the block was left more often than it was entered, and there are no hooks to "
                "remove\nHint: use `with`, or call __exit__() once for each __enter__(), in the same thread."
            )
        change_mode(saved_hooks=hooks[:-1])  # those that were entered last, whose they are does not matter to torch


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """Keep what the graph saves in this block on the CPU."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


class disable_saved_tensors_hooks(using):  # noqa: N801 - torch's name
    """Make saved-tensor hooks an error in this block."""

    def __init__(self, error_message: str) -> None:
        super().__init__(saved_hooks_disabled=error_message)

    def __enter__(self) -> Any:
        if current_mode().saved_hooks:
            raise RuntimeError(self.changes["saved_hooks_disabled"])
        return super().__enter__()


def increment_version(tensor: Any) -> None:
    """Tell autograd that a tensor's memory was written by other means; inference tensors have no versions to count."""
    if not isinstance(tensor, (_base.Tensor, Iterable)):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for one in (tensor,) if isinstance(tensor, _base.Tensor) else tensor:
        if not isinstance(one, _base.Tensor):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
        if not one.is_inference():
            wrote(one)


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> Any:
    """Call `fn` when the gradients of several tensors are computed: all of them, or the first."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        return _register_any(tensors, fn)
    for tensor in tensors:
        if tensor.grad_fn is None:
            if tensor.requires_grad and current_mode().inference:  # torch asks a view for its node
                raise AttributeError("'NoneType' object has no attribute 'next_functions'")
            if not tensor.requires_grad or edge_of(tensor) is NOWHERE:
                raise AssertionError("Expected gradient function to be set")
    state: dict[Any, list[Any]] = weakref.WeakKeyDictionary()  # type: ignore[assignment]
    lock = threading.Lock()
    count = len(tensors)
    places = [weakref.ref(e.node if type(e) is Slot else e) for e in map(edge_of, tensors)]  # the hooks hang on them

    def make(i: int) -> Any:
        def hook(grad: Any) -> None:
            with lock:
                task = current_task()
                entry = state.get(task)
                if entry is None:
                    entry = state[task] = [0, _expected(places), [None] * count]
                before, expected, grads = entry
                entry[0] += 1
                grads[i] = grad
                ready = before == expected - 1
                if ready:
                    del state[task]
            if ready:
                fn(grads)

        return hook

    return _MultiHandle(tuple([t.register_hook(make(i)) for i, t in enumerate(tensors)]))


def _expected(places: list[Any]) -> int:
    return sum(will_reach(node) for one in places if (node := one()) is not None)


def _register_any(tensors: Sequence[Any], fn: Any) -> Any:
    done: Any = weakref.WeakSet()
    lock = threading.Lock()

    def hook(grad: Any) -> None:
        task = current_task()
        with lock:
            if task in done:
                return
            done.add(task)
        fn(grad)

    return _MultiHandle(tuple([t.register_hook(hook) for t in tensors]))


class _MultiHandle(RemovableHandle):
    """Several hooks that are removed together."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[RemovableHandle, ...]:
        return self.handles

    def __setstate__(self, state: tuple[RemovableHandle, ...]) -> None:
        self.handles = state


# ---- settings of streams and of compiled graphs, which have nothing to set here ----
def _check_switch(enabled: bool) -> None:
    if not isinstance(enabled, bool):
        raise RuntimeError(f"enabled must be a bool, but got {type(enabled).__name__}")


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accept torch's switch of a warning about CUDA streams; everything here runs on one stream."""
    _check_switch(enabled)


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accept torch's switch about CUDA streams while a graph is captured; nothing is captured here."""
    _check_switch(enabled)


def region_activation_memory_budget(budget: float) -> AbstractContextManager[None]:
    """Raise what torch raises outside compiled code: the budget is the compiler's."""
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(f"{name} can only be used inside a torch.compile region; it has no effect in eager mode.")
