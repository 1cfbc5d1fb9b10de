"""State as one level of names: nested dicts and lists taken apart and put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...tensor import Tensor
from .stateful import Stateful


def given_states(state: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the values that give their states themselves for them."""
    return {
        name: value.state_dict() if isinstance(value, Stateful) and not isinstance(value, Mapping) else value
        for name, value in state.items()
    }


def flattened(state: Any) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """Return the values by joined names, and where each stands."""
    values: dict[str, Any] = {}
    places: dict[str, tuple[Any, ...]] = {}

    def walk(value: Any, place: tuple[Any, ...]) -> None:
        parts = _parts(value)
        if parts is None or (place and not parts):
            name = ".".join(map(str, place))
            if name in values:
                raise ValueError(f"duplicated flatten key {name}")
            values[name], places[name] = value, place
            return
        for key, one in parts:
            walk(one, (*place, key))

    walk(state, ())
    return values, places


def _parts(value: Any) -> list[tuple[Any, Any]] | None:
    """Return what is inside a value that is taken apart: dicts, and lists that hold a tensor somewhere."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, (list, tuple)) and _holds_tensor(value):
        return list(enumerate(value))
    return None


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, Tensor):
        return True
    if isinstance(value, Mapping):
        return any(_holds_tensor(one) for one in value.values())
    return isinstance(value, (list, tuple)) and any(_holds_tensor(one) for one in value)


def put(state: Any, place: tuple[Any, ...], value: Any) -> None:
    """Write a value into nested dicts and lists; what is missing around it is made."""
    for at, (key, after) in enumerate(zip(place, (*place[1:], None), strict=True)):
        is_last = at == len(place) - 1
        if isinstance(state, list):
            state.extend([None] * (key + 1 - len(state)))
        if is_last:
            state[key] = value
            return
        inside = state[key] if isinstance(state, list) or key in state else None
        if inside is None:
            inside = state[key] = [] if isinstance(after, int) else {}
        state = inside
