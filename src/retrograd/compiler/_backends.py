"""Backends of a program's own: `torch.compile(f, backend=function)`.

Note [Backends]
A backend gets a graph, as a `GraphModule` of torch's functions, and example inputs, and returns what computes it. The graph comes of one
call on copies, so that making it has no effects: what is given, and what the function reads besides, are its inputs. Whether the Python of
the function may be skipped, and for which calls, is proved and guarded as it is for our own programs (Note [Purity] in `_purity.py`). A
value that becomes a Python object, a backward and a step of an optimizer end a graph: the function is split there.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from threading import get_ident
from typing import Any

import numpy as np

from .._dtypes import get_default_dtype
from .._generated import emit
from ..fx._recording import RecordedNumber, RecordedTensor, Recorder, real
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn import Module
from ..overrides import TorchFunctionMode
from ..tensor import Tensor
from ..tensor._base import wrap
from ..tensor._functions.generators import default_generator
from ..utils import _pytree as pytree
from ._guards import compile_guards
from ._making import _streams
from ._purity import Verdict, analyse
from ._recorder import Streams
from ._recording import GradientsTouched
from ._splitting import Obstacle, function_of
from ._traced import UnrecordableError
from ._trees import CONSTANTS, Kept, UnknownError, containers, leaves, swapped

ENDING = {
    "value": "a value of a tensor becomes Python's",
    "backward": "it runs a backward",
    "step": "an optimizer takes a step",
}
RESULTS = CONSTANTS | {slice}


class BackendRecord:
    """A graph with its guards, as `Compiled` keeps records."""

    stays_outside, untried = False, ()

    def __init__(self, graph: GraphModule) -> None:
        self.graph = graph


def record_for(
    backend: Callable[..., Any], retry: Any, function: Any, mode: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """Return what runs calls by what a backend makes of the graph of one, or gives `retry`. The first call asks the backend."""
    given: list[tuple[str, Any]] = []
    leaves(args, "args", given, [])
    leaves(kwargs, "kwargs", given, [])
    verdict = analyse(function, args, kwargs)
    _need_a_graph(verdict, function, mode)
    inputs, names = _inputs(function, given, verdict)
    recorder = BackendRecorder(inputs, names)
    drawn = [generator for _, generator in _streams(_others(args, kwargs), verdict)]
    streams = Streams([default_generator, *drawn])
    try:
        result, there = recorder.run_once(function, args, kwargs)
    finally:
        streams.put_back()
    there |= {id(one): Kept(one) for one in verdict.returned}
    outputs: list[Any] = []
    shape = _shape_of(result, recorder, outputs, there)
    graph = recorder.finish(tuple(outputs))
    module = GraphModule(recorder.attributes(), graph)
    used = recorder.used
    captured = {id(tensor) for _, tensor in verdict.tensors}
    made: list[Callable[..., Any]] = []
    paths = {id(tensor): path for path, tensor in given if id(tensor) not in captured}
    fetch = [(None, tensor) if (path := paths.get(id(tensor))) is None else (path, None) for tensor in used]
    holds = compile_guards(verdict.guards)
    known, default = _facts(given, used, args, kwargs), get_default_dtype()

    def run(now: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if now is not mode or get_default_dtype() is not default:
            return retry
        places: list[tuple[str, Any]] = []
        try:
            leaves(args, "args", places, [])
            leaves(kwargs, "kwargs", places, [])
        except UnknownError:
            return retry
        by_path = dict(places)
        if not holds(function, args, kwargs):
            return retry
        tensors = [tensor if path is None else by_path[path] for path, tensor in fetch]
        if _facts(places, tensors, args, kwargs) != known:
            return retry
        if not made:
            made.append(_made_by(backend, module, tensors))
        return _rebuilt(shape, made[0](*tensors), args, kwargs)

    run.record = BackendRecord(module)  # type: ignore[attr-defined]
    return run


def _need_a_graph(verdict: Verdict, function: Any, mode: Any) -> None:
    """Refuse a call of which there is no graph."""
    if not verdict.pure:
        error = UnrecordableError(verdict.reason)
        if verdict.at is not None:
            error.obstacle = Obstacle(verdict.at.lineno, verdict.at.col_offset)
        raise error
    own = getattr(function_of(function), "__code__", None)
    for effect in verdict.effects:
        if effect.kind in ENDING:
            error = UnrecordableError(f"{ENDING[effect.kind]}: {effect.text}")
            if own is not None and effect.place is not None and effect.place[0] == own.co_filename:
                error.obstacle = Obstacle(effect.place[1])
            raise error


def _inputs(function: Any, given: list[tuple[str, Any]], verdict: Verdict) -> tuple[dict[int, Any], dict[int, str]]:
    """Return by their ids the tensors that a function may read, and what their placeholders are called."""
    inputs: dict[int, Any] = {}
    names: dict[int, str] = {}
    arguments = _argument_names(function)
    captured = {id(tensor) for _, tensor in verdict.tensors}
    for path, tensor in given:
        if id(tensor) not in captured:
            first, rest = re.match(r"(args\[\d+\]|kwargs\['\w+'\])(.*)", path).groups()  # type: ignore[union-attr]
            _add(tensor, f"L_{arguments.get(first, first)}{rest}", inputs, names)
    for source, tensor in verdict.tensors:
        _add(tensor, f"G_{source.text}", inputs, names)
    for source, value in verdict.library_objects:
        if isinstance(value, Module):
            home = "L_self" if source.text == "function" else f"G_{source.text}"
            for name, tensor in (*value.named_parameters(), *value.named_buffers()):
                _add(tensor, f"{home}.{name}", inputs, names)
    return inputs, names


def _add(tensor: Any, text: str, inputs: dict[int, Any], names: dict[int, str]) -> None:
    if id(tensor) not in inputs:
        inputs[id(tensor)] = tensor
        names[id(tensor)] = re.sub(r"\W+", "_", text).strip("_") + "_"


def _argument_names(function: Any) -> dict[str, str]:
    """Return what a function calls its arguments, by the expressions that lead to them in a call."""
    own = function.forward if isinstance(function, Module) else function
    try:
        parameters = list(inspect.signature(own).parameters.values())
    except (TypeError, ValueError):
        return {}
    by_position = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return {f"args[{at}]": name for at, name in enumerate(by_position)} | {
        f"kwargs['{one.name}']": one.name for one in parameters
    }


class BackendRecorder(Recorder):
    """Records a call on copies; the tensors that it reads become inputs of the graph."""

    def __init__(self, inputs: dict[int, Any], names: dict[int, str]) -> None:
        super().__init__(None, self._refuse)
        self._inputs, self._input_names = inputs, names
        self.used: list[Any] = []  # tensors, in the order of the placeholders
        self._stand_ins: dict[int, RecordedTensor] = {}
        self._last: Node | None = None
        self._made_of_data: dict[int, Any] = {}  # constants of the graph

    def _refuse(self, what: str) -> None:
        if what not in ("tensor", "as_tensor"):
            raise UnrecordableError(f"a value of a tensor becomes a Python {what}")

    def run_once(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[int, Any]]:
        """Call a function with what stands for its tensors; return what it gives, and where the containers that it was given come from."""
        given: list[tuple[str, Any]] = []
        leaves((args, kwargs), "", given, [])
        stand_ins = {id(tensor): self.stand_in(tensor) for _, tensor in given}
        own_args, own_kwargs = swapped(args, stand_ins), swapped(kwargs, stand_ins)
        paths: dict[int, str] = {}
        containers(own_args, "args", paths)
        containers(own_kwargs, "kwargs", paths)
        self._containers = own_args, own_kwargs  # their ids are to stay theirs
        with self._recording(), _Seen(self):
            self._patch_names(getattr(function_of(function), "__globals__", {}))
            self._patcher.patch_method(Tensor, "grad", self._refusing(vars(Tensor)["grad"]))
            result = function(*own_args, **own_kwargs)
        return result, {identity: _given(path) for identity, path in paths.items()}

    def stand_in(self, tensor: Any) -> RecordedTensor:
        """Return what stands for an input: a copy of it, with a placeholder."""
        found = self._stand_ins.get(id(tensor))
        if found is None:
            node = self._input_node(self._input_names[id(tensor)])
            self._busy += 1  # the copy is no operation of the function
            try:
                copy = _copy(tensor).requires_grad_(tensor.requires_grad)
            finally:
                self._busy -= 1
            found = self._stand_ins[id(tensor)] = self.recorded(copy, node)
            self.used.append(tensor)
        return found

    def _input_node(self, name: str) -> Node:
        if self._last is None:
            node = self.create_node("placeholder", name, (), {})
        else:
            with self.graph.inserting_after(self._last):
                node = self.create_node("placeholder", name, (), {})
        self._last = node
        return node

    def with_inputs(self, value: Any) -> Any:
        """Return arguments with stand-ins for the inputs among them."""
        return pytree.tree_map(self._of_input, value)

    def _of_input(self, value: Any) -> Any:
        if isinstance(value, Tensor) and not isinstance(value, RecordedTensor) and id(value) in self._inputs:
            return self.stand_in(value)
        return value

    def called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._busy or self.is_over:
            return super().called(function, args, kwargs)
        return super().called(function, *self.with_inputs((args, kwargs)))

    def method(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._busy or self.is_over:
            return super().method(name, args, kwargs)
        return super().method(name, *self.with_inputs((args, kwargs)))

    def _read(self, tensor: Any) -> Node:
        """Return the node of a tensor that is no result of another."""
        if id(tensor) in self._inputs:
            return self.stand_in(tensor)._node
        if id(tensor) not in self._made_of_data:
            raise UnrecordableError("it computes with a tensor that no graph of torch's functions shows")
        return super()._read(tensor)

    def _from_data(self, function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = super()._from_data(function, name, args, kwargs)
        self._made_of_data[id(made)] = made
        return made

    def made_anew(self, tensor: Any) -> Any:
        """Return a result as the graph makes it: one that was made of data is new in every call."""
        if id(tensor) in self._made_of_data and id(tensor) not in self._known:
            return self.recorded(tensor, self.create_node("call_method", "clone", (self._read(tensor),), {}))
        return tensor

    def _refusing(self, plain: property) -> property:
        """Return what gradients are read and set by: those of the tensors that the function reads are not in the graph."""
        thread = get_ident()

        def asked(how: Any) -> Callable[..., Any]:
            def access(tensor: Any, *value: Any) -> Any:
                if id(tensor) in self._inputs and not self._busy and get_ident() == thread:
                    raise GradientsTouched("the gradient of a tensor is read or written")
                return how(tensor, *value)

            return access

        return property(asked(plain.fget), asked(plain.fset), asked(plain.fdel))

    def attribute(self, tensor: RecordedTensor, name: str) -> Any:
        if name == "grad" and not self._busy:
            raise GradientsTouched("the gradient of a tensor is read")
        return super().attribute(tensor, name)

    def set_attribute(self, tensor: RecordedTensor, name: str, value: Any) -> None:
        raise UnrecordableError(f"the {name} of a tensor is set")

    def attributes(self) -> Module:
        """Return a module with what the graph reads besides its inputs."""
        for name, value in {**self.constants, **self.parts}.items():
            setattr(self.root, name, value)
        return self.root


class _Seen(TorchFunctionMode):
    """Records calls that are given inputs alone, which nobody else takes over."""

    def __init__(self, recorder: BackendRecorder) -> None:
        self._recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        recorder = self._recorder
        if recorder._busy or recorder.is_over:
            return func(*args, **kwargs)
        own_args, own_kwargs = recorder.with_inputs((args, kwargs))
        if pytree.tree_any(lambda one: isinstance(one, (RecordedTensor, RecordedNumber)), (own_args, own_kwargs)):
            name = func.__name__
            if getattr(func, "__qualname__", "") == f"Tensor.{name}":  # which is another while methods record
                return recorder.method(name, tuple(own_args), own_kwargs)
            return recorder.called(func, tuple(own_args), own_kwargs)
        return func(*args, **kwargs)


def _copy(tensor: Any) -> Any:
    """Return a copy that is laid out as the tensor is: whether it is contiguous decides what a function gives."""
    copy, array = tensor.detach().clone(), tensor._array
    if copy.stride() == tensor.stride() or not array.size:
        return copy
    count = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    made = np.lib.stride_tricks.as_strided(np.empty(count, array.dtype), array.shape, array.strides)
    made[...] = array
    return wrap(made)


def _made_by(backend: Callable[..., Any], module: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """Call a backend; its errors become torch's."""
    try:
        made = backend(module, inputs)
        if not callable(made):
            raise AssertionError("compiler_fn did not return callable")
    except Exception as error:
        name = getattr(backend, "__name__", str(backend))
        raise import_module("retrograd._dynamo.exc").BackendCompilerFailed(name, error) from error
    return made  # type: ignore[no-any-return]


# ---- what a call gives ----
class _Output:
    """Stands for a tensor among the results."""

    def __init__(self, at: int) -> None:
        self.at = at


def _given(path: str) -> Callable[..., Any]:
    """Return what finds a container among arguments."""
    return emit("a container of a call", f"def found(args, kwargs):\n    return {path}", {})["found"]  # type: ignore[no-any-return]


def _shape_of(tree: Any, recorder: BackendRecorder, outputs: list[Any], there: dict[int, Any]) -> Any:
    """Return results with what stands for their tensors, which are listed, and for containers that are `there`, by their ids."""
    if isinstance(tree, Tensor):
        tree = recorder.made_anew(tree)
        for at, one in enumerate(outputs):
            if one is tree:
                return _Output(at)
        outputs.append(tree)
        return _Output(len(outputs) - 1)
    if id(tree) in there:
        return there[id(tree)]
    if isinstance(tree, RecordedNumber) or type(tree) in RESULTS:
        return Kept(real(tree))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[_shape_of(one, recorder, outputs, there) for one in tree])
    if type(tree) in (tuple, list):
        return type(tree)([_shape_of(one, recorder, outputs, there) for one in tree])
    if type(tree) is dict:
        return {key: _shape_of(one, recorder, outputs, there) for key, one in tree.items()}
    raise UnknownError(f"a result of type {type(tree).__name__}", is_result=True)


def _rebuilt(shape: Any, outputs: Any, args: Any, kwargs: Any) -> Any:
    """Return results with these tensors."""
    kind = type(shape)
    if kind is _Output:
        return outputs[shape.at]
    if kind is Kept:
        return shape.thing
    if isinstance(shape, tuple) and hasattr(shape, "_fields"):
        return kind(*[_rebuilt(one, outputs, args, kwargs) for one in shape])
    if kind in (tuple, list):
        return kind([_rebuilt(one, outputs, args, kwargs) for one in shape])
    if kind is dict:
        return {key: _rebuilt(one, outputs, args, kwargs) for key, one in shape.items()}
    return shape(args, kwargs)  # a container that was given


def _facts(places: list[tuple[str, Any]], tensors: list[Any], args: Any, kwargs: Any) -> Any:
    """Say what must be the same in every call: of tensors, of where they stand, and all else that is given."""
    first: dict[int, int] = {}
    same = [first.setdefault(id(tensor), len(first)) for _, tensor in places]
    others = [(path, kind, repr(value)) for path, kind, value in _others(args, kwargs)]
    each = [
        (type(t), t._array.shape, t._array.dtype, t._array.strides, t.requires_grad, t._edge is None) for t in tensors
    ]
    return [path for path, _ in places], same, others, each


def _others(args: Any, kwargs: Any) -> list[tuple[str, str, Any]]:
    facts: list[tuple[str, str, Any]] = []
    leaves(args, "args", [], facts)
    leaves(kwargs, "kwargs", [], facts)
    return facts
