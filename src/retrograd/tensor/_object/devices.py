"""Moving arrays between the CPU (NumPy) and CUDA devices (CuPy)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays import is_meta, raw_leaf
from ..._core.primitive import linear, vocabulary
from ..._device import device as device_type
from .._recording.record import record

META = device_type("meta")


def cupy() -> Any:
    """Return CuPy, or say what is missing."""
    try:
        import cupy
    except ImportError:
        raise AssertionError(
            "Torch not compiled with CUDA enabled\nHint: CUDA devices need CuPy: pip install cupy-cuda13x."
        ) from None
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(f"No CUDA GPUs are available ({error})") from None
    return cupy


def need_known(device: device_type) -> None:
    """Refuse a device that is neither a CPU nor a CUDA device, nor torch's device of shapes alone."""
    if device.type not in ("cpu", "cuda", "meta"):
        raise RuntimeError(f"device type {device.type} is not supported: retrograd runs on cpu and cuda")


def _is_on_cpu(array: Any) -> bool:
    return type(array) is np.ndarray or (isinstance(array, (np.ndarray, np.generic)) and not is_meta(array))


def without_elements(array: Any) -> Any:
    """Return a meta array in the shape, the dtype and the order of strides of a raw array."""
    from ..._core.meta_arrays import like

    return like(array)


def place_array(array: Any, device: device_type) -> Any:
    """Return an array with the same values on a device."""
    on_cpu = _is_on_cpu(array)
    if device.type == "cpu":
        return on_host(array)
    need_known(device)
    if device.type == "meta":
        return without_elements(array)
    module = cupy()
    index = module.cuda.runtime.getDevice() if device.index is None else device.index
    if index >= module.cuda.runtime.getDeviceCount():
        raise RuntimeError("CUDA error: invalid device ordinal")
    with module.cuda.Device(index):
        return module.asarray(np.asarray(array) if on_cpu else array)


def device_of_array(array: Any) -> device_type:
    """Return the device of a raw array."""
    if (place := getattr(array, "place", None)) is not None:  # of a wrapper, see `_dispatch/wrappers.py`
        return place  # type: ignore[no-any-return]
    if _is_on_cpu(array):
        return device_type("cpu")
    return META if is_meta(array) else device_type("cuda", array.device.id)


def beside(array: Any, other: Any) -> Any:
    """Return an array made on the CPU where another one, of any level, lies."""
    other = raw_leaf(other)
    return array if _is_on_cpu(other) else place_array(array, device_of_array(other))


def on_host(array: Any) -> Any:
    """Return a raw array with the same values on the CPU."""
    return array if _is_on_cpu(array) else array.get()


def _to_device(xp: Any, x: Any, *, device: Any, source: Any) -> Any:
    """Copy to another device."""
    return place_array(x, device)


to_device = linear(_to_device, name="to_device", torch="_to_copy")


def _to_device_dx(xp: Any, g: Any, device: Any, source: Any) -> Any:
    return vocabulary.to_device(g, device=source, source=device)


to_device.vjp("x")(_to_device_dx)
to_device.batch(lambda call, args, batched, size, *, device, source: call(args[0], device=device, source=source))


def move(tensor: Any, device: device_type) -> Any:
    """Move a tensor to a device, differentiably."""
    source = device_of_array(raw_leaf(tensor._array))
    if source.type == "meta":
        raw_leaf(tensor._array).get()  # which raises
    return record(to_device, (tensor,), {"device": device, "source": source}, "ToCopyBackward0")
