"""`x.data = y` with a y of another shape, after x was computed: gradients of that shape have nowhere to go."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

import pytest

import retrograd

USES = {
    "sum": lambda h: h.sum(),
    "product": lambda h: (h * h).sum(),
    "after another": lambda h: (setattr(h, "data", h.data[:2]), h.sum())[1],
}


def with_new_data(torch: Any, function: str) -> tuple[Any, Any]:
    x = torch.ones(3, requires_grad=True)
    h = getattr(x, function)()
    h.data = torch.ones(4)
    return x, h


@pytest.mark.parametrize("function", ["exp", "neg", "sin"])
@pytest.mark.parametrize("use", USES)
def test_gradients_of_the_new_shape_are_refused(use: str, function: str) -> None:
    said = []
    for torch in (retrograd, pytest.importorskip("torch")):
        x, h = with_new_data(torch, function)
        with pytest.raises(RuntimeError, match="invalid gradient at index 0") as caught:
            USES[use](h).backward()
        assert x.grad is None
        said.append(re.sub(r"^Function \w+Backward0 ", "Function ", str(caught.value)).split("\nHint")[0])
    assert said[0] == said[1]


def test_gradients_of_the_old_shape_pass() -> None:
    for torch in (retrograd, pytest.importorskip("torch")):
        x, h = with_new_data(torch, "neg")
        h.data = torch.ones(3)
        h.register_hook(lambda g: g * 2)
        h.sum().backward()
        assert x.grad.tolist() == [-2.0, -2.0, -2.0]


def test_nothing_is_kept_alive() -> None:
    gc.disable()
    try:
        _, h = with_new_data(retrograd, "exp")
        node = weakref.ref(h.grad_fn)
        del _, h
        assert node() is None
    finally:
        gc.enable()
