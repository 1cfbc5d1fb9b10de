"""The hot backward: nodes whose saved values are as they were, on NumPy arrays, on levels, and on Tensors.

Written out as text for each node class, with the rules' arguments in place: a Python call is 50 ns, a NumPy call 250. What
is in doubt (a value overwritten or freed, one that hooks hold, complex numbers, another device) goes `Node.pull_back`'s way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import LEVEL_TYPES
from .._core.numpy_namespace import _NUMPY_TYPES, numpy_namespace
from .._core.parallel import WIDE, rules_in_blocks
from .._core.primitive import ELEMENTWISE, vocabulary
from .._generated import emit
from .guards import intact

# `v` has what the rules read: the node itself, or its saved values as Tensors.
_CHOOSE = """
    if (((guard := self.guard) is not None and not intact(guard)){stale}):
        return slow(self, g, graph, mask)
    v, meta = self, self.meta
    if graph:
        if meta is not None and (meta.complex or meta.ended):
            return slow(self, g, graph, mask)
        xp, v = vocabulary, self.values(True)
    elif type(g) in raw_types and (meta is None or not meta.special):
        xp = numpy_xp
    elif type(g) in level_types and (meta is None or not (meta.complex or meta.ended)):
        xp = vocabulary
    else:
        return slow(self, g, graph, mask)"""
_UNARY_PULL_BACK = """
def pull_back(self, g, graph, mask=None):{choose}{wide}
    return (rule0(xp, g{x_arguments}),)
"""
_BINARY_PULL_BACK = """
def pull_back(self, g, graph, mask=None):{choose}
    ex, ey = self._edges if mask is None else mask{wide}
    gx = None if ex is None else rule0(xp, g{x_arguments})
    gy = None if ey is None else rule1(xp, g{y_arguments}){compare}
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
        return rules_in_blocks(xp, g, {x_task})"""
_WIDE_BINARY = """
    if type(g) is ndarray and g.size >= WIDE and self.meta is None{same_shape}:
        return rules_in_blocks(xp, g, None if ex is None else {x_task}, None if ey is None else {y_task})"""
# Broadcasting that the hot path of forward has not noticed: it looks at shapes only where one input alone needs a gradient.
_COMPARE = """
    if meta is None and (mask is not None or (ex is not None and ey is not None)) and self.x.shape != self.y.shape:
        if gx is not None and gx.shape != (shape := self.x.shape):
            gx = xp.sum_to(gx, shape=shape)
        if gy is not None and gy.shape != (shape := self.y.shape):
            gy = xp.sum_to(gy, shape=shape)"""
# A Storage that appeared after a value was saved, and has been written: the slow way will explain. The guard knows the others.
_STALE_INPUT = """
        or ((e := self._edges[{i}]) is not None and (s := e._storage) is not None and s.version
            and self.{name} is not None and (guard is None or "{name}" not in guard.versions))"""
_STALE_OUTPUT = """
        or (self._storage is not None and self._storage.version)"""
_RELEASE = """
def release(self, freed):
    {clear}
    self.guard = freed
"""
# The same once more for the most common case, in which nothing is asked twice: see `straight` in `node.py`.
_STRAIGHT = """
def straight(self, g, freed, mine=False):
    if (
        self.extra is not None or type(g) not in raw_types or self.meta is not None
        or ((guard := self.guard) is not None and not intact(guard)){stale}{unlike}
    ):
        return in_general(self, g, freed)
    {pairs}
    {clear}
    return pairs
"""
_LARGE_PAIRS = """if type(g) is ndarray and g.size >= WIDE:
        mine = mine and g.flags.owndata and g.flags.writeable
        edges = self._edges
        pairs = [*zip(edges, rules_in_blocks(numpy_xp, g, {tasks}, reuse=mine))]
    else:
        """
_UNARY_PAIRS = "pairs = ((self._edges[0], {x}),)"
_UNARY_PLAIN_PAIRS = "pairs = ((self._edges[0], {plain_x} if type(g) is ndarray else {x}),)"
_BINARY_PAIRS = """ex, ey = self._edges
    if ey is None:
        pairs = ((ex, {x}),)
    elif ex is None:
        pairs = ((ey, {y}),)
    else:
        pairs = ((ex, {x}), (ey, {y}))"""
_BINARY_PLAIN_PAIRS = """ex, ey = self._edges
    if ey is None:  # of a number, perhaps
        pairs = ((ex, {x}),)
    elif ex is None:
        pairs = ((ey, {y}),)
    elif type(g) is ndarray:
        pairs = ((ex, {plain_x}), (ey, {plain_y}))
    else:
        pairs = ((ex, {x}), (ey, {y}))"""
_GENERAL_PAIRS = """edges = self._edges
    if len(edges) != {count}:  # inputs that may be left out
        return in_general(self, g, freed)
    pairs = ({terms})"""


_HANDS_ON = (lambda xp, g: g).__code__.co_code
_UNLIKE = """
        or (self._edges[0] is not None and self._edges[1] is not None and self.x.shape != self.y.shape)"""


def hot_methods(primitive: Any, rules: tuple[Any, ...], arrays: tuple[str, ...], node: Any) -> dict[str, Any]:
    """Return the methods of a primitive's nodes that backward calls; `node` is the class whose methods do the rest.

    They are written when one of them is first called, so that importing stays quick.
    """

    methods: dict[str, Any] = {}

    def standing_for(name: str) -> Any:
        def first(self: Any, *args: Any) -> Any:
            methods.update({} if methods else _written(primitive, rules, arrays, node))
            for home in type(self).__mro__:
                for written, method in methods.items():
                    if home.__dict__.get(written) is stand_ins[written]:  # else somebody has put another in its place
                        setattr(home, written, method)
            return methods[name](self, *args)

        return first

    names = ("pull_back", "pull_back_some", "straight", *(("release",) if arrays else ()))
    stand_ins = {name: standing_for(name) for name in names}
    return stand_ins


def _written(primitive: Any, rules: tuple[Any, ...], arrays: tuple[str, ...], node: Any) -> dict[str, Any]:
    """Write the methods of a primitive's nodes."""
    stale = "".join(_STALE_INPUT.format(i=i, name=name) for i, name in enumerate(primitive.inputs) if name in arrays)
    stale += _STALE_OUTPUT if "out" in arrays else ""
    choose = _CHOOSE.format(stale=stale)
    scope: dict[str, Any] = {"numpy_xp": numpy_namespace, "raw_types": _NUMPY_TYPES, "ndarray": np.ndarray}
    scope |= {"WIDE": WIDE, "rules_in_blocks": rules_in_blocks, "slow": node.pull_back_some, "intact": intact}
    scope |= {"vocabulary": vocabulary, "level_types": LEVEL_TYPES, "in_general": node.straight}
    scope |= {f"rule{i}": rule.function for i, rule in enumerate(rules) if rule is not None}
    scope |= {f"plain{i}": primitive.plain_rules.get(name) for i, name in enumerate(primitive.inputs)}
    elementwise = primitive.kind == ELEMENTWISE
    both = elementwise and "x" in arrays and "y" in arrays and len(rules) == 2
    if not elementwise or None in rules or len(rules) > 2:
        text = _GENERAL_PULL_BACK.format(choose=choose, count=len(rules), terms=_terms(rules, "xp", "v"))
    elif len(rules) == 1:
        wide = "" if _hands_on(rules[0]) else _WIDE_UNARY.format(x_task=_task(rules, 0))
        text = _UNARY_PULL_BACK.format(choose=choose, x_arguments=_arguments(rules[0], "v"), wide=wide)
    else:
        same_shape = " and (ex is None or ey is None or self.x.shape == self.y.shape)" if both else ""
        wide = _WIDE_BINARY.format(x_task=_task(rules, 0), y_task=_task(rules, 1), same_shape=same_shape)
        text = _BINARY_PULL_BACK.format(
            wide="" if all(map(_hands_on, rules)) else wide,
            choose=choose,
            x_arguments=_arguments(rules[0], "v"),
            y_arguments=_arguments(rules[1], "v"),
            compare=_COMPARE if both else "",
        )
    clear = " = ".join(f"self.{name}" for name in arrays) + " = None" if arrays else ""
    if arrays:
        text += _RELEASE.format(clear=clear)
    text += _STRAIGHT.format(
        stale=stale,
        unlike=_UNLIKE if both else "",
        pairs=_pairs(primitive, rules, elementwise),
        clear=f"if freed is not None:\n        {clear}\n        self.guard = freed" if arrays else "",
    )
    made = emit(f"backward of {primitive.name}", text, scope)
    return made | {"pull_back_some": made["pull_back"]}


def _terms(rules: tuple[Any, ...], xp: str, values: str) -> str:
    """Write the gradients of all inputs as a tuple."""
    return "".join(f"{_term(rules, i, xp, values)}, " for i in range(len(rules)))


def _term(rules: tuple[Any, ...], i: int, xp: str, values: str) -> str:
    """Write the gradient of an input."""
    if rules[i] is None:
        return "None"
    gradient = _gradient(rules, i, xp, values)
    if len(rules) == 1:  # the one input needs a gradient, or there would be no node
        return gradient
    return f"None if edges[{i}] is None else {gradient}"


def _gradient(rules: tuple[Any, ...], i: int, xp: str, values: str) -> str:
    """Write the call of a rule, or what it comes to if it hands on the gradient it is given."""
    rule = rules[i]
    if _hands_on(rule):
        return "g"
    return f"rule{i}({xp}, g{_arguments(rule, values)})"


def _pairs(primitive: Any, rules: tuple[Any, ...], elementwise: bool) -> str:
    """Write the edges with their gradients."""
    if elementwise and None not in rules and len(rules) <= 2:
        words = {}
        for i, name in enumerate(primitive.inputs):
            words[name] = words[f"plain_{name}"] = _gradient(rules, i, "numpy_xp", "self")
            if name in primitive.plain_rules:
                words[f"plain_{name}"] = f"plain{i}(g{_arguments(rules[i], 'self')})"
        if primitive.plain_rules:
            text = (_UNARY_PLAIN_PAIRS if len(rules) == 1 else _BINARY_PLAIN_PAIRS).format(**words)
        else:
            text = (_UNARY_PAIRS if len(rules) == 1 else _BINARY_PAIRS).format(**words)
        if all(map(_hands_on, rules)):
            return text
        tasks = [_task(rules, i) for i in range(len(rules))]
        if len(rules) == 2:
            tasks = [f"None if edges[{i}] is None else {task}" for i, task in enumerate(tasks)]
        return _LARGE_PAIRS.format(tasks=", ".join(tasks)) + text.replace("\n", "\n    ")
    terms = "".join(f"(edges[{i}], {_term(rules, i, 'numpy_xp', 'self')}), " for i in range(len(rules)))
    return _GENERAL_PAIRS.format(count=len(rules), terms=terms)


def _arguments(rule: Any, values: str) -> str:
    return "".join(f", {values}.{name}" for name in rule.names)


def _hands_on(rule: Any) -> bool:
    """Tell whether a rule returns the gradient as it is."""
    return not rule.names and rule.function.__code__.co_code == _HANDS_ON


def _task(rules: tuple[Any, ...], i: int) -> str:
    """Write what `rules_in_blocks` takes for a rule."""
    if _hands_on(rules[i]):
        return "g"
    values = "".join(f"self.{name}, " for name in rules[i].names)
    return f"(rule{i}, plain{i}, ({values}))"
