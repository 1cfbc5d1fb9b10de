"""matplotlib, which the pictures of `debug` need."""

from __future__ import annotations

import io
from typing import Any

PALE, STRONG, ALARM, MUTED = "#9bb8d3", "#1f5f99", "#c8442b", "#7a7a7a"
TALLEST = 40.0  # inches; what has more rows gets lower ones


def subplots(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    """Return a new figure, which belongs to no window, and its axes, or a list of them."""
    try:
        kind = _figures()
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install matplotlib") from None
    figure = kind(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns)


def row_height(rows: int, height: float) -> tuple[float, str]:
    """Return how high a row is in a picture with so many of them, and the size of its words."""
    fitting = min(height, TALLEST / max(rows, 1))
    return fitting, "medium" if fitting == height else "x-small"


def _figures() -> Any:
    """Return the class of figures that a notebook shows: matplotlib's show themselves only after pyplot was imported."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that is shown as the value of a cell."""

        def _repr_png_(self) -> bytes:
            written = io.BytesIO()
            self.savefig(written, format="png", dpi=100)
            return written.getvalue()

    return Picture


def finished(figure: Any, path: Any) -> Any:
    """Save a figure if there is a path, and return it; a notebook shows what a cell returns."""
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
