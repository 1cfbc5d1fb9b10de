"""Whether a result of retrograd equals torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import retrograd
from tests.opdb import translate

# relative and absolute tolerance by dtype; sums run in another order, so a little more than rounding
TOLERANCE = {
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
    "float32": (1e-4, 2e-5),
    "complex64": (1e-4, 2e-5),
    "bfloat16": (2e-2, 1e-2),
    "float16": (2e-3, 1e-3),
}


class DifferentError(AssertionError):
    """Two results differ."""


def wide(array: np.ndarray) -> np.ndarray:
    kind = array.dtype.kind
    return array.astype(np.complex128) if kind == "c" else array.astype(np.float64) if kind in "fV" else array


def check(ours: Any, theirs: Any, where: str = "result", values: bool = True, loosened: float = 1.0) -> None:
    """Compare structure, shapes, dtypes and (unless the memory is uninitialised) values."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, retrograd.Tensor):
            raise DifferentError(f"{where}: {type(ours).__name__} where torch has a Tensor")
        if str(ours.dtype) != str(theirs.dtype):
            raise DifferentError(f"{where}: dtype {ours.dtype}, torch {theirs.dtype}")
        if tuple(ours.shape) != tuple(theirs.shape):
            raise DifferentError(f"{where}: shape {tuple(ours.shape)}, torch {tuple(theirs.shape)}")
        if values:
            check_values(np.asarray(ours.detach()._array), translate.array(theirs), where, loosened)
    elif isinstance(theirs, (tuple, list)):
        if not isinstance(ours, (tuple, list)) or len(ours) != len(theirs):
            raise DifferentError(f"{where}: {ours!r:.80} where torch has {len(theirs)} values")
        for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            check(one, other, f"{where}[{k}]", values, loosened)
    elif isinstance(theirs, dict):
        for key in theirs:
            check(ours[key], theirs[key], f"{where}[{key!r}]", values, loosened)
    elif isinstance(theirs, (float, complex)):
        check_values(np.asarray(ours), np.asarray(theirs), where, loosened)
    elif isinstance(theirs, (bool, int, str, type(None))):
        if ours != theirs:
            raise DifferentError(f"{where}: {ours!r}, torch {theirs!r}")
    elif isinstance(theirs, torch.dtype) and str(theirs) != str(ours):
        raise DifferentError(f"{where}: {ours}, torch {theirs}")


def check_values(ours: np.ndarray, theirs: np.ndarray, where: str, loosened: float = 1.0) -> None:
    """Compare arrays: floats to a tolerance of their dtype, everything else exactly; NaN equals NaN."""
    name = ours.dtype.name
    ours, theirs = wide(ours), wide(theirs)
    relative, absolute = TOLERANCE.get(name, (0.0, 0.0))
    with np.errstate(all="ignore"):
        close = np.isclose(ours, theirs, rtol=relative * loosened, atol=absolute * loosened, equal_nan=True)
    if not close.all():
        at = tuple(int(k) for k in np.argwhere(~close)[0])
        raise DifferentError(
            f"{where}{list(at)}: {ours[at]}, torch {theirs[at]} ({(~close).sum()} of {close.size} differ)"
        )
