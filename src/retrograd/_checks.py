"""torch's checks of conditions: `torch._assert`, `torch._check` and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._warnings import warn
from .overrides import handle_torch_function, has_torch_function
from .tensor import Tensor

NO_MESSAGE = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request "
    "to PyTorch.)"
)


def _assert(condition: Any, message: str) -> None:
    """Assert a condition; a traced program records it."""
    if type(condition) is not Tensor and has_torch_function((condition,)):
        return handle_torch_function(_assert, (condition,), condition, message)  # type: ignore[no-any-return]
    assert condition, message
    return None


def _assert_async(
    condition: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero"
) -> None:
    """Raise an error if a tensor of one element is zero."""
    if not condition:
        raise RuntimeError(assert_msg)


def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise an error of a class if a condition does not hold."""
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that all "
            "elements are true."
        )
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error_type(_text(message))


def _text(message: Callable[[], Any] | None) -> str:
    if message is None:
        return NO_MESSAGE
    if not callable(message):
        raise TypeError("message must be a callable")
    return str(message())


def _check(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise a RuntimeError if a condition does not hold."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise an IndexError if a condition does not hold."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise a ValueError if a condition does not hold."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise a TypeError if a condition does not hold."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise a NotImplementedError if a condition does not hold."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None:
    """Raise an error if a number is no size."""
    warn(
        "_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious.     "
        "Use _check(i >= 0) instead.",
        FutureWarning,
    )
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise an error of a class if an element is false."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise a RuntimeError if an element is false."""
    _check_tensor_all_with(RuntimeError, cond, message)
