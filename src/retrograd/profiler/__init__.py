"""torch.profiler: what a program does in each of its steps, and how long it takes."""

from .._absent import finder
from ..autograd.profiler import record_function
from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)


def kineto_available() -> bool:
    """Tell whether torch's library that follows GPUs is there."""
    return False


__getattr__ = finder("torch.profiler")

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
