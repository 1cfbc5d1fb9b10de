"""torch.nn.parallel.replicate: a module on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._device import device as device_type


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """Make a module for each device that computes with copies of the parameters, to which gradients go back."""
    for one in network.parameters():
        if not one.is_cuda:
            raise AssertionError("Broadcast function not implemented for CPU tensors")
    return [_copy(network, device_type("cuda", one) if isinstance(one, int) else one, detach) for one in devices]


def _copy(network: Any, device: Any, detach: bool) -> Any:
    replica = network._replicate_for_data_parallel()
    for name, child in network._modules.items():
        replica._modules[name] = None if child is None else _copy(child, device, detach)
    for name, parameter in network._parameters.items():
        if parameter is not None:  # a copy is no leaf, and so no parameter: it is found as an attribute
            moved = (parameter.detach() if detach else parameter).to(device)
            setattr(replica, name, moved)
    for name, buffer in network._buffers.items():
        replica._buffers[name] = None if buffer is None else buffer.detach().to(device)
    return replica


__all__ = ["replicate"]
