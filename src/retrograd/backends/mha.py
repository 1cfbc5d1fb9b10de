"""torch.backends.mha: whether attention may take its quick path. There is one path here."""

from __future__ import annotations

_enabled = True


def get_fastpath_enabled() -> bool:
    """Return the switch."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Accept the switch."""
    global _enabled
    _enabled = value
