"""Small helpers that libraries take from torch.nn.modules.utils."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that makes a tuple: of anything iterable its items, else n times the value."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """Return each item n times, the last one first: the order in which `pad` wants its amounts."""
    return tuple(item for item in reversed(tuple(t)) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    """Fill each None of a size from the last dimensions of `defaults`."""
    if isinstance(out_size, (int, float)):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    known = defaults[-len(out_size) :]
    return [default if size is None else size for size, default in zip(out_size, known, strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the keys of a state dict, in place, as after training under `DataParallel`."""
    _rename(state_dict, prefix, {})
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        _rename(metadata, prefix, {prefix.removesuffix("."): ""})  # a module's own entry has no dot behind it


def _rename(table: dict[str, Any], prefix: str, others: dict[str, str]) -> None:
    for key in list(table):
        if key.startswith(prefix):
            table[key.removeprefix(prefix)] = table.pop(key)
        elif key in others:
            table[others[key]] = table.pop(key)
