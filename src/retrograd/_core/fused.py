"""Fused operations: few passes over memory on plain arrays, a decomposition into primitives for everything else.

Note [Fused operations]
A fused operation has three parts:
- the implementation, on raw arrays of one library: `function(xp, *arrays, **params)` returns the result and its residuals, which
  are whatever its backward wants to find again (arrays, or anything else; None if nothing). An array may be None;
- the backward, on raw arrays: `function(xp, g, needed, residuals, *arrays, **params)` returns a gradient for every array, None
  where `needed` says so. With several outputs `g` is a tuple with None where no gradient arrived;
- the decomposition, in the vocabulary `xp`: `function(xp, *arrays, **params)` returns the result. It serves whatever is not a plain
  array of real numbers: duals, batches, complex numbers; and the backward's own derivatives. So forward mode, vmap and every
  order are those of the primitives, and nobody derives a second derivative by hand.
Half precision arrives in the implementation and in the backward as float32, and is rounded once, unless `takes_halves=True`, where they do
that themselves, or `widens=False`, where the decomposition does, too.
One with a single result may have two more parts, for a batch of one vmap over plain arrays, where a decomposition would take many calls:
- the batching rule: `function(xp, count, batched, *arrays, **params)`; arrays have their batch axis first where `batched` says so. It
  returns what the implementation does, batch axis first, or None, and the decomposition runs;
- its backward: `function(xp, g, needed, residuals, batched, *arrays, **params)`, which sums nothing over the batch: gradients
  have their batch axis first whether or not the array has one.
`tensor/_recording/fused.py` records calls. A test checks that implementation and decomposition agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._stored import refuse
from .numpy_namespace import SINGLE, ArrayNamespace, cast, is_half, numpy_namespace, raw_namespace
from .primitive import FUSED, parameters_of
from .shown import Shown

fused_operations: dict[str, Fused] = {}

NDARRAY = np.ndarray


class Fused(Shown):
    """An operation as Note [Fused operations] describes it."""

    kind = FUSED
    hot_if = None

    def __init__(
        self,
        node_name: str,
        function: Callable[..., Any],
        *,
        outputs: int = 1,
        widens: bool = True,
        takes_halves: bool = False,
        unread: tuple[str, ...] = (),
        reads_result: bool = True,
        shows: str | None = None,
        edges: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(shows)
        self.name = function.__name__
        self.node_name = node_name
        self.implementation = function
        self.inputs = parameters_of(function)[1:]
        self.outputs = outputs
        self.widens = widens
        self.takes_halves = takes_halves or not widens
        self.unread = unread  # inputs that the backward does not read, nor whether they were written into since
        self.reads_result = reads_result  # whether torch's backward reads anything that its forward has made
        self.edges = edges  # positions of the inputs that torch has edges for; None: all
        self.back: Callable[..., Any] = _missing
        self.parts: Callable[..., Any] = _missing
        self.batch_rule: Callable[..., Any] | None = None
        self.batch_back: Callable[..., Any] = _missing
        self.node_class: Any = None  # made by the tensor layer
        self.recorders: dict[str | None, Any] = {}  # what `tensor/_recording/flat.py` has written, under None
        self.__doc__ = function.__doc__
        if self.name in fused_operations:
            raise TypeError(f"fused operation {self.name!r} is declared twice")
        fused_operations[self.name] = self

    def backward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the backward on raw arrays."""
        self.back = function
        return function

    def decomposition(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the operation in the vocabulary `xp`."""
        self.parts = function
        return function

    def batch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the batching rule on raw arrays."""
        self.batch_rule = function
        return function

    def batch_backward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the backward of the batching rule, on raw arrays."""
        self.batch_back = function
        return function

    def run(self, arrays: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        """Run on raw arrays: the result and the residuals."""
        for array in arrays:
            if getattr(array, "stores_only", False):
                refuse(self.node_name, self.node_name.partition("Backward")[0], array.dtype)
        xp = _library(arrays)
        if xp.runs_operations:
            return xp.run_fused(self, arrays, params)  # type: ignore[no-any-return]
        half = None if self.takes_halves else _half_of(arrays)
        if half is None:
            return self.implementation(xp, *arrays, **params)  # type: ignore[no-any-return]
        out, residuals = self.implementation(xp, *map(single, arrays), **params)
        if self.outputs == 1:
            return cast(out, half), residuals
        return tuple(cast(part, half) if part.dtype.kind == "f" else part for part in out), residuals

    def pull_back(
        self, g: Any, needed: tuple[bool, ...], residuals: Any, arrays: Sequence[Any], params: Any, xp: Any = None
    ) -> Any:
        """Run the backward on raw arrays; the edges bring gradients to the inputs' dtypes."""
        xp = _library(arrays) if xp is None else xp
        if xp.runs_operations:
            return xp.pull_back_fused(self, g, needed, residuals, arrays, params)
        if not self.takes_halves and _half_of(arrays) is not None:
            arrays = [single(a) for a in arrays]
            g = tuple(map(single, g)) if type(g) is tuple else single(g)
        return self.back(xp, g, needed, residuals, *arrays, **params)


def _missing(*args: Any, **params: Any) -> Any:
    raise NotImplementedError("a fused operation needs a backward and a decomposition")


def _library(arrays: Sequence[Any]) -> ArrayNamespace:
    for array in arrays:
        if array is not None and type(array) is not NDARRAY and not isinstance(array, np.generic):
            return raw_namespace(array)
    return numpy_namespace


def _half_of(arrays: Sequence[Any]) -> np.dtype[Any] | None:
    for array in arrays:
        if array is not None and is_half(array.dtype):
            return array.dtype  # type: ignore[no-any-return]
    return None


def single(array: Any) -> Any:
    """Return an array in float32 if it is of half precision, and any other, or None, as it is."""
    return array if array is None or not is_half(array.dtype) else cast(array, SINGLE)


def fused(node_name: str, **options: Any) -> Callable[[Callable[..., Any]], Fused]:
    """Declare a fused operation under torch's name for its node. See Note [Fused operations]."""
    return lambda function: Fused(node_name, function, **options)
