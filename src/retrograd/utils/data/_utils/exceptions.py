"""An exception of another process, with its traceback as text."""

from __future__ import annotations

import sys
import traceback
from typing import Any, NoReturn

from ...._tracebacks import shorten


class _Verbatim(str):
    """Text that a KeyError, which shows its argument's repr, shows as it is."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """Carries the class and the printed traceback of an exception to where it is raised again."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = exc_info[0]
        if isinstance(exc_info[1], Exception):
            shorten(exc_info[1])  # the traceback that was given is still whole
            exc_info = (exc_info[0], exc_info[1], exc_info[1].__traceback__)
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where
        self.name: str = self.exc_type.__name__

    def without_class(self) -> ExceptionWrapper:
        """Return the same with RuntimeError in place of the class, for a process that cannot have the class."""
        self.exc_type = RuntimeError
        return self

    def reraise(self) -> NoReturn:
        """Raise an exception of the same class that tells where it comes from."""
        text = f"Caught {self.name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = _Verbatim(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            error = self.exc_type(text)
        except Exception:  # a class with other arguments
            raise RuntimeError(text) from None
        raise error
