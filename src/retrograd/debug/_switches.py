"""What can be switched on for the whole process, or in a block: whole tracebacks, progress bars."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from .. import _progress, _tracebacks
from .._tracebacks import guarded


class _Switch:
    """Switches something when it is made; as a block, until its end."""

    _is_on: ClassVar[Any]  # a function that tells, and one that sets it
    _set: ClassVar[Any]

    @guarded
    def __init__(self, enabled: bool = True) -> None:
        if not isinstance(enabled, bool):
            raise TypeError(f"{type(self).__name__}(): enabled must be a bool, not {type(enabled).__name__}")
        self._before = self._is_on()
        self._set(enabled)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: Any) -> None:
        self._set(self._before)


class full_tracebacks(_Switch):  # noqa: N801 - called like a function
    """Show the package's own lines in tracebacks, from now on or in a block; `False` hides them again.

    As a rule the traceback of an error shows the lines of the program alone. The environment variable RETROGRAD_TRACEBACK=full
    shows all lines from the beginning.

    Example:
        >>> import retrograd
        >>> with retrograd.debug.full_tracebacks():
        ...     pass  # what fails here shows everything
    """

    _is_on = staticmethod(_tracebacks.shows_all)
    _set = staticmethod(_tracebacks.show_all)


class progress(_Switch):  # noqa: N801 - called like a function
    """Show progress bars for what takes longer than a second, from now on or in a block; `False` shows none again.

    There are bars for `gradcheck`, `autograd.functional.jacobian` and `hessian`, `vmap` and `jacrev` by chunks, and
    `debug.loss_landscape`. They need tqdm: pip install tqdm.

        with retrograd.debug.progress():
            retrograd.autograd.gradcheck(function, inputs)
    """

    _is_on = staticmethod(_progress.is_shown)
    _set = staticmethod(_progress.show)
