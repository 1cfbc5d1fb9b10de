"""`jit.trace`: run a function or module on an example, and keep what it computed as a graph."""

from __future__ import annotations

import copy
import difflib
import inspect
from collections.abc import Callable
from types import MethodType, SimpleNamespace
from typing import Any, NamedTuple

from .._tracebacks import guard_public as _guard_public
from .._warnings import warn
from ..fx._modes_of_nodes import Modes, modes_now
from ..fx._recording import RecordedNumber, Recorder, real
from ..fx.graph import Graph
from ..fx.graph_module import _function_from
from ..fx.node import RANDOM_FUNCTIONS, Node
from ..fx.operator_schemas import normalize_function
from ..nn.modules.module import Module
from ..tensor import Tensor
from ..utils._pytree import tree_leaves, tree_map
from ._schema import Argument, Schema
from ._script import FacedModule, ScriptFunction, ScriptModule

FROZEN = (
    " might cause the trace to be incorrect. We can't record the data flow of Python values, so this value will be treated as a "
    "constant in the future. This means that the trace might not generalize to other inputs!"
)
SAID = {
    "len": "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would be tensor.shape[0]. "
    "Passing a tensor of different shape might lead to errors or silently give incorrect results.",
    "iterating": "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different shape won't change "
    "the number of iterations executed (and might lead to errors or silently give incorrect results).",
} | {
    name: f"torch.{name} results are registered as constants in the trace. You can safely ignore this warning if you use this "
    "function to create tensors out of constant variables that would be the same every time you call this function. In any other "
    "case, this might cause the trace to be incorrect."
    for name in ("tensor", "as_tensor")
}
CONTAINER = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect, this is only valid if the container "
    "structure does not change based on the module's inputs. Consider using a constant container instead (e.g. for `list`, use a "
    "`tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass "
    "strict=False to trace() to allow this behavior."
)


class TracerWarning(Warning):
    """A trace may not be what the program does with other values."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: the package itself gives none."""


class TracingCheckError(Exception):
    """A function was traced twice, and the traces differ."""

    def __init__(
        self, graph_diff_error: str | None, tensor_compare_error: str | None, extra_msg: str | None = None
    ) -> None:
        self.message = "Tracing failed sanity checks!\n"
        if extra_msg is not None:
            self.message += extra_msg + "\n"
        if graph_diff_error is not None:
            self.message += "ERROR: Graphs differed across invocations!\n" + _indented(graph_diff_error) + "\n"
        if tensor_compare_error is not None:
            self.message += (
                "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often indicates that the tracer "
                f"has encountered untraceable code.\n{_indented(tensor_compare_error)}\n"
            )
        super().__init__(self.message)


class TracedModule(FacedModule):
    """A part of a traced module."""

    def _get_name(self) -> str:
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """A traced module: its methods are graphs, over the parameters of the module that was traced."""


_HOOKS = [f"_forward_{each}hooks{kind}" for each in ("", "pre_") for kind in ("", "_with_kwargs")]
_HOOKS.append("_forward_hooks_always_called")


class TraceRecorder(Recorder):
    """Records a trace: it casts as autocast did, and records gradients as the mode of its run says."""

    is_jit_trace = True

    def __init__(self, root: Module | None) -> None:
        super().__init__(root, _warn)
        self._plain_modes = Modes(True, None)

    def _modes_now(self) -> Modes:
        return modes_now()._replace(grad=True)


class Traced(NamedTuple):
    """A graph, the function made of it, its signature, and the tensors that it has from elsewhere."""

    graph: Graph
    function: Callable[..., Any]
    schema: Schema
    constants: dict[str, Any]


def compiled(graph: Graph, schema: Schema, constants: dict[str, Any]) -> Traced:
    """Make the function of a graph."""
    graph._codegen._func_name = schema.name if schema.name.isidentifier() else "forward"
    written = graph.python_code("self")
    function: Any = _function_from(written.src, written.globals, graph._codegen._func_name)
    function._source = written.src.lstrip("\n")
    return Traced(graph, function, schema, constants)


def function_of(traced: Traced) -> ScriptFunction:
    """Make a function of a trace."""
    bound = MethodType(traced.function, SimpleNamespace(**traced.constants))
    return ScriptFunction(bound, traced.schema, traced.graph)


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Run a function or module on example inputs; return one that computes the same operations for any input."""
    if isinstance(func, (ScriptModule, ScriptFunction)):
        kind = "ScriptModule" if isinstance(func, ScriptModule) else "ScriptFunction"
        warn(f"The input to trace is already a {kind}, tracing it is a no-op. Returning the object as is.")
        return func
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module) and getattr(func, "__name__", "") == "forward":
        func = owner
    if example_inputs is None and not isinstance(example_kwarg_inputs, dict):
        raise TypeError(
            "'NoneType' object is not iterable\nHint: torch.jit.trace runs the program: pass example_inputs or "
            "example_kwarg_inputs."
        )
    given = () if example_inputs is None else example_inputs
    checks = _Checks(check_trace, check_inputs, check_tolerance, strict)
    if isinstance(func, Module):
        return _trace_methods(func, {"forward": given}, example_kwarg_inputs, checks)
    name = getattr(func, "__name__", type(func).__name__)
    name = name if name.isidentifier() else "forward"
    made = function_of(_traced(None, func, name, given, example_kwarg_inputs, strict))
    for each in checks.examples(given, None):
        _check(made, func, None, name, each, example_kwarg_inputs, checks)
    return made


def trace_module(
    mod: Any,
    inputs: Any,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Trace several methods of a module: `inputs` has the example of each by its name."""
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    by_keyword = None
    if example_inputs_is_kwarg:
        by_keyword, inputs = next(iter(inputs.values())), {next(iter(inputs)): ()}
    return _trace_methods(mod, inputs, by_keyword, _Checks(check_trace, check_inputs, check_tolerance, strict))


class _Checks(NamedTuple):
    """Whether, and on which examples, a trace is compared with the program."""

    wanted: bool
    inputs: Any
    tolerance: float
    strict: bool

    def examples(self, given: Any, method: str | None) -> list[Any]:
        """Return the arguments on which a function (None) or a method is checked; those of the trace if there are no others."""
        if not self.wanted or self.inputs is None:
            return [given] if self.wanted else []
        return [each.get(method, ()) if method and isinstance(each, dict) else each for each in self.inputs]


def _trace_methods(
    module: Module, inputs: dict[str, Any], kwargs: dict[str, Any] | None, checks: _Checks
) -> TopLevelTracedModule:
    for each in module.modules():
        if each._backward_hooks or each._backward_pre_hooks:
            raise ValueError(f"Modules that have backward hooks assigned can't be compiled: {each}")
    made: TopLevelTracedModule = TopLevelTracedModule.over(module, TracedModule)
    for table in _HOOKS:
        made.__dict__[table].clear()  # the graph has what they compute
    for name, given in inputs.items():
        function = module if name == "forward" else getattr(module, name)
        held = made._graphs[name] = _traced(module, function, name, given, kwargs, checks.strict)
        made.__dict__.update(held.constants)
        for each in checks.examples(given, name):
            _check(made._method(name), function, module, name, each, kwargs, checks)
    return made


def _traced(
    module: Module | None, function: Any, name: str, given: Any, kwargs: dict[str, Any] | None, strict: bool
) -> Traced:
    args = (given,) if isinstance(given, (Tensor, dict)) else tuple(given)
    kwargs = kwargs or {}
    if not all(map(_is_traceable, (*args, *kwargs.values()))):
        raise RuntimeError(
            f"Type '{_type_text(args or kwargs)}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and "
            "Tuples of Tensors can be traced"
        )
    recording = TraceRecorder(module)
    called = function.forward if isinstance(function, Module) else function
    names = _names(called, len(args))
    result = recording.record(function, args, kwargs, names)
    written = _output(result, strict, recording)
    graph = recording.finish(written)
    values = dict(zip(names, args, strict=True)) | kwargs
    arguments = tuple(Argument(each, _kind(value)) for each, value in values.items())
    owner = None if module is None else type(module).__name__
    return compiled(graph, Schema(name, arguments, _kind(real(result)), owner), recording.constants | recording.parts)


def _names(function: Any, count: int) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = {}.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*names[:count], *(f"argument_{i + 1}" for i in range(len(names), count))]


def _warn(what: str) -> None:
    warn(
        SAID.get(what) or f"Converting a tensor to a {'' if what == 'NumPy array' else 'Python '}{what}{FROZEN}",
        TracerWarning,
    )


def _is_traceable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_traceable, value.values()))
    return all(map(_is_traceable, value)) if isinstance(value, (list, tuple)) else isinstance(value, Tensor)


def _kind(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple[tuple(map(_kind, value))]  # type: ignore[misc]
    if isinstance(value, list):
        return list[_kind(value[0]) if value else Tensor]  # type: ignore[misc]
    if isinstance(value, dict):
        return dict[str, _kind(next(iter(value.values()))) if value else Tensor]  # type: ignore[misc]
    return Tensor if isinstance(value, Tensor) else type(value)


def _type_text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(map(_type_text, value))}]"
    if isinstance(value, list):
        return f"List[{_type_text(value[0]) if value else 'Tensor'}]"
    if isinstance(value, dict):
        return f"Dict[str, {_type_text(next(iter(value.values()), 'Tensor'))}]"
    return "Tensor" if isinstance(value, Tensor) else type(value).__name__


def _output(result: Any, strict: bool, recording: Recorder) -> Any:
    """Return what a trace gives; refuse what none can give."""
    if result is None:
        raise RuntimeError(
            "The traced function didn't return any values! Side-effects are not captured in traces, so it would be a no-op."
        )
    if isinstance(result, RecordedNumber):
        from ..tensor._functions.creation import scalar_tensor, tensor

        dtype = tensor(real(result)).dtype
        return recording.called(scalar_tensor, (result,), {"dtype": dtype})
    if isinstance(result, Tensor):
        return result
    if isinstance(result, dict):
        if strict:
            raise RuntimeError(CONTAINER.format("dict"))
        return {key: _output(each, strict, recording) for key, each in result.items()}
    if isinstance(result, (list, tuple)) and result:
        if isinstance(result, list) and strict:
            warn(CONTAINER.format("list"), TracerWarning)
        parts = [_output(each, strict, recording) for each in result]
        return parts if isinstance(result, list) else tuple(parts)
    raise RuntimeError(
        "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"
    )


# ---- checking ----
def _check(
    made: Any,
    function: Any,
    module: Module | None,
    name: str,
    given: Any,
    kwargs: dict[str, Any] | None,
    checks: _Checks,
) -> None:
    """Trace again, and compare the graphs; run the trace and the program, and compare what they give."""
    import retrograd as torch

    def copies() -> tuple[tuple[Any, ...], dict[str, Any]]:
        args = (given,) if isinstance(given, (Tensor, dict)) else tuple(given)
        return _cloned(args), _cloned(kwargs or {})

    with torch.random.fork_rng():
        args, named = copies()
        again = _traced(module, function, name, args, named, checks.strict)
        _warn_of_chance(again.graph)
        ours, theirs = copies(), copies()
        _compare(made(*ours[0], **ours[1]), function(*theirs[0], **theirs[1]), checks.tolerance, "Python function")
    first = made.graph
    differing = _graph_difference(first, again.graph)
    constants = _constant_difference(made, again) if differing is None else None
    if differing is not None or constants is not None:
        raise TracingCheckError(differing, constants)


def _cloned(value: Any) -> Any:
    def copied(one: Any) -> Any:
        return one.detach().clone().requires_grad_(one.requires_grad) if isinstance(one, Tensor) else copy.deepcopy(one)

    return tree_map(copied, value)


def _compare(ours: Any, theirs: Any, tolerance: float, what: str) -> None:
    from ..testing import assert_close

    for number, (one, other) in enumerate(zip(tree_leaves(ours), tree_leaves(theirs), strict=False), 1):
        if not isinstance(other, Tensor):
            continue
        try:
            assert_close(one.double(), other.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            warn(
                f"Output nr {number}. of the traced function does not match the corresponding output of the {what}. "
                f"Detailed error:\n{error}",
                TracerWarning,
            )


def _is_by_chance(node: Node) -> bool:
    name = getattr(node.target, "__name__", node.target)
    if name not in RANDOM_FUNCTIONS:
        return False
    bound = (
        normalize_function(node.target, node.args, dict(node.kwargs), normalize_to_only_use_kwargs=True)
        if callable(node.target)
        else None
    )
    return bound is None or bound.kwargs.get("training", True) is not False


def _warn_of_chance(graph: Graph) -> None:
    found = [node.format_node() or "" for node in graph.nodes if _is_by_chance(node)]
    if found:
        shown = "\n".join(f"\t{each}" for each in found[:20])
        warn(
            f"Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n{shown}\nThis may cause errors "
            "in trace checking. To disable trace checking, pass check_trace=False to torch.jit.trace()",
            TracerWarning,
        )


def _graph_difference(one: Graph, other: Graph) -> str | None:
    first, second = f"{one}\n", f"{other}\n"
    if first == second:
        return None
    lines = difflib.ndiff(first.splitlines(keepends=True), second.splitlines(keepends=True))
    return "Graph diff:\n" + _indented("".join(lines))


def _constant_difference(made: Any, again: Traced) -> str | None:
    holder = made.owner if hasattr(made, "owner") else made._function.__self__
    for name, value in again.constants.items():
        held = getattr(holder, name, None)
        if isinstance(value, Tensor) and not (
            isinstance(held, Tensor) and held.shape == value.shape and held.eq(value).all().item()
        ):
            return f"Node:\n\t{name}\nwas {held} and is {value}"
    return None


def _indented(text: str) -> str:
    return "\n".join(f"\t{line}" for line in text.split("\n"))


def _get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> tuple[Any, ...]:
    """Return the graph of a trace, and what the program gave."""
    given = args if isinstance(args, tuple) else (args,)
    held = _traced(f if isinstance(f, Module) else None, f, "forward", given, kwargs, strict)
    result = f(*given, **(kwargs or {}))
    return (held.graph, result, given) if return_inputs or _return_inputs_states else (held.graph, result)


_guard_public(globals())
