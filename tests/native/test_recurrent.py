"""Recurrent layers of sizes at which a kernel computes the gates of a step: values and gradients against torch and against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd._native import machine
from retrograd._native.program import formula
from retrograd._ops import recurrent

LENGTHS = [9, 9, 7, 4, 1]
LAYERS: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM": ("LSTM", {}),
    "LSTM without biases": ("LSTM", {"bias": False}),
    "LSTM in both directions": ("LSTM", {"bidirectional": True}),
    "LSTM of two layers": ("LSTM", {"num_layers": 2}),
    "LSTM with a projection": ("LSTM", {"proj_size": 19, "bidirectional": True}),
    "GRU": ("GRU", {}),
    "GRU without biases": ("GRU", {"bias": False}),
    "GRU in both directions": ("GRU", {"bidirectional": True}),
    "RNN": ("RNN", {}),
}


def numbers(library: Any, layer: str, dtype: str, packed: bool, hidden: int = 67) -> list[np.ndarray]:
    """Run a layer and return its outputs, its last states and all gradients."""
    kind, options = LAYERS[layer]
    draws = np.random.default_rng(3)
    module = getattr(library.nn, kind)(23, hidden, **options).to(getattr(library, dtype))

    def drawn(*shape: int) -> Any:
        return library.from_numpy(draws.normal(size=shape).astype(dtype))

    with library.no_grad():
        for parameter in module.parameters():
            parameter.copy_(drawn(*parameter.shape) * 0.2)
    x = drawn(max(LENGTHS), len(LENGTHS), 23).requires_grad_(True)
    given: Any = library.nn.utils.rnn.pack_padded_sequence(x, library.tensor(LENGTHS)) if packed else x
    out, states = module(given)
    values = [out.data if packed else out, *(states if kind == "LSTM" else (states,))]
    weights = [drawn(*value.shape) for value in values]
    sum((value * weight).sum() for value, weight in zip(values, weights, strict=True)).backward()
    found = [*values, x.grad, *[parameter.grad for parameter in module.parameters()]]
    return [value.detach().numpy() for value in found]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("packed", [False, True], ids=["all entries", "packed"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layer", LAYERS)
def test_values_and_gradients_are_those_of_torch(layer: str, dtype: str, packed: bool) -> None:
    torch = pytest.importorskip("torch")
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    for ours, theirs in zip(numbers(rg, layer, dtype, packed), numbers(torch, layer, dtype, packed), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("packed", [False, True], ids=["all entries", "packed"])
@pytest.mark.parametrize("layer", LAYERS)
def test_kernels_compute_what_numpy_computes(layer: str, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    by_kernels = numbers(rg, layer, "float64", packed)
    monkeypatch.setattr(recurrent, "NATIVE_SLOW", 1 << 60)
    for one, other in zip(by_kernels, numbers(rg, layer, "float64", packed), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.skipif(not machine.is_available(), reason="needs kernels")
@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
def test_gates_of_these_sizes_have_kernels(layer: str) -> None:
    numbers(rg, layer, "float32", packed=False, hidden=71)
    for gates in (getattr(recurrent, f"{layer.lower()}_gates{side}") for side in ("", "_back")):
        assert any(plan is not None for plan in gates.plans.values()), gates.refused


@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
def test_one_unit_and_one_entry_and_one_step(layer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for sizes in ((1, 1, 1), (5, 1, 1), (1, 4, 1), (1, 1, 4), (3, 1, 4), (3, 4, 1)):
        steps, batch, hidden = sizes
        module = getattr(rg.nn, layer)(2, hidden)
        x = rg.randn(steps, batch, 2)
        expected = module(x)[0].numpy(force=True)
        monkeypatch.setattr(recurrent, "NATIVE_SLOW", 1)
        np.testing.assert_allclose(module(x)[0].numpy(force=True), expected, rtol=1e-5, atol=1e-6)
        monkeypatch.undo()


@pytest.mark.skipif(not machine.is_available(), reason="needs kernels")
@pytest.mark.parametrize("apart", [1, 2])
def test_parts_of_arrays_are_computed_one_after_the_other(apart: int) -> None:
    @formula
    def line(xp: Any, x: Any, y: Any) -> Any:
        return x * 2 + y, x - y

    x, y = np.arange(60.0).reshape(3, 4, 5), np.arange(5.0)
    outs = np.zeros((4, 3, 5)).swapaxes(0, 1), np.zeros((4, 5))  # one in another order, one that all parts share
    kernel = line.repeated(outs, x, y, apart=apart)
    kernel(0, 1)
    first = outs[0].reshape(-1, 5)[: 4 if apart == 1 else 1]
    np.testing.assert_array_equal(first, (x * 2 + y).reshape(-1, 5)[: len(first)])
    assert np.count_nonzero(outs[0]) == np.count_nonzero(first)
    kernel(1, 3 if apart == 1 else 12)
    np.testing.assert_array_equal(outs[0], x * 2 + y)
    np.testing.assert_array_equal(outs[1], x[-1] - y)


@pytest.mark.skipif(not machine.is_available(), reason="llvmlite is not installed")
def test_memory_of_another_dtype_is_not_written() -> None:
    @formula
    def line(xp: Any, x: Any, y: Any) -> Any:
        return x + y

    x = np.ones((4, 20_000))
    assert line.repeated([np.empty(x.shape)], x, x, apart=1) is not None
    assert line.repeated([np.empty(x.shape, np.float32)], x, x, apart=1) is None
    assert line.prepared((0,), 0, x[0], x[0]) is not None
    assert line.prepared((0,), 0, x[0].astype(np.float32), x[0]) is None
