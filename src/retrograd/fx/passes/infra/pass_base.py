"""A pass: a change of a module's graph, with checks before and after."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

from ...graph_module import GraphModule


class PassResult(NamedTuple):
    """What a pass gives: the module, and whether it was changed."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass as a class: override `call`."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Change the module."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027 - may stay as it is
        """Check what must hold before."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027 - may stay as it is
        """Check what must hold after."""


__all__: list[Any] = ["PassBase", "PassResult"]
