"""Where gradients vanish, explode, are missing or not numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from .._core.arrays import raw_leaf
from .._tracebacks import guarded
from ..tensor import _base
from ._plotting import ALARM, MUTED, STRONG, finished, row_height, subplots

VANISHING, EXPLODING = 1e-7, 1e3  # of the ratio of a gradient's norm to its parameter's
# Why a parameter has no gradient.
FROZEN = "frozen"
NOT_REACHED = "not reached by backward"
NOT_YET = "no gradient yet"
NO_GRADIENTS = "No parameter has a gradient: backward was not called, or zero_grad() was called after it."


@dataclass(frozen=True)
class Flow:
    """The gradient of one parameter."""

    name: str
    norm: float | None  # None: there is no gradient
    parameter_norm: float
    nans: int = 0
    infinities: int = 0
    without: str = ""  # why there is no gradient
    frozen: bool = False

    @property
    def ratio(self) -> float | None:
        """Return the gradient's norm over the parameter's: how far a step of size one would move it."""
        return self.norm / self.parameter_norm if self.norm is not None and self.parameter_norm else None

    @property
    def remark(self) -> str:
        """Say what is wrong, if anything."""
        if self.norm is None:
            return self.without
        if self.nans or self.infinities:
            return ", ".join(f"{n} {what}" for n, what in ((self.nans, "NaN"), (self.infinities, "Inf")) if n)
        if self.norm == 0:
            return "zero"
        if self.frozen:
            return "frozen, with an old gradient"
        if self.ratio is None:
            return ""  # a parameter that is zero, as biases are at first
        return "vanishing" if self.ratio < VANISHING else "exploding" if self.ratio > EXPLODING else ""


class GradientFlow:
    """The gradients of a model, parameter by parameter. Printing it gives a table; `plot()` draws it."""

    def __init__(self, rows: list[Flow]) -> None:
        self.rows = rows

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Flow:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    @property
    def problems(self) -> list[Flow]:
        """Return the rows that have a remark; to be frozen is no problem."""
        return [row for row in self.rows if row.remark and row.remark != FROZEN]

    def __repr__(self) -> str:
        shown = [("parameter", "grad norm", "norm", "ratio", "")]
        for row in self.rows:
            shown.append((row.name, _number(row.norm), _number(row.parameter_norm), _number(row.ratio), row.remark))
        widths = [max(len(line[k]) for line in shown) for k in range(4)]
        lines = [
            f"{line[0]:<{widths[0]}}  " + "  ".join(f"{line[k]:>{widths[k]}}" for k in (1, 2, 3)) + f"  {line[4]}"
            for line in shown
        ]
        if any(row.without == NOT_YET for row in self.rows):
            lines.append(NO_GRADIENTS)
        return "\n".join(line.rstrip() for line in lines)

    def plot(self, path: Any = None) -> Any:
        """Draw the norms of gradients and parameters with matplotlib; returns the figure, saves it if given a path."""
        height, words = row_height(len(self.rows), 0.32)
        figure, axes = subplots(8, height * len(self.rows) + 1.6)
        at = np.arange(len(self.rows))
        problems = self.problems
        shown = [value for row in self.rows for value in (row.norm, row.parameter_norm) if _is_drawable(value)]
        least = min(shown, default=1.0) / 10  # where bars begin: a logarithmic axis has no zero
        norms = [row.norm if _is_drawable(row.norm) else least for row in self.rows]
        colours = [ALARM if row in problems else STRONG for row in self.rows]
        axes.barh(at, norms, color=colours)
        known = [(row.parameter_norm, k) for k, row in enumerate(self.rows) if _is_drawable(row.parameter_norm)]
        (marks,) = axes.plot([x for x, _ in known], [y for _, y in known], "k|", markersize=10)
        for k, row in enumerate(self.rows):
            if row.remark:
                colour = ALARM if row in problems else MUTED
                axes.text(norms[k], k, f"  {row.remark}", va="center", fontsize="small", color=colour)
        axes.set_yticks(at, [row.name for row in self.rows], fontsize=words)
        axes.set_xscale("log")
        axes.set_xlim(least, max(shown, default=1.0) * 100)  # room for remarks
        axes.set_xlabel("norm")
        axes.set_title("gradients by parameter")
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
        axes.set_ylim(len(self.rows) - 0.4, -0.6)
        bar = axes.fill_between([], [], [], color=STRONG)
        axes.legend([bar, marks], ["of the gradient", "of the parameter"], loc="best", fontsize="small")
        return finished(figure, path)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3e}"


def _is_drawable(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value) and value > 0


@guarded
def gradient_flow(model: Any, *, plot: bool = False, path: Any = None) -> Any:
    """Tabulate the gradients of a model's parameters, in its order; with `plot=True` return a picture of them.

    `model` is a Module, or anything with `named_parameters()`, or a mapping or iterable of (name, tensor). With a `path` the
    picture is saved there.

    Example:
        >>> model = nn.Linear(2, 1, bias=False)
        >>> model(torch.tensor([3.0, 4.0])).backward()
        >>> print(str(torch.debug.gradient_flow(model)).splitlines()[0].split()[:3])
        ['parameter', 'grad', 'norm']
    """
    named = _named(model)
    without = NOT_YET if all(parameter.grad is None for _, parameter in named) else NOT_REACHED
    rows = []
    for name, parameter in named:
        own = _norm(_wide(parameter))
        frozen = not parameter.requires_grad
        if parameter.grad is None:
            rows.append(Flow(name, None, own, without=FROZEN if frozen else without, frozen=frozen))
            continue
        grad = _wide(parameter.grad)
        nans, infinities = int(np.isnan(grad).sum()), int(np.isinf(grad).sum())
        rows.append(Flow(name, _norm(grad), own, nans, infinities, frozen=frozen))
    found = GradientFlow(rows)
    return found.plot(path) if plot or path is not None else found


def _named(model: Any) -> list[tuple[str, Any]]:
    """Return the names and tensors of what was given, or say what is wrong with it."""
    expected = "gradient_flow(): expected a Module, or names with their tensors,"
    if hasattr(model, "named_parameters"):
        pairs = list(model.named_parameters())
    elif isinstance(model, _base.Tensor) or not isinstance(model, Iterable):
        raise TypeError(f"{expected} but got {type(model).__name__}")
    else:
        pairs = list(model.items() if isinstance(model, Mapping) else model)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"{expected} but got a {type(pair).__name__} in it; {_NAMES}")
        if not isinstance(pair[1], _base.Tensor):
            raise TypeError(f"gradient_flow(): {pair[0]!r} is not a Tensor but {type(pair[1]).__name__}")
    return pairs


_NAMES = "give model.named_parameters() instead of model.parameters()"


def _wide(tensor: Any) -> np.ndarray:
    array = np.asarray(raw_leaf(tensor.detach().cpu()._array))
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _norm(array: np.ndarray) -> float:
    return float(np.sqrt(np.sum(np.abs(array) ** 2)))
