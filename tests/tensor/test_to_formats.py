"""A conversion to a memory format that torch says a tensor has already gives the tensor itself."""

from __future__ import annotations

import pytest

import retrograd as torch


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5)])
def test_a_transposed_tensor_is_taken_for_a_contiguous_one(shape):
    x = torch.zeros(shape).transpose(0, 1)
    assert x.to(memory_format=torch.contiguous_format) is x
    assert x.float(memory_format=torch.contiguous_format) is x
    assert x.double(memory_format=torch.contiguous_format).is_contiguous()


def test_a_tensor_whose_channels_are_last_is_copied():
    x = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert x.to(memory_format=torch.channels_last) is x
    copy = x.to(memory_format=torch.contiguous_format)
    assert copy is not x
    assert copy.stride() == (60, 20, 5, 1)
