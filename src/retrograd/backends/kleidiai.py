"""torch.backends.kleidiai: kernels for ARM, which are not there."""


def is_available() -> bool:
    """Tell whether they are there."""
    return False


__all__ = ["is_available"]
