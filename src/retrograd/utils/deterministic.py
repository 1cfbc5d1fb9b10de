"""torch.utils.deterministic: whether memory that nobody has written is filled when algorithms must be deterministic."""

from __future__ import annotations

import sys
from types import ModuleType

from .. import _settings


class _Deterministic(ModuleType):
    """The module itself: its flag takes nothing but bools."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty` gives NaN, or the largest number of its dtype; else it gives zeros."""
        return _settings._fills_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        _settings._fills_memory = mode


sys.modules[__name__].__class__ = _Deterministic
