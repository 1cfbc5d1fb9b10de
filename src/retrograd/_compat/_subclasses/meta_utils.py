"""torch._subclasses.meta_utils: making tensors of the meta device that lie in memory as others do."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import retrograd
from retrograd.nn.parameter import make_parameter


class MetaConverter:
    """Makes meta tensors like others; the same one of the same tensor again, as long as it lives."""

    def __init__(self, *, copy_data: bool = False) -> None:
        if copy_data:
            raise NotImplementedError("MetaConverter(copy_data=True): meta tensors keep no data here")
        self.made: WeakValueDictionary[int, Any] = WeakValueDictionary()

    def meta_tensor(self, t: Any, **_: Any) -> Any:
        """Return a tensor of the meta device in the shape, dtype and strides of another."""
        found = self.made.get(id(t))
        if found is not None:
            return found
        made: Any = retrograd.empty_strided(tuple(t.shape), t.stride(), dtype=t.dtype, device="meta")
        if isinstance(t, retrograd.nn.Parameter):
            made = make_parameter(made, t.requires_grad)
        elif t.requires_grad:
            made.requires_grad_()
        self.made[id(t)] = made
        return made

    def __call__(self, t: Any, **options: Any) -> Any:
        return self.meta_tensor(t, **options) if isinstance(t, retrograd.Tensor) else t
