"""Every node knows the line of the user's program that called its operation."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd.autograd.graph import saved_tensors_hooks

HERE = __file__


def f64(*shape: int) -> Any:
    return torch.ones(shape, dtype=torch.float64, requires_grad=True)


# Each is one line of this file; the place of its node must be that line.
OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    # methods of one tensor
    "neg": lambda x, y, m: x.neg(),
    "exp": lambda x, y, m: x.exp(),
    "log": lambda x, y, m: x.log(),
    "sqrt": lambda x, y, m: x.sqrt(),
    "sin": lambda x, y, m: x.sin(),
    "tanh": lambda x, y, m: x.tanh(),
    "sigmoid": lambda x, y, m: x.sigmoid(),
    "relu": lambda x, y, m: x.relu(),
    "abs": lambda x, y, m: x.abs(),
    "square": lambda x, y, m: x.square(),
    "reciprocal": lambda x, y, m: x.reciprocal(),
    "clone": lambda x, y, m: x.clone(),
    "round": lambda x, y, m: x.round(),
    # methods of two
    "add": lambda x, y, m: x.add(y),
    "sub": lambda x, y, m: x.sub(y),
    "mul": lambda x, y, m: x.mul(y),
    "div": lambda x, y, m: x.div(y),
    "pow": lambda x, y, m: x.pow(2),
    "pow of tensor": lambda x, y, m: x.pow(y),
    "maximum": lambda x, y, m: x.maximum(y),
    "atan2": lambda x, y, m: x.atan2(y),
    "lerp": lambda x, y, m: x.lerp(y, 0.5),
    "add with alpha": lambda x, y, m: x.add(y, alpha=2),
    "clamp": lambda x, y, m: x.clamp(0, 1),
    "where": lambda x, y, m: x.where(x > 0, y),
    # functions
    "torch.exp": lambda x, y, m: torch.exp(x),
    "torch.add": lambda x, y, m: torch.add(x, y),
    "torch.mul": lambda x, y, m: torch.mul(x, y),
    "torch.where": lambda x, y, m: torch.where(x > 0, x, y),
    "torch.cat": lambda x, y, m: torch.cat([x, y]),
    "torch.stack": lambda x, y, m: torch.stack([x, y]),
    "torch.sum": lambda x, y, m: torch.sum(x),
    "torch.matmul": lambda x, y, m: torch.matmul(m, x),
    "torch.clamp": lambda x, y, m: torch.clamp(x, 0, 1),
    "torch.softmax": lambda x, y, m: torch.softmax(x, 0),
    # operators
    "x + y": lambda x, y, m: x + y,
    "x - y": lambda x, y, m: x - y,
    "x * y": lambda x, y, m: x * y,
    "x / y": lambda x, y, m: x / y,
    "x ** 2": lambda x, y, m: x**2,
    "x ** y": lambda x, y, m: x**y,
    "-x": lambda x, y, m: -x,
    "abs(x)": lambda x, y, m: abs(x),
    "x % y": lambda x, y, m: x % y,
    "m @ x": lambda x, y, m: m @ x,
    "1 + x": lambda x, y, m: 1 + x,
    "1 - x": lambda x, y, m: 1 - x,
    "2 * x": lambda x, y, m: 2 * x,
    "2 / x": lambda x, y, m: 2 / x,
    "2 ** x": lambda x, y, m: 2**x,
    "x + 1": lambda x, y, m: x + 1,
    "x / 2": lambda x, y, m: x / 2,
    "x * numpy number": lambda x, y, m: x * y.detach().numpy()[0],
    # reductions
    "sum": lambda x, y, m: x.sum(),
    "sum of dim": lambda x, y, m: m.sum(0),
    "mean": lambda x, y, m: x.mean(),
    "prod": lambda x, y, m: x.prod(),
    "max": lambda x, y, m: x.max(),
    "max of dim": lambda x, y, m: m.max(0)[0],
    "amax": lambda x, y, m: m.amax(0),
    "var": lambda x, y, m: x.var(),
    "norm": lambda x, y, m: x.norm(),
    "logsumexp": lambda x, y, m: x.logsumexp(0),
    "softmax": lambda x, y, m: x.softmax(0),
    "log_softmax": lambda x, y, m: x.log_softmax(0),
    "cumsum": lambda x, y, m: x.cumsum(0),
    "sort": lambda x, y, m: x.sort()[0],
    # matrices
    "mm": lambda x, y, m: m.mm(m),
    "mv": lambda x, y, m: m.mv(x),
    "dot": lambda x, y, m: x.dot(y),
    "outer": lambda x, y, m: x.outer(y),
    "addmm": lambda x, y, m: torch.addmm(m, m, m),
    # shapes and indices
    "view": lambda x, y, m: x.view(3, 1),
    "reshape": lambda x, y, m: x.reshape(3, 1),
    "reshape that copies": lambda x, y, m: m.t().reshape(9),
    "flatten": lambda x, y, m: m.flatten(),
    "t": lambda x, y, m: m.t(),
    "T": lambda x, y, m: m.T,
    "mT": lambda x, y, m: m.mT,
    "transpose": lambda x, y, m: m.transpose(0, 1),
    "permute": lambda x, y, m: m.permute(1, 0),
    "movedim": lambda x, y, m: m.movedim(0, 1),
    "unsqueeze": lambda x, y, m: x.unsqueeze(0),
    "squeeze": lambda x, y, m: m[:1].squeeze(0),
    "expand": lambda x, y, m: x.expand(2, 3),
    "narrow": lambda x, y, m: x.narrow(0, 0, 2),
    "select": lambda x, y, m: m.select(0, 1),
    "diagonal": lambda x, y, m: m.diagonal(),
    "unbind": lambda x, y, m: m.unbind(0)[1],
    "split": lambda x, y, m: m.split(2)[0],
    "chunk": lambda x, y, m: m.chunk(2)[0],
    "flip": lambda x, y, m: x.flip(0),
    "tril": lambda x, y, m: m.tril(),
    "x[0]": lambda x, y, m: x[0],
    "x[1:]": lambda x, y, m: x[1:],
    "m[:, 1]": lambda x, y, m: m[:, 1],
    "m[None]": lambda x, y, m: m[None],
    "x[[0, 1]]": lambda x, y, m: x[[0, 1]],
    "x[mask]": lambda x, y, m: x[x > 0],
    "gather": lambda x, y, m: x.gather(0, torch.tensor([0])),
    "index_select": lambda x, y, m: x.index_select(0, torch.tensor([0])),
    "masked_fill": lambda x, y, m: x.masked_fill(x > 0, 1.0),
    "masked_select": lambda x, y, m: x.masked_select(x > 0),
    "scatter_add": lambda x, y, m: x.scatter_add(0, torch.tensor([0, 1, 2]), y),
    "iteration": lambda x, y, m: next(iter(m)),
    # casts
    "to": lambda x, y, m: x.to(torch.float16),
    "float": lambda x, y, m: x.float() if x.dtype != torch.float32 else x.double(),
    "contiguous": lambda x, y, m: m.t().contiguous(),
    "real": lambda x, y, m: torch.complex(x, y).real,
    # in place, on what is not a leaf
    "add_": lambda x, y, m: x.clone().add_(y),
    "mul_": lambda x, y, m: x.clone().mul_(2),
    "exp_": lambda x, y, m: x.clone().exp_(),
    "zero_": lambda x, y, m: x.clone().zero_(),
    "fill_": lambda x, y, m: x.clone().fill_(3),
    "fill_ by tensor": lambda x, y, m: x.clone().fill_(y[0]),
    "copy_": lambda x, y, m: x.clone().copy_(y),
    "clamp_": lambda x, y, m: x.clone().clamp_(0, 1),
    "pow_": lambda x, y, m: x.clone().pow_(2),
    "masked_fill_": lambda x, y, m: x.clone().masked_fill_(x > 0, 1.0),
    "write into view": lambda x, y, m: _base_of(x.clone()[1:].mul_(2)),
    "set item": lambda x, y, m: _set_item(x.clone(), y),
    "augmented": lambda x, y, m: _augmented(x.clone(), y),
    "custom": lambda x, y, m: Twice.apply(x),
    # transforms
    "vmap": lambda x, y, m: torch.func.vmap(lambda v: v * 2)(x),
}
INDIRECT = {"set item", "augmented"}  # their lines are in the functions below


def _base_of(view: Any) -> Any:
    return view._base


def _set_item(x: Any, y: Any) -> Any:
    x[0] = y[1]
    return x


def _augmented(x: Any, y: Any) -> Any:
    x *= y
    return x


class Twice(torch.autograd.Function):
    """x * 2."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def line_of(name: str) -> int:
    """Return the line on which an operation is written."""
    indirect = {"set item": _set_item, "augmented": _augmented}.get(name)
    code = OPERATIONS[name].__code__ if indirect is None else indirect.__code__
    return code.co_firstlineno + (indirect is not None)


def check(name: str, dtypes: tuple[Any, Any]) -> None:
    first, second = dtypes
    x = torch.tensor([0.5, 1.5, 2.5], dtype=first, requires_grad=True)
    y = torch.tensor([1.5, 2.0, 0.5], dtype=second, requires_grad=True)
    m = (torch.arange(9, dtype=first) + 1).reshape(3, 3).requires_grad_()
    node = OPERATIONS[name](x, y, m).grad_fn
    assert node is not None
    assert f'File "{HERE}", line {line_of(name)}, in' in str(node.place()), f"{node.name()}: {node.place()}"


MIXED_REFUSED = {"m @ x", "torch.matmul", "mv", "dot", "lerp", "scatter_add"}  # torch wants one dtype


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_place(name, dtype):
    chosen = getattr(torch, dtype)
    if dtype == "bfloat16" and name in {"real", "x * numpy number"}:
        pytest.skip("no complex or NumPy form of bfloat16")
    check(name, (chosen, chosen))


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in MIXED_REFUSED | {"real"}])
def test_place_with_promotion(name):
    check(name, (torch.float64, torch.float32))


@pytest.mark.parametrize("name", OPERATIONS)
def test_place_under_saved_tensors_hooks(name):
    with saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        check(name, (torch.float64, torch.float64))


@pytest.mark.parametrize("name", OPERATIONS)
def test_place_under_anomaly_detection(name):
    with torch.autograd.set_detect_anomaly(True):
        check(name, (torch.float64, torch.float64))


@pytest.mark.parametrize("name", OPERATIONS)
def test_place_in_a_dual_level(name):
    with torch.autograd.forward_ad.dual_level():
        check(name, (torch.float64, torch.float64))


@pytest.mark.parametrize("name", ["x + y", "exp", "sum", "m @ x", "x[0]", "set item", "add_"])
def test_place_of_a_zero_dimensional_tensor_or_parameter(name):
    node = torch.Parameter(torch.ones(3)).sum().exp().grad_fn
    here = sys._getframe().f_lineno - 1
    assert f"line {here}, in" in node.place()
    check(name, (torch.float64, torch.float64))


def test_place_of_several_lines_in_one_expression():
    x = f64(3)
    first = sys._getframe().f_lineno + 2
    y = (
        x.exp()
        * x.sin()
    )  # fmt: skip
    (a, _), (b, _) = y.grad_fn.next_functions
    assert f"line {first}," in a.place()
    assert f"line {first + 1}," in b.place()


def test_place_inside_comprehension_and_map():
    x = f64(3)
    made = [x * n for n in (1, 2)] + list(map(torch.exp, [x, x]))
    here = sys._getframe().f_lineno - 1
    for one in made:
        assert f"line {here}," in one.grad_fn.place()


def test_place_names_the_function_and_the_source():
    node = f64(3).exp().grad_fn
    text = node.place()
    assert "in test_place_names_the_function_and_the_source" in text
    assert text.endswith("node = f64(3).exp().grad_fn")


def test_place_of_transform_inside():
    seen = []

    def f(v):
        out = v.exp()
        seen.append(out.grad_fn.place())
        return out.sum()

    torch.func.grad(f)(torch.ones(3))
    assert f"line {f.__code__.co_firstlineno + 1}, in f" in seen[0]


def test_at_the_top_level_of_a_script(tmp_path):
    """The user's frame may be the last one: nothing may look further."""
    lines = [
        "import retrograd as torch",
        "x = torch.tensor([0.5, 1.5, 2.5], requires_grad=True)",
        "y = torch.tensor([1.5, 2.0, 0.5], requires_grad=True)",
        "m = (torch.arange(9, dtype=torch.float32) + 1).reshape(3, 3).requires_grad_()",
        "seen = []",
    ]
    start = len(lines)
    chosen = [name for name in OPERATIONS if name not in {"custom", "set item", "augmented", "write into view"}]
    for name in chosen:
        source = inspect.getsource(OPERATIONS[name]).split("m: ", 1)[1].rstrip().rstrip(",")
        lines.append(f"seen.append(({source}).grad_fn.place())")
    lines += ["for place in seen:", "    print(place.split(chr(10))[0])"]
    script = tmp_path / "script.py"
    script.write_text("\n".join(lines) + "\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    wrong = [
        (name, place)
        for i, (name, place) in enumerate(zip(chosen, shown, strict=True))
        if place != f'  File "{script}", line {start + i + 1}, in <module>'
    ]
    assert not wrong
