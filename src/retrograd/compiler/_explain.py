"""What `retrograd.compiler.explain` says of a compiled function."""

from __future__ import annotations

import math
from typing import Any

from .._places import at_line
from .._readable import counted
from ._compiled import FEWEST, Compiled, CompiledRegion, compiled
from ._program import Program, Step, Value
from ._runner import code_of


class Explanation:
    """How calls of a function are compiled. `str` of it is to be read; the attributes are for programs.

    `records`: one for each program, with its `code` as recorded and its `compiled_code`. `reasons`: why calls could not be compiled as a
    whole. `regions`: if Python runs it, the same for the parts of it that are compiled, and for what it calls.
    """

    def __init__(self, function: Compiled) -> None:
        self.name = getattr(function.function, "__qualname__", type(function.function).__name__)
        self.reasons = list(function.reasons)
        has_graphs = function.options.backend is not None
        self.records = [
            GraphExplanation(run) if has_graphs else RecordExplanation(run.record) for run in function.records
        ]
        self.regions = [Explanation(one) for one in _parts(function)]
        self._split = function.split is not None
        if isinstance(function, CompiledRegion):
            code = function.function.__code__
            last = max([line for _, _, line in code.co_lines() if line is not None], default=code.co_firstlineno)
            self.name = f"{at_line(code.co_filename, code.co_firstlineno)}-{last}"

    @property
    def code(self) -> str:
        """Return the newest program, and its backward, as Python."""
        return self.records[0].code if self.records else ""

    def __str__(self) -> str:
        parts = f"; Python runs it, with {counted(len(self.regions), 'compiled part')}" if self.regions else ""
        lines = [f"{self.name}: {counted(len(self.records), 'compiled program')}{parts}"]
        for number, one in enumerate(self.records, 1):
            lines += ["", f"program {number}", *[f"  {line}" for line in one.lines()]]
        if self.reasons:
            what = (
                "it could not be compiled as a whole, because" if self.regions else "calls that ran in eager, because"
            )
            lines += ["", what, *[f"  {reason}" for reason in self.reasons]]
            if self._split and not self.regions:
                lines += [f"no part of it is compiled: each has fewer than {FEWEST} operations, or is refused, too"]
        for region in self.regions:
            lines += ["", *str(region).splitlines()]
        return "\n".join(lines)

    __repr__ = __str__


def _parts(function: Compiled) -> list[Compiled]:
    """Return what is compiled of a function that is split: regions, regions of these, and what it calls."""
    if function.split is None:
        return []
    split = function.split.split  # type: ignore[attr-defined]
    own = [variant for region in split.regions for variant in region.every if not variant.as_it_is]
    found: list[Compiled] = []
    for one in (*own, *[call._compiled for _, call in split.callees.values()]):
        found += [one] if one.records or one.split is None else _parts(one)
    return [one for one in found if one.records or one.reasons]


class RecordExplanation:
    """One program with its backward."""

    def __init__(self, record: Any) -> None:
        self.record = record
        self.forward, self.backward = record.found.forward, record.found.backward
        self.recorded, self.recorded_backward = record.recorded
        self.has_effects = record.has_effects

    @property
    def code(self) -> str:
        """Return what was recorded, forward and backward, as Python: the derivative as source."""
        return code_of(self.record)

    @property
    def compiled_code(self) -> str:
        """Return what runs, with kernels as calls."""
        parts = [self.forward.text("forward", readable=True)[0]]
        if self.backward is not None:
            parts.append(self.backward.text("backward", readable=True)[0])
        return "\n\n\n".join(parts) + "\n"

    def lines(self) -> list[str]:
        """Describe it."""
        found = _described("forward", self.recorded, self.forward)
        if self.backward is not None:
            found += _described("backward", self.recorded_backward, self.backward)
        if self.has_effects:
            found.append("it writes into tensors from outside, or leaves gradients, as eager does")
        return found


class GraphExplanation:
    """One graph, which a backend of the program's own computes."""

    def __init__(self, run: Any) -> None:
        self.graph = run.record.graph
        self.code = self.compiled_code = self.graph.code

    def lines(self) -> list[str]:
        """Describe it."""
        calls = [node for node in self.graph.graph.nodes if node.op.startswith("call")]
        return [f"a graph of {counted(len(calls), 'operation')}, which the backend computes"]


def _described(name: str, before: Program, after: Program) -> list[str]:
    kernels = [step for step in after.steps if step.name == "kernel"]
    calls = [step for step in after.steps if step.name != "kernel" and step.kind not in ("check", "host")]
    checks = sum(step.kind == "check" for step in after.steps)
    lines = [
        f"{name}: {counted(len(before.steps), 'operation')}; {counted(len(kernels), 'kernel')}, "
        f"{counted(len(calls), 'call')} of NumPy and fused operations, {counted(checks, 'check')} of values; "
        f"{counted(sum(map(_bytes, after.steps)), 'byte')} read and written"
    ]
    for step in kernels:
        fused = step.fused
        places = list(dict.fromkeys(_line(one) for one in fused if one.place))
        labels = [one.label for one in fused[:12]] + ["..."] * (len(fused) > 12)
        lines.append(f"  a kernel of {counted(len(fused), 'operation')}: {', '.join(labels)}")
        lines += [f"    {place}" for place in places[:8]]
    for step in calls:
        lines.append(f"  {step.label}{f', {_line(step)}' if step.place else ''}")
    return lines


def _line(step: Step) -> str:
    return step.place.splitlines()[0]


def _bytes(step: Step) -> int:
    return sum(_size(value) for value in (*step.values, *step.makes))


def _size(value: Value) -> int:
    return 0 if value.dtype is None else math.prod(value.shape) * int(value.dtype.itemsize)


def _compiled_of(function: Any) -> Compiled | None:
    """Return what a result of `torch.compile` runs."""
    return getattr(function, "_compiled", None) or getattr(
        getattr(function, "_compiled_forward", None), "_compiled", None
    )


def reasons_of(function: Any) -> list[str]:
    """Return why a compiled function could not be compiled as a whole, nor what is compiled of it."""
    run = _compiled_of(function)
    found: list[str] = []
    waiting = [] if run is None else [run]
    while waiting:
        one = waiting.pop(0)
        found += one.reasons
        waiting += _parts(one)
    return found


def explain(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
    """Call a function, so that it is recorded and compiled, and describe what came of it."""
    if not callable(function):
        raise TypeError(
            f"explain(): expected a function, a Module or what torch.compile returned, but got {type(function).__name__}\n"
            "Hint: explain(f, *args) calls f(*args) and says how it was compiled; explain(torch.compile(f)) tells of earlier calls."
        )
    run = _compiled_of(function)
    call = function
    if run is None:
        call = compiled(function)
        run = call._compiled  # type: ignore[attr-defined]
    if args or kwargs:
        call(*args, **kwargs)
    return Explanation(run)
