"""Read handwritten digits with a convolutional network.

The script knows nothing of retrograd. Both of these run it:

    retrograd run examples/digits.py
    python examples/digits.py           (where PyTorch is installed)
"""

import numpy as np
import torch
from matplotlib.figure import Figure
from shared import load_digits, read_options, report, training_steps
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TEST_IMAGES = 360
BATCH_SIZE = 64
LEARNING_RATE = 0.004


class Network(nn.Module):
    """Two convolutions see strokes, the last layer weighs them up."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1, bias=False),  # the normalization would take a bias out again
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),  # a stroke counts the same if it lies one pixel off
            nn.Flatten(),
        )
        self.dropout = nn.Dropout(0.5)  # with 1,437 images the network would learn them by heart
        self.scores = nn.Linear(32 * 4 * 4, 10)

    def forward(self, images):
        return self.scores(self.dropout(self.features(images)))


def endless(loader):
    """Give batches for as long as somebody asks; the loader shuffles anew in each round."""
    while True:
        yield from loader


def train(network, dataset, steps):
    """Fit the network; give the loss of every step."""
    batches = endless(DataLoader(dataset, BATCH_SIZE, shuffle=True))
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=steps)
    network.train()
    losses = []
    for step in training_steps(steps):
        images, labels = next(batches)
        loss = nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        report(step, steps, f"loss {losses[-1]:.4f}")
    return losses


@torch.no_grad()
def predict(network, images):
    """Give the answer for each image, and how sure the network is of it, from 0 to 1."""
    network.eval()
    sureness, answers = network(images).softmax(dim=1).max(dim=1)
    return answers, sureness


def draw(losses, images, labels, answers, sureness, path):
    """Draw the loss on the left, and on the right the digits that were hardest to read."""
    figure = Figure(figsize=(9, 4), layout="constrained")  # without pyplot no display is needed: Agg draws it
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=[3, 2])[0]

    axes = left.subplots()
    window = min(20, len(losses))
    smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
    axes.semilogy(losses, color="0.8", linewidth=0.8, label="each step")
    axes.semilogy(np.arange(len(smooth)) + window - 1, smooth, color="C0", label=f"mean of {window} steps")
    axes.set(xlabel="step", ylabel="training loss", title="Handwritten digits")
    axes.legend()

    right.suptitle("read with the least certainty")
    for axes, i in zip(right.subplots(3, 3).flat, sureness.argsort()[:9].tolist(), strict=True):
        axes.imshow(images[i, 0].numpy(), cmap="gray_r")
        axes.set_title(f"{labels[i]} read as {answers[i]}", color="k" if labels[i] == answers[i] else "r", fontsize=8)
        axes.axis("off")
    figure.savefig(path, dpi=120)


def main():
    options = read_options(__doc__, steps=460)
    images, labels = load_digits()
    order = torch.randperm(len(labels))
    test, rest = order[:TEST_IMAGES], order[TEST_IMAGES:]
    network = Network()
    number_count = sum(p.numel() for p in network.parameters())
    print(f"{len(rest)} images to learn from, {len(test)} to test, {number_count} parameters")

    losses = train(network, TensorDataset(images[rest], labels[rest]), options.steps)

    answers, sureness = predict(network, images[test])
    correct = (answers == labels[test]).sum().item()
    print(f"test accuracy: {correct / len(test):.1%} ({correct} of {len(test)})")
    picture = options.out / "digits-loss.png"
    draw(losses, images[test], labels[test], answers, sureness, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
