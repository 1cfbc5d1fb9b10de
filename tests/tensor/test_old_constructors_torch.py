"""torch.Tensor(...), torch.LongTensor(...): what they take, what they make, and how they refuse the rest, as torch does."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd
from tests.oracle import before_the_hint, said

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = [
    "Tensor()",
    "Tensor(2, 3).shape",
    "Tensor([1, 2])",
    "Tensor([True, False])",
    "Tensor([])",
    "Tensor([[1, 2], [3]])",
    "Tensor((2, 3))",
    "Tensor(range(3))",
    "Tensor(np.ones(2))",
    "Tensor(np.array(2.0))",
    "Tensor(np.int64(3)).shape",
    "Tensor(np.float32(2))",
    "Tensor(library.ones(2))",
    "Tensor(library.ones(2, dtype=library.int64))",
    "Tensor(library.ones(2, requires_grad=True))",
    "Tensor(library.ones(2).untyped_storage()).shape",
    "Tensor(library.Size([2, 3])).shape",
    "Tensor(size=(2, 3)).shape",
    "Tensor(data=[1.0])",
    "Tensor(other=library.ones(2))",
    "Tensor(device='cpu')",
    "Tensor([1.0], device='cpu')",
    "Tensor(2, 3, device='meta')",
    "Tensor(True)",
    "Tensor(2.5)",
    "Tensor(-1)",
    "Tensor(None)",
    "Tensor('ab')",
    "Tensor({1: 2})",
    "Tensor({1, 2})",
    "Tensor(x for x in [1])",
    "Tensor([1.0], [2.0])",
    "Tensor(2, 'a')",
    "Tensor(library.ones(2), 3)",
    "Tensor(2, dtype=library.float32)",
    "Tensor([1.0], requires_grad=True)",
    "LongTensor([1, 2])",
    "LongTensor([1.5])",
    "LongTensor(3).shape",
    "LongTensor(2.5)",
    "LongTensor([1], dtype=library.int64)",
    "FloatTensor(library.ones(2, dtype=library.int64))",
]


@pytest.mark.parametrize("call", CALLS)
def test_both_answer_alike(call: str) -> None:
    ours, theirs = (
        said(
            lambda library=library: repr(eval(f"library.{call}", {"library": library, "np": np})),
            words=lambda error: before_the_hint(error).rstrip(),
        )
        for library in (retrograd, torch)
    )
    assert ours == theirs


def test_what_is_refused_has_a_hint() -> None:
    with pytest.raises(TypeError, match=r"Hint: torch\.tensor\(data\) takes dtype= and requires_grad=\."):
        retrograd.Tensor([1.0], requires_grad=True)  # type: ignore[call-arg]
