"""The loss along random directions in the space of parameters: a curve or a map around where a model stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._modes import using
from .._progress import steps
from .._tracebacks import guarded
from ..random import fork_rng, manual_seed
from ..tensor._functions.random_tensors import randn
from ._plotting import ALARM, STRONG, finished, subplots


@dataclass(frozen=True)
class LossLandscape:
    """Losses at steps along one direction, or two. `plot()` draws them."""

    steps: np.ndarray  # in units of each parameter's norm
    losses: np.ndarray  # [steps] or [steps, steps], the first axis along the first direction

    def __repr__(self) -> str:
        middle = self.losses[(len(self.steps) // 2,) * self.losses.ndim]
        along = " x ".join(str(n) for n in self.losses.shape)
        return (
            f"LossLandscape({along} losses from {np.nanmin(self.losses):.4g} to {np.nanmax(self.losses):.4g}, "
            f"{middle:.4g} where the model stands)"
        )

    def plot(self, path: Any = None) -> Any:
        """Draw the curve, or the map, with matplotlib; returns the figure, saves it if given a path."""
        figure, axes = subplots(6.5, 4.5)
        if self.losses.ndim == 1:
            axes.plot(self.steps, self.losses, color=STRONG)
            axes.axvline(0, color=ALARM, linewidth=1, linestyle=":")
            axes.set_ylabel("loss")
            axes.grid(alpha=0.3)
        else:
            shown = np.where(np.isfinite(self.losses), self.losses, np.nan)
            drawn = axes.contourf(self.steps, self.steps, shown.T, levels=24, cmap="viridis")
            axes.contour(self.steps, self.steps, shown.T, levels=24, colors="white", linewidths=0.3, alpha=0.6)
            axes.plot(0, 0, "o", color=ALARM, markersize=6)
            axes.set_ylabel("second direction")
            axes.set_aspect("equal")
            figure.colorbar(drawn, ax=axes, label="loss")
        axes.set_xlabel("first direction, in norms of the parameters")
        axes.set_title("loss around the model")
        return finished(figure, path)


@guarded
def loss_landscape(
    model: Any,
    loss: Callable[[], Any],
    *,
    reach: float = 1.0,
    points: int = 21,
    directions: int = 2,
    seed: int = 0,
    plot: bool = False,
    path: Any = None,
) -> Any:
    """Compute the loss along random directions from where a model stands; with `plot=True` return a picture of it.

    Arguments:
        model: a Module; parameters that require grad are moved, and put back bit for bit.
        loss: a function without arguments that returns the loss of the model as it is.
        reach: how far to go, in norms of the parameters: of each filter (each row of a matrix, each kernel), as in
            "Visualizing the Loss Landscape of Neural Nets" (Li et al., 2018). Vectors, such as biases, are not moved.
        points: how many losses along a direction. With two directions there are points ** 2.
        directions: 1 gives a curve, 2 a map.
        seed: of the directions. The random state of the program is left as it was, and each loss begins with the same.

    With `debug.progress()` a bar shows how far it is.

    Example:
        >>> import retrograd
        >>> from retrograd import debug, nn
        >>> model, x = nn.Linear(2, 1), retrograd.ones(4, 2)
        >>> debug.loss_landscape(model, lambda: (model(x) ** 2).mean(), points=5).losses.shape
        (5, 5)
    """
    if not hasattr(model, "parameters"):
        raise TypeError(f"loss_landscape(): model must be a Module, not {type(model).__name__}")
    if not callable(loss):
        raise TypeError(
            f"loss_landscape(): loss must be a function without arguments that computes the loss, not {type(loss).__name__}\n"
            "Hint: lambda: criterion(model(x), y)."
        )
    if directions not in (1, 2):
        raise ValueError(f"loss_landscape(): directions must be 1 or 2, not {directions!r}")
    if isinstance(points, bool) or not isinstance(points, int) or points < 2:
        raise ValueError(f"loss_landscape(): points must be a number of steps, 2 or more, not {points!r}")
    parameters = [one for one in model.parameters() if one.requires_grad]
    if not any(one.ndim > 1 for one in parameters):
        raise ValueError(
            "loss_landscape(): no parameter with two or more dimensions requires grad: there is nothing to move"
        )
    before = [one.detach().clone() for one in parameters]
    along = np.linspace(-reach, reach, points)
    found = np.empty((points,) * directions)
    with fork_rng():
        manual_seed(seed)
        chosen = [[_direction(one) for one in before] for _ in range(directions)]
    try:
        with using(grad=False):
            for index in steps(list(np.ndindex(*found.shape)), "loss landscape"):
                for k, (parameter, start) in enumerate(zip(parameters, before, strict=True)):
                    moved = start
                    for axis, place in enumerate(index):
                        moved = moved + chosen[axis][k] * float(along[place])
                    parameter.copy_(moved)
                with fork_rng():
                    found[index] = _number(loss())
    finally:
        with using(grad=False):
            for parameter, start in zip(parameters, before, strict=True):
                parameter.copy_(start)
    landscape = LossLandscape(along, found)
    return landscape.plot(path) if plot or path is not None else landscape


def _number(loss: Any) -> float:
    """Return a loss as a number; refuse what is none."""
    size = getattr(loss, "numel", lambda: 1)()
    if size != 1:
        raise ValueError(
            f"loss_landscape(): loss() must return one number, but returned a tensor of shape {list(loss.shape)}\n"
            "Hint: reduce it first, e.g. by .mean() or reduction='mean'."
        )
    try:
        return float(loss)
    except (TypeError, ValueError):
        raise TypeError(
            f"loss_landscape(): loss() must return one number, but returned {type(loss).__name__}"
        ) from None


def _direction(tensor: Any) -> Any:
    """Return a random direction whose filters have the norms of the tensor's; nothing for vectors."""
    if tensor.ndim < 2:
        return tensor * 0
    noise = randn(tuple(tensor.shape)).to(tensor.dtype).to(tensor.device)
    axes = tuple(range(1, tensor.ndim))
    norms = (tensor.abs() ** 2).sum(axes, keepdim=True).sqrt()
    return noise * norms / ((noise**2).sum(axes, keepdim=True).sqrt() + 1e-10)
