"""Every collective against NumPy, on every dtype, in as many processes as there are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import ml_dtypes
import numpy as np

import retrograd as torch
from retrograd import distributed as d
from tests.distributed.ranks import raised_by

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
COMPLEX = (torch.complex64, torch.complex128)
INTS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64)
EVERY = (*FLOATS, *COMPLEX, *INTS, torch.bool, torch.float8_e4m3fn)
SHAPES = ((), (0,), (7,), (3, 4), (2, 0, 3))
BITS = (d.ReduceOp.BAND, d.ReduceOp.BOR, d.ReduceOp.BXOR)


def drawn(shape: tuple[int, ...], dtype: Any, *seed: int) -> Any:
    """Return numbers that every process can draw for every other: small integers, which all dtypes hold and add exactly."""
    random = np.random.default_rng((17, *seed))
    values = random.integers(0, 4, shape)
    if dtype.is_complex:
        values = values + 1j * random.integers(0, 4, shape)
    if dtype is torch.bool:
        values = values % 2 == 1
    return np.asarray(values)


def tensor(values: Any, dtype: Any) -> Any:
    """Return NumPy's values as a tensor of a dtype."""
    return torch.tensor(np.asarray(values).tolist(), dtype=dtype).reshape(np.shape(values))


def same(found: Any, expected: Any) -> None:
    """Compare a tensor with NumPy's values, exactly."""
    wide = found.to(torch.float32) if found.dtype in (torch.bfloat16, torch.float8_e4m3fn) else found
    np.testing.assert_array_equal(wide.numpy(), np.asarray(expected).astype(wide.numpy().dtype))
    assert tuple(found.shape) == np.shape(expected)


def parts(shape: tuple[int, ...], dtype: Any, size: int, *seed: int) -> list[Any]:
    """Return what each process has."""
    return [drawn(shape, dtype, *seed, rank) for rank in range(size)]


@contextlib.contextmanager
def refused(error: Any, words: str) -> Iterator[None]:
    """Expect an error whose message has these words."""
    try:
        yield
    except error as raised:
        if words not in str(raised):
            raise AssertionError(f"refused in other words than: {words}") from raised
    else:
        raise AssertionError(f"nothing was refused: {words}")


# ---- reductions ----
def reducers(dtype: Any) -> dict[Any, Callable[[list[Any]], Any]]:
    """Return what NumPy does for each reduction that a dtype has."""
    if dtype is torch.bool:
        either, both = np.logical_or.reduce, np.logical_and.reduce
        op = d.ReduceOp
        return {
            **dict.fromkeys((op.SUM, op.MAX, op.BOR), either),
            **dict.fromkeys((op.PRODUCT, op.MIN, op.BAND), both),
            op.BXOR: np.logical_xor.reduce,
        }
    found: dict[Any, Any] = {d.ReduceOp.SUM: np.add.reduce}
    if not dtype.is_complex:
        found |= {
            d.ReduceOp.PRODUCT: np.multiply.reduce,
            d.ReduceOp.MIN: np.minimum.reduce,
            d.ReduceOp.MAX: np.maximum.reduce,
        }
    if dtype.is_complex or dtype.is_floating_point:
        found[d.ReduceOp.AVG] = lambda values: rounded(averaged(np.add.reduce(values), len(values)), dtype)
    else:
        found |= {
            d.ReduceOp.BAND: np.bitwise_and.reduce,
            d.ReduceOp.BOR: np.bitwise_or.reduce,
            d.ReduceOp.BXOR: np.bitwise_xor.reduce,
        }
    return found


def averaged(total: Any, count: int) -> Any:
    """Divide a sum; the two parts of a complex number one by one."""
    return total.real / count + 1j * (total.imag / count) if np.iscomplexobj(total) else total / count


def rounded(values: Any, dtype: Any) -> Any:
    """Round to what a dtype holds."""
    name = str(dtype).partition(".")[2]
    return np.asarray(values).astype(getattr(ml_dtypes, name, name))


def check_all_reduce_of_every_dtype(rank: int, size: int) -> None:
    for dtype in EVERY:
        for op, reducer in reducers(dtype).items():
            for shape in SHAPES:
                given = parts(shape, dtype, size, int(op))
                found = tensor(given[rank], dtype)
                assert d.all_reduce(found, op) is None
                same(found, reducer(given))


def check_reduce_of_every_dtype(rank: int, size: int) -> None:
    for dtype in EVERY:
        for op, reducer in reducers(dtype).items():
            root = int(op) % size
            given = parts((5,), dtype, size, int(op))
            found = tensor(given[rank], dtype)
            d.reduce(found, root, op)
            same(found, reducer(given) if rank == root else given[rank])


def check_reduce_scatter_of_every_dtype(rank: int, size: int) -> None:
    for dtype in EVERY:
        for op, reducer in reducers(dtype).items():
            given = parts((size, 3, 2), dtype, size, int(op))
            found, single = torch.zeros(3, 2, dtype=dtype), torch.zeros(3, 2, dtype=dtype)
            d.reduce_scatter(found, [tensor(one, dtype) for one in given[rank]], op)
            d.reduce_scatter_tensor(single, tensor(given[rank].reshape(size * 3, 2), dtype), op)
            same(found, reducer(given)[rank])
            same(single, reducer(given)[rank])


def check_reductions_that_dtypes_do_not_have(rank: int, size: int) -> None:
    for op in BITS:
        with refused(RuntimeError, f"Cannot use ReduceOp.{op.name} with non-integral dtype"):
            d.all_reduce(torch.ones(2), op)
    with refused(ValueError, "all_reduce does not support RedOpType.MAX on complex tensors"):
        d.all_reduce(torch.ones(2, dtype=torch.complex64), d.ReduceOp.MAX)
    with refused(RuntimeError, "result type Float can't be cast to the desired output type Int"):
        d.all_reduce(torch.ones(2, dtype=torch.int32), d.ReduceOp.AVG)
    with refused(RuntimeError, "Cannot use ReduceOp.PREMUL_SUM with Gloo"):
        d.all_reduce(torch.ones(2), d._make_nccl_premul_sum(2.0))
    group = d.new_group(backend="mpi")
    for dtype in (torch.float32, torch.bfloat16):
        found = torch.full((3,), rank + 1.0, dtype=dtype)
        d.all_reduce(found, d._make_nccl_premul_sum(0.5), group)
        same(found, np.full(3, 0.25 * size * (size + 1)))


def check_narrow_sums_round_once(rank: int, size: int) -> None:
    found = torch.tensor([256.0, 1.0] if rank == 0 else [1.0, 2.0**-9], dtype=torch.bfloat16)
    d.all_reduce(found)
    exact = np.array([256.0 + size - 1, 1 + (size - 1) * 2.0**-9])
    same(found, exact.astype(ml_dtypes.bfloat16))


def check_nan_is_the_largest_and_the_smallest(rank: int, size: int) -> None:
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for op, best in ((d.ReduceOp.MAX, size - 1.0), (d.ReduceOp.MIN, 0.0)):
            for who in range(size):
                given = torch.full((size * 2,), float(rank), dtype=dtype)
                given[::2] = float("nan") if rank == who else 1.0
                for_all, for_one, part = given.clone(), given.clone(), torch.zeros(2, dtype=dtype)
                d.all_reduce(for_all, op)
                d.reduce(for_one, who, op)
                d.reduce_scatter_tensor(part, given, op)
                expected = np.tile([np.nan, best], size)
                same(for_all, expected)
                same(for_one, expected if rank == who else given.float().numpy())
                same(part, expected[:2])


# ---- moves ----
def check_broadcast_of_every_dtype(rank: int, size: int) -> None:
    for dtype in EVERY:
        for root in range(size):
            for shape in SHAPES:
                given = parts(shape, dtype, size, root)
                found = tensor(given[rank], dtype)
                d.broadcast(found, root)
                same(found, given[root])


def check_gathers_of_every_dtype(rank: int, size: int) -> None:
    for dtype in EVERY:
        for shape in SHAPES:
            given = parts(shape, dtype, size)
            own = tensor(given[rank], dtype)
            every = [torch.zeros(shape, dtype=dtype) for _ in range(size)]
            d.all_gather(every, own)
            for at in range(size):
                same(every[at], given[at])
            root = size - 1
            some = [torch.zeros(shape, dtype=dtype) for _ in range(size)] if rank == root else None
            d.gather(own, some, dst=root)
            for at, one in enumerate(some or ()):
                same(one, given[at])
            out = torch.zeros((size, *shape), dtype=dtype)
            d.all_gather_into_tensor(out, own)
            same(out, np.stack(given))


def check_scatter_of_every_dtype(rank: int, size: int) -> None:
    for dtype in EVERY:
        for shape in SHAPES:
            given = parts(shape, dtype, size)
            found = torch.zeros(shape, dtype=dtype)
            d.scatter(found, [tensor(one, dtype) for one in given] if rank == 1 else None, src=1)
            same(found, given[rank])


def check_all_to_all_of_every_dtype(rank: int, size: int) -> None:
    for dtype in EVERY:
        given = [parts((at + 1, 2), dtype, size, at) for at in range(size)]  # given[to][source]
        out = [torch.zeros((rank + 1, 2), dtype=dtype) for _ in range(size)]
        d.all_to_all(out, [tensor(given[to][rank], dtype) for to in range(size)])
        for source in range(size):
            same(out[source], given[rank][source])
        single = torch.zeros((size * (rank + 1), 2), dtype=dtype)
        joined = tensor(np.concatenate([given[to][rank] for to in range(size)]), dtype)
        d.all_to_all_single(single, joined, [rank + 1] * size, [to + 1 for to in range(size)])
        same(single, np.concatenate(given[rank]))
        even = torch.zeros(2 * size, dtype=dtype)
        row = parts((2 * size,), dtype, size, 99)
        d.all_to_all_single(even, tensor(row[rank], dtype))
        same(even, np.concatenate([one[2 * rank : 2 * rank + 2] for one in row]))


# ---- how tensors lie in memory ----
def check_tensors_that_are_not_dense(rank: int, size: int) -> None:
    given = parts((4, 6), torch.float32, size)
    total = np.add.reduce(given)
    for dtype in (torch.float32, torch.bfloat16):
        whole = tensor(given[rank], dtype)
        d.all_reduce(whole.t())
        same(whole, total)
        half = tensor(given[rank], dtype)
        d.all_reduce(half[:, ::2])
        same(half[:, ::2], total[:, ::2])
        same(half[:, 1::2], given[rank][:, 1::2])
    row = torch.zeros(size, 3)
    d.all_gather_into_tensor(row, row[rank] + rank)  # and a list of views of one tensor
    d.all_gather(list(row.unbind()), torch.full((3,), rank + 1.0))
    same(row, np.repeat(np.arange(1.0, size + 1)[:, None], 3, axis=1))
    shared = torch.full((size, 2), float(rank))
    d.all_gather_into_tensor(shared, shared[rank])  # what is given lies in what is written
    same(shared, np.repeat(np.arange(float(size))[:, None], 2, axis=1))


def check_writes_are_noted(rank: int, size: int) -> None:
    leaf = torch.ones(2, requires_grad=True)
    before = leaf._version
    d.all_reduce(leaf.detach())
    d.broadcast(leaf, 0)
    assert leaf._version > before or rank == 0
    assert leaf.requires_grad
    assert leaf.is_leaf
    saved = torch.full((2,), 2.0)
    result = (torch.ones(2, requires_grad=True) * saved).sum()
    d.all_reduce(saved)
    with refused(RuntimeError, "modified by an inplace operation"):
        result.backward()


# ---- asynchronous ----
def check_work_that_goes_on(rank: int, size: int) -> None:
    found = [torch.full((1000 + at,), rank + at + 1.0, dtype=dtype) for at, dtype in enumerate(FLOATS * 3)]
    works = [d.all_reduce(one, async_op=True) for one in found]
    assert all(isinstance(work, d.Work) for work in works)
    last = torch.ones(3)
    d.all_reduce(last)  # waits for its turn behind all of them
    for at, (work, one) in enumerate(zip(works, found, strict=True)):
        assert work.wait() is True
        assert work.is_completed()
        assert work.is_success()
        assert work.exception() is None
        same(one, np.full(one.shape, sum(range(at + 1, at + size + 1))))
    same(last, np.full(3, size))


def check_futures_of_work(rank: int, size: int) -> None:
    found = torch.full((2000,), float(rank))
    future = d.all_reduce(found, async_op=True).get_future()
    tripled = future.then(lambda done: done.value()[0] * 3)
    same(tripled.wait(), np.full(2000, 3 * sum(range(size))))
    assert future.wait()[0] is found
    done = d.all_reduce(torch.ones(1), async_op=True)
    done.wait()
    assert done.get_future().done()


def check_work_in_several_groups_in_another_order(rank: int, size: int) -> None:
    groups = [d.new_group() for _ in range(3)]
    order = groups if rank % 2 else groups[::-1]
    works = [(group, one := torch.full((50,), 1.0), d.all_reduce(one, group=group, async_op=True)) for group in order]
    for _, one, work in works:
        work.wait()
        same(one, np.full(50, size))
    for group in groups:
        d.destroy_process_group(group)
    with refused(ValueError, "Invalid process group specified or has been destroyed"):
        d.destroy_process_group(groups[0])


# ---- messages ----
def check_messages(rank: int, size: int) -> None:
    for dtype in EVERY:
        right, left = (rank + 1) % size, (rank - 1) % size
        given = parts((3, 2), dtype, size)
        work = d.isend(tensor(given[rank], dtype), right, tag=5)
        found = torch.zeros((3, 2), dtype=dtype)
        assert d.recv(found, left, tag=5) == left
        work.wait()
        same(found, given[left])
    if rank == 0:
        senders = set()
        for _ in range(size - 1):
            found = torch.zeros(2)
            source = d.recv(found, tag=8)  # of any process
            same(found, np.full(2, float(source)))
            senders.add(source)
        assert senders == set(range(1, size))
    else:
        d.send(torch.full((2,), float(rank)), 0, tag=8)
    with refused(ValueError, "destination rank should not be the same as the rank of the current process"):
        d.send(torch.ones(1), rank)
    with refused(ValueError, "source rank should not be the same as the rank of the current process"):
        d.recv(torch.ones(1), rank)
    with refused(ValueError, "Invalid destination rank: 99"):
        d.send(torch.ones(1), 99)


def check_batches_of_messages(rank: int, size: int) -> None:
    outgoing = [torch.full((rank + 2,), float(rank * 10 + to)) for to in range(size)]
    incoming = [torch.zeros(source + 2) for source in range(size)]
    others = [peer for peer in range(size) if peer != rank]
    batch = [d.P2POp(d.irecv, incoming[peer].t(), peer) for peer in others]
    batch += [d.P2POp(d.isend, outgoing[peer], peer) for peer in others]
    for work in d.batch_isend_irecv(batch):
        work.wait()
    for peer in others:
        same(incoming[peer], np.full(peer + 2, peer * 10.0 + rank))


# ---- objects ----
def check_objects(rank: int, size: int) -> None:
    own = {"rank": rank, "text": "x" * (1000 * rank), "tensor": torch.arange(rank + 1)}
    every: list[Any] = [None] * size
    d.all_gather_object(every, own)
    assert [(one["rank"], len(one["text"]), one["tensor"].tolist()) for one in every] == [
        (at, 1000 * at, list(range(at + 1))) for at in range(size)
    ]
    root = size - 1
    some: list[Any] | None = [None] * size if rank == root else None
    d.gather_object(("from", rank), some, dst=root)
    assert some is None or some == [("from", at) for at in range(size)]
    given: list[Any] = [rank, {"a": rank}, None] if rank == 1 else [None] * 3
    d.broadcast_object_list(given, src=1)
    assert given == [1, {"a": 1}, None]
    found = [None]
    d.scatter_object_list(found, [f"for {at}" for at in range(size)] if rank == 0 else None, src=0)
    assert found == [f"for {rank}"]
    if rank == 0:
        d.send_object_list([{"sent": 1}, 2], 1)
    elif rank == 1:
        received: list[Any] = [None, None]
        assert d.recv_object_list(received, 0) == 0
        assert received == [{"sent": 1}, 2]


# ---- groups ----
def check_groups_of_some(rank: int, size: int) -> None:
    members = [0, size - 1]
    group = d.new_group(members[::-1], timeout=timedelta(seconds=200))
    if rank not in members:
        assert group == d.GroupMember.NON_GROUP_MEMBER
        assert (d.get_rank(group), d.get_world_size(group)) == (-1, -1)
        assert d.get_process_group_ranks(group) == members
        assert (d.get_global_rank(group, 1), d.get_group_rank(group, size - 1)) == (size - 1, 1)
        return
    assert (d.get_rank(group), d.get_world_size(group)) == (members.index(rank), 2)
    assert d.get_process_group_ranks(group) == members
    assert d.get_global_rank(group, 1) == size - 1
    assert d.get_group_rank(group, size - 1) == 1
    found = torch.full((2,), float(rank))
    d.all_reduce(found, group=group)
    same(found, np.full(2, float(sum(members))))
    d.broadcast(found := torch.full((1,), float(rank)), size - 1, group)  # by its number among all
    same(found, [size - 1.0])
    d.broadcast(found := torch.full((1,), float(rank)), group=group, group_src=0)
    same(found, [0.0])
    if size > 2:
        with refused(ValueError, "Global rank 1 is not part of group"):
            d.broadcast(torch.ones(1), 1, group)
    d.barrier(group)


def check_groups_that_divide(rank: int, size: int) -> None:
    own, every = d.new_subgroups_by_enumeration([[at] for at in range(size)])
    assert len(every) == size
    assert d.get_process_group_ranks(own) == [rank]
    whole, _ = d.new_subgroups(size)
    assert d.get_world_size(whole) == size
    with refused(ValueError, f"The arg 'group_size' ({size + 1}) must not exceed the world size ({size})"):
        d.new_subgroups(size + 1)
    with refused(ValueError, "Rank 0 has appeared in both subgroup [0] and [0, 1]"):
        d.new_subgroups_by_enumeration([[0], [0, 1]])
    with refused(ValueError, "ranks list must not contain duplicate entries, got [0, 0]"):
        d.new_group([0, 0])
    with refused(ValueError, f"Rank {size} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})"):
        d.new_group([size])
    split = d.split_group(None, [[at for at in range(size) if at % 2 == odd] for odd in (0, 1)])
    assert d.get_process_group_ranks(split) == [at for at in range(size) if at % 2 == rank % 2]


# ---- being there, and errors ----
def check_barriers(rank: int, size: int) -> None:
    assert d.barrier() is None
    assert d.barrier(async_op=True).wait()
    d.monitored_barrier(timeout=timedelta(seconds=200))
    d.monitored_barrier(wait_all_ranks=True)


def check_wrong_calls(rank: int, size: int) -> None:
    ones, zeros = torch.ones, torch.zeros
    with refused(RuntimeError, f"invalid output tensor list at index 0 (expected length {size}, got 1)"):
        d.all_gather([zeros(2)], ones(2))
    with refused(RuntimeError, "ProcessGroupGloo::allgather: invalid tensor size at index 1 (expected (2), got (3))"):
        d.all_gather([zeros(2), zeros(3), *[zeros(2)] * (size - 2)], ones(2))
    with refused(ValueError, "output tensor size must be equal to world_size times input tensor size"):
        d.all_gather_into_tensor(zeros(2 * size + 1), ones(2))
    with refused(RuntimeError, "input tensor must be the same size as output size times world size"):
        d.reduce_scatter_tensor(zeros(3), ones(4))
    with refused(RuntimeError, "invalid input tensor list size, must be world size"):
        d.reduce_scatter(zeros(2), [ones(2)])
    with refused(RuntimeError, f"input tensor list size 1 does not match world size {size}"):
        d.all_to_all([zeros(2)] * size, [ones(2)])
    with refused(RuntimeError, "Number of tensor splits not equal to group size"):
        d.all_to_all_single(zeros(4), ones(4), [4])
    with refused(RuntimeError, "Split sizes doesn't match total dim 0 size"):
        d.all_to_all_single(zeros(size), ones(size), [2] * size, [2] * size)
    with refused(RuntimeError, "ProcessGroupGloo::broadcast: invalid root rank: 9"):
        d.broadcast(ones(2), 9)
    with refused(ValueError, "Argument ``gather_list`` must NOT be specified on non-destination ranks."):
        d.gather(ones(2), [zeros(2)] * size, dst=(rank + 1) % size)
    with refused(ValueError, "Invalid usage of tensors with different dtypes"):
        d.all_gather([zeros(2).int()] * size, ones(2))
    with refused(ValueError, "trying to initialize the default process group twice!"):
        d.init_process_group("gloo")


def check_several_tensors_at_once(rank: int, size: int) -> None:
    found = [torch.full((2, 3), float(rank)), torch.full((4,), float(rank + 1))]
    d.all_reduce_coalesced(found)
    same(found[0], np.full((2, 3), sum(range(size))))
    same(found[1], np.full(4, sum(range(1, size + 1))))
    states = [torch.full((at,), float(rank)) for at in (3, 0, 5)] + [torch.full((2,), rank)]
    d._broadcast_coalesced(None, states, 16, 1)
    for one in states:
        same(one, np.full(one.shape, 1))
    lists = [[torch.zeros(2), torch.zeros(3)] for _ in range(size)]
    d.all_gather_coalesced(lists, [torch.full((2,), float(rank)), torch.full((3,), float(rank))])
    for at in range(size):
        same(lists[at][0], np.full(2, at))
        same(lists[at][1], np.full(3, at))


def check_parameters_are_averaged_now_and_then(rank: int, size: int) -> None:
    from retrograd.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

    averager = PeriodicModelAverager(period=2, warmup_steps=1)
    parameter = torch.nn.Parameter(torch.full((2,), float(rank)))
    parameter.grad = torch.zeros(2)
    averager.average_parameters([parameter])  # step 0, before the warm-up ends
    same(parameter.detach(), np.full(2, float(rank)))
    averager.average_parameters([{"params": [parameter]}])
    same(parameter.detach(), np.full(2, (size - 1) / 2))


def check_processes_that_differ_are_told(rank: int, size: int) -> None:
    """Ranks that give different tensors get an error that names both, not wrong numbers; the group goes on after it."""
    group = d.new_group(range(size))
    last = rank == size - 1
    x = torch.ones(3)
    ways: list[tuple[str, Any]] = [
        ("shapes: 2vs 3", lambda: d.all_reduce(torch.ones(3 if last else 2), group=group)),
        ("dtypes: Floatvs Double", lambda: d.all_reduce(x.double() if last else x, group=group)),
        ("Op type: ALLREDUCEvs BROADCAST", lambda: d.broadcast(x, 0, group) if last else d.all_reduce(x, group=group)),
        (
            "ReduceOp: RedOpType.SUMvs RedOpType.MAX",
            lambda: d.all_reduce(x, [d.ReduceOp.SUM, d.ReduceOp.MAX][last], group),
        ),
        ("ReduceOp: 0vs 1", lambda: d.broadcast(x, int(last), group)),
        ("shapes: 2vs 3", lambda: d.broadcast(torch.ones(3 if last else 2), 0, group)),
        ("shapes: 2vs 3", lambda: d.all_reduce(torch.ones(3 if last else 2), group=group, async_op=True).wait()),
    ]
    for words, call in ways:
        one, two = words.rpartition(": ")[2].split("vs ")
        said = raised_by(call)
        assert said.startswith("RuntimeError: Detected mismatch between collectives on ranks. Rank "), said
        assert (words.replace(f"{one}vs {two}", f"{two}vs {one}") if last else words) in said, said
    total = torch.ones(2)
    d.all_reduce(total, group=group)
    assert total.tolist() == [size, size]


def check_processes_that_differ_later_are_told_late(rank: int, size: int) -> None:
    group = d.new_group(range(size))
    for _ in range(100):
        d.all_reduce(torch.ones(2), group=group)
    d.all_reduce(torch.ones(2, dtype=[torch.float32, torch.int32][rank % 2]), group=group)  # of one size: wrong numbers
    said = raised_by(lambda: [d.all_reduce(torch.ones(2), group=group) for _ in range(100)])
    assert "differ in one of the collectives 64 to 128 of this group" in said, said


def check_everything_is_compared_in_detail(rank: int, size: int) -> None:
    d.set_debug_level(d.DebugLevel.DETAIL)
    try:
        group = d.new_group(range(size))
    finally:
        d.set_debug_level(d.DebugLevel.OFF)
    for _ in range(100):
        d.all_reduce(torch.ones(2), group=group)
    said = raised_by(lambda: d.all_reduce(torch.ones(2 + rank), group=group))
    assert f"Rank {rank} is running collective: CollectiveFingerPrint(SequenceNumber=100, OpType=ALLREDUCE" in said, (
        said
    )
