"""torch.distributed.checkpoint.state_dict: the states of modules and optimizers by the names of the parameters.

Names are those of the module without what wrappers put in front (`module.`, `_fsdp_wrapped_module.`), so that a state can be
loaded into the module however it is wrapped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._public import set_all
from ..._tracebacks import guard_listed as _guard_listed
from ...autograd.grad_mode import no_grad
from ...tensor import Tensor
from ...tensor._functions.creation import empty
from ...tensor._functions.creation import zeros_like as _zeros_like
from ...utils._pytree import tree_map
from .._collectives import broadcast
from .._groups import get_rank, is_initialized
from .._objects import broadcast_object_list
from ..fsdp._names import clean_name
from ..optim import ZeroRedundancyOptimizer
from ..tensor import DTensor, distribute_tensor
from ._nesting import taken_apart

# What signatures mention: values of a state_dict, and of an optimizer's.
FQNS_T = set[str]
PrimitiveType = Tensor | int | float | str
ValueType = Any
DictValueType = dict[str, ValueType]
ListDictValueType = list[DictValueType]
OptimizerStateType = dict[str, DictValueType | ListDictValueType]


@dataclass
class StateDictOptions:
    """Which values are returned, and how they are taken over."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


# ---- modules ----
def get_model_state_dict(
    model: Any, *, submodules: set[Any] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return the state of a module, or of some of its parts."""
    options = options or StateDictOptions()
    state = {clean_name(name): value for name, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        frozen = {clean_name(name) for name, one in model.named_parameters() if not one.requires_grad}
        state = {name: value for name, value in state.items() if name not in frozen}
    if submodules is not None:
        prefixes = [f"{clean_name(name)}." for name, one in model.named_modules() if one in submodules]
        keep = options.keep_submodule_prefixes
        state = {
            name if keep else name.removeprefix(prefix): value
            for prefix in prefixes
            for name, value in state.items()
            if name.startswith(prefix)
        }
    return _moved(state, options)  # type: ignore[no-any-return]


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Let a module take a state over, and return the names that did not fit."""
    options = _checked(options)
    own = {clean_name(name): (name, value) for name, value in model.state_dict().items()}
    if options.full_state_dict:
        wanted = {name: value for name, (_, value) in own.items()}
        model_state_dict = _handed_out(model_state_dict, wanted, options)
    by_clean_name = {name: full_name for name, (full_name, _) in own.items()}
    state = {by_clean_name.get(name, name): value for name, value in model_state_dict.items()}
    return model.load_state_dict(state, strict=options.strict)


# ---- optimizers ----
def get_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: set[Any] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Return the states of optimizers by the names of the parameters.

    Of a `ZeroRedundancyOptimizer` it is the part of this process, under names that all processes agree on: a checkpoint of it can be loaded
    by any number of processes.
    """
    options = options or StateDictOptions()
    names = _names(model)
    wanted = None
    if submodules is not None:
        wanted = {id(one) for part in submodules for one in part.parameters()}
    made: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        states = _states_of(optimizer)
        for group in optimizer.param_groups:
            held = [one for one in group["params"] if wanted is None or id(one) in wanted]
            for one in held:
                if one in states:
                    made["state"][names[one]] = dict(states[one])
            others = {name: value for name, value in group.items() if name != "params"}
            made["param_groups"].append({**others, "params": [names[one] for one in held]})
    made = _moved(made, options)
    return _flat(made) if options.flatten_optimizer_state_dict else made


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Let optimizers take over states that are given by the names of the parameters."""
    options = _checked(options)
    names = _names(model)
    if options.full_state_dict:
        as_here = StateDictOptions(flatten_optimizer_state_dict=options.flatten_optimizer_state_dict)
        own = get_optimizer_state_dict(model, optimizers, options=as_here)
        wanted, _, holders = taken_apart(own)
        given = _handed_out(taken_apart(optim_state_dict)[0], wanted, options)
        for name, value in given.items():
            if name in holders:
                holder, key = holders[name]
                holder[key] = value
        optim_state_dict = own
    for optimizer in _listed(optimizers):
        states = _states_of(optimizer)
        state = optim_state_dict
        if options.flatten_optimizer_state_dict:
            state = _unflat(optim_state_dict, optimizer.param_groups, states, names)
        optimizer.load_state_dict(_by_numbers(optimizer, state, names))


def _by_numbers(optimizer: Any, state: dict[str, Any], names: dict[Any, str]) -> dict[str, Any]:
    """Bring states by names into the form that an optimizer loads: by the numbers of its parameters."""
    groups, states, count = [], {}, 0
    for group in optimizer.param_groups:
        wanted = [names[one] for one in group["params"]]
        found = next((one for one in state["param_groups"] if set(wanted) <= set(one["params"])), None)
        if found is None:
            raise RuntimeError(f"no group of the given state has the parameters {wanted}")
        for name in wanted:
            if name in state["state"]:
                states[count] = state["state"][name]
            count += 1
        held = {name: value for name, value in found.items() if name != "params"}
        groups.append({**held, "params": list(range(count - len(wanted), count))})
    return {"state": states, "param_groups": groups}


def _states_of(optimizer: Any) -> Any:
    """Return the states of the parameters, or of those that this process has, made if there are none yet."""
    holder = optimizer.optim if isinstance(optimizer, ZeroRedundancyOptimizer) else optimizer
    _make_states(holder)
    return holder.state


def _make_states(optimizer: Any) -> None:
    """Let an optimizer that has not stepped make its states, by a step that changes nothing."""
    if optimizer.state or not any(group["params"] for group in optimizer.param_groups):
        return
    parameters = [one for group in optimizer.param_groups for one in group["params"] if one.requires_grad]
    if any(one.grad is not None for one in parameters):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    with no_grad():
        for one in parameters:
            one.grad = _zeros_like(one)
        for group in optimizer.param_groups:
            if "lr" in group:
                group["lr"] = _zeros_like(group["lr"]) if isinstance(group["lr"], Tensor) else 0.0
    try:
        optimizer.step(closure=None)
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if "lr" in group:
                group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)


def _flat(state: dict[str, Any]) -> dict[str, Any]:
    flat = {f"state.{name}.{key}": value for name, held in state["state"].items() for key, value in held.items()}
    for group in state["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"})
    return flat


def _unflat(flat: dict[str, Any], groups: Any, states: Any, names: dict[Any, str]) -> dict[str, Any]:
    state: dict[str, Any] = {"state": {}, "param_groups": []}
    for group in groups:
        held = [names[one] for one in group["params"]]
        options = {key: flat[f"param_groups.{held[0]}.{key}"] for key in group if key != "params"} if held else {}
        state["param_groups"].append({**options, "params": held})
        for one, name in zip(group["params"], held, strict=True):
            if one in states:
                state["state"][name] = {key: flat[f"state.{name}.{key}"] for key in states[one]}
    return state


# ---- both ----
def get_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: set[Any] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the states of a module and of its optimizers."""
    of_optimizers = get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options)
    return get_model_state_dict(model, submodules=submodules, options=options), of_optimizers


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Let a module and its optimizers take states over."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def _names(model: Any) -> dict[Any, str]:
    return {one: clean_name(name) for name, one in model.named_parameters()}


def _listed(optimizers: Any) -> Iterable[Any]:
    return optimizers if isinstance(optimizers, (list, tuple)) else (optimizers,)


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    if options is not None and options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options or StateDictOptions()


def _handed_out(given: dict[str, Any], wanted: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """Bring whole values into the form that this process has: its parts of them. They are every process's own, or the first one's."""
    is_sent = options.broadcast_from_rank0 and is_initialized()
    said: list[Any] = [{name: None if isinstance(value, Tensor) else (value,) for name, value in given.items()}]
    if is_sent:
        broadcast_object_list(said, src=0)

    def part(name: str) -> Any:
        here, value = wanted.get(name), given.get(name)
        if not isinstance(here, Tensor):
            return value
        if value is None:  # the first process has it
            value = empty(here.shape, dtype=here.dtype, device=here.device)
        value = value.detach().to(here.device, here.dtype)
        if isinstance(here, DTensor):
            return distribute_tensor(value, here.device_mesh, here.placements, src_data_rank=0 if is_sent else None)
        if is_sent:
            value = value.clone()
            broadcast(value, src=0)
        return value

    return {name: part(name) if kept is None else kept[0] for name, kept in said[0].items()}


def _moved(state: Any, options: StateDictOptions) -> Any:
    """Bring values together or to host memory, as is wished. Whole values in host memory are for the first process alone."""

    def moved(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if options.full_state_dict and hasattr(value, "full_tensor"):
            value = value.full_tensor()
        return value.detach().cpu() if options.cpu_offload else value

    if not options.cpu_offload and not options.full_state_dict:
        return state
    whole = tree_map(moved, state)
    is_left_out = options.cpu_offload and options.full_state_dict and is_initialized() and get_rank() != 0
    return {} if is_left_out else whole


set_all(globals())
_guard_listed(globals())
