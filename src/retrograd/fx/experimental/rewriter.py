"""Trace programs with `assert` and annotated variables: their source is rewritten first."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..._generated import emit
from ...nn import Module
from .._symbolic_trace import Tracer
from ..graph import Graph


def normalize_source_lines(sourcelines: list[str]) -> list[str]:
    """Let the lines around a `def` be indented at least as far as it is, so that they can be dedented together."""
    at = next((i for i, line in enumerate(sourcelines) if line.lstrip().startswith("def")), None)
    if at is None:
        return sourcelines
    line = sourcelines[at]
    indent = line[: len(line) - len(line.lstrip())]
    return [f"{indent}{each.removeprefix(indent)}" for each in sourcelines]


class AST_Rewriter(ast.NodeTransformer):  # noqa: N801 - torch's name
    """Rewrites functions: `assert` becomes `torch._assert`, `x: T = v` becomes `x = annotate(v, T)`."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """Return a function like `fn`, with its globals, of rewritten source."""
        source = textwrap.dedent("".join(normalize_source_lines(inspect.getsourcelines(fn)[0])))
        tree = ast.fix_missing_locations(self.visit(ast.parse(source)))
        made = emit(f"{fn.__qualname__} rewritten", ast.unparse(tree), dict(fn.__globals__))
        if len(made) != 1:
            raise AssertionError(f"Expected 1 new key, got {len(made)}")
        (new,) = made.values()
        result = FunctionType(new.__code__, fn.__globals__, new.__name__, new.__defaults__, new.__closure__)
        functools.update_wrapper(result, new)
        result.__kwdefaults__ = copy.copy(new.__kwdefaults__)
        return result

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """Let a check be a call, which a trace records."""
        check = ast.Attribute(ast.Name("torch", ast.Load()), "_assert", ast.Load())
        call = ast.Call(check, [node.test, node.msg or ast.Constant("")], [])
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.Assign:
        """Let the type of a variable be an argument of `annotate`, a name that the program must have."""
        given: list[Any] = [node.value, node.annotation]
        return ast.Assign([node.target], ast.Call(ast.Name("annotate", ast.Load()), given, []))


class RewritingTracer(Tracer):
    """Traces a function or module, and the modules in it, from rewritten source."""

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Trace the rewritten function or module."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Any) -> Any:
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(fn)

    class RewrittenModule(Module):
        forward = AST_Rewriter().rewrite(fn.forward)

    made = RewrittenModule()
    for name, value in fn.__dict__.items():
        made.__dict__[name] = copy.copy(_rewrite(value) if isinstance(value, Module) else value)
    return made
