"""Rare methods and settings, against torch."""

from __future__ import annotations

import pytest

import retrograd
from tests.oracle import answer

PROGRAMS = """
torch.zeros(3, 3).fill_diagonal_(5)
torch.zeros(7, 3).fill_diagonal_(5, wrap=True)
torch.zeros(3, 7).fill_diagonal_(5, wrap=True)
torch.zeros(7, 3).fill_diagonal_(5)
torch.zeros(3).fill_diagonal_(5)
torch.zeros(2, 3, 3).fill_diagonal_(5)
torch.zeros(3, 3, 3).fill_diagonal_(5)
torch.ones(2).apply_(lambda v: v + 1)
torch.ones(2, requires_grad=True).apply_(lambda v: v)
torch.arange(4).reshape(2, 2).map_(torch.ones(2, dtype=torch.int64), lambda a, b: a * 10 + b)
torch.ones(2).map2_(torch.ones(2), torch.ones(2), lambda a, b, c: a + b + c)
torch.ones(2).map_(3, lambda a, b: a)
torch.detach(torch.ones(1, requires_grad=True))
torch.get_device(torch.ones(1)), torch.ones(1).get_device()
torch.range(0, 3), torch.range(0, 1, 0.3), torch.range(1, 3, dtype=torch.int64)
torch.vander(torch.tensor([1, 2, 3])), torch.vander(torch.tensor([1.0, 2.0]), N=3, increasing=True)
torch.vander(torch.ones(2, 2))
torch.ones(2).is_set_to(torch.ones(2))
torch.ones(2, 3).t().dim_order(), torch.ones(2, 3).dim_order()
torch.set_num_threads(0)
torch.set_num_threads("a")
torch.set_deterministic_debug_mode("zz")
torch.set_deterministic_debug_mode(7)
torch.use_deterministic_algorithms(3)
torch.use_deterministic_algorithms(True, warn_only=True), torch.get_deterministic_debug_mode(), torch.use_deterministic_algorithms(False)
torch.set_float32_matmul_precision("high"), torch.get_float32_matmul_precision(), torch.set_float32_matmul_precision("highest")
torch.typename(torch.ones(1)), torch.typename(3), torch.typename("a")
torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
""".strip().splitlines()


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_same_answer(program: str) -> None:
    assert answer(retrograd, program) == answer(pytest.importorskip("torch"), program)


def test_threads_reach_blas() -> None:
    from threadpoolctl import threadpool_info

    before = retrograd.get_num_threads()
    try:
        retrograd.set_num_threads(1)
        assert retrograd.get_num_threads() == 1
        assert all(pool["num_threads"] == 1 for pool in threadpool_info())
    finally:
        retrograd.set_num_threads(before)
