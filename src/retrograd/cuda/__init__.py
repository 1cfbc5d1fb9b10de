"""torch.cuda: what programs ask of the device before they use it. Tensors on it are CuPy's arrays."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .._device import device as _device_type
from ..tensor._generators import default_generator


def _cupy() -> Any:
    """Return CuPy, or raise torch's error where there is no device."""
    if not is_available():
        raise AssertionError("Torch not compiled with CUDA enabled (retrograd needs CuPy and a CUDA device for it)")
    import cupy

    return cupy


def device_count() -> int:
    """Return the number of CUDA devices, 0 without CuPy or a driver."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # no CuPy, no driver, no device: all mean that there is none
        return 0


def is_available() -> bool:
    """Tell whether there is a CUDA device."""
    return device_count() > 0


def is_initialized() -> bool:
    """Tell whether CUDA has been used."""
    return is_available()


def init() -> None:
    """Do nothing: CuPy begins when it is first used."""


def _number(device: Any) -> int:
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    return _device_type(device).index or 0


def current_device() -> int:
    """Return the number of the current device."""
    return int(_cupy().cuda.runtime.getDevice())


def set_device(device: Any) -> None:
    """Make a device the current one."""
    _cupy().cuda.Device(_number(device)).use()


class device:  # noqa: N801 - torch's name
    """Make a device the current one for a block."""

    def __init__(self, device: Any) -> None:
        self.number = _number(device)

    def __enter__(self) -> None:
        self._held = _cupy().cuda.Device(self.number)
        self._held.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._held.__exit__(*exc)


def synchronize(device: Any = None) -> None:
    """Wait until the device has done all it was asked to."""
    _cupy().cuda.Device(_number(device)).synchronize()


def get_device_name(device: Any = None) -> str:
    """Return the device's name."""
    return str(_cupy().cuda.runtime.getDeviceProperties(_number(device))["name"].decode())


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the device's compute capability."""
    properties = _cupy().cuda.runtime.getDeviceProperties(_number(device))
    return int(properties["major"]), int(properties["minor"])


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the bytes that are free on the device, and all of them."""
    with _cupy().cuda.Device(_number(device)):
        free, total = _cupy().cuda.runtime.memGetInfo()
    return int(free), int(total)


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that arrays hold; 0 without a device."""
    return int(_cupy().get_default_memory_pool().used_bytes()) if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that CuPy's pool holds; 0 without a device."""
    return int(_cupy().get_default_memory_pool().total_bytes()) if is_available() else 0


def empty_cache() -> None:
    """Give memory back that no array uses."""
    if is_available():
        _cupy().get_default_memory_pool().free_all_blocks()


def manual_seed(seed: int) -> None:
    """Seed the device's random numbers. They come from the stream of the CPU, which stays alone where there is no device."""
    if is_available():
        default_generator.manual_seed(seed)


manual_seed_all = manual_seed


class Event:
    """A point in the device's work, to measure times between two of them."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._event = _cupy().cuda.Event(block=blocking, disable_timing=not enable_timing)

    def record(self, stream: Any = None) -> None:
        """Mark where the device's work stands."""
        self._event.record()

    def synchronize(self) -> None:
        """Wait until the device has come here."""
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another."""
        return float(_cupy().cuda.get_elapsed_time(self._event, end_event._event))


def __getattr__(name: str) -> Any:
    if name == "amp":  # loaded when asked for: it reads this module
        return import_module(".amp", __name__)
    raise AttributeError(f"module 'torch.cuda' has no attribute '{name}' (retrograd does not have it)")
