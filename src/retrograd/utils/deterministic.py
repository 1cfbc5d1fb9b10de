"""torch.utils.deterministic: whether memory that nobody has written is filled when algorithms must be deterministic."""

from __future__ import annotations

import sys
from types import ModuleType


class _Deterministic(ModuleType):
    """The module itself: its flag takes nothing but bools."""

    _fills = True

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty` should give the same values each time; accepted and kept."""
        return self._fills

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        self._fills = mode


sys.modules[__name__].__class__ = _Deterministic
