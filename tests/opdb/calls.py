"""One sample of one operation, for both libraries; running many of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch

import retrograd
from tests.opdb import translate
from tests.opdb.comparing import DifferentError
from tests.opdb.limits import Limits
from tests.opdb.nearer import tensors_in, widened


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

    def widened(self) -> Call:
        """Return the call with float64 in the place of half precision."""
        return Call(self.op, self.sample.transform(widened), self.wrapped)

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


def computed_by_both(call: Call, compute: Callable[[bool], Any]) -> tuple[Any, Any]:
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
        kind = OnlyOursError if not_there(error) else DifferentError
        raise kind(f"{call}: torch raises {type(error).__name__}: {error}") from None
    seed()
    return compute(True), theirs


def not_there(error: Exception) -> bool:
    """Tell whether torch says that it cannot do this, rather than that the call is wrong."""
    return "not implemented" in str(error) or "don't support automatic differentiation" in str(error)


class OnlyOursError(DifferentError):
    """torch says that it has not implemented what we compute."""


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


def few(calls: Iterator[Call], count: int) -> Iterator[Call]:
    return itertools.islice(calls, count)


def exactly(call: Call, compute: Callable[[Call, bool], Any]) -> Any:
    """Compute with torch in float64."""
    seed()
    return compute(call.widened(), False)
