"""Half precision is a storage format: reductions compute in float32 and round once."""

from __future__ import annotations

import pytest

import retrograd as torch

DTYPES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_do_not_overflow_on_the_way(dtype):
    x = torch.full((4096,), 60000.0).to(dtype)
    assert x.mean().dtype is dtype
    assert x.mean().item() == pytest.approx(60000.0, rel=2e-2)
    assert x[:10].var().item() == 0.0
    assert (x[:4] / 100).norm().item() == pytest.approx(1200.0, rel=2e-2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_sums_to_one(dtype):
    x = torch.linspace(-3, 3, 4096).to(dtype)
    total = x.softmax(0).to(torch.float64).sum().item()
    assert total == pytest.approx(1.0, abs=2e-3)


def test_sums_of_small_integers_keep_the_dtype_asked_for():
    assert torch.ones(2).sum(dtype=torch.int32).dtype is torch.int32
    total = torch.ones(300, dtype=torch.uint8).sum(dtype=torch.uint8)
    assert (total.dtype, total.item()) == (torch.uint8, 44)
    assert torch.ones(3, dtype=torch.int32).cumsum(0, dtype=torch.int16).dtype is torch.int16


def test_numpy_names_of_arguments_are_taken():
    x = torch.arange(6.0).reshape(2, 3)
    assert x.sum(axis=0).tolist() == [3.0, 5.0, 7.0]
    assert x.mean(axis=1, keepdims=True).shape == (2, 1)


def test_a_list_of_lists_is_an_index_tuple():
    x = torch.arange(12.0).view(3, 4)
    assert x[[[0, 1], [1, 2]]].tolist() == [1.0, 6.0]
    assert x[[[0, 1]]].shape == (2, 4)


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_", "pow_"])
def test_complex_numbers_are_not_written_into_halves(name):
    for dtype in DTYPES:
        with pytest.raises(RuntimeError, match="result type ComplexFloat can't be cast to the desired output type"):
            getattr(torch.ones(3, dtype=dtype), name)(torch.ones(3, dtype=torch.complex64))


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float32])
@pytest.mark.parametrize("side", [3, 100])
def test_matrices_are_not_changed_by_their_transposes(dtype, side):
    """Where the one read is an array of its own, and the one written a view of it, too."""
    columns = torch.arange(side * side).reshape(side, side).float().t().clone().to(dtype)
    assert columns._array.base is None
    assert columns.t().is_contiguous()
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        columns.t().add_(columns)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 9000])
def test_numbers_are_rounded_before_they_are_compared(dtype, count):
    """As in torch, however many elements there are."""
    tenth, power = torch.tensor(0.1).to(dtype), {torch.float16: 2048, torch.bfloat16: 256}[dtype]
    x = torch.stack([tenth, torch.tensor(power).to(dtype)]).repeat(count)
    answers = [
        x == 0.1,
        x != power + 1,
        x >= 0.1,
        x.clone().eq_(0.1),
        power + 1 - x,
        torch.func.vmap(lambda x: x == 0.1)(x),
    ]
    wanted = [[1, 0], [1, 0], [1, 1], [1, 0], [power, 0], [1, 0]]
    for answer, one in zip(answers, wanted, strict=True):
        assert torch.equal(answer.float(), torch.tensor(one).repeat(count).to(dtype).float())
    x.requires_grad_()
    x.clamp(0.1, power + 1).sum().backward()
    assert (x.grad == 1).all()
