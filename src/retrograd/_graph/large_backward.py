"""The backward of elementwise operations on large arrays: the rules of one operation are one formula, and one kernel computes them.

A rule is written in `xp` and operators already. All gradients of an operation are computed in one pass, in which the gradient that
arrives and the saved values are read once. See Note [Formulas].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _thresholds
from .._core.numpy_namespace import numpy_namespace
from .._native.program import Formula

NDARRAY = np.ndarray
FIXED = ("exponent", "base")  # of powers: rules look at these numbers, and each value has a kernel of its own
_HANDS_ON = (lambda xp, g: g).__code__.co_code


_added = Formula(lambda xp, x, y: x + y, (), ())
_added.elementwise = True


def _by_kernel(held: np.ndarray, g: Any) -> bool:
    """Tell whether a kernel adds two gradients: large ones of floats, and half precision sooner."""
    size, dtype = held.size, held.dtype
    if size < _thresholds.NATIVE or (size < _thresholds.WIDE and dtype.itemsize != 2) or dtype.kind not in "fV":
        return False
    return type(g) is NDARRAY and g.shape == held.shape and g.dtype == dtype


def add_into(held: np.ndarray, g: Any) -> None:
    """Add a gradient to one that is there."""
    if _by_kernel(held, g):
        _added.into((held,), held, g)
    else:
        held += g


def sum_of(held: np.ndarray, g: np.ndarray) -> Any:
    """Add two gradients into new memory, which is laid out as the first one."""
    if _by_kernel(held, g):
        return _added.large(numpy_namespace, (held, g), {})
    return np.add(held, g, out=np.empty_like(held)) if held.strides != g.strides else held + g


def hands_on(rule: Any) -> bool:
    """Tell whether a rule returns the gradient as it is."""
    return not rule.names and rule.function.__code__.co_code == _HANDS_ON


class LargeBackward:
    """The rules of an operation, for gradients from `start` elements on."""

    def __init__(self, primitive: Any, rules: Sequence[Any]) -> None:
        self.name = primitive.name
        self.rules = rules
        self.known: dict[tuple[bool, ...], Any] = {}  # by the gradients that are wanted
        self.formulas: dict[Any, Formula] = {}  # by the gradients that are wanted, and which values are arrays
        # Memory is what takes the time of a single product: there, a call of NumPy is quicker up to sizes at which threads pay.
        plain = primitive.plain_rules
        simple = all(
            rule is None or hands_on(rule) or isinstance(plain.get(name), np.ufunc)
            for rule, name in zip(rules, primitive.inputs, strict=False)
        )
        self.start = _thresholds.WIDE if simple else _thresholds.NATIVE

    def takes(self, g: np.ndarray) -> bool:
        """Tell whether a gradient is large enough: half precision, at which NumPy is slow, is sooner."""
        return g.size >= (_thresholds.NATIVE if g.itemsize == 2 else self.start)

    def __call__(self, values: Any, g: np.ndarray, edges: Sequence[Any], reuse: bool = False) -> list[Any]:
        """Return the gradients of the inputs with edges; `values` has what rules read as attributes.

        `reuse`: nobody needs the gradient any more, and the last result may be written into its memory, which is at hand where new memory
        is not.
        """
        wanted = tuple([e is not None and r is not None for e, r in zip(edges, self.rules, strict=True)])
        known = self.known.get(wanted)
        if known is None:
            known = self.known[wanted] = self._known(wanted)
        rules, names, sources = known
        if not rules:
            return [g if w else None for w in wanted]
        arrays = [getattr(values, name) for name in names]
        params: dict[str, Any] = {}
        for value in arrays:
            if not isinstance(value, NDARRAY | np.generic):
                read = dict(zip(names, arrays, strict=True))
                params = {name: value for name, value in read.items() if not isinstance(value, NDARRAY | np.generic)}
                names = tuple([name for name in names if name not in params])
                arrays = [read[name] for name in names]
                break
        numbers = tuple([n for n, value in params.items() if type(value) is float and n not in FIXED])
        key = wanted, names, numbers
        formula = self.formulas.get(key)
        if formula is None:
            formula = self.formulas[key] = self._formula(rules, names, numbers)
        out = None
        if reuse and len(rules) == sum(wanted):
            out = [*[None for _ in rules[1:]], g]
        found = (*formula.large(numpy_namespace, [g, *arrays], params, out), g, None)
        return [found[k] for k in sources]

    def _known(self, wanted: tuple[bool, ...]) -> tuple[list[Any], tuple[str, ...], list[int]]:
        """Return the rules that compute, what they read, and where each gradient stands: last but one the one that arrives, last None."""
        rules = [r for r, w in zip(self.rules, wanted, strict=True) if w and not hands_on(r)]
        sources, count = [], 0
        for rule, w in zip(self.rules, wanted, strict=True):
            computed = w and not hands_on(rule)
            sources.append(count if computed else len(rules) + (not w))
            count += computed
        return rules, tuple(dict.fromkeys([name for rule in rules for name in rule.names])), sources

    def _formula(self, rules: Sequence[Any], names: tuple[str, ...], numbers: tuple[str, ...]) -> Formula:
        def gradients(xp: Any, g: Any, *arrays: Any, **params: Any) -> tuple[Any, ...]:
            read = dict(zip(names, arrays, strict=True)) | params
            return tuple([rule.function(xp, g, *[read[name] for name in rule.names]) for rule in rules])

        gradients.__name__ = f"{self.name}_backward"
        formula = Formula(gradients, numbers, ())
        formula.elementwise = True  # also where it cannot be traced
        return formula
