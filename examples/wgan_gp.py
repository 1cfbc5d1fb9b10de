"""Imitate a toy density with a Wasserstein GAN: the penalty on the critic's gradient needs a double backward.

retrograd run examples/wgan_gp.py
python examples/wgan_gp.py          (where PyTorch is installed)
"""

import math

import torch
from matplotlib.figure import Figure
from shared import read_options, report, training_steps
from torch import nn

BATCH_SIZE = 128
HIDDEN = 64
NOISE = 2
CRITIC_STEPS = 3  # the critic must stay ahead, else its verdict teaches the generator nothing
PENALTY = 1.0
LEARNING_RATE = 1e-3


def real_points(count):
    """Draw from eight small clouds on a circle."""
    angles = torch.randint(8, (count,)) * (math.pi / 4)
    return 2 * torch.stack([angles.cos(), angles.sin()], dim=1) + 0.1 * torch.randn(count, 2)


def network(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN),
        nn.SiLU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.SiLU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.SiLU(),
        nn.Linear(HIDDEN, outputs),
    )


def gradient_penalty(critic, real, fake):
    """Punish slopes other than 1 between real and fake points: only then is the critic's loss a distance."""
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_()
    # create_graph: the slope is part of a loss, so it must itself be differentiable.
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def improve_critic(critic, generator, optimizer):
    """Take one step; give the distance of the two densities as the critic sees it."""
    real = real_points(BATCH_SIZE)
    with torch.no_grad():
        fake = generator(torch.randn(BATCH_SIZE, NOISE))
    distance = critic(real).mean() - critic(fake).mean()
    loss = PENALTY * gradient_penalty(critic, real, fake) - distance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return distance.item()


def improve_generator(critic, generator, optimizer):
    loss = -critic(generator(torch.randn(BATCH_SIZE, NOISE))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(critic, generator, steps):
    optimizers = [torch.optim.Adam(n.parameters(), lr=LEARNING_RATE, betas=(0.0, 0.9)) for n in (critic, generator)]
    schedules = [torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.05, total_iters=steps) for o in optimizers]
    distances = []
    for step in training_steps(steps):
        for _ in range(CRITIC_STEPS):
            distance = improve_critic(critic, generator, optimizers[0])
        improve_generator(critic, generator, optimizers[1])
        for schedule in schedules:
            schedule.step()
        distances.append(distance)
        report(step, steps, f"distance {distance:.4f}")
    return distances


def energy_distance(a, b):
    """Zero if and only if both samples come from one density: a judge that took no part in the training."""
    return 2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()


def draw(critic, distances, real, fake, path):
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(distances, linewidth=0.8)
    left.set(xlabel="step", title="distance as the critic sees it")
    ticks = torch.linspace(-3, 3, 60)
    with torch.no_grad():
        heights = critic(torch.cartesian_prod(ticks, ticks)).view(60, 60).T
    right.contourf(ticks, ticks, heights, levels=20, cmap="Greys")
    right.scatter(*real.T, s=4, color="C0", label="real")
    right.scatter(*fake.T, s=4, color="C1", label="generated")
    right.set(title="the critic likes what is dark", aspect="equal")
    right.legend(loc="upper right")
    figure.savefig(path, dpi=120)


def main():
    options = read_options(__doc__, steps=1500)
    critic, generator = network(2, 1), network(NOISE, 2)
    distances = train(critic, generator, options.steps)

    real = real_points(500)
    with torch.no_grad():
        fake = generator(torch.randn(500, NOISE))
    print(f"energy distance of generated points: {energy_distance(real, fake).item():.4f}")
    print(f"energy distance of real points:      {energy_distance(real, real_points(500)).item():.4f}")
    picture = options.out / "wgan_gp.png"
    draw(critic, distances, real, fake, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
