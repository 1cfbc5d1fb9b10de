"""torch._dynamo._trace_wrapped_higher_order_op: the block in which masks that are written for one position run over all."""

from __future__ import annotations

from typing import Any

import retrograd
from retrograd.overrides import TorchFunctionMode
from retrograd.utils._pytree import tree_leaves

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """Lets a tensor without dimensions choose an entry by its value when the program runs over a batch of such."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is retrograd.Tensor.__getitem__:
            indices = tree_leaves(args[1])
            if all(isinstance(one, (retrograd.Tensor, int)) for one in indices):
                chosen = [
                    retrograd.tensor(one, device=args[0].device) if isinstance(one, int) else one for one in indices
                ]
                return retrograd.ops.aten.index(args[0], chosen)
        return func(*args, **(kwargs or {}))
