"""Python's numbers that change from call to call: inputs of a program, as the arrays of tensors are.

Note [Numbers]
An int or a float that a function is given, or reads, is a constant of a record at first, and a guard says that it is the same. Where
another comes, the function is recorded anew with a `Number` in its place, which stands for the number as `Traced` stands for an array:
- arithmetic with it is a step of the program; beside an array it is an array without dimensions, which kernels read;
- a comparison is a check: what it decides is decided for the record;
- whoever wants to know which number it is (a size, `math.sqrt`, a text, a key) ends the recording. Then it is a constant again, for good.
What takes a number for a constant without asking would go unnoticed in the call that is recorded. So a record with numbers is tried again
with others before it is used.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._graph.node import PYTHON_SCALARS
from .._modes import current_mode
from ._guards import Guard, Source, same
from ._traced import STANDING, UnrecordableError

DTYPES = tuple(map(np.dtype, (np.float32, np.float64)))
INT64 = np.dtype(np.int64)


class NumberNeededError(UnrecordableError):
    """A number decides what a program is: which one it is must be a constant. `keys` are those it was computed from."""

    def __init__(self, reason: str, keys: frozenset[Any]) -> None:
        super().__init__(reason)
        self.keys = keys


class Number:
    """Stands for a number of Python's in a recording. See Note [Numbers]."""

    __slots__ = ("keys", "recorder", "thing", "value")
    __class__ = property(lambda self: type(self.thing))

    def __init__(self, recorder: Any, thing: Any, value: Any, keys: frozenset[Any]) -> None:
        self.recorder, self.thing, self.value, self.keys = recorder, thing, value, keys

    def __repr__(self) -> str:
        return f"Number({self.value}, {self.thing!r})"

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return self._needed()
        return self.recorder.call("call", ufunc, ufunc.__name__, inputs, {}, name=ufunc.__name__, owner=ufunc)

    def beside(self, dtype: Any) -> Number:
        """Return what stands beside an array of a dtype: itself, if that rounds it as it rounds any number of its kind."""
        return self if dtype in DTYPES or (dtype == INT64 and isinstance(self.thing, int)) else self._needed()

    def _needed(self, *args: Any, **options: Any) -> Any:
        if current_mode().recording is not self.recorder:
            raise TypeError("a number is being recorded by torch.compile in another thread")
        raise NumberNeededError("a number of Python's decides what is computed", self.keys)


STANDING.add(Number)
PYTHON_SCALARS.add(Number)


def _arithmetic(name: str, reflected: bool) -> Any:
    function = getattr(operator, name)

    def method(self: Number, *other: Any) -> Any:
        if other and type(other[0]) not in (int, float, bool, Number):
            return NotImplemented
        args = (*other, self) if reflected else (self, *other)
        if current_mode().recording is not self.recorder:  # another thread sees a plain number
            return function(*[one.thing if type(one) is Number else one for one in args])
        return self.recorder.computed(function, name, args)

    return method


for _name in "add sub mul truediv floordiv mod pow".split():  # noqa: SIM905
    setattr(Number, f"__{_name}__", _arithmetic(_name, False))
    setattr(Number, f"__r{_name}__", _arithmetic(_name, True))
for _name in ("neg", "pos", "abs"):
    setattr(Number, f"__{_name}__", _arithmetic(_name, False))


def _comparison(name: str) -> Any:
    function = getattr(operator, name)

    def method(self: Number, *other: Any) -> Any:
        if other and type(other[0]) not in (int, float, bool, Number):
            return NotImplemented
        if current_mode().recording is not self.recorder:
            return function(*[one.thing if type(one) is Number else one for one in (self, *other)])
        return self.recorder.decided(function, name, (self, *other))

    return method


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Number, f"__{_name}__", _comparison(_name))
Number.__bool__ = _comparison("truth")  # type: ignore[attr-defined]
for _name in """float int index complex round trunc floor ceil str format hash array array_function reduce_ex copy deepcopy divmod rdivmod
lshift rshift and or xor invert contains getitem call iter len""".split():  # noqa: SIM905
    setattr(Number, f"__{_name}__", Number._needed)


# ---- where numbers are found ----
def key_of(source: Source) -> Any:
    """Return what is the same for the same place in all analyses of a function."""
    path: list[Any] = []
    step: Source | None = source
    while step is not None:
        simple = step.key is None or type(step.key) in (str, int, bool)
        path.append((step.step, step.key if simple else id(step.key)))
        step = step.base
    return tuple(path)


class Free:
    """A number that is an input: where it is found, and what holds it, if that is the same in all calls."""

    is_tried = False  # with other numbers

    def refused(self, name: str) -> str:
        """Write when a call is not for the record."""
        return ""

    def __init__(self, source: Source, thing: Any) -> None:
        self.source, self.thing, self.key = source, thing, key_of(source)
        self.given = source.root in ("args", "kwargs")
        self.holder: Any = None

    def expression(self, name: str, scope: dict[str, Any]) -> str:
        """Write how it is read in a call."""
        if self.given:
            return self.source.text
        scope[name] = self.holder
        return WRITTEN[self.source.step].format(name, self.source.key)


class ScaleOf(Free):
    """The scale of a GradScaler, by which a program multiplies."""

    is_tried = True  # who reads it is the library
    given = False

    def __init__(self, scaler: Any) -> None:
        self.holder, self.thing, self.key = scaler, scaler.get_scale(), ("scale", id(scaler))

    def expression(self, name: str, scope: dict[str, Any]) -> str:
        scope[name] = self.holder
        return f"{name}.get_scale()"

    def refused(self, name: str) -> str:
        """Write when a scaler is not where it was when the program was recorded: at the beginning of an iteration."""
        return f"{name}._scale is None or {name}._progress or not {name}._enabled"


WRITTEN = {
    "global": "{}.__globals__[{!r}]",
    "attribute": "{}.__dict__[{!r}]",
    "item": "{}[{!r}]",
    "cell": "{}.__closure__[{}].cell_contents",
}


def can_be_free(source: Source) -> bool:
    """Tell whether something else can be put in the place of a number for a while: not into a slot, a default or a tuple of a program's."""
    if source.root not in ("args", "kwargs"):
        return source.step in WRITTEN
    while source.base is not None:
        if source.step != "item":
            return False
        source = source.base
    return True


@contextmanager
def in_place_of(captured: Sequence[tuple[Free, Any]]) -> Iterator[None]:
    """Put things in the place of captured numbers for a block."""
    try:
        for one, thing in captured:
            _put(one, thing)
        yield
    finally:
        for one, _ in captured:
            _put(one, one.thing)


def _put(one: Free, thing: Any) -> None:
    step, key, holder = one.source.step, one.source.key, one.holder
    if step == "cell":
        holder.__closure__[key].cell_contents = thing
    elif step == "global":
        holder.__globals__[key] = thing
    elif step == "attribute":
        holder.__dict__[key] = thing
    else:
        holder[key] = thing


# ---- which numbers change ----
def constants_of(guards: Sequence[Guard]) -> list[tuple[Any, Source, Any]]:
    """Return the numbers that a record takes for constants, and that could be inputs: key, source, number."""
    return [
        (key_of(source), source, expected)
        for source, kind, expected in guards
        if kind == "value" and type(expected) in (int, float) and can_be_free(source)
    ]


def changed_numbers(records: Sequence[Any], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> set[Any]:
    """Return the keys of numbers that are constants of records, and others in a call."""
    found = set()
    for record in records:
        for key, source, expected in record.constants:
            if key not in found and _differs(source, expected, function, args, kwargs):
                found.add(key)
    return found


def _differs(source: Source, expected: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        now = source.read(function, args, kwargs)
    except (LookupError, AttributeError, TypeError, ValueError):
        return False
    return type(now) is type(expected) and not same(now, expected)


def differing(record: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:
    """Return which numbers of a call, by their places among the record's, are others than it was made and tried with."""
    return [
        at
        for at, thing in record.untried.items()
        if _differs(record.found.numbers[at].source, thing, function, args, kwargs)
    ]
