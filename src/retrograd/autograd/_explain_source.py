"""Which lines of a program lead to a value: a look at the source, for `explain`.

Note [The way to a value]
What left the graph has no history, so the program itself is asked. Names in the expression given as `output` are wanted. Back from
there, a statement that may change a wanted name is on the way, and the names it reads are wanted before it; one that gives a name a
new value ends the want of it. Of branches all are looked at, of loops the body until nothing is added. If a parameter of the function is
wanted at its beginning, the call of the function is on the way in its caller; if a name of the module is, what stands there.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from .._core import primitive as core
from .._places import is_own, user_frame, written

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
WITHS = (ast.With, ast.AsyncWith)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
Position = tuple[int, int, int, int]  # line and column of the beginning and of the end
CALLERS = 8  # how far up the calls are followed
MODE = "whether gradients are on"  # a name that every statement reads
COMPARISONS: dict[type, str] = {ast.Gt: "gt", ast.GtE: "ge", ast.Lt: "lt", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne"}
LIBRARIES = frozenset({"retrograd", "torch", "numpy", "math"})


class Way:
    """The statements on the way to a value, in the function that asks, in its callers, and in its module."""

    def __init__(self, frame: FrameType) -> None:
        self.steps: list[_Step] = []
        self._sources: dict[str, _Source | None] = {}
        above: FrameType | None = frame
        while above is not None and len(self.steps) < CALLERS:
            source = self._source(above.f_code.co_filename)
            step = None if source is None else _Step.of_call(source, above, whole=bool(self.steps))
            if step is None:
                break
            self.steps.append(step)
            if not step.needs_caller:
                break
            above = None if above.f_back is None else user_frame(above.f_back)
        for step in self.steps[:]:
            if isinstance(step.scope, FUNCTIONS) and not any(one.scope is step.source.tree for one in self.steps):
                self.steps.append(_Step.of_module(step))

    def _source(self, file: str) -> _Source | None:
        if file not in self._sources:
            self._sources[file] = _Source.read(file)
        return self._sources[file]

    def leads_through(self, code: CodeType, offset: int) -> bool | None:
        """Tell whether a call is on the way; None if it stands in a function of which that is not known."""
        position, source = _position(code, offset), self._source(code.co_filename)
        if not self.steps:
            return None
        if position is None or source is None:
            return False if self._parts(None)[1] else None
        scope = source.scope(position)
        for step in self.steps:
            if step.scope is scope:
                return step.contains(position)
        if not isinstance(scope, FUNCTIONS):
            return self._in_cell(source, position)
        reached, all_known, parts = self._parts(source)
        # A function of another file may be the one that is called by its name; `__init__` is too common a name for that.
        if any(part is scope for part, _ in parts) or (scope.name in reached and not scope.name.startswith("__")):
            return True
        return False if all_known else None

    def _in_cell(self, source: _Source, position: Position) -> bool | None:
        """Tell it of a cell of a notebook, which shares its names with the others; the names of a module are its own."""
        if any(os.path.exists(one.file) for one in (source, self.steps[0].source)):
            return False
        wanted = set().union(*(step.wanted for step in self.steps))
        if self._cell(source, wanted).contains(position):
            return True
        # The order in which cells ran is not known: what is wanted before any of them may be wanted after any other.
        cells = [one for file in list(linecache.cache) if self._is_cell(file) and (one := self._source(file))]
        while not (before := set().union(*(self._cell(one, wanted).wanted for one in cells))) <= wanted:
            wanted |= before
        return None if self._cell(source, wanted).contains(position) else False

    def _cell(self, source: _Source, wanted: set[str]) -> _Step:
        """Look at a cell at whose end names are wanted."""
        return _Step(source, source.tree, self.steps[0].frame, None, wanted)

    def _is_cell(self, file: str) -> bool:
        return not is_own(file) and not os.path.exists(file)

    def places_of(self, operation: str) -> list[str] | None:
        """Return the places on the way where an operation is called; None if it may be elsewhere, in functions not known."""
        _, all_known, parts = self._parts(None)
        found = []
        for part, source in parts:
            for node in ast.walk(part):
                if _is_call_of(operation, node):
                    extent = _extent(node)
                    name = getattr(source.scope(extent), "name", "<module>")
                    found.append(written(source.file, extent[0], name))
        return list(dict.fromkeys(found)) or ([] if all_known and self.steps else None)

    def never_reads(self, edge: Any) -> bool:
        """Tell whether the tensor with an edge is surely not read on the way: nothing that is may be it, or hold it."""
        _, all_known, parts = self._parts(None)
        if not all_known or not self.steps or any(self._is_cell(step.source.file) for step in self.steps):
            return False  # what a cell reads may have got its value in another
        names = {name for part, _ in parts for name in _names(part)}
        values = [step._value(name) for step in self.steps for name in names]
        return not any(_may_hold(value, edge) for value in values)

    def _parts(self, besides: _Source | None) -> tuple[set[str], bool, list[tuple[Any, _Source]]]:
        """Return the names of functions that may be called on the way, or by those that are; whether these are all; and the
        statements and functions themselves, with their sources. `besides` is a source in which functions may stand, too.
        """
        bodies: dict[str, list[tuple[Any, _Source]]] = {}
        sources = {id(step.source): step.source for step in self.steps}
        if besides is not None and any(besides.file in step.files for step in self.steps):
            sources[id(besides)] = besides
        for one in sources.values():
            for node in one.definitions:
                bodies.setdefault(node.name, []).append((node, one))
        reached: set[str] = set()
        all_known = True
        found: list[tuple[Any, _Source]] = []
        for step in self.steps:
            parts = [(part, step.source) for part in step.parts.values()] + self._forwards(step)
            for part, _ in parts:  # which grow
                for node in ast.walk(part):
                    if isinstance(node, ast.Call) and not step.knows(node.func, bodies):
                        all_known = False
                    name = (
                        node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
                    )
                    if name in bodies and name not in reached:
                        reached.add(name)
                        parts += bodies[name]
            found += parts
        return reached, all_known, found

    def _forwards(self, step: _Step) -> list[tuple[Any, _Source]]:
        """Return the forwards of modules that are read in a step."""
        found = []
        for file, first in step.forwards:
            if (source := self._source(file)) is not None:
                found += [(node, source) for node in source.definitions if _first_line(node) == first]
        return found


def _outputs(call: ast.Call) -> list[ast.expr]:
    """Return what a call of `explain`, `grad` or `backward` asks for gradients of."""
    method = call.func
    if isinstance(method, ast.Attribute) and method.attr == "backward":
        of = method.value
        if (of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")) != "autograd":
            return [of]
    return [key.value for key in call.keywords if key.arg in ("output", "outputs", "tensors")] or call.args[:1]


class _Step:
    """One function on the way, or a module: its statements that may change what is wanted."""

    def __init__(self, source: _Source, scope: Any, frame: FrameType, at: Position | None, wanted: set[str]) -> None:
        self.source, self.scope, self.frame = source, scope, frame
        self.parts: dict[int, Any] = {}  # expressions and statements on the way, by id
        self.blocks: set[Position] = set()  # `with` statements around something on the way
        self._at = at  # where names are wanted, and which; None: at the end
        self._wanted_there = wanted
        self.wanted = self._before(scope.body, set() if at else wanted)

    @classmethod
    def of_call(cls, source: _Source, frame: FrameType, whole: bool) -> _Step | None:
        """Look at the call that a frame is in: of `explain`, `grad` or `backward` (what matters is the output that they are
        given, or whose method is called), or of a function on the way (`whole`).
        """
        position = _position(frame.f_code, frame.f_lasti)
        call = None if position is None else source.call(position)
        if position is None or call is None:
            return None
        seeds: list[Any] = [call] if whole else _outputs(call)
        wanted = {MODE, *(name for seed in seeds for name in _names(seed))}
        step = cls(source, source.scope(position), frame, position, wanted)
        step.parts |= {id(seed): seed for seed in seeds}
        return step

    @classmethod
    def of_module(cls, step: _Step) -> _Step:
        """Look at the module of a function for the names that the function wants of it."""
        running: FrameType | None = step.frame
        while running is not None and (
            running.f_code.co_name != "<module>" or running.f_globals is not step.frame.f_globals
        ):
            running = running.f_back
        at = None if running is None else _position(running.f_code, running.f_lasti)
        return cls(step.source, step.source.tree, step.frame, at, step.wanted)

    @property
    def needs_caller(self) -> bool:
        """Whether a parameter of the function is wanted."""
        if not isinstance(self.scope, FUNCTIONS):
            return False
        given = self.scope.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        return any(one is not None and one.arg in self.wanted for one in every)

    def contains(self, position: Position) -> bool:
        return position in self.blocks or any(_inside(position, part) for part in self.parts.values())

    @cached_property
    def forwards(self) -> set[tuple[str, int]]:
        """The beginnings of the forwards of the user's modules that are read on the way."""
        found = set()
        for name in {name for part in self.parts.values() for name in _names(part)}:
            value = self._value(name)
            if hasattr(type(value), "forward"):
                for module in value.modules() if hasattr(type(value), "modules") else (value,):
                    code = getattr(type(module).forward, "__code__", None)
                    if code is not None and not is_own(code.co_filename):
                        found.add((code.co_filename, code.co_firstlineno))
        return found

    @cached_property
    def files(self) -> set[Any]:
        """The files in which what is named on the way is defined."""
        found = set()
        for name in {name for part in self.parts.values() for name in _names(part)}:
            value = self._value(name)
            module = value if isinstance(value, ModuleType) else sys.modules.get(getattr(value, "__module__", ""))
            found |= {getattr(getattr(value, "__code__", None), "co_filename", None), getattr(module, "__file__", None)}
        return found

    def knows(self, function: Any, bodies: dict[str, Any]) -> bool:
        """Tell whether what is called is a function at hand, or one of a library, which calls none of the user's own."""
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
        root = _root(function)
        if name in bodies or root is None or hasattr(builtins, root):
            return True
        value = self._value(root)
        if hasattr(type(value), "forward"):
            return True  # see `forwards`
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
        return home.partition(".")[0] in LIBRARIES

    def _value(self, name: str) -> Any:
        root, _, attribute = name.partition(".")
        value = self.frame.f_locals.get(root, self.frame.f_globals.get(root))
        if attribute:  # of self; a module's own modules are found without running its code
            own = getattr(value, "__dict__", {})
            return own.get(attribute, own.get("_modules", {}).get(attribute))
        return value

    # ---- what is wanted before statements, from what is wanted after them ----
    def _before(self, body: Iterable[ast.stmt], wanted: set[str]) -> set[str]:
        for statement in reversed(list(body)):
            wanted = self._before_one(statement, wanted)
        return wanted

    def _before_one(self, statement: Any, wanted: set[str]) -> set[str]:
        if isinstance(statement, LOOPS):
            before = wanted
            while not (grown := self._before_parts(statement, before)) <= before:
                before = before | grown
            return before
        if isinstance(statement, (ast.If, ast.Match, ast.Try)):
            return self._before_parts(statement, wanted)
        if isinstance(statement, WITHS):
            known = len(self.parts)
            wanted = self._before(statement.body, wanted)
            if len(self.parts) > known:
                self.blocks.add(_extent(statement))
                self.parts |= {id(item.context_expr): item.context_expr for item in statement.items}
            return self._before_simple(statement, wanted)
        return self._before_simple(statement, wanted)

    def _before_parts(self, statement: Any, wanted: set[str]) -> set[str]:
        """Do it for a statement with blocks in it, none of which need be run."""
        found = set(wanted)
        blocks = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
        blocks += [one.body for field in ("handlers", "cases") for one in getattr(statement, field, [])]
        for block in blocks:
            found |= self._before(block, wanted)
        return self._before_simple(statement, found)

    def _before_simple(self, statement: Any, wanted: set[str]) -> set[str]:
        read = _read(statement)
        if self._at is not None and any(_inside(self._at, part) for part in read):
            wanted = wanted | self._wanted_there
        changed, replaced = _changed(statement, read)
        if isinstance(statement, ast.Expr):
            changed = {name for name in changed if not self._is_unwritten(name)}
        if not (changed | replaced) & wanted:
            return wanted
        self.parts |= {id(part): part for part in read}
        names = {name for part in read for name in _names(part) if not self._is_module(name)}
        return (wanted - replaced) | names | ({MODE} - replaced)

    def _is_unwritten(self, name: str) -> bool:
        """Tell whether a name stands for one tensor all the time, into which nothing was ever written."""
        value = self._value(name)
        if not isinstance(value, core.tensor_type) or self._assignments[name] > 1:
            return False
        return value._storage is None or not value._storage.version

    @cached_property
    def _assignments(self) -> Counter[str]:
        """How often names are assigned to."""
        stores = [node for node in ast.walk(self.scope) if isinstance(getattr(node, "ctx", None), ast.Store)]
        return Counter(name for node in stores if (name := _root(node)) is not None)

    def _is_module(self, name: str) -> bool:
        return isinstance(self._value(name), ModuleType)


def _may_hold(value: Any, edge: Any) -> bool:
    if isinstance(value, core.tensor_type):
        return value is edge or value._edge is edge
    simple = (int, float, complex, str, type(None), type, ModuleType, FunctionType, BuiltinFunctionType)
    return not isinstance(value, simple)


class _Source:
    """A file that could be read."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file = file
        self.tree = tree
        self.definitions: list[Any] = []  # outer ones come before inner ones
        self.calls: dict[tuple[int, ...], ast.Call] = {}  # by where they end
        for node in ast.walk(tree):
            if isinstance(node, DEFINITIONS):
                self.definitions.append(node)
            elif isinstance(node, ast.Call):
                self.calls.setdefault(_extent(node)[2:], node)

    @classmethod
    def read(cls, file: str) -> _Source | None:
        text = "".join(linecache.getlines(file))
        try:
            return cls(file, ast.parse(text)) if text else None
        except (SyntaxError, ValueError):
            return None

    def scope(self, position: Position) -> Any:
        """Return the innermost function around a position, or the module; what stands in a lambda belongs to those."""
        found: Any = self.tree
        for node in self.definitions:
            if isinstance(node, FUNCTIONS) and _inside(position, node):
                found = node
        return found

    def call(self, position: Position) -> ast.Call | None:
        """Return the call that ends where a position ends; how an instruction of a call begins differs between Pythons."""
        return self.calls.get(position[2:])


# ---- places in the source ----
def _position(code: CodeType, offset: int) -> Position | None:
    for at, (line, end_line, column, end_column) in enumerate(code.co_positions()):
        if at == offset // 2:
            if line is None or end_line is None or column is None or end_column is None:
                return None
            return line, column, end_line, end_column
    return None


def _extent(node: Any) -> Position:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _first_line(definition: Any) -> int:
    return int(min([definition.lineno, *(one.lineno for one in definition.decorator_list)]))


def _inside(position: Position, node: Any) -> bool:
    extent = _extent(node)
    return extent[:2] <= position[:2] and position[2:] <= extent[2:]


# ---- what statements read and change ----
def _read(statement: Any) -> list[Any]:
    """Return the parts of a statement that are on the way if it is: of one with blocks, what stands at its head."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return [statement.iter]
    if isinstance(statement, WITHS):
        return [item.context_expr for item in statement.items]
    if isinstance(statement, (ast.If, ast.While)):
        return [statement.test]
    if isinstance(statement, ast.Match):
        return [statement.subject]
    return [] if isinstance(statement, (ast.Try, ast.ClassDef)) else [statement]


def _changed(statement: Any, read: list[Any]) -> tuple[set[str], set[str]]:
    """Return the names whose value a statement may change, and those it gives a new one."""
    changed: set[str] = set()
    targets: list[Any] = []
    if isinstance(statement, DEFINITIONS):
        return changed, {statement.name}
    if _switches_gradients(statement):
        return changed, {MODE}
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    elif isinstance(statement, (ast.AugAssign, ast.For, ast.AsyncFor)):
        changed |= {name for name, _ in _written(statement.target)}
    elif isinstance(statement, WITHS):
        changed |= {name for item in statement.items for name, _ in _written(item.optional_vars)}
    written = [one for target in targets for one in _written(target)]
    for part in read:
        for node in ast.walk(part):
            if isinstance(node, ast.NamedExpr):
                changed.add(node.target.id)
            elif isinstance(node, ast.Call):
                changed |= _changed_by_call(node, alone=isinstance(statement, ast.Expr) and node is statement.value)
    return changed | {name for name, anew in written if not anew}, {name for name, anew in written if anew}


def _written(target: Any) -> Iterator[tuple[str, bool]]:
    """Return the names that an assignment writes, and whether they get a new value or a part of theirs is changed."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for one in target.elts:
            yield from _written(one)
    elif target is not None and (
        name := _root(inner := getattr(target, "value", target) if isinstance(target, ast.Starred) else target)
    ):
        yield name, isinstance(inner, ast.Name) or _is_own_attribute(inner)


def _changed_by_call(call: ast.Call, alone: bool) -> set[str]:
    """Return what a call may change: the object of an in-place method, `out=`; if it is all of a statement, its arguments."""
    found: set[str | None] = {_root(key.value) for key in call.keywords if key.arg == "out"}
    if isinstance(call.func, ast.Attribute):
        method = call.func.attr
        if alone or (method.endswith("_") and not method.endswith("__")):
            found.add(_root(call.func.value))
    if alone and not (isinstance(call.func, ast.Name) and call.func.id == "print"):
        found |= {_root(one) for one in call.args if isinstance(one, ast.Name)}
    return {name for name in found if name is not None}


def _is_call_of(operation: str, node: Any) -> bool:
    """Tell whether a call, or a comparison, is one of an operation."""
    if isinstance(node, ast.Compare):
        return any(COMPARISONS.get(type(one)) == operation for one in node.ops)
    called = getattr(node, "func", None) if isinstance(node, ast.Call) else None
    return operation in (getattr(called, "attr", None), getattr(called, "id", None))


def _switches_gradients(statement: Any) -> bool:
    """Tell whether a statement is a call of set_grad_enabled, on which all that follows depends."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and "set_grad_enabled" in (
        getattr(call.func, "attr", ""),
        getattr(call.func, "id", ""),
    )


def _is_own_attribute(node: Any) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _root(node: Any) -> str | None:
    """Return the name at the root of an expression such as `a[0].b`; `self.b` for an attribute of self."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if _is_own_attribute(node):
            return f"{node.value.id}.{node.attr}"  # type: ignore[union-attr]
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _names(part: Any) -> Iterator[str]:
    """Return the names that are read."""
    for node in ast.walk(part):
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if _is_own_attribute(node):
            yield f"{node.value.id}.{node.attr}"  # type: ignore[attr-defined]
        elif isinstance(node, ast.Name) and node.id not in ("self", "cls"):
            yield node.id
