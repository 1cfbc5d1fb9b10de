"""What is compared of one operation, mode by mode."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import retrograd
from retrograd import func as rfunc
from tests.opdb import ops, translate
from tests.opdb.comparing import DifferentError, check, check_values
from tests.opdb.limits import Limits

DTYPES = (torch.float32, torch.float64, torch.complex128, torch.bfloat16, torch.int64)
GRADIENT_DTYPES = (torch.float64, torch.complex128)


class Skipped(Exception):  # noqa: N818 - not an error
    """The mode does not apply to the operation."""


class Call:
    """One sample of one operation, for both libraries."""

    def __init__(self, op: Any, sample: Any, wrapped: bool = False) -> None:
        self.op = op
        self.sample = sample
        self.wrapped = wrapped  # as gradcheck calls it: symmetrised inputs, outputs without their gauge

    def __str__(self) -> str:
        def shown(value: Any) -> str:
            if isinstance(value, torch.Tensor):
                return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
            if isinstance(value, (list, tuple)):
                return "(" + ", ".join(shown(v) for v in value) + ")"
            return repr(value)[:60]

        s = self.sample
        parts = [shown(a) for a in (s.input, *s.args)] + [f"{k}={shown(v)}" for k, v in s.kwargs.items()]
        return f"({', '.join(parts)})"

    def parts(self, ours: bool) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Return the sample's arguments, fresh for one run."""
        s = self.sample
        if ours:
            return translate.arguments(s.input), translate.arguments(tuple(s.args)), translate.arguments(dict(s.kwargs))
        return fresh(s.input), fresh(tuple(s.args)), fresh(dict(s.kwargs))

    def run(self, ours: bool, parts: Any = None, function: Callable[..., Any] | None = None) -> Any:
        """Call the operation in one library."""
        first, args, kwargs = self.parts(ours) if parts is None else parts
        function = function or self.op.op
        call = translate.function(function) if ours else function
        if not self.wrapped:
            return call(first, *args, **kwargs)
        wrapper, process = self.op.gradcheck_wrapper, self.sample.output_process_fn_grad
        if ours:
            wrapper, process = translate.function(wrapper), translate.function(process)
        return process(wrapper(call, first, *args, **kwargs))


def fresh(value: Any) -> Any:
    """Copy tensors, so that a run cannot disturb the next."""
    if isinstance(value, torch.Tensor):
        copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype) if _dense(value) else None
        copy = value.detach().clone() if copy is None else copy.copy_(value.detach())
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {k: fresh(v) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(fresh(v) for v in value))
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(fresh(v) for v in value)
    return value


def _dense(value: torch.Tensor) -> bool:
    return all(s > 0 for s in value.stride()) and not value.is_conj() and not value.is_neg()


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors in nested arguments, of either library."""
    if isinstance(value, (torch.Tensor, retrograd.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for one in value for t in tensors_in(one)]


def floats_in(value: Any) -> list[Any]:
    return [t for t in tensors_in(value) if t.is_floating_point() or t.is_complex()]


def seed() -> None:
    torch.manual_seed(1234)
    retrograd.manual_seed(1234)


def samples(op: Any, dtype: Any, limits: Limits, requires_grad: bool = False, wrapped: bool = False) -> Iterator[Call]:
    """Return the operation's samples of a dtype."""
    torch.manual_seed(sum(map(ord, op.name)))
    limit = limits.samples
    generated = op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    for sample in itertools.islice(generated, limit):
        if _sparse((sample.input, sample.args, sample.kwargs)):
            continue
        if not requires_grad:
            for value in tensors_in((sample.input, sample.args, sample.kwargs)):
                value.requires_grad_(False)
        yield Call(op, sample, wrapped)


def _sparse(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.layout is not torch.strided
    if isinstance(value, torch.layout):
        return value is not torch.strided
    if isinstance(value, dict):
        value = value.values()
    return isinstance(value, (list, tuple)) and any(_sparse(one) for one in value)


def both(call: Call, compute: Callable[[bool], Any]) -> tuple[Any, Any]:
    """Compute with both libraries; where torch raises, so must we."""
    seed()
    try:
        theirs = compute(False)
    except Skipped:
        raise
    except Exception as error:
        try:
            compute(True)
        except Exception as own:
            if isinstance(own, NotImplementedError) and not isinstance(error, NotImplementedError):
                raise
            raise Refused from None
        raise DifferentError(f"{call}: torch raises {type(error).__name__}: {error}") from None
    seed()
    return compute(True), theirs


class Refused(Exception):  # noqa: N818 - not an error
    """Both libraries refuse the call."""


def each(calls: Iterator[Call], check_one: Callable[[Call], None]) -> None:
    """Check every sample; the first failure tells the sample, and how many others failed."""
    failures, count = [], 0
    for call in calls:
        count += 1
        try:
            check_one(call)
        except Refused:
            pass
        except Skipped:
            count -= 1
        except Exception as error:
            failures.append(f"{call}: {type(error).__name__}: {error}")
    if failures:
        raise DifferentError(f"{len(failures)} of {count} samples: {failures[0]}")
    if not count:
        raise Skipped


def supported(op: Any, dtypes: tuple[Any, ...]) -> list[Any]:
    return [d for d in dtypes if d in op.supported_dtypes("cpu")]


# ---- the modes ----
def value(op: Any, limits: Limits) -> None:
    """Values, shapes and dtypes over all dtypes, and of inputs that are not contiguous."""
    compared = not ops.UNINITIALISED.match(op.name)

    def one(call: Call) -> None:
        ours, theirs = both(call, lambda ours: call.run(ours))
        if op.name in ops.UNSTABLE:
            ours, theirs = without_indices(ours), without_indices(theirs)
        try:
            check(ours, theirs, values=compared)
        except DifferentError:
            process = call.sample.output_process_fn_grad  # eigenvectors have a sign, singular vectors a phase
            check(translate.function(process)(ours), process(theirs), values=compared)

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
        ours, theirs = both(call, lambda ours: call.run(ours, function=op.method_variant))
        check(ours, theirs, values=compared)

    for dtype in supported(op, DTYPES)[:1]:
        each(_few(samples(op, dtype, limits), 6), one)


def _few(calls: Iterator[Call], count: int) -> Iterator[Call]:
    return itertools.islice(calls, count)


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

        ours, theirs = both(call, compute)
        check(ours, theirs, values=not ops.UNINITIALISED.match(op.name))

    for dtype in supported(op, DTYPES):
        each(_few(samples(op, dtype, limits), 12), one)


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
                ours, theirs = both(call, compute)
            except Refused:
                continue
            try:
                check(ours, theirs, values=not ops.UNINITIALISED.match(op.name))
            except DifferentError:
                process = call.sample.output_process_fn_grad
                check(translate.function(process)(ours), process(theirs))

    for dtype in supported(op, DTYPES)[:1]:
        each(_few(samples(op, dtype, limits), 4), one)


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


def differentiable(op: Any) -> list[Any]:
    return [d for d in GRADIENT_DTYPES if d in op.supported_backward_dtypes("cpu")]


def cotangents(outputs: list[Any], rng: np.random.Generator) -> list[tuple[np.ndarray, str]]:
    made = []
    for output in outputs:
        values = rng.standard_normal(tuple(output.shape))
        if output.is_complex():
            values = values + 1j * rng.standard_normal(tuple(output.shape))
        made.append((values.astype(_numpy_dtype(output)), str(output.dtype).removeprefix("torch.")))
    return made


def _numpy_dtype(tensor: Any) -> Any:
    name = str(tensor.dtype).removeprefix("torch.")
    return np.dtype("float32" if name == "bfloat16" else name)


def tensor_of(given: tuple[np.ndarray, str], ours: bool) -> Any:
    values, dtype = given
    library = retrograd if ours else torch
    return library.tensor(values).to(getattr(library, dtype))


def gradients(call: Call, ours: bool, again: bool = False) -> list[Any]:
    """Return the gradients of every input that requires them; `again`: those of the gradients, too."""
    library = retrograd if ours else torch
    parts = call.parts(ours)
    inputs = [t for t in tensors_in(parts) if t.requires_grad]
    outputs = [o for o in tensors_in(call.run(ours, parts)) if o.requires_grad]
    if not outputs or not inputs:
        raise Skipped
    rng = np.random.default_rng(7)
    seeds = [tensor_of(c, ours).requires_grad_(again) for c in cotangents(outputs, rng)]
    first = list(library.autograd.grad(outputs, inputs, seeds, create_graph=again, allow_unused=True))
    if not again:
        return first
    grown = [g for g in first if g is not None and g.requires_grad]
    if not grown:
        raise Skipped
    weights = [tensor_of(c, ours) for c in cotangents(grown, rng)]
    return list(library.autograd.grad(grown, [*inputs, *seeds], weights, allow_unused=True))


def check_gradients(ours: list[Any], theirs: list[Any]) -> None:
    """Compare gradients; a missing one equals zeros, as for torch's users."""
    for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if one is None or other is None:
            rest = other if one is None else one
            if rest is not None and bool((rest != 0).any()):
                raise DifferentError(f"gradient {k}: {'none' if one is None else 'given'}, torch has it otherwise")
            continue
        check(one, other, f"gradient {k}", loosened=10)


def in_each_dtype(
    op: Any, limits: Limits, compute: Callable[[Call, bool], list[Any]], count: int | None = None
) -> None:
    """Compare gradients or tangents of the samples of every dtype that has them."""
    applies = False
    for dtype in differentiable(op):
        calls = itertools.islice(samples(op, dtype, limits, True, True), count)
        try:
            each(calls, lambda call: check_gradients(*both(call, lambda ours: compute(call, ours))))
            applies = True
        except Skipped:
            continue
    if not applies:
        raise Skipped


def reverse(op: Any, limits: Limits) -> None:
    """Gradients."""
    if not op.supports_autograd:
        raise Skipped
    in_each_dtype(op, limits, gradients)


def second(op: Any, limits: Limits) -> None:
    """Gradients of gradients, on a part of the samples."""
    if not op.supports_gradgrad or not op.supports_autograd:
        raise Skipped
    in_each_dtype(op, limits, lambda call, ours: gradients(call, ours, again=True), limits.second)


def tangent(call: Call, ours: bool) -> list[Any]:
    """Return the outputs' tangents, for tangents of every input that has a derivative."""
    library = retrograd if ours else torch
    parts = call.parts(ours)
    chosen = [t for t in tensors_in(parts) if t.requires_grad]
    if not chosen:
        raise Skipped
    rng = np.random.default_rng(11)
    primals = [t.detach() for t in chosen]
    tangents = [tensor_of(c, ours) for c in cotangents(primals, rng)]

    forward_ad = library.autograd.forward_ad
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(p, t) for p, t in zip(primals, tangents, strict=True)]
        swap = {id(old): new for old, new in zip(chosen, duals, strict=True)}
        outputs = tensors_in(call.run(ours, replaced(parts, swap)))
        found = []
        for output in outputs:
            if output.is_floating_point() or output.is_complex():
                pushed = forward_ad.unpack_dual(output).tangent
                found.append(None if pushed is None else pushed.detach().clone())
    return found


def replaced(value: Any, swap: dict[int, Any]) -> Any:
    if isinstance(value, (torch.Tensor, retrograd.Tensor)):
        return swap.get(id(value), value)
    if isinstance(value, dict):
        return {k: replaced(v, swap) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replaced(v, swap) for v in value))
    if type(value) in (list, tuple):
        return type(value)(replaced(v, swap) for v in value)
    return value


def forward(op: Any, limits: Limits) -> None:
    """Tangents."""
    if not op.supports_forward_ad or not op.supports_autograd:
        raise Skipped
    in_each_dtype(op, limits, tangent)


def forward_beyond(op: Any, limits: Limits) -> None:
    """Forward mode where torch has none: whether it runs here."""
    if op.supports_forward_ad or not op.supports_autograd or not differentiable(op):
        raise Skipped
    each(_few(samples(op, differentiable(op)[0], limits, True, True), 3), lambda call: void(tangent(call, True)))


def void(_: Any) -> None:
    return None


def vmap(op: Any, limits: Limits) -> None:
    """vmap against a loop, over every tensor of a sample."""
    dtypes = supported(op, (torch.float64, torch.complex128, torch.int64))[:1]
    if not dtypes or ops.UNINITIALISED.match(op.name):
        raise Skipped

    each(_few(samples(op, dtypes[0], limits, False, True), limits.vmap), against_loop)


def against_loop(call: Call) -> None:
    """Compare vmap over every tensor of a call with a loop."""
    parts = call.parts(True)
    given = tensors_in(parts)
    if not given:
        raise Skipped
    rows = [[scaled(t, k) for t in given] for k in range(2)]
    stacked = [retrograd.stack([row[k] for row in rows]) for k in range(len(given))]

    def function(*values: Any) -> Any:
        swap = {id(old): new for old, new in zip(given, values, strict=True)}
        outputs = tensors_in(call.run(True, replaced(parts, swap)))
        if not outputs:
            raise Skipped
        return tuple(outputs)

    seed()
    with warnings.catch_warnings(record=True) as usual:
        warnings.simplefilter("always")
        expected = [function(*row) for row in rows]
    seed()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for warning in usual:  # those of the operation itself
                warnings.filterwarnings("ignore", re.escape(str(warning.message)))
            found = rfunc.vmap(function, randomness="same")(*stacked)
    except Skipped:
        raise
    except Exception:
        if refused_by_torch(call):
            raise Skipped from None
        raise
    for k, column in enumerate(zip(*expected, strict=True)):
        want = np.stack([np.asarray(row.detach()._array) for row in column])
        have = np.asarray(found[k].detach()._array)
        if have.shape != want.shape or have.dtype != want.dtype:
            raise DifferentError(f"{have.dtype}{list(have.shape)}, the loop gives {want.dtype}{list(want.shape)}")
        check_values(have, want, f"result {k}", 10)


def scaled(tensor: Any, row: int) -> Any:
    """Make the rows of a batch differ, where values are numbers and not indices; probabilities stay below one."""
    return tensor * (1 - 0.0625 * row) if tensor.is_floating_point() or tensor.is_complex() else tensor.clone()


def refused_by_torch(call: Call) -> bool:
    """Tell whether torch's own vmap refuses the call."""
    parts = call.parts(False)
    given = tensors_in(parts)
    stacked = [torch.stack([t, t]) for t in given]

    def function(*values: Any) -> Any:
        return tuple(
            tensors_in(call.run(False, replaced(parts, {id(o): n for o, n in zip(given, values, strict=True)})))
        )

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.func.vmap(function, randomness="same")(*stacked)
    except Exception:
        return True
    return False


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
