"""A module whose gradients are averaged over processes: over one of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..modules.module import Module


class DistributedDataParallel(Module):
    """A module in a group of one process: torch's form, which has `module.` before the names of the state."""

    def __init__(
        self,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Any = None,
    ) -> None:
        from ...distributed._groups import need_one  # few programs come here

        super().__init__()
        group = need_one(process_group, "DistributedDataParallel")
        parameters = list(module.parameters())
        if not any(one.requires_grad for one in parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        devices = {one.device for one in parameters}
        if (device_ids or output_device is not None) and any(one.type == "cpu" for one in devices):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device "
                f"GPU modules or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module "
                f"parameters {devices}."
            )
        self.process_group = group
        self.device_ids = device_ids or None
        self.output_device = output_device if output_device is not None or not device_ids else device_ids[0]
        self.device = parameters[0].device
        self.device_type = self.device.type
        self.dim = dim
        self.module = module
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients be of this process only, as they are."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Iterator[None]:
        """Allow processes to have different numbers of batches."""
        yield

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Refuse: gradients are not sent, so nothing could change them on their way."""
        raise NotImplementedError(
            "DistributedDataParallel.register_comm_hook: retrograd computes in one process\nHint: change gradients with "
            "Tensor.register_hook."
        )


__all__ = ["DistributedDataParallel"]
