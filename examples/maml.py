"""Learn to learn: find weights from which a few steps of gradient descent fit any sine wave.

The loss is taken after the steps, so its gradient runs back through them: a derivative of derivatives. With
`torch.func` a step is a plain function of the weights, and `vmap` takes it for all tasks at once.

    retrograd run examples/maml.py
    python examples/maml.py             (where PyTorch is installed)
"""

import math

import torch
from matplotlib.figure import Figure
from shared import read_options, report, training_steps
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

TASKS = 16  # sine waves in each step of the training
SHOTS = 10  # points of a wave that the learner sees
INNER_STEPS = 2
INNER_RATE = 0.05
OUTER_RATE = 2e-3

network = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))


def loss_of(weights, x, y):
    return functional.mse_loss(functional_call(network, weights, (x,)), y)


def adapt(weights, x, y, steps=INNER_STEPS):
    """Take steps of gradient descent on one task; the result is differentiable in `weights`."""
    for _ in range(steps):
        slopes = grad(loss_of)(weights, x, y)
        weights = {name: weight - INNER_RATE * slopes[name] for name, weight in weights.items()}
    return weights


def loss_after_learning(weights, x, y, new_x, new_y):
    return loss_of(adapt(weights, x, y), new_x, new_y)


def sine_waves(tasks, points):
    """Give points (tasks, points, 1) of waves that differ in height and phase; each call of the result draws anew."""
    height = 0.5 + 4.5 * torch.rand(tasks, 1, 1)
    phase = math.pi * torch.rand(tasks, 1, 1)

    def draw_points():
        x = 10 * torch.rand(tasks, points, 1) - 5
        return x, height * torch.sin(x + phase)

    return draw_points


def train(weights, steps):
    optimizer = torch.optim.Adam(weights.values(), lr=OUTER_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    losses = []
    for step in training_steps(steps):
        draw_points = sine_waves(TASKS, SHOTS)
        seen, unseen = draw_points(), draw_points()
        loss = vmap(loss_after_learning, in_dims=(None, 0, 0, 0, 0))(weights, *seen, *unseen).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        report(step, steps, f"loss after {INNER_STEPS} steps of learning {losses[-1]:.4f}")
    return losses


@torch.no_grad()
def mean_losses(weights, most_steps):
    """Give the mean loss on 200 new waves after 0, 1, ... steps of learning."""
    draw_points = sine_waves(200, SHOTS)
    (x, y), (new_x, new_y) = draw_points(), draw_points()
    losses = []
    for steps in range(most_steps + 1):
        learned = vmap(adapt, in_dims=(None, 0, 0, None))(weights, x, y, steps) if steps else weights
        loss = vmap(loss_of, in_dims=(0 if steps else None, 0, 0))(learned, new_x, new_y)
        losses.append(loss.mean().item())
    return losses


@torch.no_grad()
def draw(weights, path):
    figure = Figure(figsize=(9, 4), layout="constrained")
    ticks = torch.linspace(-5, 5, 200).unsqueeze(1)
    for axes in figure.subplots(1, 2, sharey=True):
        x, y = (each[0] for each in sine_waves(1, SHOTS)())
        axes.plot(x.flatten(), y.flatten(), "ko", label="points seen")
        for steps, color in [(0, "0.8"), (1, "C1"), (INNER_STEPS, "C0")]:
            learned = adapt(weights, x, y, steps)
            curve = functional_call(network, learned, (ticks,))
            axes.plot(ticks.flatten(), curve.flatten(), color=color, label=f"after {steps} steps")
    axes.legend(loc="lower right", fontsize=8)
    figure.suptitle("Two new waves, each learned from ten points")
    figure.savefig(path, dpi=120)


def main():
    options = read_options(__doc__, steps=3000)
    for layer in network[::2]:
        layer.reset_parameters()  # made before the seed was set
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    weights = dict(network.named_parameters())
    train(weights, options.steps)

    for name, start in [("random weights", before), ("learned weights", weights)]:
        losses = mean_losses(start, most_steps=5)
        print(f"{name:15} loss after 0 to 5 steps: " + " ".join(f"{loss:.3f}" for loss in losses))
    picture = options.out / "maml.png"
    draw(weights, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
