"""The hot backward: elementwise nodes on raw NumPy arrays, shapes and dtypes uniform.

Written out as text for each node class, with the rules' arguments in place: a Python call is 50 ns, a NumPy call 250.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.numpy_namespace import _NUMPY_TYPES, numpy_namespace
from .._core.parallel import WIDE, rule_in_blocks

_UNARY_PULL_BACK = """
def pull_back(self, g, graph):
    if (graph or self.guard is not None or self.meta is not None or type(g) not in raw_types{stale}):
        return slow(self, g, graph){wide}
    return (dx(xp, g{x_arguments}),)
"""
_BINARY_PULL_BACK = """
def pull_back(self, g, graph):
    meta = self.meta
    if (graph or self.guard is not None or (meta is not None and meta.special) or type(g) not in raw_types{stale}):
        return slow(self, g, graph)
    ex, ey = self._edges{wide}
    if ex is None:
        return None, dy(xp, g{y_arguments})
    if ey is None:
        return dx(xp, g{x_arguments}), None
    gx, gy = dx(xp, g{x_arguments}), dy(xp, g{y_arguments})
    {compare}
    return gx, gy
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
_COMPARE = """if meta is None and self.x.shape != self.y.shape:  # broadcasting, not noticed by the hot path of forward
        return xp.sum_to(gx, shape=self.x.shape), xp.sum_to(gy, shape=self.y.shape)"""
# A Storage that appeared after a value was saved, and has been written: the slow way will explain.
_STALE_INPUT = """
        or ((e := self._edges[{i}]) is not None and e._storage is not None and e._storage.version)"""
_STALE_OUTPUT = """
        or (self._storage is not None and self._storage.version)"""
_RELEASE = """
def release(self, freed):
    {clear}
    self.guard = freed
"""


def hot_methods(rules: tuple[Any, ...], arrays: tuple[str, ...], slow: Any) -> dict[str, Any]:
    """Write `pull_back` and `release` for an elementwise node of one or two inputs."""

    def arguments(rule: Any) -> str:
        return "".join(f", self.{name}" for name in rule.names)

    def values(rule: Any) -> str:
        return "".join(f"self.{name}, " for name in rule.names)

    stale = "".join(_STALE_INPUT.format(i=i) for i, name in enumerate(("x", "y")) if name in arrays)
    stale += _STALE_OUTPUT if "out" in arrays else ""
    scope: dict[str, Any] = {"slow": slow, "xp": numpy_namespace, "raw_types": _NUMPY_TYPES, "ndarray": np.ndarray}
    scope |= {"WIDE": WIDE, "rule_in_blocks": rule_in_blocks}
    scope["dx"] = rules[0].function
    if len(rules) == 1:
        wide = _WIDE_UNARY.format(x_values=values(rules[0])) if arrays else ""
        text = _UNARY_PULL_BACK.format(stale=stale, x_arguments=arguments(rules[0]), wide=wide)
    else:
        scope["dy"] = rules[1].function
        both = "x" in arrays and "y" in arrays
        same_shape = " and (ex is None or ey is None or self.x.shape == self.y.shape)" if both else ""
        wide = _WIDE_BINARY.format(x_values=values(rules[0]), y_values=values(rules[1]), same_shape=same_shape)
        text = _BINARY_PULL_BACK.format(
            wide=wide if arrays else "",
            stale=stale,
            x_arguments=arguments(rules[0]),
            y_arguments=arguments(rules[1]),
            compare=_COMPARE if both else "",
        )
    if arrays:
        text += _RELEASE.format(clear=" = ".join(f"self.{name}" for name in arrays) + " = None")
    exec(text, scope)
    return {name: scope[name] for name in ("pull_back", "release") if name in scope}
