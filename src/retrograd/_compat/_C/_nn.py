"""torch's functions of layers that are written in C++, by the names that pickles have for them."""

from __future__ import annotations

from typing import Any

from retrograd.nn.modules.module import _parse_to as _read_to

from . import public_names

__getattr__ = public_names(".nn.functional", log_sigmoid="logsigmoid")


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Read the arguments of `Module.to`: device, dtype, non_blocking and memory format."""
    return _read_to(args, kwargs)
