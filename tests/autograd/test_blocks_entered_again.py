"""One object that switches a mode can be entered again: inside itself, by recursion, in several threads, by generators."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import retrograd as torch
from retrograd._modes import PLAIN, current_mode, read_mode, using
from retrograd.autograd import graph
from retrograd.overrides import TorchFunctionMode


def same(value: Any) -> Any:
    return value


class Passing(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def quiet_anomaly() -> Any:
    with pytest.warns(UserWarning, match="Anomaly"):
        return torch.autograd.detect_anomaly()


# What makes a block, and what can be seen of it inside.
BLOCKS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "no_grad": (torch.no_grad, lambda: not torch.is_grad_enabled()),
    "inference_mode": (torch.inference_mode, torch.is_inference_mode_enabled),
    "autocast": (lambda: torch.autocast("cpu"), lambda: torch.is_autocast_enabled("cpu")),
    "saved_tensors_hooks": (lambda: graph.saved_tensors_hooks(same, same), lambda: current_mode().saved_hooks),
    "save_on_cpu": (graph.save_on_cpu, lambda: current_mode().saved_hooks),
    "detect_anomaly": (quiet_anomaly, torch.is_anomaly_enabled),
    "function mode": (Passing, lambda: current_mode().function_modes),
    "using": (lambda: using(grad=False), lambda: not torch.is_grad_enabled()),
    "sdpa_kernel": (
        lambda: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
        lambda: torch.nn.functional._attention.allowed.get() == frozenset(["MATH"]),
    ),
    "disable_saved_tensors_hooks": (
        lambda: graph.disable_saved_tensors_hooks("not here"),
        lambda: current_mode().saved_hooks_disabled == "not here",
    ),
}
blocks = pytest.mark.parametrize(("make", "is_on"), BLOCKS.values(), ids=BLOCKS)


@blocks
def test_inside_itself(make: Any, is_on: Any) -> None:
    block = make()
    with block:
        with block:
            with torch.enable_grad(), block:
                assert is_on()
            assert is_on()
        assert is_on()
    assert read_mode() is PLAIN


@blocks
def test_by_recursion(make: Any, is_on: Any) -> None:
    block = make()
    seen = []

    def deeper(levels: int) -> None:
        with block:
            if levels:
                deeper(levels - 1)
            seen.append(bool(is_on()))

    deeper(3)
    assert seen == [True] * 4
    assert read_mode() is PLAIN


@pytest.mark.parametrize("name", ["no_grad", "inference_mode", "autocast", "using", "disable_saved_tensors_hooks"])
def test_decorated_functions_that_call_themselves(name: str) -> None:
    make, is_on = BLOCKS[name]
    seen = []

    @make()  # type: ignore[misc]
    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
        seen.append(bool(is_on()))

    deeper(3)
    assert seen == [True] * 4
    assert read_mode() is PLAIN


@blocks
def test_in_two_threads_by_turns(make: Any, is_on: Any) -> None:
    block = make()
    seen: list[Any] = []
    inside, go_on = threading.Event(), threading.Event()

    def other() -> None:
        with torch.autograd.set_detect_anomaly(True), block:
            seen.append(bool(is_on()))
            inside.set()
            go_on.wait(10)
        seen.append(read_mode())

    thread = threading.Thread(target=other)
    with block:
        thread.start()
        inside.wait(10)
    assert read_mode() is PLAIN
    assert not is_on()
    go_on.set()
    thread.join()
    assert seen == [True, PLAIN]
    assert seen[1] is PLAIN


@blocks
def test_in_tasks_by_turns(make: Any, is_on: Any) -> None:
    block = make()
    seen: list[bool] = []

    async def enters(turns: int) -> None:
        with block:
            for _ in range(turns):
                await asyncio.sleep(0)
                seen.append(bool(is_on()))
        assert read_mode() is PLAIN
        assert not is_on()

    async def both() -> None:
        await asyncio.gather(enters(3), enters(1), enters(2))

    asyncio.run(both())
    assert seen == [True] * 6
    assert read_mode() is PLAIN


@blocks
def test_generators_that_end_by_turns(make: Any, is_on: Any) -> None:
    block = make()

    def generating() -> Iterator[int]:
        with block:
            yield 1
            assert is_on()

    first, second = generating(), generating()
    next(first), next(second)
    with using(torch_function=False):
        assert next(first, None) is None
        assert next(second, None) is None
    assert read_mode() is PLAIN


@blocks
def test_errors_and_a_stack(make: Any, is_on: Any) -> None:
    block = make()
    with pytest.raises(ValueError, match="inside"), block, block:
        raise ValueError("inside")
    assert read_mode() is PLAIN
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(block)
        assert is_on()
    assert read_mode() is PLAIN
    block.__enter__()
    block.__enter__()
    block.__exit__(None, None, None)
    assert is_on()
    block.__exit__(None, None, None)
    assert read_mode() is PLAIN


@blocks
def test_nothing_is_kept_after_a_block(make: Any, is_on: Any) -> None:
    block = make()
    with block, block:
        pass
    held = weakref.ref(block)
    del block
    assert held() is None


def test_one_hook_of_two_that_are_the_same() -> None:
    """A block takes away what it has put there, not all that looks like it."""
    mode = Passing()
    with mode:
        inner = torch.no_grad()
        mode.__enter__()
        inner.__enter__()
        mode.__exit__(None, None, None)
        assert current_mode().function_modes == (mode,)
        assert not torch.is_grad_enabled()
        inner.__exit__(None, None, None)
        assert torch.is_grad_enabled()
    assert read_mode() is PLAIN


def test_a_block_that_ends_inside_a_transform() -> None:
    """The transform goes on: its level is not the one to end."""

    def generating() -> Iterator[int]:
        with torch.enable_grad():
            yield 1

    values = generating()
    next(values)

    def ends_it(x: Any) -> Any:
        y = x * x
        next(values, None)
        return (y * x).sum()

    x = torch.tensor([1.0, 2.0])
    assert torch.func.vmap(lambda one: one * 2)(x).tolist() == [2.0, 4.0]
    assert torch.func.grad(ends_it)(x).tolist() == [3.0, 12.0]
    values = generating()
    next(values)
    assert torch.func.vmap(lambda one: (next(values, None), one.sin())[1])(x).tolist() == torch.sin(x).tolist()
    values = generating()
    next(values)
    assert torch.func.jvp(ends_it, (x,), (torch.ones(2),))[1].item() == 15.0
    values = generating()
    next(values)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones(2))
        result = torch.autograd.forward_ad.unpack_dual(ends_it(dual))
        assert result.tangent is not None
        assert result.tangent.item() == 15.0
    assert read_mode() is PLAIN


def test_what_a_hook_of_backward_entered_and_did_not_leave() -> None:
    block = graph.saved_tensors_hooks(same, lambda packed: (block.__enter__(), packed)[1])
    with block:
        torch.ones(2, requires_grad=True).sin().sum().backward()
    assert read_mode() is PLAIN


def test_hooks_left_without_being_entered() -> None:
    block = graph.saved_tensors_hooks(same, same)
    with pytest.raises(RuntimeError, match="left more often"):
        block.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        torch.autograd.forward_ad.dual_level().__exit__(None, None, None)
    with torch.no_grad():
        torch.enable_grad().__exit__(None, None, None)
        assert not torch.is_grad_enabled()
