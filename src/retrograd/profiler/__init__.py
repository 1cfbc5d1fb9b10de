"""torch.profiler: what a program does in each of its steps, and how long it takes."""

from .._absent import finder
from . import profiler
from .profiler import *  # noqa: F403


def kineto_available() -> bool:
    """Tell whether torch's library that follows GPUs is there."""
    return False


__getattr__ = finder("torch.profiler")

__all__ = ["kineto_available", *profiler.__all__]
