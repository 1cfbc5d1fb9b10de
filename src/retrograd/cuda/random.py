"""torch.cuda.random: the seeds of the device's random numbers, which come from the stream of the CPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._public import set_all
from .._tracebacks import guard_public as _guard_public
from ..tensor._functions.generators import default_generator
from . import _cupy, device_count, is_available


def manual_seed(seed: int) -> None:
    """Seed the device's random numbers; without a device the stream of the CPU stays as it is.

    Args:
        seed: a whole number

    Example:
        >>> torch.cuda.manual_seed(0)
    """
    if is_available():
        default_generator.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Seed the device's random numbers with something that cannot be predicted."""
    if is_available():
        default_generator.seed()


seed_all = seed


def initial_seed() -> int:
    """Return the seed of the device's random numbers."""
    _cupy()
    return int(default_generator.initial_seed())


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of the device's random numbers."""
    _cupy()
    return default_generator.get_state()


def get_rng_state_all() -> list[Any]:
    """Return the states of all devices."""
    return [default_generator.get_state() for _ in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of the device's random numbers."""
    _cupy()
    default_generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the states of all devices."""
    for state in new_states:
        set_rng_state(state)


set_all(globals())


_guard_public(globals())
