"""Indexing against NumPy: random expressions for reading, assigning and differentiating."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as torch


@st.composite
def indexed(draw):
    """A shape and an index expression that is valid for it."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    parts = []
    arrays_shape = draw(st.sampled_from([(2,), (3,), (2, 2)]))
    for size in shape:
        kind = draw(st.sampled_from(["int", "slice", "array", "all", "stop"]))
        if kind == "stop":
            break
        if kind == "int":
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            start = draw(st.none() | st.integers(-size - 1, size + 1))
            stop = draw(st.none() | st.integers(-size - 1, size + 1))
            parts.append(slice(start, stop, draw(st.sampled_from([None, 1, 2, 3]))))
        elif kind == "array":
            count = int(np.prod(arrays_shape))
            values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count, unique=False))
            parts.append(np.array(values, dtype=np.int64).reshape(arrays_shape))
        else:
            parts.append(slice(None))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()) and len(parts) - sum(p is None for p in parts) < len(shape):
        parts.append(Ellipsis)
    return tuple(shape), tuple(parts)


def for_torch(index):
    """NumPy lets an int join the block of index arrays; torch takes ints first, as views."""
    return tuple(torch.tensor(p) if isinstance(p, np.ndarray) else p for p in index)


def expected(array, index):
    """Apply ints, slices, None and Ellipsis first, then the index arrays, as torch does."""
    dims = array.ndim - sum(not (p is None or p is Ellipsis) for p in index)
    full = []
    for part in index:
        full += [slice(None)] * dims if part is Ellipsis else [part]
    basic = array[(*(slice(None) if isinstance(p, np.ndarray) else p for p in full), ...)]  # ...: a view even if 0-d
    rest = [p if isinstance(p, np.ndarray) else slice(None) for p in full if not isinstance(p, int)]
    return basic, tuple(rest)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.uint16, torch.float32])
def test_tensors_that_are_no_indices(dtype) -> None:
    """As in torch, which takes arrays of these integers."""
    x, index = torch.arange(6.0).reshape(2, 3), torch.zeros(2, dtype=dtype)
    for call in (
        lambda: x[index],
        lambda: x[:, index],
        lambda: x.__setitem__(index, 1.0),
        lambda: x.index_put((index,), x),
    ):
        with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
            call()
    if dtype != torch.float32:
        assert torch.equal(x[index.numpy()], x[[0, 0]])


@settings(max_examples=300, deadline=None)
@given(indexed())
def test_reading(case):
    shape, index = case
    array = np.arange(float(np.prod(shape))).reshape(shape)
    basic, rest = expected(array, index)
    got = torch.tensor(array)[for_torch(index)]
    want = basic[rest]
    assert tuple(got.shape) == want.shape
    assert np.array_equal(got.numpy(), want)


@settings(max_examples=300, deadline=None)
@given(indexed())
def test_gradient_of_reading_counts_how_often_an_element_is_read(case):
    shape, index = case
    x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    x[for_torch(index)].sum().backward()
    counts = np.zeros(shape)
    basic, rest = expected(counts, index)
    np.add.at(basic, rest, 1.0)
    assert np.array_equal(x.grad.numpy(), counts)


@settings(max_examples=300, deadline=None)
@given(indexed())
def test_assigning_a_number(case):
    shape, index = case
    array = np.arange(float(np.prod(shape))).reshape(shape)
    x = torch.tensor(array)
    x[for_torch(index)] = -1.0
    basic, rest = expected(array, index)
    basic[rest] = -1.0
    assert np.array_equal(x.numpy(), array)
    assert x._version >= 1


@settings(max_examples=200, deadline=None)
@given(indexed())
def test_gradient_of_assigning(case):
    """What is overwritten gets no gradient; a value gets the gradient of the places it went to."""
    shape, index = case
    x = torch.ones(shape, dtype=torch.float64, requires_grad=True)
    v = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    weight = torch.arange(float(np.prod(shape)), dtype=torch.float64).reshape(shape) + 1
    y = x * 1
    y[for_torch(index)] = v
    (y * weight).sum().backward()
    written = np.zeros(shape, bool)
    basic, rest = expected(written, index)
    basic[rest] = True
    weights = weight.numpy()
    gradient = np.zeros(shape) if x.grad is None else x.grad.numpy()
    assert np.array_equal(gradient, np.where(written, 0, weights))
    # an element written several times takes one of the values, which are all v: its gradient counts each write
    if not any(isinstance(p, np.ndarray) for p in index):
        assert v.grad.item() == weights[written].sum()


def test_masks():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    mask = torch.tensor([[True, False, True], [False, True, False]])
    assert x[mask].tolist() == [0.0, 2.0, 4.0]
    x[mask].sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    y = x.detach().clone()
    y[mask] = 9.0
    assert y.tolist() == [[9.0, 1.0, 9.0], [3.0, 9.0, 5.0]]
    y[torch.tensor([True, False])] = torch.tensor([1.0, 1.0, 1.0])
    assert y[0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (([0, 7],), IndexError, "index 7 is out of bounds for dimension 0 with size 3"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (1.5, IndexError, None),
    ],
)
def test_bad_indices(index, error, text):
    x = torch.ones(3, 2)
    with pytest.raises((error, TypeError)) as caught:
        x[index]
    if text:
        assert str(caught.value).startswith(text)
