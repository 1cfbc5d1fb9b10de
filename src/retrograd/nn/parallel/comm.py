"""torch.nn.parallel.comm: tensors brought to devices, and together again. Copies are operations, so that gradients go back."""

from __future__ import annotations

from typing import Any

from ..._device import device as device_type
from ...cuda import _cupy, current_device


def _place(device: Any) -> Any:
    """Return a device of CUDA, the current one for None; -1 is the CPU."""
    if device is None:
        return device_type("cuda", current_device())
    if isinstance(device, int):
        return device_type("cpu") if device < 0 else device_type("cuda", device)
    return device_type(device)


def broadcast(tensor: Any, devices: Any = None, *, out: Any = None) -> Any:
    """Copy a tensor to each device, or into each of the tensors `out`."""
    _cupy()
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    if out is not None:
        return tuple(one.copy_(tensor) for one in out)
    return tuple(tensor.to(_place(one)) for one in devices)


def broadcast_coalesced(tensors: Any, devices: Any, buffer_size: int = 10485760) -> list[list[Any]]:
    """Copy tensors to each device."""
    _cupy()
    return [[tensor.to(_place(one)) for tensor in tensors] for one in devices]


def reduce_add(inputs: Any, destination: Any = None) -> Any:
    """Add tensors of several devices on one."""
    place = _place(destination) if inputs[0].is_cuda else None
    for number, one in enumerate(inputs):
        if not one.is_cuda:
            raise AssertionError(f"reduce_add expects all inputs to be on GPUs, but input {number} is on CPU")
        if one.shape != inputs[0].shape:
            got, expects = ("x".join(str(n) for n in each.shape) for each in (one, inputs[0]))
            raise ValueError(f"input {number} has invalid size: got {got}, but expected {expects}")
    total = inputs[0].to(place)
    for one in inputs[1:]:
        total = total + one.to(place)
    return total


def reduce_add_coalesced(inputs: Any, destination: Any = None, buffer_size: int = 10485760) -> tuple[Any, ...]:
    """Add tensors of several devices on one, those of the same place in each list."""
    return tuple(reduce_add(alike, destination) for alike in zip(*inputs, strict=True))


def scatter(
    tensor: Any, devices: Any = None, chunk_sizes: Any = None, dim: int = 0, streams: Any = None, *, out: Any = None
) -> Any:
    """Cut a tensor and bring the parts to the devices, or into the tensors `out`."""
    _cupy()
    if out is not None:
        parts = tensor.split([one.shape[dim] for one in out], dim)
        return tuple(one.copy_(part) for one, part in zip(out, parts, strict=True))
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(part.to(_place(one)) for part, one in zip(parts, devices, strict=False))


def gather(tensors: Any, dim: int = 0, destination: Any = None, *, out: Any = None) -> Any:
    """Join tensors of several devices on one."""
    from ...tensor import functions

    _cupy()
    place = _place(destination) if out is None else out.device
    joined = functions()["cat"]([one.to(place) for one in tensors], dim)
    return joined if out is None else out.copy_(joined)
