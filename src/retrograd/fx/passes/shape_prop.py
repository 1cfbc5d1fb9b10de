"""Run a graph on example values, and note at each node what it gave."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

import retrograd as torch

from .. import Interpreter, Node, map_aggregate


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    layout = None
    if include_contiguity:
        for each in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d):
            if result.is_contiguous(memory_format=each):
                layout = each
                break
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {})


class ShapeProp(Interpreter):
    """Notes `tensor_meta` and `type` of what each node gives, in its `meta`."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """Run a node, and note what it gave."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def extract(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, torch.Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, extract)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these arguments."""
        return super().run(*args)
