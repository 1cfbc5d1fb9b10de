"""Learn to read handwritten digits with raw tensors: no modules, no optimizers, only autograd.

The script knows nothing of retrograd. Both of these run it:

    retrograd run examples/digits.py
    python examples/digits.py           (where PyTorch is installed)
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from tqdm import tqdm

DATA = Path(__file__).parent / "data" / "digits.npz"
TEST_IMAGES = 360
HIDDEN_UNITS = 256
BATCH_SIZE = 64
LEARNING_RATE = 0.2
MOMENTUM = 0.9
PIXEL_NOISE = 0.25  # fresh noise in every step: with 1,437 images, the network would learn them by heart


def load_digits():
    """Give (train images, train labels, test images, test labels), shuffled; a pixel is between 0 and 1."""
    with np.load(DATA) as file:
        images = torch.from_numpy(file["images"].reshape(-1, 64).astype(np.float32)) / 16
        labels = torch.from_numpy(file["labels"].astype(np.int64))
    order = torch.randperm(len(labels))
    test, train = order[:TEST_IMAGES], order[TEST_IMAGES:]
    return images[train], labels[train], images[test], labels[test]


def make_parameters():
    """Weights and biases of two layers, scaled so that activations start with a variance near one."""
    weight1 = torch.randn(64, HIDDEN_UNITS) * (2 / 64) ** 0.5
    weight2 = torch.randn(HIDDEN_UNITS, 10) * (1 / HIDDEN_UNITS) ** 0.5
    return [p.requires_grad_() for p in (weight1, torch.zeros(HIDDEN_UNITS), weight2, torch.zeros(10))]


def predict(parameters, images):
    """Scores of the ten digits for each image; the highest is the answer."""
    weight1, bias1, weight2, bias2 = parameters
    return torch.relu(images @ weight1 + bias1) @ weight2 + bias2


def cross_entropy(scores, labels):
    """Mean of -log softmax(scores)[label]."""
    score_of_label = scores.gather(1, labels.unsqueeze(1)).squeeze(1)
    return (torch.logsumexp(scores, dim=1) - score_of_label).mean()


def train(parameters, images, labels, epochs):
    """Fit by stochastic gradient descent with momentum; give the loss of every step."""
    velocities = [torch.zeros_like(p) for p in parameters]
    losses = []
    bar = tqdm(range(epochs), desc="training", unit="epoch")
    for epoch in bar:
        rate = LEARNING_RATE * (1 - epoch / epochs)  # towards zero, so that the last steps settle
        order = torch.randperm(len(labels))
        for start in range(0, len(labels), BATCH_SIZE):
            batch = order[start : start + BATCH_SIZE]
            noisy = images[batch] + PIXEL_NOISE * torch.randn(len(batch), 64)
            loss = cross_entropy(predict(parameters, noisy), labels[batch])
            loss.backward()
            with torch.no_grad():
                for p, velocity in zip(parameters, velocities, strict=True):
                    velocity.mul_(MOMENTUM).add_(p.grad)
                    p.sub_(rate * velocity)
                    p.grad.zero_()
            losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.4f}")
    return losses


def count_correct(parameters, images, labels):
    with torch.no_grad():
        return (predict(parameters, images).argmax(dim=1) == labels).sum().item()


def draw_loss_curve(losses, steps_per_epoch, path):
    """Draw every step's loss in grey and the mean of each epoch above it."""
    epoch_means = np.reshape(losses, (-1, steps_per_epoch)).mean(axis=1)
    epoch_middles = (np.arange(len(epoch_means)) + 0.5) * steps_per_epoch
    figure = Figure(figsize=(7, 4), layout="constrained")  # without pyplot no display is needed: Agg draws it
    axes = figure.subplots()
    axes.semilogy(losses, color="0.8", linewidth=0.8, label="each minibatch")
    axes.semilogy(epoch_middles, epoch_means, color="C0", label="mean of the epoch")
    axes.set(xlabel="step", ylabel="training loss", title="Handwritten digits, two layers")
    axes.legend()
    figure.savefig(path, dpi=120)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--epochs", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--out", type=Path, default=Path("."), help="folder for digits-loss.png")
    options = arguments.parse_args()
    if options.epochs < 1:
        arguments.error("--epochs must be at least 1")
    options.out.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(options.seed)
    train_images, train_labels, test_images, test_labels = load_digits()
    parameters = make_parameters()
    number_count = sum(p.numel() for p in parameters)
    print(f"{len(train_labels)} images to learn from, {len(test_labels)} to test, {number_count} parameters")

    losses = train(parameters, train_images, train_labels, options.epochs)

    correct = count_correct(parameters, test_images, test_labels)
    print(f"test accuracy: {correct / len(test_labels):.1%} ({correct} of {len(test_labels)})")

    picture = options.out / "digits-loss.png"
    draw_loss_curve(losses, len(losses) // options.epochs, picture)
    print(f"loss curve: {picture}")


if __name__ == "__main__":
    main()
