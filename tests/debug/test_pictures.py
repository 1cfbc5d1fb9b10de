"""Pictures of gradients, activations and losses, and the tables behind them."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import debug, nn


def model() -> nn.Sequential:
    retrograd.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Dropout(0.5))


def loss_of(network: Any) -> Any:
    x = retrograd.linspace(-1, 1, 24).reshape(6, 4)
    return lambda: (network(x) ** 2).mean()


def test_activations_are_measured() -> None:
    network, x = model().eval(), retrograd.randn(50, 4)
    with retrograd.no_grad():
        network[0].bias.fill_(-100.0)
    found = debug.activations(network, x)
    assert [(row.name, row.kind, row.shape) for row in found] == [
        ("0", "Linear", (50, 8)), ("1", "ReLU", (50, 8)), ("2", "Linear", (50, 3)), ("3", "Dropout", (50, 3)),
    ]  # fmt: skip
    expected = network[0](x).detach().numpy()
    assert found["0"].mean == pytest.approx(expected.mean(), rel=1e-5)
    assert found["0"].std == pytest.approx(expected.std(), rel=1e-4)
    assert found["0"].counts.sum() == 400
    assert (found["1"].zeros, found["1"].remark) == (1.0, "100% zero")
    assert found["1"] in found.problems
    assert "100% zero" in repr(found)
    assert not network[0]._forward_hooks
    assert found["0"].remark == ""


def test_activations_that_are_no_numbers() -> None:
    class Broken(nn.Module):
        def forward(self, x: Any) -> Any:
            return x / retrograd.tensor([0.0, 1.0, 2.0])

    found = debug.activations(Broken(), retrograd.tensor([0.0, 1.0, 1.0]))
    assert (found["model"].nans, found["model"].infinities, found["model"].remark) == (1, 0, "1 NaN")
    with pytest.raises(TypeError, match="model must be a Module, not int"):
        debug.activations(3)


def test_activations_leave_the_random_state() -> None:
    network, state = model(), retrograd.get_rng_state()
    debug.activations(network, retrograd.ones(2, 4))
    assert retrograd.equal(state, retrograd.get_rng_state())


def test_losses_around_a_model() -> None:
    network = model()
    loss = loss_of(network)
    before = [one.detach().clone() for one in network.parameters()]
    state = retrograd.get_rng_state()
    found = debug.loss_landscape(network, loss, points=5, reach=0.5)
    assert all(retrograd.equal(one, other) for one, other in zip(before, network.parameters(), strict=True))
    assert retrograd.equal(state, retrograd.get_rng_state())
    assert found.losses.shape == (5, 5)
    np.testing.assert_allclose(found.steps, [-0.5, -0.25, 0, 0.25, 0.5])
    again = debug.loss_landscape(network, loss, points=5, reach=0.5)
    np.testing.assert_array_equal(found.losses, again.losses)  # dropout draws the same numbers each time
    assert found.losses[2, 2] == pytest.approx(loss().item())
    other = debug.loss_landscape(network, loss, points=5, reach=0.5, seed=1)
    assert not np.array_equal(found.losses, other.losses)
    assert "5 x 5 losses" in repr(found)


def test_a_step_moves_each_filter_by_its_norm() -> None:
    network = nn.Linear(3, 2)
    seen = []
    start = network.weight.detach().clone()
    bias = network.bias.detach().clone()

    def loss() -> Any:
        seen.append(network.weight.detach().clone())
        assert retrograd.equal(network.bias, bias)
        return network.weight.sum()

    debug.loss_landscape(network, loss, points=2, directions=1, reach=1.0)
    for moved in seen:
        retrograd.testing.assert_close((moved - start).norm(dim=1), start.norm(dim=1))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: debug.loss_landscape(3, lambda: 0), TypeError, "model must be a Module, not int"),
        (lambda: debug.loss_landscape(model(), lambda: 0, directions=3), ValueError, "directions must be 1 or 2"),
        (lambda: debug.loss_landscape(model(), lambda: 0, points=1), ValueError, "points must be a number of steps"),
        (lambda: debug.loss_landscape(nn.ReLU(), lambda: 0), ValueError, "there is nothing to move"),
        (lambda: debug.loss_landscape(model(), 3), TypeError, "loss must be a function without arguments"),
        (
            lambda: debug.loss_landscape(model(), lambda: retrograd.ones(4, 2)),
            ValueError,
            r"loss\(\) must return one number, but returned a tensor of shape \[4, 2\]\nHint: reduce it first",
        ),
        (
            lambda: debug.loss_landscape(model(), lambda: None),
            TypeError,
            "must return one number, but returned NoneType",
        ),
    ],
)
def test_what_is_refused(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_a_failing_loss_puts_parameters_back() -> None:
    network = model()
    before = [one.detach().clone() for one in network.parameters()]
    with pytest.raises(ZeroDivisionError):
        debug.loss_landscape(network, lambda: 1 / 0)
    assert all(retrograd.equal(one, other) for one, other in zip(before, network.parameters(), strict=True))


def test_pictures_are_drawn(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    network = model()
    loss_of(network)().backward()
    network[2].bias.grad = retrograd.full((3,), float("nan"))
    network[0].weight.grad = None
    pictures = {
        "flow": debug.gradient_flow(network, plot=True),
        "layers": debug.activations(network, retrograd.ones(2, 4), plot=True),
        "map": debug.loss_landscape(network, loss_of(network), points=3, plot=True),
        "curve": debug.loss_landscape(network, loss_of(network), points=3, directions=1, plot=True),
    }
    titles = {name: [axes.get_title() for axes in figure.axes] for name, figure in pictures.items()}
    assert titles["flow"] == ["gradients by parameter"]
    assert titles["layers"] == ["outputs, from least to greatest (dotted: zero)", "standard deviation"]
    assert titles["map"][0] == titles["curve"][0] == "loss around the model"
    shown = [text.get_text().strip() for text in pictures["flow"].axes[0].texts]
    assert shown == ["not reached by backward", "3 NaN"]
    ranges = [text.get_text() for text in pictures["layers"].axes[0].texts]
    assert len(ranges) == 2 * len(list(network.children()))  # the least and the greatest value of each layer
    for figure in pictures.values():  # what a notebook asks for
        assert figure._repr_png_().startswith(b"\x89PNG")
    debug.gradient_flow(network, path=tmp_path / "flow.png")
    debug.activations(network, retrograd.ones(2, 4), path=str(tmp_path / "layers.svg"))
    assert (tmp_path / "flow.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "layers.svg").stat().st_size > 1000


# ---- what is needed ----
def without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refusing(module: str, *given: Any, **named: Any) -> Any:
        if module.partition(".")[0] == name:
            raise ImportError(f"No module named {name!r}")
        return real(module, *given, **named)

    monkeypatch.setattr(builtins, "__import__", refusing)


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    without("matplotlib", monkeypatch)
    with pytest.raises(ImportError, match=r"pictures need matplotlib: pip install matplotlib"):
        debug.gradient_flow(model(), plot=True)


def test_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    without("tqdm", monkeypatch)
    with pytest.raises(ImportError, match=r"progress bars need tqdm: pip install tqdm"):
        debug.progress()


# ---- progress ----
@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Return what bars were shown, and how far they went, instead of showing them."""
    seen: list[tuple[str, int]] = []

    def bar(things: Any, *, desc: str, total: int | None, delay: float, leave: bool) -> Any:
        assert delay == 1  # what is done within a second shows nothing
        things = list(things)
        assert total in (None, len(things))
        seen.append((desc, len(things)))
        return things

    monkeypatch.setattr("retrograd._progress._tqdm", lambda: bar)
    return seen


def test_bars_are_shown_when_asked(bars: list[tuple[str, int]]) -> None:
    x = retrograd.ones(3, dtype=retrograd.float64, requires_grad=True)

    def work() -> None:
        retrograd.autograd.gradcheck(lambda v: v**2, x)
        retrograd.autograd.functional.jacobian(lambda v: v**2, x)
        retrograd.vmap(lambda v: v**2, chunk_size=2)(x)
        retrograd.func.jacrev(lambda v: v**2, chunk_size=1)(x)
        retrograd.func.jacrev(lambda v: v**2, chunk_size=2)(x)
        debug.loss_landscape(model(), lambda: 0, points=2)

    work()
    assert bars == []
    with debug.progress():
        work()
    names = dict(bars)
    assert names == {
        "gradcheck: differences": 3,
        "gradcheck: backward": 3,
        "jacobian: rows": 3,
        "vmap: chunks": 2,
        "jacrev: rows": 3,
        "loss landscape": 4,
    }
    count = len(bars)
    work()
    assert len(bars) == count
    debug.progress()
    work()
    assert len(bars) > count
    debug.progress(False)


def test_hessians_show_bars(bars: list[tuple[str, int]]) -> None:
    with debug.progress():
        retrograd.autograd.functional.hessian(lambda v: (v**3).sum(), retrograd.ones(4))
    assert ("jacobian: rows", 4) in bars


def test_a_real_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    monkeypatch.setattr("retrograd._progress.DELAY_S", 0)
    with debug.progress():
        debug.loss_landscape(model(), lambda: 0, points=2)
    assert "loss landscape" in capsys.readouterr().err
