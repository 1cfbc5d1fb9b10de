"""State as one level of names: nested dicts and lists taken apart and put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...tensor import Tensor
from .stateful import Stateful

Place = tuple[Any, ...]  # the keys and indices that lead to a value; torch writes keys as texts


def given_states(state: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the values that give their states themselves for them."""
    return {name: value.state_dict() if isinstance(value, Stateful) else value for name, value in state.items()}


def taken_apart(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Place], dict[str, tuple[Any, Any]]]:
    """Return the values by joined names; the place of each; and what holds each, with the key it has there.

    Dicts are taken apart, and lists that hold a tensor or a dict somewhere.
    """
    values: dict[str, Any] = {}
    places: dict[str, Place] = {}
    holders: dict[str, tuple[Any, Any]] = {}

    def walk(holder: Any, key: Any, value: Any, place: Place) -> None:
        if isinstance(value, Mapping):
            for inner, one in value.items():
                walk(value, inner, one, (*place, str(inner)))
        elif isinstance(value, list) and _holds_more(value):
            for at, one in enumerate(value):
                walk(value, at, one, (*place, at))
        else:
            name = ".".join(map(str, place))
            if name in values:
                raise ValueError(f"duplicated flatten key {name}")
            values[name], places[name], holders[name] = value, place, (holder, key)

    for key, value in state.items():
        walk(state, key, value, (str(key),))
    return values, places, holders


def _holds_more(value: list[Any]) -> bool:
    return any(isinstance(one, (Tensor, Mapping)) or (isinstance(one, list) and _holds_more(one)) for one in value)


def put(state: Any, place: Place, value: Any) -> None:
    """Write a value into nested dicts and lists; what is missing around it is made."""
    for key, after in zip(place, (*place[1:], None), strict=True):
        if isinstance(state, list):
            state.extend([None] * (key + 1 - len(state)))
        if after is None:
            state[key] = value
            return
        inside = state[key] if isinstance(state, list) or key in state else None
        if inside is None:
            inside = state[key] = [] if isinstance(after, int) else {}
        state = inside
