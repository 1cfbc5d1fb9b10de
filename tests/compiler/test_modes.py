"""Modes around compiled functions: each has records of its own, and gives what eager gives under it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import retrograd as torch
from retrograd import nn

MODES: dict[str, list[Any]] = {
    "none": [],
    "no_grad": [torch.no_grad],
    "inference": [torch.inference_mode],
    "autocast": [lambda: torch.autocast("cpu")],
    "autocast to float16": [lambda: torch.autocast("cpu", dtype=torch.float16)],
    "autocast, no_grad": [lambda: torch.autocast("cpu"), torch.no_grad],
    "autocast, inference": [torch.inference_mode, lambda: torch.autocast("cpu")],
    "autocast that is switched off": [lambda: torch.autocast("cpu"), lambda: torch.autocast("cpu", enabled=False)],
    "gradients in no_grad": [torch.no_grad, torch.enable_grad],
    "the CPU as default device": [lambda: torch.device("cpu")],
}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        h = torch.relu(self.first(x)) + torch.ones(6)
        return self.second(h).log_softmax(-1), h.detach().argmax(-1)


def seen(model: Any, call: Any, x: Any, names: list[Any]) -> Any:
    with ExitStack() as stack:
        for enter in names:
            stack.enter_context(enter())
        out, best = call(x)
        found: list[Any] = [out.dtype, out.requires_grad, out.is_inference(), best.is_inference(), out.float().tolist()]
        if out.requires_grad:
            found += [
                one.tolist() for one in torch.autograd.grad(out.float().sum(), [*model.parameters()], retain_graph=True)
            ]
    if out.requires_grad:  # outside of the mode, too
        found += [one.tolist() for one in torch.autograd.grad(out.float().pow(2).sum(), [*model.parameters()])]
    return found


def test_one_function_under_all_modes() -> None:
    torch.manual_seed(0)
    model = Net()
    compiled = torch.compile(model)
    run = compiled._compiled_forward._compiled
    for _ in range(3):
        for names in MODES.values():
            x = torch.randn(2, 4)
            found, expected = seen(model, compiled, x, names), seen(model, model, x, names)
            assert found[:4] == expected[:4]
            torch.testing.assert_close(
                *[[torch.tensor(one) for one in side[4:]] for side in (found, expected)], rtol=1e-2, atol=1e-2
            )
    assert not run.reasons
    assert len(run.records) == 7  # of float32 and bfloat16 with gradients, without them, in inference mode; of float16


def test_inference_tensors_go_in_and_out() -> None:
    def f(x: Any) -> Any:
        return (x * 2).relu()

    compiled = torch.compile(f)
    for _ in range(3):
        with torch.inference_mode():
            first = compiled(torch.randn(3))
            second = compiled(first)
            assert first.is_inference()
            assert second.is_inference()
        outside = compiled(second)  # of which eager makes an ordinary one
        assert not outside.is_inference()
        torch.testing.assert_close(outside, f(second))


def test_writes_in_inference_mode() -> None:
    count = torch.zeros(2)

    def f(x: Any) -> Any:
        count.add_(1)
        return x + count

    compiled = torch.compile(f)
    for turn in range(1, 4):
        with torch.inference_mode():
            assert compiled(torch.zeros(2)).tolist() == [turn, turn]


def test_a_block_of_inference_mode_inside() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)

    def f(x: Any) -> Any:
        with torch.inference_mode():
            target = model(x).softmax(-1)
        return model(x.detach()), target

    @torch.inference_mode()
    def g(x: Any) -> Any:
        return model(x) + 1

    def h(x: Any) -> Any:
        return g(x) * 2

    for function in (f, g, h):
        compiled = torch.compile(function)
        for _ in range(3):
            x = torch.randn(2, 3)
            for one, other in zip(
                *[out if type(out) is tuple else (out,) for out in (compiled(x), function(x))], strict=True
            ):
                assert one.is_inference() == other.is_inference()
                assert one.requires_grad == other.requires_grad
                torch.testing.assert_close(one, other)
        assert compiled._compiled.records
        assert not compiled._compiled.reasons


def test_the_dtype_of_autocast_is_seen() -> None:
    def f(x: Any) -> Any:
        with torch.autocast("cpu"):
            return x @ x

    compiled = torch.compile(f)
    x = torch.ones(2, 2)
    try:
        for dtype in (torch.bfloat16, torch.float16, torch.bfloat16):
            torch.set_autocast_dtype("cpu", dtype)
            for _ in range(3):
                assert compiled(x).dtype == dtype
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)
    assert not compiled._compiled.reasons


class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g @ w.T.to(g.dtype), x.T.to(g.dtype) @ g  # in which dtype, the mode of the backward says


def test_custom_functions_under_autocast() -> None:
    compiled = torch.compile(lambda x, w: Times.apply(x, w))
    w = torch.randn(3, 3, requires_grad=True)
    for turn in range(4):
        x = torch.randn(2, 3)
        sides = []
        for call in (Times.apply, compiled):
            with torch.autocast("cpu"):
                out = call(x, w)
                if turn % 2:
                    sides.append(torch.autograd.grad(out.sum(), w))
            if not turn % 2:
                sides.append(torch.autograd.grad(out.sum(), w))
        torch.testing.assert_close(*sides)


def test_default_dtypes() -> None:
    def f(x: Any) -> Any:
        return x + torch.ones(2) * torch.tensor(0.5)

    compiled = torch.compile(f)
    try:
        for dtype in (torch.float32, torch.float64, torch.float32, torch.float16):
            torch.set_default_dtype(dtype)
            for _ in range(2):
                out = compiled(torch.zeros(2, dtype=torch.float16))
                assert out.dtype == f(torch.zeros(2, dtype=torch.float16)).dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)
    assert not compiled._compiled.reasons


def test_modes_that_watch_run_in_eager() -> None:
    seen_names = []

    class Watching(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen_names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor

    packed: list[Any] = []
    compiled = torch.compile(lambda x: x.exp())
    x = torch.ones(2)
    for turn in range(1, 4):
        with Watching():
            compiled(x)
        assert seen_names == ["exp"] * turn
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            compiled(torch.ones(2, requires_grad=True))
        assert len(packed) == turn
