"""Check the tuple type of shapes against known values and the oracle."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from retrograd._size import Size
from tests.oracle import outcome, typed


def short(error: BaseException) -> str:
    """Return an error's words: the class is called torch.Size only in PyTorch's own errors."""
    return str(error).replace("torch.Size'", "Size'").replace('torch.Size"', 'Size"')


def test_known_values() -> None:
    size = Size([2, 3, 4])
    assert repr(size) == "torch.Size([2, 3, 4])"
    assert size == (2, 3, 4)
    assert hash(size) == hash((2, 3, 4))
    assert size.numel() == 24
    assert Size().numel() == 1
    assert type(size[1:]) is Size
    assert type(size[0]) is int
    first, *rest = size
    assert (first, rest) == (2, [3, 4])


def test_copies_and_pickles() -> None:
    size = Size([2, 3])
    for copied in (copy.copy(size), copy.deepcopy(size), pickle.loads(pickle.dumps(size))):
        assert copied == size
        assert type(copied) is Size


def test_unpacks_tensors_but_keeps_foreign_integers() -> None:
    class Tensor:
        requires_grad = False

        def __index__(self) -> int:
            return 5

    size = Size([Tensor(), np.int64(3), True])
    assert [type(each) for each in size] == [int, np.int64, int]
    assert repr(size) == "torch.Size([5, 3, 1])"


EXPRESSIONS = [
    "Size()", "Size(())", "Size([2, 3])", "Size((2,))", "Size(2)", "Size([2.0])", "Size([1, 2.5])",
    "Size(['a'])", "Size([True])", "Size([None])", "Size('ab')", "Size('')", "Size([np.int64(3)])",
    "Size([np.float32(3)])", "Size(np.array([3, 4]))", "Size(range(3))", "Size([-1])", "Size([2**70])",
    "Size([2**63])", "Size(x=[1])", "Size([1], [2])", "Size({3: 1})", "Size([1, 2, 3])[1:]",
    "Size([1, 2, 3])[::-1]", "Size([1, 2, 3])[-1]", "Size([1, 2, 3])[5]", "Size([1, 2, 3])['a']",
    "Size([1, 2, 3])[1.5]", "Size([1, 2]) + Size([3])", "Size([1, 2]) + (3,)", "Size([1, 2]) + [3]",
    "Size([1, 2]) + ('a',)", "Size([1, 2]) + (2.5,)", "Size([1, 2]) + 3", "Size([1, 2]) + None",
    "(3,) + Size([1, 2])", "('a',) + Size([1, 2])", "[3] + Size([1, 2])", "3 + Size([1, 2])",
    "None + Size([1])", "Size([1, 2]) * 2", "2 * Size([1, 2])", "Size([1, 2]) * 1.5", "Size([1, 2]) * -1",
    "(Size([1, 2]) * np.array([2, 3])).tolist()", "Size([1, 2]).numel()", "Size([1, 0]).numel()",
    "Size([-1, 3]).numel()", "Size([2**40, 2**40]).numel()", "Size([2**32, 2**31]).numel()",
    "Size([1, 2]) == (1, 2)", "Size([1, 2]) == [1, 2]", "str(Size([1, 2]))", "f'{Size([1, 2])}'",
    "Size([1, 2]).count(1)", "Size([1, 2]).index(2)", "Size([1, 2]).index(7)", "tuple(Size([1, 2]))",
    "list(Size([1, 2]))", "Size([1, 2]).__reduce__()[1]", "2 in Size([1, 2])", "len(Size([1, 2]))",
    "Size([1, 2]) < (1, 3)", "type('Mine', (Size,), {})", "setattr(Size([2]), 'a', 1)",
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_behaves_as_the_oracle(expression: str) -> None:
    torch = pytest.importorskip("torch")
    own, expected = (
        outcome(lambda size=size: typed(eval(expression, {"Size": size, "np": np})), words=short, ignore_warnings=False)
        for size in (Size, torch.Size)
    )
    assert own == expected
