"""The modes an operation runs under: one immutable record, read once per operation.

Note [The mode record]
Every switch that can change what an operation does (grad mode, inference, saved-tensor hooks, anomaly detection,
function modes, live transforms, a policy of checkpointing) is a field of one `Mode`. The record of a thread lives in a
context variable (14 ns to read, against 40 for `threading.local`), and `read_mode() is PLAIN` is the whole test of the hot
path. NumPy keeps its floating-point error state in a context variable too, so "no mode yet" is exactly "errors not
silenced yet": `None` sends the first operation of a thread through `current_mode`, which silences them once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
    """Install `mode`, returning the one it replaces; the two common modes are kept unique so that `is` works."""
    previous = current_mode()
    if mode == PLAIN:
        mode = PLAIN
    elif mode == NO_GRAD:
        mode = NO_GRAD
    _variable.set(mode)
    return previous


def set_grad(grad: bool) -> Mode:
    """Switch gradients on or off, returning the previous record; quick for the two common modes."""
    mode = read_mode()
    if mode is PLAIN or mode is NO_GRAD:
        _write(PLAIN if grad else NO_GRAD)
        return mode
    return change_mode(grad=grad)


def restore_mode(mode: Mode) -> None:
    """Put back a record that `set_grad`, `set_mode` or `change_mode` returned."""
    _variable.set(mode)


def change_mode(**changes: Any) -> Mode:
    """Replace some fields of the current mode, returning the previous record."""
    return set_mode(current_mode()._replace(**changes))


@contextmanager
def using(**changes: Any) -> Iterator[Mode]:
    """Run a block under the current mode with `changes`."""
    previous = change_mode(**changes)
    try:
        yield current_mode()
    finally:
        _variable.set(previous)
