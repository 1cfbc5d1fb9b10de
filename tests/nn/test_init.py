"""nn.init gives torch's numbers from torch's seed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import retrograd
from tests.nn.module_programs import said

SHAPES = [(3, 4), (20, 30), (4, 3, 5), (6, 2, 3, 3), (0, 3)]
CALLS = {
    "uniform": lambda init, t: init.uniform_(t, -1.0, 2.0),
    "normal": lambda init, t: init.normal_(t, 1.0, 0.1),
    "trunc_normal": lambda init, t: init.trunc_normal_(t, 0.5, 1.5, -1.0, 2.0),
    "constant": lambda init, t: init.constant_(t, 0.25),
    "ones": lambda init, t: init.ones_(t),
    "zeros": lambda init, t: init.zeros_(t),
    "eye": lambda init, t: init.eye_(t),
    "dirac": lambda init, t: init.dirac_(t),
    "dirac in groups": lambda init, t: init.dirac_(t, 2),
    "xavier_uniform": lambda init, t: init.xavier_uniform_(t, 2.0),
    "xavier_normal": lambda init, t: init.xavier_normal_(t),
    "kaiming_uniform": lambda init, t: init.kaiming_uniform_(t, 0.1),
    "kaiming_uniform tanh": lambda init, t: init.kaiming_uniform_(t, mode="fan_out", nonlinearity="tanh"),
    "kaiming_normal": lambda init, t: init.kaiming_normal_(t, nonlinearity="relu"),
    "kaiming mode": lambda init, t: init.kaiming_normal_(t, mode="sideways"),
    "kaiming nonlinearity": lambda init, t: init.kaiming_normal_(t, nonlinearity="wavy"),
    "orthogonal": lambda init, t: init.orthogonal_(t, 0.5),
    "sparse": lambda init, t: init.sparse_(t, 0.4),
    "old name": lambda init, t: init.xavier_uniform(t),
}


def _filled(library, name: str, shape: tuple[int, ...]):
    library.manual_seed(3)
    given = library.full(shape, 9.0, requires_grad=True)
    result = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = said(lambda: result.append(CALLS[name](library.nn.init, given)))
    messages = [str(w.message) for w in caught]
    return text, messages, given.detach().numpy().copy(), not result or result[0] is given, given.is_leaf


@pytest.mark.oracle
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("shape", [(3,), *SHAPES], ids=str)
def test_equals_torch(name: str, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    shown = [_filled(library, name, shape) for library in (retrograd, torch)]
    ours, theirs = shown
    assert ours[:2] == theirs[:2]
    assert ours[3:] == theirs[3:]
    np.testing.assert_allclose(ours[2], theirs[2], rtol=2e-5, atol=2e-6)


def test_orthogonal_is_orthogonal() -> None:
    retrograd.manual_seed(0)
    w = retrograd.nn.init.orthogonal_(retrograd.empty(5, 8))
    np.testing.assert_allclose((w @ w.t()).numpy(), np.eye(5), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "param", "gain"), [("tanh", None, 5 / 3), ("relu", None, 2**0.5), ("leaky_relu", 1, 1.0), ("conv2d", 3, 1)]
)
def test_gain(name: str, param: float | None, gain: float) -> None:
    assert retrograd.nn.init.calculate_gain(name, param) == pytest.approx(gain)
