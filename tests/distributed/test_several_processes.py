"""torch.distributed in two, three and four processes. The checks themselves are in `checks_*.py`: see `ranks.py`."""

from __future__ import annotations

import pytest

from tests.distributed import (
    checks_checkpoints,
    checks_collectives,
    checks_data_parallel,
    checks_distributed_tensors,
    checks_divided_states,
    checks_gradients,
    checks_sharded_modules,
    checks_sync_batch_norm,
    checks_tensor_parallel,
)
from tests.distributed.ranks import assert_passed, names_of, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("check", names_of(checks_collectives))
@pytest.mark.parametrize(("count", "by"), [(2, "mpiexec"), (3, "torchrun"), (4, "mpiexec")])
def test_collectives(count: int, by: str, check: str) -> None:
    assert_passed(checks_collectives, count, by, check)


@pytest.mark.parametrize("check", names_of(checks_gradients))
def test_gradients_through_collectives(check: str) -> None:
    assert_passed(checks_gradients, 3, "mpiexec", check)


@pytest.mark.parametrize("check", names_of(checks_data_parallel))
@pytest.mark.parametrize("count", [2, 3])
def test_data_parallel_training(count: int, check: str) -> None:
    assert_passed(checks_data_parallel, count, "mpiexec", check)


@pytest.mark.parametrize("check", names_of(checks_sync_batch_norm))
@pytest.mark.parametrize("count", [2, 3])
def test_batches_normalised_together(count: int, check: str) -> None:
    assert_passed(checks_sync_batch_norm, count, "mpiexec", check)


@pytest.mark.parametrize("check", names_of(checks_divided_states))
@pytest.mark.parametrize("count", [2, 3])
def test_divided_states(count: int, check: str) -> None:
    assert_passed(checks_divided_states, count, "mpiexec", check)


@pytest.mark.parametrize("check", names_of(checks_checkpoints))
@pytest.mark.parametrize("count", [2, 3])
def test_checkpoints_of_several_processes(count: int, check: str) -> None:
    assert_passed(checks_checkpoints, count, "mpiexec", check)


@pytest.mark.parametrize("check", names_of(checks_distributed_tensors))
@pytest.mark.parametrize("count", [2, 3, 4])
def test_distributed_tensors(count: int, check: str) -> None:
    assert_passed(checks_distributed_tensors, count, "mpiexec", check)


@pytest.mark.parametrize("check", names_of(checks_sharded_modules))
@pytest.mark.parametrize("count", [2, 3, 4])
def test_sharded_modules(count: int, check: str) -> None:
    assert_passed(checks_sharded_modules, count, "mpiexec", check)


@pytest.mark.parametrize("check", names_of(checks_tensor_parallel))
@pytest.mark.parametrize("count", [2, 3, 4])
def test_divided_layers(count: int, check: str) -> None:
    assert_passed(checks_tensor_parallel, count, "mpiexec", check)
