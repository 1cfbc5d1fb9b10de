"""New random tensors on torch's CPU stream: uniform, normal and integer numbers, and permutations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _dtypes, _random
from ..._core.arrays import Batched, is_meta, levels_of
from ..._core.levels import Level, batch_levels
from ..._device import chosen_device
from ..._modes import NO_GRAD, PLAIN, current_mode, read_mode
from ..._tracebacks import hide
from ...overrides import answered_by_name, called, overridable, overridable_as, refuses_itself
from .. import _base
from .._aliasing.entering import without_tangents
from .._recording.descriptions import MADE
from .casting import CPU, device_of
from .creation import (
    as_dtype,
    empty_like,
    finish,
    into,
    is_for_meta,
    like,
    options_of,
    refuse_options,
    sizes_of,
    without_memory,
)
from .generators import chosen, default_generator

INT64 = np.dtype(np.int64)
REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)


SAME_BATCHED = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch\n"
    "Hint: the numbers drawn depend on the tensor, and every sample has its own; use randomness='different'."
)
NO_OUT = (
    "vmap: We do not support calling out variants of random operations inside of vmap. Please use non-out variants as a "
    "workaround"
)


def levels_to_draw(*parameters: Any) -> list[Level]:
    """Return the levels of running vmaps that draw numbers for each sample separately, the innermost first.

    Refuses to draw where `randomness` does not allow it. `parameters` are arrays that tell how numbers are distributed.
    """
    levels = batch_levels()
    for level in levels:
        if level.randomness == "error":
            raise RuntimeError(REFUSED)
        if level.randomness == "same" and any(level in levels_of(without_tangents(one)) for one in parameters):
            raise RuntimeError(SAME_BATCHED)
    return [level for level in levels if level.randomness == "different"]


def refuse_out() -> None:
    """Raise torch's error for `out=` inside vmap."""
    if current_mode().transforms and batch_levels():
        raise RuntimeError(NO_OUT)


def in_batches(values: Any, levels: list[Level]) -> Any:
    """Make batches of values drawn for all samples of some levels, whose axes stand in front, the outermost first."""
    for level in reversed(levels):
        values = Batched(level, values)
    return values


def drawn(shape: tuple[int, ...], draw: Any) -> Any:
    """Draw values; under vmap, for each sample or once for all, as its `randomness` says."""
    mode = current_mode()
    levels = levels_to_draw() if mode.transforms else []
    whole = (*[level.size for level in reversed(levels)], *shape)
    values = draw(whole) if mode.recording is None else mode.recording.draw(lambda: draw(whole))
    return in_batches(values, levels)


def filled_as_it_lies(array: Any, draw: Any, copy: Any = None) -> Any:
    """Fill a batch whose samples do not follow each other in memory, or a copy of it, as torch fills it; None for others.

    `draw(shape, is_contiguous)`; `copy` makes the copy.
    """
    if not isinstance(array, Batched) or type(array.array) is not np.ndarray or array.array.flags.c_contiguous:
        return None
    if levels_to_draw() != [array.level]:
        return None
    target = array.array if copy is None else copy(array.array)
    _random.fill_in_memory_order(target, lambda shape: draw(shape, False))
    return Batched(array.level, target)


def _sampler(name: str, draw: Any) -> Any:
    def create(
        *shape: Any,
        size: Any = None,
        generator: Any = None,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        try:
            if out is not None:
                refuse_out()
                return into(out, dtype, lambda own: create(*shape, size=size, generator=generator, dtype=own))
            sizes = (
                shape if len(shape) == 1 and type(shape[0]) is int and shape[0] >= 0 else sizes_of(name, shape, size)
            )
            if (
                layout is not None
                or pin_memory is not None
                or (requires_grad is not False and requires_grad is not True)
            ):
                refuse_options(layout, pin_memory, requires_grad)
            gen = default_generator if generator is None else chosen(name, generator)
            wanted = (_dtypes.get_default_dtype() if dtype is None else as_dtype(dtype, name)).numpy
            place = CPU if device is None and chosen_device() is None else device
            if place is not CPU and is_for_meta(place):
                return finish(without_memory(sizes, wanted), place, requires_grad)
            if (mode := read_mode()) is PLAIN or mode is NO_GRAD:
                return finish(draw(gen, sizes, wanted), place, requires_grad)
            return finish(drawn(sizes, lambda s: draw(gen, s, wanted)), place, requires_grad)
        except Exception as error:
            try:
                return answered_by_name(create, locals(), error)
            except Exception as refusal:
                hide(refusal)
                raise

    return refuses_itself(called(create, name, MADE[name]))


rand = _sampler("rand", _random.uniform)
randn = _sampler("randn", _random.normal)


def randint(
    *args: Any,
    low: Any = None,
    high: Any = None,
    size: Any = None,
    generator: Any = None,
    **options: Any,
) -> Any:
    """Make a tensor of random integers in [low, high).

    Args:
        *args: high and size; or low, high and size
        low: the smallest integer; 0 if it is not given
        high: one more than the largest
        size: a sequence of sizes
        generator: the stream of random numbers; the default one if it is not given
        **options: `dtype` (int64), `device`, `requires_grad`, `out`

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.randint(10, (5,))
        tensor([4, 9, 3, 0, 3])
    """
    out, dtype, device, requires_grad = options_of("randint", options) if options else (None, None, None, False)
    if (
        len(args) == 3
        and type(args[0]) is type(args[1]) is int
        and type(args[2]) is tuple
        and low is high is size is generator is out is dtype is None
        and ((mode := read_mode()) is PLAIN or mode is NO_GRAD)
    ):
        sizes = sizes_of("randint", (args[2],))
        if is_for_meta(device):
            return finish(without_memory(sizes, INT64), device, requires_grad)
        return finish(_random.randint(default_generator, sizes, args[0], args[1], INT64), device, requires_grad)
    given = list(args)
    size = given.pop() if size is None and given else size
    high = given.pop() if high is None and given else high
    low = given.pop() if low is None and given else 0 if low is None else low
    low, high = [n.item() if isinstance(n, _base.Tensor) else n for n in (low, high)]
    if given or not all(hasattr(n, "__index__") for n in (low, high)) or not isinstance(size, (list, tuple)):
        raise TypeError("randint(): low, high and size do not go together")
    if out is not None:
        refuse_out()
        return into(out, dtype, lambda own: randint(low, high, size, generator=generator, dtype=own))
    gen = chosen("randint", generator)
    wanted = (_dtypes.int64 if dtype is None else as_dtype(dtype, "randint")).numpy
    sizes = sizes_of("randint", (size,))
    if is_for_meta(device):
        return finish(without_memory(sizes, wanted), device, requires_grad)
    return finish(drawn(sizes, lambda s: _random.randint(gen, s, low, high, wanted)), device, requires_grad)


def randperm(n: Any, *, generator: Any = None, **options: Any) -> Any:
    """Make a random permutation of 0 to n - 1.

    Args:
        n: how many
        generator: the stream of random numbers; the default one if it is not given
        **options: `dtype` (int64), `device`, `requires_grad`, `out`

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.randperm(5)
        tensor([4, 0, 1, 3, 2])
    """
    out, dtype, device, requires_grad = options_of("randperm", options)
    if out is not None:
        refuse_out()
        return into(out, dtype, lambda own: randperm(n, generator=generator, dtype=own))
    gen = chosen("randperm", generator)
    wanted = (_dtypes.int64 if dtype is None else as_dtype(dtype, "randperm")).numpy
    if is_for_meta(device):
        return finish(without_memory((n,), wanted), device, requires_grad)
    if not current_mode().transforms:
        return finish(drawn((n,), lambda _: _random.randperm(gen, n, wanted)), device, requires_grad)

    def draw(shape: tuple[int, ...]) -> Any:  # one by one, the outermost of several batches first
        lead = shape[-2::-1]
        rows = [_random.randperm(gen, n, wanted) for _ in range(math.prod(lead))]
        return np.stack(rows).reshape(*lead, n).transpose(*reversed(range(len(lead))), len(lead))

    return finish(drawn((n,), draw), device, requires_grad)


def _like(name: str, draw: Any) -> Any:
    def create(
        input: Any,
        *,
        generator: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Any:
        array = input._array
        if (
            generator is dtype is memory_format is None
            and ((mode := read_mode()) is PLAIN or mode is NO_GRAD)
            and type(array) is np.ndarray
            and array.flags.c_contiguous
            and device is None
        ):
            return finish(draw(default_generator, array.shape, array.dtype), CPU, requires_grad)
        return _drawn_like(input, name, draw, generator, dtype, device, requires_grad, memory_format)

    return overridable_as(name, create, MADE[name])


def _drawn_like(
    input: Any,
    name: str,
    draw: Any,
    generator: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    as_it_lies: bool = True,
) -> Any:
    array, gen = input._array, chosen(name, generator)
    wanted = array.dtype if dtype is None else as_dtype(dtype, name).numpy
    if is_meta(array) or (device is not None and is_for_meta(device)):
        return empty_like(input, dtype=dtype, device=device, requires_grad=requires_grad, memory_format=memory_format)
    mode = current_mode()
    recording = None if mode.transforms else mode.recording
    shown = array if recording is None else recording.shown(array)
    is_outside = type(shown) is np.ndarray and not mode.transforms
    if is_outside and (memory_format is not None or not shown.flags.c_contiguous):
        out = like(shown, wanted, memory_format)
        if not out.flags.c_contiguous:

            def filled() -> Any:
                made = np.empty_like(out)
                _random.fill_in_memory_order(made, lambda shape: draw(gen, shape, wanted, False))
                return made

            values = filled() if recording is None else recording.draw(filled)
            return finish(values, CPU if device is None else device, requires_grad)
    device = device_of(input) if device is None else device
    values = None
    if as_it_lies:
        values = filled_as_it_lies(
            array, lambda s, dense: draw(gen, s, wanted, dense), lambda raw: like(raw, wanted, None)
        )
    if values is None:
        values = drawn(tuple(array.shape), lambda s: draw(gen, s, wanted))
    return finish(values, device, requires_grad)


def with_chance(input: Any, p: float, generator: Any = None, *, as_it_lies: bool = False) -> Any:
    """Make a tensor like another of ones, with a chance, and zeros; of a batch, sample by sample or as it lies in memory."""

    def draw(gen: Any, shape: Any, dtype: Any, dense: bool = True) -> Any:
        return _random.bernoulli(gen, p, shape, dtype)

    return _drawn_like(input, "bernoulli", draw, generator, as_it_lies=as_it_lies)


rand_like = _like("rand_like", lambda gen, shape, dtype, dense=True: _random.uniform(gen, shape, dtype))
randn_like = _like(
    "randn_like", lambda gen, shape, dtype, dense=True: _random.normal(gen, shape, dtype, contiguous=dense)
)


@overridable
def randint_like(
    input: Any,
    low: Any = 0,
    high: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Any:
    """Make random integers in the shape of another tensor."""
    low, high = (n.item() if isinstance(n, _base.Tensor) else n for n in (low, high))
    low, high = (0, low) if high is None else (low, high)

    def draw(gen: Any, shape: tuple[int, ...], wanted: np.dtype[Any], dense: bool = True) -> Any:
        return _random.randint(gen, shape, low, high, wanted)

    return _drawn_like(input, "randint_like", draw, generator, dtype, device, requires_grad, memory_format)
