"""The trial of a record: its program and eager must agree in one call, or the record is thrown away.

Note [Trials]
The first call with a record runs its program on copies of everything that it could change, and notes what came of it: the results
with their layout and their gradients, the numbers of all tensors that were there, their gradients and versions, and where the stream of
random numbers stands. Then everything is put back, and the call is run in eager: so what a user gets and what changes is eager's. What
differs by more than rounding is a fault of the compiler, or of the analysis, and the function stays in eager. New memory is full of NaN
then, so that what a program does not write is not right by chance.

Optimizers that the program calls keep state of their own, of which there is no copy. A program is run up to the first call of one,
and the gradients with which it would be called are compared with those of the recording.

A gradient that is zero but for rounding is anything in proportion to itself, and Adam and its kin make a step of full size of it: the bias
of the keys of an attention gets such gradients always. Where the state of an optimizer says that an element has had no other gradients,
its parameter may differ by as much as others were changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from .. import autograd
from .._core.numpy_namespace import is_half
from .._modes import using
from ..tensor._aliasing.views import NOWHERE
from ..tensor._base import LEAF, wrap
from ..tensor._object.old_attributes import slot_of
from ..tensor._recording.flat import EXACT
from ._apart import BEHIND, SHOWN, Snapshot
from ._backward import has_hooks
from ._program import Program
from ._recorder import Streams
from ._recording import HandedOut, stop_at_optimizers
from ._stages import spoiled_memory
from ._trees import containers


def _lead_through_hooks(wanted: Sequence[Any]) -> bool:
    """Tell whether gradients of some tensors would go on through their graph to others of them, and call hooks on the way."""
    stack = [slot_of(one._edge)[0] for one in wanted if one._edge is not LEAF and one._edge is not NOWHERE]
    ends = {id(one) for one in (*wanted, *stack)}
    seen, met, hooked = set(map(id, stack)), False, False
    while stack and not (met and hooked):
        for edge in stack.pop()._edges:
            if edge is None:
                continue
            node = slot_of(edge)[0]
            met = met or id(node) in ends
            extra = getattr(node, "extra", None)
            if extra is not None and (extra.tensor_hooks or extra.retained or extra.hooks or extra.pre_hooks):
                hooked = True
            if id(node) not in seen:
                seen.add(id(node))
                stack.append(node)
    return met and hooked


class Trial:
    """One call of a new record. See Note [Trials]."""

    def __init__(self, run: Any, mode: Any, args: Any, kwargs: Any, retry: Any) -> None:
        self.run, self.record, self.call = run, run.record, (mode, args, kwargs)
        self.retry = retry  # what the record gives if it is not for the call
        self.tensors = self.record.tensors(args, kwargs)
        self.relative = rounding(self.record.recorded)
        self.wrong: str | None = None
        self.streams = Streams(self.record.streams(args, kwargs))
        self.versions = [_version(one) for one in self.tensors]
        self.made: Any = None
        self.is_for_another_call = False
        self.change = 0.0  # by how much the program has changed a parameter at most
        self._try()

    def _try(self) -> None:
        """Run the program on copies."""
        snapshots = [Snapshot(one) for one in self.tensors]
        if not self.record.still_holds(*self.call[1:]):
            self._is_not_for_it()
            return
        try:
            if self.record.has_effects:
                for one in snapshots:
                    _put_aside(one)
            self.made = self._run()
            params = {id(param) for one in self.record.found.optimizers for param in one.params}
            changes = [_distance(one.array, one.tensor._array) for one in snapshots if id(one.tensor) in params]
            self.change = max(changes, default=0.0)
        except HandedOut as found:
            self._compare_handed_out(found.arrays)
        except Exception as error:  # which eager will raise, too, or it is the compiler's own
            self.wrong = f"{type(error).__name__}: {error}"
        finally:
            if self.record.has_effects:
                for one in snapshots:
                    one.restore()
            self.streams.put_back()

    def _run(self) -> Any:
        run = _for_shown(self.run) if any(type(one) in BEHIND for one in self.tensors) else self.run
        token = stop_at_optimizers.set(True)
        programs = [self.record.program, *[backward[0] for backward in self.record.backwards.values()]]
        with spoiled_memory(programs):
            try:
                result = run(*self.call)
                if result is self.retry:
                    self._is_not_for_it()
                    return None
                return self._described(result, [0] * len(self.tensors))
            finally:
                stop_at_optimizers.reset(token)

    def _is_not_for_it(self) -> None:
        self.wrong = "its guards do not hold right after it was recorded"
        self.is_for_another_call = True

    def _numbers(self, tensor: Any) -> Any:
        """Return the numbers of a tensor that was there; of a parameter also which of them only rounding has changed."""
        array = _kept(tensor._array)
        for one in self.record.found.optimizers:
            if id(tensor) in one.of and (noise := _only_rounding(one.optimizer, tensor, self.relative)) is not None:
                return Updated(array, noise)
        return array

    def _compare_handed_out(self, arrays: tuple[Any, ...]) -> None:
        for one, other in zip(arrays, self.record.found.handed_out, strict=False):
            if not are_close(one, other, self.relative):
                self.wrong = "a gradient with which an optimizer is called"

    def _described(self, result: Any, versions: list[int]) -> list[tuple[str, Any]]:
        """List what is to be seen after a call."""
        found: list[tuple[str, Any]] = []
        outs: list[Any] = []
        seen: dict[int, str] = {}
        containers(self.call[1:], "", seen)
        _describe(result, found, outs, {id(one): at for at, one in enumerate(self.tensors)}, seen)
        found.append(("the gradients of results", self._gradients(outs)))
        if self.record.has_effects:
            for tensor, version in zip(self.tensors, versions, strict=True):
                grad = None if tensor._extra is None else tensor._extra.grad
                found += [
                    ("the numbers of a tensor that was there", self._numbers(tensor)),
                    ("how often a tensor was written", _version(tensor) - version),
                    ("the gradient of a tensor that was there", None if grad is None else _kept(grad._array)),
                ]
        found += [("the stream of random numbers", state) for _, state in self.streams.now().states]
        return found

    def _gradients(self, outs: list[Any]) -> Any:
        """Return the gradients of results, or what is said if their graph cannot be gone through: the function may have freed it."""
        wanted = [one for one in self.tensors if one._edge is not None]
        if not outs or not wanted or any(map(has_hooks, wanted)) or _lead_through_hooks(wanted):
            return None
        seeds = [
            wrap(np.linspace(0.5, 1.5, one._array.size).reshape(one._array.shape).astype(one._array.dtype))
            for one in outs
        ]
        found = []
        patterns: Any = [range(len(outs))]
        outputs = self.record.found.outputs.values()
        if len(outs) == self.record.found.seeds and not any(out.kind == "view" for out in outputs):
            patterns = self.record.backwards or patterns  # of some results alone, where there is a program for it
        for pattern in patterns:
            some, given = [[all_[at] for at in sorted(pattern)] for all_ in (outs, seeds)]
            try:
                with using(grad=True):
                    grads = autograd.grad(some, wanted, given, retain_graph=True, allow_unused=True)
            except RuntimeError as error:
                return str(error).partition("(")[0]
            found.append([None if one is None else _kept(one._array) for one in grads])
        return found

    def difference(self, result: Any) -> str | None:
        """Say in what the program differs from eager, which has given `result`; None if in nothing that matters."""
        if self.wrong is not None or self.made is None:
            return self.wrong
        expected = self._described(result, self.versions)
        if len(expected) != len(self.made):
            return "the structure of the result"
        what: str
        for (what, one), (also, other) in zip(self.made, expected, strict=True):
            if type(one) is Updated and type(other) is Updated:
                one, other = one.beside(other, 2 * self.change)
            if what != also or not _alike(one, other, self.relative):
                return what
        return None


class Updated(NamedTuple):
    """A parameter after a step of an optimizer. See Note [Trials]."""

    array: Any
    noise: Any  # where gradients were zero but for rounding

    def beside(self, other: Updated, bound: float) -> tuple[Any, Any]:
        """Return the numbers of two to be compared: where both had noise for a gradient, anything within a bound is the same."""
        one, also = self.array, other.array
        if one.shape != also.shape:
            return one, also
        same = self.noise & other.noise & (np.abs(one - also) <= bound)
        return np.where(same, also, one), also


# What optimizers keep that is small where gradients always were, and the power of these in it.
EVIDENCE = {"exp_avg": 1, "prev": 1, "sum": 2, "square_avg": 2}


def _only_rounding(optimizer: Any, param: Any, relative: float) -> Any:
    """Return where the gradients of a parameter were zero but for rounding, as its state tells beside those of all; None if it does not."""
    state = optimizer.state.get(param) or {}
    name = next((name for name in EVIDENCE if name in state), None)
    if name is None:
        return None
    largest = max([np.abs(one[name]._array).max(initial=0) for one in optimizer.state.values() if name in one])
    return np.abs(state[name]._array) <= (relative * 1e-3) ** EVIDENCE[name] * largest


def _distance(one: Any, other: Any) -> float:
    return float(np.abs(one - other).max(initial=0)) if np.shape(one) == np.shape(other) else 0.0


def _put_aside(one: Snapshot) -> None:
    """Give a tensor copies of its memory and its gradient for the time of a trial."""
    array = one.array
    if type(array) is np.ndarray:
        own = array.copy("K")
        if own.strides == array.strides:  # else it is part of other memory, and no program writes into it
            array = own if array.base is None else own[...]
    one.show(array, one.edge, copy.copy(one.extra))


def _for_shown(run: Any) -> Any:
    """Return what runs a record on tensors that look otherwise to this thread; what it reads of Python has been looked at before."""
    names = run.__globals__
    classes = {name: SHOWN[value] for name, value in names.items() if isinstance(value, type) and value in SHOWN}
    return FunctionType(run.__code__, names | classes | {"holds": lambda *call: True})


def _version(tensor: Any) -> int:
    return 0 if tensor._storage is None else tensor._storage.version


def _kept(array: Any) -> Any:
    return np.array(array) if type(array) is np.ndarray else array


def _describe(
    tree: Any, found: list[tuple[str, Any]], outs: list[Any], places: dict[int, int], seen: dict[int, str]
) -> None:
    """List what is to be seen of a result, and its tensors that require gradients; `seen` are the containers so far."""
    kind = type(tree)
    if kind in EXACT:
        if id(tree) in places:
            found.append(("which argument a result is", places[id(tree)]))
            return
        facts = tree.shape, tree.dtype, tree.stride()
        found.append(("the shape, the dtype or the strides of a result", facts))
        found.append(("whether a result requires gradients or is a view", (tree.requires_grad, tree._is_view())))
        found.append(("the numbers of a result", _kept(tree._array)))
        if tree.requires_grad:
            outs.append(tree)
    elif isinstance(tree, (tuple, list)):
        found.append(("the structure of the result", (kind, len(tree))))
        if kind is list:
            found.append(("which list a result is", seen.setdefault(id(tree), str(len(found)))))
        for one in tree:
            _describe(one, found, outs, places, seen)
    elif kind is dict:
        found.append(("the structure of the result", list(tree)))
        found.append(("which dictionary a result is", seen.setdefault(id(tree), str(len(found)))))
        for one in tree.values():
            _describe(one, found, outs, places, seen)
    else:
        found.append(("a result that is no tensor", repr(tree)))


def _alike(one: Any, other: Any, relative: float) -> bool:
    if isinstance(one, (np.ndarray, np.generic)):
        return isinstance(other, (np.ndarray, np.generic)) and are_close(one, other, relative)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_alike(a, b, relative) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)


def rounding(programs: Iterable[Program | None]) -> float:
    """Return by how much numbers may differ that programs compute: by the rounding of the narrowest dtype in them."""
    steps = [step for one in programs if one is not None for step in one.steps]
    dtypes = {value.dtype for step in steps for value in (*step.values, *step.makes)}
    return max([_relative(dtype) for dtype in dtypes if dtype is not None], default=0.0)


def _relative(dtype: Any) -> float:
    if dtype.kind not in "fcV":
        return 0.0
    width = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    return 2e-2 if is_half(dtype) else 1e-3 if width == 4 else 1e-7


BLOCK = 1 << 16  # numbers that are compared at a time, in the cache


def are_close(one: Any, other: Any, relative: float) -> bool:
    """Tell whether two arrays are the same but for rounding."""
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    same = bool((one == other).all())
    if same or one.dtype.kind not in "fcV":
        return same
    relative = max(relative, _relative(one.dtype))
    kind = one.dtype if one.dtype.kind == "c" else np.float64
    one, other = one.reshape(-1), other.reshape(-1)
    pairs = [(one[at : at + BLOCK], other[at : at + BLOCK]) for at in range(0, one.size, BLOCK)]
    scale = 0.0
    for _, part in pairs:
        wide = part.astype(kind)
        scale = max(scale, np.abs(wide[np.isfinite(wide)]).max(initial=0.0))
    most = relative * (0.1 * scale + 1e-3)
    return all(np.allclose(a.astype(kind), b.astype(kind), rtol=relative, atol=most, equal_nan=True) for a, b in pairs)
