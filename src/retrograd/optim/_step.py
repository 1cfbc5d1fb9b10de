"""The step that most optimizers share: which gradients there are, on what their rule runs, and what a write leaves behind.

An optimizer says what state a parameter begins with, which of it the rule updates and which numbers this step needs
(`_prepare`), and the rule. See Note [Cells] for what a rule runs on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from .._core.parallel import over_blocks
from .._modes import NO_GRAD, read_mode
from .._places import user_frame
from ..tensor._base import LEAF, _edge_slot, materialise
from ..tensor._complex_views import view_as_real
from ..tensor._creation import tensor as make_tensor
from ..tensor._record_flat import EXACT
from ..tensor._tensor import Tensor
from ..tensor._views import wrote
from ._cells import Cell, Room
from .optimizer import Optimizer, _get_scalar_dtype, _use_grad_for_differentiable, loss_of

NDARRAY = np.ndarray
KINDS = {np.dtype(np.float32): np.dtype(np.float32), np.dtype(np.float64): np.dtype(np.float64)}
KINDS |= {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
BLOCK = 1 << 16  # elements of a block: its cells stay in the second cache, calls are small beside the work
SPLIT = 1 << 17  # elements from which a parameter is updated in blocks
WIDE = 1 << 18  # elements from which it is on several threads: a rule goes over them several times
State: TypeAlias = dict[str, Any]
Options: TypeAlias = dict[str, Any]
Shared: TypeAlias = dict[Any, Any]
Rooms: TypeAlias = dict[Any, list[Room]]  # free ones, by size and dtype
Prepared: TypeAlias = tuple[tuple[Any, ...], Any]
ONE = {np.dtype(kind): np.ones((), kind) for kind in (np.float32, np.float64)}


class Slot:
    """A parameter that cells can update: its memory and its buffers', as cells."""

    __slots__ = ("array", "buffers", "cells", "dtype", "flat", "gradient", "parameter", "room", "shape")

    def __init__(self, array: Any, buffers: list[Any], rooms: dict[Any, Room]) -> None:
        self.array = array
        self.buffers = buffers  # arrays, None where the rule has none
        self.dtype, self.shape = array.dtype, array.shape
        kind = KINDS[array.dtype]
        real: list[Any] = [
            None if one is None else one.view(kind) if kind is not one.dtype else one for one in (array, *buffers)
        ]
        shape = real[0].shape
        self.flat: list[Any] | None = None
        self.cells: list[Any] = []
        if real[0].size >= SPLIT:
            self.flat = [None if one is None else one.reshape(-1) for one in real]
            return
        room = rooms.get((shape, kind))
        if room is None:
            room = rooms[(shape, kind)] = Room(shape, kind)
        self.room = room
        self.parameter = Cell(real[0], room)
        self.gradient = Cell(None, room)
        self.cells = [None if one is None else Cell(one, room) for one in real[1:]]

    def update(self, rule: Callable[..., None], grad: Any, numbers: Any, maximize: bool, blocks: Rooms) -> bool:
        """Run a rule on cells; tell whether that was possible with this gradient."""
        if grad.dtype is not self.dtype or grad.shape != self.shape:
            return False
        if self.flat is not None:
            if not grad.flags.c_contiguous:
                return False
            _in_blocks(rule, self.flat, grad, numbers, maximize, blocks)
            return True
        room, gradient = self.room, self.gradient
        room.used = room.mask_count = 0
        gradient.array = grad if grad.dtype is room.dtype else _real(grad)
        rule(self.parameter, gradient.neg() if maximize else gradient, self.cells, numbers)
        gradient.array = None
        return True


def _real(array: Any) -> Any:
    """Return a complex array as real numbers, twice as many along the last axis."""
    return np.ascontiguousarray(array).view(KINDS[array.dtype])


def _in_blocks(
    rule: Callable[..., None], flat: list[Any], grad: Any, numbers: Any, maximize: bool, rooms: Rooms
) -> None:
    """Run a rule block by block, large parameters on several threads."""
    kind = flat[0].dtype
    row = (grad if grad.dtype is kind else _real(grad)).reshape(-1)
    arrays = [flat[0], row, *flat[1:]]

    def work(start: int, end: int) -> None:
        free = rooms.setdefault((end - start, kind), [])
        try:
            room = free.pop()  # threads have rooms of their own
        except IndexError:
            room = Room((end - start,), kind)
        room.empty()
        parameter, gradient, *cells = [None if one is None else Cell(one[start:end], room) for one in arrays]
        rule(parameter, gradient.neg() if maximize else gradient, cells, numbers)  # type: ignore[union-attr]
        free.append(room)

    over_blocks(work, row.size, BLOCK, row.size >= WIDE)


class RuleOptimizer(Optimizer):
    """An optimizer whose parameters are updated one by one, by a rule."""

    _missing: tuple[tuple[str, Any], ...] = ()  # options that groups saved by old versions do not have
    _floats: tuple[str, ...] = ("step",)  # state that old versions kept as numbers

    def _prepare(self, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        """Fill the state if it is empty and count the step; return the buffers and the numbers that the rule needs.

        Buffers are the tensors of the state that have the parameter's shape, None where the options need none. `shared` is for
        numbers that the parameters of a group share in this step.
        """
        raise NotImplementedError

    @staticmethod
    def _rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
        """Update a parameter by its gradient, on cells or on Tensors."""
        raise NotImplementedError

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return what `closure` computes, if it is given."""
        loss = loss_of(closure)
        self._update_all()
        return loss

    def _update_all(self) -> None:
        quick = read_mode() is NO_GRAD
        frame = user_frame(sys._getframe(2)) if quick else None
        if "_slots" not in self.__dict__:
            self._slots: dict[Any, Slot] = {}
            self._rooms: dict[Any, Room] = {}
            self._blocks: Rooms = {}
        slots, states, blocks = self._slots, self.state, self._blocks
        rule, prepare = self._rule, self._prepare
        for group in self.param_groups:
            options = group if group.get("differentiable") else plain_numbers(group)
            maximize = bool(group.get("maximize"))
            shared: Shared = {}
            for param in group["params"]:
                extra = param._extra
                grad = None if extra is None else extra.grad
                if grad is None:
                    continue
                state = states.get(param)
                if state:
                    buffers, numbers = prepare(param, state, options, shared)
                else:
                    state = {}
                    buffers, numbers = prepare(param, state, options, shared)
                    if state:  # else the rule keeps nothing
                        states[param] = state
                if quick:
                    slot = slots.get(param)
                    if slot is None or slot.array is not param._array or not _same(slot.buffers, buffers):
                        slot = self._make_slot(param, buffers)
                    if (
                        slot is not None
                        and type(grad) in EXACT
                        and slot.update(rule, grad._array, numbers, maximize, blocks)
                    ):
                        storage = param._storage
                        if storage is None or storage.inference or storage.owner is None or storage.views is not None:
                            wrote(param)
                        else:
                            storage.version += 1
                            storage.code, storage.lasti = frame.f_code, frame.f_lasti  # type: ignore[union-attr]
                        continue
                self._on_tensors(param, grad, state, buffers, numbers, maximize)

    def _make_slot(self, param: Any, buffers: tuple[Any, ...]) -> Slot | None:
        """Return the cells of a parameter; None if its rule has to run on Tensors."""
        if not param._array.ndim:
            for one in (param, *buffers):
                if one is not None:
                    materialise(one)
        arrays = [None if one is None else one._array for one in buffers]
        known = type(param) in EXACT and (_edge_slot.__get__(param) in (None, LEAF))
        if not known or not _is_dense(param._array, param._array):
            return None
        if param._storage is not None and param._storage.inference:
            return None
        if not all(one is None or _is_dense(one, param._array) for one in arrays):
            return None
        slot = self._slots[param] = Slot(param._array, arrays, self._rooms)
        return slot

    def _on_tensors(
        self, param: Any, grad: Any, state: dict[str, Any], buffers: tuple[Any, ...], numbers: Any, maximize: bool
    ) -> None:
        """Run the rule on Tensors. If it is to be differentiated, on copies of the state: graphs keep what was there."""
        if read_mode() is not NO_GRAD and self.defaults["differentiable"]:
            names = {id(value): name for name, value in state.items()}
            copies = tuple(None if one is None else one.clone() for one in buffers)
            state.update({names[id(old)]: new for old, new in zip(buffers, copies, strict=True) if old is not None})
            buffers = copies
        update_tensors(self._rule, param, grad, buffers, numbers, maximize)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.pop("_slots", None)
        for group in self.param_groups:
            for name, value in self._missing:
                group.setdefault(name, value)
        numbers_to_tensors(self, self._floats)


def update_tensors(rule: Callable[..., None], p: Any, g: Any, buffers: Any, numbers: Any, maximize: bool) -> None:
    """Run a rule on Tensors; complex ones as pairs of real numbers."""
    if maximize:
        g = g.neg()
    if p.is_complex():
        p, g = view_as_real(p), view_as_real(g)
        buffers = tuple(view_as_real(one) if one is not None and one.is_complex() else one for one in buffers)
    rule(p, g, buffers, numbers)


def _same(arrays: list[Any], tensors: tuple[Any, ...]) -> bool:
    """Tell whether the buffers are those a slot was made for."""
    for array, one in zip(arrays, tensors, strict=False):  # noqa: SIM110 - a loop takes half the time
        if array is not one and (one is None or array is not one._array):
            return False
    return True


def _is_dense(array: Any, like: Any) -> bool:
    """Tell whether an array is memory that a cell can write, of another's shape and dtype."""
    return (
        type(array) is NDARRAY
        and array.dtype in KINDS
        and array.dtype is like.dtype
        and array.shape == like.shape
        and array.flags.carray
        and (array.ndim > 0 or array.dtype.kind == "f")
    )


def plain_numbers(group: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a group with numbers where there are Tensors."""
    changed = {}
    for name, value in group.items():
        if type(value) is tuple:
            if any(isinstance(one, Tensor) for one in value):
                changed[name] = tuple(one.item() if isinstance(one, Tensor) else one for one in value)
        elif isinstance(value, Tensor):
            changed[name] = value.item()
    return {**group, **changed} if changed else group


# ---- state ----
def numbers_to_tensors(optimizer: Optimizer, names: tuple[str, ...]) -> None:
    """Make tensors of numbers in the state, as old versions saved them."""
    for state in optimizer.state.values():
        for name in names:
            if name in state and not isinstance(state[name], Tensor):
                state[name] = new_number(float(state[name]))


def new_count(fused: bool | None = None) -> Any:
    """Return a count of steps that is still zero."""
    return new_number(0.0, fused)


def new_number(value: float, fused: bool | None = None) -> Any:
    """Return a number of the state, with memory of its own."""
    number = make_tensor(value, dtype=_get_scalar_dtype(fused))
    materialise(number)
    return number


def count(state: dict[str, Any]) -> float:
    """Advance the count of steps in a state and return it."""
    step = state["step"]
    array = step._array
    if type(array) is NDARRAY and array.dtype in ONE and not array.ndim:
        np.add(array, ONE[array.dtype], array)
        return array.item()  # type: ignore[no-any-return]
    step.add_(1)
    return step.item()  # type: ignore[no-any-return]


# ---- words for rules: a factor may be a Tensor that is to be differentiated ----
def add_times(x: Any, y: Any, factor: Any) -> None:
    """Add a number of times `y`."""
    if type(factor) is not float and isinstance(factor, Tensor):
        x.add_(y.mul(factor))
    else:
        x.add_(y, alpha=factor)


def add_quotient(x: Any, y: Any, z: Any, factor: Any) -> None:
    """Add a number of times `y / z`."""
    if type(factor) is not float and isinstance(factor, Tensor):
        x.add_(y.div(z).mul(factor))
    else:
        x.addcdiv_(y, z, value=factor)


def add_product(x: Any, y: Any, z: Any, factor: Any) -> None:
    """Add a number of times `y z`."""
    if type(factor) is not float and isinstance(factor, Tensor):
        x.add_(y.mul(z).mul(factor))
    else:
        x.addcmul_(y, z, value=factor)


def keep_larger(x: Any, y: Any) -> None:
    """Keep the larger of each two numbers in `x`; a graph would keep `x` as it was."""
    x.copy_((x if type(x) is Cell else x.clone()).maximum(y))


def decayed(g: Any, p: Any, weight_decay: Any) -> Any:
    """Return a gradient with the pull of L2 regularisation."""
    if type(weight_decay) is float or type(weight_decay) is int:
        return g.add(p, alpha=weight_decay) if weight_decay else g
    return g.add(p.mul(weight_decay))


# ---- checks ----
def check_lr(lr: Any, **others: Any) -> None:
    """Refuse a negative rate, or a Tensor of several."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")
    for name, value in others.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {'epsilon' if name == 'eps' else name} value: {value}")


def check_betas(betas: Any) -> None:
    """Refuse rates of decay outside [0, 1)."""
    for at in (0, 1):
        if not 0.0 <= betas[at] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {at}: {betas[at]}")


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Refuse ways of stepping that exclude each other; all of them are the same here."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
