"""What is compared of one module, mode by mode."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_modules import ModuleErrorEnum
from torch.testing._internal.common_utils import noncontiguous_like

from tests.moduledb import entries
from tests.moduledb.calls import ModuleCall
from tests.opdb import translate
from tests.opdb.batching import against_loop
from tests.opdb.calls import Skipped, computed_by_both, each, exactly, not_there
from tests.opdb.comparing import DifferentError, check
from tests.opdb.derivatives import compare_gradients, gradients, second_by_differences, second_gradients, tangent
from tests.opdb.limits import Limits
from tests.opdb.nearer import check_nearer, tensors_in
from tests.oracle import Raised, before_the_hint, outcome


def samples(info: Any, dtype: Any, training: bool, limits: Limits, requires_grad: bool = False) -> Iterator[ModuleCall]:
    """Return the module's samples of a dtype."""
    for sample in entries.inputs(info, dtype, training, requires_grad, limits.samples):
        yield ModuleCall(info, sample, dtype, training)


# ---- making ----
def same_state(ours: Any, theirs: Any, where: str) -> None:
    """Demand names in the same order, shapes, dtypes and, to the bit, values."""
    found, expected = ours.state_dict(), theirs.state_dict()
    if list(found) != list(expected):
        raise DifferentError(f"{where}: names {list(found)}, torch {list(expected)}")
    for name, value in expected.items():
        if type(value).__name__ != type(found[name]).__name__:
            raise DifferentError(f"{where} {name}: {type(found[name]).__name__}, torch {type(value).__name__}")
        if not torch.nn.parameter.is_lazy(value):
            check(found[name], value, f"{where} {name}", values=False)
            same_bits(np.asarray(found[name]._array), translate.array(value), f"{where} {name}")
    if (now := described(ours)) != (wanted := described(theirs)):
        raise DifferentError(f"{where}: {now}, torch {wanted}")


def same_bits(ours: np.ndarray, theirs: np.ndarray, where: str) -> None:
    differ = ours.view(f"u{ours.itemsize}") if ours.ndim == 0 else np.ascontiguousarray(ours).view(f"u{ours.itemsize}")
    other = np.ascontiguousarray(theirs).view(f"u{theirs.itemsize}").reshape(differ.shape)
    if (differ != other).any():
        raise DifferentError(f"{where}: {ours.ravel()[:3]}, torch {theirs.ravel()[:3]}")


def described(module: Any) -> str:
    """Return what a user sees of a module: its text, and which of its tensors are parameters."""
    parameters = [f"{name}{'' if value.requires_grad else ' fixed'}" for name, value in module.named_parameters()]
    text = f"{module!r} {type(module).__name__} {parameters} {[name for name, _ in module.named_buffers()]}"
    return text.replace("retrograd", "torch")


def init(info: Any, limits: Limits) -> None:
    """After the same seed: names, shapes, dtypes and values of the state, and the text of the module."""

    def one(call: ModuleCall) -> None:
        ours, theirs = computed_by_both(call, call.constructed)
        same_state(ours, theirs, "constructed")
        dtype = translate.dtype(call.dtype)
        same_state(ours.to(dtype), theirs.to(call.dtype), "cast")
        if info.is_lazy:
            ours, theirs = computed_by_both(call, call.module)
            same_state(ours, theirs, "materialised")
        if call.takes("dtype"):
            theirs = call.constructed(False, dtype=call.dtype)
            same_state(call.constructed(True, dtype=call.dtype), theirs, "constructed with a dtype")

    for dtype in entries.DTYPES:
        each(samples(info, dtype, True, limits), one)


# ---- calling ----
def outputs(training: bool) -> Callable[[Any, Limits], None]:
    def mode(info: Any, limits: Limits) -> None:
        """Outputs and buffers, of float64 inputs that are not contiguous, too."""

        def one(call: ModuleCall) -> None:
            ours, theirs = computed_by_both(call, call.values)
            try:
                check(ours, theirs)
            except DifferentError as different:
                check_nearer(ours, theirs, lambda: exactly(call, ModuleCall.values), 1, different)

        for dtype in entries.DTYPES:
            each(samples(info, dtype, training, limits), one)
        each(_noncontiguous(samples(info, torch.float64, training, limits)), one)

    return mode


def _noncontiguous(calls: Iterator[ModuleCall]) -> Iterator[ModuleCall]:
    for call in itertools.islice(calls, 6):
        given = call.sample.forward_input
        given.args = tuple(_spread(value) for value in given.args)
        given.kwargs = {name: _spread(value) for name, value in given.kwargs.items()}
        yield call


def _spread(value: Any) -> Any:
    return noncontiguous_like(value) if isinstance(value, torch.Tensor) and value.numel() > 1 else value


def inplace(info: Any, limits: Limits) -> None:
    """Modules that take `inplace`: what they return and what they leave in their input."""

    def one(call: ModuleCall) -> None:
        def compute(ours: bool) -> Any:
            parts = call.parts(ours)
            return call.run(ours, parts), tensors_in(parts[:2])

        call.options["inplace"] = True
        ours, theirs = computed_by_both(call, compute)
        check(ours, theirs)
        if str(call.constructed(True)) != str(call.constructed(False)):
            raise DifferentError(f"{call.constructed(True)}, torch {call.constructed(False)}")

    calls = (call for call in samples(info, torch.float32, True, limits) if call.takes("inplace"))
    each(calls, one)


def errors(info: Any, limits: Limits) -> None:
    """Error inputs: torch's class and text."""

    def one(call: ModuleCall) -> None:
        given = call.sample

        def compute(ours: bool) -> Any:
            module = call.constructed(ours)
            if call.error_on is ModuleErrorEnum.FORWARD_ERROR:
                args, kwargs = call.given(ours)
                module(*args, **kwargs)

        expected, found = raised(compute, False), raised(compute, True)
        if expected is None:
            raise Skipped  # an entry for another device
        if found != expected:
            raise DifferentError(f"{found}, torch {expected} {given.desc}")

    calls = []
    for given in entries.error_inputs(info, torch.float32):
        call = ModuleCall(info, given.module_error_input, torch.float32, True)
        call.error_on = given.error_on
        calls.append(call)
    each(iter(calls), one)


def raised(compute: Callable[[bool], Any], ours: bool) -> Raised | None:
    """Return the error, without our hint."""
    found = outcome(
        compute, ours, words=lambda error: before_the_hint(error).replace("retrograd", "torch"), ignore_warnings=False
    )
    return found if isinstance(found, Raised) else None


# ---- differentiating ----
def in_both_modes(
    info: Any,
    limits: Limits,
    dtypes: tuple[Any, ...],
    compute: Callable[[ModuleCall, bool], list[Any]],
    count: int | None,
    otherwise: Callable[[ModuleCall], None] | None = None,
) -> None:
    """Compare gradients or tangents of inputs and parameters; `otherwise`: what checks those that torch has not."""

    def one(call: ModuleCall) -> None:
        try:
            theirs = compute(call, False)
        except Exception as error:
            if otherwise is None or not not_there(error):
                raise Skipped from None
            otherwise(call)
        else:
            compare_gradients(call, compute, compute(call, True), theirs)

    applies = False
    for dtype, training in itertools.product(dtypes, (True, False)):
        calls = itertools.islice(samples(info, dtype, training, limits, True), count)
        try:
            each(calls, one)
            applies = True
        except Skipped:
            continue
    if not applies:
        raise Skipped


def reverse(info: Any, limits: Limits) -> None:
    """Gradients of inputs and parameters."""
    in_both_modes(info, limits, entries.DTYPES, gradients, None)


def second(info: Any, limits: Limits) -> None:
    """Gradients of gradients, on a part of the samples."""
    in_both_modes(info, limits, (torch.float64,), second_gradients, limits.second, second_by_differences)


def forward(info: Any, limits: Limits) -> None:
    """Tangents for tangents of inputs and parameters."""
    in_both_modes(info, limits, (torch.float64,), tangent, limits.second)


def forward_beyond(info: Any, limits: Limits) -> None:
    """Forward mode where torch has none: whether it runs here."""

    def one(call: ModuleCall) -> None:
        try:
            tangent(call, False)
        except Exception:
            tangent(call, True)
        else:
            raise Skipped

    each(itertools.islice(samples(info, torch.float64, False, limits, True), 3), one)


def vmap(info: Any, limits: Limits) -> None:
    """vmap over inputs and parameters against a loop."""
    each(itertools.islice(samples(info, torch.float64, False, limits), limits.vmap), against_loop)


# ---- copying ----
def copies(info: Any, limits: Limits) -> None:
    """deepcopy, pickle and state_dict: a module with the same state and the same outputs."""

    def one(call: ModuleCall) -> None:
        args, kwargs, _, module = call.parts(True)
        other = call.constructed(True).to(translate.dtype(call.dtype)).train(call.training)
        other.load_state_dict(module.state_dict())
        copied = {"deepcopy": copy.deepcopy(module), "pickle": pickle.loads(pickle.dumps(module)), "state_dict": other}
        state = {name: np.array(value._array) for name, value in module.state_dict().items()}
        expected = call.run(True, (args, kwargs, {}, module))
        for how, made in copied.items():
            if list(made.state_dict()) != list(state):
                raise DifferentError(f"{how}: {list(made.state_dict())}")
            for name, value in made.state_dict().items():
                same_bits(np.asarray(value._array), state[name], f"{how} {name}")
            lazy = info.is_lazy and how == "state_dict"  # which learns its sizes at its first call, if at all
            if not lazy and (described(made), made.training) != (described(module), module.training):
                raise DifferentError(f"{how}: {described(made)}, made from {described(module)}")
            found = call.run(True, (*call.given(True), {}, made))
            for a, b in zip(tensors_in(found), tensors_in(expected), strict=True):
                same_bits(np.asarray(a.detach()._array), np.asarray(b.detach()._array), f"{how}: output")

    each(itertools.islice(samples(info, torch.float32, True, limits), limits.second), one)


MODES: dict[str, Callable[[Any, Limits], None]] = {
    "init": init,
    "train": outputs(True),
    "eval": outputs(False),
    "inplace": inplace,
    "errors": errors,
    "reverse": reverse,
    "second": second,
    "forward": forward,
    "vmap": vmap,
    "copies": copies,
    "beyond": forward_beyond,
}
