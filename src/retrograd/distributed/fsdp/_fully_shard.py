"""`fully_shard`: a module whose parameters, gradients and optimizer states are divided among processes, without a wrapper."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NoReturn

from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from ..device_mesh import DeviceMesh
from ..tensor._dtensor import DTensor
from ..tensor.placement_types import Shard
from ._parameters import ShardedParameter, managed_parameters
from ._states import State, Tree


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters, gradients and outputs while a module runs; its shards keep theirs.

    Args:
        param_dtype: of the whole parameters, in which the module computes
        reduce_dtype: in which gradients are added up
        output_dtype: to which the outputs of forward are brought
        cast_forward_inputs: whether inputs are brought to `param_dtype`
    """

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
    """Waits until the parameters of a module are whole."""

    def __init__(self, state: State | None = None) -> None:
        self._state = state

    def wait(self) -> None:
        """Wait until they are, and let the module have them."""
        if self._state is not None:
            self._state.finish_gathering()
            self._state = None


class FSDPModule:
    """What `fully_shard` adds to a module."""

    _fsdp_state: State

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a module of the class without this one, as where a container is sliced."""
        plain: Any = cls.__mro__[2]
        made = plain.__new__(plain)
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self) -> State:
        return self._fsdp_state

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Make this module's parameters whole.

        Args:
            async_op: only start to; the result's `wait`, or the module's forward, waits
        """
        self._fsdp_state.start_gathering()
        if async_op:
            return UnshardHandle(self._fsdp_state)
        self._fsdp_state.finish_gathering()
        return None

    def reshard(self) -> None:
        """Keep only the shards of this module's parameters."""
        self._fsdp_state.free()

    def _states(self, recurse: bool) -> list[State]:
        modules = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        return list(dict.fromkeys(one._fsdp_state for one in modules if isinstance(one, FSDPModule)))

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Choose whether the end of the next backward waits for the gradients."""
        _tree_of(self._fsdp_state).is_last_backward = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Choose whether gradients are reduced. Those that are not stay whole, and are added to the next ones."""
        for state in self._states(recurse):
            state.reduces = state.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Choose whether gradients are added up over replicas, where the mesh has two dimensions."""
        for state in self._states(recurse):
            state.all_reduces = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Choose whether the parameters are freed after forward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for state in self._states(recurse):
            state.frees_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Choose whether the parameters are freed after backward."""
        for state in self._states(recurse):
            state.frees_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """Choose the modules whose parameters start to be gathered when this one's forward begins."""
        self._fsdp_state.next_in_forward = _states_of(modules)

    def set_modules_to_backward_prefetch(self, modules: list[Any]) -> None:
        """Choose the modules whose parameters start to be gathered when this one's backward begins, instead of the one before it."""
        self._fsdp_state.next_in_backward = _states_of(modules)

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Choose whether the parameters are gathered for backward, which a module without use for them there does not need."""
        self._fsdp_state.gathers_in_backward = unshard_in_backward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Choose by what the sum of all processes' gradients is divided, instead of by their number."""
        self._fsdp_state.divisor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def reset_iter_state(self) -> None:
        """Forget a forward or backward that an error has ended, in all processes: its gradients are lost."""
        tree = _tree_of(self._fsdp_state)
        if tree.states[0] is not self._fsdp_state:
            raise RuntimeError("reset_iter_state() must be called on the root FSDP module")
        for work in (one[0] for *_, started in tree.reducing for one in started):
            if work is not None:
                work.wait()
        tree.reducing.clear()
        tree.order.clear()
        tree.end_queued = False
        for state in tree.states:
            state.reset()

    def _accept(self, *args: Any, **kwargs: Any) -> None:
        """Accept a choice about streams or memory of GPUs, which changes no numbers."""

    set_post_optim_event = set_force_sum_reduction_for_comms = set_allocate_memory_from_process_group_for_comm = _accept
    set_separate_reduce_scatter_group = _accept

    def set_all_reduce_hook(self, hook: Any, *, stream: Any = None) -> None:
        """Refuse a hook on what is sent."""
        raise NotImplementedError("FSDPModule.set_all_reduce_hook: retrograd has no hooks on sharded gradients")

    set_custom_all_gather = set_custom_reduce_scatter = set_all_reduce_hook

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self._fsdp_state.free()
        made = super()._apply(*args, **kwargs)  # type: ignore[misc]
        self._fsdp_state.forget_wholes()
        return made

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


def _tree_of(state: State) -> Tree:
    """Return what the modules around a state share; before the first forward it is a root."""
    if state.tree is None:
        state.tree = Tree()
        state.tree.states = [state]
    return state.tree


def _states_of(modules: Any) -> list[State]:
    for one in modules:
        if not isinstance(one, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(one)}: {one}")
    return [one._fsdp_state for one in modules]


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
    dp_mesh_dims: Any = None,
) -> Any:
    """Divide the parameters of a module among processes, each of which keeps a part. They are whole while the module computes.

    Apply it to the layers first, then to the whole: what an inner module has is gathered and freed with that module. The parameters
    become DTensors; optimizers update the parts, so make them afterwards.

    Args:
        module: the module, or several that are gathered together; changed in place
        mesh: of one dimension, along which parameters are cut, or of two: replicas of what the second divides; all processes if not given.
            Of tensor-parallel layers, other dimensions of the mesh that those are on
        reshard_after_forward: whether the parameters are freed between forward and backward; if not given, unless it is the root
        shard_placement_fn: returns the `Shard` of a parameter; by default dimension 0 is cut
        mp_policy: the dtypes in which it computes and reduces
        offload_policy: where the parts are kept
        ignored_params: parameters that stay whole, and whose gradients are not reduced

    Returns:
        The module, which is an `FSDPModule` now, too.
    """
    modules = [module] if isinstance(module, Module) else list(module)
    for one in modules:
        if isinstance(one, (ModuleList, ModuleDict)) and type(one).forward is Module.forward:
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {one}")
        if isinstance(one, FSDPModule):
            raise AssertionError(f"fully_shard has been applied to this module: {type(one).__name__}")
    if dp_mesh_dims is not None:
        raise NotImplementedError("fully_shard(dp_mesh_dims=...): retrograd shards over a mesh of its own")
    mesh = mesh or _default_mesh(modules)
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    frees = _frees_after_forward(reshard_after_forward, mesh.size(mesh.ndim - 1))
    if isinstance(offload_policy, CPUOffloadPolicy):
        for one in modules:
            need_on_cpu(one)
    found = managed_parameters(modules, set(ignored_params or ()), lambda one: isinstance(one, FSDPModule))
    dims = [_cut_dim(parameter, shard_placement_fn, mesh) for _, parameter in found]
    parameters = [
        ShardedParameter(holders, parameter, mesh, dim) for (holders, parameter), dim in zip(found, dims, strict=True)
    ]
    state = State(modules, parameters, mp_policy or MixedPrecisionPolicy(), mesh)
    state.frees_after_forward = frees
    for one in modules:
        kind = type(one)
        if kind not in _classes:
            _classes[kind] = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {})
        one.__class__ = _classes[kind]
        one._fsdp_state = state
        one.register_forward_pre_hook(state.before_forward, prepend=True, with_kwargs=True)
        one.register_forward_hook(state.after_forward)
    return module


def _default_mesh(modules: list[Any]) -> DeviceMesh:
    device = next((one.device.type for module in modules for one in module.parameters()), "cpu")
    return DeviceMesh("cpu" if device == "meta" else device)


def _cut_dim(parameter: Any, choose: Any, mesh: DeviceMesh) -> int:
    """Return the dimension along which a parameter is cut."""
    chosen = None if choose is None else choose(parameter)
    if chosen is None:
        return 0
    if not isinstance(chosen, Shard):
        raise NotImplementedError(f"shard_placement_fn must return a Shard or None, not {chosen!r}")
    dim: int = chosen.dim % parameter.ndim
    count = mesh.size(mesh.ndim - 1)
    shape = parameter.to_local().shape if isinstance(parameter, DTensor) else parameter.shape
    if dim != 0 and shape[dim] % count:
        raise NotImplementedError(f"FSDP does not support uneven sharding on dim {dim}: {shape} (world size: {count})")
    return dim


def _frees_after_forward(given: Any, count: int) -> bool | None:
    if given is None or isinstance(given, bool):
        return given
    if not isinstance(given, int):
        raise ValueError(
            f"reshard_after_forward should be a bool or an int representing the group size to reshard to, not {given}"
        )
    if given < 1 or given > count or count % given:
        raise ValueError(f"If passing reshard_after_forward as an int, it should be a factor of {count}, not {given}")
    if given not in (1, count):
        raise NotImplementedError(
            f"reshard_after_forward={given}: retrograd keeps parameters whole (False) or in {count} parts (True)"
        )
    return given == count


def need_on_cpu(module: Any) -> None:
    """Refuse to keep the parameters of a GPU on the CPU."""
    if any(one.device.type not in ("cpu", "meta") for one in module.parameters()):
        raise NotImplementedError("offloading parameters from a GPU: retrograd keeps them where they are")


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let a method of a sharded module have whole parameters, as forward has; on other modules this does nothing."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)
    state = module._fsdp_state

    @functools.wraps(method)
    def with_whole_parameters(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before_forward(module, args, kwargs)
        return state.after_forward(module, args, method(*args, **kwargs))

    setattr(module, method_name, with_whole_parameters)


def share_comm_ctx(modules: list[Any]) -> None:
    """Accept that modules share the streams on which they exchange: there is one."""
    for one in modules:
        if not isinstance(one, FSDPModule):
            raise ValueError(f"Expects list of FSDPModules but got {one}")
