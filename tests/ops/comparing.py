"""Run an operation in torch and in retrograd and compare values, dtypes, shapes and derivatives."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.ops.opinfo import Op, Sample, arrays_of, is_float
from tests.oracle import outcome, whole

# relative to the largest number in the array, or to 1: half precision is rounded after every step, by torch
# in its own places, and where terms cancel, what is left is rounding
TOLERANCE = {
    "float64": 1e-11,
    "complex128": 1e-11,
    "float32": 2e-5,
    "complex64": 2e-5,
    "bfloat16": 4e-2,
    "float16": 6e-3,
}


def first_sentence(message: str) -> str:
    """Return a message up to the end of its first sentence or line."""
    line = message.strip().split("\n")[0]
    head, dot, _ = line.partition(". ")
    return head + dot.strip()


def attempt(call: Any, *args: Any) -> Any:
    """Run a call without its warnings; an error becomes a value, so does a NumPy warning about numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        return outcome(call, *args, words=whole, ignore_warnings=False)


def name_of(dtype: Any) -> str:
    """Return the name that torch's dtypes and ours have in common."""
    return str(dtype).removeprefix("torch.")


def make(library: Any, array: np.ndarray, dtype: str | None, requires_grad: bool) -> Any:
    """Make a tensor of a library with an array's values and strides."""
    array = np.asarray(array)
    tensor = library.from_numpy(array if array.flags.writeable else array.copy())
    if dtype is not None and name_of(tensor.dtype) != dtype:
        tensor = tensor.to(getattr(library, dtype))
    return tensor.requires_grad_() if requires_grad else tensor


def inputs_of(library: Any, op: Op, sample: Sample, dtype: str, *, grad: bool = True, row: int = 0) -> list[Any]:
    """Make the tensors of a sample in one dtype."""
    base = "complex128" if dtype.startswith("complex") else dtype if dtype in ("int64", "bool") else "float64"
    grad = grad and dtype not in ("int64", "bool")
    arrays = arrays_of(op, sample, base, row)
    return [
        make(library, a, dtype if is_input else None, is_input and grad)
        for a, is_input in zip(arrays, is_float(sample), strict=True)
    ]


def parts(result: Any) -> list[Any]:
    """Return the tensors of a result."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def values(library: Any, tensor: Any) -> np.ndarray:
    """Return a tensor's values in a dtype that NumPy has."""
    tensor = tensor.detach()
    if tensor.is_complex() and hasattr(tensor, "resolve_conj"):
        tensor = tensor.resolve_conj()
    if name_of(tensor.dtype) == "bfloat16":
        tensor = tensor.to(library.float32)
    return np.array(tensor.numpy(force=True))  # torch has lazy zeros, too


def weight(like: np.ndarray, seed: int) -> np.ndarray:
    """Return random numbers for a cotangent or tangent: short ones, which every dtype holds."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-12, 13, like.shape) / 8
    return np.asarray(numbers + 1j * rng.integers(-12, 13, like.shape) / 8 if like.dtype.kind == "c" else numbers)


def compare(ours: Any, theirs: Any, what: str, tolerance: float) -> None:
    """Require equal dtype, shape and, up to a tolerance, values; NaN equals NaN."""
    import torch

    import retrograd

    assert name_of(ours.dtype) == name_of(theirs.dtype), f"{what}: dtype {ours.dtype}, torch {theirs.dtype}"
    assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: shape {tuple(ours.shape)}, torch {tuple(theirs.shape)}"
    got, wanted = values(retrograd, ours), values(torch, theirs)
    size = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0) if wanted.dtype.kind in "fc" else 0.0
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * float(size), err_msg=what)


def differentiable(tensors: Sequence[Any]) -> list[Any]:
    return [t for t in tensors if t.requires_grad]


def first_order(library: Any, op: Op, sample: Sample, dtype: str, *, graph: bool = False) -> Any:
    """Return outputs, inputs and the inputs' gradients for fixed cotangents."""
    inputs = inputs_of(library, op, sample, dtype)
    outs = parts(op.function(library, sample, inputs))
    followed = differentiable(outs)
    wanted = differentiable(inputs)
    if not followed:
        return outs, wanted, [], [None] * len(wanted)
    seeds = [make(library, weight(values(library, o), 11 + k), name_of(o.dtype), graph) for k, o in enumerate(followed)]
    grads = library.autograd.grad(followed, wanted, seeds, create_graph=graph, allow_unused=True)
    return outs, wanted, seeds, list(grads)


def second_order(library: Any, op: Op, sample: Sample, dtype: str) -> list[Any]:
    """Return the gradients of the gradients for inputs and cotangents."""
    _, wanted, seeds, grads = first_order(library, op, sample, dtype, graph=True)
    pairs = [
        (g, make(library, weight(values(library, g), 31 + k), name_of(g.dtype), False))
        for k, g in enumerate(grads)
        if g is not None and g.requires_grad
    ]
    targets = [*wanted, *seeds]
    if not pairs:
        return [None] * len(targets)
    return list(library.autograd.grad([g for g, _ in pairs], targets, [d for _, d in pairs], allow_unused=True))


def forward_mode(library: Any, op: Op, sample: Sample, dtype: str) -> list[Any]:
    """Return the outputs' tangents for fixed tangents of the inputs."""
    forward_ad = library.autograd.forward_ad
    inputs = inputs_of(library, op, sample, dtype, grad=False)
    with forward_ad.dual_level():
        duals = []
        for k, (one, is_input) in enumerate(zip(inputs, is_float(sample), strict=True)):
            if is_input:
                tangent = make(library, weight(values(library, one), 51 + k), name_of(one.dtype), False)
                one = forward_ad.make_dual(one, tangent)
            duals.append(one)
        outs = parts(op.function(library, sample, duals))
        return [forward_ad.unpack_dual(o).tangent for o in outs]
