"""Dtypes of results where operands differ in dtype, and one of them may have no dimensions: every operation, against torch."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
from tests.ops.infos import OPS
from tests.ops.opinfo import Op, Sample, arrays_of, is_float
from tests.ops.test_all import each, on_all_samples

pytestmark = pytest.mark.oracle
DTYPES = ("bool", "int32", "int64", "float32", "float64", "complex64")

# Convolutions of operands with a wrong dtype, which one of torch's kernels takes and another refuses; powers of a bool;
# a solver that takes the dtype of its first operand.
LENIENT = {
    "ldexp",
    "ldexp_",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_tbc",
    "conv2d_input",
    "conv2d_weight",
    "linalg_solve_triangular",
}


def mixed(op: Op, sample: Sample) -> list[list[np.ndarray]]:
    """Return inputs of two dtypes: one that has no dimensions among others, or the last, is of the second."""
    arrays, floats = arrays_of(op, sample), is_float(sample)
    if not all(a.size for a in arrays):  # torch's checks are not for where nothing is computed
        return []
    moving = [k for k, one in enumerate(floats) if one]
    without = [k for k in moving if not arrays[k].ndim]
    some = 0 < len(without) < len(moving)
    other = set(without if some else moving[-1:])
    pairs = itertools.permutations(DTYPES, 2) if some else [("float32", "float64"), ("float64", "float32")]
    return [
        [cast(a, (second if k in other else first)) if floats[k] else a for k, a in enumerate(arrays)]
        for first, second in (pairs if len(moving) > 1 else ())
    ]


def cast(array: np.ndarray, dtype: str) -> np.ndarray:
    return array > 0 if dtype == "bool" else array.astype(dtype)


def dtypes_of(library: Any, op: Op, sample: Sample, arrays: list[np.ndarray]) -> Any:
    """Return the dtypes of the results, or None where the library refuses."""
    try:
        out = op.function(library, sample, [library.from_numpy(np.array(a)) for a in arrays])
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None
    return [str(o.dtype) for o in (out if isinstance(out, (tuple, list)) else [out]) if hasattr(o, "dtype")]


@each([op for op in OPS if not op.name.startswith("xp_") and op.name not in LENIENT])
def test_dtypes_of_results(op: Op) -> None:
    torch = pytest.importorskip("torch")

    def check(sample: Sample) -> None:
        for arrays in mixed(op, sample):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of complex numbers that become real
                ours, theirs = (dtypes_of(library, op, sample, arrays) for library in (retrograd, torch))
            assert ours == theirs, [str(a.dtype) for a in arrays]

    on_all_samples(op, check)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "text",
    [
        *("a + 0.1", "a - 0.1", "0.1 - a", "a * 0.1", "a / 0.3", "0.3 / a", "a.abs() ** 0.3", "a + torch.tensor(0.1)"),
        *(
            "a * torch.tensor(0.1)",
            "a * 3 + 2",
            "torch.lerp(a, b, 0.1)",
            "a.lerp_(b, 0.7)",
            "torch.addcmul(a, b, b, value=0.1)",
        ),
        # float16 does not hold this number
        *("a * 70000", "a * torch.tensor(70000)", "a / torch.tensor(70000.0)", "a / 70000", "a.lerp(b, 70000)"),
    ],
)
def test_numbers_next_to_halves_are_rounded_as_in_torch(dtype: str, text: str) -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).standard_normal((2, 500)).astype(np.float32)

    def found(library: Any) -> Any:
        a, b = library.tensor(values).to(getattr(library, dtype))
        return eval(text, {"torch": library, "a": a.clone(), "b": b}).double().numpy()

    np.testing.assert_array_equal(found(retrograd), found(torch))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "text",
    [
        *("a * 70000.0", "a * 70000", "a / 70000.0", "a / 70000", "a.sum() / 70000", "a.clone().mul_(70000.0)"),
        *("a / torch.tensor(70000)", "a.mean()", "a.nanmean()", "torch.var_mean(a)[1]"),
        "torch.nn.functional.l1_loss(a, a.detach() + 1)",
    ],
)
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("count", [20, 70001])
def test_gradients_by_numbers_that_float16_does_not_hold(dtype: str, text: str, create_graph: bool, count: int) -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).standard_normal(count).astype(np.float32)

    def found(library: Any) -> Any:
        a = library.tensor(values).to(getattr(library, dtype)).requires_grad_()
        out = eval(text, {"torch": library, "a": a})
        gradient = library.tensor(values).to(out.dtype)[: out.numel()].reshape(out.shape)
        (slope,) = library.autograd.grad(out, a, gradient, create_graph=create_graph)
        return slope.detach().double().numpy()

    wanted = found(torch)
    assert wanted.any()
    np.testing.assert_array_equal(found(retrograd), wanted)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "text",
    [
        *("x.var(1)", "x.std()", "torch.var_mean(x, 1)", "torch.std_mean(x)", "x / 2.5", "x.erfinv()", "torch.cov(x)"),
        *("torch.addmm(x, x, x, alpha=0.3, beta=0.4)", "torch.addmv(x[0], x, x[1], alpha=0.3)", "x.mean()", "x * 2.5"),
    ],
)
def test_tangents_have_the_precision_of_results(dtype: str, text: str) -> None:
    x = (retrograd.arange(16.0).reshape(4, 4) / 20).to(getattr(retrograd, dtype))
    results, tangents = retrograd.func.jvp(lambda x: eval(text, {"torch": retrograd, "x": x}), (x,), (x / 2,))
    for result, tangent in zip(*[one if type(one) is tuple else (one,) for one in (results, tangents)], strict=True):
        assert result.dtype == tangent.dtype == x.dtype


def test_truth_values_are_refused_in_subtractions_whatever_was_subtracted_before() -> None:
    tensor = retrograd.ones(3)
    tensor.sub_(np.float32(5))  # from now on float32 needs no promotion
    for subtract in (lambda: tensor.sub(True), lambda: tensor.sub_(True), lambda: tensor - True, lambda: True - tensor):
        with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor is not supported"):
            subtract()
