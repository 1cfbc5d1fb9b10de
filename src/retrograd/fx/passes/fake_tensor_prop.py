"""Run a graph on tensors without values, and note at each node what it gave."""

from __future__ import annotations

from typing import Any

from ..._subclasses.fake_tensor import FakeTensorMode  # type: ignore[import-not-found]  # an alias of _compat's
from ...tensor import Tensor
from .. import Interpreter, Node, map_aggregate
from ..graph_module import GraphModule

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Notes what each node gives as `val` in its `meta`; nothing is computed."""

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def run_node(self, n: Node) -> Any:
        """Run a node, and note what it gave."""
        result = super().run_node(n)

        def noted(value: Any) -> Any:
            if isinstance(value, Tensor):
                return self._mode.from_tensor(value).detach()
            return value if isinstance(value, (int, float, bool)) else None

        meta = map_aggregate(result, noted)
        if meta is not None:
            n.meta["val"] = meta
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with tensors like these."""
        return self.propagate_dont_convert_inputs(
            *(self._mode.from_tensor(arg) if isinstance(arg, Tensor) else arg for arg in args)
        )

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph with these tensors, which have no values already."""
        with self._mode:
            return super().run(*args)
