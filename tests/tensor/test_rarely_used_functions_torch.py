"""Functions of torch that few programs call: one-line programs give what they give in torch, errors included."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import answer

PROGRAMS = [
    "torch.fake_quantize_per_tensor_affine(torch.linspace(-1, 1, 7), 0.1, 0, -5, 5)",
    "torch.fake_quantize_per_tensor_affine(torch.tensor([float('nan'), float('inf'), 0.15, -0.25]), 0.1, 0, -5, 5)",
    "torch.fake_quantize_per_tensor_affine(torch.ones(2), torch.tensor(0.1), torch.tensor(1, dtype=torch.int32), -5, 5)",
    "torch.fake_quantize_per_tensor_affine(torch.ones(2, dtype=torch.int32), 0.1, 0, -5, 5)",
    "torch.fake_quantize_per_tensor_affine(torch.ones(2), 0.1, 0, 5, -5)",
    "torch.fake_quantize_per_tensor_affine(torch.ones(2), 0.1, 9, -5, 5)",
    "torch.fake_quantize_per_channel_affine(torch.ones(2, 2), torch.tensor([0.1, 0.3]), torch.zeros(2, dtype=torch.int32), 0, -5, 5)",
    "torch.fake_quantize_per_channel_affine(torch.ones(2, 2), torch.tensor([0.1, 0.3]), torch.zeros(2, dtype=torch.int32), 3, -5, 5)",
    "torch.fake_quantize_per_channel_affine(torch.ones(2, 2), torch.ones(2), torch.zeros(2, dtype=torch.int64), 0, -5, 5)",
    "torch.fake_quantize_per_channel_affine(torch.ones(2, 2), torch.ones(3), torch.zeros(3, dtype=torch.int32), 0, -5, 5)",
    *[
        f"torch.segment_reduce(torch.arange(12.).reshape(6, 2), {name!r}, lengths=torch.tensor([2, 0, 4]){more})"
        for name in ("sum", "mean", "max", "min", "prod", "middle")
        for more in ("", ", initial=2.0")
    ],
    "torch.segment_reduce(torch.arange(12.).reshape(6, 2), 'sum', offsets=torch.tensor([0, 2, 2, 6]))",
    "torch.segment_reduce(torch.arange(12.).reshape(2, 6), 'sum', lengths=torch.tensor([[2, 4], [3, 3]]), axis=1)",
    "torch.segment_reduce(torch.arange(6.), 'sum', lengths=torch.tensor([2, 3]))",
    "torch.segment_reduce(torch.arange(6.), 'sum', lengths=torch.tensor([-1, 7]))",
    "torch.segment_reduce(torch.arange(6.), 'sum')",
    "torch.segment_reduce(torch.arange(6.), 'sum', lengths=torch.tensor([2., 4.]))",
    "torch._int_mm(torch.full((2, 3), 100, dtype=torch.int8), torch.full((3, 4), 90, dtype=torch.int8))",
    "torch._int_mm(torch.ones(2, 3), torch.ones(3, 4, dtype=torch.int8))",
    "torch.nn.functional.grouped_mm(torch.arange(48.).reshape(6, 8), torch.ones(2, 8, 4), offs=torch.tensor([2, 6], dtype=torch.int32))",
    "torch.nn.functional.grouped_mm(torch.arange(64.).reshape(2, 4, 8), torch.ones(2, 8, 4))",
    "torch.nn.functional.grouped_mm(torch.ones(2, 4, 8), torch.ones(8, 8), offs=torch.tensor([4, 8], dtype=torch.int32))",
    "torch.nn.functional.grouped_mm(torch.ones(4, 8), torch.ones(8, 4), offs=torch.tensor([4, 8], dtype=torch.int32))",
    "torch.frobenius_norm(torch.arange(6.).reshape(2, 3), 1, True)",
    "torch.nuclear_norm(torch.eye(3)).round(decimals=4)",  # whose last bits are the factorisation's
    "torch.slice_inverse(torch.arange(6.).reshape(2, 3)[:, :1], torch.arange(6.).reshape(2, 3), 1, 0, 1)",
    *[
        f"torch.arange(6.).reshape(2, 3).{call}"
        for call in (
            *("to_dense()", "dense_dim()", "sparse_dim()", "is_coalesced()", "indices()", "values()", "coalesce()"),
            *("crow_indices()", "ccol_indices()", "dequantize()", "is_distributed()", "name", "storage_type()"),
            *("module_load(torch.zeros(2, 3))", "record_stream(None)"),
        )
    ],
    "torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.ones(2),))",
    "torch.cond(torch.tensor(False), lambda x: x + 1, lambda x: x - 1, (torch.ones(2),))",
    "torch.random.thread_safe_generator()",
]


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_answers_as_in_torch(program: str) -> None:
    torch = pytest.importorskip("torch")
    assert answer(retrograd, program) == answer(torch, program)


def test_the_gradient_of_rounded_values_passes_where_nothing_was_cut_off() -> None:
    x = retrograd.linspace(-1, 1, 7, requires_grad=True)
    retrograd.fake_quantize_per_tensor_affine(x, 0.1, 0, -5, 5).sum().backward()
    assert x.grad.tolist() == [0, 0, 1, 1, 1, 0, 0]


def matrices(torch: Any) -> tuple[Any, Any]:
    a = torch.diag(torch.arange(1.0, 13.0, dtype=torch.float64)) + 0.1
    return a, torch.eye(12, dtype=torch.float64) * 2


@pytest.mark.oracle
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("general", [False, True])
def test_extreme_eigenvalues_are_torchs(largest: bool, general: bool) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (retrograd, torch):
        a, b = matrices(library)
        values, vectors = library.lobpcg(a, k=2, B=b if general else None, largest=largest, niter=200, tol=1e-12)
        found.append((values.tolist(), vectors.abs().flatten().tolist()))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9)
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-5)


def test_more_eigenvalues_than_a_third_of_the_rows_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the number of A rows \(=4\) is smaller than 3 x the number of requested"):
        retrograd.lobpcg(retrograd.eye(4), k=2)


def test_a_loop_runs_as_long_as_its_condition_holds() -> None:
    count, total = retrograd.while_loop(
        lambda n, s: n < 5, lambda n, s: (n + 1, s + n), (retrograd.tensor(0), retrograd.tensor(0))
    )
    assert (count.item(), total.item()) == (5, 10)
