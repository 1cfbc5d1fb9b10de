"""Which variables statements read and bind, and which are sure to have a value: what must be known to move statements elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

# Blocks that let an error through: what they bind has a value behind them.
TRANSPARENT = frozenset(
    """no_grad enable_grad set_grad_enabled inference_mode autocast profile record_function detect_anomaly set_detect_anomaly
    saved_tensors_hooks save_on_cpu no_sync open lock device nullcontext sdpa_kernel set_default_dtype fork_rng""".split()  # noqa: SIM905
)
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
DECLARING = (ast.Global, ast.Nonlocal)


class Names(ast.NodeVisitor):
    """The variables of a function that a piece of its syntax mentions, by what it does to them."""

    def __init__(self, *nodes: ast.AST | None) -> None:
        self.read: set[str] = set()
        self.bound: set[str] = set()
        self.deleted: set[str] = set()
        self.captured: set[str] = set()  # mentioned by functions inside, which may run later
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        kind = self.read if isinstance(node.ctx, ast.Load) else self.bound
        (self.deleted if isinstance(node.ctx, ast.Del) else kind).add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read.add(node.target.id)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.bound.add(node.asname or node.name.partition(".")[0])

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.bound.update([node.name] if node.name else [])
        self.generic_visit(node)

    def visit_MatchAs(self, node: Any) -> None:
        self.bound.update([node.name] if node.name else [])
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.bound.update([node.rest] if node.rest else [])
        self.generic_visit(node)

    # ---- scopes of their own ----
    def visit_FunctionDef(self, node: Any) -> None:
        self.bound.add(node.name)
        inner = Names(*node.body)
        own = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)} | inner.bound
        declared = {name for one in ast.walk(node) if isinstance(one, DECLARING) for name in one.names}
        self._inside(inner, own - declared)
        self.captured |= declared
        self._visit_all(node.args.defaults, node.args.kw_defaults, node.decorator_list)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.add(node.name)
        self._inside(Names(*node.body), set())
        self._visit_all(node.bases, node.keywords, node.decorator_list)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        own = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        self._inside(Names(node.body), own)
        self._visit_all(node.args.defaults, node.args.kw_defaults)

    def visit_GeneratorExp(self, node: Any) -> None:
        inner = self._of_comprehension(node)
        self.captured |= inner.read

    def _of_comprehension(self, node: Any) -> Names:
        """Take what a comprehension reads from outside; its variables are its own, but for those that `:=` binds."""
        inner = Names()
        inner.generic_visit(node)
        named = {one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr)}
        inner.read -= inner.bound - named
        self.read |= inner.read
        self.bound |= named
        self.captured |= inner.captured
        return inner

    visit_ListComp = visit_SetComp = visit_DictComp = _of_comprehension

    def _inside(self, inner: Names, own: set[str]) -> None:
        seen = (inner.read | inner.captured) - own
        self.read |= seen
        self.captured |= seen

    def _visit_all(self, *several: Iterable[ast.AST | None]) -> None:
        for nodes in several:
            for node in nodes:
                if node is not None:
                    self.visit(node)


class Flow:
    """Goes through statements in their order. `before` says of each which variables are sure to have a value then."""

    def __init__(self, local: set[str]) -> None:
        self.local = local
        self.before: dict[ast.stmt, frozenset[str]] = {}
        self.exposed: set[str] = set()  # read where they are not sure to have one

    def block(self, statements: Sequence[ast.stmt], known: frozenset[str]) -> frozenset[str] | None:
        """Return the variables that are sure to have a value behind statements; None if no way leads there."""
        now: frozenset[str] | None = known
        for statement in statements:
            # What cannot be reached is looked at, too.
            now = self.statement(statement, known if now is None else now)
        return now

    def statement(self, node: ast.stmt, known: frozenset[str]) -> frozenset[str] | None:
        """Return the variables that are sure to have a value behind a statement."""
        self.before[node] = known
        handler = getattr(self, f"_{type(node).__name__}", None)
        if handler is not None:
            return handler(node, known)  # type: ignore[no-any-return]
        after = self._use(known, node)
        return None if isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)) else after

    def _use(self, known: frozenset[str], *nodes: ast.AST | None) -> frozenset[str]:
        names = Names(*nodes)
        self.exposed |= ((names.read | names.deleted) & self.local) - known
        return (known | (names.bound & self.local)) - names.deleted

    def _If(self, node: ast.If, known: frozenset[str]) -> frozenset[str] | None:
        known = self._use(known, node.test)
        return _both(self.block(node.body, known), self.block(node.orelse, known))

    def _For(self, node: ast.For, known: frozenset[str]) -> frozenset[str] | None:
        known = self._use(known, node.iter)
        self.block(node.body, self._use(known, node.target))
        behind = self.block(node.orelse, known)
        return known if behind is None or _leaves(node.body, ast.Break) else behind

    _AsyncFor = _For

    def _While(self, node: ast.While, known: frozenset[str]) -> frozenset[str] | None:
        known = self._use(known, node.test)
        self.block(node.body, known)
        behind = self.block(node.orelse, known)
        return known if behind is None or _leaves(node.body, ast.Break) else behind

    def _With(self, node: ast.With, known: frozenset[str]) -> frozenset[str] | None:
        for item in node.items:
            known = self._use(known, item.context_expr, item.optional_vars)
        behind = self.block(node.body, known)
        return behind if is_transparent(node) else known

    _AsyncWith = _With

    def _Try(self, node: Any, known: frozenset[str]) -> frozenset[str] | None:
        behind = self.block(node.body, known)
        done = self.block(node.orelse, known if behind is None else behind)
        behind = None if behind is None else done
        for handler in node.handlers:
            inside = known | ({handler.name} if handler.name else frozenset())
            if handler.type is not None:
                self._use(known, handler.type)
            after = self.block(handler.body, inside)
            behind = _both(behind, None if after is None else after - {handler.name})
        last = self.block(node.finalbody, known)
        if not node.finalbody or behind is None or last is None:
            return behind if last is not None else None
        return behind | (last - known)

    _TryStar = _Try

    def _Match(self, node: ast.Match, known: frozenset[str]) -> frozenset[str] | None:
        known = self._use(known, node.subject)
        behind: frozenset[str] | None = known  # no case need fit
        for case in node.cases:
            behind = _both(behind, self.block(case.body, self._use(known, case.pattern, case.guard)))
        return behind


class Liveness:
    """Goes through statements against their order. `after` says of each which variables may be read behind it, before they are bound."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.after: dict[ast.stmt, frozenset[str]] = {}
        self.caught: dict[ast.stmt, frozenset[str]] = {}  # what may be read if a statement raises
        self._leaving: tuple[frozenset[str], frozenset[str]] = (_NONE, _NONE)  # read behind a break, a continue
        self._caught: frozenset[str] = _NONE  # read where an error is caught, and on the way out
        self._block(body, _NONE)

    def _block(self, statements: Sequence[ast.stmt], after: frozenset[str]) -> frozenset[str]:
        for node in reversed(statements):
            self.after[node] = self.after.get(node, _NONE) | after
            self.caught[node] = self._caught
            handler = getattr(self, f"_{type(node).__name__}", self._simple)
            after = handler(node, after) | self._caught
        return after

    def _simple(self, node: ast.stmt, after: frozenset[str]) -> frozenset[str]:
        names = Names(node)
        perhaps = {one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr)}
        if isinstance(node, (ast.Return, ast.Raise)):
            after = _NONE
        return (after - (names.bound - perhaps)) | names.read | names.deleted

    def _Break(self, node: ast.Break, after: frozenset[str]) -> frozenset[str]:
        return self._leaving[0]

    def _Continue(self, node: ast.Continue, after: frozenset[str]) -> frozenset[str]:
        return self._leaving[1]

    def _If(self, node: ast.If, after: frozenset[str]) -> frozenset[str]:
        return self._block(node.body, after) | self._block(node.orelse, after) | Names(node.test).read

    def _For(self, node: ast.For, after: frozenset[str]) -> frozenset[str]:
        return self._loop(node, after, _NONE, Names(node.target).bound) | Names(node.iter).read

    def _While(self, node: ast.While, after: frozenset[str]) -> frozenset[str]:
        return self._loop(node, after, frozenset(Names(node.test).read), set())

    def _loop(self, node: Any, after: frozenset[str], head: frozenset[str], bound: set[str]) -> frozenset[str]:
        head |= self._block(node.orelse, after)
        outside = self._leaving
        while True:
            self._leaving = after, head
            before = head | (self._block(node.body, head) - bound)
            if before == head:
                break
            head = before
        self._leaving = outside
        return head

    def _With(self, node: ast.With, after: frozenset[str]) -> frozenset[str]:
        outside = self._caught
        if not is_transparent(node):
            self._caught = outside | after
        before = self._block(node.body, after)
        self._caught = outside
        return before | Names(*node.items).read

    def _Try(self, node: Any, after: frozenset[str]) -> frozenset[str]:
        last = self._block(node.finalbody, after)
        outside = self._caught
        self._caught = outside | (last if node.finalbody else _NONE)
        handled = self._caught
        for handler in node.handlers:
            handled |= Names(handler.type).read | self._block(handler.body, last)
        done = self._block(node.orelse, last)
        self._caught = handled
        before = self._block(node.body, done)
        self._caught = outside
        return before | handled

    _TryStar = _Try

    def _Match(self, node: ast.Match, after: frozenset[str]) -> frozenset[str]:
        before = after | Names(node.subject).read
        for case in node.cases:
            before |= Names(case.pattern, case.guard).read | self._block(case.body, after)
        return before


_NONE: frozenset[str] = frozenset()


def _both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    return other if one is None else one if other is None else one & other


def _leaves(statements: Sequence[ast.stmt], how: type[ast.stmt]) -> bool:
    """Tell whether statements leave, or begin again, a loop around them."""
    return any(isinstance(one, how) for one in own_statements(statements))


def own_statements(statements: Iterable[ast.stmt], loops: bool = True) -> Iterable[ast.stmt]:
    """Go through statements and those inside, but for functions and classes, and loops inside."""
    for node in statements:
        yield node
        if isinstance(node, NESTED) or (isinstance(node, (ast.For, ast.While, ast.AsyncFor)) and loops):
            if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
                yield from own_statements(node.orelse, loops)
            continue
        for part in blocks_of(node):
            yield from own_statements(part, loops)


def bound_again(body: Sequence[ast.stmt], given: Iterable[str]) -> set[str]:
    """Return the variables of a function that may be bound when they have been before; `given` are its parameters."""
    once, again = set(given), set()

    def look(statements: Sequence[ast.stmt], repeated: bool) -> None:
        for node in statements:
            inside = blocks_of(node)
            bound = Names(*_heads(node)).bound if inside else Names(node).bound
            loops = isinstance(node, (ast.For, ast.While, ast.AsyncFor))
            again.update(bound if repeated or loops else bound & once)
            once.update(bound)
            for part in inside:
                look(part, repeated or loops)

    look(body, repeated=False)
    return again


def _heads(node: ast.stmt) -> Iterable[ast.AST]:
    """Go through what a statement with blocks inside has beside them."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.ExceptHandler):
            yield ast.ExceptHandler(one.type, one.name, [])
        elif isinstance(one, ast.match_case):
            yield one.pattern
        elif not isinstance(one, ast.stmt):
            yield one


def nonlocals(node: ast.AST) -> set[str]:
    """Return the variables that functions inside a function bind for it."""
    return {name for one in ast.walk(node) if isinstance(one, ast.Nonlocal) for name in one.names}


def blocks_of(node: Any) -> list[list[ast.stmt]]:
    """Return the lists of statements that a statement has inside; none for functions and classes."""
    if isinstance(node, NESTED):
        return []
    found = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    found += [one.body for one in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
    return [one for one in found if one]


def is_transparent(node: ast.With | ast.AsyncWith) -> bool:
    """Tell whether a block is known to let errors through."""
    for item in node.items:
        what = item.context_expr
        called = what.func if isinstance(what, ast.Call) else what
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name not in TRANSPARENT:
            return False
    return True


def leaves_a_loop(statements: Sequence[ast.stmt]) -> bool:
    """Tell whether statements have a `break` or `continue` for a loop outside of them."""
    return any(isinstance(one, (ast.Break, ast.Continue)) for one in own_statements(statements))


def has_return(statements: Sequence[ast.stmt]) -> bool:
    """Tell whether statements return from their function."""
    return any(isinstance(one, ast.Return) for one in own_statements(statements, loops=False))
