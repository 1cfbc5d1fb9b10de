"""vmap against a loop."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import torch

import retrograd
from retrograd import func as rfunc
from tests.opdb import ops
from tests.opdb.calls import Call, Skipped, each, few, samples, seed, supported
from tests.opdb.comparing import DifferentError, check_values
from tests.opdb.derivatives import replaced
from tests.opdb.limits import Limits
from tests.opdb.nearer import tensors_in


def vmap(op: Any, limits: Limits) -> None:
    """vmap against a loop, over every tensor of a sample."""
    dtypes = supported(op, (torch.float64, torch.complex128, torch.int64))[:1]
    if not dtypes or ops.UNINITIALISED.match(op.name):
        raise Skipped

    each(few(samples(op, dtypes[0], limits, False, True), limits.vmap), against_loop)


def against_loop(call: Call) -> None:
    """Compare vmap over every tensor of a call with a loop."""
    parts = call.parts(True)
    given = tensors_in(parts)
    if not given:
        raise Skipped
    rows = [[scaled(t, k) for t in given] for k in range(2)]
    stacked = [retrograd.stack([row[k] for row in rows]) for k in range(len(given))]

    def function(*values: Any) -> Any:
        swap = {id(old): new for old, new in zip(given, values, strict=True)}
        outputs = tensors_in(call.run(True, replaced(parts, swap)))
        if not outputs:
            raise Skipped
        return tuple(outputs)

    seed()
    with warnings.catch_warnings(record=True) as usual:
        warnings.simplefilter("always")
        expected = [function(*row) for row in rows]
    seed()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for warning in usual:  # those of the operation itself
                warnings.filterwarnings("ignore", re.escape(str(warning.message)))
            found = rfunc.vmap(function, randomness="same")(*stacked)
    except Skipped:
        raise
    except Exception:
        if refused_by_torch(call):
            raise Skipped from None
        raise
    for k, column in enumerate(zip(*expected, strict=True)):
        want = np.stack([np.asarray(row.detach()._array) for row in column])
        have = np.asarray(found[k].detach()._array)
        if have.shape != want.shape or have.dtype != want.dtype:
            raise DifferentError(f"{have.dtype}{list(have.shape)}, the loop gives {want.dtype}{list(want.shape)}")
        check_values(have, want, f"result {k}", 10)


def scaled(tensor: Any, row: int) -> Any:
    """Make the rows of a batch differ, where values are numbers and not indices; probabilities stay below one."""
    return tensor * (1 - 0.0625 * row) if tensor.is_floating_point() or tensor.is_complex() else tensor.clone()


def refused_by_torch(call: Call) -> bool:
    """Tell whether torch's own vmap refuses the call."""
    parts = call.parts(False)
    given = tensors_in(parts)
    stacked = [torch.stack([t, t]) for t in given]

    def function(*values: Any) -> Any:
        return tuple(
            tensors_in(call.run(False, replaced(parts, {id(o): n for o, n in zip(given, values, strict=True)})))
        )

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.func.vmap(function, randomness="same")(*stacked)
    except Exception:
        return True
    return False
