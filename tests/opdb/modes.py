"""What is compared of one operation, mode by mode."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

import retrograd
from tests.opdb import ops, translate
from tests.opdb.batching import vmap
from tests.opdb.calls import Call, Refused, Skipped, computed_by_both, each, exactly, few, samples, seed, supported
from tests.opdb.comparing import DifferentError, check
from tests.opdb.derivatives import forward, reverse, second
from tests.opdb.limits import Limits
from tests.opdb.nearer import check_nearer, tensors_in

DTYPES = (torch.float32, torch.float64, torch.complex128, torch.bfloat16, torch.int64)


def value(op: Any, limits: Limits) -> None:
    """Values, shapes and dtypes over all dtypes, and of inputs that are not contiguous."""
    compared = not ops.UNINITIALISED.match(op.name)

    def one(call: Call) -> None:
        ours, theirs = computed_by_both(call, lambda ours: call.run(ours))
        if op.name in ops.UNSTABLE:
            ours, theirs = without_indices(ours), without_indices(theirs)
        try:
            check(ours, theirs, values=compared)
        except DifferentError as different:
            process = call.sample.output_process_fn_grad  # eigenvectors have a sign, singular vectors a phase
            try:
                check(translate.function(process)(ours), process(theirs), values=compared)
            except DifferentError:
                check_nearer(ours, theirs, lambda: exactly(call, Call.run), 1, different)

    if not supported(op, DTYPES):
        return each(samples(op, torch.bool, limits), one)
    for dtype in supported(op, DTYPES):
        each(samples(op, dtype, limits), one)
        if dtype is torch.float64 and not op.name.startswith("as_strided"):  # which reads between the elements
            each(_noncontiguous(samples(op, dtype, limits)), one)
    return None


def without_indices(results: Any) -> Any:
    """Leave out positions among equal values, which nobody promises."""
    if isinstance(results, (list, tuple)):
        return [r for r in results if r.is_floating_point()] or results[:1]
    return results.shape if not results.is_floating_point() else results


def _noncontiguous(calls: Iterator[Call]) -> Iterator[Call]:
    for call in itertools.islice(calls, 4):
        yield Call(call.op, call.sample.noncontiguous(), call.wrapped)


def method(op: Any, limits: Limits) -> None:
    """The method, on the samples of one dtype."""
    if op.method_variant is None:
        raise Skipped
    compared = not ops.UNINITIALISED.match(op.name)

    def one(call: Call) -> None:
        ours, theirs = computed_by_both(call, lambda ours: call.run(ours, function=op.method_variant))
        check(ours, theirs, values=compared)

    for dtype in supported(op, DTYPES)[:1]:
        each(few(samples(op, dtype, limits), 6), one)


def inplace(op: Any, limits: Limits) -> None:
    """The in-place variant: what it returns and what it leaves in its input."""
    if op.inplace_variant is None:
        raise Skipped

    def one(call: Call) -> None:
        def compute(ours: bool) -> Any:
            parts = call.parts(ours)
            result = call.run(ours, parts, op.inplace_variant)
            if ours and result is not parts[0]:
                raise DifferentError("the in-place method does not return its tensor")
            return parts[0]

        ours, theirs = computed_by_both(call, compute)
        check(ours, theirs, values=not ops.UNINITIALISED.match(op.name))

    for dtype in supported(op, DTYPES):
        each(few(samples(op, dtype, limits), 12), one)


def out(op: Any, limits: Limits) -> None:
    """`out=`: empty tensors that are resized, tensors of the right shape, and of a dtype that cannot hold the result."""
    if not op.supports_out:
        raise Skipped

    def one(call: Call) -> None:
        for make in (_empty_out, _full_out, _integer_out):

            def compute(ours: bool, make: Any = make) -> Any:
                seed()
                parts = call.parts(ours)
                expected = call.run(ours, fresh_parts(call, ours))
                targets = make(retrograd if ours else torch, expected)
                seed()
                call.run(ours, (parts[0], parts[1], parts[2] | {"out": targets}))
                return targets

            try:
                ours, theirs = computed_by_both(call, compute)
            except Refused:
                continue
            try:
                check(ours, theirs, values=not ops.UNINITIALISED.match(op.name))
            except DifferentError:
                process = call.sample.output_process_fn_grad
                check(translate.function(process)(ours), process(theirs))

    for dtype in supported(op, DTYPES)[:1]:
        each(few(samples(op, dtype, limits), 4), one)


def fresh_parts(call: Call, ours: bool) -> Any:
    first, args, kwargs = call.parts(ours)
    return first, args, {k: v for k, v in kwargs.items() if k != "out"}


def _outs(library: Any, expected: Any, make: Callable[[Any], Any]) -> Any:
    if isinstance(expected, library.Tensor):
        return make(expected)
    if isinstance(expected, (tuple, list)) and expected and all(isinstance(e, library.Tensor) for e in expected):
        return tuple(make(e) for e in expected)
    raise Skipped


def _empty_out(library: Any, expected: Any) -> Any:
    return _outs(library, expected, lambda e: library.empty(0, dtype=e.dtype))


def _full_out(library: Any, expected: Any) -> Any:
    return _outs(library, expected, lambda e: library.zeros(tuple(e.shape), dtype=e.dtype))


def _integer_out(library: Any, expected: Any) -> Any:
    return _outs(library, expected, lambda e: library.zeros(tuple(e.shape), dtype=library.int64))


def errors(op: Any, limits: Limits) -> None:
    """Error inputs: torch's error class, and a message that torch's own test would accept."""
    if op.error_inputs_func is None:
        raise Skipped
    torch.manual_seed(0)
    failures, count = [], 0
    for given in op.error_inputs("cpu"):
        call = Call(op, given.sample_input)
        sample = given.sample_input
        if any(t.dim() > 64 or t.is_meta for t in tensors_in((sample.input, sample.args, sample.kwargs))):
            continue  # NumPy knows no such arrays
        try:
            call.run(False)
        except Exception as error:
            expected = error
        else:
            continue  # an entry for another device
        count += 1
        try:
            call.run(True)
        except Exception as error:
            text = str(error)
            if not isinstance(error, given.error_type) or not re.search(given.error_regex, text):
                failures.append(
                    f"{call}: {type(error).__name__}: {text:.150}; torch {type(expected).__name__}: {expected!s:.200}"
                )
        else:
            failures.append(f"{call}: no error; torch {type(expected).__name__}: {expected!s:.200}")
    if failures:
        raise DifferentError(f"{len(failures)} of {count} errors: {failures[0]}")
    if not count:
        raise Skipped


MODES: dict[str, Callable[[Any, Limits], None]] = {
    "value": value,
    "method": method,
    "inplace": inplace,
    "out": out,
    "errors": errors,
    "reverse": reverse,
    "forward": forward,
    "second": second,
    "vmap": vmap,
}
