"""`fully_shard`: a module whose parameters are divided among processes, without a wrapper; one process has them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...nn.modules.container import ModuleDict, ModuleList
from .._groups import init_process_group, is_initialized
from .._one_process_only import SHARDED_INSTEAD, need_one_process
from ..device_mesh import DeviceMesh
from .fully_sharded_data_parallel import need_on_cpu, need_plain_numbers


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters, gradients and outputs while a module runs."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Nothing is kept elsewhere."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters, gradients and states are kept in the memory of the CPU."""

    pin_memory: bool = True


class UnshardHandle:
    """Waits until the parameters are whole, as they are."""

    def wait(self) -> None:
        """Return at once."""


class FSDPModule:
    """What `fully_shard` adds to a module. The parameters of one process are always whole, so that its switches only are accepted."""

    _fsdp_mesh: DeviceMesh

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Make the parameters whole, as they are."""
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Divide the parameters among the processes: among one."""

    def _accept(self, *args: Any, **kwargs: Any) -> None:
        """Accept a choice about when processes exchange what: one does not."""

    set_is_last_backward = set_requires_gradient_sync = set_requires_all_reduce = _accept
    set_reshard_after_backward = set_reshard_after_forward = set_unshard_in_backward = _accept
    set_modules_to_forward_prefetch = set_modules_to_backward_prefetch = set_post_optim_event = _accept
    set_force_sum_reduction_for_comms = set_allocate_memory_from_process_group_for_comm = _accept
    reset_iter_state = set_separate_reduce_scatter_group = _accept

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Choose by what gradients are divided: by 1."""
        if factor != 1.0:
            raise NotImplementedError(
                f"set_gradient_divide_factor({factor}) on one process: divide the loss instead, which is the same"
            )

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_all_reduce_hook(self, hook: Any, *, stream: Any = None) -> None:
        """Refuse a hook on what is sent: nothing is."""
        raise NotImplementedError("FSDPModule.set_all_reduce_hook: one process reduces nothing")


_classes: dict[type, type] = {}


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: Any = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: Any = None,
) -> Any:
    """Let a module, or each of several, be an FSDPModule of one process, and return it.

    The parameters stay plain tensors: torch makes them DTensors.
    """
    need_one_process("fully_shard", SHARDED_INSTEAD)
    for one in module if isinstance(module, (list, tuple)) else [module]:
        if isinstance(one, (ModuleList, ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {one}")
        need_plain_numbers(mp_policy)
        if isinstance(offload_policy, CPUOffloadPolicy):
            need_on_cpu(one)
        if mesh is None:
            if not is_initialized():
                init_process_group()
            device = next((parameter.device.type for parameter in one.parameters()), "cpu")
            mesh = DeviceMesh(device, [0])
        kind = type(one)
        if not issubclass(kind, FSDPModule):
            one.__class__ = _classes.setdefault(kind, type(f"FSDP{kind.__name__}", (FSDPModule, kind), {}))
        one._fsdp_mesh = mesh
    return module


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Accept that a method computes as forward does: the parameters are whole in every method."""
    if isinstance(module, FSDPModule) and not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")


def share_comm_ctx(modules: list[Any]) -> None:
    """Accept that modules share how they exchange: they do not."""
    for one in modules:
        if not isinstance(one, FSDPModule):
            raise ValueError(f"Expects list of FSDPModules but got {modules}")
