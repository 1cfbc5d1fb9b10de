"""matplotlib, which the pictures of `debug` need."""

from __future__ import annotations

from typing import Any

PALE, STRONG, ALARM = "#9bb8d3", "#1f5f99", "#c8442b"


def subplots(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    """Return a new figure, which belongs to no window, and its axes, or a list of them."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'retrograd[plots]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns)


def finished(figure: Any, path: Any) -> Any:
    """Save a figure if there is a path, and return it; a notebook shows what a cell returns."""
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
