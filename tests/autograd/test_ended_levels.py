"""Duals that are used after their level has ended: they are their primals, and so are their derivatives. As in torch."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs

program = Programs("ended_levels")


class Ended:
    """Two leaves, and duals made of the first in a level that has ended."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.x = torch.tensor([0.7, 1.1], dtype=torch.float64, requires_grad=True)
        self.w = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)

    def made(self, f: Any) -> Any:
        fwd = self.torch.autograd.forward_ad
        with fwd.dual_level():
            return f(fwd.make_dual(self.x, self.torch.ones_like(self.x)))

    def sine(self) -> Any:
        return self.made(self.torch.sin)

    def gradients(self, loss: Any) -> Any:
        self.x.grad = self.w.grad = None
        loss.backward()
        return self.x.grad, self.w.grad


@program
def operations(torch):
    e = Ended(torch)
    losses = [
        e.sine().sum(),
        (e.sine() * e.w).sum(),
        (e.made(lambda dual: dual.detach().sin()) * e.w).sum(),
        e.sine().exp().sum(),
        (e.sine() * e.made(torch.cos)).sum(),
        (e.sine() ** 2 * e.w).exp().sum(),
        torch.cat([e.sine(), e.w]).prod(),
        torch.stack([e.sine(), e.w]).max(0)[0].sum(),
        torch.linalg.qr(torch.diag(e.sine()) * e.w)[1].sum(),
        torch.softmax(e.sine() * e.w, 0)[0],
        torch.nn.functional.layer_norm(e.sine(), (2,), e.w)[0],
    ]
    return [e.gradients(loss) for loss in losses]


@program
def views(torch):
    e = Ended(torch)
    losses = [
        e.sine().view(2, 1)[0].sum(),
        sum(e.sine().unbind(0)) * e.w[0],
        (e.sine().split(1)[1] * e.w[0]).sum(),
    ]
    return [e.gradients(loss) for loss in losses]


@program
def writes(torch):
    e = Ended(torch)

    def multiplied():
        y = e.sine()
        y.mul_(e.w)
        return y.sum()

    def without_graph():
        y = e.sine()
        with torch.no_grad():
            y.mul_(2)
        return (y * e.w).sum()

    def item():
        y = e.sine()
        y[0] = e.w[0]
        return (y * e.w).sum()

    def into_another():
        z = torch.zeros(2, dtype=torch.float64)
        z[0] = e.sine()[1]
        return (z * e.w).sum()

    return [e.gradients(loss()) for loss in (multiplied, without_graph, item, into_another)]


@program
def second_order(torch):
    e = Ended(torch)
    (first,) = torch.autograd.grad((e.sine() ** 2).sum(), e.x, create_graph=True)
    return first, torch.autograd.grad(first.sum(), e.x)


@program
def batched_gradients(torch):
    e = Ended(torch)
    rows = torch.eye(2, dtype=torch.float64)
    return torch.autograd.grad(e.sine() * e.w, [e.x, e.w], rows, is_grads_batched=True)


@program
def in_transforms(torch):
    e = Ended(torch)
    y, v = e.sine(), e.w.detach()
    return torch.func.grad(lambda v: (v * y).sum())(v), torch.func.jvp(lambda v: (v * y).sum(), (v,), (v,))


test_as_torch, test_recording_is_torchs = program.tests()
