"""Packed and padded sequences against torch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import retrograd
from retrograd.nn.utils import rnn
from tests.oracle import answer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

PROGRAMS = [
    "R.pack_padded_sequence(x, [3, 2, 1, 1])",
    "R.pack_padded_sequence(x, [1, 3, 2, 1], enforce_sorted=False)",
    "R.pack_padded_sequence(x.T, [1, 3, 2, 1], True, False)",
    "R.pack_padded_sequence(y, torch.tensor([2, 1]))",
    "R.pack_padded_sequence(x, torch.tensor([3.0, 2, 1, 1]))",
    "R.pack_padded_sequence(x, torch.tensor([3, 2, 1, 1], dtype=torch.int32))",
    "R.pack_padded_sequence(x, [1, 3, 2, 1])",
    "R.pack_padded_sequence(x, [3, 2, 1, 0])",
    "R.pack_padded_sequence(x, [3, 2, 1])",
    "R.pack_padded_sequence(x, torch.tensor([[3, 2, 1, 1]]))",
    "R.pack_padded_sequence(torch.zeros(3), [3])",
    "R.pack_padded_sequence(torch.zeros(3, 0), [])",
    "R.pack_padded_sequence([1], [3])",
    "R.pad_packed_sequence(p)",
    "R.pad_packed_sequence(p, batch_first=True, padding_value=-1.0, total_length=5)",
    "R.pad_packed_sequence(p, total_length=2)",
    "R.pad_packed_sequence(3)",
    "R.pad_sequence([torch.ones(2), torch.ones(3)])",
    "R.pad_sequence([torch.ones(2, 2), torch.ones(1, 2)], True, -1.0)",
    "R.pad_sequence([torch.ones(2), torch.ones(3)], padding_side='left', batch_first=True)",
    "R.pad_sequence([torch.ones(2), torch.ones(3)], padding_side='left')",
    "R.pad_sequence([torch.ones(2)], padding_side='up')",
    "R.pad_sequence([])",
    "R.pad_sequence([torch.ones(2, 2), torch.ones(2, 3)])",
    "R.pad_sequence([torch.ones(2), torch.ones(3).long()])",
    "R.pad_sequence(torch.ones(2, 3))",
    "R.pad_sequence('ab')",
    "R.pad_sequence(3)",
    "R.pad_sequence(torch.ones(i) for i in (1, 2))",
    "R.pad_sequence([torch.ones(2, requires_grad=True)])",
    "R.pack_sequence([torch.ones(3), torch.ones(2)])",
    "R.pack_sequence([torch.ones(2), torch.ones(3)])",
    "R.pack_sequence([torch.ones(2), torch.ones(3)], enforce_sorted=False)",
    "R.unpad_sequence(x, torch.tensor([3, 2, 1, 1]))",
    "R.unpad_sequence(x.T, torch.tensor([3, 2, 1, 1]), True)",
    "R.unpad_sequence(x, [3, 2, 1, 1])",
    "R.unpack_sequence(p)",
    "R.invert_permutation(torch.tensor([2, 0, 1]))",
    "R.invert_permutation(None)",
    "R.PackedSequence(torch.ones(3), torch.tensor([2, 1]))",
    "R.PackedSequence(torch.ones(3), torch.tensor([2, 1]), torch.tensor([1, 0]))",
    "R.PackedSequence((torch.ones(3), torch.tensor([2, 1])))",
    "R.PackedSequence(torch.ones(3))",
    "R.PackedSequence(torch.ones(3), [2, 1])",
    "R.PackedSequence()",
    "R.PackedSequence(data=torch.ones(3), batch_sizes=torch.tensor([2, 1]), unsorted_indices=torch.tensor([1, 0]))",
    "R.PackedSequence._fields",
    "[p.is_cuda, p.is_pinned(), len(p), str(p)]",
    "[(getattr(p, n)().data.dtype, getattr(p, n)() is p) for n in 'double float half long int short char byte cpu'.split()]",
    "[p.to('cpu') is p, p.to(p.data) is p, p.to(torch.float64).sorted_indices.dtype, p.to(dtype=torch.half).data.dtype]",
    "p.to(torch.float64, copy=True)",
    "p.bfloat16()",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: str) -> None:
    answers = []
    for library in (retrograd, torch):
        module: Any = library.nn.utils.rnn
        x = library.arange(12.0).reshape(3, 4)
        packed = module.pack_padded_sequence(x, [1, 3, 2, 1], enforce_sorted=False)
        scope = {"R": module, "x": x, "y": library.arange(12.0).reshape(2, 2, 3).requires_grad_(), "p": packed}
        answers.append(answer(library, program, **scope))
    assert answers[0] == answers[1]


def test_packing_and_padding_are_differentiable() -> None:
    x = retrograd.randn(3, 2, 2, dtype=retrograd.float64, requires_grad=True)

    def there_and_back(x: Any) -> Any:
        packed = rnn.pack_padded_sequence(x, [1, 3], enforce_sorted=False)
        return rnn.pad_packed_sequence(packed, padding_value=2.0)[0].square()

    assert retrograd.autograd.gradcheck(there_and_back, (x,), check_forward_ad=True, check_batched_grad=True)
    assert retrograd.autograd.gradgradcheck(there_and_back, (x,))
    rows = retrograd.randn(4, 3, 2, 2)
    together = retrograd.vmap(there_and_back)(rows)
    assert together.tolist() == [there_and_back(row).tolist() for row in rows]


def test_copies_are_packed_sequences() -> None:
    packed = rnn.pack_sequence([retrograd.ones(2), retrograd.ones(3)], enforce_sorted=False)
    for other in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed)), packed._replace(data=packed.data)):
        assert type(other) is rnn.PackedSequence
        assert [part.tolist() for part in other] == [part.tolist() for part in packed]


def test_lengths_beyond_the_input_are_refused() -> None:
    """Torch makes a sequence of them whose parts do not fit."""
    with pytest.raises(RuntimeError, match="Expected lengths of at most 3"):
        rnn.pack_padded_sequence(retrograd.zeros(3, 2), [4, 1])
