"""What operations give on the meta device: the shapes, dtypes and strides of their results and gradients there."""

from __future__ import annotations

import warnings
from typing import Any

import retrograd as torch
from tests.ops.opinfo import Op, Sample, arrays_of, is_float


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors among results, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [one for part in value.values() for one in tensors_in(part)]
    return [one for part in value for one in tensors_in(part)] if isinstance(value, (list, tuple)) else []


def facts(tensors: list[Any]) -> list[Any]:
    """Return what is known of tensors without their elements; strides only where they lead anywhere."""
    found: list[Any] = []
    for one in tensors:
        if one is None:
            found.append(None)
            continue
        steps = [step for step, size in zip(one.stride(), one.shape, strict=True) if size > 1 and one.numel()]
        found.append((tuple(one.shape), one.dtype, steps))
    return found


def results(op: Op, sample: Sample, device: str, dtype: str = "float64") -> tuple[list[Any], list[Any]]:
    """Run an operation forwards and, if it can, backwards; return its results and the gradients of its inputs."""
    inputs = []
    wide = "complex128" if dtype.startswith("complex") else "float64"
    for array, differentiable in zip(arrays_of(op, sample, wide), is_float(sample), strict=True):
        tensor = torch.from_numpy(array).to(device)
        tensor = tensor.to(getattr(torch, dtype)) if differentiable and dtype != wide else tensor
        inputs.append(tensor.requires_grad_() if differentiable and op.differentiable else tensor)
    torch.manual_seed(0)
    with warnings.catch_warnings(), torch.device(device):
        warnings.simplefilter("ignore")
        found = tensors_in(op.function(torch, sample, inputs))
        roots = [one for one in found if one.requires_grad]
        if not roots:
            return found, []
        torch.autograd.backward(roots, [torch.ones_like(one) for one in roots])
    return found, [one.grad for one in inputs]
