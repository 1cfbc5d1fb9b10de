"""`Tensor.grad_dtype`: the dtype in which a leaf receives its gradients."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import retrograd
from tests.oracle import said, whole


class Doubled:
    """Makes a Function whose backward returns float64, of which float32 cannot hold all."""

    @staticmethod
    def of(t: Any) -> Any:
        class Function(t.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 1

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g.double() / 3

        return Function


def shown(tensor: Any) -> Any:
    return None if tensor is None else (str(tensor.dtype).rpartition(".")[2], str(tensor.tolist()))


def leaf(t: Any, wanted: str | None, dtype: str = "float32") -> Any:
    x = t.ones(2, dtype=getattr(t, dtype), requires_grad=True)
    x.grad_dtype = None if wanted is None else getattr(t, wanted)
    return x


def _backward(t: Any, wanted: Any, dtype: str = "float32", times: int = 1) -> Any:
    x = leaf(t, wanted, dtype)
    for _ in range(times):
        (x * 3 + x * x).sum().backward()
    return shown(x.grad)


def _custom(t: Any, wanted: Any) -> Any:
    x = leaf(t, wanted)
    Doubled.of(t).apply(x).sum().backward()
    return shown(x.grad)


def _grad(t: Any, wanted: Any) -> Any:
    x = leaf(t, wanted)
    return [shown(g) for g in t.autograd.grad((x * 2).sum(), x)]


def _with_graph(t: Any, wanted: Any) -> Any:
    x = leaf(t, wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cycle
        (x * x).sum().backward(create_graph=True)
    return shown(x.grad), x.grad.grad_fn is None


def _hooks(t: Any) -> Any:
    x, seen = leaf(t, "float16"), []
    x.register_hook(lambda g: seen.append(shown(g)))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(shown(p.grad)))
    (x * 1e6).sum().backward()
    return seen


def _set_after_recording(t: Any) -> Any:
    x = t.ones(2, requires_grad=True)
    y = x * 2
    x.grad_dtype = t.float64
    y.sum().backward()
    return shown(x.grad)


def _sums_in_the_wider_dtype(t: Any) -> Any:
    x = leaf(t, "float32", "bfloat16")
    (x * 256 + x * 1 + x * 1).sum().backward()
    return shown(x.grad)


def _assigned(t: Any, wanted: Any, given: str) -> Any:
    x = leaf(t, wanted)
    x.grad = t.ones(2, dtype=getattr(t, given))
    (x * 1.5).sum().backward()
    return shown(x.grad)


def _changed_with_gradient(t: Any) -> None:
    x = t.ones(2, requires_grad=True)
    x.grad = t.ones(2)
    x.grad_dtype = t.float64


def _of_a_result(t: Any) -> Any:
    return (t.ones(2, requires_grad=True) * 2).grad_dtype


def _set_on_a_result(t: Any) -> None:
    (t.ones(2, requires_grad=True) * 2).grad_dtype = t.float64


def _set_to_a_number(t: Any) -> None:
    t.ones(2).grad_dtype = 3


def _defaults(t: Any) -> Any:
    x = t.ones(2)
    before = str(x.grad_dtype)
    x.grad_dtype = t.float16
    after = str(x.grad_dtype), str(x.detach().grad_dtype)
    x.requires_grad_()
    (x * 1).sum().backward()
    return before, after, shown(x.grad), str(t.ones(2, dtype=t.int64).grad_dtype)


PROGRAMS = {
    "float64": lambda t: _backward(t, "float64"),
    "twice": lambda t: _backward(t, "float64", times=2),
    "none": lambda t: _backward(t, None),
    "halves": lambda t: _backward(t, "float16"),
    "bfloat16_leaf": lambda t: _backward(t, "float32", "bfloat16"),
    "complex": lambda t: _backward(t, "complex64"),
    "custom": lambda t: _custom(t, "float64"),
    "custom_none": lambda t: _custom(t, None),
    "custom_same": lambda t: _custom(t, "float32"),
    "grad": lambda t: _grad(t, "float64"),
    "with_graph": lambda t: _with_graph(t, "float64"),
    "hooks": _hooks,
    "set_after_recording": _set_after_recording,
    "sums": _sums_in_the_wider_dtype,
    "assigned": lambda t: _assigned(t, "float64", "float64"),
    "assigned_any": lambda t: _assigned(t, None, "float64"),
    "assigned_other": lambda t: _assigned(t, "float64", "float32"),
    "changed_with_gradient": _changed_with_gradient,
    "of_a_result": _of_a_result,
    "set_on_a_result": _set_on_a_result,
    "set_to_a_number": _set_to_a_number,
    "defaults": _defaults,
}


def answered(t: Any, name: str) -> Any:
    program = PROGRAMS[name]
    return said(program, t, words=whole, kinds=RuntimeError, ignore_warnings=False).replace("retrograd", "torch")


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_like_torch(name: str) -> None:
    assert answered(retrograd, name) == answered(pytest.importorskip("torch"), name)


def test_gradients_take_the_chosen_dtype() -> None:
    assert _custom(retrograd, "float64") == ("float64", str([1 / 3, 1 / 3]))
    assert _backward(retrograd, "float64")[0] == "float64"
