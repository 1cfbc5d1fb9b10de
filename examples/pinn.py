"""Solve the Korteweg-de Vries equation with a network: physics as a loss, with third derivatives.

A wave in shallow water obeys u_t + 6 u u_x + u_xxx = 0. The network is told this law, the wave at time 0 and the
edges; the motion it finds out by itself. One lonely wave, the soliton, keeps its shape, so the answer is known.

    retrograd run examples/pinn.py
    python examples/pinn.py             (where PyTorch is installed)
"""

import torch
from matplotlib.figure import Figure
from shared import read_options, report, training_steps
from torch import nn

SPEED = 2.0
LEFT, RIGHT = -5.0, 5.0
END = 1.0
INSIDE = 256  # points where the law is checked, in each step
BORDER = 64
LEARNING_RATE = 5e-3


def soliton(x, t):
    """The exact solution: a hump that runs to the right."""
    return SPEED / 2 / torch.cosh(SPEED**0.5 / 2 * (x - SPEED * t + 1)).square()


def make_network():
    return nn.Sequential(
        nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )


def height(network, x, t):
    """The wave at places x and times t, both (n,)."""
    return network(torch.stack([x / RIGHT, 2 * t / END - 1], dim=1)).squeeze(1)


def derivative(u, x):
    """How u changes with x, point by point; it can be differentiated again."""
    # The sum does no harm: u[i] depends on x[i] only, so the sum's gradient holds every point's own derivative.
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]


def violation(network, x, t):
    """By how much the law fails to hold at each point."""
    x, t = x.requires_grad_(), t.requires_grad_()
    u = height(network, x, t)
    u_t = derivative(u, t)
    u_x = derivative(u, x)
    u_xxx = derivative(derivative(u_x, x), x)
    return u_t + 6 * u * u_x + u_xxx


def random_between(low, high, count):
    return low + (high - low) * torch.rand(count)


def losses_of(network):
    """Give the violation of the law, and the error at time 0 and at the two edges."""
    law = violation(network, random_between(LEFT, RIGHT, INSIDE), random_between(0, END, INSIDE)).square().mean()
    places = torch.cat([random_between(LEFT, RIGHT, BORDER), torch.full((BORDER,), LEFT), torch.full((BORDER,), RIGHT)])
    times = torch.cat([torch.zeros(BORDER), random_between(0, END, 2 * BORDER)])
    border = (height(network, places, times) - soliton(places, times)).square().mean()
    return law, border


def train(network, steps):
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    history = []
    for step in training_steps(steps):
        law, border = losses_of(network)
        optimizer.zero_grad()
        (law + 20 * border).backward()  # without the weight the network prefers still water, which obeys the law
        optimizer.step()
        schedule.step()
        history.append((law.item(), border.item()))
        report(step, steps, f"law {law.item():.6f}, border {border.item():.6f}")
    return history


@torch.no_grad()
def draw(network, history, path):
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    x = torch.linspace(LEFT, RIGHT, 200)
    for k, time in enumerate([0, END / 2, END]):
        t = torch.full_like(x, time)
        left.plot(x, soliton(x, t), color="0.7", linewidth=5, label=None if k else "exact")
        left.plot(x, height(network, x, t), color=f"C{k}", label=f"network, t = {time:g}")
    left.set(xlabel="place", title="A soliton")
    left.legend(fontsize=8)
    right.semilogy([law for law, _ in history], linewidth=0.6, label="violation of the law")
    right.semilogy([border for _, border in history], linewidth=0.6, label="error at the border")
    right.set(xlabel="step")
    right.legend()
    figure.savefig(path, dpi=120)


def main():
    options = read_options(__doc__, steps=2500)
    network = make_network()
    history = train(network, options.steps)

    x, t = torch.cartesian_prod(torch.linspace(LEFT, RIGHT, 101), torch.linspace(0, END, 11)).T
    with torch.no_grad():
        errors = (height(network, x, t) - soliton(x, t)).abs()
    print(f"height of the wave {SPEED / 2}; error: mean {errors.mean().item():.4f}, most {errors.max().item():.4f}")
    picture = options.out / "pinn.png"
    draw(network, history, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
