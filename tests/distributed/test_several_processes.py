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


COLLECTIVES = (checks_collectives,)
GRADIENTS = (checks_gradients,)
TRAINING = (checks_data_parallel, checks_sync_batch_norm, checks_divided_states, checks_checkpoints)
DIVIDED = (checks_distributed_tensors, checks_sharded_modules, checks_tensor_parallel)


@pytest.mark.parametrize("check", names_of(*COLLECTIVES))
@pytest.mark.parametrize(("count", "by"), [(2, "mpiexec"), (3, "torchrun"), (4, "mpiexec")])
def test_collectives(count: int, by: str, check: str) -> None:
    assert_passed(COLLECTIVES, count, by, check)


@pytest.mark.parametrize("check", names_of(*GRADIENTS))
def test_gradients_through_collectives(check: str) -> None:
    assert_passed(GRADIENTS, 3, "mpiexec", check)


@pytest.mark.parametrize("check", names_of(*TRAINING))
@pytest.mark.parametrize("count", [2, 3])
def test_training_and_its_checkpoints(count: int, check: str) -> None:
    assert_passed(TRAINING, count, "mpiexec", check)


@pytest.mark.parametrize("check", names_of(*DIVIDED))
@pytest.mark.parametrize("count", [2, 3, 4])
def test_divided_tensors_and_modules(count: int, check: str) -> None:
    assert_passed(DIVIDED, count, "mpiexec", check)
