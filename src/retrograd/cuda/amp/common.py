"""torch.cuda.amp.common: whether automatic precision has a device."""

from .. import is_available


def amp_definitely_not_available() -> bool:
    """Tell that there is no GPU."""
    return not is_available()


__all__ = ["amp_definitely_not_available"]
