"""Normalisation as functions of the package: torch.layer_norm, torch.batch_norm and those that also return what they computed."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import LevelArray, levels_of
from ..._core.numpy_namespace import HALVES
from ..._dtypes import float32
from ..._modes import using
from ..._ops import normalization as rows
from ..._ops import normalization_channels as channels
from ..._warnings import warn
from ...overrides import overridable, takes_out
from ...tensor import _base
from ...tensor._aliasing.entering import without_tangents
from ...tensor._aliasing.inplace import copy_into
from ...tensor._functions.creation import empty
from ...tensor._functions.elementwise import rsqrt
from ...tensor._functions.matrix_checks import need_tensor, scalar_name
from ...tensor._functions.variance import var as variance_of
from ...tensor._recording.flat import EXACT
from ...tensor._recording.record import record

NDARRAY, F32, F64 = np.ndarray, np.dtype(np.float32), np.dtype(np.float64)
USUAL = frozenset({*EXACT, type(None)})
REFUSED_KINDS = frozenset("biuc")
NOT_BATCHED = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were not "
    "batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be False.If you are "
    "using a prebuilt module and do not need eval mode, please see the functorch website for resources on how to patch your "
    "module to work with vmap"
)


# ---- what arguments must be ----
def _check_inner(input: Any, shape: tuple[int, ...], star: str, **parameters: Any) -> None:
    """Require that an input ends in the axes to normalise, and that parameters have just these."""
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, parameter in parameters.items():
        if parameter is not None and tuple(parameter._array.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{_errors.sizes(parameter._array.shape)} and normalized_shape = {_errors.sizes(shape)}"
            )
    size = tuple(input._array.shape)
    if size[-len(shape) :] != shape:
        inner = _errors.sizes(shape)
        raise RuntimeError(
            f"Given normalized_shape={inner}, expected input with shape [{star}{inner[1:]}, but got input of size"
            f"{_errors.sizes(size)}\nHint: normalized_shape is the shape of the last {len(shape)} dimension"
            f"{'s' if len(shape) > 1 else ''} of the input, here {list(size[-len(shape) :])}."
        )


def _check_dtypes(kernel: str, input: Any, *parameters: Any) -> None:
    """Require a kernel for the input's dtype, and parameters of that dtype; half precision goes with float32 as well."""
    dtype = input._array.dtype
    others = [one for one in parameters if one is not None and one._array.dtype != dtype]
    if others:
        first = next(one for one in parameters if one is not None)
        if first._array.dtype == dtype:
            raise RuntimeError(f"expected scalar type {scalar_name(input)} but found {scalar_name(others[0])}")
        if any(one is not None and one.dtype is not float32 for one in parameters):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if dtype not in HALVES:
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
    if dtype.kind in REFUSED_KINDS:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(input)}'")


def _usual(array: Any, length: Any, *parameters: Any) -> bool:
    """Tell whether no check can fail: dense numbers of full precision, and vectors of a length for parameters."""
    dtype = array.dtype
    if type(array) is not NDARRAY or (dtype is not F32 and dtype is not F64):
        return False
    for one in parameters:
        if one is not None:
            given = one._array
            if given.dtype is not dtype or given.shape != (length,):
                return False
    return True


# ---- layer_norm and rms_norm ----
def layers(input: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Normalise over the last axes."""
    if type(shape) is tuple and len(shape) == 1 and {type(input), type(weight), type(bias)} <= USUAL:
        array = input._array
        if (
            array.ndim
            and type(shape[0]) is int
            and array.shape[-1] == shape[0]
            and _usual(array, shape[0], weight, bias)
        ):
            return record(rows.layer_norm, (input, weight, bias), {"ndim": 1, "eps": eps})
    shape = tuple(map(index, shape))
    _check_inner(input, shape, "*, ", weight=weight, bias=bias)
    _check_dtypes("LayerNormKernelImpl", input, weight, bias)
    return record(rows.layer_norm, (input, weight, bias), {"ndim": len(shape), "eps": eps})


@overridable(raised="cuda")
def layer_norm(
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Any:
    """Bring the numbers of the last axes to mean 0 and variance 1; then scale and shift them."""
    return layers(input, normalized_shape, weight, bias, eps)


def root_mean_squares(input: Any, shape: Any, weight: Any, eps: float | None) -> Any:
    """Divide by the root of the mean square over the last axes."""
    shape = tuple(map(index, shape))
    _check_inner(input, shape, "*", weight=weight)
    dtype = _base.dtype_of(input)
    if input._array.dtype.kind in "biu":
        raise NotImplementedError(f"\"rms_norm\" not implemented for '{scalar_name(input)}'")
    if eps is None:
        wide = float32 if dtype.numpy in HALVES else dtype
        eps = 2.0**-23 if wide.numpy.itemsize == (8 if dtype.is_complex else 4) else 2.0**-52
    params = {"ndim": len(shape), "eps": eps}
    if weight is not None and weight.dtype is not dtype:
        names = {"float32": "float", "float64": "double", "bfloat16": "c10::BFloat16", "float16": "c10::Half"}
        shown = [names.get(str(one).split(".")[1], str(one)) for one in (dtype, weight.dtype)]
        warn(
            f"Mismatch dtype between input and weight: input dtype = {shown[0]}, weight dtype = {shown[1]}, Cannot dispatch "
            "to fused implementation."
        )
        if dtype.numpy not in HALVES:
            return (record(rows.rms_norm, (input, None), params) * weight).to(dtype)
    return record(rows.rms_norm, (input, weight), params)


@overridable
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """Divide by the root of the mean square over the last axes; then scale."""
    return root_mean_squares(input, normalized_shape, weight, eps)


# ---- group_norm ----
def groups_of_channels(input: Any, groups: int, weight: Any, bias: Any, eps: float) -> Any:
    """Normalise each group of channels of each sample."""
    if {type(input), type(weight), type(bias)} <= USUAL and type(groups) is int and groups > 0:
        array = input._array
        if array.ndim > 1 and array.shape[1] % groups == 0 and _usual(array, array.shape[1], weight, bias):
            return record(channels.group_norm, (input, weight, bias), {"groups": groups, "eps": eps})
    shape = tuple(input._array.shape)
    count = shape[_errors.wrap_dim(1, len(shape))]
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if count % groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{_errors.sizes(shape)} and num_groups={groups}"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and tuple(parameter._array.shape) != (count,):
            shown = weight._array.shape if weight is not None else (0,)  # torch shows the weight's for both
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                f"{_errors.sizes(shown)} and input of shape {_errors.sizes(shape)}"
            )
    _check_dtypes("GroupNormKernelImpl", input, weight, bias)
    return record(channels.group_norm, (input, weight, bias), {"groups": groups, "eps": eps})


@overridable(raised="cuda")
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05, cudnn_enabled: bool = True
) -> Any:
    """Bring each group of channels of each sample to mean 0 and variance 1; then scale and shift by channel."""
    return groups_of_channels(input, num_groups, weight, bias, eps)


# ---- batch_norm ----
def by_batch(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, Any, Any]:
    """Normalise each channel over the samples; return mean and variance in training, and None for them else."""
    _check_batch_norm(input, weight, bias, running_mean, running_var, training)
    if input._array.ndim < 2:  # and so empty: every other has been refused
        return input.clone(), None, None
    if not training:
        args = input, weight, bias, running_mean.detach(), running_var.detach()
        return record(channels.batch_norm_fixed, args, {"eps": eps}), None, None
    if isinstance(momentum, (bool, str)) or momentum is None:
        raise TypeError(f"batch_norm(): argument 'momentum' (position 7) must be float, not {type(momentum).__name__}")
    dtype = input._array.dtype
    half = dtype if dtype in HALVES else None
    given = next((one for one in (weight, bias, running_mean, running_var) if one is not None), input)
    params = {"eps": eps, "half": half, "rounds": half is not None and given._array.dtype == half}
    out, mean, variance = record(channels.batch_norm, (input, weight, bias), params)
    mean, variance = (_base.wrap(without_tangents(one._array)) for one in (mean, variance))
    if running_mean is not None and input._array.size:
        count = input._array.size // input._array.shape[1]
        unbiased = variance * (count / (count - 1) if count > 1 else float("inf"))
        for running, value in ((running_mean, mean), (running_var, unbiased)):
            _move(running, value, momentum)
    return out, mean, variance


def over_samples(input: Any, weight: Any, bias: Any, *rest: Any) -> Any:
    """Normalise each channel over the samples; of no numbers torch looks at nothing else, and the parameters get zeros."""
    if isinstance(input, _base.Tensor) and not input._array.size and input._array.ndim > 1:
        out = input.clone()
        out = out if weight is None else out * weight[0]
        return out if bias is None else out + bias[0]
    return by_batch(input, weight, bias, *rest)[0]


def _check_batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool) -> None:
    tensors = weight, bias, running_mean, running_var
    if type(input) in EXACT and {*map(type, tensors)} <= USUAL and input._array.ndim > 1:
        edges = (None, None) if running_mean is None or running_var is None else (running_mean._edge, running_var._edge)
        both = (running_mean is None) == (running_var is None) and (training or running_mean is not None)
        if both and edges == (None, None) and _usual(input._array, input._array.shape[1], *tensors):
            return
    need_tensor(input, "batch_norm", "input")
    statistics = {"running_mean": running_mean, "running_var": running_var}
    parameters = {**statistics, "weight": weight, "bias": bias}
    for position, name in enumerate(("weight", "bias", "running_mean", "running_var"), 2):
        if parameters[name] is not None:
            need_tensor(parameters[name], "batch_norm", name, position)
    if training and (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    shape = tuple(input._array.shape)
    if running_mean is None and len(shape) < 2:
        _errors.wrap_dim(1, len(shape))
    count = shape[1] if len(shape) > 1 else 0
    for name, parameter in parameters.items():
        if parameter is None:
            if name in statistics and not training:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
            continue
        size = parameter._array.size
        if size != count:
            raise RuntimeError(
                f"{name} should contain {count} elements not {size}\n"
                f"Hint: the input of shape {_errors.sizes(shape)} has {count} channels (dimension 1)."
            )
    for name, parameter in statistics.items():
        if parameter is not None and parameter.requires_grad:
            raise RuntimeError(
                f"The function 'native_batch_norm' is not differentiable with respect to argument '{name}'. This input cannot "
                "have requires_grad True."
            )
    if not input._array.size:
        return
    if input._array.dtype.kind in REFUSED_KINDS:
        raise NotImplementedError(f"\"batch_norm\" not implemented for '{scalar_name(input)}'")
    _check_dtypes("batch_norm", input, weight, bias, running_mean, running_var)
    if training and running_mean is not None and isinstance(input._array, LevelArray):
        batches = levels_of(without_tangents(input._array))
        if any(not batches <= levels_of(parameter._array) for parameter in statistics.values()):
            raise RuntimeError(NOT_BATCHED)


def _move(running: Any, value: Any, momentum: float) -> None:
    """Move a running statistic towards a value. torch counts no version here: the next backward does not mind the write."""
    target, new = running._array, value._array
    if isinstance(target, LevelArray) or isinstance(new, LevelArray):
        with using(grad=False):
            copy_into(running, running * (1 - momentum) + value.reshape(running.shape).to(running.dtype) * momentum)
        return
    target[...] = (target.astype(new.dtype) * (1 - momentum) + new.reshape(target.shape) * momentum).astype(
        target.dtype
    )


@overridable
def batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """Bring each channel to mean 0 and variance 1 over the samples, or by running statistics; then scale and shift it."""
    return over_samples(input, weight, bias, running_mean, running_var, training, momentum, eps)


# ---- instance_norm ----
def by_instance(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Normalise each channel of each sample: batch_norm of one sample that has them all as channels."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    shape = tuple(input.shape)
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    _errors.wrap_dim(1, len(shape))
    samples = shape[0]

    def each(parameter: Any) -> Any:
        return None if parameter is None else parameter.repeat(samples)

    mean, variance = each(running_mean), each(running_var)
    apart = input.contiguous().view(1, samples * shape[1], *shape[2:])
    out = by_batch(apart, each(weight), each(bias), mean, variance, use_input_stats, momentum, eps)[0]
    if use_input_stats:
        for running, used in ((running_mean, mean), (running_var, variance)):
            if running is not None:
                copy_into(running, used.view(samples, shape[1]).mean(0))
    return out.view(shape)


@overridable
def instance_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """Bring each channel of each sample to mean 0 and variance 1; then scale and shift it."""
    return by_instance(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


# ---- the same, with what was computed on the way ----
def _wide(input: Any, *parameters: Any) -> tuple[Any, Any]:
    """Return an input, in float32 if it is in half precision; and the dtype of its statistics."""
    given = next((one for one in parameters if one is not None), input)
    return (input.to(float32) if input._array.dtype in HALVES else input), given.dtype


@overridable
def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    """Compute layer_norm; also the means and the inverse deviations."""
    out = layers(input, normalized_shape, weight, bias, eps)
    wide, dtype = _wide(input.detach(), weight, bias)
    dims = tuple(range(-len(normalized_shape), 0))
    scale = rsqrt(variance_of(wide, dims, correction=0, keepdim=True) + eps)
    return out, wide.mean(dims, True).to(dtype), scale.to(dtype)


@overridable
def native_group_norm(
    input: Any,
    weight: Any,
    bias: Any,
    N: int,  # noqa: N803 - torch's name
    C: int,  # noqa: N803 - torch's name
    HxW: int,  # noqa: N803 - torch's name
    group: int,
    eps: float,
) -> tuple[Any, Any, Any]:
    """Compute group_norm; also the means and the inverse deviations of the groups."""
    if not (input.is_contiguous() or input.movedim(1, -1).is_contiguous()):
        raise RuntimeError("Expected X.is_contiguous(memory_format) to be true, but got false")
    out = groups_of_channels(input, group, weight, bias, eps)
    wide, dtype = _wide(input, weight, bias)  # torch differentiates these, too
    apart = wide.reshape(N, group, C // group * HxW)
    scale = rsqrt(variance_of(apart, 2, correction=0) + eps)
    return out, apart.mean(2).to(dtype), scale.to(dtype)


@takes_out
def native_batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, Any, Any]:
    """Compute batch_norm; also, in training, the means and the inverse deviations of the channels."""
    out, mean, variance = by_batch(input, weight, bias, running_mean, running_var, training, momentum, eps)
    _, dtype = _wide(input, weight, bias, running_mean, running_var)
    if mean is None:
        return out, empty(0, dtype=dtype), empty(0, dtype=dtype)
    return out, mean.to(dtype), rsqrt(variance + eps).to(dtype)


@overridable(forms="function")
def _native_batch_norm_legit(input: Any, weight: Any, bias: Any, *rest: Any, **named: Any) -> tuple[Any, Any, Any]:
    """Compute native_batch_norm, with running statistics or without."""
    if len(rest) + len(named) == 3:
        rest = (None, None, *rest)
    return native_batch_norm(input, weight, bias, *rest, **named)  # type: ignore[no-any-return]
