"""Running an optimizer on other parameters and another state for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state"


def _checked(optimizer: Optimizer, params: dict[str, Any], saved: Any) -> tuple[dict[Any, Any], list[dict[str, Any]]]:
    """Return the state and the groups to swap in; refuse what does not fit the optimizer."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(saved, dict):
        raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    state, groups = saved.get("state"), saved.get("param_groups")
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param state "
            f"dicts, got {type(state).__name__}."
        )
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, got "
            f"{type(groups).__name__}."
        )
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    for at, (new, live) in enumerate(zip(groups, optimizer.param_groups, strict=True)):
        if len(new["params"]) != len(live["params"]):
            raise RuntimeError(
                f"swapin_optim_state param group {at} has a different number of params than the live optimizer param "
                "group."
            )
        if new.keys() != live.keys():
            raise RuntimeError(
                f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer "
                f"group keys for group {at}. Keys only in swap-in: {sorted(new.keys() - live.keys())}. Keys only in "
                f"live: {sorted(live.keys() - new.keys())}."
            )
    if len(params) != sum(len(group["params"]) for group in groups):
        raise RuntimeError(f"{_NAME} requires the explicit parameter state to match optimizer.param_groups ordering.")
    return state, groups


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Any], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Let an optimizer work on other parameters, in its own order, and on another state; then restore it."""
    values = iter(swapin_parameters.values())
    state, groups = _checked(optimizer, swapin_parameters, swapin_optim_state)
    new_groups: list[dict[str, Any]] = []
    new_state: defaultdict[Any, Any] = defaultdict(dict)
    for group, live in zip(groups, optimizer.param_groups, strict=True):
        params = [next(values) for _ in group["params"]]
        new_groups.append({name: params if name == "params" else group[name] for name in live})
        for number, param in zip(group["params"], params, strict=True):
            if number in state:
                new_state[param] = dict(state[number])
    kept = optimizer.param_groups, optimizer.state
    optimizer.param_groups, optimizer.state = new_groups, new_state
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = kept
