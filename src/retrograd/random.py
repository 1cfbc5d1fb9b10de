"""The default stream of random numbers."""

from .tensor._functions.generators import (
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)


def thread_safe_generator() -> None:
    """Return the generator of a worker that is a thread: workers are processes, and take the default one."""


__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]
