"""How optimizers outside this package sort tensors before they compute with lists of them."""

from __future__ import annotations

from typing import Any


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Split lists of equal length into groups, by device and dtype of the first list's tensors."""
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for place, row in enumerate(zip(*tensorlistlist, strict=True)):
        lists, places = groups.setdefault((row[0].device, row[0].dtype), ([[] for _ in tensorlistlist], []))
        for one, value in zip(lists, row, strict=True):
            one.append(value)
        if with_indices:
            places.append(place)
    return groups


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    """Tell whether torch would compute with lists of such tensors by itself."""
    return bool(device.type == "cuda")
