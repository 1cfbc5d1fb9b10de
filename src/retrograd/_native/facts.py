"""Facts about Python's objects, all of them checked by one call.

Note [Facts]
A table says what must be found where: the class of an object, the entries of dictionaries, by identity. Python compares one in
about 20 ns, a table one in 5, and a module has twenty. Machine code goes through the table, by functions of Python's own C interface,
with the GIL held: nothing is known about how Python lays out its objects. Only keys that are strings are looked up, and nothing is
compared but addresses. So no code of a user runs, unless a dictionary has keys that pretend to be strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from gc import get_referents
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from .driver import DATA, Context, as_method, field, of_python


class Fact(NamedTuple):
    """One row of a table: what it asks (`CODES`), and the objects that it names."""

    kind: str
    first: Any
    second: Any = None


# `object`: from here on it is about the `__dict__` of the first; `dictionary`: about the first itself; `value`: that of the key that is
# the first is the second; `absent`: the first is no key; `length`: it has so many entries; `member`: its next value, in order, is the
# first; `type`: the class of the first is the second; `empty`: the first is a dictionary without entries.
KINDS: Final = ("object", "dictionary", "value", "absent", "length", "member", "type", "empty")
CODES: Final = {kind: code for code, kind in enumerate(KINDS)}
FUNCTIONS: Final = (
    "Py_IncRef", "Py_DecRef", "PyObject_GenericGetDict", "PyDict_GetItemWithError", "PyDict_Contains", "PyDict_Next", "PyObject_Type",
    "PyDict_Size", "PyErr_Clear",
)  # fmt: skip
FIELDS: Final = 3  # of a row


def dictionary_of(mapping: Any) -> dict[Any, Any]:
    """Return the dictionary itself that a class shows by a proxy."""
    return get_referents(mapping)[0] if type(mapping) is MappingProxyType else mapping  # type: ignore[no-any-return]


def checking(facts: Sequence[Fact]) -> Callable[[], bool]:
    """Return a function that tells whether all facts hold. It keeps what they name alive. See Note [Facts]."""
    rows = np.zeros((len(facts), FIELDS), np.uint64)
    for row, (kind, first, second) in zip(rows, facts, strict=True):
        row[:] = CODES[kind], first if kind == "length" else id(first), id(second)
    words = [rows.ctypes.data, len(facts), id(True), id(False), *map(of_python, FUNCTIONS)]
    context = np.array(words, np.uint64).view(Context)
    context.kept = rows, facts
    return _native()(context)


@cache
def _native() -> Callable[[Context], Callable[..., Any]]:
    return as_method(_text())


def _text() -> str:
    """Return the text of the function that goes through a table."""
    names = ["rows", "count", "true", "false", *FUNCTIONS]
    fields = "\n".join(
        field(name, "%context", at, "i64" if name == "count" else "ptr") for at, name in enumerate(names)
    )
    cases = " ".join(f"i64 {code}, label %{name}" for name, code in CODES.items())
    found = ", ".join(f"[ %is.{name}, %{name} ]" for name in KINDS[2:])
    return f"""
define ptr @KERNEL(ptr %self, ptr %args, i64 %given) #0 {{
entry:
  %context.p = getelementptr i8, ptr %self, i64 {DATA}
  %context = load ptr, ptr %context.p, align 8
{fields}
  %place = alloca i64, align 8
  %value.p = alloca ptr, align 8
  call void %Py_IncRef(ptr %false)  ; until there is a dictionary, something else is held
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %latch ]
  %held = phi ptr [ %false, %entry ], [ %held.next, %latch ]
  %go = icmp slt i64 %at, %count
  br i1 %go, label %body, label %finish
body:
  %number = mul i64 %at, {FIELDS}
  %row = getelementptr i64, ptr %rows, i64 %number
{field("kind", "%row", 0)}
{field("first", "%row", 1, "ptr")}
{field("second", "%row", 2, "ptr")}
  switch i64 %kind, label %refuse [ {cases} ]
object:
  %own = call ptr %PyObject_GenericGetDict(ptr %first, ptr null)
  %has = icmp ne ptr %own, null
  br i1 %has, label %hold, label %refuse
dictionary:
  call void %Py_IncRef(ptr %first)
  br label %hold
hold:
  %new = phi ptr [ %own, %object ], [ %first, %dictionary ]
  call void %Py_DecRef(ptr %held)
  store i64 0, ptr %place, align 8
  br label %latch
value:
  %found = call ptr %PyDict_GetItemWithError(ptr %held, ptr %first)
  %is.value = icmp eq ptr %found, %second
  br label %judge
absent:
  %contains = call i32 %PyDict_Contains(ptr %held, ptr %first)
  %is.absent = icmp eq i32 %contains, 0
  br label %judge
length:
  %entries = call i64 %PyDict_Size(ptr %held)
  %expected = ptrtoint ptr %first to i64
  %is.length = icmp eq i64 %entries, %expected
  br label %judge
member:
  store ptr null, ptr %value.p, align 8
  %more = call i32 %PyDict_Next(ptr %held, ptr %place, ptr null, ptr %value.p)
  %now = load ptr, ptr %value.p, align 8
  %is.member = icmp eq ptr %now, %first
  br label %judge
type:
  %class = call ptr %PyObject_Type(ptr %first)
  call void %Py_DecRef(ptr %class)
  %is.type = icmp eq ptr %class, %second
  br label %judge
empty:
  %items = call i64 %PyDict_Size(ptr %first)
  %is.empty = icmp eq i64 %items, 0
  br label %judge
judge:
  %fine = phi i1 {found}
  br i1 %fine, label %latch, label %refuse
latch:
  %held.next = phi ptr [ %new, %hold ], [ %held, %judge ]
  %next = add i64 %at, 1
  br label %head
refuse:
  call void %PyErr_Clear()
  br label %finish
finish:
  %result = phi ptr [ %true, %head ], [ %false, %refuse ]
  call void %Py_DecRef(ptr %held)
  call void %Py_IncRef(ptr %result)
  ret ptr %result
}}

attributes #0 = {{ nounwind "no-builtins" }}
"""
