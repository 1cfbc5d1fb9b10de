"""Foretell a chaotic time series with an LSTM.

retrograd run examples/lstm.py
python examples/lstm.py             (where PyTorch is installed)
"""

import torch
from matplotlib.figure import Figure
from shared import read_options, report, training_steps
from torch import nn
from torch.nn import functional

LENGTH = 2000
TRAINED_ON = 1500
WINDOW = 150
BATCH_SIZE = 32
HIDDEN = 48
LEARNING_RATE = 1e-2
FORECAST = 200


def mackey_glass(length, delay=17, substeps=10):
    """Solve x'(t) = 0.2 x(t - delay) / (1 + x(t - delay)^10) - 0.1 x(t): never the same twice, yet no noise in it."""
    past = [1.2] * (delay * substeps + 1)
    for _ in range(substeps * length):
        delayed = past[-1 - delay * substeps]
        past.append(past[-1] + (0.2 * delayed / (1 + delayed**10) - 0.1 * past[-1]) / substeps)
    return torch.tensor(past[-substeps * length :: substeps])


class Forecaster(nn.Module):
    """Guess how far each value lies from the one before it."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, HIDDEN, batch_first=True)
        self.change = nn.Linear(HIDDEN, 1)

    def forward(self, values, state=None):
        """Give the next value after each of `values` (batch, time, 1), and the state to go on from."""
        hidden, state = self.lstm(values, state)
        return values + self.change(hidden), state


def train(model, series, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    losses = []
    for step in training_steps(steps):
        starts = torch.randint(len(series) - WINDOW, (BATCH_SIZE, 1))
        windows = series[starts + torch.arange(WINDOW + 1)].unsqueeze(2)
        guessed, _ = model(windows[:, :-1])
        loss = functional.mse_loss(guessed, windows[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        report(step, steps, f"mean square error {losses[-1]:.6f}")
    return losses


@torch.no_grad()
def forecast(model, known, length):
    """Read the known values, then feed the model its own guesses."""
    guessed, state = model(known.view(1, -1, 1))
    values = [guessed[:, -1:]]
    for _ in range(length - 1):
        guessed, state = model(values[-1], state)
        values.append(guessed)
    return torch.cat(values).flatten()


def draw(series, forecasted, path):
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    axes = figure.subplots()
    times = range(TRAINED_ON, TRAINED_ON + FORECAST)
    axes.plot(range(TRAINED_ON - 200, TRAINED_ON), series[TRAINED_ON - 200 : TRAINED_ON], color="0.7", label="known")
    axes.plot(times, series[TRAINED_ON : TRAINED_ON + FORECAST], color="k", label="what came")
    axes.plot(times, forecasted, color="C1", label="what the LSTM foretold")
    axes.set(xlabel="time", title="Mackey-Glass series")
    axes.legend(loc="lower left")
    figure.savefig(path, dpi=120)


def main():
    options = read_options(__doc__, steps=1500)
    series = mackey_glass(LENGTH)
    series = (series - series.mean()) / series.std()
    model = Forecaster()
    train(model, series[:TRAINED_ON], options.steps)

    forecasted = forecast(model, series[:TRAINED_ON], FORECAST)
    errors = (forecasted - series[TRAINED_ON : TRAINED_ON + FORECAST]).abs()
    for ahead in (1, 10, 50, FORECAST):
        print(f"mean error over {ahead:3} steps: {errors[:ahead].mean().item():.4f}")
    picture = options.out / "lstm.png"
    draw(series, forecasted, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
