"""Learn to draw digits: a variational autoencoder squeezes 64 pixels into two numbers and back.

retrograd run examples/vae.py
python examples/vae.py              (where PyTorch is installed)
"""

import torch
from matplotlib.figure import Figure
from shared import load_digits, read_options, report, training_steps
from torch import nn
from torch.nn import functional

PIXELS = 64
LATENT = 2  # so that a picture can show all of it
HIDDEN = 256
BATCH_SIZE = 128
LEARNING_RATE = 2e-3


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(PIXELS, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 2 * LATENT)
        )
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, PIXELS)
        )

    def encode(self, images):
        """Give the mean and the log of the variance of the code."""
        return self.encoder(images).chunk(2, dim=1)

    def forward(self, images):
        mean, log_variance = self.encode(images)
        # Drawn as mean + deviation * noise, a sample has a gradient with respect to mean and deviation.
        codes = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        return self.decoder(codes), mean, log_variance


def losses_of(model, images):
    """How badly the images come back, and how far the codes are from a normal distribution; per image, in nats."""
    logits, mean, log_variance = model(images)
    reconstruction = functional.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum()
    return reconstruction / len(images), divergence / len(images)


def train(model, images, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for step in training_steps(steps):
        batch = images[torch.randint(len(images), (BATCH_SIZE,))]
        reconstruction, divergence = losses_of(model, batch)
        optimizer.zero_grad()
        (reconstruction + divergence).backward()
        optimizer.step()
        schedule.step()
        report(step, steps, f"reconstruction {reconstruction.item():.3f}, divergence {divergence.item():.3f}")


@torch.no_grad()
def draw(model, images, labels, path):
    """Draw where the digits lie in the plane of codes, and what the decoder makes of a grid in it."""
    figure = Figure(figsize=(10, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    mean, _ = model.encode(images)
    points = left.scatter(*mean.T.numpy(), c=labels.numpy(), cmap="tab10", s=6)
    figure.colorbar(points, ax=left, ticks=range(10))
    left.set(title="codes of the digits")

    side = 16
    # Equal steps of probability, not of distance: the codes are dense in the middle.
    ticks = torch.linspace(0.02, 0.98, side)
    ticks = 2**0.5 * torch.erfinv(2 * ticks - 1)
    grid = torch.cartesian_prod(ticks.flip(0), ticks).flip(1)  # rows from top to bottom, columns from left to right
    decoded = model.decoder(grid).sigmoid().view(side, side, 8, 8)
    framed = functional.pad(decoded, (1, 1, 1, 1))  # so that neighbours do not touch
    right.imshow(framed.transpose(1, 2).reshape(10 * side, 10 * side).numpy(), cmap="gray_r")
    right.set(title="digits decoded from a grid of codes", xticks=[], yticks=[])
    figure.savefig(path, dpi=120)


def main():
    options = read_options(__doc__, steps=3000)
    images, labels = load_digits()
    images = images.flatten(1)
    model = Autoencoder()
    train(model, images, options.steps)

    with torch.no_grad():
        reconstruction, divergence = losses_of(model, images)
    print(f"all digits: reconstruction {reconstruction.item():.3f}, divergence {divergence.item():.3f}")
    picture = options.out / "vae.png"
    draw(model, images, labels, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
