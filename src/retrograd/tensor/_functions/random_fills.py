"""Filling tensors with random numbers in place, and distributions with tensors as parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _errors, _random
from ..._core.arrays import Batched, LevelArray, is_meta, levels_of, raw_leaf
from ..._core.levels import innermost_batch_level
from ..._core.primitive import vocabulary
from ..._graph.cuts import note_operation
from ..._modes import NO_GRAD, PLAIN, current_mode, read_mode
from ..._ops import drawing as ops
from ..._ops import shape as s
from ...overrides import overridable, takes_out
from .. import _base
from .._aliasing.entering import without_tangents
from .._aliasing.views import check_inplace, finish_write, refuse_inference, store, write_array, wrote
from .._aliasing.writers import memory_to_write
from .._base import LEAF, edge_of
from .._object.devices import beside, on_host
from .._object.layout import refuse_repeats
from .._recording.no_derivative import without_derivative
from .._recording.out import call_into
from .._recording.record import record
from .casting import CPU, device_of
from .creation import empty_like, finish, into, is_for_meta, numpy_dtype, refuse_options, sizes_of, without_memory
from .gathering import refuse_kernel
from .generators import chosen, default_generator
from .random_tensors import drawn, filled_as_it_lies, in_batches, levels_to_draw, randn, refuse_out, with_chance

F32 = np.dtype(np.float32)
UNBATCHED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. If "
    "this is necessary for your usage, please file an issue with functorch."
)


# ---- in place ----
_OPERATORS = {  # torch's, by its nodes
    "BernoulliBackward1": "bernoulli_.Tensor",
    "BernoulliBackward2": "bernoulli_.float",
    "CauchyBackward0": "cauchy_",
    "ExponentialBackward0": "exponential_",
    "GeometricBackward0": "geometric_",
    "LogNormalBackward0": "log_normal_",
    "NormalBackward0": "normal_",
    "RandomBackward0": "random_.from",
    "RandomBackward1": "random_.to",
    "RandomBackward2": "random_",
    "UniformBackward0": "uniform_",
}


def _fill(tensor: Any, draw: Any, name: str) -> Any:
    """Fill a tensor in place with `draw(shape, is_contiguous)`."""
    if type(tensor) in _base.signed_types:
        return tensor.copy_(_fill(tensor.detach().clone(), draw, name))
    array = memory_to_write(tensor)
    if array is not None:
        array[...] = draw(array.shape, True)
        wrote(tensor)
        return tensor
    mode = current_mode()
    check_inplace(tensor, (), _OPERATORS[name])
    array = _base.materialise(tensor)
    if type(array) is np.ndarray and not mode.transforms:
        if array.flags.c_contiguous:
            array[...] = draw(array.shape, True)
        else:
            refuse_repeats(array)
            _random.fill_in_memory_order(array, lambda shape: draw(shape, False))
        if tensor._edge is None or not mode.grad:
            wrote(tensor)
            return tensor
    elif not is_meta(raw_leaf(array)):  # which has nothing to fill, and takes no numbers from the stream
        level = innermost_batch_level()
        if level is not None and level.randomness == "different" and not isinstance(array, Batched):
            raise RuntimeError(UNBATCHED)
        if filled_as_it_lies(array, draw) is None:
            store(array, drawn(tuple(array.shape), lambda shape: draw(shape, True)))
    if tensor._storage is not None:
        refuse_inference(tensor._storage)
    node = None
    if tensor._edge is not None and mode.tracks:
        node = record(s.forget, (tensor,), {}, name)._edge
    finish_write(tensor, node)
    return tensor


def uniform_(self: Any, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **kw: Any) -> Any:
    """Fill with random numbers, uniform between two ends.

    Args:
        from: the lower end
        to: the upper end
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.empty(2).uniform_(-1, 1)
        tensor([-0.0075,  0.5364])
    """
    if generator is None and not kw and from_ == 0.0 and to == 1.0:
        array = memory_to_write(self)
        if array is not None:
            few = array.dtype is F32 and array.ndim == 1 and array.shape[0] < 16
            array[...] = (
                default_generator.few_floats(array.shape[0])
                if few
                else _random.uniform(default_generator, array.shape, array.dtype)
            )
            wrote(self)
            return self
    low, gen = kw.get("from", from_), chosen("uniform_", generator)
    return _fill(self, lambda shape, _: _random.uniform(gen, shape, self._array.dtype, low, to), "UniformBackward0")


def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with normal random numbers.

    Args:
        mean: their mean
        std: their standard deviation
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.empty(2).normal_(10, 1)
        tensor([11.5410,  9.7066])
    """
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    gen = chosen("normal_", generator)

    def draw(shape: Any, dense: bool) -> Any:
        return _random.normal(gen, shape, self._array.dtype, mean, std, contiguous=dense)

    return _fill(self, draw, "NormalBackward0")


def random_(self: Any, *args: Any, generator: Any = None, **kw: Any) -> Any:
    """Fill with random integers: of the whole dtype, below a limit, or in [from, to)."""
    gen = chosen("random_", generator)
    given = [*args, *(kw[key] for key in ("from", "to") if key in kw)]
    if not given:
        low = high = None
    else:
        low, high = (0, given[0]) if len(given) == 1 else given
    name = f"RandomBackward{2 - len(given)}"
    return _fill(self, lambda shape, _: _random.random_(gen, shape, self._array.dtype, low, high), name)


def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fill with ones with probability p, else zeros."""
    gen = chosen("bernoulli_", generator)
    if not isinstance(p, _base.Tensor):
        return _fill(self, lambda shape, _: _random.bernoulli(gen, p, shape, self._array.dtype), "BernoulliBackward2")
    if (mode := current_mode()).transforms or mode.recording is not None:
        return _with_chances(self, p, gen)
    chance, own = p._array if is_meta(p._array) else np.asarray(p._array), tuple(self._array.shape)
    for k, (n, m) in enumerate(zip(reversed(own), reversed(chance.shape), strict=False)):
        if n != m != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({m}) at non-singleton dimension "
                f"{len(own) - 1 - k}.  Target sizes: {_errors.sizes(own)}.  Tensor sizes: {_errors.sizes(chance.shape)}"
            )
    wide = np.broadcast_to(chance, own)
    if not self._array.ndim or not isinstance(self._array, np.ndarray) or self._array.flags.c_contiguous:
        return _fill(
            self, lambda shape, _: _random.bernoulli(gen, wide, shape, self._array.dtype), "BernoulliBackward1"
        )
    order = _random.fill_order(self._array.shape, self._array.strides)
    arranged = wide.transpose(order)
    return _fill(
        self, lambda shape, _: _random.bernoulli(gen, arranged, shape, self._array.dtype), "BernoulliBackward1"
    )


def _with_chances(tensor: Any, p: Any, gen: Any) -> Any:
    """Fill a tensor inside a transform with ones with the chances of another, else zeros."""
    levels = levels_to_draw(p._array)
    own = levels_of(tensor._array)
    if not levels_of(p._array) <= own:
        raise RuntimeError(
            "vmap: inplace bernoulli(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
            "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
            "over in a vmap. Please try to use out-of-place operators instead of inplace bernoulli."
        )
    if any(level not in own for level in levels):
        raise RuntimeError(UNBATCHED)
    check_inplace(tensor, (), "bernoulli_.Tensor")
    dtype = tensor._array.dtype
    chances = p.detach().expand(tensor.shape)._array
    write_array(tensor, _sampled(chances, gen, lambda a: _random.bernoulli(gen, a, a.shape, dtype)))
    node = None
    if tensor._edge is not None and current_mode().tracks:
        node = record(s.forget, (tensor,), {}, "BernoulliBackward1")._edge
    finish_write(tensor, node)
    return tensor


def exponential_(self: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with exponential numbers."""
    gen = chosen("exponential_", generator)
    return _fill(self, lambda n, _: _random.exponential(gen, n, self._array.dtype, lambd), "ExponentialBackward0")


def cauchy_(self: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with numbers of the Cauchy distribution."""
    gen = chosen("cauchy_", generator)
    return _fill(self, lambda shape, _: _random.cauchy(gen, shape, self._array.dtype, median, sigma), "CauchyBackward0")


def log_normal_(self: Any, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    """Fill with numbers whose logarithms are normal."""
    gen = chosen("log_normal_", generator)
    return _fill(self, lambda n, _: _random.log_normal(gen, n, self._array.dtype, mean, std), "LogNormalBackward0")


def geometric_(self: Any, p: float, *, generator: Any = None) -> Any:
    """Fill with the number of trials up to the first success."""
    gen = chosen("geometric_", generator)
    return _fill(self, lambda shape, _: _random.geometric(gen, shape, self._array.dtype, p), "GeometricBackward0")


# ---- tensors as parameters ----
def _sampled(array: Any, gen: Any, draw: Any, shape_rule: Any = None) -> Any:
    """Apply `draw(raw array)` to an array of any level, under vmap as its `randomness` says.

    `shape_rule` says what is made of a meta array, if not one like it.
    """
    levels = levels_to_draw(array) if current_mode().transforms else []
    for level in levels:
        array = vocabulary.leave_batch(without_tangents(array), level=level, axis=0)
    array = without_tangents(array)
    if isinstance(array, Batched):  # of a vmap that draws once, or has ended
        return Batched(array.level, _sampled(array.array, gen, draw, shape_rule))
    if is_meta(array):
        return in_batches(array.copy("K") if shape_rule is None else shape_rule(array), levels)
    if (recording := current_mode().recording) is not None:
        return in_batches(recording.draw(draw, array), levels)
    return in_batches(beside(draw(np.asarray(on_host(array))), array), levels)


def _followed(values: Any, parameter: Any, name: str) -> Any:
    """Make the tensor of drawn values; its node hands zeros to the parameter."""
    if parameter._edge is not None and current_mode().tracks:
        return record(ops.replaced, (parameter, values), {}, name)
    return finish(values, device_of(parameter))


@overridable
def bernoulli(input: Any, p: Any = None, *, generator: Any = None, out: Any = None) -> Any:
    """Draw ones with the given probabilities, else zeros.

    Args:
        input: probabilities between 0 and 1; only their shape counts if `p` is given
        p: one probability for all
        generator: the stream of random numbers; the default one if it is not given
        out: where to write the result

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.bernoulli(torch.tensor([0.0, 0.5, 0.5, 1.0]))
        tensor([0., 0., 1., 1.])
    """
    if out is not None:  # whose dtype may be any
        refuse_out()
        return call_into(lambda: bernoulli(input, p, generator=generator).to(_base.dtype_of(out)), (), {}, out)
    gen = chosen("bernoulli", generator)
    if p is not None:
        if isinstance(p, _base.Tensor):
            result = bernoulli_(empty_like(input), p, generator=generator)
        else:
            levels_to_draw(input._array)
            result = with_chance(input, p, generator)
        if current_mode().tracks and input._edge is not None:
            result._edge = without_derivative("aten::bernoulli", (edge_of(input),))
        return result
    array, dtype = input._array, input._array.dtype
    if type(array) is np.ndarray and ((mode := read_mode()) is PLAIN or mode is NO_GRAD):
        return _followed(_random.bernoulli(gen, array, array.shape, dtype), input, "BernoulliBackward0")
    values = _sampled(array, gen, lambda a: _random.bernoulli(gen, a, a.shape, dtype))
    return _followed(values, input, "BernoulliBackward0")


@overridable
def poisson(input: Any, generator: Any = None) -> Any:
    """Draw counts with the given rates."""
    gen = chosen("poisson", generator)
    if input._array.dtype.kind not in "fV":
        refuse_kernel("poisson_cpu", input)
    return _followed(_sampled(input._array, gen, lambda a: _random.poisson(gen, a)), input, "PoissonBackward0")


@takes_out
def multinomial(input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """Draw indices with the given weights.

    Args:
        input: weights, in one dimension or in the rows of a matrix; they need not sum to 1
        num_samples: how many indices, for each row
        replacement: whether an index may be drawn again
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.multinomial(torch.tensor([0.0, 1.0, 3.0]), 4, replacement=True)
        tensor([2, 2, 2, 2])
    """
    gen = chosen("multinomial", generator)
    if (edge := _base._edge_slot.__get__(input)) is not None:
        note_operation("multinomial", input if edge is LEAF else edge)
    array = input._array
    return finish(
        _sampled(
            array,
            gen,
            lambda a: _multinomial(gen, a, num_samples, replacement),
            lambda a: without_memory((*a.shape[:-1], num_samples), np.dtype(np.int64)),
        ),
        device_of(input),
    )


def _multinomial(gen: Any, array: Any, num_samples: int, replacement: bool) -> Any:
    if array.ndim <= 2:
        return _random.multinomial(gen, array, num_samples, replacement)
    level = innermost_batch_level()
    if level is None:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    flat = _random.multinomial(gen, array.reshape(-1, array.shape[-1]), num_samples, replacement)
    return flat.reshape(*array.shape[:-1], num_samples)


def _refuse_other_out(name: str, targets: Any, results: Any) -> None:
    if targets[0]._array.dtype != np.int64:
        given = _base.dtype_of(targets[0])._scalar_name
        raise RuntimeError(f"multinomial expects Long tensor out, got: {given}")


multinomial.__wrapped__.check_out = _refuse_other_out  # type: ignore[attr-defined]


@overridable
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Draw normal random numbers, each with a mean and a standard deviation of its own, or all with the same.

    Args:
        mean: a number, or a tensor
        std: a number, or a tensor
        size: the shape, if both are numbers
        generator: the stream of random numbers; the default one if it is not given

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.normal(torch.tensor([0.0, 100.0]), torch.tensor([1.0, 0.1]))
        tensor([ 1.5410, 99.9707])
    """
    gen = chosen("normal", generator)
    if size is not None:  # tensors of no dimensions stand for numbers
        mean, std = (
            one.item() if isinstance(one, _base.Tensor) and not one._array.ndim else one for one in (mean, std)
        )
    if isinstance(mean, _base.Tensor) or isinstance(std, _base.Tensor):
        if out is None:
            return _normal_of(mean, std, gen)
        refuse_out()
        if not (isinstance(mean, _base.Tensor) and isinstance(std, _base.Tensor)):
            own, given = ((mean if isinstance(mean, _base.Tensor) else std).shape, out.shape)
            if any(n != m and 1 not in (n, m) for n, m in zip(reversed(own), reversed(given), strict=False)):
                raise _errors.broadcast_error(tuple(own), tuple(given))  # torch does not resize here
        return call_into(_normal_of, (mean, std, gen), {}, out)
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    refuse_options(layout, pin_memory)
    if out is not None:
        refuse_out()
        return into(out, dtype, lambda own: normal(mean, std, size, generator=gen, dtype=own))
    wanted = numpy_dtype(dtype, "normal")
    sizes = sizes_of("normal", (size,))
    device = CPU if device is None else device  # torch's default device is not that of this function
    if is_for_meta(device):
        return finish(without_memory(sizes, wanted), device, requires_grad)
    values = drawn(sizes, lambda shape: _random.normal(gen, shape, wanted, mean, std))
    return finish(values, device, requires_grad)


def _normal_of(mean: Any, std: Any, gen: Any) -> Any:
    means, stds = isinstance(mean, _base.Tensor), isinstance(std, _base.Tensor)
    if current_mode().transforms:
        levels_to_draw(*[one._array for one in (mean, std) if isinstance(one, _base.Tensor)])
    if stds:
        deviations = std._array
        if deviations.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if not isinstance(deviations, LevelArray) and not is_meta(deviations) and bool((deviations < 0).any()):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    shapes = [tuple(one._array.shape) for one in (mean, std) if isinstance(one, _base.Tensor)]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise _errors.broadcast_error(*shapes) from None
    owner = mean if means else std
    dtype = _base.dtype_of(owner)
    if dtype.numpy.kind not in "fcV":
        refuse_kernel("normal_kernel_cpu", owner)
    detached = [one.detach() if isinstance(one, _base.Tensor) else one for one in (mean, std)]
    if stds:
        values = randn(shape, generator=gen, dtype=dtype, device=device_of(std)) * detached[1] + detached[0]
    else:
        values = normal(0.0, std, shape, generator=gen, dtype=dtype, device=device_of(mean)) + detached[0]
    values = values.to(dtype)._array
    if means and stds and current_mode().tracks and (mean._edge is not None or std._edge is not None):
        return record(ops.drawn_with_two, (mean, std, values), {}, "NormalBackward3")
    return _followed(values, owner, "NormalBackward1" if means else "NormalBackward2")


_normal_of.__name__ = "normal"
