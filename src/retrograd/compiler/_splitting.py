"""Functions of which only parts can be compiled: Python runs the rest, statement by statement, between compiled regions.

Note [Regions of a function]
A function that prints, counts or reads numbers cannot be skipped as a whole (Note [Purity] in `_purity.py`). It is written again:
statements that follow each other become a function of the variables that they read, which returns those that are read later. Such a
region is compiled as any function is, with its own proof, guards, records and trials; where it is refused at one of its statements it
is split there in turn. All else stays as it was, in the user's file and lines, in a function with the user's globals and cells. So what
Python does, and when, is what it does in eager.
- What stands in the way says where it stands: that statement is run by Python (*plain*), or, if it has a body, Python runs its head
  and the body is split (*open*).
- A variable goes into a region only if it is sure to have a value, and comes out only if it is sure to have got one (`_flow.py`).
  Inside `try` a region ends where it binds what is read later: behind an error that has a value, too.
- Tensors, numbers and containers of them are arguments of a region. Other objects (modules, optimizers) are its cells, so that they
  are guarded as what a function reads from outside. A number that changes from call to call, or an object, would need a record for
  each: statements that mention it are plain.
- Variables that functions inside share are bound by Python alone. It also reads those that functions inside bind, and makes the
  functions that read one which may be bound again: a region has a copy of the variable.
- What a plain statement calls is compiled, too, if it is a module or a function of a file's top level.
"""

from __future__ import annotations

import ast
import copy
import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from ..nn.modules import module as module_file
from ..nn.modules._error_places import tell_place
from ..nn.modules.module import Module
from ..tensor._recording.flat import EXACT
from ._flow import (
    DECLARING,
    Flow,
    Liveness,
    Names,
    blocks_of,
    bound_again,
    has_return,
    is_transparent,
    leaves_a_loop,
    nonlocals,
    own_statements,
)
from ._lookups import is_own_function
from ._module import global_hooks
from ._syntax import Syntax, Unreadable, declare, syntax_of
from ._trees import CONSTANTS

PREFIX = "_retrograd_"  # of names that the user's function does not have
THROUGH = f"{PREFIX}through"
FROM_CELL = f"{PREFIX}cell_"  # begins the name of a cell whose variable the region binds again
# What looks at frames: functions, attributes of modules, arguments of functions.
FRAMES = frozenset({"locals", "vars", "exec", "eval", "dir", "breakpoint", "inspect"})
FRAMES_OF = frozenset({"_getframe", "currentframe", "extract_stack", "settrace", "setprofile", "stacklevel"})
READING = frozenset({"item", "tolist", "numpy"})  # what certainly reads numbers
ARGUMENTS = frozenset({*EXACT, *CONSTANTS, tuple, list, dict})
PLAIN = (
    ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Global, ast.Nonlocal, ast.Delete, ast.Raise, ast.Break, ast.Continue,
)  # fmt: skip
WORK = (ast.Call, ast.BinOp, ast.AugAssign, ast.Subscript, ast.UnaryOp)
MOST_CALLEES = 64


class Options(NamedTuple):
    """What `torch.compile` was given: whether kernels serve all sizes, a backend of the program's own, how many records there may be."""

    dynamic: bool | None = None
    backend: Callable[..., Any] | None = None
    limit: int | None = None


DEFAULT = Options()


class Obstacle:
    """Where in a function something stands in the way of a record, or which of its variables do.

    `ends` are variables behind whose statements a region must end: others are computed of them, and their graph must be seen.
    """

    def __init__(
        self,
        line: int = 0,
        column: int | None = None,
        names: frozenset[str] = frozenset(),
        ends: frozenset[str] = frozenset(),
    ) -> None:
        self.line, self.column, self.names, self.ends = line, column, names, ends

    def is_in(self, node: ast.stmt) -> bool:
        """Tell whether it lies in a statement."""
        if self.names:
            names = Names(node)
            return bool(self.names & (names.read | names.bound))
        last = node.end_lineno or node.lineno
        if not node.lineno <= self.line <= last:
            return False
        if self.column is None:
            return True
        first, end = (node.lineno, node.col_offset), (last, node.end_col_offset or 0)
        return first <= (self.line, self.column) <= end


def obstacle_of(error: BaseException, function: Any) -> Obstacle | None:
    """Return where in a function a recording has ended."""
    code = getattr(function_of(function), "__code__", None)
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code is code:
            line = trace.tb_lineno
        trace = trace.tb_next
    return None if line is None else Obstacle(line)


def function_of(callee: Any) -> Any:
    """Return the function of Python that a call runs: of a method, and of a module."""
    if isinstance(callee, Module):
        callee = None if "forward" in vars(callee) else type(callee).forward
    return callee.__func__ if isinstance(callee, MethodType) else callee


def split(callee: Any, obstacle: Obstacle | None, options: Options) -> Callable[..., Any] | None:
    """Return a function that does what another does, with parts of it compiled; None if it cannot be split."""
    function = function_of(callee)
    if not isinstance(function, FunctionType) or type(function.__globals__) is not dict:
        return None
    flags = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    if function.__code__.co_flags & flags:
        return None
    try:
        syntax = syntax_of(function)
    except Unreadable:
        return None
    if not isinstance(syntax.node, ast.FunctionDef) or not _can_be_written_again(syntax.node, function):
        return None
    made = Split(function, syntax, obstacle, options)
    if obstacle is not None and obstacle.ends and len(made.regions) < 2:  # one statement computes both
        made = Split(function, syntax, Obstacle(names=obstacle.ends), options)
    if not made.divides or not (made.regions or made.calls):
        return None
    return made.for_callee(callee)


def _can_be_written_again(node: ast.FunctionDef, function: FunctionType) -> bool:
    """Tell whether nothing in a function looks at its own frame, or binds names where they are hard to follow."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id in FRAMES:
            return False
        if (isinstance(one, ast.Attribute) and one.attr in FRAMES_OF) or (
            isinstance(one, ast.keyword) and one.arg in FRAMES_OF
        ):
            return False
        if isinstance(one, (ast.Await, ast.Yield, ast.YieldFrom, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef)):
            return False
    code = function.__code__
    return not any(name.startswith("__") for name in (*code.co_varnames, *code.co_cellvars)) and not getattr(
        node, "type_params", None
    )


class Split:
    """A function that is written again. See Note [Regions of a function]."""

    def __init__(self, function: FunctionType, syntax: Syntax, obstacle: Obstacle | None, options: Options) -> None:
        node = syntax.node
        assert isinstance(node, ast.FunctionDef)
        self.function, self.node, self.owner, self.obstacle = function, node, syntax.owner, obstacle
        self.options = options
        self.regions: list[Region] = []
        self.calls = 0  # of what may be compiled for itself, in plain statements
        self.divides = obstacle is None or not obstacle.line  # whether what stands in the way was found
        self.ends = frozenset() if obstacle is None else obstacle.ends
        names = Names(*node.body)
        declared = {name for one in own_statements(node.body) if isinstance(one, DECLARING) for name in one.names}
        given = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        self.local = (names.bound | names.deleted | given) - declared
        self.alone = names.captured | declared  # variables that only Python may bind
        self.written = nonlocals(node)  # those that functions inside bind
        self.moving = self.written | bound_again(
            node.body, given
        )  # those that may change behind a function that reads them
        self.flow = Flow(self.local)
        self.flow.block(node.body, frozenset(given))
        self.later = Liveness(node.body)
        self.callees: dict[int, tuple[Any, Any]] = {}
        self.cells: dict[str, CellType] = dict(
            zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        )
        self.cells[THROUGH] = CellType(self.through)
        body = self.block(node.body, guarded=False)
        arguments = _bare_arguments(node.args)
        self.run = self.build(arguments, body, node.lineno, function.__defaults__, function.__kwdefaults__)

    def for_callee(self, callee: Any) -> Callable[..., Any]:
        """Return what runs a call of the function, of a method, or of a module without hooks."""
        if isinstance(callee, Module):
            return _of_module(self, callee)
        run = MethodType(self.run, callee.__self__) if isinstance(callee, MethodType) else self.run
        return _Running(self, run)

    # ---- code ----
    def build(
        self, arguments: ast.arguments, body: Sequence[ast.stmt], line: int, defaults: Any = None, named: Any = None
    ) -> FunctionType:
        """Compile a function that stands where the user's stands, with the user's globals and cells."""
        original = self.function.__code__
        inner = _function_node(self.node, arguments, body or [ast.Pass()], line)
        around: ast.stmt = inner
        if self.owner:  # whose name private attributes begin with
            around = ast.ClassDef(name=self.owner, bases=[], keywords=[], body=[inner], decorator_list=[])
        outer = ast.FunctionDef(name="outer", args=_arguments(self.cells), body=[around], decorator_list=[])
        for one in (around, outer):
            if one is not inner:
                ast.copy_location(one, inner)
                one.type_params = []  # type: ignore[attr-defined]
        tree = ast.fix_missing_locations(ast.Module([outer], []))
        flags = original.co_flags & _FUTURE
        code = compile(tree, original.co_filename, "exec", flags, dont_inherit=True)
        for _ in range(3 if self.owner else 2):
            code = next(one for one in code.co_consts if isinstance(one, CodeType))
        code = code.replace(co_qualname=original.co_qualname)
        _declare_inside(code, inner, self.owner)
        closure = tuple(self.cells[name] for name in code.co_freevars)
        made = FunctionType(code, self.function.__globals__, self.function.__name__, defaults, closure)
        made.__kwdefaults__, made.__module__ = named, self.function.__module__
        made.__qualname__ = self.function.__qualname__
        return made

    # ---- statements ----
    def block(self, statements: Sequence[ast.stmt], guarded: bool) -> list[ast.stmt]:
        """Write statements again: runs of those that may be compiled as calls of regions."""
        done: list[ast.stmt] = []
        run: list[ast.stmt] = []

        def finish() -> None:
            done.extend(self.region(run))
            run.clear()

        for node in statements:
            how = self.treatment(node)
            if how == "joined":
                run.append(node)
                bound = Names(node).bound
                if isinstance(node, ast.Return) or (guarded and bound & self.later.after[node]) or bound & self.ends:
                    finish()
                continue
            if how == "plain" and (lifted := _lifted(node, self._is_there)) is not None:
                before, rest = lifted
                self.flow.before[before] = self.flow.before[node]
                names, later = Names(rest), self.later
                later.after[before] = (later.after[node] - names.bound) | names.read | later.caught[node]
                run.append(before)
                node = rest
            finish()
            done.append(self.opened(node, guarded) if how == "open" else self.calling(node))
        finish()
        return done

    def treatment(self, node: Any) -> str:
        """Say whether a statement is joined to a region, opened, or left to Python."""
        inside = blocks_of(node)
        otherwise = "open" if inside else "plain"
        if isinstance(node, PLAIN) or any(isinstance(one, ast.NamedExpr) and inside for one in ast.walk(node)):
            return otherwise
        if self.obstacle is not None and self.obstacle.is_in(node):
            self.divides = True
            return otherwise
        names = Names(node)
        if names.bound & self.alone or names.captured & self.moving or names.read & self.written:
            return otherwise
        if names.deleted or "super" in names.read or self._is_unsure(node):
            return otherwise
        loops = isinstance(node, (ast.For, ast.While))
        if any(has_return(one) for one in inside) or any(map(leaves_a_loop, [node.orelse] if loops else inside)):
            return otherwise
        hands_out = isinstance(node, ast.Return) and not _has_work(node)
        return otherwise if hands_out or _reads_numbers(node) else "joined"

    def _is_unsure(self, node: ast.stmt) -> bool:
        """Tell whether a statement reads a variable that may have no value, or binds one without being sure to."""
        flow = Flow(self.local)
        after = flow.statement(node, self.flow.before[node])
        bound = Names(node).bound & self.later.after[node] & self.local
        return bool(flow.exposed) or (after is not None and not bound <= after)

    def _is_there(self, node: ast.stmt, name: str) -> bool:
        """Tell whether reading a variable in a statement cannot raise."""
        if name in self.local:
            return name in self.flow.before[node]
        return name in self.function.__globals__ or name in _BUILTINS or name in self.cells

    def opened(self, node: Any, guarded: bool) -> ast.stmt:
        """Write a statement again whose head Python runs."""
        made = copy.copy(node)
        if isinstance(node, ast.Try) or (isinstance(node, ast.With) and not is_transparent(node)):
            guarded = True
        for name in ("body", "orelse", "finalbody"):
            if getattr(node, name, None):
                setattr(made, name, self.block(getattr(node, name), guarded))
        for name in ("handlers", "cases"):
            if getattr(node, name, None):
                parts = [copy.copy(one) for one in getattr(node, name)]
                for part in parts:
                    part.body = self.block(part.body, guarded)
                setattr(made, name, parts)
        for name in ("test", "iter"):
            if hasattr(node, name):
                setattr(made, name, self.calling(getattr(node, name)))
        if isinstance(node, ast.With):
            made.items = [copy.copy(one) for one in node.items]
        return made  # type: ignore[no-any-return]

    def calling(self, node: Any) -> Any:
        """Write a plain statement, or an expression, so that what it calls may run compiled."""
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal)):
            return node
        rewriting = _Calling()
        made = rewriting.visit(copy.deepcopy(node))
        self.calls += rewriting.count
        return made

    # ---- regions ----
    def region(self, run: list[ast.stmt]) -> list[ast.stmt]:
        """Make a region of statements; write a call of it, which binds what is read later."""
        body = list(run)
        if not any(map(_has_work, body)):
            return body
        first, last = body[0], body[-1]
        known = self.flow.before[first]
        flow = Flow(self.local)
        sure = flow.block(body, frozenset()) or frozenset()
        inputs = set(flow.exposed)
        names = Names(*body)
        outputs = names.bound & self.local & self.later.after[last]
        inputs |= outputs - sure  # handed through where it is not bound
        if not inputs <= known:
            return [self.calling(one) for one in body]
        outputs |= {name for name in names.bound if name.startswith(PREFIX)}
        after: list[ast.stmt] = []
        if isinstance(last, ast.Return):
            result = f"{PREFIX}result"
            value = last.value if last.value is not None else ast.Constant(None)
            body[-1] = _at(last, ast.Assign([ast.Name(result, ast.Store())], value))
            after = [_at(last, ast.Return(ast.Name(result, ast.Load())))]
            outputs.add(result)
        region = Region(self, body, sorted(inputs), sorted(outputs))
        self.regions.append(region)
        name = f"{PREFIX}region_{len(self.regions)}"
        self.cells[name] = CellType(region)
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(one, ast.Load()) for one in region.inputs], [])
        if not region.outputs:
            return [_at(first, ast.Expr(call)), *after]
        targets = ast.Tuple([ast.Name(one, ast.Store()) for one in region.outputs], ast.Store())
        return [_at(first, ast.Assign([targets], call)), *after]

    def through(self, callee: Any) -> Any:
        """Return what a plain statement calls, compiled if it is a module or a function of a file's top level."""
        known = self.callees.get(id(callee))
        if known is not None and known[0] is callee:
            return known[1]
        if not _is_worth_compiling(callee):
            return callee
        from ._compiled import compiled

        if len(self.callees) >= MOST_CALLEES:
            self.callees.clear()
        made = compiled(callee, options=self.options)
        self.callees[id(callee)] = callee, made
        return made


class _Running:
    """Runs a function that is written again."""

    def __init__(self, made: Split, run: Callable[..., Any]) -> None:
        self.split, self.run = made, run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function, run = self.split.function, self.split.run
        if run.__defaults__ is not function.__defaults__ or run.__kwdefaults__ is not function.__kwdefaults__:
            run.__defaults__, run.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        return self.run(*args, **kwargs)


class _of_module(_Running):  # noqa: N801 - a kind of the class above
    """Runs the `forward` of a module as a call of the module does."""

    def __init__(self, made: Split, module: Module) -> None:
        super().__init__(made, MethodType(made.run, module))
        self.module = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module, own = self.module, vars(self.module)
        hooked = any(own.get(f"_{kind}_hooks", True) for kind in _HOOKS)
        changed = "forward" in own or type(module).forward is not self.split.function
        if hooked or changed or any(global_hooks(vars(module_file))):
            return module(*args, **kwargs)
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            tell_place(error, module, (*args, *kwargs.values()))
            raise


_HOOKS = ("forward", "forward_pre", "backward", "backward_pre")


class Region:
    """Statements that may be compiled: a function of variables, which returns variables."""

    def __init__(self, made: Split, body: list[ast.stmt], inputs: list[str], outputs: list[str]) -> None:
        self.split, self.body, self.inputs, self.outputs = made, body, inputs, outputs
        self.own = threading.local()  # variants: threads do not share cells
        self.every: list[Any] = []  # the compiled functions of all variants, to be looked at

    def __call__(self, *values: Any) -> Any:
        kinds = tuple(map(type, values))
        variants: dict[Any, Any] = self.own.__dict__
        variant = variants.get(kinds)
        if variant is None:
            variant = variants[kinds] = _Variant(self, [kind in ARGUMENTS for kind in kinds])
        return variant(values)

    def function(self, given: Sequence[bool]) -> tuple[FunctionType, list[CellType]]:
        """Make the function for which some inputs are arguments, and the others cells."""
        made = self.split
        kept = [name for name, is_given in zip(self.inputs, given, strict=True) if not is_given]
        names = [name for name in self.inputs if name not in kept]
        bound = Names(*self.body).bound
        result = ast.Tuple([ast.Name(name, ast.Load()) for name in self.outputs], ast.Load())
        body = [*self.body, _at(self.body[-1], ast.Return(result))]
        cells = {f"{FROM_CELL}{name}" if name in bound else name: CellType() for name in kept}
        for cell, name in zip(cells, kept, strict=True):
            if cell != name:  # a variable that is bound again is one of the function's own
                start = ast.Assign([ast.Name(name, ast.Store())], ast.Name(cell, ast.Load()))
                body.insert(0, _at(self.body[0], start))
        around, made.cells = made.cells, made.cells | cells
        try:
            arguments = _arguments(names)
            function = made.build(arguments, body, self.body[0].lineno)
        finally:
            made.cells = around
        node = _function_node(made.node, arguments, body, self.body[0].lineno)
        declare(function.__code__, Syntax(ast.fix_missing_locations(node), made.owner))
        return function, list(cells.values())


class _Variant:
    """A region as it is compiled for inputs of some types."""

    def __init__(self, region: Region, given: Sequence[bool]) -> None:
        from ._compiled import CompiledRegion, compiled

        function, self.cells = region.function(given)
        self.arguments = [at for at, is_given in enumerate(given) if is_given]
        self.kept = [at for at, is_given in enumerate(given) if not is_given]
        names = [region.inputs[at] for at in self.arguments]
        self.compiled = CompiledRegion(function, names, region.outputs, region.split.options)
        self.function, self.run = function, compiled(function, inner=self.compiled)
        self.depth = 0  # of calls inside of calls
        region.every.append(self.compiled)

    def __call__(self, values: tuple[Any, ...]) -> Any:
        run = self.function if self.compiled.as_it_is else self.run
        if not self.kept:
            return run(*values)
        cells, depth = self.cells, self.depth
        before = [one.cell_contents for one in cells] if depth else ()
        for cell, at in zip(cells, self.kept, strict=True):
            cell.cell_contents = values[at]
        self.depth = depth + 1
        try:
            return run(*[values[at] for at in self.arguments])
        finally:
            self.depth = depth
            for cell, value in zip(cells, before, strict=False):
                cell.cell_contents = value


# ---- pieces of syntax ----


def _reads_numbers(node: ast.AST) -> bool:
    """Tell by its looks alone that a statement prints or reads numbers, or that one inside does."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            if isinstance(one.func, ast.Attribute) and one.func.attr in READING and not one.args:
                return True
            if isinstance(one.func, ast.Name) and one.func.id in ("print", "input"):
                return True
    return False


def _lifted(node: Any, is_there: Callable[[Any, str], bool]) -> tuple[ast.stmt, ast.stmt] | None:
    """Take the work out of a plain statement that reads its result: `total += f(x).item()` is `t = f(x)` and `total += t.item()`.

    Only what the statement computes first is taken, so that the order stays.
    """
    value = getattr(node, "value", None)
    if not isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)) or value is None:
        return None
    if isinstance(node, ast.AugAssign) and not (isinstance(node.target, ast.Name) and is_there(node, node.target.id)):
        return None
    work = _first_work(value, partial(is_there, node))
    if not isinstance(work, ast.expr) or any(isinstance(one, (ast.NamedExpr, ast.Lambda)) for one in ast.walk(work)):
        return None
    name = f"{PREFIX}value_{work.lineno}_{work.col_offset}"
    before = _at(work, ast.Assign([ast.Name(name, ast.Store())], work))
    made = copy.copy(node)
    made.value = _Replacing(work, ast.copy_location(ast.Name(name, ast.Load()), work)).visit(_copied(value, work))
    return before, made


_BEFORE_ALL = object()  # something is computed first that cannot be taken out


def _first_work(node: ast.expr, is_there: Callable[[str], bool]) -> Any:
    """Return the work that an expression computes first and reads then; None if it computes nothing, and else a sign that it does."""
    if isinstance(node, ast.Constant):
        return None
    if isinstance(node, ast.Name):
        return None if is_there(node.id) else _BEFORE_ALL
    if isinstance(node, ast.Call):
        function = node.func
        prints = isinstance(function, ast.Name) and function.id == "print"
        if isinstance(function, ast.Attribute):
            inner = function.value
            if function.attr in READING and not node.args:
                return inner if _has_work(inner) else _BEFORE_ALL
            if not isinstance(inner, ast.Name) or not is_there(inner.id):
                return _BEFORE_ALL
        elif not isinstance(function, ast.Name) or not is_there(function.id):
            return _BEFORE_ALL
        for one in node.args:
            found = _first_work(one, is_there)
            if found is _BEFORE_ALL and prints and _has_work(one) and not _reads_numbers(one):
                return one
            if found is not None:
                return found
        return _BEFORE_ALL
    if isinstance(node, ast.FormattedValue):
        return _first_work(node.value, is_there)
    parts: list[ast.expr] = []
    if isinstance(node, (ast.JoinedStr, ast.BoolOp)):
        parts = node.values if isinstance(node, ast.JoinedStr) else node.values[:1]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, (ast.Tuple, ast.List)):
        parts = node.elts
    elif isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators[:1]]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    for one in parts:
        found = _first_work(one, is_there)
        if found is not None:
            return found
    return _BEFORE_ALL


def _has_work(node: ast.AST) -> bool:
    return any(isinstance(one, WORK) for one in ast.walk(node))


def _copied(node: Any, kept: ast.AST) -> Any:
    """Copy an expression, but for one inside."""
    return copy.deepcopy(node, {id(kept): kept})


class _Replacing(ast.NodeTransformer):
    """Puts one expression in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


class _Calling(ast.NodeTransformer):
    """Lets calls go through what may compile their callee."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        named = isinstance(node.func, ast.Name) and node.func.id not in _BUILTINS
        if named or (isinstance(node.func, ast.Attribute) and node.func.attr not in _METHODS):
            node.func = ast.copy_location(
                ast.Call(ast.copy_location(ast.Name(THROUGH, ast.Load()), node), [node.func], []), node
            )
            self.count += 1
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    visit_GeneratorExp = visit_ListComp = visit_SetComp = visit_DictComp = visit_Lambda  # type: ignore[assignment]


_BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)
_METHODS = frozenset(
    """append extend insert pop update get items keys values join format strip split item tolist numpy cpu detach to write
    flush close info debug warning error add_scalar set_postfix set_description backward step zero_grad train eval parameters
    state_dict perf_counter time size dim numel clone""".split()  # noqa: SIM905
)


def _is_worth_compiling(callee: Any) -> bool:
    if isinstance(callee, Module):
        return True
    if not isinstance(callee, FunctionType) or is_own_function(callee) or hasattr(callee, "_compiled"):
        return False
    return callee.__closure__ is None and callee.__globals__.get(callee.__name__) is callee


def _declare_inside(code: CodeType, node: ast.AST, owner: str) -> None:
    """Say what the trees of functions inside another are, which are compiled with it."""
    nodes: dict[tuple[int, str], list[ast.FunctionDef]] = {}
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef) and one is not node:
            nodes.setdefault((one.lineno, one.name), []).append(one)
    pending = [one for one in code.co_consts if isinstance(one, CodeType)]
    while pending:
        inside = pending.pop()
        found = nodes.get((inside.co_firstlineno, inside.co_name), ())
        if len(found) == 1 and not found[0].decorator_list:
            declare(inside, Syntax(found[0], owner))
        pending += [one for one in inside.co_consts if isinstance(one, CodeType)]


def _at(place: ast.AST, node: Any) -> Any:
    return ast.fix_missing_locations(ast.copy_location(node, place))


def _arguments(names: Iterable[str]) -> ast.arguments:
    given = [ast.arg(name) for name in names]
    return ast.arguments(posonlyargs=[], args=given, kwonlyargs=[], kw_defaults=[], defaults=[])


def _bare_arguments(node: ast.arguments) -> ast.arguments:
    """Return parameters without annotations and defaults, which are there already."""

    def bare(one: Any) -> Any:
        return None if one is None else ast.copy_location(ast.arg(one.arg), one)

    return ast.arguments(
        posonlyargs=[bare(one) for one in node.posonlyargs],
        args=[bare(one) for one in node.args],
        vararg=bare(node.vararg),
        kwonlyargs=[bare(one) for one in node.kwonlyargs],
        kw_defaults=[None] * len(node.kwonlyargs),
        kwarg=bare(node.kwarg),
        defaults=[],
    )


def _function_node(like: ast.FunctionDef, arguments: ast.arguments, body: Sequence[ast.stmt], line: int) -> Any:
    made = ast.FunctionDef(name=like.name, args=arguments, body=list(body), decorator_list=[], returns=None)
    ast.copy_location(made, like)
    made.lineno = line
    made.type_params = []  # type: ignore[attr-defined]
    return made


_FUTURE = 0
for _name in __import__("__future__").all_feature_names:
    _FUTURE |= getattr(__import__("__future__"), _name).compiler_flag
