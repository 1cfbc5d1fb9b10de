"""Classes of tensors that wrap others and compute in `__torch_dispatch__`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import retrograd
import retrograd as rg
from retrograd.utils._python_dispatch import (
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)
from retrograd.utils._pytree import tree_map_only

aten: Any = retrograd.ops.aten
HERE = Path(__file__).parent


class Scaled(rg.Tensor):
    """Whole numbers and a scale, as a quantised tensor keeps them."""

    _data: Any
    _scale: float

    @staticmethod
    def __new__(cls: Any, data: Any, scale: float) -> Any:
        return rg.Tensor._make_wrapper_subclass(cls, data.shape, dtype=rg.float32, device=data.device)

    def __init__(self, data: Any, scale: float) -> None:
        self._data, self._scale = data, scale

    __torch_function__ = retrograd._C._disabled_torch_function_impl

    def plain(self) -> Any:
        return self._data.to(rg.float32) * self._scale

    def __tensor_flatten__(self) -> Any:
        return ["_data"], self._scale

    @staticmethod
    def __tensor_unflatten__(inner: Any, scale: Any, size: Any, stride: Any) -> Any:
        return Scaled(inner["_data"], scale)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (aten.detach.default, aten.alias.default):
            return return_and_correct_aliasing(func, args, kwargs, Scaled(args[0]._data, args[0]._scale))
        if func is aten.t.default:
            return Scaled(args[0]._data.t(), args[0]._scale)
        args, kwargs = tree_map_only(Scaled, lambda one: one.plain(), (args, kwargs or {}))
        return func(*args, **kwargs)


def test_a_wrapper_says_what_it_looks_like_and_has_no_memory() -> None:
    w = Scaled(rg.ones(4, 3, dtype=rg.int8), 0.5)
    assert (w.shape, w.dtype, w.device.type, w.is_meta, w.stride()) == ((4, 3), rg.float32, "cpu", False, (3, 1))
    assert type(w) is Scaled
    assert repr(w) == "Scaled(..., size=(4, 3))"
    with pytest.raises(RuntimeError):
        w.numpy()


def test_gradients_pass_a_wrapped_weight() -> None:
    x = rg.ones(2, 3, requires_grad=True)
    w = Scaled(rg.full((4, 3), 2, dtype=rg.int8), 0.5)
    out = rg.nn.functional.linear(x, w, rg.ones(4))
    assert out.tolist() == [[4.0] * 4] * 2
    out.sum().backward()
    assert x.grad.tolist() == [[4.0] * 3] * 2


def test_a_wrapper_is_taken_apart_and_put_together() -> None:
    w = Scaled(rg.ones(2, dtype=rg.int8), 0.5)
    assert is_traceable_wrapper_subclass(w)
    assert not is_traceable_wrapper_subclass(rg.ones(2))
    twice = transform_subclass(w, lambda name, inner: inner + 1)
    assert twice.plain().tolist() == [1.0, 1.0]


def test_a_class_without_dispatch_cannot_wrap() -> None:
    class Plain(rg.Tensor):
        pass

    with pytest.raises(TypeError, match="Plain must define __torch_dispatch__"):
        rg.Tensor._make_wrapper_subclass(Plain, (2,))


def test_what_no_class_answers_is_refused() -> None:
    class Silent(rg.Tensor):
        __torch_function__ = retrograd._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    one = rg.Tensor._make_wrapper_subclass(Silent, (2,))
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\._ops\.aten\.add\.Tensor'"):
        one + 1


def test_a_subclass_with_memory_sees_operations_too() -> None:
    seen: list[Any] = []

    class Watched(rg.Tensor):
        @staticmethod
        def __new__(cls: Any, data: Any) -> Any:
            return rg.Tensor._make_subclass(cls, data)

        __torch_function__ = retrograd._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            args = tree_map_only(Watched, lambda one: rg.Tensor._make_subclass(rg.Tensor, one), args)
            return func(*args, **(kwargs or {}))

    x = Watched(rg.tensor([1.0, 2.0]))
    assert (x * 2).tolist() == [2.0, 4.0]
    assert seen == [aten.mul.Tensor]


@pytest.mark.oracle
def test_the_classes_that_torch_tests_itself_with_do_the_same_here() -> None:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("needs torch")
    folder = Path(spec.origin).parent / "testing" / "_internal"
    start = "import sys, runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    printed = []
    for before in ("", "import retrograd; retrograd.as_torch(); "):
        script = str(HERE / "classes_of_torch.py")
        done = subprocess.run(
            [sys.executable, "-c", before + start, script, str(folder)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        printed.append(done.stdout)
    assert printed[1] == printed[0]
