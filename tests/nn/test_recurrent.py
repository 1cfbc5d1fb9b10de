"""Recurrent modules against torch: numbers, gradients, parameters, seeds, texts."""

from __future__ import annotations

import copy
import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import nn
from tests.oracle import answer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

NETWORKS = {"RNN": 1, "LSTM": 2, "GRU": 1}  # how many states each has
LENGTHS = [2, 4, 1]


def states_of(module: Any, library: Any, batch: int | None, seed: int = 1) -> Any:
    """Return initial states of a module; a batch of None has no batch dimension."""
    rng = np.random.default_rng(seed)
    layers = module.num_layers * (2 if module.bidirectional else 1)
    made = []
    for width in (module.proj_size or module.hidden_size, module.hidden_size)[: NETWORKS[type(module).__name__]]:
        shape = (layers, width) if batch is None else (layers, batch, width)
        made.append(library.tensor(rng.standard_normal(shape).tolist(), dtype=library.float64, requires_grad=True))
    return tuple(made) if len(made) == 2 else made[0]


def flat(value: Any) -> list[Any]:
    """Return the tensors of a nested result."""
    if isinstance(value, tuple):
        return [one for part in value for one in flat(part)]
    return [] if value is None else [value]


def run(library: Any, name: str, kind: str, options: dict[str, Any], given: bool) -> list[np.ndarray]:
    """Return results and gradients of a network on one kind of input."""
    library.manual_seed(3)
    module = getattr(library.nn, name)(3, 2, dtype=library.float64, **options)
    rng = np.random.default_rng(0)
    shape = {"batch": (4, 3, 3), "single": (4, 3)}.get(kind, (4, 3, 3))
    if module.batch_first and len(shape) == 3:
        shape = (shape[1], shape[0], shape[2])
    x = library.tensor(rng.standard_normal(shape).tolist(), dtype=library.float64, requires_grad=True)
    given_x = x
    if kind == "packed":
        given_x = library.nn.utils.rnn.pack_padded_sequence(x, LENGTHS, module.batch_first, enforce_sorted=False)
    hx = states_of(module, library, None if kind == "single" else 3) if given else None
    results = [one for one in flat(module(given_x, hx)) if one.is_floating_point()]
    loss = sum(((k + 1) * one * one.sin()).sum() for k, one in enumerate(results))
    leaves = [x, *flat(hx), *module.parameters()]
    loss.backward()
    return [one.detach().numpy() for one in results] + [leaf.grad.numpy() for leaf in leaves]


@pytest.mark.parametrize(("name", "kind"), [*product(NETWORKS, ("batch", "single", "packed"))])
def test_numbers_and_gradients(name: str, kind: str) -> None:
    choices: list[dict[str, Any]] = [
        {},
        {"num_layers": 2, "bidirectional": True, "batch_first": True},
        {"bias": False, "bidirectional": True},
    ]
    if name == "LSTM":
        choices += [{"proj_size": 1, "num_layers": 2}, {"proj_size": 1, "bias": False, "bidirectional": True}]
    if name == "RNN":
        choices += [{"nonlinearity": "relu", "num_layers": 2}]
    for options, given in product(choices, (False, True)):
        ours, theirs = (run(library, name, kind, options, given) for library in (retrograd, torch))
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=f"{options} {given}")


PROGRAMS = [
    "{name}(3, 4)(x)",
    "{name}(3, 4, batch_first=True)(x)",
    "{name}(3, 4)(x[:, 0])",
    "{name}(3, 4, 2, dropout=0.5)(x)",
    "{name}(3, 4, 3, dropout=0.3, bidirectional=True)(x)",
    "{name}(3, 4, 2, dropout=0.5).eval()(x)",
    "{name}(3, 4, 2, dropout=1.0)(x)",
    "{name}(3, 4)(torch.nn.utils.rnn.pack_padded_sequence(x, [5, 3]))",
]
CELL_PROGRAMS = ["{name}(3, 4)(x[0])", "{name}(3, 4, False)(x[0])", "{name}(3, 4)(x[0, 0])"]


def numbers(library: Any, program: str) -> list[np.ndarray]:
    library.manual_seed(5)
    x = library.tensor(np.random.default_rng(0).standard_normal((5, 2, 3)).astype(np.float32))
    value = eval(program, {"torch": library, "x": x} | {n: getattr(library.nn, n) for n in (*NETWORKS, *CELLS)})
    return [*[one.detach().numpy() for one in flat(value)], library.rand(1).numpy()]


CELLS = ("RNNCell", "LSTMCell", "GRUCell")


@pytest.mark.parametrize("program", [p.format(name=n) for p, n in product(PROGRAMS, NETWORKS)])
def test_the_same_seed_gives_the_same_weights_and_draws(program: str) -> None:
    for one, other in zip(numbers(retrograd, program), numbers(torch, program), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", [p.format(name=n) for p, n in product(CELL_PROGRAMS, CELLS)])
def test_cells(program: str) -> None:
    for one, other in zip(numbers(retrograd, program), numbers(torch, program), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_initial_weights_are_equal_bit_for_bit() -> None:
    for name, options in product((*NETWORKS, *CELLS), ({}, {"bias": False}, {"dtype": "float64"})):
        states = []
        for library in (retrograd, torch):
            library.manual_seed(7)
            given = {key: getattr(library, value) if key == "dtype" else value for key, value in options.items()}
            states.append(getattr(library.nn, name)(3, 4, **given).state_dict())
        assert list(states[0]) == list(states[1])
        for key, value in states[0].items():
            assert value.tolist() == states[1][key].tolist(), f"{name} {key}"


SAID = [
    "nn.{name}(3, 4)",
    "nn.{name}(3, 4, num_layers=2, bias=False, batch_first=True, dropout=0.5, bidirectional=True)",
    "nn.{name}(3, 4, dropout=1.5)",
    "nn.{name}(3, 4, dropout=True)",
    "nn.{name}(3, 4, dropout='a')",
    "nn.{name}(3, 4, bias=1)",
    "nn.{name}(3, 4, batch_first=1)",
    "nn.{name}(3, 4, num_layers=0)",
    "nn.{name}(3, 4, num_layers=1.5)",
    "nn.{name}(3, 4, proj_size=-1)",
    "nn.{name}(3, 4, proj_size=4)",
    "nn.{name}(3.0, 4)",
    "nn.{name}(0, 4)",
    "nn.{name}(3, 'a')",
    "nn.{name}(3, -1)",
    "nn.{name}(3)",
    "nn.{name}()",
    "nn.{name}(3, 4, foo=1)",
    "nn.{name}(3, 4, mode='GRU')",
    "nn.{name}(3, 4, nonlinearity='tanh')",
    "nn.{name}(3, 4, nonlinearity='sin')",
    "nn.{name}(3, 4)(torch.zeros(1, 5, 2, 3))",
    "nn.{name}(3, 4)(torch.zeros(3))",
    "nn.{name}(3, 4)(torch.zeros(5, 2, 4))",
    "nn.{name}(3, 4)(torch.zeros(5, 4))",
    "nn.{name}(3, 4)(torch.zeros(5, 2, 3).double())",
    "nn.{name}(3, 4)(torch.zeros(5, 2, 3).long())",
    "nn.{name}(3, 4)(torch.zeros(0, 2, 3))",
    "nn.{name}(3, 4)(torch.zeros(5, 0, 3))[0].shape",
    "nn.{name}(3, 4)(None)",
    "nn.{name}(3, 4)(x, state(torch.zeros(1, 3, 4)))",
    "nn.{name}(3, 4)(x, state(torch.zeros(2, 4)))",
    "nn.{name}(3, 4)(x[:, 0], state(torch.zeros(1, 2, 4)))",
    "nn.{name}(3, 4)(x, ())",
    "[list(w.shape) for ws in nn.{name}(3, 4, 2, bidirectional=True).all_weights for w in ws]",
    "nn.{name}(3, 4, 2, bidirectional=True)._flat_weights_names",
    "nn.{name}.__constants__",
    "nn.{name}(3, 4).flatten_parameters()",
]
SAID_BY_CELLS = [
    "nn.{name}(3, 4)",
    "nn.{name}(3, 4, bias=False)",
    "nn.{name}(3, 0)",
    "nn.{name}(3, -4)",
    "nn.{name}(3, 4)(torch.zeros(1, 2, 3))",
    "nn.{name}(3, 4)(torch.zeros(()))",
    "nn.{name}(3, 4)(torch.zeros(2, 4))",
    "nn.{name}(3, 4)(torch.zeros(4))",
    "nn.{name}(3, 4)(torch.zeros(2, 3), state(torch.zeros(1, 2, 4)))",
    "nn.{name}(3, 4)(torch.zeros(2, 3), state(torch.zeros(3, 4)))",
    "nn.{name}(3, 4)(torch.zeros(2, 3), state(torch.zeros(2, 5)))",
    "nn.{name}(3, 4)(torch.zeros(2, 3), state(torch.zeros(4)))",
    "nn.{name}(3, 4)(torch.zeros(3), state(torch.zeros(1, 4)))",
    "nn.{name}(3, 4)(torch.zeros(2, 3).double())",
    "nn.{name}(3, 4)(torch.zeros(2, 3).long())",
    "nn.{name}(3, 4)(torch.zeros(2, 3), state(torch.zeros(2, 4).double()))",
    "nn.{name}.__constants__",
]
SAID_ONCE = [
    "nn.GRU(5, 4)(torch.nn.utils.rnn.pack_sequence([torch.zeros(2)]))",
    "nn.GRU(5, 4)(torch.nn.utils.rnn.pack_sequence([torch.zeros(2, 3)]))",
    "nn.RNN(3, 4, 2, 'relu', True, True, 0.1, True)",
    "nn.RNN(3, 4, 2, 'relu', True, True, 0.1, True, 1, 2, 3, 4)",
    "nn.RNN(3, 4, nonlinearity='relu').mode",
    "nn.RNN(3, 4, nonlinearity='relu').nonlinearity",
    "nn.LSTM(3, 4, proj_size=2)",
    "nn.LSTM(3, 4)(x, (torch.zeros(1, 2, 4), torch.zeros(1, 2, 5)))",
    "nn.LSTM(3, 4)(x, (torch.zeros(1, 2, 4), torch.zeros(1, 4)))",
    "nn.LSTM(3, 4)(x, torch.zeros(1, 2, 4))",
    "nn.LSTM(3, 4)(x, [torch.zeros(1, 2, 4)] * 2)[0].shape",
    "nn.GRU(3, 4)(x, [torch.zeros(1, 2, 4)])",
    "nn.RNNBase('X', 3, 4)",
    "nn.RNNBase('GRU', 3, 4)",
    "nn.RNNBase('GRU', 3, 4)(x)",
    "nn.RNNCellBase(3, 4, True, 2)",
    "nn.RNNCellBase(3, 4, True, 2)(x)",
    "nn.RNNCell(3, 4, nonlinearity='relu')",
    "nn.RNNCell(3, 4, False, 'relu')",
    "nn.RNNCell(3, 4, nonlinearity='x')(torch.zeros(2, 3))",
    "nn.LSTMCell(3, 4)(torch.zeros(2, 3), ())",
    "nn.GRUCell(3, 4)(torch.zeros(2, 3), ())",
    "torch.lstm(x, (torch.zeros(1, 2, 4),), [], True, 1, 0.0, False, False, False)",
    "torch.lstm(x, (torch.zeros(1, 2, 4),), [])",
    "torch.gru(x, torch.zeros(1, 2, 4), nn.GRU(3, 4)._flat_weights[:3], True, 1, 0.0, False, False, False)",
    "torch.gru(x, torch.zeros(1, 2, 4), nn.GRU(3, 4)._flat_weights, True, 2, 0.0, False, False, False)",
    "torch.gru(x, torch.zeros(1, 2, 4), nn.GRU(3, 4)._flat_weights, True, 1, 0.0, False, True, False)",
    "torch.gru(x, torch.zeros(1, 3, 4), nn.GRU(3, 4)._flat_weights, True, 1, 0.0, False, False, False)",
    "torch.gru(x, torch.zeros(1, 2, 4), nn.GRU(2, 4)._flat_weights, True, 1, 0.0, False, False, False)",
    "torch.rnn_tanh_cell(x[0], torch.zeros(2, 4), torch.zeros(5, 3), torch.zeros(4, 4))",
    "torch.rnn_tanh_cell(x[0], torch.zeros(2, 4), torch.zeros(4, 3), torch.zeros(5, 4))",
    "torch.rnn_tanh_cell(x[0], torch.zeros(2, 4), torch.zeros(4, 3), torch.zeros(4, 4), torch.zeros(5), torch.zeros(4))",
    "torch.rnn_relu_cell(x[0], torch.zeros(2, 4), torch.zeros(4, 3), torch.zeros(4, 4), None, torch.ones(4))",
    "torch.gru_cell([1], 2, 3, 4)",
]


@pytest.mark.parametrize(
    "program",
    [
        *[p.format(name=n) for p, n in product(SAID, NETWORKS)],
        *[p.format(name=n) for p, n in product(SAID_BY_CELLS, CELLS)],
        *SAID_ONCE,
    ],
)
def test_what_is_said(program: str) -> None:
    answers = []
    for library in (retrograd, torch):
        two = "LSTM" in program
        scope = {"nn": library.nn, "x": library.zeros(5, 2, 3), "state": lambda h, two=two: (h, h) if two else h}
        answers.append(answer(library, program, **scope))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("library", [retrograd, torch], ids=["retrograd", "torch"])
def test_dropout_between_no_layers_warns(library: Any) -> None:
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers greater than 1, but got dropout=0.5"):
        library.nn.GRU(3, 4, dropout=0.5)


def test_copies_and_pickles_are_independent() -> None:
    for name in NETWORKS:
        module = getattr(nn, name)(3, 4, 2, bidirectional=True)
        x = retrograd.ones(2, 1, 3)
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            assert other(x)[0].tolist() == module(x)[0].tolist()
            with retrograd.no_grad():
                other.weight_ih_l0.zero_()
            assert other._flat_weights[0] is other.weight_ih_l0
            assert other(x)[0].tolist() != module(x)[0].tolist()


def test_a_replaced_weight_is_used() -> None:
    module = nn.GRU(3, 4)
    x = retrograd.ones(2, 1, 3)
    zeros = {name: retrograd.zeros_like(value) for name, value in module.named_parameters()}
    assert retrograd.func.functional_call(module, zeros, (x,))[0].abs().sum() == 0
    for name in list(zeros):
        delattr(module, name)
        setattr(module, name, zeros[name])
    assert module(x)[0].abs().sum() == 0


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_state_of_torch_can_be_loaded() -> None:
    theirs = torch.nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    ours = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    ours.load_state_dict({name: retrograd.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((5, 2, 3)).astype(np.float32)
    with torch.no_grad(), retrograd.no_grad():
        np.testing.assert_allclose(
            ours(retrograd.tensor(x))[0].numpy(), theirs(torch.tensor(x))[0].numpy(), rtol=1e-5, atol=1e-6
        )


def test_writing_into_an_output_does_not_change_the_gradients() -> None:
    """The states that the backward reads are its own."""
    for name in NETWORKS:
        module = getattr(nn, name)(3, 4)
        x = retrograd.randn(4, 2, 3)
        module(x)[0].sum().backward()
        wanted = [parameter.grad.tolist() for parameter in module.parameters()]
        module.zero_grad()
        out = module(x)[0]
        total = out.sum()
        out.detach().zero_()
        total.backward()
        assert [parameter.grad.tolist() for parameter in module.parameters()] == wanted


def test_gradients_that_arrive_in_one_output_only() -> None:
    for at in range(3):
        grads = []
        for library in (retrograd, torch):
            library.manual_seed(1)
            module = library.nn.LSTM(3, 4, 2, dtype=library.float64)
            output, (h, c) = module(library.ones(3, 2, 3, dtype=library.float64))
            (output, h, c)[at].square().sum().backward()
            grads.append([parameter.grad.numpy() for parameter in module.parameters()])
        for one, other in zip(*grads, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_other_weights_can_be_given_to_a_recurrent_layer_and_the_parameters_stay() -> None:
    layer = nn.RNN(2, 3)
    given = retrograd.randn(4, 1, 2)
    other = nn.RNN(2, 3)
    layer._flat_weights = [one.detach() for one in other._flat_weights]
    assert retrograd.equal(layer(given)[0], other(given)[0])
    assert len(list(layer.parameters())) == 4
    layer.weight_ih_l0 = nn.Parameter(retrograd.zeros(3, 2))
    assert layer._flat_weights[0] is layer.weight_ih_l0
