"""Memory that several processes see: share_memory_, models trained by several processes, tensors sent to others."""

from __future__ import annotations

import gc
import os
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

import retrograd
from retrograd import multiprocessing as mp
from retrograd import nn, optim

METHODS = ["fork", "spawn"]


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def add_five(x: Any) -> None:
    x.add_(5)


def train(rank: int, model: Any) -> None:
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(retrograd.ones(4, 2)).pow(2).mean().backward()
        optimizer.step()


def send_back(received: Any, sent: Any, done: Any) -> None:
    x = received.get(timeout=30)
    x += 1
    sent.put((x.is_shared(), x))
    done.wait(30)


def send_and_end(rank: int, queue: Any, size: int) -> None:
    queue.put(retrograd.full((size,), 2.0))


@pytest.mark.parametrize("method", METHODS)
def test_a_shared_tensor_is_written_by_others(method: str) -> None:
    x = retrograd.zeros(3)
    assert not x.is_shared()
    assert x.share_memory_() is x
    process = mp.get_context(method).Process(target=add_five, args=(x,))
    process.start()
    process.join()
    assert x.is_shared()
    assert x.tolist() == [5.0, 5.0, 5.0]


def test_what_a_new_process_is_given_is_shared_and_what_a_forked_one_has_is_not() -> None:
    x = retrograd.zeros(2, 3)
    for method, expected in [("fork", 0.0), ("spawn", 5.0)]:
        process = mp.get_context(method).Process(target=add_five, args=(x[1],))
        process.start()
        process.join()
        assert (x.tolist(), x.is_shared()) == ([[0.0] * 3, [expected] * 3], method == "spawn")


@pytest.mark.parametrize("method", METHODS)
def test_several_processes_train_one_model(method: str) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
    before = [one.clone() for one in model.parameters()]
    weight = model[0].weight
    assert model.share_memory() is model
    assert weight is model[0].weight
    assert all(one.is_shared() for one in model.state_dict().values())
    mp.start_processes(train, (model,), nprocs=2, start_method=method)
    assert not retrograd.equal(before[-1], model[2].bias)
    assert model[1].num_batches_tracked.item() in range(5, 11)
    train(0, model)  # here, too


def test_all_that_lie_on_the_memory_move_together() -> None:
    x = retrograd.arange(6.0).reshape(2, 3).clone()
    row, alias, flipped, wide, storage = x[1], x.detach(), x.t(), x[0, 0].expand(4), x.untyped_storage()
    version = x._version
    alias.share_memory_()
    for one in (x, row, alias, flipped, wide, storage):
        assert one.is_shared()
    assert x._version == version
    x[1, 2] = 50
    assert (row[2], alias[1, 2], flipped[2, 1], storage.data_ptr()) == (50, 50, 50, x.data_ptr())
    assert x.untyped_storage() is storage
    with pytest.raises(RuntimeError, match="more than one element"):
        wide.add_(1)


def test_the_graph_goes_on() -> None:
    x = retrograd.ones(3, requires_grad=True)
    y = x * 2
    view = y[1:]
    (view * view).sum().backward(retain_graph=True)
    y.share_memory_()
    (view * view).sum().backward()
    assert view.is_shared()
    assert x.grad.tolist() == [0.0, 16.0, 16.0]


@pytest.mark.parametrize(
    "make", [lambda: retrograd.empty(0), lambda: retrograd.tensor(1.0), lambda: retrograd.ones(2, 0)]
)
def test_small_tensors_are_shared(make: Any) -> None:
    x = make().share_memory_()
    assert x.is_shared()
    assert x.shape == make().shape


def test_storages_are_shared() -> None:
    x = retrograd.zeros(2)
    storage = x.untyped_storage()
    assert storage.share_memory_() is storage
    assert x.is_shared()
    assert x._typed_storage().is_shared()


def test_a_queue_shares_what_it_carries() -> None:
    context = mp.get_context("spawn")
    there, back, done = context.Queue(), context.Queue(), context.Event()
    process = context.Process(target=send_back, args=(there, back, done))
    process.start()
    x = retrograd.zeros(2)
    there.put(x)
    is_shared, y = back.get(timeout=60)
    y += 10
    done.set()
    process.join()
    assert is_shared
    assert (x.tolist(), y.data_ptr()) == ([11.0, 11.0], x.data_ptr())


def test_what_one_message_carries_stays_together() -> None:
    x = nn.Parameter(retrograd.zeros(2, 2))
    left, right = mp.Pipe()
    left.send(
        {"whole": x, "row": x.detach()[1], "again": x, "storage": x.untyped_storage(), "half": retrograd.ones(1).half()}
    )
    got = right.recv()
    got["row"].fill_(3)
    assert isinstance(got["whole"], nn.Parameter)
    assert got["whole"] is got["again"]
    assert got["whole"].tolist() == [[0.0, 0.0], [3.0, 3.0]] == x.tolist()
    assert (got["storage"].is_shared(), got["half"].dtype) == (True, retrograd.float16)


def test_little_of_a_process_that_has_ended_is_received() -> None:
    queue = mp.get_context("fork").SimpleQueue()
    mp.start_processes(send_and_end, (queue, 3), start_method="fork")
    assert queue.get().tolist() == [2.0, 2.0, 2.0]
    mp.start_processes(send_and_end, (queue, 1 << 16), start_method="fork")
    with pytest.raises((ConnectionError, FileNotFoundError)) as caught:
        queue.get()
    assert "The process that sent the tensor has ended" in caught.value.__notes__[0]


def test_results_of_operations_are_not_sent() -> None:
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        ForkingPickler.dumps(retrograd.ones(1, requires_grad=True) * 2)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors as Linux does")
def test_nothing_is_left_open() -> None:
    left, right = mp.Pipe()
    left.send(retrograd.ones(1))
    right.recv()  # starts the thread that hands out descriptors
    before = descriptors()
    tensors = [retrograd.ones(3).share_memory_() for _ in range(5)]
    assert descriptors() > before
    left.send(tensors)
    got = right.recv()
    del tensors, got
    assert descriptors() == before
    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(20)]).share_memory()
    assert descriptors() <= before + 2  # one file for all
    del model
    assert descriptors() == before


def test_an_uninitialized_parameter_is_not_shared() -> None:
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized parameter"):
        nn.LazyLinear(2).share_memory()
