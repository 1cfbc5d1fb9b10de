"""Keeping some elements, scaled, and dropping the others: the operation and its backward are the same."""

from __future__ import annotations

from .._core.primitive import elementwise
from .implementations import wide

keep_scaled = elementwise(
    "keep_scaled",
    torch="native_dropout",
    inputs=("x", "y"),
    statics=("scale",),
    implementation=wide(lambda xp, x, y, *, scale: x * y * scale),
    dx=lambda xp, g, y, scale: xp.keep_scaled(g, y, scale=scale),
    shows="result1=y scale",
)
