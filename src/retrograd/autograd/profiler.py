"""torch.autograd.profiler: contexts that programs enter; nothing is measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, Self

__all__ = ["emit_itt", "emit_nvtx", "profile", "record_function"]


class _Context:
    """A block, or a decorator, that changes nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated


class record_function(_Context):  # noqa: N801
    """Name a block of code for the profiler."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args


class emit_nvtx(_Context):  # noqa: N801
    """Accepted; no ranges are written."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled


class emit_itt(emit_nvtx):  # noqa: N801
    """Accepted; no ranges are written."""


class profile(_Context):  # noqa: N801
    """Accepted as a block; asking it for results raises NotImplementedError."""

    def __init__(self, enabled: bool = True, **settings: Any) -> None:
        self.enabled = enabled

    def _refuse(self, name: str) -> NoReturn:
        raise NotImplementedError(
            f"profile.{name}: retrograd measures nothing. Use cProfile for time, `retrograd.debug.saved_bytes` for memory."
        )

    def key_averages(self, *args: Any, **kwargs: Any) -> Any:
        """Raise NotImplementedError."""
        self._refuse("key_averages")

    def table(self, *args: Any, **kwargs: Any) -> Any:
        """Raise NotImplementedError."""
        self._refuse("table")

    def export_chrome_trace(self, path: str) -> Any:
        """Raise NotImplementedError."""
        self._refuse("export_chrome_trace")

    def events(self) -> Any:
        """Raise NotImplementedError."""
        self._refuse("events")
