"""How the proof of purity reads what exists: names, attributes and items, each with the guards that keep it true.

Note [Attributes without running code]
An attribute is looked up as `object.__getattribute__` would, by hand: data descriptors of the class, the instance's dictionary, other
attributes of the class, and for modules the dictionaries of parameters, buffers and submodules. What could have been found earlier
on the way is guarded to be absent still: a property that somebody adds to the class, an attribute of the instance that hides a method. A
class that computes its attributes (`__getattribute__`, `__getattr__`, descriptors other than functions, properties and slots) is refused.
"""

from __future__ import annotations

import enum
import functools
import sys
from abc import ABCMeta
from collections import OrderedDict, namedtuple
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NoReturn

from .._places import is_own
from .._size import Size
from ..nn.modules.module import Module
from ..nn.parameter import Buffer, Parameter
from ..tensor import _base
from ..tensor._functions.generators import Generator
from ..tensor._tensor import Tensor
from ._guards import Guard, Source, constant, is_immutable, mro_of
from ._numbers import Free, key_of
from ._values import NOTHING, Bound, Known, Lib, Tup, Value, const, join, one_of

TENSORS: tuple[type, ...] = (Tensor, Parameter, Buffer)
CONTAINERS = (list, dict, OrderedDict, set)
IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE
TUPLE_GETTER: type = type(namedtuple("_", "x").x)  # type: ignore[attr-defined]
MOST_GUARDS = 20_000


class Refused(Exception):  # noqa: N818 - no error of a caller
    """What stands in the way of a proof, and where."""

    def __init__(self, reason: str, place: tuple[str, int] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


def is_library_class(cls: Any) -> bool:
    """Tell whether a class is the library's own: found under its name in one of the package's modules."""
    if not is_own_module(cls.__module__):
        return False
    _, _, path = cls.__module__.partition(".")
    found: Any = sys.modules.get(".".join((__package__.partition(".")[0], path)).rstrip("."))
    for name in cls.__qualname__.split("."):
        found = vars(found).get(name) if isinstance(found, (ModuleType, type)) else None
    return found is cls or cls in _base.leaf_types


def is_own_module(name: Any) -> bool:
    """Tell whether a module of this name is the package's."""
    return type(name) is str and name.partition(".")[0] in ("retrograd", "torch")


def is_own_function(function: Any) -> bool:
    """Tell whether a function of Python is the library's."""
    return isinstance(function, FunctionType) and is_own(function.__code__.co_filename)


def is_library_attribute(value: Any) -> bool:
    """Tell whether a class of tensors holds something for which no code of a user's runs: its own methods, or a simple value."""
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, functools.partial):
        value = value.func
    if isinstance(value, FunctionType):
        return is_own_function(value)
    return is_library_class(type(value)) or is_immutable(value)


def flags(cls: Any) -> int:
    """Return what CPython notes of a class: with `IMMUTABLE_TYPE`, nobody can change it."""
    return cls.__flags__  # type: ignore[no-any-return]


class Lookups:
    """Reads what exists, and collects guards."""

    def __init__(self) -> None:
        self.guards: dict[Any, Guard] = {}
        self.kept: list[Any] = []  # keeps alive what is known by its address
        self.pinned: dict[int, Known] = {}
        self.sources: dict[Any, Source] = {}
        self.tensors: dict[int, tuple[Source, Any]] = {}
        self.objects: dict[int, tuple[Source, Any]] = {}
        self.place: tuple[str, int] | None = None
        self.free: frozenset[Any] = frozenset()  # numbers that are no constants, by their keys
        self.numbers: dict[Any, Free] = {}

    def refuse(self, reason: str) -> NoReturn:
        raise Refused(reason, self.place)

    def guard(self, source: Source, kind: str, expected: Any = None) -> None:
        """Add a guard, once."""
        self.guards.setdefault((id(source), kind), Guard(source, kind, expected))
        if len(self.guards) > MOST_GUARDS:
            self.refuse("the function reads too much that exists outside of it to check it at every call")

    def at(self, step: str, base: Source, key: Any) -> Source:
        """Return the source one step further; the same one for the same step."""
        where = step, id(base), type(key), key if isinstance(key, (str, int, bool)) or is_immutable(key) else id(key)
        if where not in self.sources:
            self.sources[where] = Source(step, base, key)
            self.kept.append(key)
        return self.sources[where]

    def of_class(self, cls: type) -> Source:
        """Return the source of a class that was found as the type of an object, or in its bases."""
        where = "constant", id(cls)
        if where not in self.sources:
            self.sources[where] = constant(cls, cls.__qualname__)
        return self.sources[where]

    # ---- what is found ----
    def found(self, value: Any, source: Source) -> Value:
        """Return what is known of an object at a source, with a guard that it stays there."""
        kind = type(value)
        if kind is tuple:
            self.guard(source, "type", tuple)
            self.guard(source, "length", len(value))
            return frozenset({Tup(tuple(self.found(one, self.at("item", source, k)) for k, one in enumerate(value)))})
        if self.free and kind in (int, float) and (key := key_of(source)) in self.free:
            self.guard(source, "type", kind)
            self.numbers.setdefault(key, Free(source, value))
            return one_of(kind)
        if is_immutable(value):
            # Equal sets may be in another order, and a NaN in a list is found by identity.
            by_identity = kind is frozenset or (kind in (float, complex) and value != value)
            self.guard(source, "identity" if by_identity else "value", value)
            return frozenset({Lib()}) if kind is Size else const(value)
        captured = source.root not in ("args", "kwargs")
        if isinstance(value, Tensor):
            if kind not in TENSORS and not (kind.__name__ in _base.UNWATCHED and is_library_class(kind)):
                self.refuse(f"{source} is a {kind.__qualname__}, a subclass of Tensor that may take over every call")
            if not captured:
                self.guard(source, "type", kind)
                return frozenset({Known(value, source, id(source))})
            self.tensors.setdefault(id(value), (source, value))
            return self.pin(value, source)
        if captured or self.is_lasting(value):
            return self.pin(value, source)
        self.guard(source, "type", kind)
        return frozenset({Known(value, source, id(source))})

    def pin(self, value: Any, source: Source) -> Value:
        """Guard an object by identity."""
        self.guard(source, "identity", value)
        self.kept.append(value)
        known = self.pinned.setdefault(id(value), Known(value, source))
        return frozenset({known})

    def is_lasting(self, value: Any) -> bool:
        """Tell whether an argument is expected to be the same object in the next call."""
        if type(value) is Generator:
            return False
        if isinstance(value, (FunctionType, BuiltinFunctionType, MethodType, type, ModuleType, Module, enum.Enum)):
            return True
        if type(value) is functools.partial:
            return True
        return (
            type(value) not in CONTAINERS and is_library_class(type(value)) and not isinstance(value, (Tensor, tuple))
        )

    def items(self, known: Known) -> list[tuple[Any, Value]]:
        """Return keys and values of a builtin container that exists, with guards on all of them."""
        value, source = known.value, known.source
        kind = type(value)
        if kind not in (list, dict, OrderedDict):
            self.refuse(f"{source} is a {kind.__name__}, which is looked through item by item")
        self.guard(source, "type", kind)
        if kind is list:
            self.guard(source, "length", len(value))
            return [(k, self.found(one, self.at("item", source, k))) for k, one in enumerate(value)]
        if not all(map(is_immutable, value)):
            self.refuse(f"{source} has keys that are no simple values")
        self.guard(source, "keys", tuple(value))
        return [(key, self.found(one, self.at("item", source, key))) for key, one in value.items()]

    def item(self, known: Known, key: Any) -> Value:
        """Return one item of a builtin container that exists; nothing if there is none."""
        value, source = known.value, known.source
        self.guard(source, "type", type(value))
        if type(value) is list:
            if type(key) is not int and type(key) is not bool:
                return join(NOTHING, *(one for _, one in self.items(known)))
            self.guard(source, "length", len(value))
            return self.found(value[key], self.at("item", source, key)) if -len(value) <= key < len(value) else NOTHING
        where = self.at("item", source, key)
        # Keys that are equal find each other: 1, 1.0 and True. Only simple keys are compared, by no code of a user's.
        if not all(map(is_immutable, value)):
            self.refuse(f"{source} has keys that are no simple values")
        if key not in value:
            self.guard(where, "absent")
            return NOTHING
        return self.found(value[key], where)

    # ---- classes ----
    def look_up(self, cls: type, name: str, after: type | None = None) -> tuple[type, Any] | None:
        """Find a name in the classes from which one inherits, after one of them for `super()`; guard the way."""
        self.check_metaclass(cls)
        order = mro_of(cls)
        self.guard(self.at("mro", self.of_class(cls), None), "identity", order)
        for one in order[0 if after is None else order.index(after) + 1 :]:
            immutable = bool(flags(one) & IMMUTABLE_TYPE)
            where = None if immutable else self.at("class", self.of_class(one), name)
            if name in one.__dict__:
                found = one.__dict__[name]
                if where is not None:
                    self.guard(where, "identity", found)
                return one, found
            if where is not None:
                self.guard(where, "absent")
        return None

    def check_metaclass(self, cls: type) -> None:
        """Refuse a class whose own class computes what is asked of it."""
        meta = type(cls)
        if meta in (type, ABCMeta, enum.EnumMeta) or is_library_class(meta) or flags(meta) & IMMUTABLE_TYPE:
            return
        if meta.__module__ in ("typing", "abc", "enum"):
            return
        self.refuse(f"{cls.__qualname__} has the metaclass {meta.__qualname__}, whose code would have to be skipped")

    def check_plain(self, cls: type) -> None:
        """Refuse a class that computes all attributes of its instances."""
        found = self.look_up(cls, "__getattribute__")
        if found is not None and not (flags(found[0]) & IMMUTABLE_TYPE or is_library_class(found[0])):
            self.refuse(f"{cls.__qualname__} defines __getattribute__, which runs for every attribute")
        shown = self.look_up(cls, "__dict__")
        if shown is not None and not isinstance(shown[1], (GetSetDescriptorType, MemberDescriptorType)):
            self.refuse(f"{cls.__qualname__} computes __dict__")

    def has_user_method(self, cls: type, name: str) -> bool:
        """Tell whether a class of a user's defines a special method."""
        found = self.look_up(cls, name)
        return found is not None and not (flags(found[0]) & IMMUTABLE_TYPE or is_library_class(found[0]))

    # ---- attributes ----
    def module_attribute(self, known: Known, name: str) -> Value:
        """Return an attribute of a module of Python."""
        module = known.value
        own = is_own_module(module.__name__)
        if type(module) is not ModuleType and not is_library_class(type(module)):
            self.refuse(f"the module {module.__name__} has a class of its own")
        where = self.at("attribute", known.source, name)
        if name not in module.__dict__ and own:
            try:
                value = getattr(module, name)  # the package loads many names when they are first used
            except AttributeError:
                return NOTHING
            if name not in module.__dict__:
                self.guard(where, "absent")
                self.kept.append(value)
                return frozenset({self.pinned.setdefault(id(value), Known(value, constant(value, where.text)))})
        if name in module.__dict__:
            return self.found(module.__dict__[name], where)
        self.guard(where, "absent")
        if "__getattr__" in module.__dict__:
            self.refuse(f"the module {module.__name__} has no {name} and asks its __getattr__")
        return NOTHING

    def class_attribute(self, known: Known, name: str, after: type | None = None, owner: Any = None) -> Value:
        """Return an attribute of a class, or with `owner` what `super()` finds for it."""
        cls = known.value
        if isinstance(cls, enum.EnumMeta) and owner is None:
            member = cls._member_map_.get(name)
            if member is not None:
                self.kept.append(member)
                return frozenset(
                    {self.pinned.setdefault(id(member), Known(member, self.at("class", self.of_class(cls), name)))}
                )
        if name in ("__name__", "__qualname__", "__module__", "__doc__") and owner is None:
            return one_of(str)
        found = self.look_up(cls, name, after)
        if found is None:
            if hasattr(type(cls), name) or self.has_user_method(type(cls), "__getattr__"):
                self.refuse(f"it reads {cls.__qualname__}.{name}, which the class of the class computes")
            return NOTHING
        home, value = found
        where = self.at("class", self.of_class(home), name)
        if isinstance(value, staticmethod):
            return self.hold(value.__func__, where)
        if isinstance(value, classmethod):
            bound = owner if type(owner) is Known and isinstance(owner.value, type) else known
            return frozenset(Bound(one, bound) for one in self.hold(value.__func__, where))
        if isinstance(value, FunctionType):
            function = self.hold(value, where)
            return function if owner is None else frozenset(Bound(one, owner) for one in function)
        if flags(home) & IMMUTABLE_TYPE:
            return self.hold(value, where)
        if hasattr(type(value), "__get__") and not isinstance(value, (BuiltinFunctionType, type, functools.partial)):
            self.refuse(f"{cls.__qualname__}.{name} is a {type(value).__name__}, which computes what is read")
        return self.found(value, where)

    def hold(self, value: Any, source: Source) -> Value:
        """Return an object that a guard on something around it knows already."""
        self.kept.append(value)
        return frozenset({self.pinned.setdefault(id(value), Known(value, constant(value, source.text)))})

    def instance_attribute(self, known: Known, name: str) -> tuple[str, Any]:
        """Return ("value", what is known of it), or ("property", function), ("field", index of a named tuple). See the note above."""
        value, source, cls = known.value, known.source, type(known.value)
        self.guard(source, "type", cls)
        self.check_plain(cls)
        found = self.look_up(cls, name)
        if isinstance(value, enum.Enum) and name in ("value", "name") and found is not None and found[0] is enum.Enum:
            own_value = vars_of(value) or {}
            return "value", self.found(own_value[f"_{name}_"], self.at("attribute", source, f"_{name}_"))
        if found is not None and (answer := self.described(known, found, name)) is not None:
            return answer
        own = vars_of(value)
        if own is not None:
            where = self.at("attribute", source, name)
            if name in own:
                return "value", self.found(own[name], where)
            self.guard(where, "absent")
        if found is not None:
            home, held = found
            where = self.at("class", self.of_class(home), name)
            if isinstance(held, FunctionType):
                return "value", frozenset(Bound(one, known) for one in self.hold(held, where))
            if isinstance(held, staticmethod):
                return "value", self.hold(held.__func__, where)
            if isinstance(held, classmethod):
                return "value", frozenset(Bound(one, self.class_of(known)) for one in self.hold(held.__func__, where))
            if hasattr(type(held), "__get__") and not isinstance(held, (BuiltinFunctionType, type, functools.partial)):
                self.refuse(f"{source}.{name} is a {type(held).__name__} of its class, which computes what is read")
            return "value", self.found(held, where)
        if isinstance(value, Module):
            return "value", self.member(known, name)
        if (computed := self.look_up(cls, "__getattr__")) is not None and not is_library_class(computed[0]):
            self.refuse(f"{source}.{name} is computed by {cls.__qualname__}.__getattr__")
        return "value", NOTHING

    def described(self, known: Known, found: tuple[type, Any], name: str) -> tuple[str, Any] | None:
        """Read a data descriptor: a property, a slot, a field of a named tuple; None if the class holds none."""
        home, held = found
        value, source, kind = known.value, known.source, type(held)
        if kind is property or issubclass(kind, property):
            return "property", held
        if kind is MemberDescriptorType:
            where = self.at("slot", source, held)
            try:
                inside = held.__get__(value)
            except AttributeError:
                self.guard(where, "absent")
                return "value", NOTHING
            return "value", self.found(inside, where)
        if kind is TUPLE_GETTER:
            return "field", held.__reduce__()[1][0]
        if kind is GetSetDescriptorType and name == "__class__":
            return "value", frozenset({self.class_of(known)})
        if hasattr(kind, "__set__") or hasattr(kind, "__delete__"):
            self.refuse(f"{source}.{name} is a {kind.__name__} of {home.__qualname__}, which computes what is read")
        return None

    def class_of(self, known: Known) -> Known:
        """Return the class of an object whose type is guarded."""
        (cls,) = self.hold(type(known.value), self.of_class(type(known.value)))
        self.guard(known.source, "type", type(known.value))
        return cls  # type: ignore[no-any-return]

    def member(self, known: Known, name: str) -> Value:
        """Return a parameter, a buffer or a submodule, as the library's `Module.__getattr__` does."""
        computed = self.look_up(type(known.value), "__getattr__")
        if computed is None or not is_library_class(computed[0]):
            self.refuse(f"{known.source}.{name} is computed by {type(known.value).__qualname__}.__getattr__")
        own = vars_of(known.value)
        for members in ("_parameters", "_buffers", "_modules"):
            held = None if own is None else own.get(members)
            if type(held) not in (dict, OrderedDict):
                self.refuse(f"{known.source}.{members} is no dictionary")
            where = self.at("attribute", known.source, members)
            self.guard(where, "identity", held)
            inside = self.at("item", where, name)
            if name in held:  # type: ignore[operator]
                inside.text = f"{known.source}.{name}"
                return self.found(held[name], inside)  # type: ignore[index]
            self.guard(inside, "absent")
        return NOTHING

    def note_object(self, known: Known) -> None:
        """Note a library object whose state the call uses."""
        self.objects.setdefault(id(known.value), (known.source, known.value))


def vars_of(value: Any) -> dict[str, Any] | None:
    """Return the dictionary of an instance, past whatever its class says of `__dict__`."""
    for cls in mro_of(type(value)):
        descriptor = cls.__dict__.get("__dict__")
        if isinstance(descriptor, (GetSetDescriptorType, MemberDescriptorType)):
            return descriptor.__get__(value)  # type: ignore[no-any-return]
    return None
