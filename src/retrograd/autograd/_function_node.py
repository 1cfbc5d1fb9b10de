"""The node of a custom Function, which is the ctx its methods see, and what it saves."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _errors
from .._core.primitive import engine_state
from .._graph.node import Freed, InputFacts, Node, Slot
from .._graph.unpacked import Guard, output_edge, unpacked
from .._graph.unpacked import SavedTensor as SavedByName
from .._modes import current_mode
from .._warnings import warn
from ..tensor._aliasing.views import NOWHERE
from ..tensor._base import LEAF, dispatch_types, storage_of, wrap, wrap_leaf_alias
from ..tensor._recording.flat import refuse_saving
from ..tensor._recording.saved import pack
from ..tensor._tensor import Tensor
from ._function_attributes import SETTABLE, UsersAttributes, taken

set_quickly = object.__setattr__  # which does not ask who sets, see `UsersAttributes`


class Saved:
    """A tensor kept by `save_for_backward`: its array and version, and where it stood in the graph."""

    __slots__ = ("array", "edge", "packed", "storage", "tensor", "version")

    def __init__(self, tensor: Any, slot: int | None) -> None:
        self.packed: Any = None
        self.storage = storage_of(tensor)
        if self.storage.inference:
            refuse_saving(self.storage)
        self.version = self.storage.version
        self.array = tensor._array
        wraps = type(tensor) in dispatch_types  # its array says only what it looks like
        self.tensor = tensor if slot is None and (wraps or tensor._edge is LEAF or tensor._edge is None) else None
        if wraps and slot is not None:
            self.tensor = tensor.detach()
        self.edge: Any = slot if slot is not None else None if tensor._edge is LEAF else tensor._edge
        mode = current_mode()
        if mode.saved_hooks:
            if slot is not None:  # an output: no cycle, see `_pack_output` in tensor/_recording/saved.py
                tensor = wrap(tensor._array, None if tensor._edge is None else NOWHERE, self.storage)
            self.hand_over(pack(tensor, mode))

    def hand_over(self, packed: Any) -> None:
        """Let go of a value that hooks hold from now on."""
        self.packed = packed
        if self.tensor is not None and self.tensor._edge is LEAF:
            self.edge = self.tensor  # a leaf: what the hooks give back stands where it stands, see Note [Edges]
        self.array = self.tensor = None

    def unpack(self, node: Any) -> Any:
        edge = self.edge
        if isinstance(edge, int):
            edge = Slot(node, edge) if node.num_outputs != 1 else output_edge(node)
        if self.packed is not None:
            tensor = unpacked(self.packed, edge is not None and not isinstance(self.edge, int))
            if isinstance(edge, Tensor):
                alias = wrap_leaf_alias(edge, tensor._array)
                return _placed(tensor, alias._edge) if type(tensor) in dispatch_types else alias
            if edge is None and tensor._edge is None:
                return tensor
            if type(tensor) in dispatch_types:
                return _placed(tensor, edge)
            return wrap(tensor._array, edge, storage_of(tensor))  # not the versions of what stood there
        if self.storage.version != self.version:
            array, edge = (self.array, edge) if isinstance(self.edge, int) else self.storage.now(self.array, edge)
            raise _errors.overwritten(array, edge, self.storage, self.version, node.place())
        if self.tensor is not None:  # even with another array: a view makes one of a number, `data` may have been set
            return _placed(self.tensor, edge) if isinstance(self.edge, int) else self.tensor
        return wrap(self.array, edge, self.storage)


def _placed(wrapper: Any, edge: Any) -> Any:
    """Return what a wrapper holds at a place in the graph."""
    made = wrapper.detach()
    made._edge = edge
    return made


class SavedTensor(SavedByName):
    """One of `_raw_saved_tensors`: hooks can be registered on it."""

    def _packed(self) -> Any:
        kept = None if type(self._node.guard) is Freed else self._node._kept[self._name]
        return None if kept is None else kept.packed

    def register_hooks(self, pack: Any = None, unpack: Any = None) -> None:
        node, at = self._node, self._name
        if type(node.guard) is not Freed and node._kept[at] is not None and node._kept[at].packed is not None:
            node.guard = node.guard or Guard()
            node.guard.packed[at] = node._kept[at].packed  # of saved_tensors_hooks
        super().register_hooks(pack, unpack)
        node._kept[at].hand_over(node.guard.packed[at])


class FunctionCtx:
    """What `ctx` offers in forward and backward."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward; call it once, at the end of forward."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for jvp."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as "
                    "attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs forward changed in place."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Do nothing: shared memory is noticed without it."""
        warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that "
            "calls to `set_()` are not tracked",
            FutureWarning,
        )

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether missing gradients arrive as zeros (the default) or None."""
        self.materialize_grads = value


def backward(ctx: Any, *grad_outputs: Any) -> Any:
    """Compute the gradients of the inputs."""
    raise NotImplementedError(
        "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
        "backward mode AD."
    )


class FunctionNode(Node, FunctionCtx):
    """The node of a custom Function, while we make it."""

    _forward_cls: Any = None
    array_names = ("to_save",)
    takes_mask = True
    saves = True  # whatever there was to save: torch refuses to look again

    # What few nodes have differently.
    runs_without_gradient = True  # on zeros, or None if they are not materialized
    join: Any = None  # of a node whose outputs were computed in the graph, see Note [A Function inside a level]
    in_reverse_transform = False
    _materialize = True
    _read = False  # saved tensors that may be read once

    def __init__(self) -> None:
        self.begin((), of_user=False)
        self.dirty_tensors: Any = None
        self.non_differentiable: Any = None
        self.to_save: Any = None
        self.saved_for_forward: Any = None
        self.needs_input_grad: tuple[bool, ...] = ()
        self.is_tensor_input: tuple[bool, ...] = ()
        self.num_outputs = 1
        self.count = 0  # of the arguments of apply
        self.of_forward: Any = ()  # what forward saved, for as long as forward mode may ask for it
        self.outputs_made: Any = ()  # what became of each output, see _function_run.py
        self._kept: Any = None

    @property
    def materialize_grads(self) -> bool:
        raise AttributeError("attribute 'materialize_grads' of 'torch._C._FunctionBase' objects is not readable")

    @materialize_grads.setter
    def materialize_grads(self, value: bool) -> None:
        if type(value) is not bool:
            raise TypeError(
                f"set_materialize_grads received an invalid combination of arguments - got {type(value).__name__}, but "
                "expected (bool)"
            )
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        if type(self.guard) is Freed:
            raise _errors.freed(self.guard.place)
        if self._kept is None:
            saved = self.saved_for_forward if self.saved_for_forward is not None else self.to_save
            return tuple(saved or ())
        if self._forward_cls.clear_saved_tensors_on_access:
            if self._read:
                raise RuntimeError(
                    "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
                    "autograd.Function. Either access saved_tensors only once, or set "
                    "clear_saved_tensors_on_access=False."
                )
            self._read = True
        found = tuple([None if one is None else one.unpack(self) for one in self._kept])
        if self._read:
            self._kept = ()
        return found

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if type(self.guard) is Freed:
            raise _errors.freed(self.guard.place)
        return tuple([SavedTensor.of(self, at) for at in range(len(self._kept or ()))])

    def saved_tensor(self, name: Any) -> Any:
        """Return one of the saved tensors by its position."""
        one = self._kept[name]
        return None if one is None else one.unpack(self)

    def release(self, freed: Any) -> None:
        set_quickly(self, "_kept", ())
        set_quickly(self, "guard", freed)

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {hex(id(self))}>"

    def __call__(self, *grads: Any) -> Any:
        raise TypeError(f"'{type(self).__name__}' object is not callable")

    def apply(self, *grads: Any) -> Any:
        """Call the user's backward as it is."""
        call = self.users_backward()
        return call(self, list(grads)) if self._forward_cls.boxed_grads_call else call(self, *grads)

    def apply_boxed(self, *grads: Any) -> Any:
        """Call the user's backward on a list of gradients."""
        return self.users_backward()(self, *grads)

    def apply_jvp(self, *tangents: Any) -> Any:
        """Call the user's jvp as it is."""
        return self._forward_cls.jvp(self, *tangents)

    def users_backward(self) -> Any:
        """Return the method that computes gradients, under either of its names."""
        cls = self._forward_cls
        if cls.vjp is backward:
            return cls.backward
        if cls.backward is not backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return cls.vjp

    def _left_out(self, at: int) -> bool:
        """Tell whether the gradient of an output stays None: of one that has none, where the ctx says so."""
        return not getattr(self, "_materialize_non_diff_grads", True) and self.outputs_made[at].kind == "constant"

    def pull_back_some(self, g: Any, graph: bool, mask: Any = None) -> Any:
        """Call the user's backward and check what it returns."""
        parts = g if self.num_outputs != 1 else (g,)
        if self.join is not None:
            task = engine_state.task
            if task is None or self.join.level not in task.keep_levels:
                return [None] * self.count + self.join.gradients(parts)
        grads = [None if p is None else p if graph else wrap(p) for p in parts]
        if self._materialize:
            for i, facts in enumerate(self.meta.outputs):  # type: ignore[union-attr]
                if grads[i] is None and facts is not None and not self._left_out(i):
                    grads[i] = wrap(np.zeros(facts.shape, facts.dtype))
        call = self.users_backward()
        needs = self.needs_input_grad
        if mask is not None and self.in_reverse_transform:
            self.needs_input_grad = tuple([n and e is not None for n, e in zip(needs, mask, strict=False)])
        try:
            results = call(self, grads) if self._forward_cls.boxed_grads_call else call(self, *grads)
        finally:
            self.needs_input_grad = needs
        results = results if isinstance(results, tuple) else (results,)
        try:
            checked = self._checked(results, graph)
        except RuntimeError as error:
            raise _errors.of_backward(error, self.place(), call) from None
        return checked if self.join is None else checked + [None] * (len(self._edges) - self.count)

    def _checked(self, results: tuple[Any, ...], graph: bool) -> list[Any]:
        count = self.count
        name = self.name()
        if len(results) > count and all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {count}, got {len(results)})"
            )
        checked: list[Any] = []
        for i, result in enumerate(results):
            edge = self._edges[i]
            if result is None or edge is None:
                if result is not None and not isinstance(result, Tensor):
                    raise RuntimeError(not_a_variable(result))
                if result is not None and not self.is_tensor_input[i]:
                    raise RuntimeError(
                        f"function {name} returned a gradient different than None at position {i + 1}, but the "
                        "corresponding forward input was not a Variable"
                    )
                checked.append(result if result is None or graph else result._array)  # hooks of the node see it
                continue
            if not isinstance(result, Tensor):
                raise RuntimeError(not_a_variable(result))
            facts: InputFacts = self.meta.inputs[i]  # type: ignore[union-attr,assignment]
            shape = tuple(result._array.shape)
            if shape != facts.shape and not _expandable(facts.shape, shape):
                raise RuntimeError(
                    f"Function {name} returned an invalid gradient at index {i} - got {_errors.sizes(shape)} but "
                    f"expected shape compatible with {_errors.sizes(facts.shape)}"
                )
            if result._array.dtype.kind == "c" and facts.dtype.kind != "c":
                raise RuntimeError(
                    "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, "
                    "but got false.  (Could this error message be improved?  If so, please report an enhancement "
                    "request to PyTorch.)"
                )
            checked.append(result if graph else result._array)
        return checked


class BackwardCFunction(UsersAttributes, FunctionNode):
    """The node of a custom Function, which is its ctx."""


taken |= {name for name in (*dir(FunctionNode), *vars(FunctionNode())) if not name.startswith("__")} - SETTABLE


def not_a_variable(value: Any) -> str:
    """Write torch's complaint about a gradient that is no tensor."""
    from .._signatures import type_name  # when somebody reads the message

    return f"expected Variable or None (got {type_name(value)})"


def _expandable(shape: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    if len(shape) > len(wide):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(wide), strict=False))
