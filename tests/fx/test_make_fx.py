"""make_fx: the code of traced functions, compared with torch's, and what it computes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import retrograd
import retrograd as rg
from retrograd.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from tests.dispatch.programs import drawn

aten: Any = retrograd.ops.aten


def written(t: Any, x: Any) -> Any:
    y = x.clone()
    y[0] = 1.0
    y.add_(2)
    return y.view(-1)[1:3]


def trained(t: Any, p: Any, x: Any) -> Any:
    loss = t.nn.functional.linear(x, p["weight"], p["bias"]).pow(2).mean()
    return t.autograd.grad(loss, list(p.values()))


def kept(t: Any, x: Any) -> Any:
    x.sin()
    x.max(1)
    return x.cos().detach(), 5, t.tensor([1.0, 2.0])


PROGRAMS: dict[str, Callable[..., Any]] = {
    "one": lambda t, x: x.sin(),
    "two": lambda t, x, y: (x + y, x * 2 - y),
    "linear": lambda t, x, w, b: t.nn.functional.linear(x, w, b).relu(),
    "softmax": lambda t, x: t.nn.functional.softmax(x, -1).sum(0, keepdim=True),
    "loss": lambda t, x, labels: t.nn.functional.cross_entropy(x, labels),
    "several": lambda t, x: x.max(1),
    "parts": lambda t, x: x.split(2, 1)[1],
    "made": lambda t, x: x + t.zeros(4) + t.ones_like(x) + t.arange(4),
    "dict": lambda t, d: {"o": d["a"].cos()},
    "numbers": lambda t, x, n: x * n,
    "written": written,
    "kept": kept,
    "trained": trained,
    "gradient": lambda t, x: t.func.grad(lambda x: (x**2).sum())(x),
    "gradient of a layer": lambda t, w, x: t.func.grad(lambda w, x: t.nn.functional.linear(x, w).tanh().sum())(w, x),
    "samples": lambda t, x: t.func.vmap(lambda x: x.sin() + 1)(x),
    "sums of samples": lambda t, x: t.func.vmap(lambda x: (x * x).sum())(x),
}


def arguments(t: Any, name: str) -> tuple[Any, ...]:
    x = drawn(t, 3, 4).detach()
    w, b = drawn(t, 5, 4).detach(), drawn(t, 5).detach()
    layer = {"weight": drawn(t, 2, 4), "bias": drawn(t, 2)}
    known: dict[str, tuple[Any, ...]] = {
        "two": (x, drawn(t, 3, 4).detach()),
        "linear": (x, w, b),
        "loss": (x, t.tensor([0, 1, 2])),
        "dict": ({"a": x},),
        "numbers": (x, 3),
        "trained": (layer, x),
        "gradient of a layer": (w, x),
    }
    return known.get(name, (x,))


def traced(t: Any, name: str, **options: Any) -> Any:
    proxies = importlib.import_module(f"{t.__name__}.fx.experimental.proxy_tensor")
    program = PROGRAMS[name]
    names = program.__code__.co_varnames[1 : program.__code__.co_argcount]
    scope: dict[str, Any] = {"program": program, "t": t}
    function = eval(f"lambda {', '.join(names)}: program(t, {', '.join(names)})", scope)
    return proxies.make_fx(function, **options)(*arguments(t, name))


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_code_is_torchs(name: str, mode: str) -> None:
    torch = pytest.importorskip("torch")
    if mode == "fake" and name in ("written", "kept", "samples", "sums of samples"):
        pytest.skip("torch keeps constants that are fake otherwise")
    assert traced(rg, name, tracing_mode=mode).code == traced(torch, name, tracing_mode=mode).code


def flat(value: Any) -> list[Any]:
    leaves = rg.utils._pytree.tree_leaves(value)
    return [one.detach().tolist() if isinstance(one, rg.Tensor) else one for one in leaves]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_traced_computes_the_same(name: str) -> None:
    module, args = traced(rg, name), arguments(rg, name)
    assert flat(module(*args)) == flat(PROGRAMS[name](rg, *arguments(rg, name)))


def test_nothing_is_computed_with_fake_tensors() -> None:
    seen: list[bool] = []

    def function(x: Any) -> Any:
        y = x.exp()
        seen.append(y.is_meta)
        return y

    module = make_fx(function, tracing_mode="fake")(rg.zeros(2))
    assert seen == [True]
    assert module(rg.zeros(2)).tolist() == [1.0, 1.0]


def test_tensors_from_outside_become_attributes() -> None:
    layer, constant = rg.nn.Linear(4, 2), rg.ones(2)
    module = make_fx(lambda x: layer(x) + constant)(rg.ones(3, 4))
    names = [node.target for node in module.graph.nodes if node.op == "get_attr"]
    assert names == ["_param_constant0", "_param_constant1", "_tensor_constant0"]
    assert module(rg.ones(3, 4)).tolist() == (layer(rg.ones(3, 4)) + constant).tolist()


def test_a_value_cannot_be_asked_for() -> None:
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(lambda x: x * x.sum().item())(rg.ones(2))
    assert get_proxy_mode() is None


def test_operations_are_replaced_by_a_table() -> None:
    module = make_fx(lambda x: x.sin(), decomposition_table={aten.sin.default: lambda x: x.cos() + 1})(rg.ones(2))
    targets = [node.target for node in module.graph.nodes if node.op == "call_function"]
    assert targets == [aten.cos.default, aten.add.Tensor]


def test_samples_without_a_rule_are_one_operation() -> None:
    module = make_fx(rg.func.vmap(lambda x: x.sort()[0]))(rg.ones(2, 3))
    assert module(rg.tensor([[2.0, 1.0, 3.0], [6.0, 5.0, 4.0]])).tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_batches_along_other_dimensions() -> None:
    x, y = rg.arange(6.0).reshape(2, 3), rg.arange(6.0).reshape(2, 3).flip(0)
    function = rg.func.vmap(lambda a: a.cumsum(0), in_dims=1, out_dims=1)
    assert make_fx(function)(x)(y).tolist() == function(y).tolist()


def test_a_computation_beside_all_operations_is_refused() -> None:
    def function(x: Any) -> Any:
        return rg.nn.utils.rnn.pack_padded_sequence(x, [3, 2]).data * 2

    with pytest.raises(NotImplementedError, match="by no operation that the trace sees"):
        make_fx(function)(rg.ones(3, 2, 2))


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(AssertionError, match="Unexpected tracing type: other"):
        make_fx(lambda x: x, tracing_mode="other")


WITHOUT_A_RULE = {
    "quantile": (lambda x: rg.quantile(x, 0.5), (3, 4)),
    "unfold": (lambda x: rg.nn.functional.unfold(x, 2), (2, 1, 3, 4, 4)),
    "embedding_bag": (lambda x: rg.nn.functional.embedding_bag(rg.tensor([[0, 1]]), x), (2, 3, 4)),
    "stft": (lambda x: rg.stft(x, 8, return_complex=True, window=rg.ones(8)), (2, 32)),
    "grid_sample": (
        lambda x: rg.nn.functional.grid_sample(x, rg.zeros(1, 2, 2, 2), align_corners=True),
        (2, 1, 1, 4, 4),
    ),
}


@pytest.mark.parametrize("name", WITHOUT_A_RULE)
def test_functions_of_samples_give_what_they_give_outside_of_a_trace(name: str) -> None:
    function, shape = WITHOUT_A_RULE[name]
    mapped = rg.func.vmap(function)
    x, y = rg.randn(*shape), rg.randn(*shape)
    found = make_fx(mapped)(x)(y)
    assert isinstance(found, rg.Tensor)
    assert rg.equal(found, mapped(y))


def test_samples_of_samples_are_one_tensor() -> None:
    mapped = rg.func.vmap(rg.func.vmap(lambda x: rg.quantile(x, 0.5)))
    x = rg.randn(2, 3, 4)
    assert rg.equal(make_fx(mapped)(rg.ones(2, 3, 4))(x), mapped(x))
