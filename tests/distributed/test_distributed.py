"""torch.distributed with one process, which needs no MPI."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import retrograd
from retrograd import distributed, nn
from retrograd.distributed import _mpi
from tests.oracle import answer

ENVIRONMENT = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29571"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    yield monkeypatch
    if distributed.is_initialized():
        distributed.destroy_process_group()


@pytest.fixture
def group(environment: Any) -> None:
    distributed.init_process_group("gloo")


def test_there_is_no_group_at_first() -> None:
    assert (distributed.is_available(), distributed.is_initialized()) == (True, False)
    assert distributed.is_backend_available("gloo")
    assert distributed.group.WORLD is None
    assert not distributed.rpc.is_available()
    with pytest.raises(NotImplementedError, match=r"torch\.distributed\.rpc\.init_rpc needs parts of torch"):
        distributed.rpc.init_rpc("worker")


@pytest.mark.parametrize("missing", ENVIRONMENT)
def test_a_variable_that_is_not_set_is_named(environment: pytest.MonkeyPatch, missing: str) -> None:
    environment.delenv(missing)
    with pytest.raises(ValueError, match=f"env:// rendezvous: environment variable {missing} expected, but not set"):
        distributed.init_process_group("gloo")
    assert not distributed.is_initialized()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"backend": "foo"}, AssertionError, "Unknown backend type foo"),
        ({"backend": "ucc"}, RuntimeError, "Distributed package doesn't have UCC built in"),
        ({"backend": "gloo", "rank": 3}, RuntimeError, "rank < size. 3 vs 1"),
        ({"backend": "gloo", "timeout": 3}, TypeError, "timeout argument to be of type datetime.timedelta"),
        ({"backend": "gloo", "init_method": "foo://"}, RuntimeError, "No rendezvous handler for foo://"),
        ({"backend": "gloo", "init_method": "tcp://a:1"}, ValueError, "rank parameter missing"),
    ],
)
def test_what_cannot_begin_is_refused(environment: Any, options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        distributed.init_process_group(**options)
    assert not distributed.is_initialized()


@pytest.mark.parametrize("options", [{"backend": "mpi"}, {"backend": "gloo", "world_size": 2}])
def test_without_mpi_the_command_that_installs_it_is_said(environment: pytest.MonkeyPatch, options: Any) -> None:
    environment.setattr(_mpi, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match="pip install mpi4py mpich"):
        distributed.init_process_group(**options)
    assert not distributed.is_initialized()


@pytest.mark.parametrize(
    "options",
    [{"init_method": "tcp://127.0.0.1:29572"}, {"init_method": "file:///tmp/x"}, {"store": distributed.HashStore()}],
)
def test_a_group_begins_and_ends(options: Any) -> None:
    assert distributed.init_process_group("gloo", rank=0, world_size=1, **options) is None
    assert (distributed.get_rank(), distributed.get_world_size(), distributed.get_backend()) == (0, 1, "gloo")
    assert isinstance(distributed.group.WORLD, distributed.ProcessGroup)
    with pytest.raises(ValueError, match="trying to initialize the default process group twice!"):
        distributed.init_process_group("gloo", rank=0, world_size=1, **options)
    distributed.destroy_process_group()
    assert distributed.group.WORLD is None


CALLS = """get_rank()
get_world_size()
get_backend()
get_process_group_ranks(None)
destroy_process_group()
new_group([0, 1])
get_rank(d.new_group([0]))
get_world_size(d.new_group())
get_group_rank(d.group.WORLD, 0)
all_reduce(torch.ones(2))
all_reduce(x := torch.ones(2), d.ReduceOp.AVG) or x
all_reduce(torch.ones(2), d.ReduceOp.BAND)
all_reduce(torch.tensor([3]), d.ReduceOp.BAND)
all_reduce(3)
all_reduce(torch.ones(2), async_op=True).wait()
broadcast(torch.ones(2), 0)
broadcast(torch.ones(2), src=1)
reduce(torch.ones(2), 0)
reduce(torch.ones(2), dst=1)
all_gather(l := [torch.zeros(2)], torch.ones(2)) or l
all_gather([torch.zeros(2)] * 2, torch.ones(2))
all_gather([torch.zeros(3)], torch.ones(2))
all_gather([torch.zeros(2).int()], torch.ones(2))
all_gather(torch.ones(2), torch.ones(2))
all_gather_into_tensor(o := torch.zeros(2), torch.ones(2)) or o
all_gather_into_tensor(torch.zeros(1, 2), torch.ones(2))
gather(torch.ones(2), l := [torch.zeros(2)]) or l
gather(torch.ones(2))
gather(torch.ones(2), [torch.zeros(2)], dst=1)
scatter(o := torch.zeros(2), [torch.ones(2)]) or o
scatter(torch.zeros(2))
scatter(torch.zeros(2), [torch.ones(2)] * 2)
reduce_scatter(o := torch.zeros(2), [torch.ones(2)]) or o
reduce_scatter_tensor(o := torch.zeros(2), torch.ones(2)) or o
all_to_all_single(o := torch.zeros(2), torch.ones(2)) or o
all_to_all(l := [torch.zeros(2)], [torch.ones(2)]) or l
all_gather_object(l := [None], {"a": 1}) or l
gather_object(7, l := [None]) or l
broadcast_object_list(l := [5]) or l
scatter_object_list(l := [None], [9]) or l
barrier()
monitored_barrier()
barrier(async_op=True).wait()
send(torch.ones(1), 0)
send(torch.ones(1))
recv(3)
reduce(torch.ones(2))
broadcast(torch.ones(2))
broadcast(torch.ones(2), 0, group_src=0)
gather(torch.ones(2), [torch.zeros(2)] * 2)
gather(torch.ones(2), [torch.zeros(2).int()])
gather(torch.ones(2), dst=1)
gather(torch.ones(2), [torch.zeros(2)], dst=0, group_dst=0)
scatter(torch.zeros(3), [torch.ones(2)])
scatter(torch.zeros(2), [torch.ones(2)], src=1)
reduce_scatter(torch.zeros(2), [torch.ones(2)] * 2)
all_to_all([torch.zeros(2)] * 2, [torch.ones(2)])
all_to_all([torch.zeros(2)], [torch.ones(2)] * 2)
all_to_all_single(o := torch.zeros(2, 2), torch.ones(4)) or o
all_to_all_single(o := torch.zeros(4), torch.ones(4), [4]) or o
all_to_all_single(torch.zeros(4), torch.ones(4), [3], [4])
all_to_all_single(torch.zeros(4), torch.ones(4), None, [2, 2])
gather_object(7, [None], 1)
gather_object(7, None, 1)
scatter_object_list([None], None)
scatter_object_list([None], [1, 2])
scatter_object_list([None], [1], 1)""".splitlines()
MODULES = """torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
torch.nn.parallel.DistributedDataParallel(torch.nn.ReLU())
torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1), device_ids=[0])
torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1), device_ids=[0, 1])
list(torch.utils.data.distributed.DistributedSampler([1, 2, 3], shuffle=False))
torch.utils.data.distributed.DistributedSampler([1, 2], num_replicas=1).rank""".splitlines()


def told(library: Any, text: str) -> Any:
    return answer(library, text, d=importlib.import_module(f"{library.__name__}.distributed"))


@pytest.mark.oracle
@pytest.mark.parametrize("call", [*[f"d.{call}" for call in CALLS], *MODULES])
def test_calls_answer_as_torchs(call: str) -> None:
    torch = pytest.importorskip("torch")
    assert told(retrograd, call) == told(torch, call)  # without a group
    answers = []
    for library in (torch, retrograd):
        package = importlib.import_module(f"{library.__name__}.distributed")
        package.init_process_group("gloo", rank=0, world_size=1, store=package.HashStore())
        try:
            answers.append(told(library, call))
        finally:
            if package.is_initialized():
                package.destroy_process_group()
    assert answers[0] == answers[1]


def test_a_module_trains_in_a_group(group: None) -> None:
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    with model.no_sync():
        assert not model.require_backward_grad_sync
    assert model.require_backward_grad_sync
    model(retrograd.ones(3, 2)).sum().backward()
    assert model.module.weight.grad.tolist() == [[3.0, 3.0]]


PROGRAM = """
import os, torch, torch.distributed as dist
from torch.distributed import ReduceOp, init_process_group
from torch.distributed.distributed_c10d import ProcessGroup
init_process_group("gloo")
print(int(os.environ["LOCAL_RANK"]), dist.get_rank(), type(dist.group.WORLD).__name__)
dist.destroy_process_group()
"""


def test_a_program_that_torchrun_starts_runs() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "retrograd", "run", "-c", PROGRAM],
        env=os.environ | ENVIRONMENT | {"LOCAL_RANK": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("0 0 ProcessGroup\n", "")
