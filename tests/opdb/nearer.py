"""Numbers of half precision that differ: whose are nearer to the exact ones?

torch rounds after many of its steps, where we compute in float32 and round once. So a result of half precision passes if it is
nowhere farther from what torch itself gives for the same numbers in float64 than torch's result is somewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import retrograd
from tests.opdb import translate
from tests.opdb.comparing import TOLERANCE, DifferentError, check, wide

HALF = (torch.bfloat16, torch.float16)


def widened(value: Any) -> Any:
    """Return arguments with float64 in the place of half precision."""
    if isinstance(value, torch.Tensor) and value.dtype in HALF:
        return value.detach().double().requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype) and value in HALF:
        return torch.float64
    if isinstance(value, dict):
        return {k: widened(v) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(widened(v) for v in value))
    if type(value) in (list, tuple):
        return type(value)(widened(v) for v in value)
    return value


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors in nested results, of either library."""
    if isinstance(value, (torch.Tensor, retrograd.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for one in value for t in tensors_in(one)]


def check_nearer(ours: Any, theirs: Any, exact: Callable[[], Any], loosened: float, different: DifferentError) -> None:
    """Pass if every number of half precision is close to torch's, or no farther from the exact one than torch's farthest."""
    if not any(t.dtype in HALF for t in tensors_in(theirs)):
        raise different
    check(ours, theirs, values=False)
    targets = tensors_in(exact())
    for one, other, target in zip(tensors_in(ours), tensors_in(theirs), targets, strict=True):
        found, want = wide(np.asarray(one.detach()._array)), wide(translate.array(other))
        relative, absolute = (t * loosened for t in TOLERANCE.get(str(other.dtype).removeprefix("torch."), (0.0, 0.0)))
        true = wide(translate.array(target))
        with np.errstate(all="ignore"):
            passes = np.isclose(found, want, relative, absolute, equal_nan=True)
            passes |= np.abs(found - true) <= np.nanmax(np.abs(want - true), initial=0)
        if not passes.all():
            raise different
