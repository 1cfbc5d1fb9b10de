"""Activations against torch: modules, their repr, kinks and special values, in-place forms, errors and warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import retrograd
from tests.oracle import answer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

MODULES = """Threshold(.1,20) Threshold(.1,20,True) ReLU() ReLU(inplace=True) RReLU() RReLU(.1,.3,True) Hardtanh() Hardtanh(-2,2,True)
Hardtanh(2,1) ReLU6() ReLU6(True) Sigmoid() Hardsigmoid() Hardsigmoid(True) Tanh() SiLU() SiLU(True) Mish() Mish(True) Hardswish()
Hardswish(True) ELU() ELU(2.,True) CELU() CELU(2.,True) SELU() SELU(True) GLU() GLU(1) GELU() GELU('tanh') Hardshrink()
Hardshrink(.3) LeakyReLU() LeakyReLU(.2,True) LogSigmoid() Softplus() Softplus(2,10) Softshrink() Softshrink(.2) PReLU()
PReLU(3,.1) Softsign() Tanhshrink() Softmin() Softmin(1) Softmax() Softmax(dim=1) Softmax2d() LogSoftmax() LogSoftmax(-1)
Sigmoid(3) Softmax2d()(torch.ones(2,3))""".split()  # noqa: SIM905 - names read better as text
PROGRAMS = """
F.celu(torch.ones(2), 0)
F.softshrink(torch.ones(2), -1.)
F.gelu(torch.ones(2), approximate='x')
F.hardtanh(torch.ones(2), 2, 1)
F.hardtanh(torch.ones(2).long(), -1.5, 1.5)
F.hardtanh(torch.ones(2, dtype=torch.uint8))
F.glu(torch.ones(3))
F.glu(torch.tensor(1.))
F.prelu(torch.ones(2, 3), torch.ones(2))
F.prelu(torch.ones(3), torch.ones(3))
F.prelu(torch.tensor(1.), torch.ones(3))
F.prelu(torch.ones(2, 3), torch.ones(1, 3))
F.prelu(torch.ones(2, 3), torch.ones(3).double())
F.rrelu(torch.ones(2), .5, .2)
F.leaky_relu(torch.ones(2), 'a')
F.gelu(3)
F.relu(3)
F.elu(3)
F.softplus('a')
F.hardtanh(3)
F.silu(torch.ones(2, dtype=torch.complex64, requires_grad=True))
torch.prelu(torch.tensor([-1., 2.]), torch.tensor(.5))
torch.tensor([-1., 2.]).hardshrink(1.5)
torch.celu(torch.tensor([-1., 2.]), 2.)
torch.threshold_(torch.tensor([-1., 2.]), .5, 3.)
torch.rrelu(torch.tensor([-1., 2.]))
""".strip().splitlines()
IN_PLACE = """F.elu_(x) F.selu_(x) F.celu_(x) F.leaky_relu_(x) F.hardtanh_(x) F.threshold_(x,.1,.2) F.rrelu_(x) F.silu(x,True)
F.mish(x,True) F.hardswish(x,True) F.hardsigmoid(x,True) F.relu6(x,True) F.relu_(x) F.elu(x,.5,True)""".split()  # noqa: SIM905
CURVES = """relu relu6 elu selu celu silu mish softplus softshrink hardshrink hardtanh hardswish hardsigmoid leaky_relu rrelu logsigmoid
softsign tanhshrink""".split()  # noqa: SIM905
KINKS = [-3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0, 20.0, 100.0, float("nan")]


@pytest.mark.parametrize("text", MODULES)
def test_repr(text) -> None:
    assert answer(retrograd, f"torch.nn.{text}") == answer(torch, f"torch.nn.{text}")


@pytest.mark.parametrize("program", PROGRAMS)
def test_answers(program) -> None:
    ours = answer(retrograd, program, F=retrograd.nn.functional)
    assert ours == answer(torch, program, F=torch.nn.functional)


@pytest.mark.parametrize("program", IN_PLACE)
def test_in_place(program) -> None:
    found = []
    for library in (retrograd, torch):
        x = library.tensor([-1.5, -0.2, 0.3, 2.0], requires_grad=True)
        y = x * 1
        out = eval(program, {"F": library.nn.functional, "x": y})
        out.backward(library.ones(4))
        assert out is y
        found.append((out.grad_fn.name(), out._version, np.array(out.tolist()), np.array(x.grad.tolist())))
    assert found[0][:2] == found[1][:2]
    np.testing.assert_allclose(found[0][2:], found[1][2:], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CURVES)
def test_kinks(name, dtype) -> None:
    found = []
    for library in (retrograd, torch):
        x = library.tensor(KINKS, dtype=getattr(library, dtype), requires_grad=True)
        y = getattr(library.nn.functional, name)(x)
        y.sum().backward()
        found.append((y.tolist(), x.grad.tolist()))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["silu", "mish", "gelu", "elu", "softplus", "leaky_relu", "relu", "selu", "hardswish"])
def test_large_arrays_are_computed_as_small_ones(name) -> None:
    values = np.random.default_rng(0).normal(size=100_000).astype(np.float32) * 3
    results = []
    for parts in (1, 100):
        out, grads = [], []
        for piece in np.split(values, parts):
            x = retrograd.tensor(piece, requires_grad=True)
            y = getattr(retrograd.nn.functional, name)(x)
            y.backward(retrograd.full_like(y, 2.0))
            out.append(y.detach().numpy())
            grads.append(x.grad.numpy())
        results.append((np.concatenate(out), np.concatenate(grads)))
    np.testing.assert_allclose(results[0], results[1], rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["silu", "gelu", "elu", "softplus", "leaky_relu"])
def test_extremes_among_many_numbers_are_as_among_few(name) -> None:
    extremes = np.array([0.0, -0.0, 1e-30, 5.5, -5.5, 17, 25, 60, -60, 100, -100, 1e20, -1e20, np.inf, -np.inf, np.nan])
    results = []
    for padding in (0, 5000):
        x = retrograd.tensor(np.concatenate([extremes, np.ones(padding)]).astype(np.float32), requires_grad=True)
        y = getattr(retrograd.nn.functional, name)(x)
        y.backward(retrograd.full_like(y, 2.0))
        results.append((y.detach().numpy()[:16], x.grad.numpy()[:16]))
    np.testing.assert_allclose(results[0], results[1], rtol=2e-6, atol=1e-6)


def test_rrelu_draws_torchs_slopes() -> None:
    drawn = []
    for library in (retrograd, torch):
        library.manual_seed(5)
        x = library.tensor([-1.0, 2.0, -3.0, 0.0, 4.0, -5.0])
        drawn.append([library.nn.functional.rrelu(x, training=True).tolist() for _ in range(3)])
    np.testing.assert_allclose(drawn[0], drawn[1], rtol=3e-7)  # of the same draws; torch multiplies in float64


@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_softmax(hard) -> None:
    found = []
    for library in (retrograd, torch):
        library.manual_seed(2)
        x = library.tensor([[0.1, 0.7, -1.0], [2.0, 0.0, 1.0]], requires_grad=True)
        y = library.nn.functional.gumbel_softmax(x, tau=0.8, hard=hard)
        y[:, 0].sum().backward()
        found.append((y.tolist(), x.grad.tolist()))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "softmin", "log_softmax"])
def test_implicit_dimension(name) -> None:
    texts = []
    for library in (retrograd, torch):
        for shape in ((3,), (2, 3), (2, 3, 2)):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                out = getattr(library.nn.functional, name)(library.ones(shape))
            texts.append((str(seen[0].message), np.round(out.sum().item(), 4)))
    assert texts[:3] == texts[3:]


@pytest.mark.parametrize("name", ["hardtanh", "relu6", "hardshrink", "softshrink"])
def test_the_slope_of_straight_pieces_has_a_derivative_of_zero(name: str) -> None:
    x = retrograd.tensor([-4.0, -0.1, 0.2, 3.0], requires_grad=True)
    (slope,) = retrograd.autograd.grad(getattr(retrograd.nn.functional, name)(x).sum(), x, create_graph=True)
    assert slope.requires_grad
    assert retrograd.autograd.grad(slope.sum(), x)[0].tolist() == [0.0] * 4
