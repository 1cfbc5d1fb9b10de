"""The classes of torch's named results, by name."""

from __future__ import annotations

from typing import Any

from .tensor._object.return_types import make
from .tensor._results import RESULTS

# What torch returns for a call with `out`: a class of its own, with the same fields.
_FIELDS = RESULTS | {f"{name}_out": fields for name, fields in RESULTS.items() if name != "histogramdd"}


def pytree_register_structseq(cls: Any) -> None:
    """Tell `utils._pytree` how to take results of a class apart."""
    from .utils._pytree import register_pytree_node

    register_pytree_node(cls, lambda value: (list(value), None), lambda values, context: cls(values))


def __getattr__(name: str) -> Any:
    if name in _FIELDS:
        return make(name, *_FIELDS[name].split())
    if name == "all_return_types":
        return [make(one, *fields.split()) for one, fields in sorted(_FIELDS.items())]
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(_FIELDS)
