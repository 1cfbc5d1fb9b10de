"""The Tensor object: an array, its place in the graph, and what few tensors have besides."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import cache, partial
from typing import Any
from weakref import ref

import numpy as np

from .. import _dtypes
from .._core.arrays import Batched, Dual, LevelArray
from .._core.levels import creation_numbers
from .._graph.node import node_class
from .._modes import NO_GRAD, PLAIN, read_mode
from .._ops.shape import alias
from .._places import describe, user_frame
from ..overrides import UNSEEING, hold

get_frame = sys._getframe
RAW = (np.ndarray, np.generic)


class _Leaf:
    """The edge of a leaf that requires grad: its gradient goes to the tensor itself. See Note [Edges]."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "LEAF"


LEAF = _Leaf()


class Rewritten:
    """Stands for the node that a view gets after a write into its base, in messages."""

    @staticmethod
    def name() -> str:
        return "AsStridedBackward0"

    pull_back = None


class Storage:
    """The version counter that all tensors on one memory share, the place of the last write, and the views."""

    # Defaults of the class, not slots: most are never written or viewed, and then cost nothing to make.
    version = 0
    code: Any = None
    lasti = 0
    views: list[Any] | None = None  # weak references to the tensors that view the base
    most_views = 8  # before dead references are thrown out
    inner: list[Any] | None = None  # weak references to tensors inside transforms that show the memory there
    most_inner = 8
    inference: int = 0  # when it was made in inference mode, as a creation number
    detached: Any = None  # the edge that `detach_` took away
    real: Storage | None = None  # behind the stand-in that `detach_` leaves with the node
    owner: Any = None  # weak reference to the base, once a write has changed its history

    @property
    def place(self) -> str | None:
        return None if self.code is None else describe(self.code, self.lasti)

    def view_edge(self, array: Any, edge: Any, version: int) -> Any:
        """Return the edge that a view written at a version has, or `edge` if the array is no view's.

        Torch makes a view's new node, and forgets the old one, when somebody reads `grad_fn`.
        """
        for one in self.views or ():
            tensor = one()
            if tensor is not None and tensor._array is array:
                forgotten = tensor._extra.view.version != version and getattr(tensor._edge, "seen", False)
                return edge if forgotten else tensor._edge
        return edge

    def now(self, array: Any, edge: Any) -> tuple[Any, Any]:
        """Return the array and the edge that the tensor of a saved array has now, after writes; `edge` is as it was."""
        if type(edge) in leaf_types:
            return edge._array, edge._edge
        owner = None if self.owner is None else self.owner()
        if owner is not None and owner._array is array:
            return array, owner._edge
        for one in self.views or ():
            tensor = one()
            if tensor is not None and (tensor._array is array or tensor._extra.view.was is array):
                return tensor._array, tensor._edge  # which raises if autograd has lost the view
        if edge is None:  # of a tensor outside the graph on the same memory, unless that has changed its shape
            same = isinstance(array, np.generic)  # a value without memory has no aliases
            if owner is not None and owner._array.size == array.size and (same or owner._array.shape != array.shape):
                return owner._array, owner._edge
            return array, None
        if _shows_by_strides(edge):
            return array, Rewritten  # a view that nobody holds any more
        if owner is not None and owner._array.size == array.size:
            return owner._array, owner._edge
        return array, edge

    def forget_dead_views(self) -> None:
        """Throw out references to views that are gone; next time when twice as many have come."""
        self.views = [one for one in self.views or () if one() is not None]
        self.most_views = max(8, 2 * len(self.views))

    def add_inner(self, tensor: Any) -> None:
        """Let the memory know, weakly, who shows it inside a transform."""
        if self.inner is None:
            self.inner = []
        self.inner.append(ref(tensor))
        if len(self.inner) > self.most_inner:
            self.inner = [one for one in self.inner if one() is not None]
            self.most_inner = max(8, 2 * len(self.inner))

    def forget_last_view(self, view: Any) -> None:
        """Do not keep the edge of the newest view up to date."""
        if self.views and self.views[-1]() is view:
            self.views.pop()

    def written(self) -> None:
        """Move the version and note who wrote."""
        frame = user_frame(get_frame(2))
        self.written_at(frame.f_code, frame.f_lasti)

    def written_at(self, code: Any, lasti: int) -> None:
        """Move the version and note the place of the write."""
        self.version += 1
        self.code = code
        self.lasti = lasti


def _shows_by_strides(edge: Any) -> bool:
    """Tell whether an edge is that of a view which sizes and strides describe."""
    from ._aliasing.view_nodes import REPLAYED_AS

    primitive = getattr(edge, "primitive", None)
    return primitive is not None and primitive.view and primitive.name not in REPLAYED_AS


class NothingExtra:
    """What can be read of every `_extra`: the defaults."""

    __slots__ = ()
    narrow = False  # whether it has room for a view record only, see `_views.View`
    grad: Any = None
    grad_dtype: Any = LEAF  # of the gradients that arrive: LEAF, that of the leaf; None, whatever they have
    hooks: OrderedDict[int, Any] | None = None
    post_hooks: OrderedDict[int, Any] | None = None
    accumulator_hooks: OrderedDict[int, Any] | None = None
    accumulator_pre_hooks: OrderedDict[int, Any] | None = None
    accumulator: Any = None
    retains_grad = False
    node_shape: Any = None  # of the node's output, where an in-place view without grad has changed the tensor's
    hooked = False  # whether any hook was ever registered on this leaf
    born = 0  # creation number of a tensor made inside a transform: one from outside is captured
    transform: Any = None  # the one whose variable this leaf is: when it has ended, nobody asks for a gradient any more
    entered: Any = None  # which outer tensor it shows inside a transform, see `_entering.Entered`
    tangent: Any = None  # what `unpack_dual` shows of a dual again and again, see `forward_ad.Tangent`
    view: Any = None  # itself, if it is a `_views.View`


class Extra(NothingExtra):
    """What few tensors have: a gradient, hooks. An instance is made for every leaf, and sets one or two of the defaults."""


# Every Tensor class: `type(x) in leaf_types` is quicker than isinstance, which asks the metaclass first.
leaf_types: set[type] = set()
# Classes with a `__torch_dispatch__`: see Note [Below autograd] in `_dispatch/__init__.py`.
dispatch_types: set[type] = set()
# Arguments of these types let a public function go straight through.
plain_types: set[type] = {int, float, bool, str, tuple, list, slice, type(None), type(Ellipsis), _dtypes.dtype}


# Classes that may exist without any function looking for `__torch_function__`. The uninitialised ones are met as first arguments,
# where the quick forms see them as well; what makes the others holds for them.
UNWATCHED = frozenset(
    """TensorBase Tensor Parameter Buffer ForbiddenView SignedView ConjugateView NegativeView NegativeConjugateView
    UninitializedParameter UninitializedBuffer DTensor RecordedTensor""".split()  # noqa: SIM905
)


# Called after somebody has changed the methods or attributes of a class of the library's, or the dtype that autocast takes by itself. What
# the library sets itself is not told.
told_of_changes: list[Callable[[], None]] = []
_held_by_classes: list[Any] = []  # see Note [What a mode sees] in `_watching.py`


def disabled_torch_dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Stand for `__torch_dispatch__` in a class that does not see operations: run one below all classes and modes."""
    return dispatch_layer().run_below(func, args, kwargs or {})


def dispatch_layer(module: str = "") -> Any:
    """Return the modules by which operations are seen. See Note [Below autograd] in `_dispatch/__init__.py`."""
    from importlib import import_module

    return import_module(f"{__package__.partition('.')[0]}._dispatch{module}")


def add_dispatch_type(cls: type) -> None:
    """Note a class with a `__torch_dispatch__`."""
    dispatch_types.add(cls)
    dispatch_layer().install()


def make_wrapper_subclass(cls: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a tensor without memory, of a class that computes in `__torch_dispatch__`."""
    return dispatch_layer(".wrappers").make_wrapper(cls, size, *args, **kwargs)


class TensorMeta(type):
    """Knows every class of Tensors, and how torch writes its name."""

    def __init__(cls, name: str, bases: Any, namespace: Any) -> None:
        super().__init__(name, bases, namespace)
        leaf_types.add(cls)
        if cls.__torch_dispatch__ is not disabled_torch_dispatch:  # type: ignore[attr-defined]
            add_dispatch_type(cls)
        if name not in UNWATCHED:
            _held_by_classes.append(hold())

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        cls._tell()

    def __delattr__(cls, name: str) -> None:
        super().__delattr__(name)
        cls._tell()

    def _tell(cls) -> None:
        if cls.__module__.partition(".")[0] == "retrograd":
            for told in told_of_changes:
                told()

    def __repr__(cls) -> str:
        names = {"Tensor": "torch.Tensor", "Parameter": "torch.nn.parameter.Parameter", "Buffer": "torch.nn.Buffer"}
        if cls.__module__.partition(".")[0] == "retrograd" and cls.__name__ in names:
            return f"<class '{names[cls.__name__]}'>"
        return super().__repr__()


class TensorBase(metaclass=TensorMeta):
    """The slots of a Tensor. Results of operations fill exactly these four."""

    __slots__ = ("__dict__", "__weakref__", "_array", "_edge", "_extra", "_storage")
    __hash__ = object.__hash__

    _array: Any
    _edge: Any
    _extra: Any  # an Extra, a `_views.View` or None
    _storage: Storage | None
    _edges = ()  # a leaf ends the engine's walk over the graph
    __torch_dispatch__: Any = disabled_torch_dispatch
    _make_wrapper_subclass = staticmethod(make_wrapper_subclass)

    def _need_extra(self) -> Any:
        extra = self._extra
        if extra is None:
            extra = self._extra = Extra()
        elif extra.narrow:
            extra = self._extra = extra.widened()
        return extra


shown_types: set[type] = set()  # classes of tensors that look otherwise to one thread, see `compiler/_apart.py`


class RawSlot:
    """A slot of tensors, past the attribute of a class that shows something else in its place, or raises."""

    def __init__(self, name: str) -> None:
        self.name, self.slot = name, TensorBase.__dict__[name]

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        return getattr(tensor, self.name) if type(tensor) in shown_types else self.slot.__get__(tensor)

    def __set__(self, tensor: Any, value: Any) -> None:
        if type(tensor) in shown_types:
            setattr(tensor, self.name, value)
        else:
            self.slot.__set__(tensor, value)


_edge_slot: Any = RawSlot("_edge")
array_slot: Any = RawSlot("_array")
signed_types: set[type] = (
    set()
)  # classes of such tensors, see Note [Signs] in `_aliasing/signs.py`; empty until one is needed


def stored(tensor: Any) -> Any:
    """Return the array whose memory a tensor has; of a signed view it is not the values. See Note [Signs]."""
    return array_slot.__get__(tensor)


def mark_born(tensor: Any) -> None:
    """Note that a tensor was made inside a transform, so that a write into it is no write into a captured one."""
    tensor._need_extra().born = creation_numbers()


Tensor: Any = None  # the classes themselves, set by `_tensor.py`
Parameter: Any = None
new_tensor: Any = None
backward_from: Any = None  # the engine's entry, set by `autograd`


def disabled_torch_function(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Stand for `__torch_function__` in a class that does not take calls over."""
    return NotImplemented


def install(tensor_class: type, parameter_class: type) -> None:
    """Receive the classes; blank tensors are made in C, past `Tensor.__new__`, which is torch's legacy constructor."""
    global Tensor, Parameter, new_tensor
    Tensor, Parameter = tensor_class, parameter_class
    plain_types.update((tensor_class, parameter_class))
    UNSEEING.update((tensor_class, parameter_class))
    new_tensor = partial(object.__new__, tensor_class)


def wrap(array: Any, edge: Any = None, storage: Storage | None = None) -> Any:
    """Make a Tensor of an array."""
    tensor = new_tensor()
    tensor._array = array
    tensor._edge = edge
    tensor._storage = storage
    tensor._extra = None
    mode = read_mode()
    if mode is not PLAIN and mode is not NO_GRAD and mode is not None:
        if mode.recording is not None and isinstance(array, RAW):
            tensor._array = mode.recording.constant(array)
        if mode.transforms:
            mark_born(tensor)
    return tensor


def wrap_leaf_alias(leaf: Any, array: Any) -> Any:
    """Make a Tensor for a saved value of a leaf that stands where the leaf stands in the graph, and looks like a leaf."""
    return wrap(array, _alias_class()().begin((leaf,), of_user=False), None)


@cache
def _alias_class() -> Any:
    cls = node_class(alias)
    return type(cls.__name__, (cls,), {"__slots__": (), "stands_for_leaf": True})


def edge_of(tensor: Any) -> Any:
    """Return where a tensor's gradient goes. See Note [Edges]."""
    edge = tensor._edge
    return tensor if edge is LEAF else edge


def storage_of(tensor: Any) -> Storage:
    """Return the tensor's Storage, making and registering it on first need. See Note [Saved values]."""
    storage = tensor._storage
    if storage is None:
        storage = tensor._storage = Storage()
        edge = tensor._edge
        if edge is not None and edge is not LEAF:
            edge._storage = storage
    return storage  # type: ignore[no-any-return]


def materialise(tensor: Any) -> Any:
    """Give a 0-d value kept as a NumPy scalar memory of its own, because somebody will share or write it."""
    array = tensor._array
    if isinstance(array, np.generic):
        array = tensor._array = np.array(array)
    elif isinstance(array, LevelArray) and not array.shape:
        array = tensor._array = memory_of(array)
    return array


def memory_of(array: Any) -> Any:
    """Make every raw part of an array writable memory (no NumPy scalars)."""
    if isinstance(array, np.generic):
        return np.array(array)
    if isinstance(array, Dual):
        primal, tangent = memory_of(array.primal), memory_of(array.tangent)
        return array if primal is array.primal and tangent is array.tangent else Dual(array.level, primal, tangent)
    if isinstance(array, Batched):
        inner = memory_of(array.array)
        return array if inner is array.array else Batched(array.level, inner)
    return array


def add_view(base: Any, view: Any) -> None:
    """Let a base know, weakly, who views it."""
    storage = storage_of(base)
    if storage.views is None:
        storage.views = []
    storage.views.append(ref(view))
    if len(storage.views) > storage.most_views:
        storage.forget_dead_views()


def dtype_of(tensor: Any) -> _dtypes.dtype:
    """Return the torch dtype of a tensor."""
    return _dtypes.from_numpy(tensor._array.dtype)
