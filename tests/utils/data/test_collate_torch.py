"""default_collate and default_convert, against torch."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd
import retrograd.utils.data
from retrograd.utils.data._utils.collate import collate, default_collate, default_collate_fn_map
from tests.oracle import Raised, answer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


class Point(NamedTuple):
    """A sample with names."""

    x: Any
    y: Any


class Fixed(collections.UserList):  # type: ignore[type-arg]
    """A sequence that says what it is."""


Defaults = collections.defaultdict
SCOPE = {"np": np, "Point": Point, "Fixed": Fixed, "collections": collections, "Defaults": Defaults}
BATCHES = [
    "[1, 2, 3]",
    "[1.5, 2]",
    "[1, 2.5]",
    "[True, False]",
    "['a', 'b']",
    "(b'a', b'b')",
    "[np.float32(1), np.float32(2)]",
    "[np.int64(1), np.int64(2)]",
    "[np.bool_(True), np.bool_(False)]",
    "[np.array([1, 2]), np.array([3, 4])]",
    "[np.array(1.5), np.array(2.5)]",
    "[np.array([1., 2.], np.float32), np.array([3., 4.])]",
    "[np.array([[1., 2.]]).T, np.array([[3.], [4.]])]",
    "[np.array(['a']), np.array(['b'])]",
    "[np.array([None]), np.array([1])]",
    "[np.array([1, 2]), np.array([3])]",
    "[np.array([1, 2]), torch.tensor([3, 4])]",
    "[torch.tensor([1, 2]), torch.tensor([3, 4])]",
    "[torch.tensor(1.), torch.tensor(2.)]",
    "[torch.tensor([1, 2]), torch.tensor([3])]",
    "[torch.tensor([1, 2]), torch.tensor([3., 4.])]",
    "[torch.tensor([1., 2.], requires_grad=True), torch.tensor([3., 4.])]",
    "[torch.ones(2, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.bfloat16)]",
    "[torch.ones(2, 3).t(), torch.zeros(3, 2)]",
    "[torch.ones(0)] * 2",
    "[torch.ones(2), 1]",
    "[(1, 'a', 2.5), (2, 'b', 3.5)]",
    "[[1, 2], [3, 4]]",
    "[[1, 2], [3]]",
    "[(), ()]",
    "[[[1, (2, 3)]], [[4, (5, 6)]]]",
    "[Point(1, 2.5), Point(3, 4.5)]",
    "[Fixed([1, 2]), Fixed([3, 4])]",
    "[range(2), range(2, 4)]",
    "[collections.deque([1, 2]), collections.deque([3, 4])]",
    "[None, None]",
    "[Ellipsis, 1]",
    "[{1, 2}]",
    "[1 + 2j]",
    "[]",
    "[np.datetime64('2020-01-01')]",
]
MAPPINGS = [
    "[{'a': 1, 'b': 2.5}, {'b': 3.5, 'a': 4, 'c': 0}]",
    "[{'a': {'b': [1, 2]}}, {'a': {'b': [3, 4]}}]",
    "[{'a': 1}, {'b': 1}]",
    "[Defaults(int, a=1), Defaults(int, a=2)]",
    "[collections.OrderedDict(a=1), collections.OrderedDict(a=2)]",
    "[collections.ChainMap({'a': 1}), collections.ChainMap({'a': 2})]",
]


def shown(value: Any) -> Any:
    """Return what a user sees of a batch."""
    if isinstance(value, collections.abc.Mapping):
        return type(value).__name__, {key: shown(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, collections.UserList)):
        return type(value).__name__, [shown(one) for one in value]
    if hasattr(value, "stride"):
        node = None if value.grad_fn is None else value.grad_fn.name()
        return str(value.dtype), tuple(value.shape), value.stride(), str(value.tolist()), node
    return type(value).__name__, str(value)


@pytest.mark.parametrize("batch", BATCHES + MAPPINGS)
@pytest.mark.parametrize("function", ["default_collate", "default_convert"])
def test_as_torch(batch: str, function: str) -> None:
    program = f"shown(torch.utils.data.{function}({batch}))"
    ours, theirs = (answer(lib, program, shown=shown, **SCOPE) for lib in (retrograd, torch))
    if isinstance(theirs, Raised) and theirs.words.startswith("can't convert np.ndarray of type"):
        assert theirs.kind == ours.kind == "TypeError"  # the list of dtypes that follows is each library's own
    else:
        assert ours == theirs


def test_the_map_decides() -> None:
    """A function of one's own in the map is called, for arrays as well, which become tensors first."""
    seen = []

    def counted(batch: Any, *, collate_fn_map: Any = None) -> Any:
        seen.append(len(batch))
        return "done"

    own = {**default_collate_fn_map, retrograd.Tensor: counted}
    assert collate([(np.ones(2), retrograd.ones(1))] * 3, collate_fn_map=own) == ["done", "done"]
    assert seen == [3, 3]
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        collate([1, 2])


def test_a_batch_is_a_copy() -> None:
    """Writing into a batch leaves the samples alone."""
    samples = [retrograd.zeros(2), retrograd.zeros(2)]
    default_collate(samples).add_(1)
    assert samples[0].tolist() == [0, 0]
