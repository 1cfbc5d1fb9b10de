"""Compiled functions inside vmap and forward mode: they run on the arrays below.

Note [Below a level]
Inside a vmap tensors hold batches, and inside jvp duals. A compiled function that is called there with some of them is another function of
the arrays below: `vmap(f)` of batches, `jvp(f)` of primals and tangents. So
- what is given leaves the level, by the operations by which results of transforms leave it;
- the function of what is below (`below_level`) is compiled like any other. It is called as outside of the level: further levels are left
  in turn, and grad and vjp only add graphs;
- what it returns enters the level again. What does not depend on the level has not been in it, and stays outside.
To leave and to enter are operations with derivatives, so all of this can be differentiated. A tensor that has a graph leaves the level even
if it has never been in it: samples that share it have gradients of their own. For captured tensors nobody could do that, so where these get
gradients the function itself runs. So it does where it writes or returns views, and where no record can be made. The gradients of a
compiled call leave their levels in the same way (`_derivatives.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .._core.arrays import levels_of
from .._core.levels import BATCH, Level, UserLevel, running
from .._core.primitive import vocabulary
from .._modes import current_mode, using
from ..autograd.forward_ad import dual_of
from ..func._vmap import _enter
from ..tensor._base import materialise
from ..tensor._recording.flat import EXACT
from ._compiled import Compiled
from ._transforms import CODES, TANGENTS

# of a level: kind, size, randomness; which tensors have left it, and the argument in which their tangents come
Facts = tuple[str, int, str, tuple[bool, ...], str | None]


class OutsideError(Exception):
    """A call cannot run below its level. If recording it failed, `noted` is called once it has run above without an error."""

    def __init__(self, reason: str, noted: Callable[[], None] | None = None) -> None:
        super().__init__(reason)
        self.reason, self.noted = reason, noted


class Below(Compiled):
    """The function below a level that a compiled function has there. See Note [Below a level]."""

    is_inside = True

    def _made(self, mode: Any, key: Any, args: Any, kwargs: Any) -> tuple[Any, str | None]:
        made, reason = super()._made(mode, key, args, kwargs)
        if made is None and reason is not None and reason not in self.reasons:
            raise OutsideError(reason, partial(self._refuse, mode, key, reason))
        if made is not None:
            if made.record.stays_outside:
                reason = "it writes, or returns views, inside a transform"
            elif gives_gradients_outside(made.record):
                reason = "it reads a tensor from outside that gets gradients, inside vmap or forward mode"
            else:
                return made, None
        if reason is not None:
            self._refuse(mode, key, reason)
        raise OutsideError(self._refused.get((mode, key)) or reason or "it was called inside vmap or forward mode")

    def _divide(self, error: Any) -> None:
        """Leave the function whole: only the one above can be run in parts."""

    def _run_below(self, mode: Any, args: Any, kwargs: Any) -> Any:
        return run_below(self, mode, args, kwargs)

    def _in_eager(self, reason: str, args: Any, kwargs: Any) -> Any:
        raise OutsideError(reason)


def gives_gradients_outside(record: Any) -> bool:
    """Tell whether gradients of a record's results come to captured tensors."""
    found = record.found
    places = [] if found.backward is None else zip(record.differentiated, found.gradients, strict=True)
    return any(at >= record.given and place is not None for at, place in places)


def run_below(outer: Compiled, mode: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a call inside vmap or forward mode on the arrays below the innermost level; raise OutsideError if that cannot be."""
    crossing = Crossing(mode.transforms, mode.grad)
    args, kwargs = crossing.left(args, kwargs)
    below = outer.below.get(crossing.facts)
    if below is None:
        below = outer.below[crossing.facts] = Below(below_level(outer.function, crossing.facts), options=outer.options)
    with using(transforms=crossing.outside):
        result = below.run(current_mode(), args, kwargs)
    return crossing.entered(result)


class Crossing:
    """A call that leaves the innermost of some levels, and whose results enter it again."""

    def __init__(self, transforms: tuple[Any, ...], graphs: bool) -> None:
        at = max(at for at, one in enumerate(transforms) if one.level is not None)
        self.level, self.transforms, self.graphs = transforms[at].level, transforms, graphs
        self.outside = (*transforms[:at], *transforms[at + 1 :])
        if isinstance(self.level, UserLevel):
            raise OutsideError("it was called inside forward mode that a program has begun by itself")
        self.flags: list[bool] = []
        self.facts: Facts

    def left(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments below."""
        level, done = self.level, dict[int, Any]()
        left = _Left(level, self.graphs, self.transforms)
        args, below = _changed(args, left.one, done), dict(_changed(kwargs, left.one, done))
        name = None if level.kind == BATCH else f"{TANGENTS} {len(kwargs)}"
        if name is not None:
            below[name] = left.tangents
        self.flags = left.flags
        self.facts = level.kind, level.size, level.randomness, tuple(left.flags), name
        return args, below

    def entered(self, found: tuple[Any, Any, Any]) -> Any:
        """Return results inside, of what the function below gives."""
        result, flags, tangents = found
        return _changed(result, _Entered(self.level, flags, tangents, _again).one, {})

    def result_below(self, result: Any) -> tuple[Any, Any, Any]:
        """Return results as the function below gives them."""
        return _results_below(result, self.level, self.transforms)


class _Left:
    """Takes tensors out of a level: those that are in it and, if that is asked for, those that have a graph."""

    def __init__(self, level: Level, graphs: bool, transforms: tuple[Any, ...]) -> None:
        self.level, self.graphs = level, graphs
        self.known = frozenset(one.level for one in transforms)
        self.flags: list[bool] = []
        self.tangents: list[Any] = []

    def one(self, tensor: Any) -> Any:
        levels = levels_of(materialise(tensor))
        if not levels <= self.known:
            raise OutsideError("it was given a tensor of a transform that has ended")
        leaves_it = self.level in levels or (self.graphs and tensor._edge is not None)
        self.flags.append(leaves_it)
        if not leaves_it:
            return tensor
        if self.level.kind == BATCH:
            return vocabulary.leave_batch(tensor, level=self.level, axis=0)
        self.tangents.append(vocabulary.dual_eps(tensor, level=self.level))
        return vocabulary.dual_plain(tensor, level=self.level)


class _Entered:
    """Lets tensors enter a level: those that flags say, in the order in which they come."""

    def __init__(self, level: Level, flags: Any, tangents: Any, enter: Callable[..., Any]) -> None:
        self.level, self.flags, self.tangents, self.enter = level, iter(flags), iter(tangents), enter

    def one(self, tensor: Any) -> Any:
        return self.enter(tensor, self.level, self.tangents) if next(self.flags) else tensor


def _changed(tree: Any, change: Callable[[Any], Any], done: dict[int, Any]) -> Any:
    """Return a structure with others in the place of tensors, one for one; containers in which nothing changes are the same.

    `done` notes by their ids what stands for tensors and containers, and keeps these alive.
    """
    found = done.get(id(tree))
    if found is not None:
        return found[0]
    kind = type(tree)
    if kind in EXACT:
        made = change(tree)
    elif kind is dict or isinstance(tree, (tuple, list)):
        was = list(tree.values()) if kind is dict else tree
        now = [_changed(one, change, done) for one in was]
        if all(one is other for one, other in zip(now, was, strict=True)):
            made = tree
        elif kind is dict:
            made = dict(zip(tree, now, strict=True))
        else:
            made = kind(*now) if hasattr(tree, "_fields") else kind(now)
    else:
        return tree
    done[id(tree)] = made, tree
    return made


def _again(tensor: Any, level: Level, tangents: Any) -> Any:
    """Let a result enter the level of a call."""
    if level.kind == BATCH:
        return vocabulary.enter_batch(tensor, level=level, axis=0)
    return vocabulary.enter_dual(tensor, next(tangents), level=level)


def _given(tensor: Any, level: Level, tangents: Any) -> Any:
    """Let what a function below is given enter a level of its own, as it does in a transform."""
    return _enter(tensor, level, 0) if level.kind == BATCH else dual_of(tensor, next(tangents), level)


def below_level(func: Callable[..., Any], facts: Facts) -> Callable[..., Any]:
    """Return the function of what is below a level: it gives results, which of them have been in the level, and their tangents."""
    kind, size, randomness, flags, name = facts

    def below(*args: Any, **kwargs: Any) -> tuple[Any, tuple[bool, ...], list[Any]]:
        tangents = () if name is None else kwargs.pop(name)
        level = Level(kind, size, randomness)
        mode = {} if kind == BATCH else {"grad": current_mode().tracks, "inference": False}
        with running(kind, level, **mode):
            given, entered = dict[int, Any](), _Entered(level, flags, tangents, _given)
            result = func(*_changed(args, entered.one, given), **_changed(kwargs, entered.one, given))
            return _results_below(result, level, current_mode().transforms)

    return below


def _results_below(result: Any, level: Level, transforms: tuple[Any, ...]) -> tuple[Any, tuple[bool, ...], list[Any]]:
    left = _Left(level, False, transforms)
    return _changed(result, left.one, {}), tuple(left.flags), left.tangents


CODES[below_level(len, (BATCH, 0, "error", (), None)).__code__] = "below"
