"""How the proof of purity follows calls: of Python's own functions, of the library's, of modules and of the user's."""

from __future__ import annotations

import builtins
import enum
import functools
import itertools
import operator
from collections import OrderedDict
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..amp.grad_scaler import GradScaler
from ..nn import functional
from ..nn.modules import container
from ..nn.modules import module as module_file
from ..nn.modules.module import Module
from ..optim import optimizer as optimizer_file
from ..optim.lr_scheduler import LRScheduler
from ..optim.optimizer import Optimizer
from ..tensor._tensor import Tensor
from . import _allowed as allowed
from . import _transforms as transforms
from ._guards import constant, mro_of
from ._lookups import IMMUTABLE_TYPE, Lookups, flags, is_library_class, is_own_function, vars_of
from ._module import GLOBAL_HOOKS, CompiledForward, OptimizedModule
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

STEP_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
FUNCTIONAL = constant(functional, "nn.functional")
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
SHOWN_BY_TUP: tuple[Any, ...] = (tuple, range, type({}.keys()), type({}.values()), type({}.items()))
BUILTIN_CONTAINERS = (list, dict, OrderedDict)
MOST_TURNS = 8


class Effect(NamedTuple):
    """What the library does in a call besides returning something. The recorder plays it again.

    `kind` is `write` (into a tensor, or its gradient), `random`, `value` (a tensor's value becomes a Python object, or decides
    a branch), `backward`, or `step` (of an optimizer, a scheduler, a scaler).
    """

    kind: str
    text: str
    place: tuple[str, int] | None


class Heap:
    """What is known of a list, a dictionary, a set or an object made in the call, over all times it is made."""

    def __init__(self) -> None:
        self.items: Value = NOTHING
        self.keys: Value = NOTHING
        self.fields: dict[str, Value] = {}


class Calls(Lookups):
    """Follows calls. Operators, iteration and syntax are the subclass's."""

    def __init__(self) -> None:
        super().__init__()
        self.heap: dict[Any, Heap] = {}
        self.effects: dict[tuple[Any, ...], Effect] = {}
        self.changed = False
        self.round = 0
        self.scheduled = False  # a schedule is stepped, which changes rates after the program
        self.reads_rates = False
        self.entered: Any = None  # the expression of a `with` statement that is looked at

    # ---- what the subclass does ----
    def call_user(self, function: Known, args: Args) -> Value:
        raise NotImplementedError

    def call_made(self, made: Made, args: Args) -> Value:
        raise NotImplementedError

    def elements(self, value: Value) -> Value:
        raise NotImplementedError

    def attribute(self, value: Value, name: str) -> Value:
        raise NotImplementedError

    def truth(self, value: Value) -> Value:
        raise NotImplementedError

    def subscript(self, value: Value, key: Value) -> Value:
        raise NotImplementedError

    def binary(self, left: Value, right: Value, site: Any, operation: Any = None) -> Value:
        raise NotImplementedError

    # ---- helpers ----
    def effect(self, kind: str, text: str) -> None:
        self.effects.setdefault((kind, text, self.place), Effect(kind, text, self.place))

    def local(self, kind: type, site: Any, items: Value = NOTHING, keys: Value = NOTHING) -> Value:
        """Return a container made here, with more that it may hold."""
        self.store((kind, site), items, keys)
        return frozenset({Local(kind, (kind, site))})

    def store(self, site: Any, items: Value = NOTHING, keys: Value = NOTHING) -> None:
        heap = self.heap.setdefault(site, Heap())
        more, more_keys = self.settled(join(heap.items, items)), self.settled(join(heap.keys, keys))
        self.changed |= more != heap.items or more_keys != heap.keys
        heap.items, heap.keys = more, more_keys

    def settled(self, value: Value) -> Value:
        """Forget constants that still change after some rounds, as those of a counter do."""
        return widened(value) if self.round > 3 else value

    def store_field(self, site: Any, name: str, value: Value) -> None:
        heap = self.heap.setdefault(site, Heap())
        more = self.settled(join(heap.fields.get(name, NOTHING), value))
        self.changed |= more != heap.fields.get(name, NOTHING)
        heap.fields[name] = more

    def is_tensor(self, one: Any) -> bool:
        """Tell whether a possibility may be a tensor."""
        return type(one) is Lib or (type(one) is Known and isinstance(one.value, Tensor))

    def check_given(self, values: Any, to: str, callables: list[Any] | None = None) -> set[Any]:
        """Refuse objects that run a user's code when somebody else looks at them; collect what may be called.

        Returns all that was looked at: the values and what they hold.
        """
        seen: set[Any] = set()
        pending = [one for value in values for one in value]
        while pending:
            one = pending.pop()
            if one in seen:
                continue
            seen.add(one)
            kind = type(one)
            if kind in (Const, Of, Lib):
                continue
            if kind is Tup:
                pending += [inner for item in one.items for inner in item]
            elif kind is Many:
                pending += one.item
            elif kind is Local and one.kind in (list, dict, set):
                heap = self.heap[one.site]
                pending += [*heap.items, *heap.keys]
            elif kind is Known:
                pending += self.given_object(one, to, callables)
            elif kind in (Made, Bound, Method, Applied) and callables is not None:
                callables.append(one)
            else:
                self.refuse(f"{to} receives {describe(one)}, whose code would have to be skipped")
        return seen

    def given_object(self, known: Known, to: str, callables: list[Any] | None) -> list[Any]:
        """Look at one object that exists and is passed on; return what it holds."""
        value = known.value
        kind = type(value)
        if isinstance(value, (Tensor, enum.Enum)):
            return []
        if kind in BUILTIN_CONTAINERS:
            return [inner for _, item in self.items(known) for inner in item]
        if isinstance(value, type) and (flags(value) & IMMUTABLE_TYPE or is_library_class(value)):
            return []
        if isinstance(value, (FunctionType, MethodType, BuiltinFunctionType, functools.partial, Module)):
            if callables is not None:
                callables.append(known)
                return []
        elif is_library_class(kind):
            self.note_object(known)
            return []
        self.refuse(f"{to} receives {known.source}, a {kind.__qualname__}, whose code would have to be skipped")

    def check_shown(self, values: Any) -> None:
        """Refuse to turn objects into text that show what no guard knows."""
        for one in (one for value in values for one in value):
            if type(one) is Known and not isinstance(one.value, Tensor) and type(one.value) not in BUILTIN_CONTAINERS:
                self.refuse(f"it turns {one.source}, a {type(one.value).__qualname__}, into a simple value")

    def call_back(self, callables: list[Any], given: set[Any]) -> Value:
        """Follow functions that the library calls, with what it may pass on: what it was given, and what they return."""
        passed = join(LIB, frozenset(given.difference(callables)))
        result: Value = NOTHING
        for _ in range(MOST_TURNS):
            more = join(result, *(self.call_one(one, Args(more=join(passed, result))) for one in callables))
            if more == result:
                return result
            result = self.settled(more)
        self.refuse("what the functions that it passes on return does not settle")

    # ---- calls ----
    def call(self, function: Value, args: Args, site: Any = None) -> Value:
        """Return what a call may return."""
        return join(NOTHING, *(self.call_one(one, args, site) for one in function))

    def call_one(self, one: Any, args: Args, site: Any = None) -> Value:
        kind = type(one)
        if kind is Known:
            return self.call_known(one, args, site)
        if kind is Bound:
            return self.call_bound(one, args, site)
        if kind is Made:
            return self.call_made(one, args)
        if kind is Method:
            return self.call_method(one, args, site)
        if kind is Applied:
            return transforms.apply(self, one, args, site)
        if kind is Lib and one.kind == "member":
            self.check_given(args.all(), "a method of a result")
            return LIB
        if kind is Lib:
            self.refuse("it calls something that is computed, which could be anything")
        if kind is Local and one.kind not in (list, dict, set):
            return self.call(self.attribute(frozenset({one}), "__call__"), args, site)
        return NOTHING  # it cannot be called

    def call_known(self, known: Known, args: Args, site: Any) -> Value:
        value = known.value
        if isinstance(value, FunctionType):
            if not is_own_function(value):
                return self.call_user(known, args)
            if (compiled := (vars_of(value) or {}).get("_compiled")) is not None:  # it runs inside of what is recorded
                return self.call(self.hold(compiled.function, known.source), args, site)
            return self.call_library(known, args, site)
        if isinstance(value, MethodType):
            owner = self.found(value.__self__, self.at("field", known.source, "__self__"))
            function = self.found(value.__func__, self.at("field", known.source, "__func__"))
            return join(NOTHING, *(self.call_bound(Bound(f, o), args, site) for f in function for o in owner))
        if type(value) is functools.partial:
            return self.call_partial(known, args, site)
        if isinstance(value, type):
            return self.construct(known, args, site)
        if isinstance(value, Module):
            return self.call_module(known, args)
        if isinstance(value, BuiltinFunctionType) or type(value) is np.ufunc:
            return self.call_builtin(known, args, site)
        if type(value) is CompiledForward:
            return self.call(self.hold(value.run, known.source), args, site)
        if flags(type(value)) & IMMUTABLE_TYPE:
            self.refuse(f"it calls {known.source}, which is not known to be without effects")
        kind, found = self.instance_class_attribute(known, "__call__")
        if kind is None:
            return NOTHING
        return self.call(found, args, site)

    def instance_class_attribute(self, known: Known, name: str) -> tuple[type | None, Value]:
        """Return a special method as Python finds it: in the class only."""
        self.guard(known.source, "type", type(known.value))
        found = self.look_up(type(known.value), name)
        if found is None:
            return None, NOTHING
        if not isinstance(found[1], FunctionType):
            self.refuse(f"{type(known.value).__qualname__}.{name} is no function")
        where = self.at("class", self.of_class(found[0]), name)
        return found[0], frozenset(Bound(one, known) for one in self.hold(found[1], where))

    def call_partial(self, known: Known, args: Args, site: Any) -> Value:
        value, source = known.value, known.source
        function = self.found(value.func, self.at("field", source, "func"))
        (given,) = self.found(value.args, self.at("field", source, "args"))
        held = self.at("field", source, "keywords")
        self.guard(held, "keys", tuple(value.keywords))
        keywords = {name: self.found(one, self.at("item", held, name)) for name, one in value.keywords.items()}
        keywords |= dict(args.keywords)
        whole = Args((*given.items, *args.positional), tuple(keywords.items()), args.more, args.more_keywords)
        return self.call(function, whole, site)

    def call_bound(self, bound: Bound, args: Args, site: Any) -> Value:
        function = bound.function
        if not isinstance(function.value, FunctionType):
            self.refuse(f"it calls {function.source}, which is no function of Python")
        if is_own_function(function.value):
            return self.call_library_method(bound, args, site)
        return self.call_user(function, args.after(frozenset({bound.owner})))

    # ---- Python's own ----
    def call_builtin(self, known: Known, args: Args, site: Any) -> Value:
        value = known.value
        name = getattr(value, "__name__", type(value).__name__)
        handler = HANDLERS.get(value)
        if handler is not None:
            self.check_unpacked(value, args)
            return handler(self, args, site)  # type: ignore[no-any-return]
        if value in allowed.ON_NUMBERS:
            for one in (one for item in args.all() for one in item):
                if type(one) is Known and not isinstance(one.value, Tensor):
                    self.refuse(f"{name} receives {one.source}, which is no number")
                if self.is_tensor(one) and type(value) is np.ufunc:
                    self.refuse(f"it calls numpy.{name} on a tensor, which nobody can record")
            if type(value) is np.ufunc and args.keywords:
                self.refuse(f"it calls numpy.{name} with options")
            self.check_given(args.all(), name)
            self.note_values(args, name)
            result = allowed.ON_NUMBERS[value]
            return LIB if result is None else one_of(result)
        if value in allowed.OPERATORS:
            return self.call_operator(value, args, site)
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType) and type(owner) in BUILTIN_CONTAINERS:
            self.refuse(f"it calls {known.source}, a method of a {type(owner).__name__} that exists outside of it")
        self.refuse(
            f"it calls {getattr(value, '__module__', None) or 'builtins'}.{name}, which is not known to be without effects"
        )

    def check_unpacked(self, function: Any, args: Args) -> None:
        """Refuse `map(*some)`, where nobody knows which argument is the function."""
        if (args.more and function not in UNPACKED) or (args.more_keywords and function not in (dict, OrderedDict)):
            self.refuse(f"it calls {function.__name__} with arguments that are unpacked")

    def call_operator(self, function: Any, args: Args, site: Any) -> Value:
        if function is operator.getitem and len(args.positional) == 2:
            return self.subscript(args.positional[0], args.positional[1])
        if function is operator.not_ or function is operator.truth:
            self.truth(args.positional[0])
            return BOTH
        self.check_given(args.all(), f"operator.{function.__name__}")
        self.note_values(args, function.__name__) if function is operator.index else None
        return LIB

    def note_values(self, args: Args, name: str) -> None:
        if any(self.is_tensor(one) for value in args.all() for one in value):
            self.effect("value", f"{name}(...)")

    def construct(self, known: Known, args: Args, site: Any) -> Value:
        """Follow the making of an object."""
        cls = known.value
        self.check_metaclass(cls)
        if cls in HANDLERS:
            self.check_unpacked(cls, args)
            return HANDLERS[cls](self, args, site)  # type: ignore[no-any-return]
        if cls in allowed.CHAINED or cls in allowed.GROUPED:
            if args.keywords and not all(name in ("repeat", "fillvalue", "strict") for name, _ in args.keywords):
                self.refuse(f"it calls itertools.{cls.__name__} with options")
            inner = join(NOTHING, *(self.elements(value) for value in args.positional), self.elements(args.more), NONE)
            if cls in (itertools.repeat, itertools.count):
                return frozenset({Many(join(LIB, *args.positional))})
            return frozenset({Many(inner if cls in allowed.CHAINED else frozenset({Many(inner)}))})
        if issubclass(cls, BaseException) and flags(cls) & IMMUTABLE_TYPE:
            return frozenset({Of(cls)})
        if is_library_class(cls):
            return self.construct_library(known, args, site)
        if flags(cls) & IMMUTABLE_TYPE:
            self.refuse(f"it makes a {cls.__qualname__}, which is not known to be without effects")
        return self.construct_user(known, args, site)

    def construct_library(self, known: Known, args: Args, site: Any) -> Value:
        """Make a context of the library in a `with` statement: elsewhere, some change the mode at once."""
        cls = known.value
        if allowed.is_context(cls) and site is not None and site[0] is self.entered:
            self.check_given(args.all(), cls.__name__)
            return frozenset({Known(cls, known.source, 1)})
        self.refuse(f"it makes a {cls.__qualname__} at every call")

    def construct_user(self, known: Known, args: Args, site: Any) -> Value:
        """Follow `__init__` of a user's class, whose object nobody else knows yet."""
        cls = known.value
        if type(cls) is not type:
            self.refuse(f"it makes a {cls.__qualname__}, whose class has the metaclass {type(cls).__qualname__}")
        for name in ("__new__", "__setattr__", "__getattribute__", "__del__"):
            if self.has_user_method(cls, name):
                self.refuse(f"it makes a {cls.__qualname__}, which defines {name}")
        if not all(
            one is object or (not flags(one) & IMMUTABLE_TYPE and not is_library_class(one)) for one in mro_of(cls)
        ):
            self.refuse(f"it makes a {cls.__qualname__}, which is made in another way than plain objects")
        self.heap.setdefault((cls, site), Heap())
        made = Local(cls, (cls, site))
        found = self.look_up(cls, "__init__")
        if found is not None and isinstance(found[1], FunctionType):
            function = self.hold(found[1], self.at("class", self.of_class(found[0]), "__init__"))
            self.call(frozenset(Bound(one, made) for one in function), args, site)
        return frozenset({made})

    # ---- methods by name ----
    def call_method(self, method: Method, args: Args, site: Any) -> Value:
        owner, name = method.owner, method.name
        if type(owner) is Local:
            return self.call_local(owner, name, args, site)
        if self.is_tensor(owner):
            return self.call_tensor(name, args, owner)
        if type(owner) is Known and type(owner.value) in BUILTIN_CONTAINERS:
            return self.read_container(owner, name, args, site)
        if args.more_keywords and type(owner) in (Local, Known):
            self.refuse(f"it calls {name} with arguments that are unpacked")
        if type(owner) in (Tup, Many):
            if name not in ("index", "count"):
                self.refuse(f"it calls {name} of a tuple or an iterator")
            self.check_given([frozenset({owner}), *args.all()], f"tuple.{name}")
            return one_of(int)
        self.check_given([frozenset({owner}), *args.all()], name)  # of a number or a string
        if name in ("join", "format", "format_map", "__format__"):
            self.note_values(args, name)
        text = owner == Of(str) or (type(owner) is Const and type(owner.value) is str)
        if text and name in ("split", "rsplit", "splitlines"):
            return self.local(list, site, one_of(str))
        if text and name in ("partition", "rpartition"):
            return frozenset({Many(one_of(str))})
        return one_of(allowed.OF_TEXTS[name]) if text and name in allowed.OF_TEXTS else LIB

    def call_local(self, owner: Local, name: str, args: Args, site: Any) -> Value:
        """Call a method of a container made in the call: whatever it changes, nobody else sees."""
        if is_library_class(owner.kind):  # the context of a custom Function
            self.check_given(args.all(), f"ctx.{name}")
            return NONE
        if name not in allowed.OF_LOCALS:
            self.refuse(f"it calls {owner.kind.__name__}.{name}, which is not known to be without effects")
        heap = self.heap[owner.site]
        given = [value for value in (*args.positional, args.more) if value]
        if owner.kind is set or name in ("index", "count", "remove", "__contains__"):
            self.check_given([heap.items, *given], f"{owner.kind.__name__}.{name}")  # compared or hashed
        if name in ("append", "add", "insert"):
            self.store(owner.site, join(NOTHING, *given))
            return NONE
        if name == "extend" or (owner.kind is set and name.endswith(("update", "union"))):
            self.store(owner.site, join(NOTHING, *map(self.elements, given)))
            return NONE if name != "union" else frozenset({owner})
        if name == "update":
            for value in given:
                keys, values = self.pairs(value)
                self.store(owner.site, values, keys)
            for key, value in args.keywords:
                self.store(owner.site, value, const(key))
            return NONE
        if name == "sort":
            self.sort_key(heap.items, args)
            return NONE
        if name == "setdefault":
            self.store(owner.site, join(NONE, *given[1:]), given[0] if given else NOTHING)
        if name in ("items", "keys", "values"):
            item = {"items": frozenset({Tup((heap.keys, heap.items))}), "keys": heap.keys, "values": heap.items}[name]
            return frozenset({Many(item)})
        if name == "popitem":
            return frozenset({Tup((heap.keys, heap.items))})
        if name in ("copy", "intersection", "difference", "symmetric_difference"):
            return self.local(owner.kind, site, heap.items, heap.keys)
        if name in ("index", "count", "__len__"):
            return one_of(int)
        if name in ("issubset", "issuperset", "isdisjoint", "__contains__"):
            return BOTH
        return join(heap.items, NONE, *given[1:])  # get, pop, setdefault, __getitem__

    def sort_key(self, items: Value, args: Args) -> None:
        key = dict(args.keywords).get("key", NONE)
        if key == NONE:
            self.check_given([items], "sorted")
        else:
            self.check_given([self.call(key, Args((items,)))], "sorted")

    def pairs(self, value: Value) -> tuple[Value, Value]:
        """Return keys and values of what a dictionary is made of."""
        keys, values = NOTHING, NOTHING
        for one in value:
            if type(one) is Local and one.kind is dict:
                keys, values = join(keys, self.heap[one.site].keys), join(values, self.heap[one.site].items)
            elif type(one) is Known and type(one.value) in (dict, OrderedDict):
                for key, item in self.items(one):
                    keys, values = join(keys, const(key)), join(values, item)
            elif type(one) is Lib:
                keys, values = join(keys, LIB), join(values, LIB)
            else:
                for pair in self.elements(frozenset({one})):
                    inner = self.elements(frozenset({pair}))
                    if type(pair) is Tup and len(pair.items) == 2:
                        keys, values = join(keys, pair.items[0]), join(values, pair.items[1])
                    else:
                        keys, values = join(keys, inner), join(values, inner)
        return keys, values

    def read_container(self, owner: Known, name: str, args: Args, site: Any) -> Value:
        """Call a method of a list or dictionary that existed before the call."""
        kind = type(owner.value).__name__
        if name not in allowed.READING:
            self.refuse(f"it changes {owner.source}, a {kind} that exists outside of it ({name})")
        first = args.positional[0] if args.positional else NOTHING
        if name == "get" and kind != "list":
            self.check_given(args.positional, "dict.get")
            if len(first) == 1 and type(one := next(iter(first))) is Const:
                found = self.item(owner, one.value)
                return found or (args.positional[1] if len(args.positional) > 1 else NONE)
            return join(NONE, *args.positional[1:], *(value for _, value in self.items(owner)))
        self.check_given(args.all(), f"{kind}.{name}")
        entries = self.items(owner)
        values = join(NOTHING, *(value for _, value in entries))
        if name in ("index", "count"):
            self.check_given([values], f"{kind}.{name}")
            return one_of(int)
        if name == "copy":
            if kind == "list":
                return self.local(list, site, values)
            return self.local(dict, site, values, join(NOTHING, *(const(key) for key, _ in entries)))
        if name == "keys":
            return frozenset({Tup(tuple(const(key) for key, _ in entries))})
        if name == "values":
            return frozenset({Tup(tuple(value for _, value in entries))})
        return frozenset({Tup(tuple(frozenset({Tup((const(key), value))}) for key, value in entries))})

    # ---- tensors ----
    def call_tensor(self, name: str, args: Args, owner: Any = None) -> Value:
        """Call a method of a tensor, or of another result of the library."""
        if why := allowed.denied_of_tensors(name):
            self.refuse(f"Tensor.{name} {why}")
        callables: list[Any] = []
        given = self.check_given(args.all(), f"Tensor.{name}", callables)
        self.note_call(name, args)
        if name in ("backward",):
            self.effect("backward", "backward()")
        elif (name.endswith("_") and not name.endswith("__")) or name in ("retain_grad", "__setitem__"):
            self.effect("write", f"{name}()")
        return join(LIB, self.call_back(callables, given))

    def note_call(self, name: str, args: Args) -> None:
        if name in allowed.RANDOM:
            self.effect("random", f"{name}()")
        if name in allowed.VALUES:
            self.effect("value", f"{name}()")
        if "out" in dict(args.keywords):
            self.effect("write", f"{name}(out=...)")

    # ---- the library ----
    def call_library(self, known: Known, args: Args, site: Any) -> Value:
        """Call a function of the library."""
        function = known.value
        name = function.__name__
        if (follow := transforms.FOLLOWED.get(function)) is not None:
            return follow(self, args, site)
        if (made := transforms.made_before(self, known)) is not None:
            return transforms.apply(self, made, args, site)
        if allowed.is_wrapper(function) and not allowed.is_allowed_function(function):
            return self.call_wrapper(known, args, site)
        owner = self.method_of_tensor(function)
        if not owner and not allowed.is_allowed_function(function):
            why = "which tells a setting" if name in allowed.SETTINGS else "whose effects are not recorded"
            self.refuse(f"it calls {function.__module__}.{function.__qualname__}, {why}")
        if owner and (why := allowed.denied_of_tensors(name)):
            self.refuse(f"Tensor.{name} {why}")
        callables: list[Any] = []
        given = self.check_given(args.all(), f"{function.__module__}.{name}", callables)
        self.note_call(name, args)
        if name in ("backward", "grad") and "autograd" in function.__module__:
            self.effect("backward", f"autograd.{name}()")
        elif name.endswith("_") and not name.endswith("__"):
            self.effect("write", f"{name}()")
        if not callables:
            return LIB
        return transforms.held(self.call_back(callables, given))

    def method_of_tensor(self, function: FunctionType) -> bool:
        return any(cls.__dict__.get(function.__name__) is function for cls in mro_of(Tensor))

    def call_wrapper(self, known: Known, args: Args, site: Any) -> Value:
        """Call a function that the library made of the user's, as `no_grad()(f)` and `grad(f)` are."""
        function = known.value
        code: CodeType = function.__code__
        inside: list[Any] = []
        precise = (function.__globals__.get("__name__") or "").endswith(("grad_mode", "autocast_mode"))
        for number, name in enumerate(code.co_freevars):
            try:
                value = function.__closure__[number].cell_contents
            except ValueError:
                continue
            pending = [value]
            while pending:
                one = pending.pop()
                if type(one) in (tuple, list):
                    pending += one
                elif self.is_wrapped(one, function):
                    inside += self.hold(one, self.at("cell", known.source, number))
                elif isinstance(one, dict) and one:
                    self.refuse(f"{known.source} keeps a dictionary ({name})")
                elif hasattr(type(one), "__enter__") and not allowed.is_context(type(one)):
                    self.refuse(f"{known.source} enters {type(one).__qualname__}, whose effects are not recorded")
        if precise:
            whole = transforms.shown_arguments(self, args)
            return join(NOTHING, *(self.call_one(one, whole) for one in inside))
        given = self.check_given(args.all(), str(known.source))
        return transforms.held(self.call_back(inside, given))

    def is_wrapped(self, value: Any, function: FunctionType) -> bool:
        """Tell whether something that the library keeps for a function is called by it."""
        if isinstance(value, FunctionType) and is_own_function(value):
            return value is not function and allowed.is_wrapper(value)
        return (
            callable(value)
            and not isinstance(value, type)
            and (isinstance(value, Module) or not is_library_class(type(value)))
        )

    def call_library_method(self, bound: Bound, args: Args, site: Any) -> Value:
        """Call a method that the library defines."""
        function, owner = bound.function.value, bound.owner
        name = function.__name__
        if self.is_tensor(owner):
            return self.call_tensor(name, args, owner)
        if type(owner) is not Known:
            self.refuse(f"it calls {function.__qualname__} on {describe(owner)}")
        value = owner.value
        if allowed.is_wrapper(function) and function.__closure__ and not is_library_class(type(value)):
            return self.call_wrapper(bound.function, args.after(frozenset({owner})), site)
        if isinstance(value, type):
            return self.call_class_method(owner, name, args, site)
        if isinstance(value, Module):
            return self.call_module_method(owner, function, name, args)
        if is_library_class(type(value)):  # a user's subclass may define what the library calls
            for cls in mro_of(type(value)):
                if name in allowed.STEPS.get(cls.__name__, ()):
                    return self.step(owner, name, args)
        self.refuse(f"it calls {type(value).__qualname__}.{name}, whose effects are not recorded")

    def step(self, owner: Known, name: str, args: Args) -> Value:
        """Follow a method of an optimizer, a scheduler or a scaler: its hooks and functions of the user's."""
        self.guard(owner.source, "type", type(owner.value))
        self.note_object(owner)
        callables: list[Any] = []
        given = self.check_given(args.all(), f"{type(owner.value).__name__}.{name}", callables)
        if isinstance(owner.value, LRScheduler):
            self.scheduled = True
        if type(owner.value) is GradScaler:
            self.found(owner.value._enabled, self.at("attribute", owner.source, "_enabled"))
            for one in given if name == "step" else ():
                if (
                    type(one) is not Known
                    or not isinstance(one.value, Optimizer)
                    or not is_library_class(type(one.value))
                ):
                    self.refuse(f"{owner.source}.step receives {describe(one)}")
                self.step(one, "step", Args())
        for key, held in (vars_of(owner.value) or {}).items():
            where = self.at("attribute", owner.source, key)
            if key in STEP_HOOKS:
                if held:
                    self.refuse(f"{owner.source} has hooks, which run at every step")
                self.guard(where, "identity", held)
                self.guard(where, "empty")
            elif isinstance(held, FunctionType) and not is_own_function(held):
                callables += self.found(held, where)
            elif type(held) is list and any(isinstance(one, LRScheduler) for one in held):
                self.guard(where, "identity", held)
                for _, value in self.items(Known(held, where)):
                    for one in value:
                        if not is_library_class(type(one.value)):
                            self.refuse(f"{owner.source} has a schedule of a class of the program's own")
                        self.step(one, "step", Args())
            elif type(held) is list and any(callable(one) and not is_library_class(type(one)) for one in held):
                self.guard(where, "identity", held)
                functions = self.items(Known(held, where))
                callables += [one for _, value in functions for one in value if value != NONE]
        for hooks in (optimizer_file._global_optimizer_pre_hooks, optimizer_file._global_optimizer_post_hooks):
            if hooks:
                self.refuse("hooks are registered for all optimizers, and run at every step")
            where = self.sources.setdefault(("hooks", id(hooks)), constant(hooks, "the hooks of all optimizers"))
            self.guard(where, "empty")
        self.call_back(callables, given)
        self.effect("step", f"{owner.source}.{name}()")
        return LIB

    def call_class_method(self, owner: Known, name: str, args: Args, site: Any) -> Value:
        """Call `apply` of a custom Function: the library calls its static methods."""
        from ..autograd.function import Function

        if name != "apply" or not issubclass(owner.value, Function):
            self.refuse(f"it calls {owner.source}.{name}, whose effects are not recorded")
        self.note_object(owner)
        results = [LIB]
        context = self.local(Function, (id(owner.value), "context"))
        given = [join(value, LIB) for value in args.positional]
        for part in ("forward", "setup_context", "backward", "vjp", "jvp", "vmap"):
            found = self.look_up(owner.value, part)
            if found is None or is_library_class(found[0]):
                continue
            function = self.class_attribute(owner, part)
            takes_context = part != "forward" or not self.has_user_method(owner.value, "setup_context")
            if part == "forward":
                results.append(
                    self.call(function, Args((*(context,) * takes_context, *given), args.keywords, args.more))
                )
            elif part == "setup_context":
                output = join(*results)
                self.call(function, Args((context, frozenset({Many(join(LIB, *given))}), output)))
            else:
                self.call(function, Args((join(context, LIB) if part == "vmap" else context,), (), LIB))
        self.check_given(args.all(), str(owner.source), [])
        return join(*results)

    # ---- modules ----
    def call_module(self, known: Known, args: Args) -> Value:
        """Follow a call of a module: no hooks, then its forward."""
        module, source = known.value, known.source
        self.guard(source, "type", type(module))
        found = self.look_up(type(module), "__call__")
        if found is None or found[1] is not Module.__dict__["__call__"]:
            self.refuse(f"{type(module).__qualname__} defines how it is called")
        self.check_plain(type(module))
        own = vars_of(module) or {}
        for name in HOOKS:
            hooks = own.get(name)
            if type(hooks) is not OrderedDict or hooks:
                self.refuse(f"{source} has hooks, which run at every call")
            where = self.at("attribute", source, name)
            self.guard(where, "identity", hooks)
            self.guard(where, "empty")
        for name in GLOBAL_HOOKS:
            hooks = vars(module_file)[name]
            if hooks:
                self.refuse("hooks are registered for all modules, and run at every call")
            where = self.sources.setdefault(("hooks", name), constant(hooks, name))
            self.guard(where, "empty")
        if type(module) is OptimizedModule:
            return self.call(self.original(known), args)
        _, forward = self.instance_attribute(known, "forward")
        results = []
        for one in forward:
            if type(one) is Bound and is_own_function(one.function.value):
                results.append(self.call_library_forward(known, one.function.value, args))
            else:
                results.append(self.call_one(one, args))
        return join(NOTHING, *results)

    def original(self, known: Known) -> Value:
        """Return the module inside of one that `torch.compile` has made."""
        ((_, child),) = self.children(known)
        return child

    def call_library_forward(self, known: Known, function: FunctionType, args: Args) -> Value:
        """Follow the forward of a layer of the library: guard what it may read, follow what it may call."""
        module, source, cls = known.value, known.source, type(known.value)
        self.note_object(known)
        for special in ("__getattr__", "__setattr__"):
            if self.has_user_method(cls, special):
                self.refuse(f"{cls.__qualname__} defines {special}, which its layer's code runs into")
        children = self.children(known)
        if function is container.Sequential.__dict__["forward"] and not self.has_user_method(cls, "__iter__"):
            value = args
            for _, child in children:
                value = Args((self.call(child, value),))
            return value.positional[0] if children else (args.positional[0] if args.positional else args.more)
        callables: list[Any] = []
        given = self.check_given(args.all(), str(source), callables)
        results = [LIB, self.call_back(callables, given)]
        results += [self.call(child, Args(more=LIB)) for _, child in children if child != NONE]
        self.members(known, guard="names")  # the library reads them by name
        own = vars_of(module) or {}
        for name in sorted(names_reached(cls, "forward")):
            if isinstance(held := vars(functional).get(name), FunctionType):  # a program may replace it
                if not is_own_function(held):
                    self.refuse(f"nn.functional.{name} is not the library's own")
                self.guard(self.at("attribute", FUNCTIONAL, name), "identity", held)
            if name in own and name not in SET_BY_MODULE:
                read = self.found(own[name], self.at("attribute", source, name))
                called: list[Any] = []
                self.check_given([read], str(source), called)
                results.append(self.call_back(called, set()))
            found = self.look_up(cls, name) if not is_library_class(cls) and not name.startswith("__") else None
            if found is not None and not is_library_class(found[0]) and isinstance(found[1], FunctionType):
                method = self.hold(found[1], self.at("class", self.of_class(found[0]), name))
                results.append(self.call(frozenset(Bound(one, known) for one in method), Args(more=LIB)))
            elif found is not None and isinstance(found[1], property) and not is_own_function(found[1].fget):
                self.refuse(f"{cls.__qualname__}.{name} is a property that {function.__qualname__} reads")
        if "training" in own:
            self.found(own["training"], self.at("attribute", source, "training"))
        return join(*results)

    def children(self, known: Known) -> list[tuple[str, Value]]:
        """Return the submodules of a module, with guards that they stay, in this order."""
        own = vars_of(known.value) or {}
        return self.entries(known, "_modules", own.get("_modules"), "members")

    def entries(self, known: Known, which: str, held: Any, guard: str) -> list[tuple[str, Value]]:
        if type(held) not in (dict, OrderedDict):
            self.refuse(f"{known.source}.{which} is no dictionary")
        self.guard(known.source, "type", type(known.value))
        where = self.at("attribute", known.source, which)
        self.guard(where, "identity", held)
        if guard == "members":
            self.guard(where, "members" if held else "empty", tuple(held.values()) or None)
        found = []
        for name, value in held.items():
            inside = self.at("item", where, name)
            inside.text = f"{known.source}.{name}" if name.isidentifier() else f"{known.source}[{name}]"
            found.append((name, self.found(value, inside)))
        return found

    def members(self, known: Known, guard: str = "members") -> list[tuple[str, Value]]:
        """Return the parameters and buffers of a module itself, with guards."""
        own = vars_of(known.value) or {}
        return [
            entry
            for which in ("_parameters", "_buffers")
            for entry in self.entries(known, which, own.get(which), guard)
        ]

    def tree(self, known: Known) -> list[Known]:
        """Return a module and all modules inside, guarding the structure and every parameter and buffer."""
        seen: dict[int, Known] = {}
        pending = [known]
        while pending:
            one = pending.pop(0)
            if id(one.value) in seen:
                continue
            seen[id(one.value)] = one
            self.members(one)
            pending += [child for _, value in self.children(one) for child in value if type(child) is Known]
        return list(seen.values())

    def call_module_method(self, owner: Known, function: FunctionType, name: str, args: Args) -> Value:
        """Call a method that the library defines for modules."""
        if name == "__call__":
            return self.call_module(owner, args)
        if name == "forward" or (name not in vars(Module) and name in names_reached(type(owner.value), "forward")):
            return self.call_library_forward(owner, function, args)
        if name in allowed.STEPS["Module"]:
            self.tree(owner)
            self.note_object(owner)
            self.effect("step", f"{owner.source}.{name}()")
            return frozenset({owner}) if name == "requires_grad_" else NONE
        if name not in allowed.MODULE_READS:
            self.refuse(f"it calls {owner.source}.{name}(), which changes the module or looks at all of it")
        self.check_given(args.all(), name)
        if name in ("__getitem__", "__len__", "__iter__", "__contains__", "keys", "items", "values"):
            return self.read_module_container(owner, name, args)
        modules = frozenset(self.tree(owner))
        if name in ("children", "modules"):
            return frozenset({Many(modules)})
        if name in ("named_children", "named_modules"):
            return frozenset({Many(frozenset({Tup((one_of(str), modules))}))})
        if name.startswith("get_"):
            return modules if name == "get_submodule" else LIB
        return frozenset({Many(frozenset({Tup((one_of(str), LIB))}) if name.startswith("named_") else LIB)})

    def read_module_container(self, owner: Known, name: str, args: Args) -> Value:
        """Read a Sequential, ModuleList, ModuleDict, ParameterList or ParameterDict."""
        if not isinstance(owner.value, (container.Sequential, container.ModuleList, container.ModuleDict)):
            parameters = self.members(owner)
            if not isinstance(owner.value, (container.ParameterList, container.ParameterDict)):
                self.refuse(f"it looks through {owner.source}, a {type(owner.value).__qualname__}")
            if len(parameters) != len(owner.value):
                self.refuse(f"{owner.source} holds values that are no parameters")
            values, keys = LIB, one_of(str)
        else:
            children = self.children(owner)
            if name == "__getitem__" and args.positional:
                return self.pick_module(owner, children, args.positional[0])
            values, keys = (
                join(NOTHING, *(value for _, value in children)),
                join(NOTHING, *(const(key) for key, _ in children)),
            )
        if name in ("__len__", "__contains__"):
            return const(len(owner.value)) if name == "__len__" else BOTH
        if name == "items":
            return frozenset({Many(frozenset({Tup((keys, values))}))})
        if name == "keys" or (
            name == "__iter__" and isinstance(owner.value, (container.ModuleDict, container.ParameterDict))
        ):
            return frozenset({Many(keys)})
        return values if name == "__getitem__" else frozenset({Many(values)})

    def pick_module(self, owner: Known, children: list[tuple[str, Value]], key: Value) -> Value:
        results = []
        for one in key:
            if type(one) is Const and type(one.value) is int:
                inside = -len(children) <= one.value < len(children)
                results.append(children[one.value][1] if inside else NOTHING)
            elif type(one) is Const and type(one.value) is str:
                results += [value for name, value in children if name == one.value]
            elif one in (Of(int), Of(str)) or type(one) is Lib:
                results += [value for _, value in children]
            else:
                self.refuse(f"it takes a part of {owner.source}, which makes a new container of modules")
        return join(NOTHING, *results)


SET_BY_MODULE = frozenset({"training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", *HOOKS})


def names_reached(cls: type, method: str) -> frozenset[str]:
    """Return the names that the library's code may read of a module, from a method on: attributes and strings in its code."""
    seen: set[CodeType] = set()
    names: set[str] = set()
    pending: list[Any] = [getattr(cls, method)]
    while pending:
        function = pending.pop()
        code = getattr(function, "__code__", None)
        if code is None or code in seen:
            continue
        for inner in _with_inner(code):
            seen.add(inner)
            fresh = {*inner.co_names, *(one for one in inner.co_consts if type(one) is str)} - names
            names |= fresh
            for name in fresh:
                for home in mro_of(cls):
                    held = home.__dict__.get(name)
                    held = held.fget if isinstance(held, property) else getattr(held, "__func__", held)
                    if is_own_function(held):
                        pending.append(held)
    return frozenset(names)


def _with_inner(code: CodeType) -> list[CodeType]:
    return [code, *(inner for one in code.co_consts if isinstance(one, CodeType) for inner in _with_inner(one))]


def describe(one: Any) -> str:
    """Say in a few words what a possibility is."""
    if type(one) is Known:
        return f"{one.source}, a {type(one.value).__qualname__}"
    if type(one) is Local:
        return f"a {one.kind.__qualname__} made in the call"
    if type(one) in (Made, Bound, Method, Applied):
        return "a function"
    if type(one) is Super:
        return "super()"
    return "a value"


# ---- Python's functions and types, one by one ----
def _plain(result: Value, name: str) -> Any:
    def handle(calls: Calls, args: Args, site: Any) -> Value:
        calls.check_given(args.all(), name)
        calls.check_shown(args.all())
        calls.note_values(args, name)
        return result

    return handle


def _len(calls: Calls, args: Args, site: Any) -> Value:
    results = []
    for one in join(NOTHING, *args.positional[:1]):
        if type(one) is Tup:
            results.append(const(len(one.items)))
        elif type(one) is Known and type(one.value) in BUILTIN_CONTAINERS:
            calls.guard(one.source, "type", type(one.value))
            calls.guard(one.source, "length", len(one.value))
            results.append(const(len(one.value)))
        elif (
            type(one) is Known
            and isinstance(one.value, tuple)
            and not calls.has_user_method(type(one.value), "__len__")
        ):
            calls.guard(one.source, "type", type(one.value))
            calls.guard(one.source, "length", tuple.__len__(one.value))
            results.append(const(tuple.__len__(one.value)))
        elif type(one) is Known and isinstance(one.value, Module):
            kind, found = calls.instance_class_attribute(one, "__len__")
            results.append(calls.call(found, Args()) if kind is not None else NOTHING)
        elif type(one) is Const and hasattr(one.value, "__len__"):
            results.append(const(len(one.value)))
        else:
            results.append(one_of(int))
            if type(one) is Known or (type(one) is Local and one.kind not in (list, dict, set)):
                calls.check_given([frozenset({one})], "len")
    return join(NOTHING, *results)


def _isinstance(calls: Calls, args: Args, site: Any) -> Value:
    if len(args.positional) != 2:
        return NOTHING
    value, classes = args.positional
    pending = list(classes)
    found: list[Any] = []
    while pending:
        one = pending.pop()
        if type(one) is Tup:
            pending += [inner for item in one.items for inner in item]
        elif type(one) is Known and isinstance(one.value, type):
            meta = type(one.value)
            if meta.__dict__.get("__instancecheck__") is not None and not (is_library_class(meta) or meta is type):
                calls.refuse(f"isinstance asks the class of {one.value.__qualname__}")
            calls.check_metaclass(one.value)
            found.append(one.value)
        else:
            found.append(None)
    if None in found:
        calls.check_given([classes], "isinstance")
        return BOTH
    answers = []
    for one in value:
        if type(one) is Const or (
            type(one) is Known and (is_library_class(type(one.value)) or isinstance(one.value, Tensor))
        ):
            answers.append(const(isinstance(one.value, tuple(found))))
        elif type(one) is Known:
            calls.guard(one.source, "type", type(one.value))
            calls.guard(calls.at("mro", calls.of_class(type(one.value)), None), "identity", mro_of(type(one.value)))
            calls.check_plain(type(one.value))
            if calls.has_user_method(type(one.value), "__class__"):
                calls.refuse(f"{type(one.value).__qualname__} computes __class__")
            answers.append(const(bool(set(found) & set(mro_of(type(one.value))))))
        elif type(one) in (Of, Tup, Local):
            # a Tup also stands for a range or for what a dictionary shows, a dict for an OrderedDict
            kinds: tuple[Any, ...] = SHOWN_BY_TUP if type(one) is Tup else (one.kind,)
            kinds = (dict, OrderedDict) if kinds == (dict,) else kinds
            answers += [const(issubclass(kind, tuple(found))) for kind in kinds]
        else:
            answers.append(BOTH)
    return join(NOTHING, *answers)


def _elements_to(kind: type) -> Any:
    def handle(calls: Calls, args: Args, site: Any) -> Value:
        inner = join(NOTHING, *map(calls.elements, (*args.positional, args.more)))
        if kind is set:
            calls.check_given([inner], "set")
        return calls.local(kind, site, inner)

    return handle


def _tuple(calls: Calls, args: Args, site: Any) -> Value:
    if not args.positional and not args.more:
        return frozenset({Tup(())})
    results: list[Value] = []
    for one in join(NOTHING, *args.positional[:1]):
        if type(one) is Tup:
            results.append(frozenset({one}))
        elif type(one) is Known and type(one.value) is list:
            results.append(frozenset({Tup(tuple(value for _, value in calls.items(one)))}))
        else:
            results.append(frozenset({Many(calls.elements(frozenset({one})))}))
    return join(NOTHING, *results)


def _dict(calls: Calls, args: Args, site: Any) -> Value:
    keys, values = NOTHING, NOTHING
    for given in (*args.positional, args.more_keywords):
        more_keys, more = calls.pairs(given)
        keys, values = join(keys, more_keys), join(values, more)
    calls.check_given([keys], "dict")
    for name, value in args.keywords:
        keys, values = join(keys, const(name)), join(values, value)
    return calls.local(dict, site, values, keys)


def _frozenset(calls: Calls, args: Args, site: Any) -> Value:
    inner = join(NOTHING, *map(calls.elements, args.positional))
    calls.check_given([inner], "frozenset")
    if not all(type(one) in (Const, Of) for one in inner):
        calls.refuse("it makes a frozenset of tensors, whose order depends on addresses")
    return frozenset({Many(inner)})


def _sorted(calls: Calls, args: Args, site: Any) -> Value:
    inner = join(NOTHING, *map(calls.elements, args.positional))
    calls.sort_key(inner, args)
    return calls.local(list, site, inner)


def _extreme(calls: Calls, args: Args, site: Any) -> Value:
    several = len(args.positional) > 1
    inner = join(
        NOTHING,
        *(args.positional if several else map(calls.elements, args.positional)),
        calls.elements(args.more),
        args.more,
    )
    calls.sort_key(inner, args)
    calls.note_values(Args((inner,)), "max")
    keywords = dict(args.keywords)
    if all(type(one) is Const for one in inner) and several and "key" not in keywords:
        return inner
    return join(inner, keywords.get("default", NOTHING))


def _sum(calls: Calls, args: Args, site: Any) -> Value:
    inner = join(NOTHING, *map(calls.elements, args.positional[:1]))
    start = join(const(0), *args.positional[1:], *(value for _, value in args.keywords))
    return join(start, calls.binary(join(start, inner), inner, site), calls.binary(inner, inner, (site, "sum")))


def _any(calls: Calls, args: Args, site: Any) -> Value:
    calls.truth(join(NOTHING, *map(calls.elements, args.positional)))
    return BOTH


def _bool(calls: Calls, args: Args, site: Any) -> Value:
    return calls.truth(args.positional[0]) if args.positional else const(False)


def _zip(calls: Calls, args: Args, site: Any) -> Value:
    inner = tuple(map(calls.elements, args.positional))
    if args.more:
        return frozenset({Many(frozenset({Many(join(*inner, calls.elements(calls.elements(args.more))))}))})
    return frozenset({Many(frozenset({Tup(inner)}))})


def _enumerate(calls: Calls, args: Args, site: Any) -> Value:
    return frozenset({Many(frozenset({Tup((one_of(int), calls.elements(join(NOTHING, *args.positional[:1]))))}))})


def _reversed(calls: Calls, args: Args, site: Any) -> Value:
    for one in join(NOTHING, *args.positional):
        if (
            type(one) is Known
            and not isinstance(one.value, (Tensor, Module))
            and type(one.value) not in BUILTIN_CONTAINERS
        ):
            calls.refuse(f"it goes through {one.source}, a {type(one.value).__qualname__}, backwards")
    return frozenset({Many(join(NOTHING, *map(calls.elements, args.positional)))})


def _iter(calls: Calls, args: Args, site: Any) -> Value:
    if len(args.positional) != 1:
        calls.refuse("it makes an iterator that calls a function")
    return frozenset({Many(calls.elements(args.positional[0]))})


def _next(calls: Calls, args: Args, site: Any) -> Value:
    results = []
    for one in join(NOTHING, *args.positional[:1]):
        if type(one) is Known:
            calls.refuse(f"it moves {one.source}, an iterator that exists outside of it")
        results.append(calls.elements(frozenset({one})))
    return join(NOTHING, *results, *args.positional[1:])


def _map(calls: Calls, args: Args, site: Any) -> Value:
    if not args.positional:
        return NOTHING
    function, *iterables = args.positional
    return frozenset({Many(calls.call(function, Args(tuple(map(calls.elements, iterables))), site))})


def _filter(calls: Calls, args: Args, site: Any) -> Value:
    if len(args.positional) != 2:
        return NOTHING
    inner = calls.elements(args.positional[1])
    calls.truth(inner if args.positional[0] == NONE else calls.call(args.positional[0], Args((inner,)), site))
    return frozenset({Many(inner)})


def _reduce(calls: Calls, args: Args, site: Any) -> Value:
    if len(args.positional) < 2:
        return NOTHING
    function, iterable, *start = args.positional
    inner = calls.elements(iterable)
    result = join(inner, *start)
    for _ in range(8):
        more = join(result, calls.call(function, Args((result, inner)), site))
        if more == result:
            return result
        result = more
    calls.refuse("functools.reduce does not settle")


def _getattr(calls: Calls, args: Args, site: Any) -> Value:
    if len(args.positional) < 2 or not all(type(one) is Const and type(one.value) is str for one in args.positional[1]):
        calls.refuse("getattr with a name that is computed")
    found = [calls.attribute(args.positional[0], one.value) for one in args.positional[1]]
    return join(*found, *args.positional[2:])


def _hasattr(calls: Calls, args: Args, site: Any) -> Value:
    if len(args.positional) != 2 or not all(
        type(one) is Const and type(one.value) is str for one in args.positional[1]
    ):
        calls.refuse("hasattr with a name that is computed")
    for one in args.positional[1]:
        calls.attribute(args.positional[0], one.value)
    return BOTH


def _type(calls: Calls, args: Args, site: Any) -> Value:
    if len(args.positional) != 1:
        calls.refuse("it makes a class")
    results: list[Value] = []
    for one in args.positional[0]:
        if type(one) is Known:
            results.append(frozenset({calls.class_of(one)}))
        elif type(one) is Local:
            results.append(calls.hold(one.kind, calls.of_class(one.kind)))
        elif type(one) is Const:
            results.append(calls.hold(type(one.value), calls.of_class(type(one.value))))
        else:
            results.append(LIB)
    return join(NOTHING, *results)


def _callable(calls: Calls, args: Args, site: Any) -> Value:
    return BOTH


def _range(calls: Calls, args: Args, site: Any) -> Value:
    calls.check_given(args.all(), "range")
    calls.note_values(args, "range")
    given = [next(iter(value)) for value in args.positional if len(value) == 1]
    if len(given) == len(args.positional) and all(type(one) is Const and type(one.value) is int for one in given):
        try:
            numbers = range(*(one.value for one in given))
        except (TypeError, ValueError):
            return NOTHING
        if len(numbers) <= 16:
            return frozenset({Tup(tuple(map(const, numbers)))})
    return frozenset({Many(one_of(int))})


# These look at all of their arguments alike, however many there are.
UNPACKED = {zip, min, max, range, slice, int, float, str, repr, format, list, set}

HANDLERS: dict[Any, Any] = {
    len: _len,
    isinstance: _isinstance,
    issubclass: _plain(BOTH, "issubclass"),
    callable: _callable,
    min: _extreme,
    max: _extreme,
    sum: _sum,
    sorted: _sorted,
    any: _any,
    all: _any,
    iter: _iter,
    next: _next,
    getattr: _getattr,
    hasattr: _hasattr,
    repr: _plain(one_of(str), "repr"),
    format: _plain(one_of(str), "format"),
    builtins.map: _map,
    builtins.filter: _filter,
    zip: _zip,
    enumerate: _enumerate,
    reversed: _reversed,
    range: _range,
    slice: _plain(one_of(slice), "slice"),
    int: _plain(one_of(int), "int"),
    float: _plain(one_of(float), "float"),
    complex: _plain(one_of(complex), "complex"),
    str: _plain(one_of(str), "str"),
    bytes: _plain(one_of(bytes), "bytes"),
    bool: _bool,
    tuple: _tuple,
    list: _elements_to(list),
    set: _elements_to(set),
    frozenset: _frozenset,
    dict: _dict,
    OrderedDict: _dict,
    type: _type,
    functools.reduce: _reduce,
}
