"""torch.distributed.fsdp.api: the choices of FullyShardedDataParallel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..._public import set_all
from ...nn.modules.batchnorm import _BatchNorm


class ShardingStrategy(Enum):
    """What is divided among the processes."""

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class BackwardPrefetch(Enum):
    """When the next parameters are gathered."""

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


@dataclass
class MixedPrecision:
    """The dtypes of parameters, gradients and buffers while a module runs."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether parameters stay in the memory of the CPU."""

    offload_params: bool = False


class StateDictType(Enum):
    """Which form a state has: whole, this process's part, or parts with their places."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


class OptimStateKeyType(Enum):
    """How the states of an optimizer are named."""

    PARAM_NAME = 1
    PARAM_ID = 2


@dataclass
class StateDictConfig:
    """The choices of a state."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """The choices of a whole state."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """The choices of a process's part."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """The choices of parts with their places."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """The choices of an optimizer's state."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """The choices of a whole optimizer's state."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """The choices of a process's part of an optimizer's state."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """The choices of parts of an optimizer's state with their places."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """The choices in force."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


set_all(globals())
