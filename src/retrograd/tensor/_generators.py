"""The streams of random numbers: seeds and states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _random
from . import _base
from ._base import wrap


class Generator(_random.Generator):
    """A stream of random numbers: torch's mt19937."""

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__()
        from .._device import device as device_type

        self.device = device_type(device)

    def get_state(self) -> Any:
        return wrap(super().get_state())

    def set_state(self, new_state: Any) -> Any:
        if not isinstance(new_state, _base.Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        super().set_state(np.asarray(new_state._array))
        return self

    def clone_state(self) -> Any:
        copy = Generator()
        copy.set_state(self.get_state())
        return copy


default_generator = Generator()


def chosen(name: str, generator: Any) -> Any:
    """Return the generator of a call: the default one unless another is given."""
    if generator is None:
        return default_generator
    if not isinstance(generator, _random.Generator):
        kind = type(generator).__name__
        raise TypeError(f"{name}() received an invalid combination of arguments - got (generator={kind})")
    return generator


def manual_seed(seed: Any) -> Generator:
    """Start the default stream anew from a seed."""
    default_generator.manual_seed(int(seed))
    return default_generator


def seed() -> int:
    """Start the default stream from a seed of the system."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed of the default stream."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """Return the state of the default stream as a byte tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Continue the default stream from a state."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: str | None = None) -> Iterator[None]:
    """Run a block whose draws leave the default stream as it was."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
