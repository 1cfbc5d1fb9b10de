"""torch.cuda: what programs ask of the device before they use it. Tensors on it are CuPy's arrays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .._absent import finder
from .._device import device as _device_type
from .._errors import OutOfMemoryError as OutOfMemoryError
from .._tracebacks import guard_public as _guard_public


def _cupy() -> Any:
    """Return CuPy, or raise torch's error where there is no device."""
    if not is_available():
        raise AssertionError("Torch not compiled with CUDA enabled (retrograd needs CuPy and a CUDA device for it)")
    import cupy

    return cupy


def device_count() -> int:
    """Return the number of CUDA devices, 0 without CuPy or a driver.

    Example:
        >>> torch.cuda.device_count() == 0 or torch.cuda.is_available()
        True
    """
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # no CuPy, no driver, no device: all mean that there is none
        return 0


def is_available() -> bool:
    """Tell whether there is a CUDA device.

    Example:
        >>> device = "cuda" if torch.cuda.is_available() else "cpu"
        >>> torch.zeros(2, device=device).sum().item()
        0.0
    """
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
    """Return the number of the current device.

    Example:
        >>> torch.cuda.current_device() if torch.cuda.is_available() else 0
        0
    """
    return int(_cupy().cuda.runtime.getDevice())


def set_device(device: Any) -> None:
    """Make a device the current one.

    Args:
        device: its number, name or `torch.device`

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.set_device(0)
    """
    _cupy().cuda.Device(_number(device)).use()


class device:  # noqa: N801 - torch's name
    """Make a device the current one for a block.

    Args:
        device: its number, name or `torch.device`

    Example:
        >>> if torch.cuda.is_available():
        ...     with torch.cuda.device(0):
        ...         x = torch.ones(2, device="cuda")
    """

    def __init__(self, device: Any) -> None:
        self.number = _number(device)

    def __enter__(self) -> None:
        self._held = _cupy().cuda.Device(self.number)
        self._held.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._held.__exit__(*exc)


def synchronize(device: Any = None) -> None:
    """Wait until the device has done all it was asked to.

    Args:
        device: the device to wait for; the current one unless it is given

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.synchronize()  # before a clock is read
    """
    _cupy().cuda.Device(_number(device)).synchronize()


def get_device_name(device: Any = None) -> str:
    """Return the device's name.

    Args:
        device: its number; the current one unless it is given

    Example:
        >>> name = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    """
    return str(_cupy().cuda.runtime.getDeviceProperties(_number(device))["name"].decode())


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the device's compute capability.

    Args:
        device: its number; the current one unless it is given

    Example:
        >>> torch.cuda.is_available() and torch.cuda.get_device_capability() < (7, 0)
        False
    """
    properties = _cupy().cuda.runtime.getDeviceProperties(_number(device))
    return int(properties["major"]), int(properties["minor"])


def get_device_properties(device: Any = None) -> Any:
    """Return what is known of the device, under torch's names.

    Args:
        device: its number; the current one unless it is given

    Example:
        >>> if torch.cuda.is_available():
        ...     memory = torch.cuda.get_device_properties().total_memory
    """
    found = _cupy().cuda.runtime.getDeviceProperties(_number(device))
    return SimpleNamespace(
        name=found["name"].decode(),
        major=int(found["major"]),
        minor=int(found["minor"]),
        total_memory=int(found["totalGlobalMem"]),
        multi_processor_count=int(found["multiProcessorCount"]),
    )


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Tell whether the device computes with bfloat16."""
    return is_available()


def get_arch_list() -> list[str]:
    """Return the devices that were compiled for: CuPy compiles when it runs."""
    return []


def is_current_stream_capturing() -> bool:
    """Tell whether work is being written down instead of done."""
    return False


# What the submodules have, and the submodules themselves, are loaded when asked for: they read this one.
_MODULES = "amp graphs memory nvtx profiler random streams"
__getattr__ = finder("torch.cuda", by_torchs_name=True, modules=_MODULES)


def __dir__() -> list[str]:
    from .._elsewhere import table  # when somebody asks

    return sorted({*globals(), *_MODULES.split(), *table()["torch.cuda"]})


_guard_public(globals())
