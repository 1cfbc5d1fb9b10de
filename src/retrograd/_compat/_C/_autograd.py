"""torch._C._autograd: saved values and the hooks on them, as programs ask for them by their C++ names."""

from __future__ import annotations

from typing import Any

from retrograd._graph.unpacked import SavedTensor as SavedTensor
from retrograd._graph.unpacked import check_hooks
from retrograd._modes import change_mode, current_mode
from retrograd.autograd import _running
from retrograd.autograd._function_node import Saved
from retrograd.autograd._function_node import SavedTensor as _SavedByPosition
from retrograd.tensor import Tensor
from retrograd.tensor._base import LEAF, storage_of

_get_current_graph_task_keep_graph = _running.keeps_graph


class _Kept:
    """Keeps one tensor as a node keeps what it saves."""

    guard: Any = None

    def __init__(self, tensor: Any, is_output: bool) -> None:
        self._kept = [Saved(tensor, None)]
        self.lost = is_output and tensor._edge is not None and tensor._edge is not LEAF
        self.tensor = None if is_output else tensor

    def place(self) -> None:
        """Return where it was recorded: nowhere."""

    def saved_tensor(self, at: int) -> Any:
        """Return the tensor: itself, unless hooks hold it."""
        kept = self._kept[at]
        if self.lost and kept.packed is None:
            raise RuntimeError(
                "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not "
                "supported, please use out-of-place `.detach()` instead"
            )
        found = kept.unpack(self)
        return found if kept.packed is not None or self.tensor is None else self.tensor


def _make_saved_tensor(tensor: Any = None, is_output: Any = None, is_inplace_on_view: bool = False) -> Any:
    """Save a tensor as a node would, under the hooks of the block around the call."""
    if not isinstance(tensor, Tensor) or not isinstance(is_output, bool):
        shown = ", ".join(repr(one) for one in (tensor, is_output) if one is not None)
        raise TypeError(
            "_make_saved_tensor(): incompatible function arguments. The following argument types are supported:\n    1. "
            "(tensor: torch.Tensor, is_output: bool, is_inplace_on_view: bool = False) -> torch._C._autograd.SavedTensor"
            f"\n\nInvoked with: {shown}"
        )
    return _SavedByPosition.of(_Kept(tensor, is_output), 0)


def _saved_tensors_hooks_is_enabled() -> bool:
    """Tell whether hooks on saved tensors are allowed here."""
    return current_mode().saved_hooks_disabled is None


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """Return what hooks on saved tensors raise here, if they are not allowed."""
    return current_mode().saved_hooks_disabled


def _saved_tensors_hooks_disable(error_message: str) -> None:
    """Make hooks on saved tensors an error from here on."""
    if current_mode().saved_hooks:
        raise RuntimeError(error_message)
    change_mode(saved_hooks_disabled=error_message)


def _saved_tensors_hooks_enable() -> None:
    """Allow hooks on saved tensors again."""
    change_mode(saved_hooks_disabled=None)


def _push_saved_tensors_default_hooks(pack_hook: Any, unpack_hook: Any) -> None:
    """Hand what is saved from here on to a pair of hooks."""
    check_hooks("_push_saved_tensors_default_hooks", pack_hook, unpack_hook)
    mode = current_mode()
    if mode.saved_hooks_disabled is not None:
        raise RuntimeError(mode.saved_hooks_disabled)
    change_mode(saved_hooks=(*mode.saved_hooks, (pack_hook, unpack_hook)))


def _pop_saved_tensors_default_hooks() -> None:
    """Take the innermost pair of hooks away."""
    change_mode(saved_hooks=current_mode().saved_hooks[:-1])


def _unsafe_set_version_counter(tensors: tuple[Any, ...], versions: tuple[int, ...]) -> None:
    """Set the versions of tensors, which hides writes from the check of saved values."""
    for version in versions:
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
    for tensor, version in zip(tensors, versions, strict=True):
        storage_of(tensor).version = version
