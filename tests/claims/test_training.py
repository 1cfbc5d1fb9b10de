"""Whole training loops, and looking at their gradients."""

from __future__ import annotations

import math
import warnings

import pytest


def classes(torch, seed=0):
    """Make three clouds of points, their labels, and a small network."""
    torch.manual_seed(seed)
    labels = torch.arange(60) % 3
    points = torch.randn(60, 4) + 3 * torch.nn.functional.one_hot(labels, 4)
    nn = torch.nn
    return points, labels, nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))


class Loop:
    """A loop as tutorials write it: training records, evaluation does not."""

    def __init__(self, torch, model, optimizer):
        self.torch, self.model, self.optimizer = torch, model, optimizer
        self.criterion = torch.nn.CrossEntropyLoss()

    def train_step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def evaluate(self, x, y):
        with self.torch.no_grad():
            out = self.model(x)
            return self.criterion(out, y).item(), (out.argmax(1) == y).float().mean().item()

    def gradients(self, x, y):
        self.optimizer.zero_grad()
        self.criterion(self.model(x), y).backward()
        return {name: p.grad.clone() for name, p in self.model.named_parameters() if p.grad is not None}


def test_a_training_loop_learns(torch):
    x, y, model = classes(torch)
    loop = Loop(torch, model, torch.optim.SGD(model.parameters(), lr=0.1))
    losses = [loop.train_step(x, y) for _ in range(60)]
    assert losses[-1] < 0.2 * losses[0]
    loss, accuracy = loop.evaluate(x, y)
    assert accuracy > 0.9
    assert loss <= losses[-1]
    before = [p.detach().clone() for p in model.parameters()]
    found = loop.gradients(x, y)
    assert set(found) == {name for name, _ in model.named_parameters()}
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))  # looked at, not moved


@pytest.mark.oracle
def test_the_same_seed_gives_the_same_losses():
    found = []
    for library in (pytest.importorskip("torch"), pytest.importorskip("retrograd")):
        x, y, model = classes(library)
        loop = Loop(library, model, library.optim.Adam(model.parameters(), lr=0.01))
        found.append([loop.train_step(x, y) for _ in range(20)])
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_a_step_goes_against_the_gradient(torch):
    w = torch.tensor([3.0, -2.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    (w**2).sum().backward()
    optimizer.step()
    assert torch.allclose(w.detach(), torch.tensor([3.0 - 0.6, -2.0 + 0.4]))
    assert w.requires_grad
    assert w.is_leaf


def test_a_step_by_hand_needs_no_grad(torch):
    w = torch.tensor([3.0], requires_grad=True)
    (w**2).sum().backward()
    with pytest.raises(
        RuntimeError, match=r"^a leaf Variable that requires grad is being used in an in-place operation"
    ):
        w -= 0.1 * w.grad
    with torch.no_grad():
        w -= 0.1 * w.grad
    assert w.is_leaf
    assert w.item() == pytest.approx(2.4)


def flow(model):
    """Say of each parameter how its gradient compares with it."""
    found = {}
    for name, p in model.named_parameters():
        if p.grad is None:
            found[name] = "no gradient"
        else:
            found[name] = p.grad.data.norm(2).item() / (p.data.norm(2).item() + 1e-8)
    return found


def broken(torch, model):
    """Name the parameters whose gradients are not finite."""
    with_grad = [(name, p.grad) for name, p in model.named_parameters() if p.grad is not None]
    return [name for name, g in with_grad if torch.isnan(g).any() or torch.isinf(g).any()]


def test_the_flow_of_gradients(torch):
    x, y, model = classes(torch)
    assert set(flow(model).values()) == {"no gradient"}
    torch.nn.CrossEntropyLoss()(model(x), y).backward()
    assert all(0 < ratio < 10 for ratio in flow(model).values())
    assert broken(torch, model) == []


def test_gradients_vanish_in_a_deep_sigmoid_network_and_not_in_a_relu_network(torch):
    def first_over_last(activation):
        torch.manual_seed(0)
        nn = torch.nn
        model = nn.Sequential(*(part for _ in range(12) for part in (nn.Linear(16, 16), activation())))
        if activation is nn.ReLU:
            for layer in model[::2]:
                nn.init.kaiming_normal_(layer.weight)
        model(torch.randn(8, 16)).pow(2).sum().backward()
        return (model[0].weight.grad.norm() / model[-2].weight.grad.norm()).item()

    assert first_over_last(torch.nn.Sigmoid) < 1e-5
    assert first_over_last(torch.nn.ReLU) > 1e-2


def test_gradients_that_are_not_finite_are_found(torch):
    model = torch.nn.Linear(2, 1)
    model(torch.full((1, 2), math.inf)).sum().backward()
    assert broken(torch, model) == ["weight"]


def test_anomaly_mode_names_the_operation_that_made_the_nan(torch):
    x = torch.zeros(2, requires_grad=True)
    with pytest.warns(UserWarning, match=r"^Anomaly Detection has been enabled"):
        watching = torch.autograd.detect_anomaly()
    trace = (
        r"^Error detected in SqrtBackward0. Traceback of forward call[^$]*\(x\.sqrt\(\) \* 0\)\.sum\(\)\.backward\(\)"
    )
    nan = r"^Function 'SqrtBackward0' returned nan values in its 0th output\."
    with pytest.warns(UserWarning, match=trace), pytest.raises(RuntimeError, match=nan), watching:
        (x.sqrt() * 0).sum().backward()
    (x.sqrt() * 0).sum().backward()  # outside the block nobody asks
    assert x.grad.isnan().all()


def test_anomaly_mode_for_the_whole_program(torch):
    x = torch.zeros(2, requires_grad=True)
    assert not torch.is_anomaly_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.autograd.set_detect_anomaly(True)
        try:
            with pytest.raises(RuntimeError, match="returned nan values"):
                (x / x).sum().backward()
        finally:
            torch.autograd.set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled()


def test_without_nan_anomaly_mode_is_silent(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.warns(UserWarning, match=r"^Anomaly Detection has been enabled"), torch.autograd.detect_anomaly():
        (x**2).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_infinity_is_no_anomaly(torch):
    x = torch.zeros(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            x.sqrt().sum().backward()
    assert x.grad.isinf().all()


def test_an_in_place_step_on_a_leaf_is_refused_and_a_new_tensor_is_not(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x**2
    with pytest.raises(
        RuntimeError, match=r"^a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x += 1
    first, x = x, x + 1
    y.sum().backward()
    assert first.grad.tolist() == [2.0, 4.0]


def test_an_in_place_step_on_what_was_saved_is_noticed(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    loss = (y**2).sum()
    y.add_(1)
    with pytest.raises(
        RuntimeError, match=r"^one of the variables needed for gradient computation has been modified by an"
    ):
        loss.backward()
    y = x.exp()
    loss = (y**2).sum()
    y = y + 1
    loss.backward()


def test_an_in_place_step_on_what_nobody_saved_is_allowed(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**2  # saves its base, not its result
    y += 1
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_in_place_functions_on_a_leaf(torch):
    x = torch.arange(1.0, 5.0, requires_grad=True)
    z = x.dot(x)
    with pytest.raises(
        RuntimeError, match=r"^a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x.relu_()
    first, x = x, x.relu()
    z.backward()
    assert first.grad.tolist() == [2.0, 4.0, 6.0, 8.0]
