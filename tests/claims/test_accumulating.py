"""Gradients add up: the mistake, the cure, and the use."""

from __future__ import annotations

import pytest


def model_of(torch, *layers):
    torch.manual_seed(3)
    nn = torch.nn
    return nn.Sequential(nn.Linear(4, 8), *layers, nn.Tanh(), nn.Linear(8, 3))


def gradients(model):
    return [p.grad.clone() for p in model.parameters()]


def same(torch, ours, others):
    return all(torch.allclose(a, b, atol=1e-6) for a, b in zip(ours, others, strict=True))


def test_backward_adds_and_does_not_replace(torch):
    x = torch.tensor(3.0, requires_grad=True)
    seen = []
    for _ in range(3):
        (x**2).backward()
        seen.append(x.grad.item())
    assert seen == [6.0, 12.0, 18.0]


def test_a_tied_weight_gets_the_sum_of_its_uses(torch):
    layer = torch.nn.Linear(3, 3, bias=False)
    x = torch.ones(1, 3)
    hidden = layer(x)
    layer(hidden).sum().backward()
    first, second = (layer.weight.detach().clone().requires_grad_() for _ in range(2))
    torch.nn.functional.linear(torch.nn.functional.linear(x, first), second).sum().backward()
    assert torch.allclose(layer.weight.grad, first.grad + second.grad)


def test_three_backward_calls_without_clearing_are_three_times_the_gradient(torch):
    model, x, y = torch.nn.Linear(3, 1), torch.randn(10, 3), torch.randn(10, 1)
    norms = []
    for _ in range(3):
        ((model(x) - y) ** 2).mean().backward()
        norms.append(model.weight.grad.norm().item())
    assert norms == pytest.approx([norms[0], 2 * norms[0], 3 * norms[0]], rel=1e-5)
    for _ in range(3):
        model.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        assert model.weight.grad.norm().item() == pytest.approx(norms[0], rel=1e-6)


def test_zero_grad_forgets_by_default_and_fills_with_zeros_if_asked(torch):
    model = model_of(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for clear in (model.zero_grad, optimizer.zero_grad):
        model(torch.ones(2, 4)).sum().backward()
        clear(set_to_none=False)
        assert all(bool((p.grad == 0).all()) for p in model.parameters())
        clear()
        assert all(p.grad is None for p in model.parameters())
        clear(set_to_none=True)
        assert all(p.grad is None for p in model.parameters())


def test_a_gradient_is_cleared_by_hand(torch):
    x = torch.ones(3, requires_grad=True)
    x.sum().backward()
    held = x.grad
    x.grad.zero_()
    assert held.tolist() == [0.0, 0.0, 0.0]
    x.grad = None
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    assert held.tolist() == [0.0, 0.0, 0.0]  # a new tensor was made


def test_an_optimizer_that_never_clears_goes_astray(torch):
    def path(clears):
        x = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([x], lr=0.5)
        found = []
        for _ in range(4):
            if clears:
                optimizer.zero_grad()
            (x**2).backward()
            optimizer.step()
            found.append(x.item())
        return found

    assert path(True) == [0.0, 0.0, 0.0, 0.0]
    assert path(False) == [0.0, -1.0, -1.0, 0.0]


def test_small_batches_with_their_share_of_the_loss_make_the_large_batch(torch):
    criterion = torch.nn.CrossEntropyLoss()
    x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
    whole, parts = model_of(torch, torch.nn.LayerNorm(8)), model_of(torch, torch.nn.LayerNorm(8))
    criterion(whole(x), y).backward()
    for some, labels in zip(x.split(8), y.split(8), strict=True):
        (criterion(parts(some), labels) / 4).backward()
    assert same(torch, gradients(whole), gradients(parts))


def test_without_its_share_the_gradient_is_as_many_times_too_large(torch):
    criterion = torch.nn.CrossEntropyLoss()
    x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
    whole, parts = model_of(torch), model_of(torch)
    criterion(whole(x), y).backward()
    for some, labels in zip(x.split(8), y.split(8), strict=True):
        criterion(parts(some), labels).backward()
    assert same(torch, [4 * g for g in gradients(whole)], gradients(parts))


def test_batch_norm_sees_the_small_batch(torch):
    x = torch.randn(32, 4)
    whole, parts = model_of(torch, torch.nn.BatchNorm1d(8)), model_of(torch, torch.nn.BatchNorm1d(8))
    (whole(x) ** 2).mean().backward()
    for some in x.split(8):
        ((parts(some) ** 2).mean() / 4).backward()
    assert not same(torch, gradients(whole), gradients(parts))
    assert whole[1].num_batches_tracked == 1
    assert parts[1].num_batches_tracked == 4


def test_dropout_draws_a_mask_for_each_small_batch(torch):
    drop, x = torch.nn.Dropout(0.5), torch.ones(64)
    first, second = drop(x), drop(x)
    assert not torch.equal(first, second)
    assert set(first.tolist()) == {0.0, 2.0}
    drop.eval()
    assert torch.equal(drop(x), x)


def test_accumulation_with_clipping_and_a_step_every_fourth_batch(torch):
    model, criterion = model_of(torch), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = [p.detach().clone() for p in model.parameters()]
    moved = []
    for i in range(8):
        x, y = 10 * torch.randn(6, 4), torch.randint(0, 3, (6,))
        (criterion(100 * model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            before = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            assert before > 1
            total = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            assert total.item() == pytest.approx(1.0, abs=1e-4)
            optimizer.step()
            optimizer.zero_grad()
        moved.append(not same(torch, start, list(model.parameters())))
    assert moved == [False] * 3 + [True] * 5


def test_autocast_around_the_forward_pass(torch):
    model, criterion = model_of(torch), torch.nn.CrossEntropyLoss()
    x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        output = model(x)
        assert output.dtype == torch.bfloat16
        loss = criterion(output, y)
    assert loss.dtype == torch.float32
    loss.backward()
    lower = gradients(model)
    assert all(g.dtype == torch.float32 for g in lower)
    model.zero_grad()
    criterion(model(x), y).backward()
    assert all(torch.allclose(a, b, atol=0.02) for a, b in zip(lower, gradients(model), strict=True))
