"""Deep graphs, deep recursion of backward, deep nesting of transforms: no stack is used up."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

import retrograd as torch

MILLION = 1_000_000


def chain(x: Any, length: int) -> Any:
    for _ in range(length):
        x = x + 1.0
    return x


@pytest.mark.slow
def test_a_million_operations(record_property):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    times = [time.perf_counter()]
    y = chain(x, MILLION)
    times.append(time.perf_counter())
    y.sum().backward()
    times.append(time.perf_counter())
    del y
    times.append(time.perf_counter())
    for name, start, end in zip(("forward", "backward", "freeing"), times, times[1:], strict=False):
        record_property(f"{name} ns/node", round((end - start) * 1e9 / MILLION))
    assert x.grad.tolist() == [1.0, 1.0]


# Every kind of link a graph has, in one long chain; freed before and after backward, on a small C stack.
SCRIPT = """
import threading
import retrograd as torch

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        ctx.saved_tensors
        return g

class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0, x * 2.0

    @staticmethod
    def backward(ctx, a, b):
        return a

def plain(y):
    return y + 1.0

def saving(y):
    return y.sin() * y.cos()

def function(y):
    return Twice.apply(y)

def slots(y):
    return Pair.apply(y)[0]

def in_place(y):
    y.add_(1.0)
    return y

def views(y):
    return y[:].view(2)

def slices(y):
    y[:1].mul_(1.0)
    return y

def mixed(y):
    return slots(function(views(plain(y)).sin()))

def hooked(y):
    y.register_hook(lambda g: None)
    return y * 1.0

def main():
    step = globals()["{step}"]
    for backward in (False, True):
        x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        y = x * 1.0
        for _ in range({length}):
            y = step(y)
        if backward:
            y.sum().backward()
            assert x.grad.shape == (2,)
        del y
    print("done")

threading.stack_size({stack})
thread = threading.Thread(target=main)
thread.start()
thread.join()
"""
# Until 3.12 Python counts by the stack how deeply objects free each other, then up to some thousands, which a stack must hold.
STACK = (256 if sys.version_info < (3, 13) else 1024) * 1024
STEPS = ["plain", "saving", "function", "slots", "in_place", "views", "slices", "mixed", "hooked"]


@pytest.mark.parametrize("step", STEPS)
def test_long_chains_are_freed_on_a_small_stack(step):
    length = 2000 if step in ("views", "mixed") else 20_000  # a view of a view lists all its steps
    text = SCRIPT.replace("{step}", step).replace("{length}", str(length)).replace("{stack}", str(STACK))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "done", f"exit {done.returncode}\n{done.stderr[-2000:]}"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs ulimit")
def test_a_million_operations_on_a_small_stack():
    text = (
        SCRIPT.replace("{step}", "plain").replace("{length}", str(MILLION)).replace("threading.stack_size({stack})", "")
    )
    command = f"ulimit -s {2 * STACK // 1024}; exec {sys.executable} -c '{text.replace(chr(39), chr(34))}'"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == "done", f"exit {done.returncode}\n{done.stderr[-2000:]}"


def test_graph_of_a_deep_second_order():
    x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(3000):
        y = y * 1.0 + 0.0
    (g,) = torch.autograd.grad(y * y, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert (g.item(), h.item()) == (1.0, 2.0)


def test_wide_graph():
    x = torch.ones((), dtype=torch.float64, requires_grad=True)
    torch.stack([x * 1.0 for _ in range(20_000)]).sum().backward()
    assert x.grad.item() == 20_000


def test_reentrant_backward_200_levels_deep():
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            if ctx.depth:
                with torch.enable_grad():
                    inner = torch.ones(2, dtype=torch.float64, requires_grad=True)
                    Nested.apply(inner, ctx.depth - 1).sum().backward()
                g = g + inner.grad
            return g, None

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    Nested.apply(x, 200).sum().backward()
    assert x.grad.tolist() == [201.0, 201.0]


def test_error_from_a_deep_reentrant_backward():
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            if not ctx.depth:
                raise KeyError("at the bottom")
            with torch.enable_grad():
                inner = torch.ones(2, requires_grad=True)
                Nested.apply(inner, ctx.depth - 1).sum().backward()
            return g, None

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="at the bottom"):
        Nested.apply(x, 150).sum().backward()
    (x * 2).sum().backward()  # the engine is as before
    assert x.grad.tolist() == [2.0, 2.0]


def test_vmap_20_levels_deep():
    f = torch.sin
    for _ in range(20):
        f = torch.func.vmap(f)
    x = torch.ones((1,) * 20, dtype=torch.float64)
    assert torch.allclose(f(x), x.sin())


def test_grad_20_levels_deep():
    f = torch.exp
    for _ in range(10):
        f = torch.func.grad(f)
    x = torch.tensor(0.5, dtype=torch.float64)
    assert f(x).item() == pytest.approx(x.exp().item())

    def power(x):
        return x**20

    for _ in range(20):
        power = torch.func.grad(power)
    assert power(x).item() == pytest.approx(2432902008176640000.0)  # 20!


def test_jvp_20_levels_deep():
    def deeper(f):
        return lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]

    def f(x):
        return x * 3 + 1

    x = torch.tensor(0.5, dtype=torch.float64)
    assert deeper(f)(x).item() == 3.0
    for _ in range(20):
        f = deeper(f)
    assert f(x).item() == 0.0


def test_jvp_8_levels_of_exp():
    def deeper(f):
        return lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]

    f = torch.exp
    for _ in range(8):
        f = deeper(f)
    x = torch.tensor(0.5, dtype=torch.float64)
    assert f(x).item() == pytest.approx(x.exp().item())


def test_mixed_20_levels_deep():
    """vmap of grad of vmap of grad ...: each grad is of a linear function, so the derivative is known."""

    def f(x):
        return x * 3.0

    for level in range(20):
        inner = f
        if level % 2:
            f = lambda x, inner=inner: torch.func.vmap(inner)(x.unsqueeze(0)).squeeze(0)  # noqa: E731
        else:
            f = lambda x, inner=inner: torch.func.grad(lambda v, x=x: (inner(v) * v).sum() / 2)(x)  # noqa: E731
    x = torch.tensor(2.0, dtype=torch.float64)
    assert f(x).item() == pytest.approx(6.0)


def test_a_view_shares_the_steps_of_the_view_it_is_made_of():
    """So 20,000 views of views keep 20,000 steps, not 200 million."""
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    whole = x * 1
    view = whole
    for k in range(20_000):
        before, view = view, view.t() if k % 2 else view.transpose(0, 1)
        assert before is whole or view._extra.chain[0] is before._extra.chain
    first = view.split(1)[0]
    assert first._extra.chain[0] is view._extra.chain
    assert len(view._extra.steps) == 20_000
    view.mul_(torch.tensor([[2.0, 1.0, 1.0], [1.0, 1.0, 3.0]]))
    whole.sum().backward()
    assert x.grad.tolist() == [[2.0, 1.0, 1.0], [1.0, 1.0, 3.0]]
