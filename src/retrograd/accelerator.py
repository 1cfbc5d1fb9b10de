"""torch.accelerator: the device beside the CPU, whichever it is. Here that is CUDA or none."""

from __future__ import annotations

from typing import Any

from . import cuda
from ._absent import finder
from ._device import device as _device
from ._dtypes import IN_MEMORY
from ._public import set_all


def is_available() -> bool:
    """Tell whether there is an accelerator."""
    return cuda.is_available()


def current_accelerator(check_available: bool = False) -> Any:
    """Return the accelerator as a device without a number; None without one."""
    return _device("cuda") if is_available() else None


def device_count() -> int:
    """Return the number of accelerators."""
    return cuda.device_count()


def _needed() -> None:
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def current_device_index() -> int:
    """Return the number of the current device."""
    _needed()
    return cuda.current_device()


current_device_idx = current_device_index


def set_device_index(device: Any, /) -> None:
    """Make a device the current one."""
    _needed()
    cuda.set_device(device)


set_device_idx = set_device_index


def synchronize(device: Any = None, /) -> None:
    """Wait until a device has done all it was asked to."""
    _needed()
    cuda.synchronize(device)


def current_stream(device: Any = None, /) -> Any:
    """Return the stream in which the device works."""
    _needed()
    return cuda.current_stream(device)


def memory_allocated(device: Any = None, /) -> int:
    """Return the bytes that arrays hold."""
    _needed()
    return int(cuda.memory_allocated(device))


def memory_reserved(device: Any = None, /) -> int:
    """Return the bytes that the pool of memory holds."""
    _needed()
    return int(cuda.memory_reserved(device))


def empty_cache() -> None:
    """Give memory back that no array uses."""
    _needed()
    cuda.empty_cache()


def max_memory_allocated(device: Any = None, /) -> int:
    """Return the most bytes that arrays have held."""
    _needed()
    return int(cuda.max_memory_allocated(device))


def max_memory_reserved(device: Any = None, /) -> int:
    """Return the most bytes that the pool of memory has held."""
    _needed()
    return int(cuda.max_memory_reserved(device))


def memory_stats(device: Any = None, /) -> Any:
    """Return the bytes in use under torch's names."""
    _needed()
    return cuda.memory_stats(device)


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """Return the bytes that are free on a device, and all of them."""
    _needed()
    return cuda.mem_get_info(device)  # type: ignore[no-any-return]


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Reset the peak of memory in use."""
    _needed()
    cuda.reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Any = None, /) -> None:
    """Do nothing: what was in use before is not counted."""
    _needed()


def empty_host_cache() -> None:
    """Give memory of the host back that was kept for copies."""
    _needed()
    cuda.memory.empty_host_cache()


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """Return what a device can hold: the dtypes."""
    _needed()
    return {"supported_dtypes": set(IN_MEMORY)}


def set_stream(stream: Any) -> None:
    """Let the device work in a stream from now on."""
    _needed()
    cuda.set_stream(stream)


class Graph:
    """Work of a device that is written down and repeated: cannot be made here."""

    def __new__(cls, keep_graph: bool = False, **options: Any) -> Any:
        """Refuse."""
        _needed()
        return cuda.CUDAGraph(keep_graph)


class device_index(cuda.device):  # noqa: N801 - torch's name
    """Make a device the current one for a block; None leaves it as it is."""

    def __init__(self, device: Any, /) -> None:
        self._same = device is None
        if not self._same:
            _needed()
            super().__init__(device)

    def __enter__(self) -> None:
        if not self._same:
            super().__enter__()

    def __exit__(self, *exc: object) -> None:
        if not self._same:
            super().__exit__(*exc)


__getattr__ = finder("torch.accelerator")
__path__: list[str] = []  # torch has parts of this in `memory` and `graphs`


set_all(globals())
