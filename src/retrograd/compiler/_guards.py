"""Guards: what must still be true for a recorded program to stand for a function's Python.

Note [Guards]
A `Source` says where a value was found, as a path from the function and its arguments. A `Guard` says what must be found
there. `compile_guards` writes all of them as one function.
1. A check runs no user code. It reads dictionaries, cells, slots and items of builtin containers whose exact type was checked
   before; it never asks an object for an attribute that its class could compute, and never calls `__eq__` or `__bool__` of a user's class.
2. A guard on a path comes after the guards on its beginning. An object that was checked by identity is a constant from there
   on: `model.layers[3].weight` is one look into one dictionary, not four.
3. What is kept as a constant cannot be exchanged under it: the globals of a function, its cells, the dictionary of a module (of
   Python), the mapping of a class. The `__dict__` of an instance can be, and is read again.
4. Values are compared as Python would tell them apart: 1, 1.0 and True differ, 0.0 and -0.0 differ, a NaN equals itself.
5. Identities hold because guards keep their objects alive: an address is never used again.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from .. import _generated
from .._device import device
from .._dtypes import dtype, finfo, iinfo
from .._native import machine
from .._native.facts import Fact, checking, dictionary_of
from .._size import Size
from ..tensor import _base

MISSING = type("Missing", (), {"__repr__": lambda self: "<nothing>", "__slots__": ()})()
ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
SINGLE = (None, True, False, Ellipsis)  # there is one object of each
mro_of = type.__dict__["__mro__"].__get__


# ---- where values are found ----
class Source:
    """A path to a value: a beginning and one step. `text` is how a person would write it."""

    __slots__ = ("base", "key", "step", "text")

    def __init__(self, step: str, base: Source | None = None, key: Any = None, text: str = "") -> None:
        self.step = step
        self.base = base
        self.key = key
        self.text = text or _written(step, base, key)

    def __repr__(self) -> str:
        return self.text

    @property
    def root(self) -> str:
        """`function`, `args`, `kwargs` or `constant`: where the path begins."""
        source = self
        while source.base is not None:
            source = source.base
        return source.step

    def read(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what is there now; raises LookupError, AttributeError, TypeError or ValueError if nothing is."""
        if self.base is None:
            return (
                self.key
                if self.step == "constant"
                else {"function": function, "args": args, "kwargs": kwargs}[self.step]
            )
        return READERS[self.step](self.base.read(function, args, kwargs), self.key)


FUNCTION, ARGS, KWARGS = (
    Source("function", text="function"),
    Source("args", text="args"),
    Source("kwargs", text="kwargs"),
)


def constant(value: Any, text: str) -> Source:
    """A path that begins at an object which is always there, as `sys.modules` is."""
    return Source("constant", key=value, text=text)


# How each step is read, and how the check writes it. `item` is for exact builtin containers, `attribute` for `__dict__`.
READERS: dict[str, Callable[[Any, Any], Any]] = {
    "global": lambda base, key: base.__globals__[key],
    "builtin": lambda base, key: base.__builtins__[key],
    "cell": lambda base, key: base.__closure__[key].cell_contents,
    "default": lambda base, key: base.__defaults__[key],
    "kwdefault": lambda base, key: base.__kwdefaults__[key],
    "field": lambda base, key: getattr(base, key),  # of a function, a method or a partial: made in C
    "attribute": lambda base, key: base.__dict__[key],
    "slot": lambda base, key: key.__get__(base),
    "class": lambda base, key: base.__dict__[key],
    "mro": lambda base, key: mro_of(base),
    "type": lambda base, key: type(base),
    "item": lambda base, key: base[key],
    "value": lambda base, key: list(base.values())[key],
    "dict": lambda base, key: base.__dict__,
}
FORMS = {
    "global": "{base}.__globals__[{key}]",
    "builtin": "{base}.__builtins__[{key}]",
    "cell": "{base}.__closure__[{key}].cell_contents",
    "default": "{base}.__defaults__[{key}]",
    "kwdefault": "{base}.__kwdefaults__[{key}]",
    "field": "{base}.{name}",
    "attribute": "{base}.__dict__[{key}]",
    "slot": "{key}.__get__({base})",
    "class": "{base}.__dict__[{key}]",
    "mro": "mro_of({base})",
    "type": "type({base})",
    "item": "{base}[{key}]",
    "value": "list({base}.values())[{key}]",
    "dict": "{base}.__dict__",
}


def _written(step: str, base: Source | None, key: Any) -> str:
    before = "" if base is None else base.text
    if step in ("global", "builtin"):
        return str(key)
    if step == "cell":
        return f"{before}.__closure__[{key}]"
    if step in ("attribute", "field", "class"):
        return f"{before}.{key}"
    if step == "slot":
        return f"{before}.{key.__name__}"
    if step == "default":
        return f"{before}.__defaults__[{key}]"
    if step == "kwdefault":
        return f"{before}.__kwdefaults__[{key!r}]"
    if step == "type":
        return f"type({before})"
    if step == "mro":
        return f"{before}.__mro__"
    if step == "dict":
        return f"{before}.__dict__"
    if step == "value":
        return f"{before}[{key}]"
    return f"{before}[{key!r}]"


# ---- values that are compared ----
def same(a: Any, b: Any) -> bool:
    """Tell whether nobody could tell two values apart, except by identity. Never runs user code."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is int or kind is str or kind is bytes:
        return bool(a == b)
    if kind is float:
        return struct.pack("d", a) == struct.pack("d", b)
    if kind is complex:
        return same(a.real, b.real) and same(a.imag, b.imag)
    if kind is tuple or kind is Size:
        return len(a) == len(b) and all(map(same, a, b))
    if kind is slice:
        return same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if kind is range:
        return same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if kind is frozenset:
        return len(a) == len(b) and sorted(map(strict_key, a)) == sorted(map(strict_key, b))
    if kind is device:
        return bool(a == b)
    if issubclass(kind, np.generic):
        return bool(a.dtype == b.dtype) and a.tobytes() == b.tobytes()
    return False


def strict_key(value: Any) -> str:
    """Return a text that is the same exactly for values that `same` calls the same; for immutable values."""
    kind = type(value)
    if kind is float:
        return "float:" + struct.pack("d", value).hex()
    if kind is complex:
        return f"complex:{strict_key(value.real)},{strict_key(value.imag)}"
    if kind is tuple or kind is Size:
        return f"{kind.__name__}:({','.join(map(strict_key, value))})"
    if kind is frozenset:
        return f"frozenset:({','.join(sorted(map(strict_key, value)))})"
    if kind in ATOMS or kind is slice or kind is range:
        if kind is int:
            return f"int:{value:x}"  # of any size: decimal digits are limited
        inner = "" if kind not in (slice, range) else strict_key((value.start, value.stop, value.step))
        return f"{kind.__name__}:{inner or repr(value)}"
    if issubclass(kind, np.generic):
        return f"{value.dtype.str}:{value.tobytes().hex()}"
    if kind is device:
        return f"device:{value}"
    return f"{kind.__name__}@{id(value)}"


def is_immutable(value: Any) -> bool:
    """Tell whether a value can be guarded by `same`: it and all that it holds never change."""
    kind = type(value)
    if kind in ATOMS or kind is device or kind is range or isinstance(value, (dtype, finfo, iinfo)):
        return True
    if kind is tuple or kind is frozenset or kind is Size:
        return all(map(is_immutable, value))
    if kind is slice:
        return is_immutable((value.start, value.stop, value.step))
    return (
        issubclass(kind, np.generic) and kind.__module__ == "numpy" and kind is not np.void and kind is not np.object_
    )


# ---- guards ----
class TensorFacts(NamedTuple):
    """What is guarded of a tensor. A size of None may be any but 0 and 1; so may its strides be, if all are None."""

    kind: type
    dtype: Any
    shape: tuple[int | None, ...]
    strides: tuple[int, ...] | None
    requires_grad: bool
    leaf: bool
    array_kind: type


class Guard(NamedTuple):
    """What must be found at a source. `expected` depends on the kind:

    `identity`: the object; `type`: the exact class; `value`: an immutable value, see `same`; `length`: of a builtin container;
    `keys`: of a dictionary, in order; `members`: the values of a dictionary, by identity and in order; `absent`: nothing, the
    source does not exist; `empty`: nothing, a dictionary without entries; `hookless`: nothing, a tensor without hooks;
    `tensor`: `TensorFacts`; `aliases`: for several sources, which share memory.
    """

    source: Source
    kind: str
    expected: Any = None

    def __str__(self) -> str:
        text, kind, expected = self.source.text, self.kind, self.expected
        if kind == "identity":
            return f"{text} is {_short(expected)}"
        if kind == "type":
            return f"type({text}) is {expected.__qualname__}"
        if kind == "value":
            return f"{text} == {_short(expected)}"
        if kind == "length":
            return f"len({text}) == {expected}"
        if kind == "keys":
            return f"the keys of {text} are {_short(list(expected))}"
        if kind == "members":
            return f"{text} holds the same {len(expected)} objects"
        if kind == "absent":
            return f"{text} is not defined"
        if kind == "empty":
            return f"{text} is empty"
        if kind == "hookless":
            return f"{text} has no hooks"
        if kind == "aliases":
            return f"the same tensors of {text} share memory"
        said = f"{text} is a {expected.kind.__name__} of dtype {expected.dtype}, shape {expected.shape}"
        return f"{said}, strides {expected.strides}, requires_grad={expected.requires_grad}"


def _short(value: Any) -> str:
    if isinstance(value, (FunctionType, type)):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    if type(value) is int and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    if is_immutable(value) or (type(value) is list and all(map(is_immutable, value))) or isinstance(value, enum.Enum):
        text = repr(value)
        return text if len(text) < 80 else text[:77] + "..."
    return f"the same {type(value).__name__}"


def tensor_guard(source: Source, tensor: Any, dynamic: Iterable[int] = ()) -> Guard:
    """Guard a tensor's class, dtype, shape, strides and whether it requires grad; sizes of the dimensions in `dynamic` may change.

    A changing size is never 0 or 1: those broadcast, and mean something else. With one, strides must be those of a tensor that
    is laid out in order, and the tensor must be so now.
    """
    array = _base.stored(tensor)
    any_size = set(dynamic)
    shape = tuple(None if k in any_size else n for k, n in enumerate(array.shape))
    strides: tuple[int, ...] | None = tuple(getattr(array, "strides", ()))
    if any_size:
        if not (hasattr(array, "flags") and array.flags.c_contiguous) or any(array.shape[k] < 2 for k in any_size):
            raise ValueError(f"{source}: only sizes from 2 on of tensors that are contiguous can change")
        strides = None
    edge = _base._edge_slot.__get__(tensor)
    facts = TensorFacts(type(tensor), array.dtype, shape, strides, edge is not None, edge is _base.LEAF, type(array))
    return Guard(source, "tensor", facts)


def alias_guard(found: Sequence[tuple[Source, Any]]) -> Guard:
    """Guard which of several tensors are one object, and which lie over each other in memory."""
    pattern = alias_pattern([tensor for _, tensor in found])
    text = ", ".join(source.text for source, _ in found)
    return Guard(Source("constant", key=tuple(source for source, _ in found), text=text), "aliases", pattern)


def alias_pattern(tensors: Sequence[Any]) -> tuple[tuple[int, int, bool], ...]:
    """Return (i, j, whether they are one object) for every pair of tensors that overlaps in memory.

    Tensors that own their memory overlap only if they are one object: nothing is compared then but addresses.
    """
    arrays = [_base.stored(tensor) for tensor in tensors]
    spans = sorted((*_span(array), k) for k, array in enumerate(arrays))
    found = []
    for place, (_, end, k) in enumerate(spans):
        for start, _, other in spans[place + 1 :]:
            if start >= end:
                break
            first, second = min(k, other), max(k, other)
            found.append((first, second, tensors[first] is tensors[second]))
    empty = {id(tensor): k for k, tensor in reversed(list(enumerate(tensors))) if arrays[k].size == 0}
    found += [(empty[id(t)], k, True) for k, t in enumerate(tensors) if empty.get(id(t), k) != k]
    return tuple(sorted(found))


def _span(array: Any) -> tuple[int, int]:
    if isinstance(array, np.ndarray):
        low, high = np.lib.array_utils.byte_bounds(array)
        return (low, high) if array.size else (low, low)
    if hasattr(array, "__cuda_array_interface__"):
        low = array.data.ptr
        return low, low + sum(
            abs(s) * (n - 1) for s, n in zip(array.strides, array.shape, strict=True)
        ) + array.itemsize
    return id(array), id(array) + 1  # a scalar, or what has no memory


# ---- checks as text ----
class _Text:
    """Writes the guards as the lines of one function."""

    def __init__(self, has_table: bool) -> None:
        self.has_table = has_table
        self.facts: dict[Any, dict[Any, Fact | None]] = {}  # of what they are about, by identities: each once, in order
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"same": same, "mro_of": mro_of, "alias_pattern": alias_pattern, "type": type}
        self.scope |= {"len": len, "tuple": tuple, "map": map, "id": id, "list": list, "LEAF": _base.LEAF}
        self.scope |= {"array_of": _base.array_slot.__get__, "edge_of": _base._edge_slot.__get__}
        self.scope["extra_of"] = _base.TensorBase.__dict__["_extra"].__get__
        self.names: dict[int, str] = {}  # of constants, by identity
        self.pinned: dict[int, Any] = {}  # sources whose object is known, by identity of the source
        self.locals: dict[tuple[str, ...], str] = {}
        self.mappings: dict[int, Any] = {}  # of classes: reading `__dict__` makes a new one

    def constant(self, value: Any) -> str:
        if value is None or value is True or value is False or (type(value) is str and len(value) < 60):
            return repr(value)
        if type(value) is int and abs(value) < 1 << 60:
            return repr(value)
        if id(value) not in self.names:
            self.names[id(value)] = name = f"k{len(self.names)}"
            self.scope[name] = value
        return self.names[id(value)]

    def local(self, expression: str) -> str:
        """Name the value of an expression that is used more than once, or by several guards."""
        key = (expression,)
        if key not in self.locals:
            self.locals[key] = name = f"v{len(self.locals)}"
            self.lines.append(f"{name} = {expression}")
        return self.locals[key]

    def known(self, source: Source) -> Any:
        """Return the object that is certain to be at a source, or MISSING."""
        return source.key if source.step == "constant" else self.pinned.get(id(source), MISSING)

    def holder(self, source: Source) -> tuple[str, str] | None:
        """Return the mapping in which a source is an entry, and its key; None for other steps."""
        base, key = source.base, self.constant(source.key)
        assert base is not None
        known = self.known(base)
        if source.step in ("global", "builtin"):
            if known is not MISSING:
                return self.constant(getattr(known, "__globals__" if source.step == "global" else "__builtins__")), key
            return f"{self.expression(base)}.__{source.step}s__", key
        if source.step == "class":
            return self.constant(self.mappings.setdefault(id(known), known.__dict__)), key  # classes are always pinned
        if source.step == "attribute":
            if type(known) is ModuleType or (known is not MISSING and isinstance(known, ModuleType)):
                return self.constant(known.__dict__), key
            return self.local(f"{self.expression(base)}.__dict__"), key
        if source.step == "item":
            return self.expression(base), key
        if source.step == "kwdefault":
            return f"{self.expression(base)}.__kwdefaults__", key
        return None

    def expression(self, source: Source) -> str:
        if id(source) in self.pinned:
            return self.constant(self.pinned[id(source)])
        if source.base is None:
            return source.step if source.step != "constant" else self.constant(source.key)
        held = self.holder(source)
        if held is not None:
            return self.local(f"{held[0]}[{held[1]}]")
        known = self.known(source.base)
        if source.step == "cell" and known is not MISSING:
            return self.local(f"{self.constant(known.__closure__[source.key])}.cell_contents")
        form = FORMS[source.step]
        base = self.expression(source.base)
        return self.local(form.format(base=base, key=self.constant(source.key), name=source.key))

    def once(self, source: Source) -> str:
        """Return the expression of a source that is used by one guard only: it needs no name."""
        if source.base is None or id(source) in self.pinned:
            return self.expression(source)
        held = self.holder(source)
        if held is not None and (f"{held[0]}[{held[1]}]",) not in self.locals:
            return f"{held[0]}[{held[1]}]"
        return self.expression(source)

    def dictionary(self, source: Source) -> Fact | None:
        """Return the beginning of facts about the dictionary in which a source is an entry, if that is a constant."""
        known = MISSING if source.base is None or type(source.key) is not str else self.known(source.base)
        if known is MISSING:
            return None
        if source.step in ("global", "builtin"):
            return Fact("dictionary", getattr(known, f"__{source.step}s__"))
        if source.step == "class" or (source.step == "attribute" and isinstance(known, ModuleType)):
            return Fact("dictionary", dictionary_of(known.__dict__))
        if source.step == "attribute":
            return Fact("object", known)
        return Fact("dictionary", known) if source.step == "item" and isinstance(known, dict) else None

    def note(self, guard: Guard) -> bool:
        """Put a guard into the table, if it asks for no more than a table knows."""
        source, kind, expected = guard
        known = self.known(source)
        about: Fact | None = None
        if known is not MISSING and (kind == "type" or (kind == "empty" and isinstance(known, dict))):
            facts = [Fact(kind, known, expected)]
        elif kind == "members" and type(known) is dict:
            about = Fact("dictionary", known)
            facts = [Fact("length", len(expected)), *[Fact("member", one) for one in expected]]
        elif kind in ("identity", "absent") or (kind == "value" and any(expected is one for one in SINGLE)):
            about = self.dictionary(source)
            if about is None:
                return False
            facts = [Fact("absent", source.key) if kind == "absent" else Fact("value", source.key, expected)]
        else:
            return False
        own = self.facts.setdefault(about and (about.kind, id(about.first)), {None: about})
        for at, fact in enumerate(facts):
            own[fact.kind, at, id(fact.first), id(fact.second)] = fact
        if kind == "identity":
            self.pinned[id(source)] = expected
        return True

    def condition(self, guard: Guard) -> str:
        """Return when a guard fails."""
        source, kind, expected = guard
        if kind == "identity":
            single = expected is None or expected is True or expected is False
            text = f"{self.once(source)} is not {expected if single else self.constant_object(expected)}"
            self.pinned[id(source)] = expected
            return text
        if kind == "absent":
            if source.step == "slot":
                return f"hasattr_of({self.constant(source.key)}, {self.expression(source.base)})"  # type: ignore[arg-type]
            held = self.holder(source)
            assert held is not None
            return f"{held[1]} in {held[0]}"
        if kind == "value":
            if self.known(source) is not MISSING:
                return ""  # it is the very object
            if any(expected is one for one in SINGLE):
                return f"{self.once(source)} is not {self.constant(expected)}"
            kept = self.constant_object(expected)
            value = self.expression(source)
            return f"{value} is not {kept} and not same({value}, {kept})"
        value = self.expression(source)
        if kind == "type":
            return f"type({value}) is not {self.constant(expected)}"
        if kind == "length":
            return f"len({value}) != {expected}"
        if kind == "keys":
            return f"not same(tuple({value}), {self.constant(expected)})" if expected else f"len({value})"
        if kind == "members":
            return f"tuple(map(id, {value}.values())) != {self.constant(tuple(map(id, expected)))}"
        if kind == "empty":
            return f"len({value})"
        if kind == "hookless":
            return f"(e := extra_of({value})) is not None and (e.hooked or e.hooks or e.post_hooks)"
        if kind == "tensor":
            return self.tensor(value, expected)
        assert kind == "aliases"
        return f"alias_pattern(({', '.join(map(self.expression, source.key))},)) != {self.constant(expected)}"

    def constant_object(self, value: Any) -> str:
        """Name a constant by its object, so that the very same object is found in no time."""
        if id(value) not in self.names:
            self.names[id(value)] = name = f"k{len(self.names)}"
            self.scope[name] = value
        return self.names[id(value)]

    def tensor(self, value: str, facts: TensorFacts) -> str:
        array = self.local(f"array_of({value})")
        tests = [
            f"type({value}) is not {self.constant(facts.kind)}",
            f"type({array}) is not {self.constant(facts.array_kind)}",
        ]
        tests.append(
            f"{array}.dtype is not {self.constant(facts.dtype)} and {array}.dtype != {self.constant(facts.dtype)}"
        )
        if facts.strides is not None:
            tests.append(f"{array}.shape != {facts.shape}")
            if len(facts.shape) > 0 and hasattr(facts.array_kind, "strides"):
                tests.append(f"{array}.strides != {facts.strides}")
        else:
            tests.append(f"{array}.ndim != {len(facts.shape)} or not {array}.flags.c_contiguous")
            tests += [
                f"{array}.shape[{k}] < 2" if n is None else f"{array}.shape[{k}] != {n}"
                for k, n in enumerate(facts.shape)
            ]
        edge = f"edge_of({value})"
        if not facts.requires_grad:
            tests.append(f"{edge} is not None")
        elif facts.leaf:
            tests.append(f"{edge} is not LEAF")
        else:
            tests.append(f"(e := {edge}) is None or e is LEAF")
        return " or ".join(f"({test})" for test in tests)


FAILURES = "(LookupError, AttributeError, TypeError, ValueError)"  # what is read is not there any more


def _write(
    guards: Sequence[Guard], failed: Callable[[int], str], passed: str, unread: str
) -> tuple[str, dict[str, Any]]:
    text = _Text(unread != "n" and machine.is_available())
    text.scope["hasattr_of"] = _slot_is_set
    done: set[str] = {""}
    exact = {id(guard.source) for guard in guards if guard.kind == "tensor"}
    for number, guard in enumerate(guards):
        if guard.kind == "type" and id(guard.source) in exact:
            continue  # the tensor's own guard says more
        if text.has_table and text.note(guard):
            continue
        text.lines.append(f"n = {number}" if unread == "n" else "")
        condition = text.condition(guard)
        if condition not in done:
            done.add(condition)
            text.lines.append(f"if {condition}:\n            return {failed(number)}")
    if text.facts:
        text.scope["facts_hold"] = checking([fact for own in text.facts.values() for fact in own.values() if fact])
        text.lines.insert(0, "if not facts_hold():\n            return False")
    lines = "\n        ".join(line for line in text.lines if line)
    body = f"def check(function, args, kwargs):\n    try:\n        {lines or 'pass'}\n    except {FAILURES}:\n        return {unread}\n"
    return body + f"    return {passed}\n", text.scope


def _slot_is_set(descriptor: Any, value: Any) -> bool:
    try:
        descriptor.__get__(value)
    except AttributeError:
        return False
    return True


def compile_guards(guards: Sequence[Guard]) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]:
    """Write guards as one function `check(function, args, kwargs)`: whether all hold. See Note [Guards]."""
    text, scope = _write(guards, lambda number: "False", "True", "False")
    check: Callable[..., bool] = _generated.emit("guards", text, scope)["check"]
    return check


def why_not(guards: Sequence[Guard], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the first guard that fails, as a sentence; nothing if all hold."""
    text, scope = _write(guards, str, "None", "n")
    failed = _generated.emit("guards, one by one", text, scope)["check"](function, args, kwargs)
    return "" if failed is None else f"no longer true: {guards[failed]}"
