"""What the layers of a model return: statistics and distributions, to see where values die, saturate or explode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.arrays import raw_leaf
from .._modes import using
from .._tracebacks import guarded
from ..random import fork_rng
from ..tensor import _base
from ..utils._pytree import tree_leaves
from ._plotting import ALARM, MUTED, PALE, STRONG, finished, row_height, subplots

BINS = 60
DEAD = 0.9  # of the values are exactly zero
SMALL, LARGE = 1e-4, 1e4  # standard deviations that are remarkable


@dataclass(frozen=True)
class Activation:
    """The values that one layer returned in one call."""

    name: str
    kind: str
    shape: tuple[int, ...]
    mean: float
    std: float
    least: float
    most: float
    zeros: float  # the share of values that are zero
    nans: int
    infinities: int
    counts: np.ndarray  # of a histogram of the finite values
    edges: np.ndarray

    @property
    def remark(self) -> str:
        """Say what is wrong, if anything."""
        if self.nans or self.infinities:
            return ", ".join(f"{n} {what}" for n, what in ((self.nans, "NaN"), (self.infinities, "Inf")) if n)
        if self.zeros > DEAD:
            return f"{self.zeros:.0%} zero"
        if self.counts.sum() > 1 and not self.std:
            return "all equal"
        return "small" if self.std < SMALL else "large" if self.std > LARGE else ""


class Activations:
    """What the layers of a model returned, in the order of calls. Printing it gives a table; `plot()` draws it."""

    def __init__(self, rows: list[Activation]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[Activation]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Activation:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    @property
    def problems(self) -> list[Activation]:
        """Return the rows that have a remark."""
        return [row for row in self.rows if row.remark]

    def __repr__(self) -> str:
        shown: list[tuple[str, ...]] = [("layer", "shape", "mean", "std", "min", "max", "zeros", "")]
        for row in self.rows:
            numbers = (f"{value:.3g}" for value in (row.mean, row.std, row.least, row.most))
            shown.append((f"{row.name}: {row.kind}", str(list(row.shape)), *numbers, f"{row.zeros:.0%}", row.remark))
        widths = [max(len(line[k]) for line in shown) for k in range(7)]
        return "\n".join(
            "  ".join(f"{cell:{'<' if k < 2 else '>'}{widths[k]}}" for k, cell in enumerate(line[:7])) + f"  {line[7]}"
            for line in shown
        )

    def plot(self, path: Any = None) -> Any:
        """Draw the distribution of each layer's values, from the least to the greatest; returns the figure, saves it if given a path."""
        height, words = row_height(len(self.rows), 0.42)
        figure, (values, spread) = subplots(10, height * len(self.rows) + 1.4, 2)
        at = np.arange(len(self.rows))
        for k, row in enumerate(self.rows):
            if row.counts.sum():
                colour = ALARM if row.remark else STRONG
                values.stairs(
                    k + 0.42 - row.counts / row.counts.max() * 0.8,
                    baseline=k + 0.42,
                    fill=True,
                    color=colour,
                    alpha=0.75,
                )
                if row.edges[0] < 0 < row.edges[-1]:
                    zero = BINS * row.edges[0] / (row.edges[0] - row.edges[-1])
                    values.plot([zero, zero], [k + 0.42, k - 0.38], color=MUTED, linewidth=0.8, linestyle=":")
                for x, number, side in ((-1, row.least, "right"), (BINS + 1, row.most, "left")):
                    values.text(x, k + 0.2, f"{number:.3g}", ha=side, va="center", fontsize="x-small", color=MUTED)
        values.set_yticks(at, [f"{row.name}: {row.kind}" for row in self.rows], fontsize=words)
        values.set_xlim(-0.2 * BINS, 1.2 * BINS)
        values.set_xticks([])
        values.set_title("outputs, from least to greatest (dotted: zero)", fontsize="medium")
        colours = [ALARM if row.remark else PALE for row in self.rows]
        shown = [row.std if np.isfinite(row.std) else 0.0 for row in self.rows]
        spread.barh(at, shown, color=colours)
        spread.set_yticks(at, [row.remark for row in self.rows], fontsize=words, color=ALARM)
        spread.yaxis.tick_right()
        spread.tick_params(axis="y", length=0)
        spread.set_xscale("symlog", linthresh=SMALL)
        spread.set_xlim(0, 2 * max([*shown, SMALL]))
        spread.set_title("standard deviation", fontsize="medium")
        spread.grid(axis="x", alpha=0.3)
        spread.set_axisbelow(True)
        for axes in (values, spread):
            axes.set_ylim(len(self.rows) - 0.5, -0.6)
        return finished(figure, path)


@guarded
def activations(model: Any, *inputs: Any, plot: bool = False, path: Any = None, **named: Any) -> Any:
    """Run a model once, and tabulate what its innermost layers return; with `plot=True` return a picture of it.

    The model runs in the mode it is in, without gradients; the random state is left as it was. Buffers of the model may change as
    they do in any call, unless it is in eval mode.

    Example:
        >>> import retrograd
        >>> from retrograd import debug, nn
        >>> found = debug.activations(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), retrograd.ones(2, 4))
        >>> [row.kind for row in found]
        ['Linear', 'ReLU']
    """
    if not hasattr(model, "named_modules"):
        raise TypeError(f"activations(): model must be a Module, not {type(model).__name__}")
    rows: list[Activation] = []
    layers = [(name, one) for name, one in model.named_modules() if not any(True for _ in one.children())]

    def watch(name: str) -> Any:
        def note(module: Any, args: Any, result: Any) -> None:
            for tensor in tree_leaves(result):
                if isinstance(tensor, _base.Tensor):
                    rows.append(_measured(name or "model", type(module).__name__, tensor))
                    return

        return note

    with ExitStack() as undo:
        for name, module in layers:
            undo.callback(module.register_forward_hook(watch(name)).remove)
        with fork_rng(), using(grad=False):
            model(*inputs, **named)
    found = Activations(rows)
    return found.plot(path) if plot or path is not None else found


def _measured(name: str, kind: str, tensor: Any) -> Activation:
    array = np.asarray(raw_leaf(tensor.detach().cpu()._array))
    values = np.abs(array) if array.dtype.kind == "c" else array
    values = values.astype(np.float64).reshape(-1)
    finite = values[np.isfinite(values)]
    nans = int(np.isnan(values).sum())
    counts, edges = np.histogram(finite, BINS) if finite.size else (np.zeros(BINS), np.linspace(0, 1, BINS + 1))
    statistics = [f(finite) if finite.size else float("nan") for f in (np.mean, np.std, np.min, np.max)]
    zeros = float((values == 0).mean()) if values.size else 0.0
    mean, std, least, most = map(float, statistics)
    return Activation(
        name,
        kind,
        tuple(tensor.shape),
        mean,
        std,
        least,
        most,
        zeros,
        nans,
        values.size - finite.size - nans,
        counts,
        edges,
    )
