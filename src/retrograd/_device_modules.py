"""Which module answers for a kind of device."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._device import device as _device


def get_device_module(device: Any = None) -> Any:
    """Return `torch.cuda`, `torch.cpu`, ...: the module of a device, by default of the accelerator if there is one."""
    from .accelerator import current_accelerator

    if device is None:
        device = current_accelerator() or "cpu"
    kind = _device(device).type
    try:
        return import_module(f".{kind}", __package__)
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from None
