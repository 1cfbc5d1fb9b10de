"""What a reader of a recording should look at first: NaN, gradients that vanish or are cut, unused parameters, errors."""

from __future__ import annotations

import linecache
import math
import sysconfig
from collections.abc import Iterable
from dataclasses import replace
from traceback import walk_tb

from .._places import at_line, is_own
from .._readable import counted
from ._gradient_flow import Flow
from ._statistics import Statistics
from ._trace import BACKWARD, FORWARD, Finding, Operation, Step, Trace, Value

MASKS = ("masked_fill", "masked_fill_", "full", "full_like", "where", "tensor", "fill_")
MOST = 8  # findings of a kind, names in a finding
LAST = 4  # events before an error
MORE = {  # than MOST, by kind: what they are called
    "nan": ("more tensor", "with NaN or Inf"),
    "vanished": ("more case", "of a gradient that vanishes or explodes"),
    "missing": ("more parameter", "without a gradient"),
    "cut": ("more place", "at which a gradient is cut"),
}


def of_error(trace: Trace, error: BaseException) -> Finding:
    """Say what has ended a recording, at which line, in which operation, if it was one, and what ran last before it."""
    words = in_words(error)
    raised = [at for at, box in enumerate(trace.operations) if box.remark == words]
    failed = raised[-1] if raised else None
    last = [(at, step) for at, step in enumerate(trace.steps) if step.operation != failed][-LAST:]
    place = _line_of(error)
    text = f"The program was left by {words}"
    if place is not None:
        source = linecache.getline(*place).strip()
        text += f"\nat {at_line(*place, short=True)}" + (f": {source}" if source else "")
    before = [(step.operation, _ran(trace, step)) for _, step in last]
    if failed is None and last:
        failed = last[-1][1].operation
    return Finding("error", text, failed, last[-1][0] if last else None, before)


def _line_of(error: BaseException) -> tuple[str, int] | None:
    """Return the innermost line of the program in an error's traceback, or of a library that it calls."""
    found = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    libraries = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
    others = [one for one in found if not is_own(one[0]) and not one[0].startswith("<frozen")]
    program = [one for one in others if not one[0].startswith(libraries)]
    return next(reversed(program or others), None)


def _ran(trace: Trace, step: Step) -> str:
    """Name what ran in a step, with its line."""
    box = trace.operations[step.operation]
    is_node = step.kind == BACKWARD and box.kind != BACKWARD
    return f"{'the backward of ' * is_node}{box.name}{trace.places.written(box.stack)}"


def of_unused(names: list[str]) -> Iterable[Finding]:
    """Say which parameters no operation has taken."""
    if names:
        more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
        is_one = len(names) == 1
        text = (
            f"{', '.join(names[:MOST])}{more} {'is' if is_one else 'are'} never used: "
            f"no operation of the recording takes {'it' if is_one else 'them'}"
        )
        yield Finding("unused", text)


def find_all(trace: Trace, roots: set[int], reached: set[int], unreached: dict[int, str]) -> Iterable[Finding]:
    """Return what stands out in a trace; `roots`: operations from which a backward began, the others are numbers of leaves."""
    yield from _gathered(_not_finite(trace))
    yield from _gathered(_stopped(trace))
    leads = _leading_to(trace, roots)
    yield from _gathered(_leaves(trace, reached, unreached, leads))
    yield from _gathered(_cuts(trace, leads))


def nothing_found(trace: Trace) -> str:
    """Say what was looked for in vain; of gradients nothing is known where no backward ran."""
    if not trace.operations:
        return "No operation was recorded."
    has_gradients = any(step.kind == BACKWARD for step in trace.steps)
    gradients = ", no gradient that vanishes, is cut or missing" if has_gradients else ""
    unused = ", no parameter that is never used" if trace.is_whole else ""
    return f"No NaN, no infinity{gradients}{unused}."


def _gathered(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Make one of findings that say the same, and count those that are too many to be shown."""
    same: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        same.setdefault((one.kind, one.text), []).append(one)
    for kind in dict.fromkeys(kind for kind, _ in same):
        groups = [group for (of, _), group in same.items() if of == kind]
        for first, *others in groups[:MOST]:
            yield replace(first, text=f"{first.text} ({len(others) + 1} times)") if others else first
        if len(groups) > MOST:
            word, which = MORE[kind]
            yield Finding(kind, f"{counted(len(groups) - MOST, word)} {which}")


def in_words(error: BaseException) -> str:
    """Return the class of an error and its message."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _not_finite(trace: Trace) -> Iterable[Finding]:
    """Return where NaN or an infinity came out of finite values for the first time, forward and backward."""
    operations = trace.operations
    for at, step in enumerate(trace.steps):
        box = operations[step.operation]
        if step.kind == FORWARD and _is_bad(box) and not any(_is_bad(operations[one]) for one in box.inputs):
            text = f"{_what(box.values)} first appears in {box.name}{trace.places.written(box.stack)}"
            yield Finding("nan", text, step.operation, at)
            break
    for at, step in enumerate(trace.steps):
        if step.kind == BACKWARD and step.spoiled:
            box = operations[step.operation]
            text = f"The gradient stops being finite in the backward of {box.name}{trace.places.written(box.stack)}"
            yield Finding("nan", text, step.operation, at)
            break
    for leaf in trace.leaves:
        if not all(one is None or one.is_finite for one in [leaf.value.statistics]):
            at_box = next(
                i for i, box in enumerate(operations) if box.leaf is not None and trace.leaves[box.leaf] is leaf
            )
            yield Finding("nan", f"{_what([leaf.value])} is in {leaf.name}, which was there before", at_box)


def _is_bad(box: Operation) -> bool:
    """Tell whether values are not finite; infinities that a mask has put there are as they should be."""
    found = [one.statistics for one in box.values if one.statistics is not None]
    if box.name in MASKS:
        return any(one.nans for one in found)
    return not all(one.is_finite for one in found)


def _what(values: list[Value]) -> str:
    found = [one.statistics for one in values if one.statistics is not None]
    names = [
        name for name, some in (("NaN", any(o.nans for o in found)), ("Inf", any(o.infinities for o in found))) if some
    ]
    return " and ".join(names)


def _stopped(trace: Trace) -> Iterable[Finding]:
    """Return the operations behind which nothing but zeros is left of a gradient."""
    found: dict[tuple[str, int], list[int]] = {}  # by name and line
    for at, step in enumerate(trace.steps):
        if step.stopped:
            box = trace.operations[step.operation]
            found.setdefault((box.name, box.stack), []).append(at)
    for (name, stack), steps in found.items():
        times = "" if len(steps) == 1 else f", {len(steps)} times on this line"
        text = f"The gradient vanishes in {name}{trace.places.written(stack)}: nothing but zeros comes out of its backward{times}"
        yield Finding("vanished", text, trace.steps[steps[0]].operation, steps[0])


def _leaves(trace: Trace, reached: set[int], unreached: dict[int, str], leads: set[int]) -> Iterable[Finding]:
    """Return leaves whose gradients are missing, vanish or explode."""
    boxes = {box.leaf: at for at, box in reversed([*enumerate(trace.operations)])}
    for number, leaf in enumerate(trace.leaves):
        if leaf.gradient is not None and leaf.value.statistics is not None:
            count = math.prod(leaf.value.shape)
            flow = Flow(
                leaf.name,
                _norm(leaf.gradient, count),
                _norm(leaf.value.statistics, count) or 0.0,
                leaf.gradient.nans,
                leaf.gradient.infinities,
            )
            leaf.remark = flow.remark
            if leaf.remark:
                text = f"The gradient of {_name_of(trace, number)}: {leaf.remark}"
                yield Finding("vanished", text, boxes.get(number))
        elif number in unreached and number not in reached:
            leaf.remark = "no gradient arrives"
            why = _cut_of(trace, number, leads) or unreached[number]
            yield Finding("missing", f"{_name_of(trace, number)} gets no gradient. {why}".strip(), boxes.get(number))


def _name_of(trace: Trace, number: int) -> str:
    """Return the name of a leaf, with the line that uses it if there are others of that name."""
    name = trace.leaves[number].name
    if [leaf.name for leaf in trace.leaves].count(name) == 1:
        return name
    own = {at for at, box in enumerate(trace.operations) if box.leaf == number}
    users = (box.stack for box in trace.operations if not own.isdisjoint(box.inputs))
    return name + trace.places.written(next(users, -1))


def _norm(statistics: Statistics, count: int) -> float | None:
    if statistics.mean is None or statistics.deviation is None:
        return None
    return math.sqrt(count) * math.hypot(statistics.mean, statistics.deviation)


def _leading_to(trace: Trace, roots: set[int]) -> set[int]:
    """Return the operations whose values have gone into something from which a backward began."""
    leads, stack = set(roots), list(roots)
    while stack:
        box = trace.operations[stack.pop()]
        new = set(box.inputs) - leads - {box.computed_by}
        leads |= new
        stack += new
    return leads


def _cut_of(trace: Trace, leaf: int, leads: set[int]) -> str:
    """Say where the way from a leaf to a backward is cut, as far as operations that were seen have done it."""
    follows = {at for at, box in enumerate(trace.operations) if box.leaf == leaf}
    for at, box in enumerate(trace.operations):  # inputs come before what uses them
        if at in follows or follows.isdisjoint(box.inputs):
            continue
        if box.cut and at in leads:
            return f"It is cut at {box.name}{trace.places.written(box.stack)}: {box.remark}."
        if not box.cut:
            follows.add(at)
    return ""


def _cuts(trace: Trace, leads: set[int]) -> Iterable[Finding]:
    """Return the cuts whose values have gone into something from which a backward began."""
    again = {
        step.operation for step in trace.steps if step.run
    }  # what a backward calls computes gradients, or computes again
    cuts = [at for at in sorted(leads - again) if trace.operations[at].cut and _passes_numbers(trace.operations[at])]
    for at in cuts:
        box = trace.operations[at]
        yield Finding("cut", f"A gradient is cut at {box.name}{trace.places.written(box.stack)}: {box.remark}", at)


def _passes_numbers(box: Operation) -> bool:
    """Tell whether a gradient might be expected behind a cut; nobody expects one behind a comparison or an index."""
    return any(one.dtype.startswith(("float", "bfloat", "complex")) for one in box.values)
