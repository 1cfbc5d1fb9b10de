"""Every operation of the table on CUDA arrays: values and gradients as on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as torch
from tests.ops.infos import OPS
from tests.ops.opinfo import Op, Sample, arrays_of, is_float

if not torch.cuda.is_available():
    pytest.skip("needs CuPy and a CUDA device", allow_module_level=True)

pytestmark = pytest.mark.gpu
SAMPLES = 3
# what CuPy has not, and says so
MISSING = {
    "hash_tensor": "CuPy has no bitwise_xor.reduce",
    "histogramdd": "CuPy's histogramdd takes no list of edges on the CPU",
    "stft_complex": "CuPy adds no complex numbers at indices",
    "as_strided_twice": "the storage of a CuPy view is not looked at",
}
RUN = [op for op in OPS if not op.name.startswith("xp_")]  # rules that the table calls on NumPy's arrays


def outputs(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for one in result for t in outputs(one)] if isinstance(result, (tuple, list)) else []


def run(op: Op, sample: Sample, device: str) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
    """Return the results and the gradients of one sample on a device."""
    given = []
    for array, is_input in zip(arrays_of(op, sample, "float64"), is_float(sample), strict=True):
        tensor = torch.tensor(np.ascontiguousarray(array)).to(device)
        given.append(tensor.requires_grad_() if is_input and op.differentiable else tensor)
    torch.set_default_device(device)  # some operations of the table make tensors of their own
    try:
        results = outputs(op.function(torch, sample, given))
    finally:
        torch.set_default_device(None)
    roots = [r for r in results if r.requires_grad]
    grads: list[Any] = []
    if roots:
        leaves = [t for t in given if t.requires_grad]
        grads = list(torch.autograd.grad([r.abs().sum() for r in roots], leaves, allow_unused=True))
    return [r.detach().cpu().numpy() for r in results], [None if g is None else g.cpu().numpy() for g in grads]


@pytest.mark.filterwarnings("ignore:The use of `x.T` on tensors")
@pytest.mark.parametrize("op", RUN, ids=lambda op: op.name)
def test_as_on_the_cpu(op: Op) -> None:
    if op.name in MISSING:
        pytest.skip(MISSING[op.name])
    for sample in op.samples[:SAMPLES]:
        try:
            expected = run(op, sample, "cpu")
        except (RuntimeError, IndexError, NotImplementedError):
            continue
        found = run(op, sample, "cuda")
        for ours, theirs in zip((*found[0], *found[1]), (*expected[0], *expected[1]), strict=True):
            if theirs is not None:
                np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8, err_msg=str(sample))
