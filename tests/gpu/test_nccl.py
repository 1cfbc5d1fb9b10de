"""torch.distributed on NCCL, with a group of one process on one device: every collective, on every dtype that NCCL adds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import retrograd as torch
from retrograd import distributed as d
from retrograd.distributed import nn as through

pytestmark = pytest.mark.gpu


if not torch.cuda.is_available():
    pytest.skip("needs CuPy and a CUDA device", allow_module_level=True)

DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.bool),
    *(torch.int8, torch.uint8, torch.int32, torch.int64),
)
REDUCED = (d.ReduceOp.SUM, d.ReduceOp.PRODUCT, d.ReduceOp.MIN, d.ReduceOp.MAX)


@pytest.fixture(autouse=True, params=["nccl", "cpu:gloo,cuda:nccl", "gloo"])
def group(request: pytest.FixtureRequest) -> Iterator[None]:
    d.init_process_group(request.param, rank=0, world_size=1, store=d.HashStore())
    yield
    d.destroy_process_group()


def given(dtype: Any) -> Any:
    return torch.tensor([[1, 0, 1], [1, 1, 0]], device="cuda").to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_process_gets_what_it_gives(dtype: Any) -> None:
    one = given(dtype)
    for op in REDUCED[:1] if dtype.is_complex else REDUCED:
        found = given(dtype)
        d.all_reduce(found, op)
        assert torch.equal(found, one)
        d.reduce(found, 0, op)
        assert torch.equal(found, one)
        out = torch.zeros_like(one)
        d.reduce_scatter(out, [one], op)
        assert torch.equal(out, one)
    if dtype.is_floating_point or dtype.is_complex:
        found = given(dtype)
        d.all_reduce(found, d.ReduceOp.AVG)
        assert torch.equal(found, one)
    d.broadcast(found := given(dtype), 0)
    assert torch.equal(found, one)
    for call in (
        lambda out: d.all_gather([out], one),
        lambda out: d.all_gather_into_tensor(out, one),
        lambda out: d.gather(one, [out]),
        lambda out: d.scatter(out, [one]),
        lambda out: d.all_to_all([out], [one]),
        lambda out: d.all_to_all_single(out, one),
        lambda out: d.reduce_scatter_tensor(out, one),
    ):
        out = torch.zeros_like(one)
        call(out)
        assert torch.equal(out, one)


def test_tensors_that_are_not_dense_and_empty_ones() -> None:
    one = given(torch.float32)
    d.all_reduce(one.t())
    d.all_reduce(one[:, ::2])
    d.all_reduce(torch.zeros(0, device="cuda"))
    d.all_reduce(torch.tensor(3.0, device="cuda"))
    assert torch.equal(one, given(torch.float32))


def test_work_futures_and_gradients() -> None:
    one = given(torch.float32)
    work = d.all_reduce(one, async_op=True)
    assert work.wait()
    assert work.get_future().wait()[0] is one
    leaf = one.clone().requires_grad_()
    (through.functional.all_reduce(leaf) ** 2).sum().backward()
    assert torch.equal(leaf.grad, 2 * one)
    d.barrier()


def test_tensors_of_the_host_go_as_well() -> None:
    found = torch.ones(3)
    d.all_reduce(found)
    objects = [None]
    d.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}]
