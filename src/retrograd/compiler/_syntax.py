"""The syntax tree of a function that exists, only if its source is certain to be what it runs.

Note [Source that is certain]
A function runs its code object; the file that it came from may have changed since, an import hook may have rewritten it. So the
source is compiled again, here, and the tree is used only if the result has a code object that is equal to the function's:
instructions, constants with their types, names, lines and columns. Bytecode differs from version to version of Python; syntax trees of
3.11 to 3.14 do not, where this package reads them.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, MutableMapping
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ..utils.weak import WeakIdKeyDictionary
from ._guards import is_immutable, strict_key

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Unreadable(Exception):  # noqa: N818 - no error of a caller
    """Why the source of a function cannot be used."""


class Syntax(NamedTuple):
    """A function's tree, and the class whose body it stands in, which changes names that begin with two underscores."""

    node: FunctionNode
    owner: str


class _File:
    """What a file defines: trees and code objects of functions, by their first line and name."""

    def __init__(self, text: str, file: str) -> None:
        tree = ast.parse(text)
        self.nodes: dict[tuple[int, str], list[Syntax]] = {}
        self.codes: dict[tuple[int, str], list[CodeType]] = {}
        for syntax in _functions(tree, ""):
            self.nodes.setdefault(_place(syntax.node), []).append(syntax)
        # never run: it is compared with code that is
        for code in _codes(compile(text, file, "exec", dont_inherit=True)):
            self.codes.setdefault((code.co_firstlineno, code.co_name), []).append(code)


_files: dict[str, tuple[str, _File]] = {}


def _functions(node: ast.AST, owner: str) -> Iterator[Syntax]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FunctionNode):
            yield Syntax(child, owner)
        yield from _functions(child, child.name if isinstance(child, ast.ClassDef) else owner)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def _place(node: FunctionNode) -> tuple[int, str]:
    if isinstance(node, ast.Lambda):
        return node.lineno, "<lambda>"
    return min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.name


def fingerprint(code: CodeType) -> tuple[Any, ...]:
    """Return what tells code objects apart, except the name of the file. `==` also compares caches in some versions."""
    constants = tuple(
        fingerprint(one) if isinstance(one, CodeType) else strict_key(one) if is_immutable(one) else repr(one)
        for one in code.co_consts
    )
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_firstlineno
    names = code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_linetable, code.co_exceptiontable, constants, counts, names


# By identity: several may be equal, and go one by one.
_declared: MutableMapping[CodeType, Syntax] = WeakIdKeyDictionary()


def declare(code: CodeType, syntax: Syntax) -> None:
    """Say what the tree of code is that was compiled from it."""
    _declared[code] = syntax


def syntax_of(function: FunctionType) -> Syntax:
    """Return the tree of a function, or raise `Unreadable`. See Note [Source that is certain]."""
    code = function.__code__
    if (known_to_be := _declared.get(code)) is not None:
        return known_to_be
    name = code.co_qualname
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text:
        raise Unreadable(f"the source of {name} is not available")
    known = _files.get(code.co_filename)
    if known is None or known[0] != text:
        try:
            known = _files[code.co_filename] = text, _File(text, code.co_filename)
        except (SyntaxError, ValueError, RecursionError):
            raise Unreadable(f"the source of {name} cannot be read again") from None
    place = code.co_firstlineno, code.co_name
    wanted = fingerprint(code)
    if not any(fingerprint(one) == wanted for one in known[1].codes.get(place, ())):
        if code.co_filename == "<string>":  # many texts have this name, of which Python 3.13 knows that of -c
            raise Unreadable(f"the source of {name} is not available")
        raise Unreadable(f"the source of {name} is not what it runs: the file was changed or rewritten")
    found = known[1].nodes.get(place, [])
    if len(found) > 1:
        found = [syntax for syntax in found if _covers(syntax.node, code)]
        found = (
            found[-1:] if len(set(map(_inside, found))) == len(found) else []
        )  # the innermost of several that are nested
    if len(found) != 1:
        raise Unreadable(f"several functions called {code.co_name} stand on line {code.co_firstlineno}")
    return found[0]


def _inside(syntax: Syntax) -> int:
    return sum(1 for _ in ast.walk(syntax.node))


def _covers(node: FunctionNode, code: CodeType) -> bool:
    """Tell whether all instructions of a lambda come from its body, where several stand on one line."""
    if not isinstance(node, ast.Lambda):
        return False
    body = node.body
    first, last = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [(line, column, end, end_column) for line, end, column, end_column in code.co_positions()]
    known = [place for place in places if None not in place and place[3] != place[1]]
    if not known:  # Python 3.12 notes no place for what returns a constant
        return isinstance(body, ast.Constant) and body.value in code.co_consts
    inside = [(line, column) >= first and (end, end_column) <= last for line, column, end, end_column in known]
    return all(inside)
