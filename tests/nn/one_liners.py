"""One-line programs of nn on both libraries: shapes, dtypes, nodes and numbers, or the error."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import retrograd
from tests.oracle import Raised, before_the_hint, outcome


def shown(library: Any, program: str) -> Any:
    """Return what a program gives: shapes, dtypes, nodes and numbers of tensors, or an error."""
    library.manual_seed(0)
    scope = {"torch": library, "F": library.nn.functional, "nn": library.nn, "R": library.rand}
    result = outcome(eval, program, scope, words=before_the_hint)
    if isinstance(result, Raised):
        return result
    if not isinstance(result, tuple):
        result = (result,)
    return [_described(one) for one in result]


# where torch goes another way to the same result
OTHER_WAYS = ("SqueezeBackward1", "CopySlices", "NotImplemented")


def _described(value: Any) -> Any:
    if not hasattr(value, "grad_fn"):
        return re.sub("retrograd", "torch", str(value))
    node = None if value.grad_fn is None else value.grad_fn.name()
    return (
        tuple(value.shape),
        str(value.dtype).split(".")[1],
        node,
        _number(value),
    )


def _number(value: Any) -> Any:
    return np.array(value.detach().double().tolist())


def check_program(oracle: Any, program: str) -> None:
    """Compare what a program gives with what torch gives."""
    ours, theirs = shown(retrograd, program), shown(oracle, program)
    if not isinstance(theirs, list):
        assert ours == theirs
        return
    assert isinstance(ours, list), ours
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(other, str):
            assert one == other
            continue
        assert one[:2] == other[:2]
        assert one[2] == other[2] or str(other[2]).endswith(OTHER_WAYS)
        np.testing.assert_allclose(one[3], other[3], rtol=1e-5, atol=1e-6)
