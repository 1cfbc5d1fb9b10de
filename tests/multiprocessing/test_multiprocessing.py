"""torch.multiprocessing: processes that get tensors and a number."""

from __future__ import annotations

import os
import pickle
import signal
import time
from typing import Any

import pytest

import retrograd
from retrograd import multiprocessing as mp


def put(rank: int, queue: Any, x: Any) -> None:
    queue.put((rank, x * rank))


def fail(rank: int) -> None:
    if rank == 1:
        raise ValueError("wrong number")
    time.sleep(60)


def fail_at_length(rank: int) -> None:
    raise ValueError("wrong number " * 100_000)


def leave(rank: int) -> None:
    os._exit(3)


def die(rank: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_processes_have_numbers_and_tensors() -> None:
    queue = mp.get_context("spawn").Queue()
    assert mp.spawn(put, (queue, retrograd.ones(2)), nprocs=2) is None
    got = dict(queue.get(timeout=30) for _ in range(2))
    assert {rank: value.tolist() for rank, value in got.items()} == {0: [0.0, 0.0], 1: [1.0, 1.0]}


def test_one_failure_ends_all() -> None:
    context = mp.start_processes(fail, nprocs=2, join=False, start_method="fork")
    assert context is not None
    assert len(context.pids()) == 2
    with pytest.raises(mp.ProcessRaisedException, match="Process 1 terminated with the following error") as caught:
        context.join(timeout=30)  # the other sleeps: the failure is the first to end
    assert "wrong number" in str(caught.value)
    assert (caught.value.error_index, caught.value.error_pid) == (1, context.pids()[1])
    assert not any(process.is_alive() for process in context.processes)


def test_an_error_may_be_longer_than_a_pipe() -> None:
    context = mp.start_processes(fail_at_length, join=False, start_method="fork")
    assert context is not None
    with pytest.raises(mp.ProcessRaisedException, match="wrong number") as caught:
        context.join(timeout=30)
    assert len(str(caught.value)) > 1_000_000
    assert context.join()


def test_time_runs_out() -> None:
    context = mp.start_processes(time.sleep, (), nprocs=1, join=False, start_method="fork", daemon=True)
    assert context is not None
    assert context.join(timeout=30)  # time.sleep(0)
    context = mp.start_processes(fail, nprocs=1, join=False, start_method="fork", daemon=True)
    assert context is not None
    assert not context.join(timeout=0.1)
    context.processes[0].terminate()
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with signal SIGTERM"):
        context.join(grace_period=1)


@pytest.mark.parametrize(
    ("function", "text", "code"),
    [(leave, "process 0 terminated with exit code 3", 3), (die, "process 0 terminated with signal SIGKILL", -9)],
)
def test_a_process_that_goes_is_missed(function: Any, text: str, code: int) -> None:
    with pytest.raises(mp.ProcessExitedException, match=text) as caught:
        mp.start_processes(function, start_method="fork")
    assert caught.value.exit_code == code
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.exit_code, again.signal_name) == (text, code, caught.value.signal_name)


def test_another_way_to_start_is_warned_of() -> None:
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(put, nprocs=0, start_method="fork")


def test_a_sharing_strategy_is_accepted() -> None:
    assert mp.get_sharing_strategy() == "file_descriptor"
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy 'none'"):
        mp.set_sharing_strategy("none")
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}


def test_the_standard_names_are_there() -> None:
    assert mp.Process is __import__("multiprocessing").Process
    assert mp.cpu_count() > 0
