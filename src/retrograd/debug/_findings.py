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
from ._trace import BACKWARD, FORWARD, NONE, SAVED, Finding, Operation, Step, Trace, Value

MASKS = ("masked_fill", "masked_fill_", "full", "full_like", "where", "tensor", "fill_")
MOST = 8  # findings of a kind, names in a finding
LAST = 4  # events before an error
LEAST_SCALE = 256.0  # of a loss, that is taken for one
MORE = {  # than MOST, by kind: what they are called
    "nan": ("more tensor", "with NaN or Inf"),
    "vanished": ("more case", "of a gradient that vanishes or explodes"),
    "missing": ("more parameter", "without a gradient"),
    "cut": ("more place", "at which a gradient is cut"),
    "meant": ("more place", "at which a gradient is cut on purpose"),
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
        is_one = len(names) == 1
        text = (
            f"{_listed(names)} {'is' if is_one else 'are'} never used: "
            f"no operation of the recording takes {'it' if is_one else 'them'}"
        )
        yield Finding("unused", text)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


def find_all(
    trace: Trace, roots: set[int], reached: set[int], unreached: dict[int, str], stepped: set[int] | None = None
) -> None:
    """Note what stands out in a trace.

    `roots` are operations from which a backward began, the others numbers of leaves. `stepped` are those that an optimizer has; None if
    none has taken a step.
    """
    leads = _leading_to(trace, roots)
    cuts = [*_cuts(trace, leads)]
    trace.findings += _gathered(_not_finite(trace))
    trace.findings += _gathered(_stopped(trace))
    trace.findings += _gathered(_far_from_one(trace, _loss_scale(trace, roots)))
    trace.findings += _gathered(_missing(trace, unreached.keys() - reached, unreached, leads, stepped))
    trace.findings += _gathered(one for one in cuts if one.kind == "cut")
    trace.meant_cuts += _gathered(one for one in cuts if one.kind == "meant")


def nothing_found(trace: Trace) -> str:
    """Say what was looked for in vain; of gradients nothing is known where no backward ran, of values where none was looked at."""
    if not trace.operations:
        return "No operation was recorded."
    knows_values = trace.values != NONE
    found = ["no NaN", "no infinity"] if knows_values else []
    if trace.values == SAVED:
        found[-1] += " in what the graph has kept"
    if any(step.kind == BACKWARD for step in trace.steps):
        found.append(f"no gradient that {'vanishes, ' * knows_values}is cut or missing")
    if trace.is_whole:
        found.append("no parameter that is never used")
    text = f"{', '.join(found)}." if found else ""
    unknown = "" if knows_values else "Values were not looked at (statistics=False)."
    return f"{text[:1].upper()}{text[1:]} {unknown}".strip()


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
            left = sum(first.number for first, *_ in groups[MOST:])
            yield Finding(kind, f"{counted(left, word)} {which}")


def in_words(error: BaseException) -> str:
    """Return the class of an error and its message."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _not_finite(trace: Trace) -> Iterable[Finding]:
    """Return where NaN or an infinity came out of finite values for the first time, forward and backward."""
    operations = trace.operations
    for at, step in enumerate(trace.steps):
        box = operations[step.operation]
        if step.kind == FORWARD and (what := _newly(box, [operations[one] for one in box.inputs])):
            text = f"{what} first appears in {box.name}{trace.places.written(box.stack)}"
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
            what = " and ".join(_not_finite_in([leaf.value]))
            yield Finding("nan", f"{what} is in {leaf.name}, which was there before", at_box)


def _newly(box: Operation, inputs: list[Operation]) -> str:
    """Say what is not finite in values, and was in none of the inputs; infinities that a mask has put there are as they should be."""
    found, given = _not_finite_in(box.values), _not_finite_in([value for one in inputs for value in one.values])
    if "NaN" not in given and "NaN" in found:
        return " and ".join(found)
    return "Inf" if "Inf" in found and not given and box.name not in MASKS else ""


def _not_finite_in(values: list[Value]) -> list[str]:
    found = [one.statistics for one in values if one.statistics is not None]
    kinds = (("NaN", any(one.nans for one in found)), ("Inf", any(one.infinities for one in found)))
    return [name for name, some in kinds if some]


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


def _loss_scale(trace: Trace, roots: set[int]) -> float:
    """Return what a loss was multiplied by before a backward, as a GradScaler does: a large power of two, in a tensor of one number."""
    products = [box for box in (trace.operations[root] for root in roots) if box.name == "mul"]
    factors = [trace.operations[at] for box in products for at in box.inputs]
    for value in (value for box in factors if not box.node for value in box.values if not value.shape):
        number = None if value.statistics is None else value.statistics.least
        if number is not None and number >= LEAST_SCALE and math.frexp(number)[0] == 0.5:
            return number
    return 1.0


def _far_from_one(trace: Trace, scale: float) -> Iterable[Finding]:
    """Return leaves whose gradients, without the scale of the loss, vanish or explode."""
    for number, leaf in enumerate(trace.leaves):
        if leaf.gradient is None or leaf.value.statistics is None:
            continue
        count = math.prod(leaf.value.shape)
        flow = Flow(
            leaf.name,
            _norm(leaf.gradient, count, scale),
            _norm(leaf.value.statistics, count) or 0.0,
            leaf.gradient.nans,
            leaf.gradient.infinities,
        )
        leaf.remark = flow.remark
        if leaf.remark:
            yield Finding(
                "vanished", f"The gradient of {_name_of(trace, number)}: {leaf.remark}", _box_of(trace, number)
            )


def _missing(
    trace: Trace, numbers: Iterable[int], unreached: dict[int, str], leads: set[int], stepped: set[int] | None
) -> Iterable[Finding]:
    """Return leaves without a gradient, those that have one reason together.

    A cut that is meant costs nothing where optimizers do not have the leaf: the generator of a GAN, while its critic learns.
    """
    reasons: dict[tuple[bool, str], list[int]] = {}
    for number in sorted(numbers):
        cut = _cut_of(trace, number, leads)
        is_expected = cut is not None and cut.is_meant and stepped is not None and number not in stepped
        trace.leaves[number].remark = "no gradient arrives"
        if not is_expected:
            why = unreached[number] if cut is None else f"{cut.name}{trace.places.written(cut.stack)}: {cut.remark}."
            reasons.setdefault((cut is not None, why), []).append(number)
    for (is_cut, why), group in reasons.items():
        verb, they = ("gets", "It is") if len(group) == 1 else ("get", "They are")
        names = _listed([_name_of(trace, number) for number in group])
        text = f"{names} {verb} no gradient. {f'{they} cut at ' * is_cut}{why}".strip()
        yield Finding("missing", text, _box_of(trace, group[0]), number=len(group))


def _box_of(trace: Trace, leaf: int) -> int | None:
    """Return the first box that stands for a leaf."""
    return next((at for at, box in enumerate(trace.operations) if box.leaf == leaf), None)


def _name_of(trace: Trace, number: int) -> str:
    """Return the name of a leaf, with the line that uses it if there are others of that name."""
    name = trace.leaves[number].name
    if [leaf.name for leaf in trace.leaves].count(name) == 1:
        return name
    own = {at for at, box in enumerate(trace.operations) if box.leaf == number}
    users = [box for box in trace.operations if not own.isdisjoint(box.inputs)]
    users.sort(key=lambda box: box.name.endswith("_"))  # where it was filled says less
    return name + (trace.places.written(users[0].stack) if users else "")


def _norm(statistics: Statistics, count: int, scale: float = 1.0) -> float | None:
    if statistics.mean is None or statistics.deviation is None:
        return None
    return math.sqrt(count) * math.hypot(statistics.mean, statistics.deviation) / scale


def _leading_to(trace: Trace, roots: set[int]) -> set[int]:
    """Return the operations whose values have gone into something from which a backward began."""
    leads, stack = set(roots), list(roots)
    while stack:
        box = trace.operations[stack.pop()]
        new = set(box.inputs) - leads - {box.computed_by}
        leads |= new
        stack += new
    return leads


def _cut_of(trace: Trace, leaf: int, leads: set[int]) -> Operation | None:
    """Return what cuts the way from a leaf to a backward, if it is an operation that was seen."""
    follows = {at for at, box in enumerate(trace.operations) if box.leaf == leaf}
    for at, box in enumerate(trace.operations):  # inputs come before what uses them
        if at in follows or follows.isdisjoint(box.inputs):
            continue
        if box.cut and at in leads:
            return box
        if not box.cut:
            follows.add(at)
    return None


def _cuts(trace: Trace, leads: set[int]) -> Iterable[Finding]:
    """Return the cuts whose values have gone into something from which a backward began."""
    again = {
        step.operation for step in trace.steps if step.run
    }  # what a backward calls computes gradients, or computes again
    cuts = [at for at in sorted(leads - again) if trace.operations[at].cut and _passes_numbers(trace.operations[at])]
    for at in cuts:
        box = trace.operations[at]
        text = f"{box.name}{trace.places.written(box.stack)}: {box.remark}"
        yield Finding("meant", text, at) if box.is_meant else Finding("cut", f"A gradient is cut at {text}", at)


def _passes_numbers(box: Operation) -> bool:
    """Tell whether a gradient might be expected behind a cut; nobody expects one behind a comparison or an index."""
    return any(one.dtype.startswith(("float", "bfloat", "complex")) for one in box.values)
