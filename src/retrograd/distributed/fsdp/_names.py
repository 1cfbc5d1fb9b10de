"""The names of parameters without what wrappers put in front."""

from __future__ import annotations

from typing import Any

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FSDP_PREFIX = f"{FSDP_WRAPPED_MODULE}."
CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
WRAPPERS = (FSDP_WRAPPED_MODULE, CHECKPOINT_WRAPPED_MODULE, "_orig_mod")


def clean_name(name: str) -> str:
    """Return the name that a parameter has in the module inside: of DistributedDataParallel's `module.`, too, if it is first."""
    return clean_tensor_name(name).removeprefix("module.")


def clean_tensor_name(tensor_name: str) -> str:
    """Return a name without the parts that FSDP and checkpointing put in."""
    return ".".join(part for part in tensor_name.split(".") if part not in WRAPPERS)


def unwrap_names(state: dict[str, Any], prefix: str, wrapper: str) -> None:
    """Take a wrapper's part out of the names of a state."""
    inside = f"{prefix}{wrapper}."
    for name in [name for name in state if name.startswith(inside)]:
        state[prefix + name.removeprefix(inside)] = state.pop(name)


def wrap_names(state: dict[str, Any], prefix: str, wrapper: str) -> None:
    """Put a wrapper's part into the names of a state."""
    inside = f"{prefix}{wrapper}."
    for name in [name for name in state if name.startswith(prefix) and not name.startswith(inside)]:
        state[inside + name.removeprefix(prefix)] = state.pop(name)
