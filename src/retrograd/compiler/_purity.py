"""The proof that a function's Python can be skipped: that nobody could notice, as long as the guards hold.

Note [Purity]
The user's code is read, not run: its syntax (Note [Source that is certain] in `_syntax.py`) is interpreted over what may be known of values
(`_values.py`), along every path that the guards leave open, until nothing new is found.
1. What the code reads from outside (globals, cells, defaults, attributes, items) gets a guard (`_lookups.py`).
2. What it calls is the library's, known to be without effects, or a user's function that is followed (`_calls.py`). What the library does
   beside returning something is an `Effect`, which the recorder sees and plays again.
3. What it writes are its own variables and objects that it made itself. Everything else is refused.
4. Where it raises, the path ends: a call that raises is never recorded, and is run again by Python.
5. What is not known to be pure is refused, with the line.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import sys
from collections import OrderedDict
from collections.abc import Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple, cast

from ..amp.grad_scaler import GradScaler
from ..nn.modules.module import Module
from ..optim.lr_scheduler import LRScheduler
from ..optim.optimizer import Optimizer
from ..tensor._recording.flat import EXACT
from ..tensor._tensor import Tensor
from . import _allowed as allowed
from ._calls import BUILTIN_CONTAINERS, Calls, Effect, describe
from ._guards import ARGS, FUNCTION, KWARGS, MISSING, Guard, Source, constant, is_immutable, mro_of
from ._lookups import IMMUTABLE_TYPE, Refused, flags, is_library_attribute, is_library_class, is_own_function, vars_of
from ._module import OptimizedModule
from ._numbers import Free
from ._syntax import FunctionNode, Unreadable, syntax_of
from ._values import (
    BOTH,
    LIB,
    NONE,
    NOTHING,
    Applied,
    Args,
    Bound,
    Const,
    Known,
    Lib,
    Local,
    Made,
    Many,
    Method,
    Of,
    Super,
    Tup,
    Value,
    const,
    join,
    one_of,
    widened,
)

MOST_ROUNDS = 12
MOST_CALLS = 40  # one inside the other
MOST_STEPS = 200_000  # expressions that are looked at
FOLDED = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARED = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
Env = dict[str, Value]


class Verdict(NamedTuple):
    """Whether a function's Python can be skipped, and what must stay true for it.

    `reason` and `place` say what stands in the way, `at` where in the function itself. `tensors` are those that the function reaches
    other than as arguments or in lists, tuples and dictionaries of arguments. `library_objects` are modules, optimizers and others whose
    state it uses. `effects` are what the library does besides returning results; `returned` are containers that existed before the call
    and may be returned.
    """

    pure: bool
    reason: str
    place: tuple[str, int] | None
    guards: list[Guard]
    tensors: list[tuple[Source, Any]]
    library_objects: list[tuple[Source, Any]]
    effects: list[Effect]
    numbers: Sequence[Free] = ()  # of those that may change: where they are read
    returned: Sequence[Any] = ()
    at: ast.expr | ast.stmt | None = None


def analyse(
    function: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, free: frozenset[Any] = frozenset()
) -> Verdict:
    """Prove that the Python of a call can be skipped when it is made again, or say why not. See Note [Purity].

    `free` are the keys of numbers that may be others in the next call. See Note [Numbers] in `_numbers.py`.
    """
    kwargs = {} if kwargs is None else kwargs
    reason, place = "", None
    analysis = Analysis()
    analysis.free = free
    try:
        analysis.run(function, args, kwargs)
    except Refused as refused:
        reason, place = refused.reason, refused.place
    except RecursionError:
        reason, place = "the function is too deep to be looked at", analysis.place
    except Exception as error:  # a mistake of ours: the program goes on without the proof
        reason, place = f"the proof itself failed ({type(error).__name__}: {error})", analysis.place
    guards = list(analysis.guards.values())
    tensors, objects = list(analysis.tensors.values()), list(analysis.objects.values())
    effects, numbers = list(analysis.effects.values()), list(analysis.numbers.values())
    found = tensors, objects, effects, numbers
    return Verdict(not reason, reason, place, guards, *found, analysis.returned_containers, analysis.looked_at)


class Frame:
    """One call of a user's function: its names, and what they may hold."""

    def __init__(self, key: Any, node: FunctionNode, owner: str, known: Known | None, outer: Frame | None) -> None:
        self.key = key
        self.node = node
        self.owner = owner
        self.known = known  # the function, if it existed before the call
        self.outer = outer
        self.file: str = (
            known.value.__code__.co_filename if known is not None else outer.file if outer is not None else ""
        )
        self.env: Env | None = {}  # None where no path leads
        self.results: Value = NOTHING
        self.breaks: list[Env] = []
        self.continues: list[Env] = []
        arguments = node.args
        self.parameters = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        named = [*self.parameters, *(one.arg for one in arguments.kwonlyargs)]
        named += [one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None]
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        bound = Bindings()
        for statement in body:
            bound.visit(statement)
        self.declared = bound.declared
        self.names = ({*named, *bound.names}) - bound.declared
        if owner and any(name.startswith("__") and not name.endswith("__") for name in (*self.names, *bound.declared)):
            raise Refused("it has variables whose names begin with two underscores", (self.file, node.lineno))
        if bound.repeats:
            raise Refused("it assigns inside a comprehension", (self.file, node.lineno))
        self.shared = bound.inner  # read or written by functions inside: what they hold is not followed in order


class Bindings(ast.NodeVisitor):
    """Which names a function binds, and which the functions inside mention."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.declared: set[str] = set()
        self.inner: set[str] = set()
        self.repeats = False  # whether a comprehension assigns

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.names.add(node.id)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.declared.update(node.names)

    visit_Nonlocal = visit_Global

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.names.update([node.name] if node.name else [])
        self.generic_visit(node)

    def visit_FunctionDef(self, node: Any) -> None:
        self.names.add(node.name)
        self.visit_inner(node)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit_inner(node)

    def visit_inner(self, node: Any) -> None:
        self.inner.update(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        self.inner.update(name for one in ast.walk(node) if isinstance(one, ast.Nonlocal) for name in one.names)

    def visit_comprehension_scope(self, node: Any) -> None:
        # Names of a comprehension are its own; `:=` inside binds in the function.
        self.names.update(one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr))
        inner = Bindings()
        inner.generic_visit(node)
        self.inner |= inner.inner
        if any(isinstance(one, ast.NamedExpr) for one in ast.walk(node)):
            self.repeats = True

    visit_ListComp = visit_SetComp = visit_DictComp = visit_comprehension_scope

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self.visit_comprehension_scope(node)
        # It runs later, and reads variables as they are then.
        own = {one.id for g in node.generators for one in ast.walk(g.target) if isinstance(one, ast.Name)}
        self.inner.update({one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - own)

    def visit_MatchAs(self, node: Any) -> None:
        self.names.update([node.name] if getattr(node, "name", None) else [])
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs


class Analysis(Calls):
    """Interprets the syntax of functions."""

    def __init__(self) -> None:
        super().__init__()
        self.frame: Frame | None = None
        self.cells: dict[Any, Value] = {}  # variables that functions inside share
        self.returned: dict[Any, Value] = {}  # by call: what it returned so far
        self.running: list[Any] = []
        self.done: set[Any] = set()
        self.steps = 0
        self.strict = False  # whether nothing new is found any more, and every expression must have a value
        self.looked_at: Any = None  # in the outermost function
        self.returned_containers: list[Any] = []
        self.arguments: list[tuple[Source, Any]] = []

    # ---- the function that is compiled ----
    def run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Follow the call until nothing new is found."""
        code = getattr(getattr(function, "forward", function), "__code__", None)
        self.check_operators()
        for self.round in range(MOST_ROUNDS):
            self.place = None if code is None else (code.co_filename, code.co_firstlineno)
            self.changed = False
            self.done = set()
            self.guard(FUNCTION, "identity", function) if not isinstance(function, MethodType) else None
            self.guard(ARGS, "length", len(args))
            self.guard(KWARGS, "keys", tuple(kwargs))
            positional = tuple(self.found(one, self.at("item", ARGS, k)) for k, one in enumerate(args))
            keywords = tuple((name, self.found(one, self.at("item", KWARGS, name))) for name, one in kwargs.items())
            if isinstance(function, MethodType):
                self.guard(FUNCTION, "type", MethodType)
            self.arguments = [(one.source, one.value) for value in positional for one in value if type(one) is Known]
            self.arguments += [(one.source, one.value) for _, value in keywords for one in value if type(one) is Known]
            callee = frozenset({Known(function, FUNCTION)})
            result = self.call(callee, Args(positional, keywords))
            if self.strict:
                self.looked_at = None
                if self.scheduled and self.reads_rates:
                    self.refuse("it reads an optimizer or a schedule that it steps, which counts after the program")
                self.check_result(result)
                return self.check_hooks()
            self.strict = not self.changed  # once more, to see whether every expression has a value
        self.refuse("what the function may do does not settle")

    def check_result(self, result: Value) -> None:
        """Guard what existed before the call and is returned: the very object, and what a list or a dictionary holds."""
        seen: set[Any] = set()
        pending = list(result)
        while pending:
            one = pending.pop()
            if one in seen:
                continue
            seen.add(one)
            if type(one) is Tup:
                pending += [inner for item in one.items for inner in item]
            elif type(one) is Many:
                pending += one.item
            elif type(one) is Local:
                heap = self.heap[one.site]
                pending += [*heap.items, *heap.keys, *(inner for value in heap.fields.values() for inner in value)]
            elif type(one) is Known and not isinstance(one.value, Tensor):
                if one.place:
                    self.guard(one.source, "identity", one.value)
                if type(one.value) in BUILTIN_CONTAINERS:
                    self.returned_containers.append(one.value)
                    pending += [inner for _, item in self.items(one) for inner in item]

    def check_hooks(self) -> None:
        """Refuse hooks on tensors whose gradients the call computes."""
        if not any(effect.kind == "backward" for effect in self.effects.values()):
            return
        given = [(source, one) for source, one in self.arguments if isinstance(one, Tensor)]
        for source, tensor in (*self.tensors.values(), *given):
            if tensor.requires_grad:
                extra = tensor._extra
                if extra is not None and (extra.hooked or extra.hooks or extra.post_hooks):
                    self.refuse(f"{source} has hooks, which run when its gradient arrives")
                self.guard(source, "hookless")

    # ---- functions ----
    def call_user(self, function: Known, args: Args) -> Value:
        value, source = function.value, function.source
        code: CodeType = value.__code__
        self.guard(self.at("field", source, "__code__"), "identity", code)
        where = code.co_filename, code.co_firstlineno
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise Refused(f"{code.co_qualname} is a generator or a coroutine", where)
        try:
            syntax = syntax_of(value)
        except Unreadable as unreadable:
            raise Refused(str(unreadable), where) from None
        key = (id(value), code, args)
        if key in self.done or key in self.running:
            return self.returned.get(key, NOTHING)
        if len(self.running) >= MOST_CALLS:
            raise Refused(f"{code.co_qualname} calls itself too often to be followed", where)
        frame = Frame((id(value), code), syntax.node, syntax.owner, function, None)
        return self.enter(frame, key, args, self.defaults(function))

    def defaults(self, function: Known) -> tuple[list[Value], dict[str, Value]]:
        """Return the defaults of a function that exists, with guards."""
        value, source = function.value, function.source
        positional, named = value.__defaults__, value.__kwdefaults__
        self.guard(self.at("field", source, "__defaults__"), "identity", positional)
        self.guard(self.at("field", source, "__kwdefaults__"), "identity", named)
        code = value.__code__
        first = code.co_argcount - len(positional or ())
        given = []
        for k, one in enumerate(positional or ()):
            where = self.at("default", source, k)
            where.text = code.co_varnames[first + k]
            given.append(self.found(one, where))
        return given, {name: self.found(one, self.at("kwdefault", source, name)) for name, one in (named or {}).items()}

    def call_made(self, made: Made, args: Args) -> Value:
        key = (made.site, args)
        if key in self.done or key in self.running:
            return self.returned.get(key, NOTHING)
        if len(self.running) >= MOST_CALLS:
            self.refuse("a function inside calls itself too often to be followed")
        node: Any = made.node
        outer = made.frame
        if any(isinstance(one, (ast.Yield, ast.YieldFrom, ast.Await)) for one in ast.walk(node)):
            self.refuse("a function inside is a generator or a coroutine")
        frame = Frame(made.site, node, outer.owner, None, outer)
        stored = self.heap[made.site].fields
        count = len(node.args.defaults)
        given = [stored[f"default {k}"] for k in range(count)]
        named = {
            one.arg: stored[f"default {one.arg}"] for one in node.args.kwonlyargs if f"default {one.arg}" in stored
        }
        return self.enter(frame, key, args, (given, named))

    def enter(self, frame: Frame, key: Any, args: Args, defaults: tuple[list[Value], dict[str, Value]]) -> Value:
        """Run the body of a function with arguments."""
        before, place = self.frame, self.place
        self.running.append(key)
        self.frame = frame
        try:
            bound = self.bind(frame, args, *defaults)
            if bound is not None:
                for name, value in bound.items():
                    self.assign_name(name, value)
                node = frame.node
                if isinstance(node, ast.Lambda):
                    frame.results = self.evaluate(node.body)
                else:
                    self.block(node.body)
                    if frame.env is not None:
                        frame.results = join(frame.results, NONE)
        finally:
            self.running.pop()
            self.frame = before
        self.place = place
        result = self.settled(join(self.returned.get(key, NOTHING), frame.results))
        self.changed |= result != self.returned.get(key, NOTHING)
        self.returned[key] = result
        self.done.add(key)
        return result

    def bind(self, frame: Frame, args: Args, defaults: list[Value], named_defaults: dict[str, Value]) -> Env | None:
        """Return what the parameters hold; None if the arguments do not fit, which raises."""
        arguments = frame.node.args
        names, keywords = frame.parameters, dict(args.keywords)
        bound: Env = dict(zip(names, args.positional, strict=False))
        unknown = join(args.more, self.pairs(args.more_keywords)[1] if args.more_keywords else NOTHING)
        first_default = len(names) - len(defaults)
        positional_only = {one.arg for one in arguments.posonlyargs}
        for k, name in enumerate(names):
            if name in bound:
                continue
            given = keywords.pop(name) if name in keywords and name not in positional_only else None
            default = defaults[k - first_default] if k >= first_default else NOTHING
            if given is None and not default and not unknown:
                return None
            bound[name] = join(default, unknown) if given is None else given
        extra = args.positional[len(names) :]
        if arguments.vararg is not None:
            many = frozenset({Many(join(unknown, *extra))}) if unknown else frozenset({Tup(tuple(extra))})
            bound[arguments.vararg.arg] = many
        elif extra:
            return None
        for one in arguments.kwonlyargs:
            default = named_defaults.get(one.arg, NOTHING)
            given = keywords.pop(one.arg, None)
            if given is None and not default and not unknown:
                return None
            bound[one.arg] = join(default, unknown) if given is None else given
        if arguments.kwarg is not None:
            site = (frame.key, "keywords")
            made = self.local(dict, site, unknown, one_of(str) if unknown else NOTHING)
            for name, value in keywords.items():
                self.store((dict, site), value, const(name))
            bound[arguments.kwarg.arg] = made
        elif keywords and not unknown:
            return None
        return bound

    # ---- names ----
    def assign_name(self, name: str, value: Value) -> None:
        frame = self.frame
        assert frame is not None
        if name in frame.declared:
            home = self.home(name)
            if home is None:
                self.refuse(f"it writes {name}, a variable outside of the function")
            self.share(home, name, value)
        elif name in frame.shared:
            self.share(frame, name, value)
        if frame.env is not None:
            frame.env[name] = value

    def share(self, frame: Frame, name: str, value: Value) -> None:
        key = frame.key, name
        more = self.settled(join(self.cells.get(key, NOTHING), value))
        self.changed |= more != self.cells.get(key, NOTHING)
        self.cells[key] = more

    def home(self, name: str) -> Frame | None:
        """Return the frame inside the call around a function in which a name is a variable."""
        outer = self.frame.outer if self.frame is not None else None
        while outer is not None and name not in outer.names:
            outer = outer.outer
        return outer

    def read_name(self, name: str) -> Value:
        frame = self.frame
        assert frame is not None
        if name in frame.names:
            if name in frame.shared:
                return self.cells.get((frame.key, name), NOTHING)
            return frame.env.get(name, NOTHING) if frame.env is not None else NOTHING
        if (home := self.home(name)) is not None:
            home_value = self.cells.get((home.key, name))
            return NOTHING if home_value is None else home_value
        root = frame
        while root.outer is not None:
            root = root.outer
        assert root.known is not None
        function, source = root.known.value, root.known.source
        if name in function.__code__.co_freevars:
            number = function.__code__.co_freevars.index(name)
            where = self.at("cell", source, number)
            where.text = name
            try:
                value = function.__closure__[number].cell_contents
            except ValueError:
                self.refuse(f"{name} has no value yet")
            return self.found(value, where)
        return self.read_global(function, source, name)

    def read_global(self, function: FunctionType, source: Source, name: str) -> Value:
        where = self.at("global", source, name)
        if type(function.__globals__) is not dict:
            self.refuse("the globals of the function are no plain dictionary")
        if name in function.__globals__:
            return self.found(function.__globals__[name], where)
        self.guard(where, "absent")
        if name == "__debug__":
            return const(__debug__)
        held = cast(Any, function).__builtins__  # of which mypy knows in some runs, and in others not
        if type(held) is not dict or name not in held:
            return NOTHING
        return self.found(held[name], self.at("builtin", source, name))

    # ---- statements ----
    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            assert self.frame is not None
            if self.frame.env is None:
                return
            self.statement(statement)

    def at_line(self, node: Any) -> None:
        assert self.frame is not None
        if hasattr(node, "lineno"):
            self.place = self.frame.file, node.lineno
            if len(self.running) == 1:
                self.looked_at = node
        self.steps += 1
        if self.steps > MOST_STEPS:
            self.refuse("the function is too large to be followed")

    def statement(self, node: ast.stmt) -> None:
        self.at_line(node)
        handler = getattr(self, f"do_{type(node).__name__}", None)
        if handler is None:
            self.refuse(f"it has {WORDS.get(type(node).__name__, type(node).__name__)}")
        handler(node)

    def do_Expr(self, node: ast.Expr) -> None:
        self.evaluate(node.value)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    do_Global = do_Nonlocal = do_Pass

    def do_Return(self, node: ast.Return) -> None:
        frame = self.frame
        assert frame is not None
        value = NONE if node.value is None else self.evaluate(node.value)
        frame.results = join(frame.results, value)
        frame.env = None

    def do_Raise(self, node: ast.Raise) -> None:
        assert self.frame is not None
        self.frame.env = None  # what raises is never recorded

    def do_Assert(self, node: ast.Assert) -> None:
        self.condition(node.test)

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            before = self.read_name(target.id)
            self.assign_name(target.id, self.in_place(before, self.evaluate(node.value), node))
            return
        owner = self.evaluate(target.value)
        if isinstance(target, ast.Attribute):
            before = self.attribute(owner, self.mangled(target.attr))
            after = self.in_place(before, self.evaluate(node.value), node)
            self.write_attribute(owner, self.mangled(target.attr), after)
            return
        key = self.evaluate(target.slice)
        after = self.in_place(self.subscript(owner, key), self.evaluate(node.value), node)
        self.write_item(owner, key, after)

    def in_place(self, before: Value, other: Value, node: ast.AugAssign) -> Value:
        """Return what `before += other` leaves in the variable."""
        results = []
        for one in before:
            single = frozenset({one})
            if self.is_tensor(one):
                self.effect("write", "an operation in place")
                self.check_given([other], "an operator")
                results.append(LIB)
            elif type(one) is Known and not is_immutable(one.value):
                self.refuse(f"it changes {one.source}, which exists outside of it")
            elif type(one) is Local and one.kind is list:
                self.store(one.site, self.elements(other) if isinstance(node.op, ast.Add) else NOTHING)
                results.append(single)
            elif type(one) is Local and one.kind in (dict, set):
                keys, values = self.pairs(other) if one.kind is dict else (NOTHING, self.elements(other))
                self.store(one.site, values, keys)
                results.append(single)
            else:
                results.append(self.binary(single, other, node, node.op))
        return join(NOTHING, *results)

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value)
        elif isinstance(target, ast.Attribute):
            self.write_attribute(self.evaluate(target.value), self.mangled(target.attr), value)
        elif isinstance(target, ast.Subscript):
            self.write_item(self.evaluate(target.value), self.evaluate(target.slice), value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, self.local(list, target, value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target.elts, value)
        else:
            self.refuse("it assigns to something unusual")

    def unpack(self, targets: list[ast.expr], value: Value) -> None:
        starred = any(isinstance(one, ast.Starred) for one in targets)
        parts: list[Value] = [NOTHING] * len(targets)
        for one in value:
            if type(one) is Tup and not starred:
                if len(one.items) == len(targets):
                    parts = [join(part, item) for part, item in zip(parts, one.items, strict=True)]
            elif type(one) is Known and type(one.value) is list and not starred:
                entries = self.items(one)
                if len(entries) == len(targets):
                    parts = [join(part, item) for part, (_, item) in zip(parts, entries, strict=True)]
            else:
                inner = self.elements(frozenset({one}))
                parts = [join(part, inner) for part in parts]
        for target, part in zip(targets, parts, strict=True):
            self.assign(target, part)

    def write_attribute(self, owner: Value, name: str, value: Value) -> None:
        for one in owner:
            if self.is_tensor(one) and name in allowed.WRITTEN_OF_TENSORS:
                self.effect("write", f".{name} = ...")
                self.check_given([value], f"Tensor.{name}")
            elif type(one) is Local and one.kind not in (list, dict, set):
                if one.kind.__module__.partition(".")[0] != "retrograd":
                    self.check_written(one, name)
                self.store_field(one.site, name, value)
            else:
                self.refuse(f"it writes the attribute {name} of {describe(one)}")

    def check_written(self, one: Local, name: str) -> None:
        found = self.look_up(one.kind, name)
        if found is not None and hasattr(type(found[1]), "__set__") and not inspect.ismemberdescriptor(found[1]):
            self.refuse(f"writing {name} of a {one.kind.__qualname__} runs a {type(found[1]).__name__}")

    def write_item(self, owner: Value, key: Value, value: Value) -> None:
        for one in owner:
            if self.is_tensor(one):
                self.effect("write", "x[...] = ...")
                self.check_given([key, value], "an assignment to items")
            elif type(one) is Local and one.kind in (list, dict):
                self.check_given([key], "an assignment to items")
                if any(map(is_slice, key)):
                    value = join(value, self.elements(value))
                self.store(one.site, value, key if one.kind is dict else NOTHING)
            else:
                self.refuse(f"it writes an item of {describe(one)}, which exists outside of it")

    def do_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                if target.id in self.frame.declared:  # type: ignore[union-attr]
                    self.refuse(f"it deletes {target.id}, a variable outside of the function")
                continue
            if isinstance(target, ast.Subscript):
                owner = self.evaluate(target.value)
                self.check_given([self.evaluate(target.slice)], "del")
                if all(type(one) is Local and one.kind in (list, dict) for one in owner):
                    continue
            self.refuse("it deletes something that exists outside of it")

    def condition(self, test: ast.expr) -> tuple[bool, bool]:
        """Return whether a condition may be true, and whether it may be false."""
        value = self.truth(self.evaluate(test))
        unknown = any(type(one) is not Const for one in value)
        return (unknown or any(one.value is True for one in value), unknown or any(one.value is False for one in value))

    def do_If(self, node: ast.If) -> None:
        frame = self.frame
        assert frame is not None
        true, false = self.condition(node.test)
        before = frame.env
        after: list[Env] = []
        for taken, body in ((true, node.body), (false, node.orelse)):
            frame.env = None if before is None or not taken else dict(before)
            self.block(body)
            after += [frame.env] if frame.env is not None else []
        frame.env = joined(after)

    def loop(self, start: Any, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        """Run a body until the variables settle; `start` tells whether it may run, and notes the variables with which the loop may end."""
        frame = self.frame
        assert frame is not None
        outer = frame.breaks, frame.continues
        frame.breaks, frame.continues = [], []
        ended: list[Env] = []
        for turn in range(MOST_ROUNDS * 4):
            before = frame.env
            if before is None:
                break
            if turn > 20:
                before = {name: widened(value) for name, value in before.items()}
            frame.env = dict(before)
            enters = start(ended)
            if not enters:
                frame.env = None
                break
            self.block(body)
            again = joined([before, *([frame.env] if frame.env is not None else []), *frame.continues])
            assert again is not None
            if turn > 20:
                again = {name: widened(value) for name, value in again.items()}
            frame.env = again
            if again == before:
                break
        else:
            self.refuse("a loop does not settle")
        frame.env = joined(ended)
        self.block(orelse) if frame.env is not None else None
        frame.env = joined([*([frame.env] if frame.env is not None else []), *frame.breaks])
        frame.breaks, frame.continues = outer

    def do_For(self, node: ast.For) -> None:
        value = self.evaluate(node.iter)
        inner = self.elements(value)
        frame = self.frame
        assert frame is not None

        def start(ended: list[Env]) -> bool:
            ended.append(dict(frame.env or {}))  # perhaps without a turn: the variable keeps what it had
            if inner:
                self.assign(node.target, inner)
            return bool(inner)

        self.loop(start, node.body, node.orelse)

    def do_While(self, node: ast.While) -> None:
        frame = self.frame
        assert frame is not None

        def start(ended: list[Env]) -> bool:
            true, false = self.condition(node.test)
            if false:
                ended.append(dict(frame.env or {}))
            return true

        self.loop(start, node.body, node.orelse)

    def do_Break(self, node: ast.Break) -> None:
        frame = self.frame
        assert frame is not None
        frame.breaks += [frame.env] if frame.env is not None else []
        frame.env = None

    def do_Continue(self, node: ast.Continue) -> None:
        frame = self.frame
        assert frame is not None
        frame.continues += [frame.env] if frame.env is not None else []
        frame.env = None

    def do_With(self, node: ast.With) -> None:
        for item in node.items:
            self.entered = item.context_expr
            for one in self.evaluate(item.context_expr):
                if not (type(one) is Known and isinstance(one.value, type) and one.place == 1):
                    self.refuse(
                        f"it enters {describe(one)}, which is no context of the library that is known to be pure"
                    )
            if item.optional_vars is not None:
                self.assign(item.optional_vars, LIB)
        self.block(node.body)

    def do_Try(self, node: ast.Try) -> None:
        if node.handlers:
            self.refuse("it catches exceptions, and what raises decides what happens")
        leaving = (ast.Return, ast.Break, ast.Continue)
        if any(isinstance(one, leaving) for part in (*node.body, *node.orelse) for one in ast.walk(part)):
            self.refuse("it leaves a try block in the middle")
        self.block(node.body)
        self.block(node.orelse)
        if any(isinstance(one, leaving) for part in node.finalbody for one in ast.walk(part)):
            self.refuse("it leaves a finally block in the middle")
        self.block(node.finalbody)

    def do_FunctionDef(self, node: ast.FunctionDef) -> None:
        value = self.make_function(node)
        for decorator in reversed(node.decorator_list):
            value = self.call(self.evaluate(decorator), Args((value,)), (decorator, None))
        self.assign_name(node.name, value)

    def make_function(self, node: Any) -> Value:
        frame = self.frame
        assert frame is not None
        site = ("function", id(node), frame.key)
        self.check_annotations(node)
        for k, default in enumerate(node.args.defaults):
            self.store_field(site, f"default {k}", self.evaluate(default))
        for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            if default is not None:
                self.store_field(site, f"default {one.arg}", self.evaluate(default))
        self.store(site)
        return frozenset({Made(site, node, frame)})

    def check_annotations(self, node: Any) -> None:
        """Refuse annotations that may do something where a function is made."""
        arguments = node.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        written = [one.annotation for one in given if one is not None and one.annotation is not None]
        written += [node.returns] if getattr(node, "returns", None) is not None else []
        if any(isinstance(one, (ast.Call, ast.Await, ast.NamedExpr)) for part in written for one in ast.walk(part)):
            self.refuse("a function inside has annotations that are computed")

    def do_Import(self, node: ast.Import) -> None:
        self.check_import()
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self.imported(alias.name)
            self.assign_name(alias.asname or name, self.imported(name))

    def do_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.check_import()
        if node.level or node.module is None:
            self.refuse("it imports relative to its package")
        module = self.imported(node.module)
        for alias in node.names:
            found = self.attribute(module, alias.name)
            self.assign_name(alias.asname or alias.name, found)

    def check_import(self) -> None:
        root = self.frame
        while root is not None and root.outer is not None:
            root = root.outer
        assert root is not None
        assert root.known is not None
        held: Any = root.known.value.__builtins__
        if type(held) is not dict or held.get("__import__") is not builtins.__import__:
            self.refuse("it imports by a function that somebody has exchanged")
        self.guard(self.at("builtin", root.known.source, "__import__"), "identity", builtins.__import__)

    def imported(self, name: str) -> Value:
        module = sys.modules.get(name)
        if not isinstance(module, ModuleType):
            self.refuse(f"it imports {name}, which is not loaded yet")
        root = self.sources.setdefault("sys.modules", constant(sys.modules, "sys.modules"))
        return self.found(module, self.at("item", root, name))

    # ---- expressions ----
    def evaluate(self, node: ast.expr) -> Value:
        """Return what an expression may give."""
        self.at_line(node)
        handler = getattr(self, f"of_{type(node).__name__}", None)
        if handler is None:
            self.refuse(f"it has {WORDS.get(type(node).__name__, type(node).__name__)}")
        value: Value = handler(node)
        if self.strict and not value and isinstance(node, VALUED):
            self.at_line(node)
            self.refuse(f"{ast.unparse(node)[:60]} raises, as far as can be seen")
        return value

    def of_Constant(self, node: ast.Constant) -> Value:
        return const(node.value)

    def of_Name(self, node: ast.Name) -> Value:
        return self.read_name(self.mangled(node.id))

    def mangled(self, name: str) -> str:
        owner = self.frame.owner.lstrip("_") if self.frame is not None else ""
        return f"_{owner}{name}" if owner and name.startswith("__") and not name.endswith("__") else name

    def of_NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def of_Tuple(self, node: ast.Tuple) -> Value:
        if any(isinstance(one, ast.Starred) for one in node.elts):
            return frozenset({Many(self.parts(node.elts))})
        return frozenset({Tup(tuple(map(self.evaluate, node.elts)))})

    def parts(self, nodes: list[ast.expr]) -> Value:
        """Return what the parts of a display may be, unpacked ones included."""
        found = [
            self.elements(self.evaluate(n.value)) if isinstance(n, ast.Starred) else self.evaluate(n) for n in nodes
        ]
        return join(NOTHING, *found)

    def of_List(self, node: ast.List) -> Value:
        return self.local(list, node, self.parts(node.elts))

    def of_Set(self, node: ast.Set) -> Value:
        inner = self.parts(node.elts)
        self.check_given([inner], "a set")
        return self.local(set, node, inner)

    def of_Dict(self, node: ast.Dict) -> Value:
        keys, values = NOTHING, NOTHING
        for key, value in zip(node.keys, node.values, strict=True):
            more_keys, more = (
                self.pairs(self.evaluate(value)) if key is None else (self.evaluate(key), self.evaluate(value))
            )
            keys, values = join(keys, more_keys), join(values, more)
        self.check_given([keys], "a dictionary")
        return self.local(dict, node, values, keys)

    def of_Lambda(self, node: ast.Lambda) -> Value:
        return self.make_function(node)

    def of_IfExp(self, node: ast.IfExp) -> Value:
        true, false = self.condition(node.test)
        return join(self.evaluate(node.body) if true else NOTHING, self.evaluate(node.orelse) if false else NOTHING)

    def of_BoolOp(self, node: ast.BoolOp) -> Value:
        results = []
        for number, part in enumerate(node.values):
            value = self.evaluate(part)
            if number == len(node.values) - 1:
                results.append(value)
                break
            stops = isinstance(node.op, ast.Or)
            known = self.truth(value)
            if known != const(not stops):
                results.append(value)
            if known == const(stops):
                break
        return join(NOTHING, *results)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            return frozenset(
                Const(f"bool:{not one.value}", not one.value) if type(one) is Const else one for one in truth
            )
        self.check_operands(value)
        results = []
        for one in value:
            if type(one) is Const and type(one.value) in (int, float, bool) and not isinstance(node.op, ast.Invert):
                results.append(const(-one.value if isinstance(node.op, ast.USub) else +one.value))
            elif type(one) is Of:
                results.append(frozenset({one if one.kind is not bool else Of(int)}))
            elif self.is_tensor(one) or type(one) is Const:
                results.append(LIB)
        return join(NOTHING, *results)

    def check_operands(self, *values: Value) -> None:
        """Refuse operators on objects of a user's classes."""
        self.check_given(values, "an operator")
        for one in (one for value in values for one in value):
            if type(one) is Known and not isinstance(one.value, Tensor) and type(one.value) not in BUILTIN_CONTAINERS:
                self.refuse(f"it uses an operator on {describe(one)}")

    def of_BinOp(self, node: ast.BinOp) -> Value:
        return self.binary(self.evaluate(node.left), self.evaluate(node.right), node, node.op)

    def binary(self, left: Value, right: Value, site: Any, operation: Any = None) -> Value:
        self.check_operands(left, right)
        results = []
        for a in left:
            for b in right:
                results.append(self.combined(a, b, site, operation))
        return join(NOTHING, *results)

    def combined(self, a: Any, b: Any, site: Any, operation: Any) -> Value:
        """Return what an operator gives for two possibilities."""
        if self.is_tensor(a) or self.is_tensor(b):
            return LIB
        if type(a) is Const and type(b) is Const:
            fold = FOLDED.get(type(operation))
            small = all(self.is_small(one.value) for one in (a, b))
            if fold is not None and small and not (isinstance(operation, ast.Mod) and type(a.value) is str):
                try:
                    result = fold(a.value, b.value)
                except (TypeError, ArithmeticError, ValueError):
                    return NOTHING
                return const(result)
        sequences = (list, dict, OrderedDict, set)
        if any(self.kind_of(one) in sequences or type(one) in (Tup, Many) for one in (a, b)):
            inner = [
                self.elements(frozenset({one}))
                for one in (a, b)
                if self.kind_of(one) in sequences or type(one) in (Tup, Many)
            ]
            if type(a) is Tup and type(b) is Tup and isinstance(operation, ast.Add):
                return frozenset({Tup((*a.items, *b.items))})
            if any(type(one) in (Tup, Many) for one in (a, b)):
                return frozenset({Many(join(*inner))})
            kind = next(self.kind_of(one) for one in (a, b) if self.kind_of(one) in sequences)
            if kind in (dict, OrderedDict):
                pairs = [self.pairs(frozenset({one})) for one in (a, b)]
                return self.local(dict, site, join(*(v for _, v in pairs)), join(*(k for k, _ in pairs)))
            return self.local(kind, site, join(*inner))  # type: ignore[arg-type]
        kinds = {self.kind_of(a), self.kind_of(b)}
        if str in kinds:
            return one_of(str)
        if kinds == {bool} and isinstance(operation, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            return BOTH
        if kinds <= {int, bool} and operation is not None and not isinstance(operation, (ast.Div, ast.Pow)):
            return one_of(int)
        if kinds <= {int, bool, float} and not isinstance(operation, ast.Pow):
            return one_of(float) if float in kinds or isinstance(operation, ast.Div) else LIB
        return LIB if None not in kinds and type(None) not in kinds else NOTHING if type(None) in kinds else LIB

    def is_small(self, value: Any) -> bool:
        """Tell whether it pays to compute with a value: a short text, a number of few digits."""
        return (
            type(value) in (bool, float)
            or (type(value) is int and abs(value) < 1000)
            or (type(value) is str and len(value) < 100)
        )

    def kind_of(self, one: Any) -> type | None:
        if type(one) is Const:
            return type(one.value)
        if type(one) in (Of, Local):
            return one.kind  # type: ignore[no-any-return]
        return type(one.value) if type(one) is Known else None

    def of_Compare(self, node: ast.Compare) -> Value:
        left = self.evaluate(node.left)
        results = []
        for operation, part in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(part)
            results.append(self.compared(left, operation, right))
            left = right
        if len(results) == 1:
            return results[0]
        for value in results:
            self.truth(value)
        return join(*results, BOTH)

    def compared(self, left: Value, operation: ast.cmpop, right: Value) -> Value:
        if isinstance(operation, (ast.Is, ast.IsNot)):
            answers = {self.identical(a, b) for a in left for b in right}
            wanted = isinstance(operation, ast.Is)
            known = {answer == wanted for answer in answers if answer is not None}
            return join(NOTHING, *map(const, known), *([BOTH] if None in answers else []))
        if isinstance(operation, (ast.In, ast.NotIn)):
            return self.contained(left, right, isinstance(operation, ast.In))
        for one in (*left, *right):
            if type(one) is Known and not isinstance(one.value, Tensor) and type(one.value) not in BUILTIN_CONTAINERS:
                self.check_equality(one, operation)
        results = []
        compare = COMPARED[type(operation)]
        for a in left:
            for b in right:
                if self.is_tensor(a) or self.is_tensor(b):
                    results.append(LIB)
                elif type(a) is Const and type(b) is Const and {type(a.value), type(b.value)} <= SIMPLE:
                    try:
                        results.append(const(bool(compare(a.value, b.value))))
                    except TypeError:
                        continue
                else:
                    self.check_compared(a, b)
                    results.append(BOTH)
        return join(NOTHING, *results)

    def check_compared(self, *several: Any) -> None:
        """Look into containers that are compared item by item."""
        for one in several:
            if type(one) in (Tup, Many, Local) or (type(one) is Known and type(one.value) in BUILTIN_CONTAINERS):
                if type(one) is Local and one.kind not in (list, dict, set):
                    self.refuse(f"it compares {describe(one)}")
                self.check_given([frozenset({one})], "a comparison")

    def check_equality(self, one: Known, operation: ast.cmpop) -> None:
        """Let objects be compared that are equal only to themselves: functions, classes, members of enumerations, plain objects."""
        value = one.value
        if isinstance(value, (FunctionType, BuiltinFunctionType, ModuleType)):
            return
        if not isinstance(operation, (ast.Eq, ast.NotEq)):
            self.refuse(f"it compares {describe(one)}")
        if isinstance(value, type):
            self.check_metaclass(value)
            if type(value).__eq__ is not type.__eq__:
                self.refuse(f"it compares {describe(one)}, whose metaclass defines __eq__")
            return
        self.guard(one.source, "type", type(value))
        found = self.look_up(type(value), "__eq__")
        if found is None or found[0] is not object:
            self.refuse(f"it compares {describe(one)}, which runs __eq__ of its class")
        if self.has_user_method(type(value), "__ne__"):
            self.refuse(f"it compares {describe(one)}, which runs __ne__ of its class")

    def identical(self, a: Any, b: Any) -> bool | None:
        """Tell whether two possibilities are one object; None if that cannot be known."""
        if type(a) is Const and type(b) is Const:
            if any(one.value is s for one in (a, b) for s in (None, True, False, Ellipsis)):
                return a.value is b.value
            self.refuse("it compares simple values by identity, which guards do not keep")
        if type(a) is Known and type(b) is Known:
            if a.place == 0 and b.place == 0:
                return a.value is b.value
            if not (isinstance(a.value, Tensor) and isinstance(b.value, Tensor)):
                self.refuse(f"it asks whether {a.source} is {b.source}")
            return None
        for one, other in ((a, b), (b, a)):
            if type(one) is Const and (one.value is None or type(one.value) is bool):
                if type(other) in (Known, Tup, Many, Local, Made, Bound, Method, Super):
                    return False
                if type(other) is Of and other.kind not in (type(None), bool):
                    return False
        single = any(type(one) is Const and type(one.value) in (bool, type(None)) for one in (a, b))
        if {type(a), type(b)} <= {Of, Const} and not single:
            self.refuse("it compares simple values by identity, which guards do not keep")
        return None

    def contained(self, left: Value, right: Value, wanted: bool) -> Value:
        answers: list[Value] = []
        for container_ in right:
            if type(container_) is Known and type(container_.value) in (dict, OrderedDict):
                self.check_given([left], "in")
                for one in left:
                    if type(one) is Const and is_immutable(one.value):
                        found = one.value in container_.value if all(map(is_immutable, container_.value)) else None
                        if found is None:
                            self.refuse(f"{container_.source} has keys that are no simple values")
                        self.items(container_)
                        answers.append(const(found == wanted))
                    else:
                        self.items(container_)
                        answers.append(BOTH)
            elif type(container_) is Known and isinstance(container_.value, Module):
                _, method = self.instance_class_attribute(container_, "__contains__")
                self.call(method, Args((left,)))
                answers.append(BOTH)
            else:
                self.check_given([left, frozenset({container_})], "in")
                if (
                    type(container_) is Known
                    and type(container_.value) not in (*BUILTIN_CONTAINERS,)
                    and not self.is_tensor(container_)
                ):
                    self.refuse(f"it asks what is in {describe(container_)}")
                if self.is_tensor(container_) or any(map(self.is_tensor, left)):
                    self.effect("value", "in")
                answers.append(self.contained_here(left, container_, wanted))
        return join(NOTHING, *answers)

    def contained_here(self, left: Value, container_: Any, wanted: bool) -> Value:
        simple = type(container_) is Tup and all(
            len(item) == 1 and type(next(iter(item))) is Const for item in container_.items
        )
        if not simple or not all(type(one) is Const for one in left):
            return BOTH
        values = [next(iter(item)).value for item in container_.items]
        if not all(type(value) in SIMPLE for value in (*values, *(one.value for one in left))):
            return BOTH
        return join(NOTHING, *(const((one.value in values) == wanted) for one in left))

    def truth(self, value: Value) -> Value:
        """Return what the truth of a value may be."""
        answers: list[Value] = []
        for one in value:
            kind = type(one)
            if kind is Const:
                answers.append(const(bool(one.value)))
            elif kind is Tup:
                answers.append(const(bool(one.items)))
            elif self.is_tensor(one):
                self.effect("value", "a branch")
                answers.append(BOTH)
            elif kind is Known:
                answers.append(self.truth_of_object(one))
            elif kind in (Made, Bound, Method, Applied, Super):
                answers.append(const(True))
            elif kind is Local and one.kind not in (list, dict, set):
                if self.has_user_method(one.kind, "__bool__") or self.has_user_method(one.kind, "__len__"):
                    self.refuse(f"the truth of {describe(one)} runs code of its class")
                answers.append(const(True))
            else:
                answers.append(BOTH)
        return join(NOTHING, *answers)

    def truth_of_object(self, one: Known) -> Value:
        value = one.value
        if type(value) in BUILTIN_CONTAINERS or type(value) is set:
            self.guard(one.source, "type", type(value))
            self.guard(one.source, "length", len(value))
            return const(bool(value))
        if isinstance(value, (FunctionType, BuiltinFunctionType, MethodType, ModuleType)):
            return const(True)
        if isinstance(value, type):
            self.check_metaclass(value)
            return const(True) if type(value) is type else BOTH
        if flags(type(value)) & IMMUTABLE_TYPE:
            self.refuse(f"it asks for the truth of {describe(one)}")
        self.guard(one.source, "type", type(value))
        for name in ("__bool__", "__len__"):
            found = self.look_up(type(value), name)
            if found is not None and found[0] is not object:
                if isinstance(value, Module) and name == "__len__":
                    _, method = self.instance_class_attribute(one, name)
                    return self.truth(self.call(method, Args()))
                self.refuse(f"the truth of {describe(one)} runs code of its class")
        return const(True)

    def of_Call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and self.is_builtin("super", builtins.super):
            return self.super_of(node)
        function = self.evaluate(node.func)
        positional: list[Value] = []
        more: Value = NOTHING
        for one in node.args:
            if isinstance(one, ast.Starred):
                value = self.evaluate(one.value)
                if len(value) == 1 and type(only := next(iter(value))) is Tup and not more:
                    positional += only.items
                else:
                    more = join(more, self.elements(value))
            elif more:
                more = join(more, self.evaluate(one))
            else:
                positional.append(self.evaluate(one))
        keywords: dict[str, Value] = {}
        more_keywords: Value = NOTHING
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            else:
                more_keywords = join(more_keywords, value)
        self.at_line(node)
        args = Args(tuple(positional), tuple(keywords.items()), more, more_keywords)
        return self.call(function, args, (node, self.frame.key if self.frame else None))

    def is_builtin(self, name: str, wanted: Any) -> bool:
        value = self.read_name(name)
        return len(value) == 1 and type(only := next(iter(value))) is Known and only.value is wanted

    def super_of(self, node: ast.Call) -> Value:
        """Return what `super()` or `super(Class, self)` is."""
        frame = self.frame
        assert frame is not None
        if node.args:
            classes, owners = (
                self.evaluate(node.args[0]),
                self.evaluate(node.args[1]) if len(node.args) > 1 else NOTHING,
            )
        else:
            if frame.known is None or not frame.parameters:
                self.refuse("it calls super() inside a function of a method")
            classes = self.read_name("__class__")
            owners = self.read_name(frame.parameters[0])
        found = []
        for cls in classes:
            for one in owners:
                if type(cls) is not Known or not isinstance(cls.value, type) or type(one) not in (Known, Local):
                    self.refuse("it calls super() of something unusual")
                found.append(Super(cls.value, one))
        return frozenset(found)

    def of_Attribute(self, node: ast.Attribute) -> Value:
        owner = self.evaluate(node.value)
        self.at_line(node)
        return self.attribute(owner, self.mangled(node.attr))

    def attribute(self, value: Value, name: str) -> Value:
        return join(NOTHING, *(self.attribute_of(one, name) for one in value))

    def attribute_of(self, one: Any, name: str) -> Value:
        kind = type(one)
        if kind is Known:
            return self.attribute_of_known(one, name)
        if kind is Lib:
            return self.attribute_of_tensor(one, name)
        if kind is Local:
            return self.attribute_of_local(one, name)
        if kind is Super:
            (cls,) = self.hold(
                type(one.owner.value) if type(one.owner) is Known else one.owner.kind, constant(None, "type")
            )
            after = one.after
            if type(one.owner) is Known and isinstance(one.owner.value, type):
                cls = one.owner
            found = self.class_attribute(cls, name, after, one.owner)
            if not found and type(one.owner) is Known and isinstance(one.owner.value, Module):
                self.refuse(f"super().{name} is no method")
            return found
        if kind in (Made, Bound, Method, Applied):
            self.refuse(f"it reads the attribute {name} of a function")
        if kind is Const and not callable(getattr(type(one.value), name, None)):
            return self.attribute_of_constant(one, name)
        return frozenset({Method(one, name)})

    def attribute_of_constant(self, one: Const, name: str) -> Value:
        if is_immutable(one.value) and hasattr(one.value, name) and not name.startswith("_"):
            inside = getattr(one.value, name)
            return const(inside) if is_immutable(inside) else LIB
        return NOTHING

    def attribute_of_tensor(self, one: Any, name: str) -> Value:
        if why := allowed.denied_of_tensors(name):
            self.refuse(f"Tensor.{name} {why}")
        if name in allowed.OF_RESULTS:
            return frozenset({Lib("member")})
        held = getattr(type(one.value) if type(one) is Known else Tensor, name, MISSING)
        self.check_class_attribute(name)
        if held is MISSING:
            self.refuse(f"it reads the attribute {name} of a result, which tensors do not have")
        return frozenset({Method(one, name)}) if isinstance(held, FunctionType) else LIB

    def check_class_attribute(self, name: str) -> None:
        """Refuse what a user has put into a class of tensors. Later changes forget all records: see `_compiled.py`."""
        if any(not is_library_attribute(getattr(cls, name, None)) for cls in EXACT):
            self.refuse(f"Tensor.{name} is not the library's own")

    def check_operators(self) -> None:
        """Refuse everything if a user has replaced an operator of tensors: these are not looked up by their names."""
        for cls in EXACT:
            for name, held in [one for base in mro_of(cls)[:-1] for one in vars(base).items()]:
                if isinstance(held, FunctionType) and name.startswith("__") and not is_own_function(held):
                    self.refuse(f"Tensor.{name} is not the library's own")

    def attribute_of_local(self, one: Local, name: str) -> Value:
        if one.kind in (list, dict, set):
            return frozenset({Method(one, name)}) if hasattr(one.kind, name) else NOTHING
        heap = self.heap[one.site]
        if is_library_class(one.kind):  # the context of a custom Function
            if name in heap.fields or name not in allowed.OF_CONTEXTS:
                return join(heap.fields.get(name, NOTHING), LIB)
            return frozenset({Method(one, name)})
        if self.has_user_method(one.kind, "__getattr__"):
            self.refuse(f"{one.kind.__qualname__} defines __getattr__")
        found = self.look_up(one.kind, name)
        if found is not None and isinstance(found[1], property):
            return self.call(self.getter(found[1], one.kind, name), Args((frozenset({one}),)))
        inside = heap.fields.get(name, NOTHING)
        if found is None or inspect.ismemberdescriptor(found[1]):
            return inside
        (cls,) = self.hold(one.kind, self.of_class(one.kind))
        return join(inside, self.class_attribute(cls, name, None, one))

    def getter(self, descriptor: property, cls: type, name: str) -> Value:
        if not isinstance(descriptor.fget, FunctionType):
            self.refuse(f"{cls.__qualname__}.{name} is a property that no function of Python computes")
        return self.hold(descriptor.fget, constant(None, f"{cls.__qualname__}.{name}.fget"))

    def attribute_of_known(self, one: Known, name: str) -> Value:
        value, source = one.value, one.source
        if isinstance(value, Tensor):
            return self.attribute_of_known_tensor(one, name)
        if type(value) is OptimizedModule and name not in (vars_of(value) or {}) and not hasattr(Module, name):
            return self.attribute(self.original(one), name)
        if isinstance(value, ModuleType):
            return self.module_attribute(one, name)
        if isinstance(value, type):
            return self.class_attribute(one, name)
        if type(value) in BUILTIN_CONTAINERS or type(value) is set:
            self.guard(source, "type", type(value))
            return frozenset({Method(one, name)}) if hasattr(type(value), name) else NOTHING
        if isinstance(value, (FunctionType, MethodType, BuiltinFunctionType)):
            if isinstance(value, FunctionType) and name in (vars_of(value) or {}):
                return self.found(value.__dict__[name], self.at("attribute", source, name))
            self.refuse(f"it reads {source}.{name}, an attribute of a function")
        if flags(type(value)) & IMMUTABLE_TYPE and type(value) is not SimpleNamespace:
            self.refuse(
                f"it reads {source}.{name} of a {type(value).__qualname__}, which is not known to be without effects"
            )
        if isinstance(value, (Optimizer, LRScheduler, GradScaler)) and not any(
            name in names for names in allowed.STEPS.values()
        ):
            self.reads_rates = True
        kind, found = self.instance_attribute(one, name)
        if kind == "field":
            return self.found(tuple.__getitem__(value, found), self.at("item", source, found))
        if kind == "property":
            if is_own_function(found.fget):
                return self.library_property(one, name)
            return self.call(self.getter(found, type(value), name), Args((frozenset({one}),)))
        if is_library_class(type(value)) and any(name in names for names in allowed.STEPS.values()):
            # a scheduler puts a function of its own over the optimizer's `step`
            return frozenset(Bound(f, one) if type(f) is Known and is_own_function(f.value) else f for f in found)
        return found  # type: ignore[no-any-return]

    def library_property(self, one: Known, name: str) -> Value:
        self.refuse(f"it reads {one.source}.{name}, which the library computes from state that no guard knows")

    def attribute_of_known_tensor(self, one: Known, name: str) -> Value:
        own = vars_of(one.value)
        if own:
            where = self.at("attribute", one.source, name)
            if name in own and not (
                name in dir(type(one.value)) and hasattr(getattr(type(one.value), name), "__set__")
            ):
                return self.found(own[name], where)
            self.guard(where, "absent")
        else:
            self.guard(self.at("dict", one.source, None), "empty")
        return self.attribute_of_tensor(one, name)

    def of_Subscript(self, node: ast.Subscript) -> Value:
        return self.subscript(self.evaluate(node.value), self.evaluate(node.slice))

    def of_Slice(self, node: ast.Slice) -> Value:
        bounds = [self.evaluate(one) for one in (node.lower, node.upper, node.step) if one is not None]
        self.check_given(bounds, "a slice")
        return one_of(slice)

    def of_Starred(self, node: ast.Starred) -> Value:
        return self.elements(self.evaluate(node.value))

    def subscript(self, value: Value, key: Value) -> Value:
        results = []
        for one in value:
            kind = type(one)
            if self.is_tensor(one):
                self.check_given([key], "an index")
                results.append(LIB)
            elif kind is Tup:
                results.append(self.item_of_tuple(one, key))
            elif kind is Known:
                results.append(self.item_of_known(one, key))
            elif kind is Local and one.kind in (list, dict):
                self.check_given([key], "an index")
                part = any(map(is_slice, key))
                heap = self.heap[one.site]
                results.append(
                    join(
                        heap.items,
                        self.local(list, ("part", one.site), heap.items) if part and one.kind is list else NOTHING,
                    )
                )
            elif kind is Many:
                self.check_given([key], "an index")
                results.append(join(one.item, frozenset({one})) if any(map(is_slice, key)) else one.item)
            elif kind in (Const, Of):
                self.check_given([key], "an index")
                results.append(LIB if self.kind_of(one) is not str else one_of(str))
            else:
                self.refuse(f"it takes an item of {describe(one)}")
        return join(NOTHING, *results)

    def item_of_tuple(self, one: Tup, key: Value) -> Value:
        results: list[Value] = []
        for k in key:
            if type(k) is Const and type(k.value) in (int, bool):
                results.append(one.items[k.value] if -len(one.items) <= k.value < len(one.items) else NOTHING)
            else:
                self.check_given([frozenset({k})], "an index")
                inside = join(NOTHING, *one.items)
                results.append(frozenset({Many(inside)}) if is_slice(k) else inside)
        return join(NOTHING, *results)

    def item_of_known(self, one: Known, key: Value) -> Value:
        if isinstance(one.value, Module):
            _, method = self.instance_class_attribute(one, "__getitem__")
            return self.call(method, Args((key,)))
        if isinstance(one.value, tuple) and not is_library_class(type(one.value)):
            if self.has_user_method(type(one.value), "__getitem__"):
                self.refuse(f"{describe(one)} defines __getitem__")
            return self.item_of_tuple(self.tuple_of(one), key)
        if type(one.value) not in BUILTIN_CONTAINERS:
            if isinstance(one.value, type):
                return frozenset({one})  # list[int], in an annotation or a cast
            self.refuse(f"it takes an item of {describe(one)}")
        results = []
        for k in key:
            if type(k) is Const and is_immutable(k.value) and not is_slice(k):
                results.append(self.item(one, k.value))
            else:
                self.check_given([frozenset({k})], "an index")
                inside = join(NOTHING, *(value for _, value in self.items(one)))
                results.append(self.local(list, ("part", id(one.value)), inside) if is_slice(k) else inside)
        return join(NOTHING, *results)

    def tuple_of(self, one: Known) -> Tup:
        """Return the items of a named tuple."""
        self.guard(one.source, "type", type(one.value))
        items = tuple.__iter__(one.value)
        return Tup(tuple(self.found(item, self.at("item", one.source, k)) for k, item in enumerate(items)))

    def elements(self, value: Value) -> Value:
        """Return what a loop over a value may give."""
        results: list[Value] = []
        for one in value:
            kind = type(one)
            if kind is Tup:
                results += one.items
            elif kind is Many:
                results.append(one.item)
            elif self.is_tensor(one):
                results.append(LIB)
            elif kind is Local and one.kind in (list, dict, set):
                heap = self.heap[one.site]
                if one.kind is set and not all(type(k) is Const or type(k) is Of for k in heap.items):
                    self.refuse("it goes through a set, whose order depends on addresses")
                results.append(heap.keys if one.kind is dict else heap.items)
            elif kind is Known:
                results.append(self.elements_of_known(one))
            elif kind in (Const, Of):
                results.append(self.elements_of_simple(one))
            else:
                self.refuse(f"it goes through {describe(one)}")
        return join(NOTHING, *results)

    def elements_of_simple(self, one: Any) -> Value:
        kind = self.kind_of(one)
        if kind is str:
            return one_of(str)
        if kind in (bytes, range):
            return one_of(int)
        if type(one) is Const and type(one.value) in (tuple, frozenset):
            return join(NOTHING, *map(const, one.value))
        return NOTHING  # it cannot be looked through

    def elements_of_known(self, one: Known) -> Value:
        value = one.value
        if type(value) in BUILTIN_CONTAINERS:
            entries = self.items(one)
            return join(NOTHING, *(item if type(value) is list else const(key) for key, item in entries))
        if isinstance(value, Module):
            _, method = self.instance_class_attribute(one, "__iter__")
            return self.elements(self.call(method, Args()))
        if (
            isinstance(value, tuple)
            and not is_library_class(type(value))
            and not self.has_user_method(type(value), "__iter__")
        ):
            return join(NOTHING, *self.tuple_of(one).items)
        self.refuse(f"it goes through {describe(one)}")

    # ---- comprehensions and texts ----
    def comprehension(self, node: Any, parts: list[ast.expr]) -> list[Value]:
        """Evaluate the parts of a comprehension in its own scope."""
        frame = self.frame
        assert frame is not None
        targets = {one.id for g in node.generators for one in ast.walk(g.target) if isinstance(one, ast.Name)}
        before = dict(frame.env or {})
        names, shared = frame.names, frame.shared
        results: list[Value] = [NOTHING] * len(parts)
        first = self.evaluate(node.generators[0].iter)  # outside: its names are not yet the comprehension's
        frame.names = names | targets
        if targets & shared:
            self.refuse("a function or a generator inside uses the variables of a comprehension")
        frame.shared = shared - targets
        try:
            alive = True
            for number, generator in enumerate(node.generators):
                if generator.is_async:
                    self.refuse("it has an asynchronous comprehension")
                inner = self.elements(self.evaluate(generator.iter) if number else first)
                if not inner:
                    alive = False
                    break
                self.assign(generator.target, inner)
                if not all([self.condition(test)[0] for test in generator.ifs]):
                    alive = False
                    break
            if alive:
                results = [self.evaluate(part) for part in parts]
        finally:
            frame.names, frame.shared = names, shared
        after = frame.env or {}
        frame.env = {name: value for name, value in after.items() if name not in targets}
        frame.env |= {name: before[name] for name in targets if name in before}
        return results

    def of_ListComp(self, node: ast.ListComp) -> Value:
        return self.local(list, node, self.comprehension(node, [node.elt])[0])

    def of_SetComp(self, node: ast.SetComp) -> Value:
        inner = self.comprehension(node, [node.elt])[0]
        self.check_given([inner], "a set")
        return self.local(set, node, inner)

    def of_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        return frozenset({Many(self.comprehension(node, [node.elt])[0])})

    def of_DictComp(self, node: ast.DictComp) -> Value:
        keys, values = self.comprehension(node, [node.key, node.value])
        self.check_given([keys], "a dictionary")
        return self.local(dict, node, values, keys)

    def of_JoinedStr(self, node: ast.JoinedStr) -> Value:
        parts = [self.evaluate(part) for part in node.values]
        if all(len(part) == 1 and type(next(iter(part))) is Const for part in parts):
            return const("".join(next(iter(part)).value for part in parts))
        return one_of(str)

    def of_FormattedValue(self, node: ast.FormattedValue) -> Value:
        value = self.evaluate(node.value)
        if node.format_spec is not None:
            self.evaluate(node.format_spec)
        self.check_given([value], "a text")
        self.check_shown([value])
        if any(map(self.is_tensor, value)):
            self.effect("value", "a text")
        if (
            len(value) == 1
            and type(one := next(iter(value))) is Const
            and node.format_spec is None
            and node.conversion == -1
        ):
            return const(format(one.value)) if type(one.value) in SIMPLE else one_of(str)
        return one_of(str)


def is_slice(one: Any) -> bool:
    """Tell whether an index is a slice, which takes a part of a list and not an item."""
    return one == Of(slice) or (type(one) is Const and type(one.value) is slice)


VALUED = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp)
SIMPLE = {int, float, bool, str, type(None), bytes}
WORDS = {
    "AsyncFor": "an asynchronous loop",
    "AsyncWith": "an asynchronous block",
    "AsyncFunctionDef": "a coroutine",
    "Await": "an await",
    "ClassDef": "a class inside, which is made at every call",
    "Match": "a match statement",
    "TryStar": "an except* block",
    "Yield": "a yield",
    "YieldFrom": "a yield from",
    "TypeAlias": "a type alias",
    "TemplateStr": "a template string",
    "Interpolation": "a template string",
}


def joined(envs: list[Env]) -> Env | None:
    """Return what variables may hold where several paths meet; None if no path leads there."""
    if not envs:
        return None
    names = {name for env in envs for name in env}
    return {name: join(*(env.get(name, NOTHING) for env in envs)) for name in names}
