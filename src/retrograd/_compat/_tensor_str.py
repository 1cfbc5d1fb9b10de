"""torch._tensor_str: how tensors are written, for classes that write themselves in the same layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd._absent import finder
from retrograd.tensor._object.printing import _append_suffixes, format_array

__getattr__ = finder("torch._tensor_str")


def _tensor_str(self: Any, indent: int) -> str:
    """Write the bracketed values of a tensor; the first bracket stands at column `indent`."""
    return format_array(self.detach().cpu().resolve_conj().resolve_neg()._array, indent)


def _add_suffixes(tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool) -> str:
    """Append what follows the values, on new lines where it does not fit, and the last parenthesis."""
    if force_newline and suffixes:
        tensor_str, suffixes = f"{tensor_str},\n{' ' * indent}{suffixes[0]}", suffixes[1:]
    return _append_suffixes(tensor_str, indent, suffixes) + ")"
