"""The modes an operation runs under: one immutable record, read once per operation.

Note [The mode record]
Every switch that can change what an operation does (grad mode, inference, saved-tensor hooks, anomaly detection,
function modes, live transforms, a policy of checkpointing) is a field of one `Mode`. The record of a thread lives in a
context variable (14 ns to read, against 40 for `threading.local`), and `read_mode() is PLAIN` is the whole test of the hot
path. NumPy keeps its floating-point error state in a context variable too, so "no mode yet" is exactly "errors not
silenced yet": `None` sends the first operation of a thread through `current_mode`, which silences them once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import partial
from opcode import opmap
from operator import attrgetter, call
from types import MethodType
from typing import Any, NamedTuple

import numpy as np


class Mode(NamedTuple):
    """What is switched on in this thread."""

    grad: bool = True
    inference: bool = False
    saved_hooks: tuple[tuple[Any, Any], ...] = ()
    saved_hooks_disabled: str | None = None
    anomaly: bool = False
    anomaly_check_nan: bool = True
    function_modes: tuple[Any, ...] = ()
    torch_function: bool = True
    transforms: tuple[Any, ...] = ()
    autocast: tuple[str, Any] | None = None  # type of device, dtype of products
    dispatch: Any = None  # sees every operation before it runs: see `utils/_checkpoint_policy.py`
    dispatch_modes: tuple[Any, ...] = ()  # see Note [Below autograd] in `_dispatch/__init__.py`
    recording: Any = None  # writes down what is done to arrays: see Note [Traced arrays] in `compiler/_traced.py`

    @property
    def tracks(self) -> bool:
        """Tell whether operations are recorded: not in inference mode, even where gradients are switched on in it."""
        return self.grad and not self.inference

    def leave(self, block: Block, kind: Any = None, error: Any = None, traceback: Any = None) -> None:
        """End a block in which this was the mode. See Note [Leaving a mode cannot be interrupted]."""
        entry = _newest_entry()
        if self is entry.entered and entry.block is block:
            _set_newest_entry(entry.outer)
            if entry.ends:
                block._block_ended(entry)
        else:
            _leave_otherwise(block, entry, self)


PLAIN = Mode()
NO_GRAD = Mode(grad=False)

_variable: ContextVar[Mode | None] = ContextVar("retrograd_mode", default=None)
read_mode = _variable.get
_write = _variable.set


def current_mode() -> Mode:
    """Return this thread's mode; the first call of a thread also silences NumPy's floating-point warnings."""
    mode = read_mode()
    if mode is None:
        np.seterr(all="ignore")
        _variable.set(PLAIN)
        return PLAIN
    return mode


def set_mode(mode: Mode) -> Mode:
    """Install `mode` for good, returning the one it replaces; the two common modes are kept unique so that `is` works."""
    previous = current_mode()
    _variable.set(unique(mode))
    return previous


def unique(mode: Mode) -> Mode:
    """Return the one record that is equal to a common mode, else the record itself."""
    return PLAIN if mode == PLAIN else NO_GRAD if mode == NO_GRAD else mode


def with_grad(mode: Mode, grad: bool) -> Mode:
    """Return a record with gradients switched on or off; quick for the two common modes."""
    if mode is PLAIN or mode is NO_GRAD:
        return PLAIN if grad else NO_GRAD
    return unique(mode._replace(grad=grad))


def set_grad(grad: bool) -> None:
    """Switch gradients on or off for good."""
    _write(with_grad(current_mode(), grad))


restore_mode = (
    _variable.set
)  # puts back a record that was read before; in C, so that it is not interrupted before it is done


def change_mode(**changes: Any) -> Mode:
    """Replace some fields of the current mode for good, returning the previous record."""
    return set_mode(current_mode()._replace(**changes))


# ---- blocks ----
# Note [Leaving a mode cannot be interrupted]
# Ctrl-C raises KeyboardInterrupt where the interpreter looks for signals: when a Python function begins, when a loop goes round, and
# after a call. An `__exit__` written in Python can so be left before its first line, and an `__enter__` after its last but one;
# the mode would stay as the block had it. Therefore
#
# 1. the last thing that `__enter__` does is to write the record and the entry that ends the block, each by a subscript, which is not
#    a call (`write[...]`, `push[...]`): no signal is looked for between them and the block, and
# 2. `__exit__` is in C up to the point where the record is as it was. `with` fetches it before it calls `__enter__`: a method that is
#    bound by `property`, of an object whose `__call__` is itself a property. The interpreter fetches that when the object
#    is called, and this is what does the work: it takes the newest entry and asks for `written`, which is a property, too: it
#    calls the entry, a `partial` that writes the record from before the block. From the token of this writing it has the
#    record that was found, and that record's method `leave` is what is called then, in Python: it takes the entry from the stack.
#    If an interrupt prevents that, the next block that is left finds its own entry below and drops what lies on it.
#
# The entries stand in a context variable, not in the block: one block can be entered inside itself, and in several threads at once.
# Where the newest entry is not that of the block, or the modes are not what the block made them, because something was switched inside it
# for good, only the block's own fields are put back.
#
# Functions in this package that change the mode and put it back do so by `try: set_grad(...) ... finally: restore_mode(before)`, with
# the record read before `try`.
_entries: ContextVar[Any] = ContextVar("retrograd_blocks")
_newest_entry, _set_newest_entry = _entries.get, _entries.set
_call: Any = call


class _Write:
    __getitem__ = _variable.set


class _Push:
    __getitem__ = _set_newest_entry


write: Any = _Write()
push: Any = _Push()


class Entry(partial[Any]):
    """What ends one run of a block, called to write the record from before. See Note [Leaving a mode cannot be interrupted]."""

    __slots__ = ("block", "entered", "holds", "outer")

    entered: Mode
    holds: Any  # what lives as long as the block is entered
    outer: Entry | _Bottom
    block: Block
    begins: tuple[Callable[[], Any], ...] = ()
    ends: tuple[Callable[[], Any], ...] = ()
    written = property(_call)

    @property
    def before(self) -> Mode:
        """Return the record that the entry writes."""
        return self.args[0]  # type: ignore[no-any-return]


class _Results(list[Any]):
    """What came of ending a block and what ends with it."""

    __slots__ = ()

    @property
    def old_value(self) -> Mode:
        return self[0].old_value  # type: ignore[no-any-return]


class _EndingEntry(Entry):
    """An entry that ends something else as well, by functions in C: all of it is done while a list is made of the entry."""

    __slots__ = ("begins", "ends", "steps")

    steps: Callable[[], Any]
    written = property(_Results)
    __iter__ = property(attrgetter("steps"))


class _Bottom:
    """What lies under all entries."""

    newest = property(_newest_entry)  # this object itself where nothing was entered yet
    __call__: Any = property(attrgetter("newest.written.old_value.leave"))

    @property
    def written(self) -> _Bottom:
        return self

    old_value = written

    def leave(self, block: Any, *exception: object) -> None:
        block._block_left_unentered()


_BOTTOM: Any = _Bottom()


class _Exit(property):
    """`__exit__` of a block: bound to an object in C, and for `contextlib.ExitStack` a function of the class, too."""

    __call__ = _BOTTOM


class Block:
    """A context manager over a change of mode. See Note [Leaving a mode cannot be interrupted].

    A subclass has an `__enter__` that calls `_block_entry` and ends with `write[...]` and `push[...]`.
    """

    # The fields of the record that it is about. Our names begin so, because users subclass blocks.
    _block_fields: Iterable[str] = ()
    __exit__: Any = _Exit(partial(MethodType, _BOTTOM))

    def _block_entry(self, before: Mode, entered: Mode) -> Entry:
        """Note what the block will put back."""
        entry = Entry(_write, before)
        entry.block, entry.entered = self, entered
        entry.outer = _newest_entry(_BOTTOM)
        return entry

    def _block_entry_with(self, ends: tuple[Callable[[], Any], ...], before: Mode, entered: Mode) -> Entry:
        """Note what the block will put back, and functions in C that end something else with it."""
        entry = _EndingEntry(_write, before)
        entry.block, entry.entered, entry.outer = self, entered, _newest_entry(_BOTTOM)
        entry.begins, entry.ends, entry.steps = (), ends, partial(map, _call, (partial(_write, before), *ends))
        return entry

    def _block_begin(self, begins: tuple[Callable[[], Any], ...], ends: tuple[Callable[[], Any], ...]) -> None:
        """Enter a block that changes something besides the mode, by functions in C. The last thing that `__enter__` does."""
        mode = current_mode()
        entry = self._block_entry_with(ends, mode, mode)
        entry.begins = begins
        # not calls of Python's, so that all are done without a look for signals
        [*map(_call, (*begins, partial(_set_newest_entry, entry)))]

    def _block_ended(self, entry: Entry) -> None:
        """Do what is left to do after the functions that were given to `_block_entry_with`."""

    def _block_goes_on(self, entry: Entry) -> None:
        """Undo those functions: the block was not the one to be left."""
        for begin in entry.begins:
            begin()

    def _block_left_unentered(self) -> None:
        """Be left in a thread that has not entered the block."""


def _leave_otherwise(block: Block, newest: Entry, found: Mode) -> None:
    """Leave a block that is not the newest one, or in which something was switched for good: only its fields are put back."""
    above: list[Entry] = []
    entry: Any = newest
    while entry is not _BOTTOM and not (entry.block is block and entry.entered is found):
        above.append(entry)
        entry = entry.outer
    if entry is not _BOTTOM:  # all that was entered since has been undone by who put the mode back
        _write(entry.before)
        _set_newest_entry(entry.outer)
    else:
        if newest.block is not block:
            newest.block._block_goes_on(newest)
        entry = next((one for one in above if one.block is block), None)
        if entry is None:
            _write(found)
            block._block_left_unentered()
            return
        outer: Any = entry.outer
        for one in reversed(above[: above.index(entry)]):
            _set_newest_entry(outer)
            before, entered = (_without(entry, mode, one.block._block_fields) for mode in (one.before, one.entered))
            entry_again = partial(one.block._block_entry_with, one.ends) if one.ends else one.block._block_entry
            outer = entry_again(before, entered)
            if one.begins:
                outer.begins = one.begins
        _set_newest_entry(outer)
        _write(_without(entry, found))
    if entry.ends:
        if entry is not newest:
            for end in entry.ends:
                end()
        block._block_ended(entry)


def _without(entry: Entry, mode: Mode, others: Iterable[str] = ()) -> Mode:
    """Return a record with the fields of an entry's block as they were before, but those that another block answers for.

    Of a stack, what the block has put there is left out.
    """
    changes = {}
    for name in entry.block._block_fields:
        before, entered, now = (getattr(one, name) for one in (entry.before, entry.entered, mode))
        if name != "autocast" and type(before) is tuple is type(entered) and len(entered) == len(before) + 1:
            at = max((i for i, one in enumerate(now) if one is entered[-1]), default=len(now))
            changes[name] = now[:at] + now[at + 1 :]
        elif name not in others:
            changes[name] = before
    return unique(mode._replace(**changes))


class using(Block, ContextDecorator):  # noqa: N801 - reads as a word
    """Run a block under the current mode with `changes`."""

    def __init__(self, **changes: Any) -> None:
        self._block_fields = self.changes = changes

    def __enter__(self) -> Mode:
        before = current_mode()
        entered = unique(before._replace(**self.changes))
        entry = self._block_entry(before, entered)
        write[entered]
        push[entry]
        return entered


class setting(Block, ContextDecorator):  # noqa: N801 - reads as a word
    """Run a block under another value of a context variable that is no part of the record."""

    def __init__(self, variable: ContextVar[Any], value: Any) -> None:
        self._variable, self._value = variable, value

    def _previous(self) -> Any:
        return self._variable.get()

    def __enter__(self) -> Any:
        self._block_begin((partial(self._variable.set, self._value),), (partial(self._variable.set, self._previous()),))


_BEFORE_WITH = opmap.get("BEFORE_WITH")


def is_in_with(depth: int = 2) -> bool:
    """Tell whether a caller's caller is about to enter what it gets: `with made_now():`.

    What switches something at once, for who only calls it, can then leave that to `__enter__`.
    """
    frame = sys._getframe(depth)
    code, place = frame.f_code.co_code, frame.f_lasti + 2
    while place < len(code) and code[place] == 0:  # room that the interpreter has for its own notes
        place += 2
    return place < len(code) and code[place] == _BEFORE_WITH
