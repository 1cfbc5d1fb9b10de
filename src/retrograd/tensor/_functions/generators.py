"""The streams of random numbers: seeds and states."""

from __future__ import annotations

from contextlib import ContextDecorator
from functools import partial
from typing import Any

import numpy as np

from ... import _random
from ..._device import device as device_type
from ..._modes import Block, read_mode
from ..._tracebacks import guarded
from ...overrides import declared, refusing
from .. import _base
from .._base import wrap

# What torch says where there is no device of a kind; of most kinds it says that they draw no random numbers.
_ABSENT = {
    "cuda": "Cannot get CUDA generator without ATen_cuda library.",
    "xpu": "Cannot get XPU generator without ATen_xpu library.",
    "xla": "Cannot get XLA generator without torch_xla library.",
    "mps": "Cannot execute getNewGenerator() without MPS backend.",
    "mtia": "Cannot execute getNewGenerator() without MTIA backend.",
    "hip": "Backend doesn`t support getNewGenerator()",
    "hpu": "Backend doesn`t support getNewGenerator()",
}


def _need_device(kind: str) -> None:
    """Refuse a stream for a kind of device of which there is none."""
    from ...cuda import is_available

    if kind != "cuda" or not is_available():
        text = _ABSENT.get(kind, f"{kind.upper()} device type not an accelerator.")
        raise RuntimeError(f"{text}\nHint: there is no such device here; torch.Generator() draws on the CPU.")


class Generator(_random.Generator):
    """A stream of random numbers: torch's mt19937.

    Args:
        device: "cpu"

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> torch.rand(1, generator=g)
        tensor([0.4963])
    """

    __module__ = "retrograd"

    @guarded
    def __init__(self, device: Any = "cpu") -> None:
        super().__init__()
        self.device = device_type(device)
        if self.device.type != "cpu":
            _need_device(self.device.type)

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

    def __reduce__(self) -> Any:
        return Generator, (self.device,), (self.initial_seed(), None, self.get_state())  # None: an offset, of GPUs only

    def __setstate__(self, state: Any) -> None:
        seed, _, words = state
        self.manual_seed(seed)
        self.set_state(words)


default_generator = Generator()


def chosen(name: str, generator: Any) -> Any:
    """Return the generator of a call: the default one unless another is given."""
    if generator is None:
        return default_generator
    recording = None if (mode := read_mode()) is None else mode.recording
    if recording is not None and recording.stands_for_generator(generator):
        return generator
    if not isinstance(generator, _random.Generator):
        kind = type(generator).__name__
        raise TypeError(f"{name}() received an invalid combination of arguments - got (generator={kind})")
    return generator if recording is None else recording.generator(generator)


@refusing
@declared(seen=False)
def manual_seed(seed: Any) -> Generator:
    """Restart the default stream of random numbers from a seed.

    The numbers are torch's: the same seed gives the same tensors, initial weights, dropout masks and orders of shuffled data.

    Args:
        seed: an integer

    Returns:
        The default generator.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.rand(1)
        tensor([0.4963])
    """
    default_generator.manual_seed(int(seed))
    return default_generator


@refusing
@declared(seen=False)
def seed() -> int:
    """Start the default stream from a seed of the system."""
    return default_generator.seed()


@refusing
@declared(seen=False)
def initial_seed() -> int:
    """Return the seed of the default stream."""
    return default_generator.initial_seed()


@refusing
@declared(seen=False)
def get_rng_state() -> Any:
    """Return the state of the default stream of random numbers, as bytes in a tensor.

    Example:
        >>> state = torch.get_rng_state()
        >>> first = torch.rand(2)
        >>> torch.set_rng_state(state)
        >>> torch.equal(first, torch.rand(2))
        True
    """
    return default_generator.get_state()


@refusing
@declared(seen=False)
def set_rng_state(new_state: Any) -> None:
    """Bring the default stream of random numbers back to a state.

    Args:
        new_state: what `get_rng_state` returned

    Example:
        >>> torch.set_rng_state(torch.get_rng_state())
    """
    default_generator.set_state(new_state)


class drawing_apart(Block, ContextDecorator):  # noqa: N801 - reads as a word
    """Run a block whose draws leave the default stream as it was: from a state, or else from where the stream is.

    The block has an engine of its own. See Note [Leaving a mode cannot be interrupted].
    """

    def __init__(self, state: Any = None, enabled: bool = True) -> None:
        self.state, self.enabled = state, enabled

    def __enter__(self) -> None:
        stream = vars(default_generator)
        before = stream.copy() if self.enabled else {}
        other = Generator()
        other.set_state(get_rng_state() if self.state is None else self.state)
        inside = {name: value for name, value in vars(other).items() if name in before}
        self._block_begin((partial(stream.update, inside),), (partial(stream.update, before),))


def fork_rng(devices: Any = None, enabled: bool = True, device_type: str | None = None) -> drawing_apart:
    """Run a block whose draws leave the default stream as it was.

    Args:
        devices: for torch's sake
        enabled: False changes nothing
        device_type: for torch's sake

    Example:
        >>> _ = torch.manual_seed(0)
        >>> with torch.random.fork_rng():
        ...     first = torch.rand(1)
        >>> torch.equal(first, torch.rand(1))
        True
    """
    return drawing_apart(None, enabled)
