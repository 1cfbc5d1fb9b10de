"""Random tensors on torch's CPU stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtypes, _random
from .._core.arrays import Batched
from .._core.levels import innermost_batch_level
from . import _base
from ._base import storage_of, wrap
from ._creation import _numpy_dtype, _sizes, finish
from ._layout import refuse_repeats
from ._views import check_inplace, refuse_inference, store


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
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state)}")
        super().set_state(np.asarray(new_state._array))
        return self

    def clone_state(self) -> Any:
        copy = Generator()
        copy.set_state(self.get_state())
        return copy


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
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


def _drawn(shape: tuple[int, ...], draw: Any) -> Any:
    """Draw values; under vmap, for each sample anew or once, as its `randomness` says."""
    level = innermost_batch_level()
    if level is None:
        return draw(shape)
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap"
        )
    if level.randomness == "same":
        return draw(shape)
    return Batched(level, draw((level.size, *shape)))


def _sampler(name: str, draw: Any) -> Any:
    def create(
        *size: Any,
        generator: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **rest: Any,
    ) -> Any:
        shape = _sizes(size, rest)
        gen = default_generator if generator is None else generator
        numpy_dtype = _numpy_dtype(dtype)
        return finish(_drawn(shape, lambda s: draw(gen, s, numpy_dtype)), device, requires_grad)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"Make a random tensor: {name}."
    return create


rand = _sampler("rand", lambda gen, shape, dtype: _random.uniform(gen, shape, dtype))
randn = _sampler("randn", lambda gen, shape, dtype: _random.normal(gen, shape, dtype))


def randint(
    *args: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, **rest: Any
) -> Any:
    """Make a tensor of random integers in [low, high)."""
    low, high, size = rest.get("low", 0), rest.get("high"), rest.get("size")
    args_left = list(args)
    if size is None:
        size = args_left.pop()
    if high is None:
        high = args_left.pop()
    if args_left:
        low = args_left.pop()
    gen = default_generator if generator is None else generator
    numpy_dtype = (_dtypes.int64 if dtype is None else dtype).numpy
    return finish(_drawn(tuple(size), lambda s: _random.randint(gen, s, low, high, numpy_dtype)), device, requires_grad)


def randperm(
    n: int, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, **rest: Any
) -> Any:
    """Make a random permutation of 0 to n - 1."""
    gen = default_generator if generator is None else generator
    numpy_dtype = (_dtypes.int64 if dtype is None else dtype).numpy
    level = innermost_batch_level()
    if level is not None and level.randomness == "different":
        rows = np.stack([_random.randperm(gen, n, numpy_dtype) for _ in range(level.size)])
        return finish(Batched(level, rows), device, requires_grad)
    return finish(_drawn((n,), lambda s: _random.randperm(gen, n, numpy_dtype)), device, requires_grad)


def _like(name: str, create: Any) -> Any:
    def like(input: Any, *, dtype: Any = None, **options: Any) -> Any:
        dtype = _base.dtype_of(input) if dtype is None else dtype
        options.pop("memory_format", None)
        return create(tuple(input._array.shape), dtype=dtype, **options)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = f"Make a random tensor like another: {name}."
    return like


rand_like = _like("rand_like", rand)
randn_like = _like("randn_like", randn)


def randint_like(input: Any, low: int, high: int | None = None, *, dtype: Any = None, **options: Any) -> Any:
    """Make random integers in the shape of another tensor."""
    low, high = (0, low) if high is None else (low, high)
    dtype = _base.dtype_of(input) if dtype is None else dtype
    return randint(low, high, tuple(input._array.shape), dtype=dtype, **options)


def _fill(tensor: Any, draw: Any) -> Any:
    """Fill a tensor in place with drawn values."""
    check_inplace(tensor)
    array = _base.materialise(tensor)
    refuse_inference(storage_of(tensor))
    refuse_repeats(array)
    level = innermost_batch_level()
    if level is not None and level.randomness == "different" and not isinstance(array, Batched):
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
            "randomness. If this is necessary for your usage, please file an issue with functorch."
        )
    if isinstance(array, np.ndarray) and not array.flags.c_contiguous:
        _random.fill_in_memory_order(array, lambda shape: draw(shape, False))
    else:
        store(array, _drawn(tuple(array.shape), lambda s: draw(s, True)))
    from ._views import finish_write

    storage = storage_of(tensor)
    finish_write(tensor, None)
    if tensor._edge is not None:
        from .._modes import current_mode

        if current_mode().grad:
            from .._ops import shape as s
            from ._record import record
            from ._views import rebase

            rebase(tensor, record(s.forget, (tensor,), {}, "UniformBackward0")._edge)
    return storage and tensor


def uniform_(self: Any, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **kw: Any) -> Any:
    """Fill with uniform numbers in [from, to)."""
    low = kw.get("from", from_)
    gen = default_generator if generator is None else generator
    return _fill(self, lambda shape, _: _random.uniform(gen, shape, self._array.dtype, low, to))


def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with normal numbers."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    gen = default_generator if generator is None else generator
    return _fill(self, lambda shape, dense: _random.normal(gen, shape, self._array.dtype, mean, std, contiguous=dense))


def random_(self: Any, *args: Any, generator: Any = None) -> Any:
    """Fill with random integers."""
    gen = default_generator if generator is None else generator
    low, high = (0, None) if not args else (0, args[0]) if len(args) == 1 else args
    return _fill(self, lambda shape, _: _random.random_(gen, shape, self._array.dtype, low, high))


def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fill with ones with probability p, else zeros."""
    gen = default_generator if generator is None else generator
    chance = np.asarray(p._array) if isinstance(p, _base.Tensor) else p
    return _fill(self, lambda shape, _: _random.bernoulli(gen, chance, shape).astype(self._array.dtype))


def exponential_(self: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with exponential numbers."""
    gen = default_generator if generator is None else generator
    return _fill(self, lambda shape, _: _random.exponential(gen, shape, self._array.dtype, lambd))


def bernoulli(input: Any, *, generator: Any = None) -> Any:
    """Draw ones with the given probabilities, else zeros."""
    gen = default_generator if generator is None else generator
    array = np.asarray(input._array)
    return finish(_random.bernoulli(gen, array, array.shape).astype(array.dtype))


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, **options: Any
) -> Any:
    """Draw normal numbers with given means and standard deviations."""
    if isinstance(mean, _base.Tensor) or isinstance(std, _base.Tensor):
        shape = np.broadcast_shapes(*[tuple(v._array.shape) for v in (mean, std) if isinstance(v, _base.Tensor)])
        base = randn(shape, generator=generator, dtype=_base.dtype_of(mean if isinstance(mean, _base.Tensor) else std))
        return base * std + mean
    return randn(size, generator=generator, dtype=dtype, **options) * std + mean


def multinomial(input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """Draw indices with the given weights."""
    gen = default_generator if generator is None else generator
    return finish(_random.multinomial(gen, np.asarray(input._array), num_samples, replacement))
