"""Custom functions: `torch.autograd.Function`.

Note [A Function is a primitive]
`apply` is never traced through: forward mode calls the Function's `jvp`, vmap its `vmap` (or runs forward on the batched
values if it says `generate_vmap_rule`), reverse mode its `backward`. A straight-through estimator stays one in every
mode. The node of the graph is `ctx` itself.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Any, NamedTuple

from .. import _errors
from .._core.arrays import highest_level, levels_of
from .._core.levels import BATCH, creation_numbers
from .._core.primitive import vocabulary
from .._graph.node import Freed, InputFacts, Meta, Node, Slot, pack_value
from .._modes import current_mode, using
from .._places import user_frame, user_place
from ..tensor import _base
from ..tensor._base import LEAF, edge_of, storage_of, wrap, wrap_leaf_alias
from ..tensor._tensor import Tensor
from ..tensor._views import rebase, register_view
from ._once import once_differentiable


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told."""

    batch_size: int
    randomness: str


class _Saved:
    """A tensor kept by `save_for_backward`: its array and version, and where it stood in the graph."""

    __slots__ = ("array", "edge", "packed", "storage", "tensor", "version")

    def __init__(self, tensor: Any, slot: int | None) -> None:
        self.packed: Any = None
        self.storage = storage_of(tensor)
        if self.storage.inference:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode "
                "in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor "
                "and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
            )
        self.version = self.storage.version
        self.array = tensor._array
        self.tensor = tensor if tensor._edge is LEAF and slot is None else None
        self.edge: Any = slot if slot is not None else None if tensor._edge is LEAF else tensor._edge
        hooks = current_mode().saved_hooks
        if hooks:
            given = wrap(tensor._array, None, self.storage) if slot is not None else tensor  # an output: no cycle
            self.packed = pack_value(given, *hooks[-1])
            if self.tensor is not None:
                self.edge = tensor  # a leaf: what the hooks give back stands where it stands, see Note [Edges]
            self.array = self.tensor = None

    def unpack(self, node: Any) -> Any:
        edge = self.edge
        if isinstance(edge, int):
            edge = Slot(node, edge) if node.num_outputs != 1 else node
        if self.packed is not None:
            tensor = self.packed.unpack(self.packed.value)
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                    f"{type(tensor).__name__}"
                )
            if isinstance(edge, Tensor):
                return wrap_leaf_alias(edge, tensor._array)
            return wrap(tensor._array, edge, storage_of(tensor))  # not the versions of what stood there
        if self.storage.version != self.version:
            array, edge = (self.array, edge) if isinstance(self.edge, int) else self.storage.now(self.array, edge)
            raise _errors.overwritten(array, edge, self.storage, self.version, node.place())
        if self.tensor is not None and self.tensor._array is self.array:
            return self.tensor
        return wrap(self.array, edge, self.storage)


class FunctionCtx:
    """What `ctx` offers in forward and backward."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward; call it once, at the end of forward."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for jvp."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as "
                    "attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs forward changed in place."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether missing gradients arrive as zeros (the default) or None."""
        self.materialize_grads = value


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom Function, which is its ctx."""

    _forward_cls: Any = None
    array_names = ("to_save",)

    runs_without_gradient = True  # on zeros, or None if they are not materialized

    def __init__(self) -> None:
        self._edges = ()
        self.seq = creation_numbers()
        self.code, self.lasti = None, 0
        self.meta = self.guard = self.extra = self._storage = None
        self.materialize_grads = True
        self.dirty_tensors: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.to_save: tuple[Any, ...] = ()
        self.saved_for_forward: Any = None
        self.needs_input_grad: tuple[bool, ...] = ()
        self.is_tensor_input: tuple[bool, ...] = ()
        self.num_outputs = 1
        self.forward_saved: Any = ()
        self._kept: Any = None

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        if type(self.guard) is Freed:
            raise _errors.freed(self.guard.place)
        if self._kept is None:
            saved = self.saved_for_forward if self.saved_for_forward is not None else self.to_save
            return tuple(saved)
        return tuple(None if one is None else one.unpack(self) for one in self._kept)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        return self.saved_tensors

    @property
    def saves(self) -> bool:  # type: ignore[override]
        return bool(self._kept)

    def release(self, freed: Any) -> None:
        self._kept = ()
        self.guard = freed

    def pull_back(self, g: Any, graph: bool) -> Any:
        """Call the user's backward and check what it returns."""
        parts = g if self.num_outputs != 1 else (g,)
        grads = [None if p is None else p if graph else wrap(p) for p in parts]
        if self.materialize_grads:
            for i, facts in enumerate(self.meta.outputs):  # type: ignore[union-attr]
                if grads[i] is None and facts is not None:
                    grads[i] = _zeros(facts)
        cls = self._forward_cls
        backward = cls.vjp if cls.vjp is not Function.vjp else cls.backward
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        results = backward(self, *grads)
        results = results if isinstance(results, tuple) else (results,)
        return self._checked(results, graph)

    def _checked(self, results: tuple[Any, ...], graph: bool) -> list[Any]:
        count = len(self._edges)
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
                    raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
                if result is not None and not self.is_tensor_input[i]:
                    raise RuntimeError(
                        f"function {name} returned a gradient different than None at position {i + 1}, but the "
                        "corresponding forward input was not a Variable"
                    )
                checked.append(None)
                continue
            if not isinstance(result, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
            facts = self.meta.inputs[i]  # type: ignore[union-attr]
            shape = tuple(result._array.shape)
            if shape != facts.shape and not _expandable(facts.shape, shape):  # type: ignore[union-attr]
                raise RuntimeError(
                    f"Function {name} returned an invalid gradient at index {i} - got {_errors.sizes(shape)} but "
                    f"expected shape compatible with {_errors.sizes(facts.shape)}"  # type: ignore[union-attr]
                )
            checked.append(result if graph else result._array)
        return checked


def _expandable(shape: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    if len(shape) > len(wide):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(wide), strict=False))


def _zeros(facts: InputFacts) -> Any:
    import numpy as np

    return wrap(np.zeros(facts.shape, facts.dtype))


class FunctionMeta(type):
    """Gives every Function its node class."""

    def __init__(cls, name: str, bases: Any, namespace: Any) -> None:
        super().__init__(name, bases, namespace)
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls})


class Function(FunctionCtx, metaclass=FunctionMeta):
    """A differentiable function with a backward of your own. See Note [A Function is a primitive]."""

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the output; `forward(ctx, ...)`, or `forward(...)` with `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the inputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the tangents of the outputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Compute for a whole batch."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        two_part = cls.setup_context is not Function.setup_context
        if kwargs:
            import inspect

            ctx = () if two_part else (None,)
            bound = inspect.signature(cls.forward).bind(*ctx, *args, **kwargs)
            bound.apply_defaults()
            args = bound.args[len(ctx) :]
        if two_part:
            args = _with_defaults(cls.forward, args)
        if current_mode().transforms and not two_part and _in_transform():
            raise RuntimeError(
                "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
                "override the setup_context staticmethod. For more details, please see "
                "https://pytorch.org/docs/main/notes/extending.func.html"
            )
        tensors = [a for a in args if isinstance(a, Tensor)]
        level = highest_level([t._array for t in tensors])
        if level is not None and level.kind != BATCH and level.alive:
            return _apply_jvp(cls, level, args, two_part)
        output, node = _run_forward(cls, args, two_part)
        node.forward_saved = ()
        return output


def _in_transform() -> bool:
    return any(t.kind != "dual_level" for t in current_mode().transforms)


def _with_defaults(forward: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    code = getattr(forward, "__code__", None)
    if code is not None and code.co_argcount == len(args) and not code.co_kwonlyargcount:
        return args
    import inspect

    try:
        bound = inspect.signature(forward).bind(*args)
    except (TypeError, ValueError):
        return args
    bound.apply_defaults()
    return bound.args


def _run_forward(cls: Any, args: tuple[Any, ...], two_part: bool) -> tuple[Any, Any]:
    """Run forward outside the graph and connect its outputs. Returns the output and ctx."""
    node = cls._backward_cls()
    mode = current_mode()
    place = user_place()
    if place is not None:
        node.code, node.lasti = place.code, place.offset
    node.is_tensor_input = tuple(isinstance(a, Tensor) for a in args)
    node.needs_input_grad = tuple(isinstance(a, Tensor) and a._edge is not None for a in args)
    tracked = mode.grad and any(node.needs_input_grad)
    edges = tuple(edge_of(a) if isinstance(a, Tensor) else None for a in args)
    facts = tuple(
        InputFacts(tuple(a._array.shape), a._array.dtype, levels_of(a._array)) if e is not None else None
        for a, e in zip(args, edges, strict=True)
    )
    with using(grad=False, saved_hooks=()):
        if two_part:
            output = _forward_values(cls, args)
            cls.setup_context(node, args, output)
        else:
            output = cls.forward(node, *args)
    outputs = output if isinstance(output, tuple) else (output,)
    outputs = tuple(outputs)
    node._edges = edges if tracked else (None,) * len(args)
    node.num_outputs = len(outputs)
    wrapped = _connect(node, args, outputs, tracked, mode)
    out_facts = tuple(
        InputFacts(tuple(o._array.shape), o._array.dtype, levels_of(o._array)) if isinstance(o, Tensor) else None
        for o in wrapped
    )
    levels = frozenset().union(*[f.levels for f in out_facts if f is not None])
    node.meta = Meta(facts, levels, False)
    node.meta.outputs = out_facts
    node.forward_saved = node.to_save if node.saved_for_forward is None else node.saved_for_forward
    if tracked:
        _keep_saved(node, outputs, wrapped)
        if mode.anomaly:
            node.need_extra().traceback = traceback.extract_stack(user_frame(sys._getframe(1)))
    else:
        node.to_save = node.dirty_tensors = node.non_differentiable = ()
    result = wrapped if isinstance(output, tuple) else wrapped[0]
    return result, node


def _connect(node: Any, args: Any, outputs: tuple[Any, ...], tracked: bool, mode: Any) -> tuple[Any, ...]:
    """Give the outputs their place in the graph: new, dirty, returned as they are, or views of inputs."""
    dirty = {id(t) for t in node.dirty_tensors}
    given = {id(a) for a in args if isinstance(a, Tensor)}
    for i, one in enumerate(node.dirty_tensors):
        if not isinstance(one, Tensor):
            raise RuntimeError(
                f"mark_dirty can only accept variables, but argument {i} is of type {type(one).__name__}"
            )
    if dirty - {id(o) for o in outputs}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    constant = {id(t) for t in node.non_differentiable}
    wrapped = []
    for i, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            wrapped.append(out)
            continue
        differentiable = tracked and id(out) not in constant and out._array.dtype.kind in "fcV"
        edge: Any = None
        if differentiable:
            edge = Slot(node, i) if len(outputs) != 1 else node
        if id(out) in dirty:
            wrapped.append(_dirty_output(out, edge, mode))
        elif id(out) in given:
            wrapped.append(out.detach() if id(out) in constant else _returned_input(out, edge, mode))
        else:
            if out._extra is not None and out._extra.view is not None:
                out._extra.view.made_in = "function"
            if out._edge is not None and not differentiable:
                out = out.detach()
            out._edge = edge
            wrapped.append(out)
    return tuple(wrapped)


def _dirty_output(out: Any, edge: Any, mode: Any) -> Any:
    if out._edge is LEAF and mode.grad and edge is not None:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    storage_of(out).version += 1  # besides what forward itself did, as in torch
    if edge is None:
        return out
    view = None if out._extra is None else out._extra.view
    if view is not None and isinstance(edge, Node):
        rebase(out, edge)
    else:
        out._edge = edge
    return out


def _returned_input(out: Any, edge: Any, mode: Any) -> Any:
    from .._ops.shape import alias

    array = _base.materialise(out)
    result = wrap(vocabulary.alias(array) if array.ndim else array, edge)
    register_view(out, result, ((alias, {}),), mode)
    if result._extra is not None and result._extra.view is not None:
        result._extra.view.made_in = "function"
    return result


def _keep_saved(node: Any, outputs: tuple[Any, ...], wrapped: tuple[Any, ...]) -> None:
    """Turn what forward saved into arrays with versions; outputs without their node, so that no cycle forms."""
    slots = {id(o): i for i, o in enumerate(outputs) if isinstance(o, Tensor)}
    slots |= {id(o): i for i, o in enumerate(wrapped) if isinstance(o, Tensor)}
    inputs_dirty = {id(t) for t in node.dirty_tensors}
    kept: list[Any] = []
    for tensor in node.to_save:
        if tensor is None:
            kept.append(None)
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {len(kept)} is of type "
                f"{type(tensor).__name__}"
            )
        slot = slots.get(id(tensor))
        if slot is not None and id(tensor) not in inputs_dirty and wrapped[slot] is not tensor:
            slot = None  # an input returned as it is: the saved one is the input
        kept.append(_Saved(tensor, slot))
    node._kept = kept
    node.to_save = ()
    node.dirty_tensors = node.non_differentiable = ()
    node.saved_for_forward = None


def _apply_jvp(cls: Any, level: Any, args: tuple[Any, ...], two_part: bool) -> Any:
    """Run the Function on primals and its jvp on tangents."""
    primals, tangents = [], []
    for arg in args:
        if isinstance(arg, Tensor) and level in levels_of(arg._array):
            primals.append(vocabulary.dual_plain(arg, level=level))
            tangents.append(vocabulary.dual_eps(arg, level=level))
        else:
            primals.append(arg)
            tangents.append(None)
    saved: dict[str, Any] = {}
    output, node = _run_forward_for_jvp(cls, tuple(primals), two_part, saved)
    if node.materialize_grads:
        from ..tensor._creation import zeros_like

        tangents = [
            zeros_like(p) if t is None and isinstance(p, Tensor) and p._array.dtype.kind in "fcV" else t
            for p, t in zip(primals, tangents, strict=True)
        ]
    t_outs = cls.jvp(_JvpContext(node, saved["forward"]), *tangents)
    outs = output if isinstance(output, tuple) else (output,)
    t_outs = t_outs if isinstance(t_outs, tuple) else (t_outs,)
    results = []
    for out, t in zip(outs, t_outs, strict=True):
        if t is None or not isinstance(out, Tensor):
            results.append(out)
            continue
        if tuple(t._array.shape) != tuple(out._array.shape):
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {_errors.sizes(out._array.shape)} while the given forward gradient "
                f"is of size {_errors.sizes(t._array.shape)}."
            )
        results.append(vocabulary.enter_dual(out, t, level=level))
    return tuple(results) if isinstance(output, tuple) else results[0]


def _forward_values(cls: Any, args: tuple[Any, ...]) -> Any:
    """Compute forward; for a batch by the Function's own vmap, unless it says that forward may run on it."""
    level = highest_level([a._array for a in args if isinstance(a, Tensor)])
    if level is None or level.kind != BATCH or (cls.generate_vmap_rule and cls.vmap is Function.vmap):
        return cls.forward(*args)
    return _apply_vmap(cls, level, args)


def _run_forward_for_jvp(cls: Any, primals: tuple[Any, ...], two_part: bool, saved: dict[str, Any]) -> Any:
    """Run forward and hand out what it saved for jvp before reverse mode takes it over."""
    output, node = _run_forward(cls, primals, two_part)
    saved["forward"] = node.forward_saved
    node.forward_saved = ()
    return output, node


class _JvpContext:
    """ctx as jvp sees it: attributes of the node, saved tensors of the forward pass."""

    def __init__(self, node: Any, saved: Any) -> None:
        self.__dict__["_node"] = node
        self.__dict__["saved_tensors"] = saved

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._node, name, value)


def _apply_vmap(cls: Any, level: Any, args: tuple[Any, ...]) -> Any:
    """Hand a whole batch to the Function's own vmap."""
    from ..utils._pytree import tree_map

    if cls.vmap is Function.vmap:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            "the vmap staticmethod or set generate_vmap_rule=True. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    if cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity."
        )

    def unwrap(arg: Any) -> Any:
        if isinstance(arg, Tensor) and level in levels_of(arg._array):
            return vocabulary.leave_batch(arg, level=level, axis=0)
        return arg

    def in_dim(arg: Any) -> Any:
        return 0 if isinstance(arg, Tensor) and level in levels_of(arg._array) else None

    unwrapped = tuple(tree_map(unwrap, arg) for arg in args)
    in_dims = tuple(tree_map(in_dim, arg) for arg in args)
    returned = cls.vmap(VmapInfo(level.size, level.randomness), in_dims, *unwrapped)
    if not isinstance(returned, tuple) or len(returned) != 2:
        got = f"{len(returned)} returns" if isinstance(returned, tuple) else f"a {type(returned)}"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got {got} instead"
        )
    output, out_dims = returned
    outputs = output if isinstance(output, tuple) else (output,)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outputs)
    results = tuple(
        o if d is None or not isinstance(o, Tensor) else vocabulary.enter_batch(o, level=level, axis=d % o._array.ndim)
        for o, d in zip(outputs, dims, strict=True)
    )
    return results if isinstance(output, tuple) else results[0]


class InplaceFunction(Function):
    """A Function with an `inplace` flag, kept for old code."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "VmapInfo",
    "once_differentiable",
]
