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
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import partial
from opcode import opmap
from operator import itemgetter, methodcaller
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

    @property
    def tracks(self) -> bool:
        """Tell whether operations are recorded: not in inference mode, even where gradients are switched on in it."""
        return self.grad and not self.inference


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
# 1. the last thing that `__enter__` does is to write the record, by a subscript, which is not a call (`write[...]`), and
# 2. `__exit__` is a function in C. `with` fetches it before it calls `__enter__`, and calls it whatever happens then. Of what Python
#    has, `str.format` takes the three arguments that `with` passes and looks at none of them. Its fields name what is to be done with the
#    records of the block: write the last one, which is what `Saved["left"]` does when it is first asked for, and drop it. All
#    that is in C. Only then `after` runs, in Python: it matters where the modes are not what the block made them, because
#    something else was switched inside it for good, or blocks do not end in the order in which they began.
#
# Functions in this package that change the mode and put it back do so by `try: set_grad(...) ... finally: restore_mode(before)`, with
# the record read before `try`.
class _Write:
    __getitem__ = _variable.set


write: Any = _Write()


class Saved(defaultdict[str, Any]):
    """The record that a block puts back, and what it had made of it. See Note [Leaving a mode cannot be interrupted]."""

    __slots__ = ("entered", "left", "names")

    entered: Mode
    names: Iterable[str]  # of the fields that the block is about
    left: Callable[[], None] | None  # what ends with the block

    @property
    def after(self) -> str:
        """Put back only the block's own fields if others were changed in it; let it end what belongs to it."""
        found = self["left"].old_value
        if found is not self.entered:
            set_mode(found._replace(**{name: self._without_own(name, found) for name in self.names}))
        if self.left is not None:
            self.left()
        return ""

    def _without_own(self, name: str, found: Mode) -> Any:
        """Return a field without what the block has put there: of a stack, the last entry."""
        (saved,) = self.default_factory.args  # type: ignore[union-attr]
        before, entered, now = (getattr(mode, name) for mode in (saved, self.entered, found))
        is_stack = type(before) is tuple is type(entered) and len(entered) == len(before) + 1
        return tuple(one for one in now if one is not entered[-1]) if is_stack and name != "autocast" else before


class _Records(list[Saved]):
    """What a block puts back, for each time that it was entered."""

    last = property(itemgetter(-1))
    dropped = property(methodcaller("pop"))


_leave = "{0.last[left].var.name:.0}{0.dropped.after:.0}".format


class _Exit:
    """`__exit__` of a block: of an object a function in C, of the class one in Python, for `contextlib.ExitStack`."""

    def __get__(self, block: Any, owner: Any) -> Any:
        return _exit if block is None else partial(_leave, _records_of(block))


def _exit(block: Any, *exception: object) -> None:
    _leave(_records_of(block), *exception)


def _records_of(block: Any) -> _Records:
    found = block.__dict__.get("_entered")
    if found is None:
        found = block._entered = _Records()
    return found  # type: ignore[no-any-return]


class Block:
    """A context manager over a change of mode. See Note [Leaving a mode cannot be interrupted].

    A subclass has an `__enter__` that calls `_prepare` and ends with `write[...]`.
    """

    _entered: _Records
    __exit__ = _Exit()

    def _prepare(
        self, before: Mode, entered: Mode, names: Iterable[str], left: Callable[[], None] | None = None
    ) -> Saved:
        """Note what the block will put back."""
        saved = Saved(partial(_write, before))
        saved.entered, saved.names, saved.left = entered, names, left
        _records_of(self).append(saved)
        return saved


class using(Block, ContextDecorator):  # noqa: N801 - reads as a word
    """Run a block under the current mode with `changes`."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes

    def __enter__(self) -> Mode:
        before = current_mode()
        entered = unique(before._replace(**self.changes))
        self._prepare(before, entered, self.changes)
        write[entered]
        return entered


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
