"""torch.nn.parallel.data_parallel: a module whose batch is cut for several devices. retrograd computes on one."""

from __future__ import annotations

from typing import Any

from ..._device import device as device_type
from ...cuda import is_available
from ...utils._pytree import tree_map
from ..modules.module import Module


class DataParallel(Module):
    """A module on one device: torch's form for several, which has `module.` before the names of the state.

    Args:
        module: the module
        device_ids: the devices; one, or none for the CPU
        output_device: where results go
        dim: the dimension that torch would divide

    Example:
        >>> model = nn.DataParallel(nn.Linear(2, 1))
        >>> model(torch.ones(3, 2)).shape, list(model.state_dict())
        (torch.Size([3, 1]), ['module.weight', 'module.bias'])
    """

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        if not is_available():
            self.module = module
            self.device_ids: list[int] = []
            return
        self.dim = dim
        self.module = module
        self.device_ids = [_index(one) for one in ([0] if device_ids is None else device_ids)]
        if len(self.device_ids) > 1:
            raise NotImplementedError("DataParallel over several devices: retrograd computes on one")
        self.output_device = _index(self.device_ids[0] if output_device is None else output_device)
        self.src_device_obj = device_type("cuda", self.device_ids[0])
        module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module, with tensors brought to its device."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _need_device(self.module, self.src_device_obj)
        inputs, kwargs = _brought((inputs, kwargs), self.src_device_obj)
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Any,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """Call a module on one device."""
    args = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    if not is_available():
        raise RuntimeError("device type could not be determined")
    ids = [_index(one) for one in ([0] if device_ids is None else device_ids)]
    if len(ids) > 1:
        raise NotImplementedError("data_parallel over several devices: retrograd computes on one")
    device = device_type("cuda", ids[0])
    _need_device(module, device)
    args, kwargs = _brought((args, module_kwargs or {}), device)
    return module(*args, **kwargs)


def _index(device: Any) -> int:
    if isinstance(device, int):
        return device
    return device_type(device).index or 0


def _brought(values: Any, device: Any) -> Any:
    return tree_map(lambda one: one.to(device) if hasattr(one, "grad_fn") else one, values)


def _need_device(module: Any, device: Any) -> None:
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.device != device:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {device} (device_ids[0]) but found one of them on "
                f"device: {tensor.device}"
            )


__all__ = ["DataParallel", "data_parallel"]
