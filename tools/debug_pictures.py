"""Draw the pictures of docs/look-inside.md into docs/pictures: python tools/debug_pictures.py"""

from __future__ import annotations

from pathlib import Path

import retrograd as torch
from retrograd import debug, nn

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
    x, y = torch.randn(256, 64), torch.randint(10, (256,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss():
        return nn.functional.cross_entropy(model(x), y)

    for _ in range(60):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    model[0].weight.grad *= 1e-7  # so that there is something to remark on
    debug.gradient_flow(model, path=PICTURES / "gradient_flow.png")
    debug.activations(model, x, path=PICTURES / "activations.png")
    debug.loss_landscape(model, loss, points=31, path=PICTURES / "loss_landscape.png")


if __name__ == "__main__":
    main()
