"""What NumPy makes of a tensor: the same memory, or a copy where it asks for one."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as torch


def shared(array: np.ndarray, tensor: torch.Tensor) -> bool:
    return np.shares_memory(array, tensor.numpy())


def test_a_copy_is_a_copy() -> None:
    x = torch.arange(3.0)
    for copy in (
        np.array(x),
        np.copy(x),
        np.asarray(x, copy=True),
        np.array(x, dtype=np.float64),
        x.__array__(copy=True),
    ):
        assert not shared(copy, x)
        assert copy.tolist() == [0.0, 1.0, 2.0]
    assert np.array(x, dtype=np.float64).dtype == np.float64


def test_without_need_nothing_is_copied() -> None:
    x = torch.arange(3.0)
    for view in (np.asarray(x), np.asarray(x, dtype=np.float32), np.array(x, copy=False), x.__array__()):
        assert shared(view, x)


def test_where_a_copy_is_refused_and_needed() -> None:
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.asarray(torch.arange(3.0), dtype=np.float64, copy=False)


def test_values_without_memory_of_their_own() -> None:
    x = torch.ones(2).sum()
    assert np.array(x).shape == np.asarray(x).shape == ()
    assert np.array(torch.ones(2).conj()).tolist() == [1.0, 1.0]
