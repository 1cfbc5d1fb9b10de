"""The small modules of torch.utils: dlpack, deterministic, backcompat, collect_env, hooks, swap_tensors."""

from __future__ import annotations

import importlib
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd
import retrograd.utils
from tests.oracle import answer, assert_same_answer, outcome

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def module(library: Any, name: str) -> Any:
    return importlib.import_module(f"{library.__name__}.utils.{name}")


# ---- dlpack ----
DLPACK = [
    "d.from_dlpack(d.to_dlpack(x))",
    "torch.from_dlpack(d.to_dlpack(x)).data_ptr() == x.data_ptr()",
    "(c := d.to_dlpack(x), d.from_dlpack(c), d.from_dlpack(c))",
    "(y := torch.from_dlpack(d.to_dlpack(x)), y.add_(1), x)[2]",
    "type(d.to_dlpack(torch.ones(2, requires_grad=True))).__name__",
    "d.to_dlpack(3)",
    "d.from_dlpack(3)",
    "d.from_dlpack(a)",
    "(d.from_dlpack(a, copy=True).fill_(9), str(a))",
    "(d.from_dlpack(a, copy=False).fill_(9), str(a))",
    "(d.from_dlpack(read_only).fill_(9), str(read_only))",
    "d.from_dlpack(x, device='cpu')",
    "d.from_dlpack(x, device=torch.device('cpu'), copy=True).data_ptr() == x.data_ptr()",
    "d.from_dlpack(x, device=3)",
    "d.from_dlpack(d.to_dlpack(x), copy=True)",
    "d.from_dlpack(torch.ones(2, requires_grad=True))",
    "[(one.name, one.value) for one in d.DLDeviceType]",
]


@pytest.mark.parametrize("program", DLPACK)
def test_dlpack(program: str) -> None:
    def work(library: Any) -> Any:
        fixed = np.arange(3)
        fixed.flags.writeable = False
        scope = {"x": library.arange(4), "a": np.arange(3), "read_only": fixed, "d": module(library, "dlpack")}
        return answer(library, program, **scope)

    assert_same_answer(work)


# ---- flags ----
def test_deterministic() -> None:
    def work(library: Any) -> Any:
        flags = library.utils.deterministic
        seen = [flags.fill_uninitialized_memory]
        for value in (False, 1, "a", True):
            seen.append(outcome(setattr, flags, "fill_uninitialized_memory", value))
            seen.append(flags.fill_uninitialized_memory)
        return seen

    assert_same_answer(work)


def test_backcompat() -> None:
    def work(library: Any) -> Any:
        switches = library.utils.backcompat
        seen = []
        for switch in (switches.broadcast_warning, switches.keepdim_warning):
            for value in (True, False):
                seen.append(switch.enabled)
                switch.enabled = value
                seen.append(switch.get_enabled())
                switch.set_enabled(False)
        return seen

    assert_same_answer(work)


def test_set_module() -> None:
    def work(library: Any) -> Any:
        def function() -> None:
            pass

        library.utils.set_module(function, "elsewhere")
        return function.__module__, outcome(library.utils.set_module, function, 3)

    assert_same_answer(work)


def test_collect_env() -> None:
    ours = retrograd.utils.collect_env
    text = ours.get_pretty_env_info()
    assert f"numpy=={np.__version__}" in text
    assert "Python version: 3." in text
    assert set(ours.get_env_info()._fields) - set(torch.utils.collect_env.SystemEnv._fields) == {"retrograd_version"}


# ---- hooks ----
def test_hooks_that_are_lost() -> None:
    def work(library: Any) -> Any:
        hooks = module(library, "hooks")
        x = library.ones(2, requires_grad=True)
        seen = []
        for hook in (None, hooks.unserializable_hook(lambda g: g), print):
            if hook is not None:
                x.register_hook(hook)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                hooks.warn_if_has_hooks(x)
            seen.append([str(one.message) for one in caught])
        return seen

    assert_same_answer(work)


# ---- swap_tensors ----
def plain(library: Any) -> Any:
    x, y = library.ones(2), library.zeros(3, dtype=library.int64)
    x.tag = 1
    library.utils.swap_tensors(x, y)
    return x.tolist(), y.tolist(), str(x.dtype), hasattr(x, "tag"), y.tag


def parameter(library: Any) -> Any:
    p, y = library.nn.Parameter(library.ones(2)), library.zeros(3)
    p.sum().backward()
    library.utils.swap_tensors(p, y)
    return type(p).__name__, type(y).__name__, p.requires_grad, y.requires_grad, y.grad.tolist(), p.grad


def between_forward_and_backward(library: Any) -> Any:
    p, q = library.ones(2, requires_grad=True), library.zeros(2, requires_grad=True)
    loss = (p + 1).sum()
    library.utils.swap_tensors(p, q)
    return outcome(loss.backward), p.grad, q.grad


def after_a_graph_is_gone(library: Any) -> Any:
    p, q = library.ones(2, requires_grad=True), library.zeros(2, requires_grad=True)
    loss = (p + 1).sum()
    del loss
    library.utils.swap_tensors(p, q)
    (p * 2).sum().backward()
    return p.grad.tolist(), q.grad


def after_backward(library: Any) -> Any:
    p, q = library.ones(2, requires_grad=True), library.zeros(2, requires_grad=True)
    loss = (p + 1).sum()
    loss.backward()
    library.utils.swap_tensors(p, q)
    (p * 2).sum().backward()
    return p.grad.tolist(), q.grad.tolist()


def weakly_held(library: Any) -> Any:
    x = library.ones(2)
    held = weakref.ref(x)
    return outcome(library.utils.swap_tensors, x, library.zeros(1)), held() is x


def a_view(library: Any) -> Any:
    x, y = library.ones(4), library.zeros(1)
    v = x[:2]
    library.utils.swap_tensors(v, y)
    x.mul_(3)
    return v.tolist(), y.tolist(), y._is_view(), v._is_view(), y._version


def with_history(library: Any) -> Any:
    x, z = library.ones(2, requires_grad=True), library.zeros(1)
    y = x * 2
    library.utils.swap_tensors(y, z)
    z.sum().backward()
    return x.grad.tolist(), y.grad_fn, z.grad_fn.name()


def hooked(library: Any) -> Any:
    x, y = library.ones(2, requires_grad=True), library.ones(2, requires_grad=True)
    x.register_hook(lambda g: g * 10)
    library.utils.swap_tensors(x, y)
    (x.sum() + y.sum()).backward()
    return x.grad.tolist(), y.grad.tolist()


def written(library: Any) -> Any:
    x, y = library.ones(2), library.zeros(2)
    x.add_(1)
    library.utils.swap_tensors(x, y)
    return x._version, y._version, y.add_(1)._version


def other_slots(library: Any) -> Any:
    class Slotted(library.Tensor):  # type: ignore[misc]
        __slots__ = ("extra_slot",)

    return outcome(library.utils.swap_tensors, library.ones(2).as_subclass(Slotted), library.zeros(1))


SWAPS = [
    plain,
    parameter,
    between_forward_and_backward,
    after_a_graph_is_gone,
    after_backward,
    weakly_held,
    a_view,
    with_history,
    hooked,
    written,
]


@pytest.mark.parametrize("work", SWAPS)
def test_swap_tensors(work: Any) -> None:
    assert_same_answer(work)


def test_slots_must_agree() -> None:
    from tests.oracle import described

    assert described(other_slots(retrograd)) == described(other_slots(torch))


def test_the_base_of_a_view_stays() -> None:
    x = retrograd.ones(4)
    view = x[:2]
    with pytest.raises(
        RuntimeError, match="Expected use_count of t1 to be 1 or 2 with an AccumulateGrad node but got 2"
    ):
        retrograd.utils.swap_tensors(x, retrograd.zeros(1))
    assert view.tolist() == [1, 1]
