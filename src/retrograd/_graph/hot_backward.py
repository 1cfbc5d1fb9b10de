"""The straight backward: nodes whose saved values are as they were, on NumPy arrays, with nothing that watches.

It is written as text for each node class, with the rules' arguments in place: a Python call is 50 ns, a NumPy call 250. What is in
doubt (a value overwritten or freed, one that hooks hold, complex numbers, another device) goes the general way, by
`Node.pull_back_some`.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

import numpy as np

from .._core.numpy_namespace import _NUMPY_TYPES, numpy_namespace
from .._core.primitive import ELEMENTWISE, engine_state
from .._generated import emit, reading
from .._thresholds import NATIVE, REGION
from .guards import intact
from .large_backward import LargeBackward, hands_on

_STRAIGHT = """
def straight(self, g, freed, mine=False):
    if (
        self.extra is not None or type(g) not in raw_types or self.meta is not None
        or ((guard := self.guard) is not None and not intact(guard)){stale}
    ):
        return in_general(self, g, freed)
    {pairs}
    {clear}
    return pairs
"""
# A Storage that appeared after a value was saved, and has been written: the general way will explain. The guard knows the others.
_STALE_INPUT = """
        or ((e := self._edges[{i}]) is not None and (s := e._storage) is not None and s.version
            and self.{name} is not None and (guard is None or "{name}" not in guard.versions))"""
_STALE_OUTPUT = """
        or (self._storage is not None and self._storage.version)"""
# Broadcasting that the hot path of forward has not noticed: it looks at shapes only where one input alone needs a gradient.
_UNLIKE = """
        or (self._edges[0] is not None and self._edges[1] is not None and self.x.shape != self.y.shape)"""
_RELEASE = """
def release(self, freed):
    {clear}
    self.guard = freed
"""
# Large arrays are computed by one kernel; half precision, at which NumPy is slow, always.
_LARGE_PAIRS = """if type(g) is ndarray and g.size >= NATIVE and (g.size >= START or g.itemsize == 2):
        edges, reuse = self._edges, mine and g.flags.owndata and g.flags.writeable
        pairs = pairs_of_region(self, g, freed, reuse) if g.size >= REGION else None
        if pairs is None:
            pairs = [*zip(edges, large(self, g, edges, reuse))]
    else:
        """
_UNARY_PAIRS = "pairs = ((self._edges[0], {plain_x}{or_x}),)"
_BINARY_PAIRS = """ex, ey = self._edges
    if ey is None:  # of a number, perhaps
        pairs = ((ex, {x}),)
    elif ex is None:
        pairs = ((ey, {y}),)
    else:
        pairs = ((ex, {x}), (ey, {y}))"""
_BINARY_PLAIN_PAIRS = _BINARY_PAIRS.replace(
    "    else:",
    """    elif type(g) is ndarray:
        pairs = ((ex, {plain_x}), (ey, {plain_y}))
    else:""",
)
_GENERAL_PAIRS = """edges = self._edges
    if len(edges) != {count}:  # inputs that may be left out
        return in_general(self, g, freed){gathered}
    pairs = ({terms})"""
# See `Primitive.gathers`.
_GATHERED = """
    taken = edges[{weights}] is not None and g.ndim == 2 == {left}.ndim and engine_state.task.gather(
        {bias}, edges[{weights}], {left}, {right}
    )"""


def pairs_of_region(node: Any, g: np.ndarray, freed: Any, reuse: bool) -> Any:
    """Compute the region that begins at a node, if one does. Small programs never load the file that does it."""
    from . import regions

    return regions.pairs_of_region(node, g, freed, reuse)


_codes: dict[str, dict[str, CodeType]] = {}  # by text: operations whose rules read the same share it


def hot_methods(primitive: Any, rules: tuple[Any, ...], arrays: tuple[str, ...], in_general: Any) -> dict[str, Any]:
    """Write the methods of a primitive's nodes for the straight backward; `in_general` does what they leave."""
    scope: dict[str, Any] = {"numpy_xp": numpy_namespace, "raw_types": _NUMPY_TYPES, "ndarray": np.ndarray}
    scope |= {"in_general": in_general, "intact": intact}
    if primitive.kind == ELEMENTWISE:
        large = primitive.large_backward = primitive.large_backward or LargeBackward(primitive, rules)
        scope |= {"large": large, "START": large.start, "NATIVE": NATIVE, "REGION": REGION}
        scope["pairs_of_region"] = pairs_of_region
    scope |= {f"rule{i}": rule.function for i, rule in enumerate(rules) if rule is not None}
    scope |= {f"plain{i}": primitive.plain_rules.get(name) for i, name in enumerate(primitive.inputs)}
    scope["engine_state"] = engine_state
    text = _text(primitive, rules, arrays)
    codes = _codes.get(text)
    if codes is None:
        made = emit(f"backward of {primitive.name}", text, {})
        codes = _codes[text] = {name: method.__code__ for name, method in made.items()}
    # copies, of which the interpreter takes notes that hold for this class
    methods = {name: reading(scope, code.replace(), name) for name, code in codes.items()}
    methods["straight"].__defaults__ = (False,)
    return methods


def _text(primitive: Any, rules: tuple[Any, ...], arrays: tuple[str, ...]) -> str:
    stale = "".join(_STALE_INPUT.format(i=i, name=name) for i, name in enumerate(primitive.inputs) if name in arrays)
    stale += _STALE_OUTPUT if "out" in arrays else ""
    elementwise = primitive.kind == ELEMENTWISE
    if elementwise and "x" in arrays and "y" in arrays and len(rules) == 2:
        stale += _UNLIKE
    clear = " = ".join(f"self.{name}" for name in arrays) + " = None" if arrays else ""
    text = _STRAIGHT.format(
        stale=stale,
        pairs=_pairs(primitive, rules)
        if elementwise and None not in rules and len(rules) <= 2
        else _terms(primitive, rules),
        clear=f"if freed is not None:\n        {clear}\n        self.guard = freed" if arrays else "",
    )
    return text + (_RELEASE.format(clear=clear) if arrays else "")


def _pairs(primitive: Any, rules: tuple[Any, ...]) -> str:
    """Write the edges of an elementwise operation with their gradients."""
    words = {"or_x": ""}
    for i, name in enumerate(primitive.inputs):
        words[name] = words[f"plain_{name}"] = _gradient(rules, i)
        if name in primitive.plain_rules:
            words[f"plain_{name}"] = _plain_gradient(rules, i)
    if len(rules) == 1 and primitive.plain_rules:
        words["or_x"] = f" if type(g) is ndarray else {words['x']}"
    binary = _BINARY_PLAIN_PAIRS if primitive.plain_rules else _BINARY_PAIRS
    text = (_UNARY_PAIRS if len(rules) == 1 else binary).format(**words)
    return _if_large(rules, text)


def _if_large(rules: tuple[Any, ...], text: str) -> str:
    """Let one kernel compute the gradients of large arrays, if there is anything to compute."""
    if all(rule is None or hands_on(rule) for rule in rules):
        return text
    return _LARGE_PAIRS + text.replace("\n", "\n    ")


def _terms(primitive: Any, rules: tuple[Any, ...]) -> str:
    """Write the edges of any other operation with their gradients."""
    gathers = primitive.gathers
    terms = []
    for i, name in enumerate(primitive.inputs):
        if rules[i] is None:
            terms.append("None")
            continue
        gradient = _plain_gradient(rules, i) if name in primitive.plain_rules else _gradient(rules, i)
        needed = [] if len(rules) == 1 else [f"edges[{i}] is None"]  # a single one is, or there would be no node
        needed += ["taken"] if gathers is not None and name in (gathers.weights, gathers.bias) else []
        terms.append(f"None if {' or '.join(needed)} else {gradient}" if needed else gradient)
    gathered = ""
    if gathers is not None:
        at = {name: f"edges[{i}]" for i, name in enumerate(primitive.inputs)}
        gathered = _GATHERED.format(
            weights=primitive.inputs.index(gathers.weights),
            bias=at.get(gathers.bias),
            left=gathers.left if gathers.left == "g" else f"self.{gathers.left}",
            right=gathers.right if gathers.right == "g" else f"self.{gathers.right}",
        )
    text = _GENERAL_PAIRS.format(
        count=len(rules),
        terms="".join(f"(edges[{i}], {term}), " for i, term in enumerate(terms)),
        gathered=gathered,
    )
    return _if_large(rules, text) if primitive.kind == ELEMENTWISE else text


def _gradient(rules: tuple[Any, ...], i: int) -> str:
    """Write the call of a rule, or what it comes to if it hands on the gradient it is given."""
    rule = rules[i]
    return "g" if hands_on(rule) else f"rule{i}(numpy_xp, g{_arguments(rule)})"


def _plain_gradient(rules: tuple[Any, ...], i: int) -> str:
    """Write the call of what a rule comes to on NumPy arrays."""
    return f"plain{i}(g{_arguments(rules[i])})"


def _arguments(rule: Any) -> str:
    return "".join(f", self.{name}" for name in rule.names)
