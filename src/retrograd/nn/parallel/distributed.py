"""A module whose gradients are averaged over processes while backward computes them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any
from weakref import ref

from ..._modes import current_mode, using
from ..._warnings import warn
from ...autograd.function import Function
from ...autograd.grad_mode import _unsafe_preserve_version_counter
from ...distributed._collectives import _broadcast_coalesced, all_reduce
from ...distributed._groups import _get_default_group, need_group
from ...distributed._reducer import (
    BuiltinCommHookType,
    GradBucket,
    Reducer,
    _verify_params_across_processes,
)
from ...distributed._reductions import ReduceOp
from ...distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, fp16_compress_hook
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ...distributed.utils import _sync_module_states
from ...futures import Future
from ...tensor import Tensor
from ...tensor._functions.creation import ones, tensor, zeros
from ...utils._pytree import tree_flatten, tree_unflatten
from ..modules.module import Module
from ..parameter import UninitializedParameter
from .scatter_gather import scatter

MIB = 1024 * 1024
FIRST_BUCKET_BYTES = MIB
BUILTIN_HOOKS = {
    BuiltinCommHookType.ALLREDUCE: allreduce_hook,
    BuiltinCommHookType.FP16_COMPRESS: fp16_compress_hook,
}


class _DDPSink(Function):
    """Passes outputs on, and tells the reducer when their backward begins."""

    @staticmethod
    def forward(ctx: Any, wrapper: Any, *outputs: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.wrapper = wrapper
        return tuple(one.clone() if isinstance(one, Tensor) else one for one in outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        wrapper = ctx.wrapper()
        if wrapper is not None:
            wrapper.reducer.backward_began()
        return (None, *grads)


class _DDPJoinHook(JoinHook):
    """What a process without inputs does for the others: the collectives of a forward and a backward, with zeros."""

    def __init__(self, ddp: Any, divide_by_initial_world_size: bool) -> None:
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        """Take part in a step of the others."""
        ddp = self.ddp
        ddp.reducer.rebuild_buckets()
        if ddp.will_sync_module_buffers():
            ddp._broadcast_buffers(ddp._common_rank(False))
        ddp.require_forward_param_sync = ddp._is_sync_wanted(False)
        if ddp.require_forward_param_sync:
            ddp.reducer.shadow_backward()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take the module of one of the processes that were last."""
        ddp = self.ddp
        ddp._sync_states(ddp._common_rank(is_last_joiner), ddp.forward_sync_buffers)


class DistributedDataParallel(Module, Joinable):
    """A module whose copies in several processes stay equal: they start from rank 0's, and gradients are averaged.

    Gradients are collected in buckets and averaged while backward goes on: see Note [Reduction during backward] in
    `distributed/_reducer.py`. The names of the state have `module.` before them.

    Args:
        module: the module, the same in all processes
        device_ids: the device of this process, in a list
        find_unused_parameters: look for parameters that a forward pass does not use
        gradient_as_bucket_view: let gradients be views of the buckets
        static_graph: the same parameters are used in each step
        bucket_cap_mb: the size of a bucket
        process_group: which processes; all unless it is given

    Example:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> list(model.state_dict())
        ['module.weight', 'module.bias']
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
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
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        _refuse_missing(delay_all_reduce_named_params, param_to_hook_all_reduce, mixed_precision)
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None and device_mesh.ndim != 1:
            raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
        self.process_group = need_group(process_group if device_mesh is None else device_mesh.get_group(mesh_dim=0))
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._module_parameters = [
            one for name, one in module.named_parameters() if name not in self.parameters_to_ignore
        ]
        self._check_parameters(device_ids, output_device)
        self.dim = dim
        self.module = module
        self.forward_sync_buffers, at_first = _buffers_are_sent(broadcast_buffers, forward_sync_buffers)
        if check_reduction:
            warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please avoid using it.",
                FutureWarning,
            )
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.skip_all_reduce_unused_params, self.batched_grad_copy = skip_all_reduce_unused_params, batched_grad_copy
        self.static_graph = False
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.broadcast_bucket_size = 250 * MIB
        self._divide_by_initial_world_size = True
        self._comm_hooks: list[tuple[Any, Any]] = []
        caps = [int(one * MIB) for one in bucket_cap_mb_list or ()]
        self.bucket_bytes_cap = max(caps) if caps else int((25 if bucket_cap_mb is None else bucket_cap_mb) * MIB)
        first = FIRST_BUCKET_BYTES if bucket_cap_mb is None else self.bucket_bytes_cap
        self._limits = caps or [first, self.bucket_bytes_cap]
        self._made_static = static_graph
        named = self._trained_parameters()
        if init_sync:
            _verify_params_across_processes(self.process_group, [one for _, one in named])
            self._sync_states(0, at_first)
        self._make_reducer(named)
        if static_graph:
            self._set_static_graph()

    def _check_parameters(self, device_ids: Any, output_device: Any) -> None:
        parameters = self._module_parameters
        if not any(one.requires_grad for one in parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        devices = {one.device for one in parameters}
        kinds = {one.type for one in devices}
        if len(kinds) != 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but input module parameters "
                f"locate in {kinds}."
            )
        if (device_ids or output_device is not None) and ("cpu" in kinds or len(devices) > 1):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device "
                f"GPU modules or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module "
                f"parameters {devices}."
            )
        if any(isinstance(one, UninitializedParameter) for one in parameters):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy forward pass "
                "to correctly initialize the modules"
            )
        self.device_ids = list(device_ids) if device_ids else None
        self.output_device = output_device if output_device is not None or not device_ids else device_ids[0]
        self.device = parameters[0].device
        self.device_type = self.device.type
        self.is_multi_device_module = len(devices) > 1

    def _trained_parameters(self) -> list[tuple[str, Any]]:
        """Return the parameters that get gradients, each once."""
        return [
            (name, one)
            for name, one in self.module.named_parameters()
            if one.requires_grad and name not in self.parameters_to_ignore
        ]

    def _make_reducer(self, named: list[tuple[str, Any]]) -> None:
        at_first = [sys.maxsize] if self._made_static or not self.find_unused_parameters else self._limits
        self.reducer = Reducer(
            [one for _, one in named],
            [name for name, _ in named],
            self.process_group,
            at_first,
            self._limits,
            find_unused=self.find_unused_parameters,
            as_views=self.gradient_as_bucket_view,
        )

    def _set_static_graph(self) -> None:
        """Take every backward for one like the first: as often as there a parameter gets gradients, or not at all."""
        if self.static_graph:
            warn("You've set static_graph to be True, no need to call `_set_static_graph` again.")
            return
        self.static_graph = self.reducer.static = True
        if self.find_unused_parameters:
            warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect unused "
                "parameters automatically, so you do not need to set find_unused_parameters=true, just be sure these unused "
                "parameters will not change during training loop while calling `_set_static_graph`."
            )

    @property
    def broadcast_buffers(self) -> bool:
        """Whether every forward begins with rank 0's buffers."""
        return bool(self.forward_sync_buffers)

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    # ---- copies and pickles ----
    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not _get_default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when you "
                "have called init_process_group and have not passed process_group argument to DDP constructor"
            )
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("process_group", "reducer", "_comm_hooks")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = _get_default_group()
        super().__setstate__(state)
        self._comm_hooks = []
        self._make_reducer(self._trained_parameters())
        self.reducer.static = self.static_graph

    # ---- steps ----
    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module; the backward of what it returns averages gradients, unless inside `no_sync`."""
        inputs, kwargs = self._pre_forward(inputs, kwargs)
        return self._post_forward(self.module(*inputs, **kwargs))

    def _pre_forward(self, inputs: Any, kwargs: Any) -> Any:
        work = Join.notify_join_context(self)
        if work is not None and not self._divide_by_initial_world_size:
            self.reducer.joined = lambda: float(work.wait() and work.result()[0].item())
        if current_mode().grad:
            self.reducer.rebuild_buckets()
        if self.will_sync_module_buffers():
            self._broadcast_buffers(self._common_rank(True) if self._join_config.enable else 0)
        if self._join_config.enable:
            self._is_sync_wanted(self.require_backward_grad_sync)
        if self.device_ids:
            inputs, kwargs = (scatter(one, self.device_ids, self.dim) for one in (inputs, kwargs))
            inputs, kwargs = inputs[0] if inputs else (), kwargs[0] if kwargs else {}
        return inputs, kwargs

    def _post_forward(self, output: Any) -> Any:
        wanted = current_mode().grad and self.require_backward_grad_sync
        self.require_forward_param_sync = wanted
        finds = self.find_unused_parameters and not self.static_graph
        if wanted:
            self.reducer.prepare_for_backward(_find_tensors(output) if finds else ())
        if finds or (self.static_graph and self.reducer.fired is None):
            output = self._through_sink(output)
        return output

    def _through_sink(self, output: Any) -> Any:
        parts, structure = tree_flatten(output)
        passed = _DDPSink.apply(ref(self), *parts)
        kept = [
            one if not isinstance(one, Tensor) or one.grad_fn is None else new
            for one, new in zip(parts, passed, strict=True)
        ]
        return tree_unflatten(kept, structure)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients add up in this process; the first forward and backward after the block averages them."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # ---- buffers and states ----
    def will_sync_module_buffers(self) -> bool:
        """Tell whether the next forward begins with the buffers of one process."""
        return bool(
            self.require_forward_param_sync
            and self.forward_sync_buffers
            and self.process_group.size() > 1
            and self._sent_buffers()
        )

    def _sent_buffers(self) -> list[Any]:
        return [one for name, one in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _broadcast_buffers(self, source: int) -> None:
        buffers = self._sent_buffers()
        with using(grad=False), _unsafe_preserve_version_counter(tuple(buffers)):
            _broadcast_coalesced(self.process_group, buffers, self.broadcast_bucket_size, source)

    def _sync_states(self, source: int, buffers: bool) -> None:
        _sync_module_states(
            self.module, self.process_group, self.broadcast_bucket_size, source, self.parameters_to_ignore, buffers
        )

    # ---- processes with different numbers of inputs ----
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Return a block in which processes may have different numbers of batches."""
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what this process does for the others once it has no batches left."""
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group."""
        return self.process_group

    def _common_rank(self, candidate: bool) -> int:
        """Agree on one of the processes that are candidates: the last of them."""
        found = tensor([self.process_group.rank() if candidate else -1], device=self.device)
        all_reduce(found, ReduceOp.MAX, self.process_group)
        return int(found.item())

    def _is_sync_wanted(self, here: bool) -> bool:
        """Tell whether some process averages the gradients of this step."""
        found = ones(1, device=self.device) if here else zeros(1, device=self.device)
        all_reduce(found, group=self.process_group)
        return bool(found.item() > 0)

    # ---- communication hooks ----
    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Let `hook(state, bucket)` do what averages a bucket of gradients: it returns a Future of the tensor that they become."""
        _check_hook(hook)
        if self._comm_hooks:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._comm_hooks.append((hook, state))
        self.reducer.hook = lambda bucket: hook(state, bucket)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Any, params_and_buffers_to_ignore: Any) -> None:
        """Name the parameters and buffers of a module that each process keeps as its own, before it is wrapped."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        """Register one of the hooks that torch has built in."""
        self.register_comm_hook(self.process_group, BUILTIN_HOOKS[comm_hook_type])


def _refuse_missing(delayed: Any, hooked: Any, mixed_precision: Any) -> None:
    if (delayed is None) != (hooked is None):
        raise ValueError("delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time.")
    if delayed is not None:
        raise NotImplementedError(
            "DistributedDataParallel: delay_all_reduce_named_params is not implemented\nHint: without it these parameters are "
            "averaged with the others."
        )
    if mixed_precision is not None:
        raise NotImplementedError(
            "DistributedDataParallel: mixed_precision is not implemented\nHint: use torch.autocast in the forward and "
            "register_comm_hook with fp16_compress_hook or bf16_compress_hook."
        )


def _buffers_are_sent(broadcast: bool | None, forward_sync: bool | None) -> tuple[bool, bool]:
    """Return whether buffers are sent before every forward, and whether they are at first."""
    if broadcast is not None and forward_sync is not None:
        warn(
            "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated and its value "
            "is ignored when `forward_sync_buffers` is provided.",
            FutureWarning,
        )
    elif broadcast is not None:
        warn(
            "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike `broadcast_buffers=False`, "
            "`forward_sync_buffers=False` still syncs buffers at init. If you rely on buffers NOT being synced at init (e.g. "
            "rank-local buffers), keep using `broadcast_buffers=False` until `init_sync_buffers` is available.",
            FutureWarning,
        )
    if forward_sync is not None:
        return forward_sync, True
    return (True, True) if broadcast is None else (broadcast, broadcast)


def _check_hook(hook: Any) -> None:
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook)
    taken = signature.parameters["bucket"].annotation
    written = isinstance(taken, str) and taken.endswith(("GradBucket", "Any"))  # where annotations are not evaluated
    if not written and taken not in (inspect.Parameter.empty, GradBucket, Any):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    given = signature.return_annotation
    if given not in (inspect.Signature.empty, Future[Tensor], Any) and not isinstance(given, str):
        raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")


def _find_tensors(value: Any) -> list[Any]:
    """Return the tensors in lists, dicts and dataclasses."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        parts: Any = value
    elif isinstance(value, dict):
        parts = value.values()
    elif is_dataclass(value):
        parts = (getattr(value, one.name) for one in fields(value))
    else:
        return []
    return [one for part in parts for one in _find_tensors(part)]


__all__ = ["DistributedDataParallel"]
