"""The Python source of a graph: a function `forward` that computes what the nodes say, and frees each value after its last use."""

from __future__ import annotations

import enum
import math
import re
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..utils import _pytree as pytree
from ._namespace import TAKEN, _Namespace
from ._operators import inplace_methods, magic_methods
from .node import Node, _get_qualified_name, _torchs, _type_repr

TransformCodeFunc = Callable[[list[str]], list[str]]


@dataclass
class PythonCode:
    """The source of a graph, and what its names mean."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


def builtin_globals() -> dict[str, tuple[str, Any]]:
    """Return what every generated function may name: `name: (import line, object)`."""
    import retrograd as torch

    from . import _pytree as fx_pytree

    return {
        "inf": ("from math import inf", math.inf),
        "nan": ("from math import nan", math.nan),
        "NoneType": ("NoneType = type(None)", type(None)),
        "torch": ("import torch", torch),
        "device": ("from torch import device", torch.device),
        "fx_pytree": ("import torch.fx._pytree as fx_pytree", fx_pytree),
        "pytree": ("import torch.utils._pytree as pytree", pytree),
    }


def _format_target(base: str, target: str) -> str:
    """Write `base.target`, also where a part of the target is no identifier."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


@dataclass
class _Writing:
    """What one generation of code collects."""

    codegen: CodeGen
    root: str
    namespace: _Namespace
    parameters: list[str] = field(default_factory=list)
    globals: dict[str, Any] = field(default_factory=dict)
    wrapped: dict[str, None] = field(default_factory=dict)
    return_annotation: str = ""

    def add_global(self, hint: str, obj: Any) -> str:
        """Return the name of something that lies outside the graph."""
        if _is_from_torch(obj) and _is_found_by_name(obj):
            return _get_qualified_name(obj)
        name = self.namespace.create_name(hint, obj)
        self.globals[name] = obj
        return name

    def type_text(self, kind: Any) -> str:
        if kind == ():
            return "()"
        if isinstance(kind, types.UnionType):
            return "|".join(self.type_text(each) for each in typing.get_args(kind))
        origin = typing.get_origin(kind)
        if origin is not None:
            outer = getattr(typing, kind._name, origin) if isinstance(kind, typing._GenericAlias) else origin  # type: ignore[attr-defined]
            name = self.add_global(_type_repr(outer), outer)
            arguments = typing.get_args(kind)
            return f"{name}[{','.join(self.type_text(each) for each in arguments)}]" if arguments else name
        return self.add_global(_type_repr(kind), kind)

    def text(self, value: Any) -> str:
        """Write an argument."""
        if isinstance(value, Node):
            return repr(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self.add_global(_get_qualified_name(type(value)), type(value))}{tuple(value)!r}"
        if isinstance(value, tuple):
            return f"({', '.join(map(self.text, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, slice):
            return f"slice({self.text(value.start)}, {self.text(value.stop)}, {self.text(value.step)})"
        if isinstance(value, enum.Enum):
            return f"{self.add_global(type(value).__name__, type(value))}.{value.name}"
        return repr(value)

    def call(self, function: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        return f"{function}({', '.join([*map(self.text, args), *(f'{key} = {self.text(value)}' for key, value in kwargs.items())])})"

    def statement(self, node: Node) -> str:
        """Write one node, without the end of its line."""
        result = repr(node) + ("" if node.type is None else f" : {self.type_text(node.type)}")
        if node.op == "placeholder":
            return self.placeholder(node)
        if node.op == "get_attr":
            return f"{result} = {_format_target(self.root, node.target)}"
        if node.op == "call_module":
            return f"{result} = {self.call(_format_target(self.root, node.target), node.args, node.kwargs)}"
        if node.op == "call_method":
            return f"{result} = {self.call(_format_target(self.text(node.args[0]), node.target), node.args[1:], node.kwargs)}"
        if node.op == "output":
            if node.type is not None:
                self.return_annotation = f" -> {self.type_text(node.type)}"
            return self.codegen.generate_output(node.args[0], repr_fn=self.text)
        return self.function_call(node, result)

    def placeholder(self, node: Node) -> str:
        annotation = "" if node.type is None else f" : {self.type_text(node.type)}"
        default = f" = {self.text(node.args[0])}" if node.args else ""
        self.parameters.append(f"{node.target}{annotation}{default}")
        name = node.target.replace("*", "")
        return "" if name == repr(node) else f"{node!r} = {name}\n"

    def function_call(self, node: Node, result: str) -> str:
        name = getattr(node.target, "__name__", "")
        args = [self.text(each) for each in node.args]
        if getattr(node.target, "__module__", "") == "_operator":
            if name in magic_methods:
                return f"{result} = {magic_methods[name].format(*args)}"
            if name in inplace_methods:
                return f"{inplace_methods[name].format(*args)};  {result} = {args[0]}"
        written = self.add_global(_get_qualified_name(node.target), node.target)
        if (
            written == "getattr"
            and len(node.args) == 2
            and isinstance(node.args[1], str)
            and node.args[1].isidentifier()
        ):
            return f"{result} = {_format_target(args[0], node.args[1])}"
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(written)
        return f"{result} = {self.call(written, node.args, node.kwargs)}"


class CodeGen:
    """Writes a graph as a Python function. Subclasses change how it takes its arguments and gives its result."""

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Write the line that begins the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        """Write the return statement."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """Turn the arguments of the function into those of the graph."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Turn what the graph gives into what the function gives."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return names that the function needs beyond those of the graph."""
        return []

    def _gen_python_code(
        self, nodes: Any, root_module: str, namespace: _Namespace, *, verbose: bool = False
    ) -> PythonCode:
        writing = _Writing(self, root_module, namespace)
        for name, (_, obj) in builtin_globals().items():
            writing.add_global(name, obj)
            writing.globals[name] = obj
        last_uses = _last_uses(nodes)
        body: list[str] = []
        previous = ""
        for index, node in enumerate(nodes):
            if verbose and node.op not in ("placeholder", "output"):
                summary = f"\n# {_summary(node)}\n"
                if summary != previous:
                    body.append(summary)
                    previous = summary
            body.append(f"# COUNTER: {index}\n")
            body.append(writing.statement(node))
            if node.op != "placeholder":
                body.append(_freeing(node, last_uses))
        body = body or ["pass\n"]
        wraps = ""
        if writing.wrapped:
            from ._symbolic_trace import wrap

            wrap_name = writing.add_global("wrap", wrap)
            wraps = "\n".join(f'{wrap_name}("{name}")' for name in writing.wrapped)
        if self._body_transformer:
            body = self._body_transformer(body)
        for name, value in self.additional_globals():
            writing.globals[name] = value
        prologue = self.gen_fn_def(writing.parameters, writing.return_annotation)
        lines, line_map = _without_counters(body, prologue.count("\n") + 1)
        text = "\n".join(f"    {line}" for line in "\n".join(lines).lstrip("\n").split("\n"))
        return PythonCode(f"\n{wraps}\n\n{prologue}\n{text}", writing.globals, line_map, wraps.count("\n") + 4)


class _PyTreeInfo(NamedTuple):
    """How nested arguments and results were taken apart when they were traced."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """A function of nested containers over a graph of flat values."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *args: Any) -> Any:
        """Take the arguments apart."""
        return pytree.tree_flatten(args)[0]

    def process_outputs(self, outputs: Any) -> Any:
        """Put the result together."""
        spec = self.pytree_info.out_spec
        if spec is None:
            return outputs
        return pytree.tree_unflatten(outputs if isinstance(outputs, (list, tuple)) else [outputs], spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Write the beginning of the function, and the lines that take its arguments apart."""
        names = list(self.pytree_info.orig_args)
        has_self = bool(names) and names[0] == "self"
        definition = super().gen_fn_def(names[:], maybe_return_annotation)
        if not free_vars:
            return definition
        plain = [name.split(":")[0].split("=")[0].strip() for name in free_vars]
        arguments = ", ".join(names[has_self:])
        return f"{definition}\n    {', '.join(plain)}, = fx_pytree.tree_flatten_spec([{arguments}], self._in_spec)"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        """Write the return statement, which puts the result together."""
        if self.pytree_info and self.pytree_info.out_spec:
            values = output_args if isinstance(output_args, (list, tuple)) else [output_args]
            return f"return pytree.tree_unflatten({repr_fn(list(values))}, self._out_spec)"
        return super().generate_output(output_args, repr_fn=repr_fn)


def _is_from_torch(obj: Any) -> bool:
    """Whether a program reaches an object by a name that begins with `torch.`"""
    import retrograd as torch

    if obj is torch.device:
        return False
    if isinstance(obj, types.ModuleType):
        return obj.__name__.split(".")[0] in ("retrograd", "torch")
    home = getattr(obj, "__module__", None)
    if home and _torchs(home).split(".")[0] == "torch":
        return True
    return type(obj).__name__ in ("OpOverload", "OpOverloadPacket") and hasattr(obj, "namespace")


def _is_found_by_name(obj: Any) -> bool:
    """Whether the name that a program would write leads to an object: a function of a private file has none."""
    import retrograd as torch

    found: Any = torch
    for part in _get_qualified_name(obj).split(".")[1:]:
        found = getattr(found, part, None)
    return found is not None and (found is obj or not isinstance(found, types.ModuleType))


def _last_uses(nodes: Any) -> dict[Node, list[Node]]:
    """Return, for each node, the values that nobody needs after it."""
    seen: set[Node] = set()
    uses: dict[Node, list[Node]] = {}
    for user in reversed(list(nodes)):
        for node in user._input_nodes:
            if node not in seen:
                seen.add(node)
                uses.setdefault(user, []).append(node)
    return uses


def _freeing(node: Node, last_uses: dict[Node, list[Node]]) -> str:
    """Write the end of a line: what is freed after it."""
    if node.op == "output":
        return "\n"
    freed = last_uses.get(node, []) + ([] if node.users else [node])
    return f";  {' = '.join([*map(repr, freed), 'None'])}\n" if freed else "\n"


def _summary(node: Node) -> str:
    places = re.findall(r'File "([^"]+)", line (\d+), in (\S+)\n\s*(.*)', node.stack_trace or "")
    if not places:
        return "No stacktrace found for following nodes"
    file, line, function, code = places[-1]
    return f"File: {file}:{line} in {function}, code: {code}"


def _without_counters(body: list[str], first: int) -> tuple[list[str], dict[int, int | None]]:
    """Take the counters out of the text; tell which line is of which node."""
    lines: list[str] = []
    line_map: dict[int, int | None] = {}
    index: int | None = None
    for line in "".join(body).split("\n"):
        counter = re.match(r"# COUNTER: (\d+)", line)
        if counter:
            index = int(counter[1])
        else:
            line_map[len(lines) + first] = index
            lines.append(line)
    return lines, line_map


for _name in ("inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"):
    TAKEN.setdefault(_name, object())
