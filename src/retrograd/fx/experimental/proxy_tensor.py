"""torch.fx.experimental.proxy_tensor: traces at the level of single operations."""

from __future__ import annotations

from typing import Any

__all__ = ["get_proxy_mode", "make_fx"]


def get_proxy_mode() -> None:
    """Return the trace of single operations that is being recorded: there is none."""


def make_fx(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Refuse: traces here are of calls of functions and modules."""
    raise NotImplementedError(
        "make_fx needs a trace of single operations, which retrograd does not record yet\n"
        "Hint: torch.fx.symbolic_trace records calls of functions, methods and modules."
    )
