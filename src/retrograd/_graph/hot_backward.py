"""The hot backward: nodes whose saved values are as they were, on NumPy arrays, on levels, and on Tensors.

Written out as text for each node class, with the rules' arguments in place: a Python call is 50 ns, a NumPy call 250. What
is in doubt (a value overwritten or freed, one that hooks hold, complex numbers, another device) goes `Node.pull_back`'s way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import LEVEL_TYPES
from .._core.numpy_namespace import _NUMPY_TYPES, numpy_namespace
from .._core.parallel import WIDE, rule_in_blocks
from .._core.primitive import ELEMENTWISE, vocabulary
from .guards import intact

# `v` has what the rules read: the node itself, or its saved values as Tensors.
_CHOOSE = """
    if (((guard := self.guard) is not None and not intact(guard)){stale}):
        return slow(self, g, graph, mask)
    v, meta = self, self.meta
    if graph:
        if meta is not None and meta.complex:
            return slow(self, g, graph, mask)
        xp, v = vocabulary, self.values(True)
    elif type(g) in raw_types and (meta is None or not meta.special):
        xp = numpy_xp
    elif type(g) in level_types and (meta is None or not meta.complex):
        xp = vocabulary
    else:
        return slow(self, g, graph, mask)"""
_UNARY_PULL_BACK = """
def pull_back(self, g, graph, mask=None):{choose}{wide}
    return (dx(xp, g{x_arguments}),)
"""
_BINARY_PULL_BACK = """
def pull_back(self, g, graph, mask=None):{choose}
    ex, ey = self._edges if mask is None else mask{wide}
    gx = None if ex is None else dx(xp, g{x_arguments})
    gy = None if ey is None else dy(xp, g{y_arguments}){compare}
    return gx, gy
"""
_GENERAL_PULL_BACK = """
def pull_back(self, g, graph, mask=None):{choose}
    edges = self._edges if mask is None else mask
    if len(edges) != {count}:  # inputs that may be left out
        return slow(self, g, graph, mask)
    return ({terms})
"""
# Large arrays go block by block, on several threads.
_WIDE_UNARY = """
    if type(g) is ndarray and g.size >= WIDE:
        return (rule_in_blocks(dx, xp, g, ({x_values})),)"""
_WIDE_BINARY = """
    if type(g) is ndarray and g.size >= WIDE and self.meta is None{same_shape}:
        return (
            None if ex is None else rule_in_blocks(dx, xp, g, ({x_values})),
            None if ey is None else rule_in_blocks(dy, xp, g, ({y_values})),
        )"""
# Broadcasting that the hot path of forward has not noticed: it looks at shapes only where one input alone needs a gradient.
_COMPARE = """
    if meta is None and (mask is not None or (ex is not None and ey is not None)) and self.x.shape != self.y.shape:
        if gx is not None and gx.shape != (shape := self.x.shape):
            gx = xp.sum_to(gx, shape=shape)
        if gy is not None and gy.shape != (shape := self.y.shape):
            gy = xp.sum_to(gy, shape=shape)"""
# A Storage that appeared after a value was saved, and has been written: the slow way will explain.
_STALE_INPUT = """
        or ((e := self._edges[{i}]) is not None and (s := e._storage) is not None and s.version)"""
_STALE_OUTPUT = """
        or (self._storage is not None and self._storage.version)"""
_RELEASE = """
def release(self, freed):
    {clear}
    self.guard = freed
"""


def hot_methods(primitive: Any, rules: tuple[Any, ...], arrays: tuple[str, ...], slow: Any) -> dict[str, Any]:
    """Write `pull_back` and `release` for the nodes of a primitive; `slow` is `Node.pull_back_some`."""
    stale = "".join(_STALE_INPUT.format(i=i) for i, name in enumerate(primitive.inputs) if name in arrays)
    stale += _STALE_OUTPUT if "out" in arrays else ""
    choose = _CHOOSE.format(stale=stale)
    scope: dict[str, Any] = {"numpy_xp": numpy_namespace, "raw_types": _NUMPY_TYPES, "ndarray": np.ndarray}
    scope |= {"WIDE": WIDE, "rule_in_blocks": rule_in_blocks, "slow": slow, "intact": intact}
    scope |= {"vocabulary": vocabulary, "level_types": LEVEL_TYPES}
    if primitive.kind != ELEMENTWISE or None in rules or len(rules) > 2:
        scope |= {f"rule{i}": rule.function for i, rule in enumerate(rules) if rule is not None}
        terms = [
            "None, " if rule is None else f"None if edges[{i}] is None else rule{i}(xp, g{_arguments(rule)}), "
            for i, rule in enumerate(rules)
        ]
        text = _GENERAL_PULL_BACK.format(choose=choose, count=len(rules), terms="".join(terms))
    elif len(rules) == 1:
        scope["dx"] = rules[0].function
        wide = _WIDE_UNARY.format(x_values=_values(rules[0])) if arrays else ""
        text = _UNARY_PULL_BACK.format(choose=choose, x_arguments=_arguments(rules[0]), wide=wide)
    else:
        scope["dx"], scope["dy"] = (rule.function for rule in rules)
        both = "x" in arrays and "y" in arrays
        same_shape = " and (ex is None or ey is None or self.x.shape == self.y.shape)" if both else ""
        wide = _WIDE_BINARY.format(x_values=_values(rules[0]), y_values=_values(rules[1]), same_shape=same_shape)
        text = _BINARY_PULL_BACK.format(
            wide=wide if arrays else "",
            choose=choose,
            x_arguments=_arguments(rules[0]),
            y_arguments=_arguments(rules[1]),
            compare=_COMPARE if both else "",
        )
    if arrays:
        text += _RELEASE.format(clear=" = ".join(f"self.{name}" for name in arrays) + " = None")
    exec(text, scope)
    scope["pull_back_some"] = scope["pull_back"]
    return {name: scope[name] for name in ("pull_back", "pull_back_some", "release") if name in scope}


def _arguments(rule: Any) -> str:
    return "".join(f", v.{name}" for name in rule.names)


def _values(rule: Any) -> str:
    return "".join(f"self.{name}, " for name in rule.names)
