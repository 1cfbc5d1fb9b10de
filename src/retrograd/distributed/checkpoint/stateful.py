"""torch.distributed.checkpoint.stateful: objects that give and take their state themselves."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """Whatever has `state_dict` and `load_state_dict`."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state over."""


StatefulT = TypeVar("StatefulT", bound=Stateful)

__all__ = ["Stateful"]
