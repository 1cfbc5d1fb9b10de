"""Where the storages of a file go: the tags that files have for devices, and what `map_location` makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._device import device as device_type
from .._object.devices import cupy, need_known

_NO_CUDA = (
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a "
    "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
)
Tagger = Callable[[Any], str | None]
Deserializer = Callable[[Any, str], Any]
_registered: list[tuple[int, Tagger, Deserializer]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Let functions say which tag a storage has and where one with a tag goes; those of low priority are asked first."""
    _registered.append((priority, tagger, deserializer))
    _registered.sort(key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """Return a file's word for the place of a storage."""
    for _, tagger, _ in _registered:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_name(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """Bring a storage, read on the CPU, to the place of which a file speaks."""
    for _, _, deserializer in _registered:
        restored = deserializer(storage, location)
        if restored is not None:
            return restored
    raise RuntimeError(f"don't know how to restore data location of {_name(storage)} (tagged with {location})")


def restorer(map_location: Any) -> Deserializer:
    """Return the function that brings storages to where `map_location` wants them."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        return lambda storage, location: default_restore_location(storage, _text(map_location))
    if isinstance(map_location, device_type):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def ask(storage: Any, location: str) -> Any:
        restored = map_location(storage, location)
        return default_restore_location(storage, location) if restored is None else restored

    return ask


def validate_cuda_device(location: str) -> int:
    """Return the number of a CUDA device that exists."""
    try:
        runtime = cupy().cuda.runtime
    except (AssertionError, RuntimeError):
        raise RuntimeError(_NO_CUDA) from None
    index = device_type(location).index
    number = runtime.getDevice() if index is None else index
    count = runtime.getDeviceCount()
    if number >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {number} but torch.cuda.device_count() is {count}. Please use "
            "torch.load with map_location to map your storages to an existing device."
        )
    return int(number)


def _name(storage: Any) -> str:
    return f"torch.storage.{type(storage).__name__}"


def _text(location: str | bytes) -> str:
    return location.decode("ascii") if isinstance(location, bytes) else location


def _to_what_is_missing(storage: Any, location: str) -> Any:
    kind = location.partition(":")[0]
    if kind in ("mps", "xpu", "hpu"):
        need_known(device_type(kind))


register_package(
    10,
    lambda storage: "cpu" if storage.device.type == "cpu" else None,
    lambda storage, location: storage if location == "cpu" else None,
)
register_package(
    20,
    lambda storage: str(storage.device) if storage.device.type == "cuda" else None,
    lambda storage, location: storage.cuda(validate_cuda_device(location)) if location.startswith("cuda") else None,
)
register_package(
    22,
    lambda storage: "meta" if storage.device.type == "meta" else None,
    lambda storage, location: storage.to(device="meta") if location == "meta" else None,
)
register_package(30, lambda storage: None, _to_what_is_missing)
