"""Settings of the whole process: threads, determinism, precision, warnings."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from . import _warnings

_threads: int | None = None  # None: as many as the process may use
_deterministic = _warn_only = False
_precision = "highest"
_fills_memory = True  # torch.utils.deterministic.fill_uninitialized_memory


def get_num_threads() -> int:
    """Return how many threads BLAS may use for one operation."""
    return _threads if _threads is not None else _cores()


@cache
def _cores() -> int:
    """Return how many cores the process may use; the system is asked once, as every compiled call and every shared kernel asks."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_num_threads(num: int) -> None:
    """Set how many threads BLAS may use for one operation.

    Args:
        num: how many

    Example:
        >>> before = torch.get_num_threads()
        >>> torch.set_num_threads(1)
        >>> torch.get_num_threads()
        1
        >>> torch.set_num_threads(before)
    """
    global _threads
    if not isinstance(num, int) or isinstance(num, bool):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    from threadpoolctl import threadpool_limits

    threadpool_limits(num)
    _threads = num


def get_num_interop_threads() -> int:
    """Return how many operations run at once: as many as the user starts threads."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Accept torch's setting: operations run one after another in each of the user's threads."""
    if num <= 0:
        raise RuntimeError("Expected positive number of threads")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accept torch's switch; every operation here is deterministic in any case.

    Args:
        mode: on or off
        warn_only: for torch's sake

    Example:
        >>> torch.use_deterministic_algorithms(True)
        >>> torch.are_deterministic_algorithms_enabled()
        True
        >>> torch.use_deterministic_algorithms(False)
    """
    global _deterministic, _warn_only
    if not isinstance(mode, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
        )
    _deterministic, _warn_only = mode, warn_only


def marks_unset_memory() -> bool:
    """Tell whether memory that nobody has written is to hold what shows: NaN, or the largest number."""
    return _deterministic and _fills_memory


def are_deterministic_algorithms_enabled() -> bool:
    """Tell whether the switch is on."""
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Tell whether the switch is on for warnings only."""
    return _warn_only


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the switch by torch's numbers or words."""
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode != 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """Return the switch as torch's number."""
    return 0 if not _deterministic else 1 if _warn_only else 2


def set_float32_matmul_precision(precision: str) -> None:
    """Accept torch's setting; float32 products are computed in float32 in any case."""
    global _precision
    if precision not in ("highest", "high", "medium"):
        _warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the currentsetFloat32MatmulPrecision call has no "
            "effect."
        )
        return
    _precision = precision


def get_float32_matmul_precision() -> str:
    """Return the setting."""
    return _precision


def set_flush_denormal(mode: bool) -> bool:
    """Say whether denormal numbers can be flushed to zero: NumPy cannot."""
    return not mode


def set_warn_always(mode: bool) -> None:
    """Let what is said once in a process be said each time."""
    _warnings.always = bool(mode)


def is_warn_always_enabled() -> bool:
    """Tell whether the switch is on."""
    return _warnings.always


def typename(obj: Any) -> str:
    """Return the name of an object's type, or of a class, with its module."""
    if hasattr(obj, "requires_grad") and hasattr(obj, "type"):
        return str(obj.type())
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "") or ""
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


PUBLIC = """get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads use_deterministic_algorithms
are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled set_deterministic_debug_mode
get_deterministic_debug_mode set_float32_matmul_precision get_float32_matmul_precision set_flush_denormal set_warn_always
is_warn_always_enabled typename""".split()  # noqa: SIM905 - names read better as text
