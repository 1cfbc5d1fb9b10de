"""A class with `__torch_function__` sees in-place methods as themselves, and what traces by such a class records them."""

from __future__ import annotations

from typing import Any

import retrograd as torch

WRITES: dict[str, tuple[Any, ...]] = {
    "cos_": (),
    "add_": (1.0,),
    "lerp_": (torch.ones(2), 0.3),
    "clamp_min_": (0.2,),
    "index_fill_": (0, torch.tensor([0]), 7.0),
    "tril_": (),
}


def test_in_place_methods_are_seen_as_themselves() -> None:
    seen: list[str] = []

    class Seeing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    for name, args in WRITES.items():
        x = torch.ones(2, 2).as_subclass(Seeing)
        seen.clear()
        assert getattr(x, name)(*args) is x
        assert seen[0] == name


def test_traces_record_in_place_methods() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        y.cos_()
        y.clamp_min_(0.2)
        return y

    traced = torch.jit.trace(f, (torch.tensor([0.1, 0.2]),))
    other = torch.tensor([0.3, 0.4])
    assert torch.equal(traced(other), f(other))


def test_traces_record_windows() -> None:
    traced = torch.jit.trace(lambda x: x.unfold(0, 2, 1) * 1, (torch.arange(4.0),))
    assert traced(10 * torch.arange(4.0)).tolist() == [[0, 10], [10, 20], [20, 30]]
