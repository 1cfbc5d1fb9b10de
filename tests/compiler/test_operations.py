"""Every operation of the table under compile: values, layout, gradients and errors are eager's, in the first call and in later ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.compiler import _making
from retrograd.compiler._purity import Verdict
from tests.ops.infos import OPS
from tests.ops.opinfo import Op, Sample, arrays_of, is_float
from tests.ops.test_all import each, on_all_samples

ROWS = (0, 1)  # the first call records, the second runs the record on other numbers
TOLERANCE = {"complex128": 1e-9, "float32": 3e-5}


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take functions of the table for pure, which they are: their Python is not what is tested here."""
    monkeypatch.setattr(_making, "analyse", lambda *call: Verdict(True, "", None, [], [], [], []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def call(function: Any, arrays: list[np.ndarray], floats: list[bool], dtype: str, gradients: bool) -> Any:
    """Call a function on new tensors: results, gradients, and what it left of its arguments; or the error."""
    tensors = []
    for array, differs in zip(arrays, floats, strict=True):
        array = np.array(array, dtype=dtype if differs and array.dtype.kind in "fc" else None, order="K")
        tensors.append(torch.from_numpy(array))
        if differs and gradients and array.dtype.kind in "fc":
            tensors[-1].requires_grad_()
    torch.manual_seed(3)
    try:
        found = function(*tensors)
    except Exception as error:
        return type(error), str(error)
    results = [one for one in (found if isinstance(found, (tuple, list)) else [found]) if isinstance(one, torch.Tensor)]
    outs = [one for one in results if one.requires_grad]
    wanted = [one for one in tensors if one.requires_grad]
    grads: Any = []
    if outs and wanted:
        grads = torch.autograd.grad(outs, wanted, [torch.ones_like(one) * 0.7 for one in outs], allow_unused=True)
    described = [(tuple(one.shape), one.stride(), str(one.dtype), one.requires_grad) for one in results]
    left = [(one._version, numbers_of(one).tobytes()) for one in tensors]
    numbers = [None if one is None else numbers_of(one) for one in (*results, *grads)]
    return described, left, torch.get_rng_state().tolist(), numbers


def numbers_of(tensor: Any) -> np.ndarray:
    return tensor.detach().resolve_conj().resolve_neg().numpy()


@each(OPS)
def test_compiled(op: Op) -> None:
    kind = "int64" if "bitwise" in op.name else None

    def check(sample: Sample) -> None:
        for dtype in ("float32", "complex128") if op.complex else ("float32",):
            eager = lambda *tensors: op.function(torch, sample, tensors)  # noqa: E731
            compiled = torch.compile(eager)
            for row in ROWS:
                arrays = arrays_of(op, sample, kind or ("complex128" if dtype == "complex128" else "float64"), row)
                expected = call(eager, arrays, is_float(sample), dtype, op.differentiable)
                made = call(compiled, arrays, is_float(sample), dtype, op.differentiable)
                assert made[:-1] == expected[:-1]
                if len(expected) == 2:
                    assert made == expected  # an error
                    continue
                for one, other in zip(made[-1], expected[-1], strict=True):
                    assert (one is None) is (other is None)
                    if one is not None:
                        bound = TOLERANCE[dtype]
                        np.testing.assert_allclose(one, other, rtol=bound, atol=bound, equal_nan=True)

            for reason in compiled._compiled.reasons:  # a wrong program must not hide behind eager
                assert "differs from eager" not in reason or "strides" in reason, reason

    on_all_samples(op, check)
