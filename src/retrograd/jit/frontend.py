"""torch.jit.frontend: the errors of torch's compiler about source; nothing here raises them."""

from __future__ import annotations

from .._absent import finder

__getattr__ = finder("torch.jit.frontend")


class FrontendError(Exception):
    """A program that torch's compiler cannot read."""


class NotSupportedError(FrontendError):
    """Something that torch's compiler does not take."""


class UnsupportedNodeError(NotSupportedError):
    """A statement that torch's compiler does not take."""


class FrontendTypeError(FrontendError):
    """A type that torch's compiler does not take."""
