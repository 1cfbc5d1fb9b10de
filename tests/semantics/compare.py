"""Run a program in torch and in the library under test, and find the first thing that differs."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import math
import os
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from .observing import Fact, Observer, Raised, facts_of, first_sentence, guarded, raised, unqualified
from .steps import Program, Step, close, execute, fresh_namespace

SECONDS_PER_PROGRAM = 10  # far beyond any program: only an endless loop reaches it
ENDLESS = "takes too long"

RELATIVE_TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


class KnownDifference(NamedTuple):
    """An intended difference: facts of this aspect are not compared where ``applies`` says so.

    ``of_gradients``: only of tensors that the program got from ``autograd.grad`` or ``.grad``, and what it made
    of them. ``ends``: the difference has consequences, so the rest of the program is not compared.
    """

    aspect: str  # a regular expression
    applies: Callable[[Step, Any, Any], bool]  # the step, torch's value, the library's value
    reason: str
    of_gradients: bool = False
    ends: bool = False
    after: str = ""  # a regular expression that this step's source or that of an earlier one matches
    raised: str = ""  # a regular expression that torch's message matches in this step, or since somebody last looked


def always(step: Step, in_torch: Any, in_library: Any) -> bool:
    return True


def same_elements(in_torch: Any, in_library: Any) -> bool:
    lefts, rights = flat(in_torch), flat(in_library)
    return len(lefts) > 16 and sorted(lefts, key=repr) == sorted(rights, key=repr)


# Keep this short: every line is something a user can notice.
KNOWN_DIFFERENCES: tuple[KnownDifference, ...] = (
    KnownDifference(
        "saved identity|saved requires_grad",
        always,
        "A node keeps arrays, not tensors: `_saved_self` shows a non-leaf as a new tensor on the same memory.",
    ),
    KnownDifference(
        "grad _version",
        always,
        "Where the version of a `.grad` starts tells how often torch's formula wrote into it.",
    ),
    KnownDifference(
        "_version",
        always,
        "Where the version of a returned gradient starts tells how often torch's formula wrote into it.",
        of_gradients=True,
    ),
    KnownDifference(
        "_is_view",
        lambda step, in_torch, in_library: in_torch is True,
        "Torch returns some gradients as views of larger ones; here a gradient has memory of its own.",
        of_gradients=True,
        ends=True,
    ),
    KnownDifference(
        "grad_fn name|.*next_functions.*|saved (names|kind|plain value)",
        always,
        "The graph of a gradient consists of the operations of our rules, torch's of those of its formulas.",
        of_gradients=True,
    ),
    KnownDifference(
        "hook log",
        lambda step, in_torch, in_library: "create_graph" in step.source and "'pack'" in str(in_torch),
        "Saved-tensor hooks see what the operations of our rules save, in torch what its formulas save.",
        ends=True,
    ),
    KnownDifference(
        "hook log|grad requires_grad|requires_grad",
        lambda step, in_torch, in_library: "True" in str(in_torch) or "True" in str(in_library),
        "Torch's formulas connect a gradient with everything they read, even where the derivative is zero.",
        ends=True,
        after="create_graph=True",
    ),
    KnownDifference(
        "values|grad values",
        lambda step, in_torch, in_library: step.operation not in ("index_put_", "setitem list"),
        "Torch may keep the gradient it was given, or a view of it, as `.grad`, so that writes show in both.",
        ends=True,
        after=r"backward\((gradient=)?t\d|backward\(\(.*\), \(.*t\d",
    ),
    KnownDifference(
        "hook log|grad values|saved values",
        always,
        "Torch's graph sees what `.data` puts in the place of a leaf or a number; here it keeps what forward used.",
        ends=True,
        after=r"\.data\b",
    ),
    KnownDifference(
        "is_inference|_version",
        always,
        "Torch mixes the flags of both tensors when an inference tensor becomes the `.data` of another.",
        ends=True,
        after=r"\.data = ",
    ),
    KnownDifference(
        "stride|is_contiguous",
        lambda step, in_torch, in_library: in_library is True or is_dense(in_library),
        "Of operands laid out differently torch follows the first, NumPy makes the result contiguous.",
        ends=True,
        after=r"t\d [-+*/] t\d|(add|sub|mul|div|maximum|minimum)\(.*t\d.*t\d|\.(add|sub|mul|div)\(t\d",
    ),
    KnownDifference(
        "saved plain value",
        lambda step, in_torch, in_library: (
            isinstance(in_torch, tuple) and isinstance(in_library, tuple) and len(in_torch) == len(in_library)
        ),
        "The strides that a node saves differ in dimensions of size 1.",
    ),
    KnownDifference(
        "values",
        always,
        "An index out of bounds leaves the tensor unchanged here; torch has written what comes before it.",
        ends=True,
        after=r"index_put_\(|\] = ",
        raised="out of bounds",
    ),
    KnownDifference(
        "values|shape|stride|is_contiguous|grad values|saved.*",
        always,
        "A refused write leaves an inference tensor unchanged here; torch has written before it refuses.",
        ends=True,
        raised="Inplace update to inference tensor",
    ),
    KnownDifference(
        "values",
        lambda step, in_torch, in_library: "sort" in step.operation and same_elements(in_torch, in_library),
        "Which of equal elements comes first in more than 16 is open without `stable=True`.",
        ends=True,
    ),
    KnownDifference(
        "hook log",
        lambda step, in_torch, in_library: not step.operation.startswith(("backward", "autograd")) and not in_library,
        "Torch hands values to saved-tensor hooks before it notices that an argument is wrong.",
        raised=".",
    ),
)

# Operations (names as in OPERATIONS) that the library under test leaves out on purpose.
SKIPPED_OPERATIONS: dict[str, str] = {}


@dataclass(frozen=True)
class Difference:
    step_index: int
    operation: str
    aspect: str
    expression: str | None  # shows the difference when evaluated after the step; None: the step itself does
    in_torch: Any
    in_library: Any
    further: tuple[str, ...] = ()

    @property
    def kind(self) -> tuple[str, ...]:
        """What failures with the same cause have in common: the step, the aspect, and names or messages."""
        details = [in_outline(value) for value in (self.in_torch, self.in_library)]
        telling = self.aspect.startswith(("error", "warnings", "grad_fn", "saved names"))
        return (self.operation, self.aspect, *(details if telling else ()))


def in_outline(value: Any) -> str:
    """The text of a value without the names and numbers of one particular program."""
    if isinstance(value, Raised):
        value = f"{value.error}: {value.sentence}"
    return re.sub(r"\[[\d, ]*\]|\([\d, ]*\)|-?\d+(\.\d+)?(e[-+]\d+)?", "#", str(value))


class StepRecord(NamedTuple):
    outcome: Raised | None
    warned: tuple[tuple[str, str], ...]
    log: list[Any]
    value: Any  # of a reading step
    modes: tuple[Any, ...]
    tensors: dict[str, Any] | None  # None where nobody looked


def library_under_test() -> Any:
    return importlib.import_module(os.environ.get("SEMANTICS_LIB", "retrograd"))


# -- running ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def prepared(library: Any) -> Iterator[None]:
    """The library set up for one program.

    Warnings that come once per process must come every time, or the order of programs would matter. Mutants
    (mutants.py) patch torch only while they run.
    """
    setter = getattr(library, "set_warn_always", None)
    patched = getattr(library, "patched", contextlib.nullcontext)
    before = library.is_warn_always_enabled() if setter else False
    if setter:
        setter(True)
    try:
        with patched():
            yield
    finally:
        if setter:
            setter(before)


def run(program: Program, library: Any, records: list[StepRecord] | None = None) -> list[StepRecord]:
    """Run the whole program in one library, recording what is visible after each step."""
    namespace = fresh_namespace(library)
    guards: list[Any] = []
    records = [] if records is None else records
    last = len(program.steps) - 1
    with warnings.catch_warnings(record=True) as caught, prepared(library):
        warnings.simplefilter("always")
        try:
            for index, step in enumerate(program.steps):
                watched = program.watch_every_step or index == last
                records.append(run_step(step, library, namespace, guards, caught, watched))
        finally:
            close(guards)
    return records


def run_step(
    step: Step, library: Any, namespace: dict[str, Any], guards: list[Any], caught: list[Any], watched: bool
) -> StepRecord:
    log: list[Any] = namespace["log"]
    log.clear()
    caught.clear()
    namespace.pop("value", None)
    error = execute(step, namespace, guards)
    outcome = None if error is None else raised(error)
    warned = tuple([(w.category.__name__, first_sentence(str(w.message))) for w in caught])
    logged = list(log)
    modes = guarded(lambda lib: (lib.is_grad_enabled(), lib.is_inference_mode_enabled()), library)
    value = guarded(lambda result: readable(result, library), namespace.get("value"))
    tensors = Observer(library, namespace).observe() if watched else None
    return StepRecord(outcome, warned, logged, value, modes, tensors)


def readable(value: Any, library: Any) -> Any:
    """The result of a reading step, without what differs by nature between libraries."""
    if isinstance(value, library.Tensor):
        return (unqualified(value.dtype), tuple(value.shape), value.tolist())
    if value is None or isinstance(value, (bool, int, float, list)):
        return value
    if isinstance(value, str):
        return first_sentence(value) if "0x" in value else value
    if hasattr(value, "next_functions"):
        return value.name()
    return float(value)  # a NumPy scalar


class OutOfTime(BaseException):
    """A program ran far longer than any should. Not an Exception: steps must not catch it."""


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Turn an endless loop into an exception, where signals are available."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# -- comparing ----------------------------------------------------------------------------------------------


def flat(values: Any) -> list[Any]:
    if not isinstance(values, (list, tuple)):
        return [values]
    return [item for value in values for item in flat(value)]


def close_enough(left: Any, right: Any, tolerance: float) -> bool:
    """Equal, where numbers may differ by rounding relative to the largest of the numbers around them."""
    if left == right:
        return True
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        lefts, rights = flat(left), flat(right)
        if len(lefts) != len(rights):
            return False
    else:
        lefts, rights = [left], [right]
    scale = max([1.0, *(abs(v) for v in lefts if isinstance(v, float) and math.isfinite(v))])
    return all(same_number(a, b, tolerance * scale) for a, b in zip(lefts, rights, strict=True))


def same_number(left: Any, right: Any, margin: float) -> bool:
    if left == right and type(left) is type(right):
        return True
    if not (isinstance(left, float) and isinstance(right, float)):
        return False
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return abs(left - right) <= margin


def tolerance_for(records: list[StepRecord]) -> float:
    """Once a float32 tensor is about, numbers of any dtype may come from it."""
    looks = [record.tensors for record in records if record.tensors is not None]
    dtypes = {tensor[0][0] for tensors in looks for tensor in tensors.values() if tensor is not None}
    return RELATIVE_TOLERANCE["float32" if "float32" in dtypes else "float64"]


def differing_facts(name: str, in_torch: Any, in_library: Any, tolerance: float) -> Iterator[tuple[Fact, Fact]]:
    """Pairs of facts about one tensor that differ, in order of observation."""
    if in_torch == in_library:
        return
    ours = {(fact.aspect, fact.expression): fact for fact in facts_of(name, in_library)}
    for fact in facts_of(name, in_torch):
        other = ours.get((fact.aspect, fact.expression))
        # A fact without counterpart follows from one that differs: a grad that is None, a shorter graph.
        if other is not None and not close_enough(fact.value, other.value, tolerance):
            yield fact, other


def differences_at(
    index: int, step: Step, ours: StepRecord, theirs: StepRecord, tolerance: float
) -> Iterator[tuple[int, Difference]]:
    """All differences of one step with their ranks; ``ours`` is the library under test, ``theirs`` torch."""

    def differ(rank: int, aspect: str, shown_by: str | None, left: Any, right: Any) -> tuple[int, Difference]:
        return rank, Difference(index, step.operation, aspect, shown_by, left, right)

    if theirs.outcome != ours.outcome:
        both = theirs.outcome is not None and ours.outcome is not None
        same_class = both and theirs.outcome.error == ours.outcome.error
        aspect = "error text" if same_class else "error class" if both else "error or not"
        yield differ(-10, aspect, None, theirs.outcome, ours.outcome)
    if theirs.warned != ours.warned:
        yield differ(-5, "warnings", None, theirs.warned, ours.warned)
    if theirs.modes != ours.modes:
        expression = "(torch.is_grad_enabled(), torch.is_inference_mode_enabled())"
        yield differ(-4, "grad mode", expression, theirs.modes, ours.modes)
    if not close_enough(theirs.value, ours.value, tolerance):
        yield differ(-3, "value read", "value", theirs.value, ours.value)
    for place, (left, right) in enumerate(itertools.zip_longest(theirs.log, ours.log)):
        if left is None or right is None or not close_enough(left, right, tolerance):
            yield differ(5, "hook log", f"log[{place}:]", theirs.log[place:], ours.log[place:])
            break
    if theirs.tensors is None or ours.tensors is None:
        return
    for name in theirs.tensors.keys() | ours.tensors.keys():
        exists = (name in theirs.tensors, name in ours.tensors)
        if not all(exists):
            yield differ(-2, "which tensors exist", f"{name!r} in locals()", *exists)
            continue
        for fact, other in differing_facts(name, theirs.tensors[name], ours.tensors[name], tolerance):
            yield differ(fact.rank, fact.aspect, fact.expression, fact.value, other.value)


def gradient_names(program: Program) -> set[str]:
    """Names of the tensors that come from gradients: taken, returned, or made of such."""
    names: set[str] = set()
    for step in program.steps:
        if step.operation in ("autograd.grad", "take grad") or step.uses & names:
            names |= step.defines or (step.uses if step.uses & names else set())  # written in place
    return names


def is_dense(strides: Any) -> bool:
    """Tell whether strides may be those of a contiguous tensor: they never grow."""
    return isinstance(strides, tuple) and all(a >= b for a, b in itertools.pairwise(strides))


def known(
    program: Program, index: int, difference: Difference, gradients: set[str], theirs: list[StepRecord]
) -> KnownDifference | None:
    step = program.steps[index]
    first = index if program.watch_every_step else 0
    messages = [record.outcome.sentence for record in theirs[first : index + 1] if record.outcome is not None]
    for one in KNOWN_DIFFERENCES:
        if not re.fullmatch(one.aspect, difference.aspect):
            continue
        if one.raised and not any(re.search(one.raised, message) for message in messages):
            continue
        if not one.applies(step, difference.in_torch, difference.in_library):
            continue
        if one.after and not any(re.search(one.after, s.source) for s in program.steps[: index + 1]):
            continue
        name = re.search(r"\bt\d+", difference.expression or "") or re.search(r"\bt\d+", step.source)
        if not one.of_gradients or (name is not None and name[0] in gradients):
            return one
    return None


def find_difference(program: Program, library: Any, reference: Any = torch) -> Difference | None:
    """The best explanation of how the library's run first departs from torch's, or None."""
    theirs = run(program, reference)
    gradients = gradient_names(program)
    ours: list[StepRecord] = []
    try:
        with time_limit(SECONDS_PER_PROGRAM):
            run(program, library, ours)
    except OutOfTime:
        index = len(ours)
        return Difference(index, program.steps[index].operation, ENDLESS, None, "", f"> {SECONDS_PER_PROGRAM} s")
    for index, (step, mine, other) in enumerate(zip(program.steps, ours, theirs, strict=True)):
        if other.outcome is not None and "INTERNAL ASSERT" in other.outcome.sentence:
            return None  # a bug in torch: nobody should behave like it, and its state is undefined from here
        if mine == other:
            continue
        found = []
        for rank, difference in differences_at(index, step, mine, other, tolerance_for(theirs)):
            intended = known(program, index, difference, gradients, theirs)
            if intended is None:
                found.append((rank, difference))
            elif intended.ends:
                return None
        if found:
            found.sort(key=lambda pair: (pair[0], pair[1].expression or ""))
            best = found[0][1]
            others = dict.fromkeys(difference.aspect for _, difference in found[1:])
            further = tuple(aspect for aspect in others if aspect != best.aspect)
            return Difference(**{**best.__dict__, "further": further})
    return None
