"""Moving arrays between the CPU (NumPy) and CUDA devices (CuPy)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import raw_leaf
from .._core.primitive import linear
from .._device import device as device_type


def cupy() -> Any:
    """Return CuPy, or say what is missing."""
    try:
        import cupy
    except ImportError:
        raise AssertionError(
            "Torch not compiled with CUDA enabled\nHint: CUDA devices need CuPy: pip install 'retrograd[cuda]'."
        ) from None
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(f"No CUDA GPUs are available ({error})") from None
    return cupy


def need_known(device: device_type) -> None:
    """Refuse a device that is neither a CPU nor a CUDA device."""
    if device.type == "meta":
        raise NotImplementedError(
            "retrograd has no meta tensors\nHint: create the tensor or module on 'cpu'; torch.nn.utils.skip_init and "
            "Module.to_empty work there too."
        )
    if device.type not in ("cpu", "cuda"):
        raise RuntimeError(f"device type {device.type} is not supported: retrograd runs on cpu and cuda")


def place_array(array: Any, device: device_type) -> Any:
    """Return an array with the same values on a device."""
    on_cpu = isinstance(array, (np.ndarray, np.generic))
    if device.type == "cpu":
        return on_host(array)
    need_known(device)
    module = cupy()
    index = module.cuda.runtime.getDevice() if device.index is None else device.index
    if index >= module.cuda.runtime.getDeviceCount():
        raise RuntimeError("CUDA error: invalid device ordinal")
    with module.cuda.Device(index):
        return module.asarray(np.asarray(array) if on_cpu else array)


def device_of_array(array: Any) -> device_type:
    """Return the device of a raw array."""
    return device_type("cpu") if isinstance(array, (np.ndarray, np.generic)) else device_type("cuda", array.device.id)


def beside(array: Any, other: Any) -> Any:
    """Return an array made on the CPU where another one, of any level, lies."""
    other = raw_leaf(other)
    return array if isinstance(other, (np.ndarray, np.generic)) else place_array(array, device_of_array(other))


def on_host(array: Any) -> Any:
    """Return a raw array with the same values on the CPU."""
    return array if isinstance(array, (np.ndarray, np.generic)) else array.get()


def _to_device(xp: Any, x: Any, *, device: Any, source: Any) -> Any:
    """Copy to another device."""
    return place_array(x, device)


to_device = linear(_to_device, name="to_device", torch="_to_copy")


def _to_device_dx(xp: Any, g: Any, device: Any, source: Any) -> Any:
    from .._core.primitive import vocabulary

    return vocabulary.to_device(g, device=source, source=device)


to_device.vjp("x")(_to_device_dx)
to_device.batch(lambda call, args, batched, size, *, device, source: call(args[0], device=device, source=source))


def move(tensor: Any, device: device_type) -> Any:
    """Move a tensor to a device, differentiably."""
    from .._core.arrays import raw_leaf
    from ._record import record

    source = device_of_array(raw_leaf(tensor._array))
    return record(to_device, (tensor,), {"device": device, "source": source}, "ToCopyBackward0")
