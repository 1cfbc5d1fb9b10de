"""torch.distributed.rpc: functions that other processes run. It is not there, and says so."""

from ..._absent import finder

__getattr__ = finder("torch.distributed.rpc")


def is_available() -> bool:
    """Tell whether other processes can run functions: they cannot."""
    return False


__all__ = ["is_available"]
