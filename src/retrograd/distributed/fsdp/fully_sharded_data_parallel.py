"""torch.distributed.fsdp.fully_sharded_data_parallel: a module whose parameters are divided among processes; one process has them all.

The parameters stay as they are (`use_orig_params=True` in torch's words), and nothing is gathered or divided. What would change numbers or
memory on one process, too, is refused: mixed precision, and offloading from a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..._public import all_of
from ...nn.modules.module import Module
from ...nn.utils.clip_grad import clip_grad_norm_
from .._groups import need_group
from .._one_process_only import SHARDED_INSTEAD, need_one_process
from ..checkpoint import state_dict as states
from . import api
from ._fully_shard import need_on_cpu
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
    """A module in a group of one process, with torch's methods for its state."""

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
        need_one_process("FullyShardedDataParallel", SHARDED_INSTEAD, process_group)
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
        if auto_wrap_policy is not None:
            ignored = {one for part in ignored_modules or () for one in part.modules()}
            wrap_parts(module, auto_wrap_policy, FullyShardedDataParallel, ignored, choices)
        self.rank, self.world_size = 0, 1
        self.sharding_strategy = ShardingStrategy.NO_SHARD  # as torch says where there is one process
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
        """Let gradients be of this process only, as they are."""
        yield

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale the gradients down if their norm is too large, and return the norm."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    def check_is_root(self) -> bool:
        """Tell whether this is the outermost one."""
        return True

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Refuse a hook on what is sent: nothing is."""
        raise NotImplementedError("FullyShardedDataParallel.register_comm_hook: one process sends nothing")

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
        """Let a block see whole parameters, as they always are."""
        yield

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
    """Take the wrapper's part out of the names of a state, and bring it to the CPU if that was chosen."""
    unwrap_names(state, prefix, FSDP_WRAPPED_MODULE)
    if module._settings.state_dict_config.offload_to_cpu:
        state.update(
            {name: one.cpu() for name, one in state.items() if name.startswith(prefix) and hasattr(one, "cpu")}
        )


def _with_wrapper(module: Any, state: dict[str, Any], prefix: str, *others: Any) -> None:
    """Put the wrapper's part into the names of a state."""
    wrap_names(state, prefix, FSDP_WRAPPED_MODULE)


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
