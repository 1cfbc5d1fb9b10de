"""torch._utils: what torch's pickles call, and the helpers that programs import from there."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

from retrograd._absent import finder
from retrograd._device import device as device_type
from retrograd.cuda import device_count, is_available
from retrograd.tensor._functions.joining import cat

torch: Any = importlib.import_module(__package__)  # where torch's pickles find `torch.channels_last`: in this module


# ---- many tensors as one ----
def _flatten_dense_tensors(tensors: Iterable[Any]) -> Any:
    """Join tensors of one dtype to a vector."""
    flat = [tensor.contiguous().view(-1) for tensor in tensors]
    if not flat:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    return flat[0] if len(flat) == 1 else cat(flat)


def _unflatten_dense_tensors(flat: Any, tensors: Iterable[Any]) -> tuple[Any, ...]:
    """View parts of a vector in the shapes of tensors."""
    made, place = [], 0
    for tensor in tensors:
        count = tensor.numel()
        made.append(flat.narrow(0, place, count).view_as(tensor))
        place += count
    return tuple(made)


def _take_tensors(tensors: Iterable[Any], size_limit: int) -> Iterator[list[Any]]:
    """Group tensors of one type, each group of not more bytes than a limit if it can be."""
    groups: dict[str, tuple[list[Any], int]] = defaultdict(lambda: ([], 0))
    for tensor in tensors:
        kind, size = tensor.type(), tensor.numel() * tensor.element_size()
        held, held_size = groups[kind]
        if held and held_size + size > size_limit:
            yield held
            held, held_size = [], 0
        groups[kind] = ([*held, tensor], held_size + size)
    for held, _ in groups.values():
        if held:
            yield held


def _reorder_tensors_as(tensors: Iterable[Any], ordered_tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Put tensors into the order of others of the same types."""
    by_type: dict[str, list[Any]] = defaultdict(list)
    for tensor in tensors:
        by_type[tensor.type()].append(tensor)
    remaining = {kind: iter(held) for kind, held in by_type.items()}
    return tuple(next(remaining[tensor.type()]) for tensor in ordered_tensors)


# ---- dtypes, devices, names ----
def _element_size(dtype: Any) -> int:
    """Return the number of bytes of an element."""
    return int(dtype.itemsize)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """Return the number of a device that is given in any of the ways torch takes."""
    given = device
    if isinstance(device, str):
        device = device_type(device)
    if isinstance(device, device_type):
        if device.type == "cpu":
            if not allow_cpu:
                raise ValueError(f"Expected a non cpu device, but got: {given}")
            return -1
        device = device.index
    if isinstance(device, int):
        return device
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{given}")
    return None


def _get_available_device_type() -> str | None:
    """Return the kind of devices that there are besides the CPU."""
    return "cuda" if is_available() else None


def _get_all_device_indices() -> list[int] | None:
    """Return the numbers of the devices besides the CPU."""
    return list(range(device_count())) if is_available() else None


def _import_dotted_name(name: str) -> Any:
    """Return what a name with dots stands for."""
    first, *rest = name.split(".")
    return reduce(getattr, rest, importlib.import_module(first))


def is_compiling() -> bool:
    """Tell whether a compiler is at work, which there is none of."""
    return False


class classproperty:  # noqa: N801 - torch's name
    """A property of a class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.fget = func

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.fget(type(instance) if owner is None else owner)


__getattr__ = finder("torch._utils")
