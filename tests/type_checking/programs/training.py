"""A training loop, from data to evaluation, as programs have it."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Settings:
    epochs: int = 3
    lr: float = 0.1
    device: torch.device | str = "cpu"


class Classifier(nn.Module):
    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, 4, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(p=0.0)
        self.out = nn.Linear(4 * inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm(self.conv(x.unsqueeze(1))))
        x = F.max_pool1d(x, kernel_size=1, stride=1)
        return F.log_softmax(self.out(self.drop(x.flatten(1))), dim=-1)


def train(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, ...]], settings: Settings) -> list[float]:
    optimizer = optim.SGD(model.parameters(), lr=settings.lr)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    criterion = nn.NLLLoss()
    losses: list[float] = []
    model.train()
    for _ in range(settings.epochs):
        running = 0.0
        for inputs, targets in loader:
            inputs, targets = inputs.to(settings.device), targets.to(settings.device)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            running += loss.item() * inputs.size(0)
        scheduler.step()
        losses.append(running)
    return losses


@torch.no_grad()
def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    model.eval()
    return (model(x).argmax(dim=1) == y).float().mean().item()


torch.manual_seed(0)
x = torch.randn(32, 6)
y = (x.sum(dim=1) > 0).long()
model = Classifier(6, 2)
losses = train(model, DataLoader(TensorDataset(x, y), batch_size=8), Settings())
print([round(loss, 3) for loss in losses], losses[-1] < losses[0], round(accuracy(model, x, y), 3))
