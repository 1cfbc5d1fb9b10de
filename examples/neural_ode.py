"""Learn the law of motion behind a spiral: a neural ODE with a hand-written adjoint.

The gradient of an ODE's solution obeys an ODE of its own, which runs backwards in time. Solving that one instead of
recording every step of the solver takes memory for a single state, however long the path is.

    retrograd run examples/neural_ode.py
    python examples/neural_ode.py       (where PyTorch is installed)
"""

import torch
from matplotlib.figure import Figure
from shared import read_options, report, training_steps
from torch import nn
from torch.nn.utils import parameters_to_vector

TIMES = torch.linspace(0, 15, 151)
START = torch.tensor([[1.5, 0.0]])
PIECES = 16  # of the path, in each step of the training
PIECE_LENGTH = 10
LEARNING_RATE = 2e-2


def runge_kutta_step(slope, state, dt):
    """Go on by `dt` with the classical method of fourth order; a state is a tuple of tensors."""

    def ahead(change, factor):
        return tuple(s + factor * c for s, c in zip(state, change, strict=True))

    k1 = slope(state)
    k2 = slope(ahead(k1, dt / 2))
    k3 = slope(ahead(k2, dt / 2))
    k4 = slope(ahead(k3, dt))
    mean = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
    return ahead(mean, dt)


class Solve(torch.autograd.Function):
    """Solve z' = law(z) and give z at all times; the backward solves the adjoint ODE."""

    @staticmethod
    def forward(ctx, law, start, times, *parameters):
        states = [start]
        for dt in times.diff():
            states.append(runge_kutta_step(lambda state: (law(state[0]),), (states[-1],), dt)[0])
        path = torch.stack(states)
        ctx.law, ctx.times = law, times
        ctx.save_for_backward(path, *parameters)
        return path

    @staticmethod
    def backward(ctx, path_grad):
        path, *parameters = ctx.saved_tensors

        def backward_slope(state):
            """The state is z, the gradient a with respect to z, and the gradients with respect to the parameters."""
            z, a = state[0].detach().requires_grad_(), state[1]
            with torch.enable_grad():
                dz = ctx.law(z)
            # a' = -a df/dz, and the parameters gather -a df/dparameter along the way.
            da, *dparameters = torch.autograd.grad(dz, [z, *parameters], a)
            return dz.detach(), -da, *[-each for each in dparameters]

        adjoint = path_grad[-1]
        gathered = [torch.zeros_like(p) for p in parameters]
        for i in range(len(path) - 1, 0, -1):
            # The path is known at the times, so the state starts from there: errors of z do not add up.
            dt = ctx.times[i - 1] - ctx.times[i]
            _, adjoint, *gathered = runge_kutta_step(backward_slope, (path[i], adjoint, *gathered), dt)
            adjoint = adjoint + path_grad[i - 1]
        return None, adjoint, None, *gathered


class Law(nn.Module):
    """The unknown law of motion; the cubes make the spiral easier to learn."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, z):
        return self.layers(z**3)


def solve(law, start, times):
    return Solve.apply(law, start, times, *law.parameters())


def true_law(z):
    return z**3 @ torch.tensor([[-0.05, 1.0], [-1.0, -0.05]])


def compare_with_backpropagation(law):
    """Print how far the adjoint's gradient is from the one through all steps of the solver."""
    times = TIMES[: PIECE_LENGTH + 1]
    solve(law, START, times).square().sum().backward()
    by_adjoint = parameters_to_vector(p.grad for p in law.parameters())
    law.zero_grad()

    state, total = (START,), START.square().sum()
    for dt in times.diff():
        state = runge_kutta_step(lambda state: (law(state[0]),), state, dt)
        total = total + state[0].square().sum()
    direct = parameters_to_vector(torch.autograd.grad(total, list(law.parameters())))
    print(f"gradient {direct.norm().item():.4f}, and the adjoint's {by_adjoint.norm().item():.4f}")
    print(f"the two differ by less than 0.1 %: {((by_adjoint - direct).norm() < 1e-3 * direct.norm()).item()}")


def train(law, path, steps):
    optimizer = torch.optim.Adam(law.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.01 ** (1 / steps))
    times = TIMES[: PIECE_LENGTH + 1]
    for step in training_steps(steps):
        starts = torch.randint(len(path) - PIECE_LENGTH, (PIECES,))
        wanted = path[starts + torch.arange(PIECE_LENGTH + 1).unsqueeze(1), 0]
        loss = (solve(law, wanted[0], times) - wanted).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        report(step, steps, f"mean distance {loss.item():.5f}")


def draw(path, learned, path_of_picture):
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(*path[:, 0].T, "o", color="0.7", markersize=3, label="observed")
    left.plot(*learned[:, 0].T, color="C0", label="learned")
    left.set(title="The spiral", aspect="equal")
    left.legend()
    for k in range(2):
        right.plot(TIMES, path[:, 0, k], "o", color="0.7", markersize=3)
        right.plot(TIMES, learned[:, 0, k], color=f"C{k}", label=f"coordinate {k + 1}")
    right.set(xlabel="time")
    right.legend()
    figure.savefig(path_of_picture, dpi=120)


def main():
    options = read_options(__doc__, steps=1000)
    with torch.no_grad():
        path = Solve.apply(true_law, START, TIMES)
    law = Law()
    compare_with_backpropagation(law)
    train(law, path, options.steps)

    with torch.no_grad():
        learned = solve(law, START, TIMES)
    print(f"mean distance along the whole path: {(learned - path).norm(dim=2).mean().item():.4f}")
    picture = options.out / "neural_ode.png"
    draw(path, learned, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
