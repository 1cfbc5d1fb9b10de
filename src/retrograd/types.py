"""torch.types: names for the types that signatures of programs mention."""

from __future__ import annotations

import os
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import IO

from ._device import device as _device
from ._device import layout as _layout
from ._dtypes import dtype as _dtype
from ._size import Size
from .autograd.graph import GradientEdge
from .tensor import Tensor
from .tensor._storage.storages import UntypedStorage as Storage

Number = _int | _float | _bool
_Number = (_int, _float, _bool)
Device = _device | _str | _int | None
FileLike = _str | os.PathLike[_str] | IO[_bytes]
_size = Size | list[_int] | tuple[_int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge = Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge]
# Nothing is traced here, so that a number is always known: torch has its symbolic kinds beside these.
IntLikeType = _int
FloatLikeType = _float
BoolLikeType = _bool

__all__ = [
    "BoolLikeType",
    "Device",
    "FileLike",
    "FloatLikeType",
    "IntLikeType",
    "Number",
    "Size",
    "Storage",
    "Tensor",
    "_TensorOrOptionalTensors",
    "_TensorOrTensors",
    "_TensorOrTensorsOrGradEdge",
    "_bool",
    "_bytes",
    "_complex",
    "_device",
    "_dtype",
    "_float",
    "_int",
    "_layout",
    "_size",
    "_str",
]
