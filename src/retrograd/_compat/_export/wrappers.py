"""torch._export.wrappers: marks on constructors, which nothing here reads."""

from __future__ import annotations

from typing import TypeVar

from retrograd._absent import finder

Function = TypeVar("Function")
__getattr__ = finder("torch._export.wrappers")


def mark_subclass_constructor_exportable_experimental(constructor_subclass: Function) -> Function:
    """Return the constructor of a class of tensors as it is."""
    return constructor_subclass


__all__ = ["mark_subclass_constructor_exportable_experimental"]
