"""no_grad, enable_grad, set_grad_enabled, inference_mode, detach."""

from __future__ import annotations

import gc
import weakref

import pytest


def test_no_grad_computes_but_does_not_record(torch):
    model = torch.nn.Linear(4, 2)
    with torch.no_grad():
        output = model(torch.ones(3, 4))
    assert output.grad_fn is None
    assert not output.requires_grad
    assert output.argmax(dim=1).shape == (3,)
    assert all(p.requires_grad for p in model.parameters())
    assert model(torch.ones(3, 4)).grad_fn.name() == "AddmmBackward0"


def test_without_a_graph_nobody_keeps_the_steps_between(torch):
    def inner_values(mode):
        kept = []

        class Watch(torch.nn.Module):
            def forward(self, x):
                kept.append(weakref.ref(x))
                return x

        nn = torch.nn
        layers = [part for _ in range(5) for part in (nn.Linear(8, 8), nn.Sigmoid(), Watch())]
        with mode:
            out = nn.Sequential(*layers)(torch.ones(2, 8))
        gc.collect()
        return sum(one() is not None for one in kept[:-1]), out

    alive, _ = inner_values(torch.no_grad())
    assert alive == 0
    assert inner_values(torch.inference_mode())[0] == 0


def test_as_decorators_of_functions_and_methods(torch):
    class Loop:
        def __init__(self, model):
            self.model = model

        @torch.no_grad()
        def evaluate(self, x):
            return self.model(x).softmax(dim=1)

        @torch.inference_mode()
        def infer(self, x):
            return self.model(x).softmax(dim=1)

        def train(self, x):
            return self.model(x).softmax(dim=1)

    loop, x = Loop(torch.nn.Linear(4, 2)), torch.ones(3, 4)
    assert not loop.evaluate(x).requires_grad
    assert loop.infer(x).is_inference()
    assert loop.train(x).requires_grad
    assert torch.equal(loop.evaluate(x), loop.train(x))
    assert torch.is_grad_enabled()


def test_enable_grad_inside_no_grad(torch):
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        with torch.enable_grad():
            assert (x**2).requires_grad
        assert not (x**2).requires_grad


@pytest.mark.parametrize("training", [True, False])
def test_grad_mode_by_a_flag(torch, training):
    x = torch.ones(3, requires_grad=True)
    with torch.set_grad_enabled(training):
        assert (x**2).requires_grad is training


def test_a_value_made_under_no_grad_may_enter_a_graph_later(torch):
    w = torch.tensor([2.0], requires_grad=True)
    with torch.no_grad():
        target = w * 3
    ((w - target) ** 2).sum().backward()
    assert w.grad.tolist() == [-8.0]
    target.requires_grad_()
    (target * w).sum().backward()
    assert target.grad.tolist() == [2.0]


def test_a_value_made_in_inference_mode_may_not(torch):
    w = torch.tensor([2.0], requires_grad=True)
    with torch.inference_mode():
        value = w * 3
    with pytest.raises(RuntimeError, match=r"^Inference tensors cannot be saved for backward"):
        w * value
    with pytest.raises(RuntimeError, match=r"^Setting requires_grad=True on inference tensor outside InferenceMode"):
        value.requires_grad_()
    with pytest.raises(RuntimeError, match=r"^Inplace update to inference tensor outside InferenceMode is not allowed"):
        value.add_(1)


def test_a_clone_of_an_inference_tensor_is_an_ordinary_tensor(torch):
    w = torch.tensor([2.0], requires_grad=True)
    with torch.inference_mode():
        value = w * 3
    (w * value.clone()).sum().backward()
    assert w.grad.tolist() == [6.0]


def test_inference_mode_does_not_track_views_nor_versions(torch):
    with torch.inference_mode():
        base = torch.ones(4)
        view = base[1:]
        assert view.is_inference()
        with pytest.raises(RuntimeError, match=r"^Inference tensors do not track version counter"):
            _ = view._version
    with torch.no_grad():
        base = torch.ones(4)
        view = base[1:]
        view.add_(1)
    assert base._version == 1
    assert view._base is base


def test_detach_shares_the_memory_and_cuts_the_graph(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = y.detach()
    assert not z.requires_grad
    assert z.grad_fn is None
    assert z.data_ptr() == y.data_ptr()
    z.mul_(10)  # y = 2x saved nothing of its result
    assert y.tolist() == [20.0] * 3
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_writing_into_a_detached_value_that_was_saved_is_noticed(torch):
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.sum().backward()


def test_writing_through_data_is_not_noticed(torch):
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.data.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0] * 3  # wrong, silently


def test_a_cut_gradient_does_not_arrive(torch):
    x = torch.ones(3, requires_grad=True)
    loss = (x.detach() ** 2).sum()
    with pytest.raises(RuntimeError, match=r"^element 0 of tensors does not require grad and does not have a grad_fn"):
        loss.backward()
    assert x.grad is None
    (x.detach() * x).sum().backward()  # one of two paths is cut
    assert x.grad.tolist() == [1.0] * 3


def test_a_frozen_model_has_no_path(torch):
    model = torch.nn.Linear(2, 1)
    model.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"^element 0 of tensors does not require grad"):
        model(torch.ones(1, 2)).sum().backward()
    model.bias.requires_grad_()
    model(torch.ones(1, 2)).sum().backward()
    assert model.weight.grad is None
    assert model.bias.grad.tolist() == [1.0]


def test_a_target_network_gets_no_gradient(torch):
    online, target = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    x = torch.ones(1, 2)
    ((online(x) - target(x).detach()) ** 2).sum().backward()
    assert online.weight.grad is not None
    assert target.weight.grad is None


class Mark:
    """An object that lives as long as the node whose metadata hold it."""


def test_logged_numbers_hold_no_graph(torch):
    x = torch.ones(3, requires_grad=True)
    items, detached, whole, marks = [], [], [], []
    for logged in (False, False, True):
        inner = x * 2
        inner.grad_fn.metadata["mark"] = mark = Mark()
        marks.append(weakref.ref(mark))
        loss = (inner * inner).sum()
        items.append(loss.item())
        detached.append(loss.detach())
        if logged:
            whole.append(loss)
        del inner, loss, mark
    gc.collect()
    assert [one() is not None for one in marks] == [False, False, True]
    assert items == [12.0] * 3


def test_straight_through_by_detach(torch):
    soft = torch.tensor([0.3, 0.7, 1.2], requires_grad=True)
    hard = soft + (soft.round() - soft).detach()
    assert torch.equal(hard.detach(), soft.detach().round())
    (hard * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert soft.grad.tolist() == [1.0, 2.0, 3.0]
    both_cut = soft.detach() + (soft.round() - soft).detach()
    assert torch.equal(both_cut, soft.detach().round())
    assert not both_cut.requires_grad


def test_gradient_penalty_at_points_between(torch):
    critic = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    real, fake, share = torch.randn(5, 2), torch.randn(5, 2), torch.rand(5, 1)
    points = (share * real + (1 - share) * fake).detach().requires_grad_(True)
    assert points.is_leaf
    (slopes,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    penalty = ((slopes.norm(dim=1) - 1) ** 2).mean()
    penalty.backward()
    assert all(p.grad is not None for p in list(critic.parameters())[:3])
    assert points.grad is not None


def test_numpy_wants_a_detached_tensor(torch):
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^Can't call numpy\(\) on Tensor that requires grad"):
        x.numpy()
    assert x.detach().numpy().tolist() == [1.0] * 3
    assert (x * 2).detach().numpy().sum() == 6.0
