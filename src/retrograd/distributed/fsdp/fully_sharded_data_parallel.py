"""torch.distributed.fsdp.fully_sharded_data_parallel: the older form of sharded modules, a wrapper around `fully_shard`.

The parameters keep their names and shapes (`use_orig_params=True` in torch's words) and are DTensors; torch joins them. In one
process they stay as they are, and what would change numbers or memory there, too, is refused: mixed precision, and offloading from a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..._public import all_of
from ...nn.modules.module import Module
from ...nn.utils.clip_grad import clip_grad_norm_
from .._collectives import _broadcast_coalesced
from .._groups import need_group
from ..checkpoint import state_dict as states
from ..device_mesh import DeviceMesh
from ..tensor._dtensor import DTensor
from . import api
from ._fully_shard import FSDPModule, MixedPrecisionPolicy, fully_shard, need_on_cpu
from ._names import FSDP_WRAPPED_MODULE, clean_tensor_name, unwrap_names, wrap_names
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from .wrap import wrap_parts

CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


class FullyShardedDataParallel(Module):
    """A module whose parameters are divided among processes, with torch's methods for its state.

    Args:
        module: the module
        process_group: the processes; all if it is not given
        sharding_strategy: `FULL_SHARD` frees parameters between forward and backward, `SHARD_GRAD_OP` keeps them
        auto_wrap_policy: which parts are wrapped on their own
        mixed_precision: the dtypes in which it computes and reduces
        ignored_modules: parts whose parameters stay whole
        sync_module_states: begin with the values of the first process
        device_mesh: the mesh instead of a group; of two dimensions for `HYBRID_SHARD`
    """

    def __init__(
        self,
        module: Any,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Any] | None = None,
        param_init_fn: Any = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        self.process_group = need_group(process_group)
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        if self.world_size == 1:
            need_plain_numbers(mixed_precision)
        if cpu_offload is not None and cpu_offload.offload_params:
            need_on_cpu(module)
        choices = {
            "process_group": process_group,
            "sharding_strategy": sharding_strategy,
            "cpu_offload": cpu_offload,
            "mixed_precision": mixed_precision,
            "use_orig_params": use_orig_params,
            "device_mesh": device_mesh,
        }
        ignored = {one for part in ignored_modules or () for one in part.modules()}
        kept = {one for part in ignored for one in part.parameters(recurse=False)}
        for one in ignored_states or ():
            kept.update(one.parameters() if isinstance(one, Module) else [one])
        if sync_module_states and self.world_size > 1:
            values = [one.detach() for one in (*module.parameters(), *module.buffers())]
            _broadcast_coalesced(self.process_group, values, 1 << 24)
        if auto_wrap_policy is not None:
            choices["ignored_states"] = kept
            wrap_parts(module, auto_wrap_policy, FullyShardedDataParallel, ignored, choices)
        self.sharding_strategy = ShardingStrategy.NO_SHARD  # as torch says where there is one process
        if self.world_size > 1:
            self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
            mesh = device_mesh or DeviceMesh.from_group(self.process_group, _device_of(module))
            fully_shard(
                module,
                **_sharding(self.sharding_strategy, mesh),
                mp_policy=_policy(mixed_precision),
                ignored_params=kept,
            )
        self.cpu_offload = cpu_offload or CPUOffload()
        self.backward_prefetch, self.forward_prefetch = backward_prefetch, forward_prefetch
        self.mixed_precision = mixed_precision or MixedPrecision()
        self.limit_all_gathers, self._use_orig_params = limit_all_gathers, True
        self._device_mesh = device_mesh
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )
        setattr(self, FSDP_WRAPPED_MODULE, module)
        self._register_state_dict_hook(_without_wrapper)
        self.register_load_state_dict_pre_hook(_with_wrapper)

    @property
    def module(self) -> Any:
        """The module inside."""
        return getattr(self, FSDP_WRAPPED_MODULE)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module inside."""
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == FSDP_WRAPPED_MODULE:
                raise
            return getattr(super().__getattr__(FSDP_WRAPPED_MODULE), name)

    def __getitem__(self, key: Any) -> Any:
        return self.module[key]

    # ---- gradients ----
    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients stay in this process, to be added to the next ones."""
        for one in _sharded_inside(self):
            one.set_requires_gradient_sync(False, recurse=False)
        try:
            yield
        finally:
            for one in _sharded_inside(self):
                one.set_requires_gradient_sync(True, recurse=False)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale the gradients down if the norm of all of them is too large, and return the norm."""
        norm = clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    def check_is_root(self) -> bool:
        """Tell whether this is the outermost one."""
        if self.world_size == 1:
            return True
        tree = self.module._get_fsdp_state().tree
        return tree is None or tree.states[0] is self.module._get_fsdp_state()

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Refuse a hook on what is sent."""
        raise NotImplementedError(
            "FullyShardedDataParallel.register_comm_hook: retrograd has no hooks on sharded gradients"
        )

    # ---- whole parameters ----
    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Any,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Let a block see whole parameters; what it writes into them is kept unless `writeback` is off."""
        if with_grads:
            raise NotImplementedError("summon_full_params(with_grads=True): see full_tensor() of each gradient")
        states = [one._get_fsdp_state() for one in _sharded_inside(module)]
        states = states if recurse else states[:1]
        for state in states:
            state.gather()
        try:
            yield
        finally:
            for state in states:
                if writeback:
                    state.keep_wholes()
                state.free()

    @staticmethod
    def fsdp_modules(module: Any, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """Return the wrapped modules inside a module, itself included."""
        found = [one for one in module.modules() if isinstance(one, FullyShardedDataParallel)]
        if not root_only:
            return found
        inner = {one for wrapped in found for one in wrapped.modules() if one is not wrapped}
        return [one for one in found if one not in inner]

    # ---- the forms of states ----
    @staticmethod
    def set_state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Choose the form of states, and return the form before."""
        config, optim_config = CONFIGS[state_dict_type]
        made = StateDictSettings(
            state_dict_type, state_dict_config or config(), optim_state_dict_config or optim_config()
        )
        if type(made.state_dict_config) is not config:
            raise RuntimeError(f"Expected state_dict_config of type {config} but got {type(made.state_dict_config)}")
        if type(made.optim_state_dict_config) is not optim_config:
            raise RuntimeError(
                f"Expected optim_state_dict_config of type {optim_config} but got {type(made.optim_state_dict_config)}"
            )
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for one in FullyShardedDataParallel.fsdp_modules(module):
            one._settings = made
        return before

    @staticmethod
    def get_state_dict_type(module: Any) -> StateDictSettings:
        """Return the form of states."""
        wrapped = FullyShardedDataParallel.fsdp_modules(module)
        if not wrapped:
            return StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig())
        return wrapped[0]._settings

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """Choose the form of states for a block."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for one in FullyShardedDataParallel.fsdp_modules(module):
                one._settings = before

    # ---- the states of optimizers ----
    @staticmethod
    def optim_state_dict(model: Any, optim: Any, optim_state_dict: Any = None, group: Any = None) -> dict[str, Any]:
        """Return an optimizer's state by the names of the parameters."""
        config = FullyShardedDataParallel.get_state_dict_type(model).optim_state_dict_config
        return states.get_optimizer_state_dict(
            model, optim, options=states.StateDictOptions(cpu_offload=config.offload_to_cpu)
        )

    @staticmethod
    def optim_state_dict_to_load(
        model: Any,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """Return a state by names in the form that the optimizer loads."""
        from ..checkpoint.state_dict import _by_numbers, _names

        found = _by_numbers(optim, optim_state_dict, _names(model))
        if load_directly:
            states.set_optimizer_state_dict(model, optim, optim_state_dict)
        return found

    @staticmethod
    def full_optim_state_dict(
        model: Any, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """Return an optimizer's state by the names of the parameters, on the CPU."""
        return states.get_optimizer_state_dict(model, optim, options=states.StateDictOptions(cpu_offload=True))

    sharded_optim_state_dict = optim_state_dict

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any] | None,
        model: Any,
        optim_input: Any = None,
        optim: Any = None,
        group: Any = None,
    ) -> dict[str, Any]:
        """Return a whole state in the form that the optimizer loads."""
        if optim is None or full_optim_state_dict is None:
            raise ValueError("scatter_full_optim_state_dict: retrograd needs `full_optim_state_dict` and `optim`")
        return FullyShardedDataParallel.optim_state_dict_to_load(model, optim, full_optim_state_dict)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any], model: Any, optim_input: Any = None, optim: Any = None
    ) -> dict[str, Any]:
        """Return a whole state in the form that the optimizer loads."""
        return FullyShardedDataParallel.scatter_full_optim_state_dict(full_optim_state_dict, model, None, optim)

    @staticmethod
    def flatten_sharded_optim_state_dict(
        sharded_optim_state_dict: dict[str, Any], model: Any, optim: Any
    ) -> dict[str, Any]:
        """Return a state of parts in the form that the optimizer loads."""
        return FullyShardedDataParallel.optim_state_dict_to_load(model, optim, sharded_optim_state_dict)

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any],
        optim_state_key_type: OptimStateKeyType,
        model: Any,
        optim_input: Any = None,
        optim: Any = None,
    ) -> dict[str, Any]:
        """Name an optimizer's states by the names of parameters or by their numbers."""
        names = [clean_tensor_name(name) for name, _ in model.named_parameters()]
        if optim is not None:
            by_parameter = {one: clean_tensor_name(name) for name, one in model.named_parameters()}
            names = [by_parameter[one] for group in optim.param_groups for one in group["params"]]
        to_name = optim_state_key_type is OptimStateKeyType.PARAM_NAME
        keys: dict[Any, Any] = dict(enumerate(names)) if to_name else {name: at for at, name in enumerate(names)}
        return {
            "state": {keys[key]: value for key, value in optim_state_dict["state"].items()},
            "param_groups": [
                {**group, "params": [keys[one] for one in group["params"]]}
                for group in optim_state_dict["param_groups"]
            ],
        }

    _optim_state_dict_impl = optim_state_dict


def _without_wrapper(module: Any, state: dict[str, Any], prefix: str, *others: Any) -> None:
    """Take the wrapper's part out of the names of a state, make its values whole, and bring it to the CPU, as was chosen."""
    unwrap_names(state, prefix, FSDP_WRAPPED_MODULE)
    kind, config = module._settings.state_dict_type, module._settings.state_dict_config
    inside = [name for name, one in state.items() if name.startswith(prefix) and isinstance(one, DTensor)]
    if kind is StateDictType.FULL_STATE_DICT:
        state.update({name: state[name].full_tensor().detach() for name in inside})
        if getattr(config, "rank0_only", False) and module.rank != 0:
            for name in [name for name in state if name.startswith(prefix)]:
                del state[name]
    elif kind is StateDictType.LOCAL_STATE_DICT and inside:
        raise NotImplementedError("LOCAL_STATE_DICT: retrograd's shards are those of SHARDED_STATE_DICT")
    if module._settings.state_dict_config.offload_to_cpu:
        state.update(
            {name: one.cpu() for name, one in state.items() if name.startswith(prefix) and hasattr(one, "cpu")}
        )


def _with_wrapper(module: Any, state: dict[str, Any], prefix: str, *others: Any) -> None:
    """Put the wrapper's part into the names of a state."""
    wrap_names(state, prefix, FSDP_WRAPPED_MODULE)


def _sharded_inside(module: Any) -> list[Any]:
    return [one for one in module.modules() if isinstance(one, FSDPModule)]


def _device_of(module: Any) -> str:
    kind = next((one.device.type for one in module.parameters()), "cpu")
    return "cpu" if kind == "meta" else kind


def _sharding(strategy: ShardingStrategy, mesh: DeviceMesh) -> dict[str, Any]:
    """Return what a strategy is in the words of `fully_shard`."""
    hybrid = strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
    if strategy is ShardingStrategy.NO_SHARD:
        raise NotImplementedError("ShardingStrategy.NO_SHARD: use DistributedDataParallel, which does the same")
    if hybrid and mesh.ndim != 2:
        raise NotImplementedError(
            f"{strategy} needs a device_mesh of two dimensions: replicas, and processes that shard"
        )
    keeps = strategy in (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
    return {"mesh": mesh, "reshard_after_forward": False if keeps else None}


def _policy(precision: MixedPrecision | None) -> MixedPrecisionPolicy | None:
    if precision is None:
        return None
    if precision.buffer_dtype is not None or precision.keep_low_precision_grads:
        raise NotImplementedError(
            "MixedPrecision(buffer_dtype, keep_low_precision_grads): retrograd's sharded modules keep buffers and gradients in "
            "their dtypes\nHint: cast buffers by module.to."
        )
    casts = precision.cast_forward_inputs or precision.cast_root_forward_inputs
    return MixedPrecisionPolicy(
        precision.param_dtype, precision.reduce_dtype or precision.param_dtype, cast_forward_inputs=casts
    )


def need_plain_numbers(precision: Any) -> None:
    """Refuse other dtypes than those of the parameters: nothing here would cast to them."""
    names = ("param_dtype", "reduce_dtype", "buffer_dtype", "output_dtype")
    asked = [name for name in names if getattr(precision, name, None) is not None]
    if asked:
        raise NotImplementedError(
            f"{type(precision).__name__}({', '.join(asked)}) on one process: retrograd's sharded modules compute in the dtypes of "
            "their parameters\nHint: use torch.autocast, or module.to(dtype)."
        )


__all__ = ["FullyShardedDataParallel", *all_of(api)]
