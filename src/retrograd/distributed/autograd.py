"""torch.distributed.autograd: backward over several processes, which needs RPC. It is not there."""

from .._absent import finder

__getattr__ = finder("torch.distributed.autograd")


def is_available() -> bool:
    """Tell whether backward over several processes can be had: it cannot."""
    return False


__all__ = ["is_available"]
