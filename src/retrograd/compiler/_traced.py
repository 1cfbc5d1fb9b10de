"""Arrays that write down what is done to them: the values of tensors while a function is recorded.

Note [Traced arrays]
A `Traced` array stands for a NumPy array, which it has, and for a value of the program (Note [The program] in `_program.py`). It
is an innermost array type, as NumPy's and CuPy's are: duals and batches hold it, and primitives, rules and decompositions run on
it unchanged.
- Primitives and fused operations are steps as a whole: its vocabulary runs them on the arrays and adds a step. What the rest of
  the library does to arrays by operators, methods and NumPy's functions comes in by NumPy's protocols, and is a step each.
- Its array is a real one, computed as eager computes it. So shapes, strides, which results are views of what, and errors are
  eager's, and nothing has to be said about any operation.
- `isinstance(x, np.ndarray)` holds, because code that asks it wants to know about strides and views; `type(x) is np.ndarray`, by
  which the quick ways are chosen, does not.
- What would take numbers out of it without a step (`item`, `tolist`, `np.asarray`) raises `UnrecordableError`, and the call is
  run in eager. A question for its truth is a check of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .._core.numpy_namespace import declared, numpy_namespace
from .._core.primitive import Primitive
from .._modes import current_mode


class UnrecordableError(BaseException):
    """A function does what cannot be recorded. Not an Exception: no `except` of a program may take it for one of its own."""

    obstacle: Any = None  # where in the function, if that is known


class Traced(NDArrayOperatorsMixin):
    """An array that writes down what is done to it. See Note [Traced arrays]."""

    __slots__ = ("__weakref__", "array", "recorder", "value")
    __class__ = property(lambda self: np.ndarray)  # see the note
    is_meta = False

    def __init__(self, recorder: Any, array: Any, value: Any) -> None:
        self.recorder, self.array, self.value = recorder, array, value

    # ---- what it has ----
    @property
    def vocabulary(self) -> Any:
        return traced_namespace

    shape = property(lambda self: self.array.shape)
    strides = property(lambda self: self.array.strides)
    dtype = property(lambda self: self.array.dtype)
    ndim = property(lambda self: self.array.ndim)
    size = property(lambda self: self.array.size)
    itemsize = property(lambda self: self.array.itemsize)
    nbytes = property(lambda self: self.array.nbytes)
    flags = property(lambda self: self.array.flags)

    @property
    def base(self) -> Any:
        """The array whose memory this one shows."""
        return self.recorder.base_of(self)

    @property
    def data(self) -> Any:
        """Where its memory begins, as CuPy says it; NumPy must not find memory here."""
        return SimpleNamespace(ptr=self.array.__array_interface__["data"][0])

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Traced({self.value}, {self.array!r})"

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return self.recorder.check(self)  # type: ignore[no-any-return]

    # ---- steps ----
    def __getitem__(self, index: Any) -> Any:
        return self.recorder.call("getitem", np.ndarray.__getitem__, "getitem", (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        self.recorder.call("setitem", np.ndarray.__setitem__, "setitem", (self, index, value), {}, writes=(self,))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        writes: tuple[Any, ...] = ()
        if method == "at":
            writes = inputs[:1]
        if out is not None:
            writes = tuple(one for one in (out if isinstance(out, tuple) else (out,)) if one is not None)
            options["out"] = out
        label = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        name = ufunc.__name__ if method == "__call__" and not options else None
        return self.recorder.call(
            "call", getattr(ufunc, method), label, inputs, options, name=name, writes=writes, owner=ufunc
        )

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        name = function.__name__
        if name in ASKING:
            return function(*bare(args), **bare(options))
        writes: tuple[Any, ...] = tuple(args[:1]) if name in WRITING else ()
        out = options.get("out")
        if out is not None:
            writes = out if isinstance(out, tuple) else (out,)
        return self.recorder.call("call", function, name, args, options, writes=writes)


ASKING = frozenset("shape ndim size result_type iscomplexobj isrealobj may_share_memory shares_memory can_cast".split())  # noqa: SIM905
WRITING = frozenset("copyto put place putmask fill_diagonal put_along_axis".split())  # noqa: SIM905
PURE_METHODS = """all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum diagonal dot
flatten max mean min nonzero prod ravel repeat reshape round searchsorted squeeze std sum swapaxes take trace transpose var view""".split()  # noqa: SIM905


def _ending(name: str) -> Any:
    """Return a method that ends the recording; in another thread it is that of the array."""

    def method(self: Traced, *args: Any, **options: Any) -> Any:
        if current_mode().recording is self.recorder:
            return self.recorder.refuse("the numbers of a tensor are read (item, tolist, numpy, float, int or print)")
        return getattr(self.array, name)(*args, **options)

    method.__name__ = name
    return method


ENDING = """__array__ get tolist item tobytes dump dumps tofile __int__ __float__ __complex__ __index__ __format__ __contains__
__reduce_ex__ __copy__ __deepcopy__ setflags resize byteswap""".split()  # noqa: SIM905
for _name in ENDING:
    setattr(Traced, _name, _ending(_name))


def _method(name: str, writes: bool = False) -> Any:
    function = getattr(np.ndarray, name)

    def method(self: Traced, *args: Any, **options: Any) -> Any:
        out = options.get("out")
        written = (self,) if writes else () if out is None else out if isinstance(out, tuple) else (out,)
        return self.recorder.call("method", function, name, (self, *args), options, writes=written)

    method.__name__ = name
    return method


def _attribute(name: str) -> Any:
    def write(self: Traced, value: Any) -> None:
        self.recorder.refuse(f"an array is written by its attribute {name}")

    function = getattr(np.ndarray, name).__get__
    return property(lambda self: self.recorder.call("attribute", function, name, (self,), {}), write)


for _name in PURE_METHODS:
    setattr(Traced, _name, _method(_name))
for _name in ("fill", "sort", "partition", "put"):
    setattr(Traced, _name, _method(_name, writes=True))
for _name in ("T", "mT", "real", "imag"):
    setattr(Traced, _name, _attribute(_name))


def bare(tree: Any) -> Any:
    """Return a tree with arrays in the place of traced ones."""
    kind = type(tree)
    if kind is Traced:
        return tree.array
    if kind in (tuple, list):
        return kind([bare(one) for one in tree])
    if kind is dict:
        return {name: bare(one) for name, one in tree.items()}
    if kind is slice:
        return slice(bare(tree.start), bare(tree.stop), bare(tree.step))
    return tree.thing if kind in STANDING else tree


class TracedObject:
    """What a fused operation keeps for its backward, which is a value of the program too."""

    __slots__ = ("thing", "value")

    def __init__(self, thing: Any, value: Any) -> None:
        self.thing, self.value = thing, value


STANDING: set[type] = {TracedObject}  # classes whose objects stand for a `thing`; `_numbers.py` adds its own


class TracedNamespace:
    """The vocabulary `xp` over traced arrays: every word is a step."""

    is_meta = False
    runs_operations = True
    module = np

    def __getattr__(self, name: str) -> Any:
        function = getattr(numpy_namespace, name, None)
        if function is None:
            primitive = declared.get(name)
            if primitive is None:
                raise AttributeError(f"xp has no {name!r}: a rule may use the closed vocabulary only")
            return lambda *args, **params: self.run(primitive, args, params)
        if not callable(function):
            return function

        def word(*args: Any, **params: Any) -> Any:
            return recorder_of(args, params).call("call", function, name, args, params, name=name)

        setattr(self, name, word)
        return word

    def zeros(self, *, shape: tuple[int, ...], dtype: Any) -> Any:
        return numpy_namespace.zeros(shape=shape, dtype=dtype)

    def ones(self, *, shape: tuple[int, ...], dtype: Any) -> Any:
        return numpy_namespace.ones(shape=shape, dtype=dtype)

    # ---- operations as a whole ----
    def run(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run a primitive and add it as a step."""
        function = _function_of(primitive, bare(args[0]) if args else None)
        return recorder_of(args, params).call(
            "call", function, primitive.name, tuple(args), params, name=primitive.name
        )

    def run_fused(self, operation: Any, arrays: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        """Run a fused operation and add it as a step; what it keeps is an object of the program."""
        return recorder_of(arrays, params).fused(operation, arrays, params)  # type: ignore[no-any-return]

    def pull_back_fused(
        self, operation: Any, g: Any, needed: Any, residuals: Any, arrays: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """Run the backward of a fused operation and add it as a step."""
        return recorder_of((g, *arrays), params).fused_backward(operation, g, needed, residuals, arrays, params)


_functions: dict[tuple[str, bool], Any] = {}


def _function_of(primitive: Primitive, first: Any) -> Any:
    """Return what runs a primitive on NumPy's arrays: the same as `Primitive.run`, with fewer questions where that is known."""
    simple = not primitive.widens and not primitive.exact
    found = _functions.get((primitive.name, simple))
    if found is None:
        if simple and primitive.implementation is not None:
            found = partial(primitive.implementation, numpy_namespace)
        elif simple and hasattr(numpy_namespace, primitive.name):
            found = getattr(numpy_namespace, primitive.name)
        else:

            def found(*args: Any, **params: Any) -> Any:
                return primitive.run(args, params)

            found.__name__ = primitive.name
        _functions[primitive.name, simple] = found
    return found


def recorder_of(*trees: Any) -> Any:
    """Return the recorder of the first traced array inside; a thread that does not record computes."""
    return current_mode().recording or COMPUTING


class _Computing:
    """Stands for a recorder where an array of a recording is met outside of it, in another thread: computes and writes nothing down."""

    def call(self, kind: str, function: Any, label: str, args: Any, options: Any, **_: Any) -> Any:
        return function(*bare(args), **bare(options))

    def fused(self, operation: Any, arrays: Any, params: Any) -> Any:
        return operation.run(bare(list(arrays)), params)

    def fused_backward(self, operation: Any, g: Any, needed: Any, residuals: Any, arrays: Any, params: Any) -> Any:
        return operation.pull_back(bare(g), needed, bare(residuals), bare(list(arrays)), params)


COMPUTING = _Computing()
traced_namespace = TracedNamespace()
