"""What a program cannot do again, or no guard knows: such functions run in eager, and `fullgraph=True` says why."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd.compiler import _making


def retains_a_gradient(x: Any) -> Any:
    y = (x * 2).tanh()
    if y.requires_grad:
        y.retain_grad()
    return y


def retains_the_gradient_of_an_argument(x: Any) -> Any:
    y = x * 1
    if y.requires_grad:
        y.retain_grad()
    return y, (y * y).sum()


def as_strided(x: Any) -> Any:
    return x.as_strided((2,), (1,)) * 1


def as_strided_function(x: Any) -> Any:
    return torch.as_strided(x, (2,), (1,)) * 1


def asks_for_a_leaf(x: Any) -> Any:
    return x * 2 if x.is_leaf else x * 3


def asks_for_the_offset(x: Any) -> Any:
    return x * x.storage_offset()


def asks_for_a_retained_gradient(x: Any) -> Any:
    return x * 2 if x.retains_grad else x * 3


def asks_for_the_number_of_an_output(x: Any) -> Any:
    return x * (1 + x.output_nr)


def asks_for_shared_memory(x: Any) -> Any:
    return x * 2 if x.is_shared() else x * 3


def asks_for_the_same_memory(x: Any) -> Any:
    return x * 2 if x.is_set_to(x.detach()) else x * 3


def sets_the_gradient_of_a_result(x: Any) -> Any:
    y = x.detach() * 2
    y.grad = torch.ones(3)
    return y


def reads_settings(x: Any) -> Any:
    return x * 2 if torch.are_deterministic_algorithms_enabled() else x * 3


def reads_the_debug_mode(x: Any) -> Any:
    return x * (1 + torch.get_deterministic_debug_mode())


def reads_the_kind_of_warnings(x: Any) -> Any:
    return x * 2 if torch.is_warn_always_enabled() else x * 3


def reads_whether_it_only_warns(x: Any) -> Any:
    return x * 2 if torch.is_deterministic_algorithms_warn_only_enabled() else x * 3


def reads_the_precision(x: Any) -> Any:
    return x * len(torch.get_float32_matmul_precision())


def reads_the_dtype_of_autocast(x: Any) -> Any:
    return x.to(torch.get_autocast_dtype("cpu"))


def reads_anomaly_mode(x: Any) -> Any:
    return x * 2 if torch.is_anomaly_enabled() else x * 3


FUNCTIONS: list[Callable[[Any], Any]] = [
    retains_a_gradient, retains_the_gradient_of_an_argument, as_strided, as_strided_function, asks_for_a_leaf,
    asks_for_the_offset, asks_for_a_retained_gradient, asks_for_the_number_of_an_output, asks_for_shared_memory,
    asks_for_the_same_memory, sets_the_gradient_of_a_result, reads_settings, reads_the_debug_mode,
    reads_the_kind_of_warnings, reads_whether_it_only_warns, reads_the_precision, reads_the_dtype_of_autocast, reads_anomaly_mode,
]  # fmt: skip


def arguments() -> list[Any]:
    """Return tensors that differ in what no guard knows."""
    torch.manual_seed(0)
    whole = torch.randn(9)
    leaf = torch.randn(3, requires_grad=True)
    retaining = leaf * 1
    retaining.retain_grad()
    return [whole[:3], whole[4:7], leaf, leaf * 1, retaining, torch.randn(2, 3, requires_grad=True).unbind(0)[1]]


def settings_on() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_warn_always(True)
    torch.set_float32_matmul_precision("medium")
    torch.set_autocast_dtype("cpu", torch.float16)


@pytest.fixture
def settings() -> Any:
    precision, dtype = torch.get_float32_matmul_precision(), torch.get_autocast_dtype("cpu")
    yield settings_on
    torch.use_deterministic_algorithms(False)
    torch.set_warn_always(False)
    torch.set_float32_matmul_precision(precision)
    torch.set_autocast_dtype("cpu", dtype)


def seen(function: Any, x: Any) -> Any:
    """Return what is to be seen of a result, before and after its backward."""
    found: list[Any] = []
    outs = function(x)
    outs = outs if isinstance(outs, tuple) else (outs,)
    for out in outs:
        found += [out.tolist(), out.dtype, out.requires_grad, out.is_inference(), out.retains_grad]
    if outs[-1].requires_grad:
        outs[-1].sum().backward(retain_graph=True)
        found += [None if out.grad is None else out.grad.tolist() for out in outs if out.retains_grad]
    elif outs[-1].grad is not None:
        found.append(outs[-1].grad.tolist())
    return found


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_what_no_guard_knows_runs_in_eager(function: Any, settings: Any) -> None:
    compiled = torch.compile(function)
    for turn in range(2):
        for x, same in zip(arguments(), arguments(), strict=True):
            for _ in range(2):
                assert seen(compiled, x) == seen(function, same)
        if turn == 0:
            settings()
    with pytest.raises(RuntimeError, match="fullgraph=True"):
        torch.compile(function, fullgraph=True)(arguments()[0])


# ---- fullgraph=True ----
def test_fullgraph_says_it_at_every_call() -> None:
    compiled = torch.compile(asks_for_a_leaf, fullgraph=True)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"fullgraph=True.*is_leaf"):
            compiled(torch.ones(3))


def test_fullgraph_says_that_a_recording_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise ValueError("a fault of the compiler")

    def function(x: Any) -> Any:
        return x * 2

    monkeypatch.setattr(_making, "record", fail)
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"fullgraph=True.*recording it failed: ValueError: a fault"):
            compiled(torch.ones(2))
    assert torch.compile(function)(torch.ones(2)).tolist() == [2, 2]


def test_fullgraph_says_that_there_are_too_many_records() -> None:
    compiled = torch.compile(lambda x, name: x * len(name), fullgraph=True)
    for length in range(16):  # numbers and sizes can be inputs of a record, a text cannot
        assert compiled(torch.ones(1), "a" * length).item() == length
    with pytest.raises(RuntimeError, match=r"fullgraph=True.*more than 16 records"):
        compiled(torch.ones(1), "b")


CONTEXTS: dict[str, Callable[[], Any]] = {
    "save_on_cpu": torch.autograd.graph.save_on_cpu,
    "device": lambda: torch.device("meta"),
    "cached": torch.nn.utils.parametrize.cached,
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_fullgraph_says_that_a_mode_is_around_a_call(name: str) -> None:
    compiled = torch.compile(lambda x: x * 2, fullgraph=True)
    x = torch.ones(2)
    compiled(x)
    with CONTEXTS[name](), pytest.raises(RuntimeError, match="fullgraph=True"):
        compiled(x)
    assert compiled(x).tolist() == [2, 2]


def test_fullgraph_says_that_a_transform_is_around_a_call() -> None:
    weight = torch.ones(2, requires_grad=True)
    compiled = torch.compile(lambda x: (x * x * weight).sum(), fullgraph=True)
    with pytest.raises(RuntimeError, match=r"fullgraph=True.*inside vmap"):
        torch.vmap(compiled)(torch.ones(2, 2))
    assert torch.func.grad(compiled)(torch.ones(2)).tolist() == [2, 2]


def test_fullgraph_lets_compiled_functions_call_each_other() -> None:
    inner = torch.compile(lambda x: x * 2, fullgraph=True)
    outer = torch.compile(lambda x: inner(x) + 1)
    for _ in range(3):
        assert outer(torch.ones(2)).tolist() == [3, 3]


# ---- calls that raise ----
def test_a_first_call_that_raises_refuses_nothing_for_good() -> None:
    table: dict[str, float] = {}

    def function(x: Any) -> Any:
        return x * table["factor"]

    for fullgraph in (False, True):
        table.clear()
        compiled = torch.compile(function, fullgraph=fullgraph)
        for _ in range(2):
            with pytest.raises(RuntimeError if fullgraph else KeyError, match="factor"):
                compiled(torch.ones(2))
        table["factor"] = 3.0
        for _ in range(2):
            assert compiled(torch.ones(2)).tolist() == [3, 3]
        assert len(compiled._compiled.records) == 1


def test_errors_that_only_the_recording_meets_refuse_nothing_for_good() -> None:
    factors = [torch.ones(3)]
    compiled = torch.compile(lambda x: x * factors[0], fullgraph=True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="must match the size"):
            compiled(torch.ones(2))
    factors[0] = torch.full((2,), 3.0)
    for _ in range(2):
        assert compiled(torch.ones(2)).tolist() == [3, 3]
    assert len(compiled._compiled.records) == 1
    assert not compiled._compiled.reasons


# ---- methods that a user gives to tensors ----
def calls_a_method(x: Any) -> Any:
    return x.tanh() * 2


def calls_an_added_method(x: Any) -> Any:
    return x.counted() * 2


def reads_an_added_attribute(x: Any) -> Any:
    return x * x.factor


def adds(x: Any) -> Any:
    return x + 1


@pytest.mark.parametrize(
    ("function", "name"),
    [(calls_a_method, "tanh"), (calls_an_added_method, "counted"), (adds, "__add__")],
    ids=["replaced", "added", "operator"],
)
def test_methods_of_a_users_own_run_at_every_call(function: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def method(self: Any, other: Any = None) -> Any:
        calls.append(self)
        return self * 5

    monkeypatch.setattr(torch.Tensor, name, method, raising=False)
    compiled = torch.compile(function)
    expected = function(torch.ones(2)).tolist()
    for number in range(3):
        assert compiled(torch.ones(2)).tolist() == expected
        assert len(calls) == 2 + number
    with pytest.raises(RuntimeError, match=rf"fullgraph=True.*Tensor.{name} is not the library's own"):
        torch.compile(function, fullgraph=True)(torch.ones(2))


def test_an_attribute_of_a_users_own_is_read_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = torch.compile(reads_an_added_attribute)
    for factor in (2, 3):
        monkeypatch.setattr(torch.Tensor, "factor", factor, raising=False)
        for _ in range(2):
            assert compiled(torch.ones(2)).tolist() == [factor, factor]


@pytest.mark.parametrize("cls", [torch.Tensor, torch.nn.Parameter])
def test_a_method_that_is_replaced_after_the_recording_is_called(cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = torch.compile(calls_a_method)
    x = torch.nn.Parameter(torch.zeros(2))
    for _ in range(2):
        assert compiled(x).tolist() == [0, 0]
    assert len(compiled._compiled.records) == 1
    with monkeypatch.context() as patch:
        patch.setattr(cls, "tanh", lambda self: self + 5, raising=False)
        for _ in range(2):
            assert compiled(x).tolist() == [10, 10]
    for _ in range(2):
        assert compiled(x).tolist() == [0, 0]
    assert len(compiled._compiled.records) == 1


def test_methods_that_the_library_loads_late_forget_nothing() -> None:
    code = """
import retrograd as torch
from retrograd.compiler import _compiled

forgotten = []
_compiled.Compiled.forget = lambda self: forgotten.append(self)
compiled = torch.compile(abs)
for name in dir(torch.Tensor):
    getattr(torch.Tensor, name, None)
assert not forgotten
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


TABLE = torch.arange(12.0).view(4, 3)
CHOOSING: dict[str, Callable[[Any], Any]] = {
    "index_fill": lambda index: TABLE.index_fill(0, index, 1.0),
    "index_fill of a vector": lambda index: torch.zeros(4).index_fill(0, index, 1.0),
    "index": lambda index: TABLE[index],
    "index_select": lambda index: TABLE.index_select(0, index),
    "index_select of columns": lambda index: TABLE.T.index_select(1, index),
    "gather": lambda index: TABLE.gather(0, index[:, None]),
    "index_add": lambda index: torch.zeros(4).index_add(0, index, torch.ones(len(index))),
    "take": lambda index: torch.arange(4.0).take(index),
    "put": lambda index: torch.zeros(4).put(index, torch.ones(len(index))),
    "embedding": lambda index: torch.nn.functional.embedding(index, TABLE),
}


@pytest.mark.parametrize("name", CHOOSING)
@pytest.mark.parametrize("count", [2, 40])
def test_indices_outside_are_refused_as_in_eager(name: str, count: int) -> None:
    choose = CHOOSING[name]
    compiled = torch.compile(choose, fullgraph=True)
    inside = torch.arange(count) % 4
    for index in (inside, inside.flip(0), 3 - inside):
        assert torch.equal(compiled(index), choose(index))
    for wrong in (4, -5, 100):
        outside = torch.cat([inside[1:], torch.tensor([wrong])])
        with pytest.raises((IndexError, RuntimeError)) as expected:
            choose(outside)
        with pytest.raises((IndexError, RuntimeError)) as found:
            compiled(outside)
        assert found.type is expected.type
        assert str(found.value).partition("\n")[0] == str(expected.value).partition("\n")[0]
