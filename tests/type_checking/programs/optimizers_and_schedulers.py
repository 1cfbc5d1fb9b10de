"""Optimizers over parameters, tensors and groups; schedulers, clipping and a closure."""

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, ReduceLROnPlateau, StepLR


def minimise(optimizer: Optimizer, weight: Tensor, scheduler: LRScheduler | None = None) -> float:
    for _ in range(5):
        optimizer.zero_grad(set_to_none=True)
        loss = ((weight - 3) ** 2).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([weight], max_norm=4.0)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
    return float(optimizer.param_groups[0]["lr"])


weight = torch.zeros(2, requires_grad=True)
optimizer = SGD([weight], lr=0.1, momentum=0.9)
print(round(minimise(optimizer, weight, StepLR(optimizer, step_size=2, gamma=0.5)), 6), weight)
adam = Adam([weight], lr=0.05, betas=(0.9, 0.99))
print(round(minimise(adam, weight, CosineAnnealingLR(adam, T_max=10)), 6), weight)
model = nn.Linear(2, 1)
groups = AdamW([{"params": [model.weight], "lr": 0.1}, {"params": [model.bias]}], lr=0.01, weight_decay=0.1)
print([group["lr"] for group in groups.param_groups], len(groups.state_dict()["param_groups"]))
warm = LambdaLR(groups, lr_lambda=lambda epoch: 0.5**epoch)
groups.step()
warm.step()
print(warm.get_last_lr())
plateau = ReduceLROnPlateau(optimizer, patience=0)
for loss in (1.0, 1.0, 1.0):
    plateau.step(loss)
print(round(optimizer.param_groups[0]["lr"], 8))

point = torch.tensor([2.0], requires_grad=True)
lbfgs = torch.optim.LBFGS([point], lr=0.5, max_iter=4)


def closure() -> Tensor:
    lbfgs.zero_grad()
    loss = (point**2).sum()
    loss.backward()
    return loss


print(round(float(lbfgs.step(closure)), 4), abs(point.item()) < 2)
