"""What a TorchFunctionMode sees: creation, in-place methods, views and conversions as well, as in torch."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = """zeros(2)
ones(2)
empty(2)
rand(2)
randn(2)
randint(3, (2,))
randperm(3)
tensor([1.0])
as_tensor([1.0])
asarray([1.0])
full((2,), 1)
arange(3)
linspace(0, 1, 3)
logspace(0, 1, 3)
eye(2)
empty_strided((2,), (1,))
scalar_tensor(1)
hann_window(2)
kaiser_window(3)
tril_indices(2, 2)
zeros_like(torch.ones(2))
is_tensor(1)
manual_seed(0)
broadcast_shapes((2,), (1,))
ones(2) + 1
ones(2)[0]
ones(2).new_zeros(2)
ones(2).new_full((2,), 1)
ones(2).to(torch.float64)
ones(2).double()
ones(2).view(2)
ones(2).expand_as(torch.ones(2))
ones(2).numpy()
ones(1).item()
ones(2).zero_()
ones(2).add_(1)
ones(2).fill_(1)
ones(2).copy_(torch.ones(2))
ones(2).masked_fill_(torch.ones(2) > 0, 1)
ones(2).requires_grad_().exp().sum().backward()
rand(2).bernoulli_()
numel(torch.ones(2))
nn.Parameter(torch.ones(2))
_foreach_add([torch.ones(2)], 1)""".splitlines()


def _seen(library: Any, call: str) -> list[str]:
    names = []

    class Seeing(library.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(function.__name__)
            return function(*args, **(kwargs or {}))

    with Seeing():
        eval(f"torch.{call}", {"torch": library})
    return names


@pytest.mark.parametrize("call", CALLS)
def test_as_torch(call: str) -> None:
    assert _seen(retrograd, call) == _seen(torch, call)


def test_functions_stay_the_objects_that_they_were() -> None:
    before = [
        retrograd.zeros,
        retrograd.tensor,
        retrograd.Tensor.view,
        retrograd.Tensor.add_,
        retrograd.Tensor.__getitem__,
    ]
    _seen(retrograd, "zeros(2)")
    after = [
        retrograd.zeros,
        retrograd.tensor,
        retrograd.Tensor.view,
        retrograd.Tensor.add_,
        retrograd.Tensor.__getitem__,
    ]
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert retrograd.zeros(2, dtype=retrograd.int32).tolist() == [0, 0]
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        retrograd.zeros(2, foo=1)


def test_what_functions_call_inside_is_seen_by_no_mode() -> None:
    assert _seen(retrograd, "nn.functional.normalize(torch.ones(2, 2))") == ["ones", "normalize"]
